/** Prices per token are too small to read; per million they are not. */

import { decimalOf, picoOf, shown } from "../../base/money";

const MILLION = 1_000_000n;

/** The price of a million, exact: "0.0000025" is "$2.50". */
export function perMillion(price: string): string {
  return shown(picoOf(price) * MILLION);
}

export function isFree(price: string): boolean {
  return decimalOf(picoOf(price)) === "0";
}
