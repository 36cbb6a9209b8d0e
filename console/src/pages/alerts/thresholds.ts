/** What a subscription is told about, in words, and as it is typed. */

import type { AlertSubscription, SetAlertSubscription } from "../../api/types";
import { picoOf, shown, typed } from "../../base/money";

export interface TypedThresholds {
  readonly caps: string;
  readonly credits: string;
  readonly below: string;
  readonly matches: string;
  readonly unsettled: string;
}

export const NOTHING_TYPED: TypedThresholds = {
  caps: "80, 95",
  credits: "",
  below: "",
  matches: "",
  unsettled: "",
};

/** Return the thresholds of a subscription as they are typed. */
export function typedOf(subscription: AlertSubscription): TypedThresholds {
  return {
    caps: subscription.cap_percents.join(", "),
    credits: subscription.credit_percents.join(", "),
    below: subscription.credit_below?.value ?? "",
    matches: String(subscription.policy_matches_per_hour ?? ""),
    unsettled: String(subscription.unsettled_requests ?? ""),
  };
}

/** Return the percents of a list such as "50, 80", or null if it is not one. */
export function percentsOf(text: string): number[] | null {
  const parts = text.split(",").map((part) => part.trim());
  if (text.trim() === "") return [];
  return parts.every((part) => /^([1-9]\d?|100)$/.test(part)) ? parts.map(Number) : null;
}

function countOf(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  return /^[1-9]\d{0,4}$/.test(text.trim()) ? Number(text) : undefined;
}

/** Return the thresholds of a form, or null if one is wrong or none is there. */
export function thresholdsOf(form: TypedThresholds): Partial<SetAlertSubscription> | null {
  const cap_percents = percentsOf(form.caps);
  const credit_percents = percentsOf(form.credits);
  const below = form.below.trim() === "" ? undefined : typed(form.below);
  const policy_matches_per_hour = countOf(form.matches);
  const unsettled_requests = countOf(form.unsettled);
  if (cap_percents === null || credit_percents === null || below === null) return null;
  if (policy_matches_per_hour === undefined || unsettled_requests === undefined) return null;
  const chosen = {
    cap_percents,
    credit_percents,
    policy_matches_per_hour,
    unsettled_requests,
    ...(below === undefined ? {} : { credit_below: { value: below, currency: "usd" as const } }),
  };
  const isAny =
    cap_percents.length + credit_percents.length > 0 ||
    below !== undefined ||
    policy_matches_per_hour !== null ||
    unsettled_requests !== null;
  return isAny ? chosen : null;
}

/** Return whether something was typed into a field that no threshold can be. */
export function isWrong(name: keyof TypedThresholds, value: string): boolean {
  const alone = { ...NOTHING_TYPED, caps: "", [name]: value };
  return value.trim() !== "" && thresholdsOf(alone) === null;
}

/** Say what a subscription is told about, one phrase for each threshold. */
export function phrasesOf(subscription: AlertSubscription): string[] {
  const percents = (list: readonly number[]) => list.map((percent) => `${percent} %`).join(", ");
  const { cap_percents, credit_percents, credit_below } = subscription;
  const { policy_matches_per_hour: matches, unsettled_requests: unsettled } = subscription;
  return [
    ...(cap_percents.length > 0 ? [`caps at ${percents(cap_percents)}`] : []),
    ...(credit_percents.length > 0 ? [`credit at ${percents(credit_percents)}`] : []),
    ...(credit_below ? [`credit at or below ${shown(picoOf(credit_below.value))}`] : []),
    ...(matches ? [`${matches} matches of a policy in an hour`] : []),
    ...(unsettled ? [`${unsettled} requests without a final cost`] : []),
    ...(subscription.backend_down ? ["backends that are down"] : []),
  ];
}
