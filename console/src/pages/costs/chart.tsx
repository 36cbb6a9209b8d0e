/** Daily costs, stacked. Loaded only where it is seen: it outweighs the rest of the console. */

import { BarChart } from "echarts/charts";
import { GridComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { useEffect, useRef } from "react";
import { type Instant, longDay, shortDay } from "../../base/days";
import { height, shown, sum } from "../../base/money";
import { colour, seriesName, useDarkness } from "../../ui/colours";
import type { Group } from "./breakdown";

echarts.use([BarChart, GridComponent, TooltipComponent, CanvasRenderer]);

const DOLLARS = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

interface ChartProperties {
  readonly days: readonly Instant[];
  readonly groups: readonly Group[];
  readonly label: string;
}

export default function Chart({ days, groups, label }: ChartProperties) {
  const place = useRef<HTMLDivElement>(null);
  const isDark = useDarkness();
  useEffect(() => {
    if (place.current === null) return;
    const chart = echarts.init(place.current, isDark ? "dark" : null);
    chart.setOption(optionsFor(days, groups));
    const watcher = new ResizeObserver(() => chart.resize());
    watcher.observe(place.current);
    return () => {
      watcher.disconnect();
      chart.dispose();
    };
  }, [days, groups, isDark]);
  return <div ref={place} className="chart" role="img" aria-label={label} />;
}

function optionsFor(days: readonly Instant[], groups: readonly Group[]) {
  const quiet = colour("quiet");
  return {
    animation: false,
    backgroundColor: "transparent",
    grid: { left: 4, right: 16, top: 12, bottom: 4, containLabel: true },
    tooltip: {
      trigger: "axis",
      axisPointer: { type: "shadow" },
      confine: true,
      backgroundColor: colour("surface"),
      borderColor: colour("line"),
      formatter: (points: unknown) => reading(days, groups, points),
    },
    xAxis: {
      type: "category",
      data: days.map(shortDay),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: colour("line") } },
      axisLabel: { color: quiet, hideOverlap: true },
    },
    yAxis: {
      type: "value",
      splitLine: { lineStyle: { color: colour("line") } },
      axisLabel: { color: quiet, formatter: (value: number) => `$${DOLLARS.format(value)}` },
    },
    series: groups.map(({ name, amounts }, index) => ({
      type: "bar",
      stack: "costs",
      name,
      data: amounts.map(height),
      itemStyle: { color: colour(seriesName(index)) },
      barMaxWidth: 32,
    })),
  };
}

/** One day in words. Elements, not markup: a name is never read as HTML. */
function reading(days: readonly Instant[], groups: readonly Group[], points: unknown): HTMLElement {
  const index = indexOf(points);
  const box = element("div", "reading");
  box.append(element("strong", "", longDay(days[index] ?? 0)));
  groups.forEach(({ name, detail, amounts }, place) => {
    const amount = amounts[index] ?? 0n;
    if (amount === 0n) return;
    const line = element("div", "reading-line");
    line.append(
      element("span", `swatch ${seriesName(place)}`),
      element("span", "", detail === "" ? name : `${detail}: ${name}`),
      element("span", "number", shown(amount)),
    );
    box.append(line);
  });
  const total = sum(groups.map(({ amounts }) => amounts[index] ?? 0n));
  const line = element("div", "reading-line reading-total");
  line.append(
    element("span", ""),
    element("span", "", "Total"),
    element("span", "number", shown(total)),
  );
  box.append(line);
  return box;
}

function indexOf(points: unknown): number {
  const first: unknown = Array.isArray(points) ? points[0] : points;
  if (typeof first !== "object" || first === null || !("dataIndex" in first)) return 0;
  return Number(first.dataIndex);
}

function element(tag: string, className: string, text = ""): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}
