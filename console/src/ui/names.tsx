/** Names of projects and keys, read once for a page and there as soon as they are known. */

import { useEffect, useState } from "react";
import { asFailure } from "../api/failure";
import { type Names, NO_NAMES, readNames } from "../api/names";
import { useSession } from "./session";

export function useNames(): Names {
  const { admin } = useSession();
  const [names, setNames] = useState<Names>(NO_NAMES);
  useEffect(() => {
    let isWanted = true;
    readNames(admin).then(
      (read) => {
        if (isWanted) setNames(read);
      },
      // What the page itself asks for tells that the gateway is gone; other faults go on.
      (thrown: unknown) => {
        asFailure(thrown);
      },
    );
    return () => {
      isWanted = false;
    };
  }, [admin]);
  return names;
}
