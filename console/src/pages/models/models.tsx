/** The catalog: what each model costs, what it can do, and whether it is ready. */

import { useCallback } from "react";
import { content } from "../../api/client";
import type { Model } from "../../api/types";
import { Badge, Count, Empty, Panel } from "../../ui/data";
import { Loaded, useLoad } from "../../ui/loading";
import { Page } from "../../ui/page";
import { useSession } from "../../ui/session";
import { type Column, Table } from "../../ui/table";
import { isFree, perMillion } from "./prices";

const COLUMNS: ReadonlyArray<Column<Model>> = [
  {
    title: "Model",
    cell: ({ id, display_name }) => (
      <>
        {display_name}
        <br />
        <code className="quiet anywhere">{id}</code>
      </>
    ),
  },
  { title: "Status", cell: (model) => <Readiness model={model} /> },
  { title: "Input", cell: ({ pricing }) => perMillion(pricing.prompt), isNumeric: true },
  { title: "Cached", cell: ({ pricing }) => perMillion(pricing.input_cache_read), isNumeric: true },
  { title: "Output", cell: ({ pricing }) => perMillion(pricing.completion), isNumeric: true },
  {
    title: "Context",
    cell: ({ context_length }) => <Count of={context_length} />,
    isNumeric: true,
  },
  { title: "Features", cell: (model) => <Abilities model={model} /> },
];

export function Models() {
  return (
    <Page
      title="Models"
      about="Prices in US dollars per million tokens. Projects and keys may allow fewer models."
    >
      <Catalog />
    </Page>
  );
}

function Catalog() {
  const { admin } = useSession();
  const load = useCallback(
    (signal: AbortSignal) => content(admin.GET("/manage/v1/organization/models", { signal })),
    [admin],
  );
  const models = useLoad(load);
  return (
    <Panel title="Catalog">
      <Loaded of={models}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>
              This gateway offers no model. Its operator configures models in <code>[models]</code>.{" "}
              <a href="/docs/guides/models-and-backends/" target="_blank" rel="noopener">
                How to configure a model
              </a>
            </Empty>
          ) : (
            <Table caption="Catalog" columns={COLUMNS} rows={data} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
    </Panel>
  );
}

function Readiness({ model: { access, is_ready } }: { model: Model }) {
  if (access.locked) {
    return (
      <>
        <Badge tone="warn">locked</Badge>
        <div className="quiet">needs {access.missing_requirements.join(", ")}</div>
      </>
    );
  }
  return is_ready ? <Badge tone="good">ready</Badge> : <Badge tone="bad">not ready</Badge>;
}

/** Modalities first, then the features by name; prices beside tokens only where there are any. */
function Abilities({ model }: { model: Model }) {
  const { pricing, input_modalities, supported_features } = model;
  const extra = [
    ...(isFree(pricing.image) ? [] : [`$${pricing.image} per image`]),
    ...(isFree(pricing.request) ? [] : [`$${pricing.request} per request`]),
  ];
  return (
    <div className="abilities">
      <div>{input_modalities.join(", ")}</div>
      {supported_features.length > 0 && (
        <details>
          <summary>{supported_features.length} features</summary>
          <span className="quiet anywhere">{supported_features.join(", ")}</span>
        </details>
      )}
      {extra.length > 0 && <div className="quiet">{extra.join(", ")}</div>}
    </div>
  );
}
