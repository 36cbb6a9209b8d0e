/** The organization that is signed in, as soon as it is known. */

import { useEffect, useState } from "react";
import { organizationFor } from "../api/organization";
import type { Organization } from "../api/types";
import { useSession } from "./session";

/** Return null until it is read, and for a key that may not read it. */
export function useOrganization(): Organization | null {
  const { admin } = useSession();
  const [organization, setOrganization] = useState<Organization | null>(null);
  useEffect(() => {
    let isWanted = true;
    organizationFor(admin).then((read) => {
      if (isWanted) setOrganization(read);
    });
    return () => {
      isWanted = false;
    };
  }, [admin]);
  return organization;
}
