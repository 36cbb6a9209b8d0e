/** Lists of counts, and those that people write into one field. */

/** The lines of a text, each once, without blank ones. */
export function linesIn(text: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  return [...new Set(lines)].filter((line) => line !== "");
}

/** Names separated by commas, without those that are none. */
export function namesIn(text: string): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

export function total(counts: readonly number[]): number {
  return counts.reduce((sum, each) => sum + each, 0);
}
