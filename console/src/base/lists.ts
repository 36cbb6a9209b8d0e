/** Lists that people write into one field. */

/** Names separated by commas, without those that are none. */
export function namesIn(text: string): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
