/** The judge of the gateway by its name, and what the demonstration judge cannot do. */

import { Badge } from "../../ui/data";
import { useOrganization } from "../../ui/organization";

/** Empty until the judge is known, and on a gateway without one. */
export function JudgeName() {
  const judge = useOrganization()?.judge ?? null;
  if (judge === null) return null;
  return (
    <span className="row">
      <span className="quiet">Judge:</span>
      {judge.is_demonstration ? (
        <Badge tone="warn">demonstration judge</Badge>
      ) : (
        <span className="anywhere">{judge.model}</span>
      )}
    </span>
  );
}

/** Shown only where the gateway has the judge of a trial. */
export function DemonstrationNotice() {
  const isDemonstration = useIsDemonstration();
  if (!isDemonstration) return null;
  return (
    <p className="notice notice-warn">
      <span>
        The <strong>demonstration judge</strong> of this trial knows only questions about words that
        the rule quotes, card numbers, passwords, e-mail addresses, phone numbers, links, IP
        addresses and IBANs, such as “Does the text contain "Project Falcon"?”. To judge other
        rules, name a model in <code>[judge]</code> of <code>tollhouse.toml</code>.
      </span>
    </p>
  );
}

export function useIsDemonstration(): boolean {
  return useOrganization()?.judge?.is_demonstration ?? false;
}
