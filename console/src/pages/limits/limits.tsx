/** What may be spent, and how much traffic may be caused, by whom. */

import { Page } from "../../ui/page";
import { Caps } from "./caps";
import { RateLimits } from "./rate-limits";

export function Limits() {
  return (
    <Page
      title="Limits and caps"
      about="A cap limits spending, a rate limit limits traffic. You can set both for the organization, a project or a key."
    >
      <Caps />
      <RateLimits />
    </Page>
  );
}
