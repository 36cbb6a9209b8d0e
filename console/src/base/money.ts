/** Money is a whole number of pico-dollars, as in the ledger. No float touches it but to draw. */

export type PicoUsd = bigint;

const DECIMALS = 12;
const UNIT = 10n ** BigInt(DECIMALS);
const AMOUNT = /^(-?)(\d+)(?:\.(\d{1,12}))?$/;
const SMALL_DIGITS_SHOWN = 3;

/** Read an amount as the API writes it; anything else is a fault of the program. */
export function picoOf(value: string): PicoUsd {
  const parts = AMOUNT.exec(value);
  if (parts === null) throw new RangeError(`not an amount: ${value}`);
  const [, sign, whole = "0", fraction = ""] = parts;
  const pico = BigInt(whole) * UNIT + BigInt(fraction.padEnd(DECIMALS, "0"));
  return sign === "-" ? -pico : pico;
}

/** The amount as the API takes it: exact, without exponent or trailing zeros. */
export function decimalOf(pico: PicoUsd): string {
  const size = pico < 0n ? -pico : pico;
  const fraction = (size % UNIT).toString().padStart(DECIMALS, "0").replace(/0+$/, "");
  const whole = (size / UNIT).toString();
  return (pico < 0n ? "-" : "") + whole + (fraction === "" ? "" : `.${fraction}`);
}

export function sum(amounts: Iterable<PicoUsd>): PicoUsd {
  let total = 0n;
  for (const amount of amounts) total += amount;
  return total;
}

/** For reading: cents, or the first three digits of what is less than a cent. */
export function shown(pico: PicoUsd): string {
  const size = pico < 0n ? -pico : pico;
  const digits = (decimalOf(size).split(".")[1] ?? "").padEnd(DECIMALS, "0");
  const isBelowCent = size > 0n && size < UNIT / 100n;
  const places = isBelowCent ? digits.search(/[1-9]/) + SMALL_DIGITS_SHOWN : 2;
  const text = rounded(size, Math.min(places, DECIMALS));
  return `${pico < 0n ? "−" : ""}$${isBelowCent ? text.replace(/0+$/, "") : text}`;
}

function rounded(size: PicoUsd, places: number): string {
  const step = 10n ** BigInt(DECIMALS - places);
  const steps = (size + step / 2n) / step;
  const fraction = (steps % 10n ** BigInt(places)).toString().padStart(places, "0");
  return `${grouped((steps / 10n ** BigInt(places)).toString())}.${fraction}`;
}

function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Which part of the whole it is, between 0 and 1: the length of a bar. */
export function share(part: PicoUsd, whole: PicoUsd): number {
  if (part <= 0n) return 0;
  if (part >= whole) return 1;
  return Number((part * 10_000n) / whole) / 10_000;
}

/** The height of a point. What is read beside it is written by `shown`. */
export function height(pico: PicoUsd): number {
  return Number(pico) / Number(UNIT);
}

/** What a person typed, as the API takes it; null if it is no amount. */
export function typed(text: string): string | null {
  const plain = text
    .trim()
    .replace(/^\$\s*/, "")
    .replaceAll(",", "");
  if (!/^\d{1,12}(\.\d{1,12})?$/.test(plain)) return null;
  return decimalOf(picoOf(plain));
}
