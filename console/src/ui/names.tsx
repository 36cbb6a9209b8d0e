/** Names of projects and keys, read once for a session and there as soon as they are known. */

import { useEffect, useState } from "react";
import { type Names, NO_NAMES, namesFor } from "../api/names";
import { useSession } from "./session";

export function useNames(): Names {
  const { admin } = useSession();
  const [names, setNames] = useState<Names>(NO_NAMES);
  useEffect(() => {
    let isWanted = true;
    namesFor(admin).then((read) => {
      if (isWanted) setNames(read);
    });
    return () => {
      isWanted = false;
    };
  }, [admin]);
  return names;
}
