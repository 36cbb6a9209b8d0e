import { describe, expect, it } from "vitest";
import { hasAll, known, PERMISSIONS, permissionsOf } from "./permissions";

describe("permissions of Admin keys", () => {
  it("are none until somebody chooses them", () => {
    expect(permissionsOf("none")).toEqual([]);
  });

  it("that only read change nothing", () => {
    expect(permissionsOf("reading").length).toBeGreaterThan(5);
    expect(permissionsOf("reading").filter((one) => !one.endsWith(":read"))).toEqual([]);
  });

  it("are all only where none is missing", () => {
    expect(hasAll(permissionsOf("all"))).toBe(true);
    expect(hasAll([...PERMISSIONS, "later:read"])).toBe(true);
    expect(hasAll(PERMISSIONS.slice(1))).toBe(false);
  });

  it("of a key leave out those that the console does not know", () => {
    expect(known(["later:read", "audit:read", "projects:read"])).toEqual([
      "projects:read",
      "audit:read",
    ]);
  });
});
