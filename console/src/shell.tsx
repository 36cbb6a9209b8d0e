/** The menu, and the page that the address names. */

import { type ReactNode, useMemo, useState } from "react";
import { type Place, placeOf, SECTIONS, sectionOf } from "./base/places";
import { AdminKeys } from "./pages/admin-keys/admin-keys";
import { Alerts } from "./pages/alerts/alerts";
import { Audit } from "./pages/audit/audit";
import { Costs } from "./pages/costs/costs";
import { Credit } from "./pages/credit/credit";
import { Limits } from "./pages/limits/limits";
import { Models } from "./pages/models/models";
import { Overview } from "./pages/overview/overview";
import { Playground } from "./pages/playground/playground";
import { NewPolicy } from "./pages/policies/new-policy";
import { Policies } from "./pages/policies/policies";
import { Policy } from "./pages/policies/policy";
import { Project } from "./pages/projects/project";
import { Projects } from "./pages/projects/projects";
import { Request } from "./pages/requests/request";
import { Requests } from "./pages/requests/requests";
import { Boundary } from "./ui/boundary";
import { Badge } from "./ui/data";
import { Icon } from "./ui/icon";
import { Mark } from "./ui/mark";
import { Link, usePath } from "./ui/navigation";
import { NowContext, presentInstant } from "./ui/now";
import { useOrganization } from "./ui/organization";
import { Page } from "./ui/page";
import { useSession } from "./ui/session";
import { Shortcuts } from "./ui/shortcuts";

export function Shell() {
  const path = usePath();
  const place = useMemo(() => placeOf(path), [path]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: every page has a present of its own.
  const now = useMemo(presentInstant, [path]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <Shortcuts />
      <div className="shell">
        <Side place={place} />
        <main id="main" className="main" key={path}>
          <Boundary>
            <NowContext value={now}>{pageAt(place)}</NowContext>
          </Boundary>
        </main>
      </div>
    </>
  );
}

function pageAt(place: Place): ReactNode {
  switch (place.page) {
    case "overview":
      return <Overview />;
    case "costs":
      return <Costs />;
    case "requests":
      return <Requests />;
    case "request":
      return <Request id={place.id} />;
    case "limits":
      return <Limits />;
    case "alerts":
      return <Alerts />;
    case "models":
      return <Models />;
    case "policies":
      return <Policies />;
    case "new-policy":
      return <NewPolicy />;
    case "policy":
      return <Policy id={place.id} />;
    case "projects":
      return <Projects />;
    case "project":
      return <Project id={place.id} />;
    case "playground":
      return <Playground />;
    case "credit":
      return <Credit />;
    case "admin-keys":
      return <AdminKeys />;
    case "audit":
      return <Audit />;
    case "nowhere":
      return <Nowhere />;
  }
}

function Side({ place }: { place: Place }) {
  const session = useSession();
  const [isOpen, setOpen] = useState(false);
  const section = sectionOf(place);
  const close = () => setOpen(false);
  return (
    <header className={isOpen ? "side is-open" : "side"}>
      <div className="side-top">
        <Link className="wordmark" to={{ page: "overview" }}>
          <Mark />
          Tollhouse
        </Link>
        <button
          type="button"
          className="button button-small menu-button"
          aria-expanded={isOpen}
          aria-controls="menu"
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
      </div>
      <OrganizationName />
      <nav id="menu" aria-label="Pages">
        <ul className="menu">
          {SECTIONS.map(({ page, title }) => (
            <li key={page}>
              <Link
                to={{ page }}
                onClick={close}
                {...(page === section ? { "aria-current": "page" } : {})}
              >
                <Icon of={page} />
                {title}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <div className="holder">
        <a href="/docs/" target="_blank" rel="noopener">
          Documentation
        </a>
        <span className="quiet anywhere">
          {session.opened.is_person ? (
            <>Signed in as {session.opened.name}</>
          ) : (
            <>
              Signed in with <code>{session.opened.name}</code>
            </>
          )}
        </span>
        <button type="button" className="button button-small" onClick={session.signOut}>
          Sign out
        </button>
      </div>
    </header>
  );
}

/** Empty until the name is known, and for a key that may not read it. */
function OrganizationName() {
  const { opened } = useSession();
  const organization = useOrganization();
  const isChosen = opened.organizations.length > 1;
  // Not every group may read the organization; the session names it to people all the same.
  const name = organization?.name ?? opened.organizations[0]?.name;
  return (
    <div className="organization">
      {isChosen && <Chooser />}
      {!isChosen && name !== undefined && <strong title={name}>{name}</strong>}
      {organization?.is_sandbox && (
        <span>
          <Badge tone="warn">sandbox</Badge>
        </span>
      )}
    </div>
  );
}

/** Where a person acts who may act in several organizations. */
function Chooser() {
  const { opened, actIn } = useSession();
  return (
    <select
      className="input"
      aria-label="Organization"
      value={opened.organization_id}
      onChange={(event) => actIn(event.target.value)}
    >
      {opened.organizations.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}

function Nowhere() {
  return (
    <Page title="No such page">
      <p>
        There is no page at this address. <Link to={{ page: "overview" }}>Go to the overview</Link>
      </p>
    </Page>
  );
}
