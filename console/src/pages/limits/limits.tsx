/** What may be spent, and how much traffic may be caused, by whom. */

import { Page } from "../../ui/page";
import { Caps } from "./caps";
import { RateLimits } from "./rate-limits";

export function Limits() {
  return (
    <Page
      title="Limits and caps"
      about="A cap bounds money, a limit bounds traffic. Both can be set on the organization, a project or a key."
    >
      <Caps />
      <RateLimits />
    </Page>
  );
}
