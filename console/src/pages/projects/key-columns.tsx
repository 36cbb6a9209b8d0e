/** A key as a row of its project's list. */

import type { ProjectKey, SpendingLimit } from "../../api/types";
import { moment } from "../../base/days";
import { Badge, When } from "../../ui/data";
import { Link } from "../../ui/navigation";
import type { Column } from "../../ui/table";
import type { Spending } from "../limits/spending";
import { spendingColumns } from "../limits/spending-columns";
import { MEANINGS, PERMISSIONS } from "./permissions";

const TONES = { active: "good", suspended: "warn", revoked: "plain", expired: "plain" } as const;

export type Verb = "rotate" | "cap" | "suspend" | "resume" | "revoke" | "end_previous";

export interface Asked {
  readonly verb: Verb;
  readonly key: ProjectKey;
  /** The cap to change, where there is one. */
  readonly cap?: SpendingLimit | undefined;
}

export const TITLES: Readonly<Record<Verb, string>> = {
  rotate: "Rotate",
  cap: "Cap",
  suspend: "Suspend",
  resume: "Resume",
  revoke: "Revoke",
  end_previous: "End the old value of",
};

type Ask = (asked: Asked) => void;

export function keyColumns(
  projectId: string,
  spending: Spending | null,
  ask: Ask,
): ReadonlyArray<Column<ProjectKey>> {
  return [
    { title: "Name", cell: (key) => <Name apiKey={key} /> },
    { title: "Status", cell: (key) => <Status apiKey={key} ask={ask} /> },
    { title: "Last used", cell: (key) => <LastUse projectId={projectId} apiKey={key} /> },
    ...spendingColumns<ProjectKey>(spending),
    {
      title: "",
      cell: (key) => <Verbs apiKey={key} cap={spending?.caps?.get(key.id)} ask={ask} />,
    },
  ];
}

function Name({ apiKey }: { apiKey: ProjectKey }) {
  const { name, redacted_value, allowed_models, permissions } = apiKey;
  return (
    <>
      <span className="anywhere">{name}</span>
      <br />
      <code className="quiet">{redacted_value}</code>
      {permissions.length < PERMISSIONS.length && (
        <div className="quiet small">
          may only{" "}
          {PERMISSIONS.filter((one) => permissions.includes(one)).map((one) => MEANINGS[one])}
        </div>
      )}
      {allowed_models !== null && (
        <div className="quiet small anywhere">only {allowed_models.join(", ")}</div>
      )}
    </>
  );
}

function Status({ apiKey, ask }: { apiKey: ProjectKey; ask: Ask }) {
  const { status, expires_at, previous_value_expires_at } = apiKey;
  return (
    <>
      <Badge tone={TONES[status]}>{status}</Badge>
      {expires_at !== null && (
        <div className="quiet small">
          {status === "expired" ? "expired" : "expires"} <When at={expires_at} />
        </div>
      )}
      {previous_value_expires_at !== null && (
        <div className="small">
          old value works until {moment(previous_value_expires_at)}{" "}
          <button
            type="button"
            className="button button-plain"
            aria-label={`End now: the old value of ${apiKey.name}`}
            onClick={() => ask({ verb: "end_previous", key: apiKey })}
          >
            End now
          </button>
        </div>
      )}
    </>
  );
}

/** Leads to what the key was used for: after a leak, that is the question. */
function LastUse({ projectId, apiKey }: { projectId: string; apiKey: ProjectKey }) {
  if (apiKey.last_used_at === null) return <span className="quiet">never</span>;
  return (
    <Link
      to={{ page: "requests", search: { project: projectId, key: apiKey.id, range: "30d" } }}
      title={`Requests of ${apiKey.name}`}
    >
      <When at={apiKey.last_used_at} />
    </Link>
  );
}

interface VerbsProperties {
  readonly apiKey: ProjectKey;
  readonly cap: SpendingLimit | undefined;
  readonly ask: Ask;
}

function Verbs({ apiKey, cap, ask }: VerbsProperties) {
  return (
    <div className="row row-end in-line">
      {verbsOf(apiKey.status).map((verb) => (
        <button
          key={verb}
          type="button"
          className="button button-plain"
          aria-label={`${TITLES[verb]} ${apiKey.name}`}
          onClick={() => ask({ verb, key: apiKey, cap })}
        >
          {TITLES[verb]}
        </button>
      ))}
    </div>
  );
}

function verbsOf(status: ProjectKey["status"]): readonly Verb[] {
  if (status === "active") return ["rotate", "cap", "suspend", "revoke"];
  return status === "suspended" ? ["resume", "revoke"] : [];
}
