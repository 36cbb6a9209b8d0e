/** The permissions of Admin keys in words, and the sets that a new key usually gets. */

import type { AdminPermission } from "../../api/types";

/** Every permission of an Admin key; one that is missing here does not compile. */
export const MEANINGS: Readonly<Record<AdminPermission, string>> = {
  "projects:read": "read projects, models and the organization",
  "projects:create": "create, change and archive projects",
  "project_api_keys:read": "read project keys",
  "project_api_keys:create": "create and rotate project keys",
  "project_api_keys:revoke": "suspend, resume and revoke project keys",
  "policies:read": "read policies and their decisions",
  "policies:write": "write, test, publish and pause policies",
  "billing:read": "read credit, costs and usage",
  "billing:write": "make test payments in a sandbox",
  "spending_limits:read": "read spending caps",
  "spending_limits:write": "set and remove spending caps",
  "rate_limits:read": "read rate limits",
  "rate_limits:write": "set and remove rate limits",
  "activity:read": "read the records of requests",
  "audit:read": "read the audit log",
  "alerts:read": "read alerts and who receives them",
  "alerts:write": "choose who receives which alerts",
  "admin_api_keys:read": "read Admin keys",
  "admin_api_keys:create": "create Admin keys with at most its own permissions",
  "admin_api_keys:revoke": "reduce and revoke every Admin key",
};

export const PERMISSIONS = Object.keys(MEANINGS) as readonly AdminPermission[];

export const PRESETS = [
  { value: "none", title: "No permission: choose each" },
  { value: "costs", title: "Read costs and credit" },
  { value: "reading", title: "Read everything" },
  { value: "all", title: "All permissions, also future ones" },
] as const;

export type Preset = (typeof PRESETS)[number]["value"];

/** Return the permissions of a preset. */
export function permissionsOf(preset: Preset): readonly AdminPermission[] {
  switch (preset) {
    case "none":
      return [];
    case "costs":
      return ["billing:read", "spending_limits:read"];
    case "reading":
      return PERMISSIONS.filter((permission) => permission.endsWith(":read"));
    case "all":
      return PERMISSIONS;
  }
}

/** Return whether a key has every permission that this version of the console knows. */
export function hasAll(held: readonly string[]): boolean {
  return PERMISSIONS.every((permission) => held.includes(permission));
}

/** Return the permissions of a key that the console knows, in the order of the console. */
export function known(held: readonly string[]): readonly AdminPermission[] {
  return PERMISSIONS.filter((permission) => held.includes(permission));
}
