/** Scores by the hundredth, each bar on its side of a threshold. */

import { count } from "../../base/counts";
import { BINS, heights, sideOf } from "./scores";
import { inPercent } from "./words";

const HEIGHT = 100;
const GAP = 0.15;
/** What a single score is seen by, however many there are of others. */
const BAR_MIN = 1.5;

interface HistogramProperties {
  readonly scoreCounts: readonly number[];
  readonly threshold: number;
  readonly published: number;
}

export function Histogram({ scoreCounts, threshold, published }: HistogramProperties) {
  const scored = scoreCounts.reduce((sum, each) => sum + each, 0);
  return (
    <svg
      className="histogram"
      viewBox={`0 0 ${BINS} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${count(scored)} scores in steps of 1 %, from 0 % to 100 %`}
    >
      {heights(scoreCounts).map((share, bin) => (
        <Bar
          // biome-ignore lint/suspicious/noArrayIndexKey: a bar is known by its place.
          key={bin}
          bin={bin}
          height={share === 0 ? 0 : Math.max(share * HEIGHT, BAR_MIN)}
          threshold={threshold}
        >
          {`${inPercent(bin * 100)} to ${inPercent((bin + 1) * 100)}: ${count(scoreCounts[bin] ?? 0)}`}
        </Bar>
      ))}
      <line className="published-mark" x1={published / 100} x2={published / 100} y2={HEIGHT} />
      <line className="threshold-mark" x1={threshold / 100} x2={threshold / 100} y2={HEIGHT} />
    </svg>
  );
}

interface BarProperties {
  readonly bin: number;
  readonly height: number;
  readonly threshold: number;
  /** Its title: what somebody reads who points at it. */
  readonly children: string;
}

function Bar({ bin, height, threshold, children }: BarProperties) {
  return (
    <g>
      <title>{children}</title>
      <rect className="bar-reach" x={bin} width={1} height={HEIGHT} />
      <rect
        className={`bar-${sideOf(bin, threshold)}`}
        x={bin + GAP / 2}
        y={HEIGHT - height}
        width={1 - GAP}
        height={height}
      />
    </g>
  );
}
