/** Counts for reading. */

const COUNT = new Intl.NumberFormat("en-US");

/** 12,400 */
export function count(of: number): string {
  return COUNT.format(of);
}
