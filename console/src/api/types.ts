/** Shapes of the API by the names that the console uses. */

import type { components } from "./schema";

type Schemas = components["schemas"];

export type CostBucket = Schemas["CostBucket"];
export type CreditEntry = Schemas["CreditEntry"];
export type Credits = Schemas["Credits"];
export type Project = Schemas["Project"];
export type SpendingLimit = Schemas["SpendingLimit"];
export type UsageBucket = Schemas["UsageBucket"];
