/** Tables for other programs, by RFC 4180. */

/** A name that a spreadsheet would take for a formula gets an apostrophe in front. */
function cell(text: string): string {
  const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

export function csv(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  return [head, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
