import { describe, expect, it } from "vitest";
import { type Place, pathOf, placeOf, SECTIONS, sectionOf } from "./places";

const PLACES: Place[] = [
  ...SECTIONS.map(({ page }): Place => ({ page })),
  { page: "request", id: "0199a" },
  { page: "policy", id: "pol_1" },
  { page: "new-policy" },
  { page: "project", id: "a/b c" },
];

describe("places", () => {
  it.each(PLACES)("are found again by their path: $page", (place) => {
    expect(placeOf(pathOf(place))).toEqual(place);
  });

  it.each(["/console", "/console/"])("begin with the overview at %s", (path) => {
    expect(placeOf(path)).toEqual({ page: "overview" });
  });

  it.each(["/console/overview", "/console/nothing", "/console/costs/x", "/console/projects/a/b"])(
    "do not hold %s",
    (path) => {
      expect(placeOf(path)).toEqual({ page: "nowhere" });
    },
  );

  it("hold choices in their search, which no path is found by", () => {
    expect(pathOf({ page: "requests", search: { key: "a b" } })).toBe("/console/requests?key=a+b");
  });

  it("keep an ID whose encoding is broken", () => {
    expect(placeOf("/console/policies/%E0%A4%A")).toEqual({ page: "policy", id: "%E0%A4%A" });
  });

  it("belong to a section of the menu", () => {
    expect(PLACES.map(sectionOf)).not.toContain(null);
    expect(sectionOf({ page: "nowhere" })).toBeNull();
  });
});
