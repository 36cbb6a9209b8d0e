/** Which page stands at which path. What nobody knows is a page of its own. */

export const ROOT = "/console";

export type Section =
  | "overview"
  | "costs"
  | "requests"
  | "policies"
  | "projects"
  | "limits"
  | "alerts"
  | "models"
  | "playground"
  | "credit"
  | "admin-keys"
  | "audit";

/** Choices of a page, as its address holds them. */
export type Search = Readonly<Record<string, string>>;

export type Place =
  | { readonly page: Section; readonly search?: Search }
  | { readonly page: "request"; readonly id: string }
  | { readonly page: "new-policy" }
  | { readonly page: "policy"; readonly id: string }
  | { readonly page: "project"; readonly id: string }
  | { readonly page: "nowhere" };

export const SECTIONS: ReadonlyArray<{ readonly page: Section; readonly title: string }> = [
  { page: "overview", title: "Overview" },
  { page: "costs", title: "Costs" },
  { page: "credit", title: "Credit" },
  { page: "requests", title: "Requests" },
  { page: "policies", title: "Policies" },
  { page: "projects", title: "Projects and keys" },
  { page: "limits", title: "Limits and caps" },
  { page: "alerts", title: "Alerts" },
  { page: "models", title: "Models" },
  { page: "playground", title: "Playground" },
  { page: "admin-keys", title: "Admin keys" },
  { page: "audit", title: "Audit log" },
];

const NEW = "new";

/** The place of a path, as the address bar holds it. */
export function placeOf(path: string): Place {
  const [first, second, ...more] = path.slice(ROOT.length).split("/").filter(Boolean);
  if (!path.startsWith(ROOT) || more.length > 0) return { page: "nowhere" };
  if (first === undefined) return { page: "overview" };
  if (second !== undefined) return itemOf(first, second);
  const section = SECTIONS.find(({ page }) => page === first && page !== "overview");
  return section === undefined ? { page: "nowhere" } : { page: section.page };
}

function itemOf(section: string, encoded: string): Place {
  const id = decoded(encoded);
  if (section === "requests") return { page: "request", id };
  if (section === "projects") return { page: "project", id };
  if (section === "policies") return id === NEW ? { page: "new-policy" } : { page: "policy", id };
  return { page: "nowhere" };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function pathOf(place: Place): string {
  switch (place.page) {
    case "overview":
      return `${ROOT}/${searchOf(place.search)}`;
    case "nowhere":
      return `${ROOT}/`;
    case "request":
      return `${ROOT}/requests/${encodeURIComponent(place.id)}`;
    case "policy":
      return `${ROOT}/policies/${encodeURIComponent(place.id)}`;
    case "new-policy":
      return `${ROOT}/policies/${NEW}`;
    case "project":
      return `${ROOT}/projects/${encodeURIComponent(place.id)}`;
    default:
      return `${ROOT}/${place.page}${searchOf(place.search)}`;
  }
}

function searchOf(search: Search = {}): string {
  const query = new URLSearchParams(search);
  return query.size === 0 ? "" : `?${query}`;
}

/** The section that the menu marks as current. */
export function sectionOf(place: Place): Section | null {
  switch (place.page) {
    case "request":
      return "requests";
    case "policy":
    case "new-policy":
      return "policies";
    case "project":
      return "projects";
    case "nowhere":
      return null;
    default:
      return place.page;
  }
}
