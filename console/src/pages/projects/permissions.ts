/** What a project key may do. */

export const PERMISSIONS = ["inference:write", "models:read"] as const;

export type Permission = (typeof PERMISSIONS)[number];

export const MEANINGS: Readonly<Record<Permission, string>> = {
  "inference:write": "call models",
  "models:read": "list models",
};
