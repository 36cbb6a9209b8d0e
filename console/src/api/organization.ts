/** The organization of an Admin key, and the judge of its gateway. */

import { type Api, content } from "./client";
import { Failure } from "./failure";
import type { Organization } from "./types";

const remembered = new WeakMap<Api, Promise<Organization | null>>();

/** Return the organization, read once for a session; null if the key may not read it. */
export function organizationFor(admin: Api): Promise<Organization | null> {
  const known = remembered.get(admin) ?? readOrganization(admin);
  remembered.set(admin, known);
  return known;
}

/** A failure that may pass is forgotten, so that the next page asks again. */
async function readOrganization(admin: Api): Promise<Organization | null> {
  try {
    return await content(admin.GET("/manage/v1/organization"));
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown;
    if (thrown.explanation.missingPermission === null) remembered.delete(admin);
    return null;
  }
}
