/** The shape of the last days beside a figure that says it in words. */

const WIDTH = 100;
const HEIGHT = 28;

interface SparklineProperties {
  readonly heights: readonly number[];
  readonly isBad?: boolean;
}

export function Sparkline({ heights, isBad = false }: SparklineProperties) {
  const line = outline(heights);
  if (line === "") return null;
  return (
    <svg
      className={isBad ? "spark spark-bad" : "spark"}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={`${line}V${HEIGHT}H0Z`} fill="currentColor" opacity="0.12" />
      <path d={line} fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinejoin="round" />
    </svg>
  );
}

/** An SVG path from the left edge to the right one; empty for fewer than two points. */
export function outline(heights: readonly number[]): string {
  if (heights.length < 2) return "";
  const top = Math.max(...heights, 0);
  const bottom = Math.min(...heights, 0);
  const span = top - bottom || 1;
  return heights
    .map((value, index) => {
      const x = (index / (heights.length - 1)) * WIDTH;
      const y = HEIGHT - ((value - bottom) / span) * HEIGHT;
      return `${index === 0 ? "M" : "L"}${x.toFixed(2)} ${y.toFixed(2)}`;
    })
    .join("");
}
