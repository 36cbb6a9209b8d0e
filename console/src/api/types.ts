/** Shapes of the API by the names that the console uses. */

import type { components } from "./schema";

type Schemas = components["schemas"];

export type AdminKey = Schemas["AdminKey"];
export type AdminPermission = Schemas["NarrowAdminKey"]["permissions"][number];
export type AlertDelivery = Schemas["AlertDelivery"];
export type AlertSubscription = Schemas["AlertSubscription"];
export type AuditChange = Schemas["AuditChange"];
export type AuditEntry = Schemas["AuditEntry"];
export type CostBucket = Schemas["CostBucket"];
export type CreateAdminKey = Schemas["CreateAdminKey"];
export type CreateManagedProjectKey = Schemas["CreateManagedProjectKey"];
export type CreatePolicy = Schemas["CreatePolicy"];
export type TryUnsavedRule = Schemas["TryUnsavedRule"];
export type CreditEntry = Schemas["CreditEntry"];
export type Credits = Schemas["Credits"];
export type EditManagedPolicy = Schemas["EditManagedPolicy"];
export type EffectivePolicy = Schemas["EffectivePolicy"];
/** As the routes under `/v1` show it, without what only the management extension has. */
export type GivenPolicy = Schemas["Policy"];
export type Model = Schemas["Model"];
export type Organization = Schemas["Organization"];
export type Policy = Schemas["ManagedPolicy"];
export type PolicyDecision = Schemas["PolicyDecision"];
export type PolicyDraft = Schemas["ManagedPolicyDraft"];
export type PolicyRemark = Schemas["PolicyRemark"];
export type PolicyRollup = Schemas["PolicyRollup"];
export type PolicyState = Policy["state"];
export type PolicyVerdict = Schemas["PolicyVerdict"];
export type Project = Schemas["Project"];
export type ProjectKey = Schemas["ManagedProjectKey"];
export type PublishedPolicy = Schemas["ManagedPublishedPolicy"];
export type RateLimit = Schemas["RateLimit"];
export type RequestDetails = Schemas["RequestDetails"];
export type RequestRecord = Schemas["RequestRecord"];
export type RequestRollupBucket = Schemas["RequestRollupBucket"];
export type SetAlertSubscription = Schemas["SetAlertSubscription"];
export type SpendingLimit = Schemas["SpendingLimit"];
export type UsageBucket = Schemas["UsageBucket"];
