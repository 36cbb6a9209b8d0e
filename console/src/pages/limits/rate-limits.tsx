/** Rate limits: the organization's own can be set here, the operator's only seen. */

import { type FormEvent, useCallback, useState } from "react";
import { content } from "../../api/client";
import type { RateLimit } from "../../api/types";
import { walkList } from "../../api/walking";
import { Confirmation } from "../../ui/confirmation";
import { Count, Empty, Panel } from "../../ui/data";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/fields";
import { FormEnd } from "../../ui/form-end";
import { Loaded, useAct, useLoad } from "../../ui/loading";
import { useNames } from "../../ui/names";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { idsOf, ScopeFields, scopedBy, scopeName } from "./scope";

type Asked =
  | { readonly verb: "set" }
  | { readonly verb: "change" | "remove"; readonly limit: RateLimit };

function bound(value: number | null) {
  return value === null ? <span className="quiet">none</span> : <Count of={value} />;
}

export function RateLimits() {
  const { admin } = useSession();
  const names = useNames();
  const [asked, ask] = useState<Asked | null>(null);
  const load = useCallback(
    (signal: AbortSignal) =>
      walkList((query) =>
        content(admin.GET("/manage/v1/organization/rate_limits", { params: { query }, signal })),
      ),
    [admin],
  );
  const limits = useLoad(load);
  const close = () => ask(null);
  const columns: ReadonlyArray<Column<RateLimit>> = [
    { title: "On", cell: (limit) => scopeName(limit, names) },
    { title: "Set by", cell: ({ owner }) => (owner === "operator" ? "the operator" : "you") },
    {
      title: "Requests per minute",
      cell: ({ requests_per_minute }) => bound(requests_per_minute),
      isNumeric: true,
    },
    {
      title: "Tokens per minute",
      cell: ({ tokens_per_minute }) => bound(tokens_per_minute),
      isNumeric: true,
    },
    {
      title: "Concurrent",
      cell: ({ concurrent_requests }) => bound(concurrent_requests),
      isNumeric: true,
    },
    {
      title: "",
      cell: (limit) => <LimitActions limit={limit} name={scopeName(limit, names)} onAsk={ask} />,
    },
  ];
  return (
    <Panel
      title="Rate limits"
      actions={
        <button type="button" className="button button-main" onClick={() => ask({ verb: "set" })}>
          Set a limit
        </button>
      }
    >
      <Loaded of={limits}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty next={{ title: "Set the first limit", run: () => ask({ verb: "set" }) }}>
              No rate limit is set: each key may send as much as the gateway can take.
            </Empty>
          ) : (
            <Table caption="Rate limits" columns={columns} rows={items} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
      {asked?.verb === "set" && <SetLimit limit={null} onSet={limits.reload} onClose={close} />}
      {asked?.verb === "change" && (
        <SetLimit limit={asked.limit} onSet={limits.reload} onClose={close} />
      )}
      {asked?.verb === "remove" && (
        <RemoveLimit
          limit={asked.limit}
          name={scopeName(asked.limit, names)}
          onRemoved={limits.reload}
          onClose={close}
        />
      )}
    </Panel>
  );
}

interface LimitActionsProperties {
  readonly limit: RateLimit;
  readonly name: string;
  readonly onAsk: (asked: Asked) => void;
}

function LimitActions({ limit, name, onAsk }: LimitActionsProperties) {
  if (limit.owner === "operator") return null;
  return (
    <div className="row row-end">
      {(["change", "remove"] as const).map((verb) => (
        <button
          key={verb}
          type="button"
          className="button button-plain"
          aria-label={`${verb === "change" ? "Change" : "Remove"} the limit of ${name}`}
          onClick={() => onAsk({ verb, limit })}
        >
          {verb === "change" ? "Change" : "Remove"}
        </button>
      ))}
    </div>
  );
}

interface SetLimitProperties {
  readonly limit: RateLimit | null;
  readonly onSet: () => void;
  readonly onClose: () => void;
}

function SetLimit({ limit, onSet, onClose }: SetLimitProperties) {
  const { admin } = useSession();
  const [choice, setChoice] = useState({ projectId: "", keyId: "" });
  const [requests, setRequests] = useState(String(limit?.requests_per_minute ?? ""));
  const [tokens, setTokens] = useState(String(limit?.tokens_per_minute ?? ""));
  const [atOnce, setAtOnce] = useState(String(limit?.concurrent_requests ?? ""));
  const act = useAct();
  const bounds = [requests, tokens, atOnce].map(countOf);
  const isSound = !bounds.includes(undefined) && bounds.some((value) => value !== null);
  const set = (event: FormEvent) => {
    event.preventDefault();
    const [requests_per_minute = null, tokens_per_minute = null, concurrent_requests = null] =
      bounds;
    act.run(async () => {
      await content(
        admin.PUT("/manage/v1/organization/rate_limits", {
          body: {
            ...idsOf(limit ?? scopedBy(choice)),
            requests_per_minute,
            tokens_per_minute,
            concurrent_requests,
          },
        }),
      );
      onSet();
      onClose();
    });
  };
  return (
    <Dialog title={limit === null ? "Set a limit" : "Change the limit"} onClose={onClose}>
      <form className="form" onSubmit={set}>
        {limit === null && <ScopeFields {...choice} onChoice={setChoice} />}
        <BoundField label="Requests per minute" value={requests} onValue={setRequests} />
        <BoundField label="Tokens per minute" value={tokens} onValue={setTokens} />
        <BoundField label="Concurrent requests" value={atOnce} onValue={setAtOnce} />
        <p className="quiet">
          An empty field sets no limit. The new values replace the earlier ones.
        </p>
        <FormEnd act={act} verb="Set limit" isDisabled={!isSound} onClose={onClose} />
      </form>
    </Dialog>
  );
}

interface BoundFieldProperties {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

function BoundField({ label, value, onValue }: BoundFieldProperties) {
  const isSound = countOf(value) !== undefined;
  return (
    <TextField
      label={label}
      {...(isSound ? {} : { fault: "Enter a whole number of at least 1, or leave it empty." })}
      inputMode="numeric"
      value={value}
      onValue={onValue}
    />
  );
}

/** Null is no bound; undefined is no number. */
function countOf(text: string): number | null | undefined {
  const plain = text.trim().replaceAll(",", "");
  if (plain === "") return null;
  return /^[1-9]\d{0,14}$/.test(plain) ? Number(plain) : undefined;
}

interface RemoveLimitProperties {
  readonly limit: RateLimit;
  readonly name: string;
  readonly onRemoved: () => void;
  readonly onClose: () => void;
}

function RemoveLimit({ limit, name, onRemoved, onClose }: RemoveLimitProperties) {
  const { admin } = useSession();
  const remove = async () => {
    await content(
      admin.DELETE("/manage/v1/organization/rate_limits", { params: { query: idsOf(limit) } }),
    );
    onRemoved();
  };
  return (
    <Confirmation
      title={`Remove the limit of ${name}?`}
      verb="Remove limit"
      isGrave
      onConfirm={remove}
      onClose={onClose}
    >
      The operator’s limits still apply.
    </Confirmation>
  );
}
