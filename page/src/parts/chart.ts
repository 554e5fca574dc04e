// The ready curve drawn with uPlot.
import uPlot from "uplot";
import type { Curve } from "../documents";
import { number } from "../format";
import { padded, shown } from "../curve";
import { colour } from "../theme";
import { hatch } from "./pen";

/** Steps of the axis, in whole tasks. */
const WHOLE = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

function shade(chart: uPlot, curve: Curve): void {
  const { ctx, bbox } = chart;
  ctx.save();
  for (const [begin, end] of curve.starved) {
    const left = chart.valToPos(begin, "x", true);
    const right = Math.max(left + 2, chart.valToPos(end, "x", true));
    const from = Math.max(bbox.left, left);
    const wide = Math.min(bbox.left + bbox.width, right) - from;
    if (wide <= 0) continue;
    ctx.fillStyle = colour("starved");
    ctx.fillRect(from, bbox.top, wide, bbox.height);
    ctx.fillStyle = hatch(ctx, colour("starved-line"));
    ctx.fillRect(from, bbox.top, wide, bbox.height);
  }
  ctx.restore();
}

function series(curve: Curve): { series: uPlot.Series[]; bands: uPlot.Band[]; data: uPlot.AlignedData } {
  const size = curve.steps.length;
  const all: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  const data: (number | null)[][] = [curve.steps];
  // The line that matters most is drawn last, over the others.
  for (const kind of [...shown(curve)].reverse()) {
    const line = curve.lines[kind.name]!;
    const ink = colour(kind.colour);
    if (line.least && line.most) {
      for (const side of [line.most, line.least]) {
        all.push({ stroke: "transparent", width: 0, points: { show: false } });
        data.push(padded(side, size));
      }
      bands.push({ series: [all.length - 2, all.length - 1], fill: `${ink}22` });
    }
    all.push({ label: kind.words, stroke: ink, width: kind.width, dash: kind.dash, points: { show: false } });
    data.push(padded(line.y, size));
  }
  return { series: all, bands, data: data as uPlot.AlignedData };
}

export function options(curve: Curve, width: number, height: number, moved: (at: number | null) => void): uPlot.Options {
  const ink = colour("ink-2");
  const grid = { stroke: colour("grid"), width: 1 };
  const font = "12px system-ui, sans-serif";
  const axis = { stroke: ink, grid, ticks: { ...grid, size: 5 }, font, labelFont: font, labelSize: 18 };
  const parts = series(curve);
  return {
    width,
    height,
    series: parts.series,
    bands: parts.bands,
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false }, points: { show: false } },
    scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.06)] } },
    axes: [
      { ...axis, label: "steps taken", size: 32, values: (_, values) => values.map((value) => number(value)) },
      { ...axis, incrs: WHOLE, label: "ready tasks", size: 46, values: (_, values) => values.map((value) => number(value)) },
    ],
    hooks: {
      drawClear: [(chart) => shade(chart, curve)],
      setCursor: [(chart) => moved(chart.cursor.idx ?? null)],
    },
  };
}

export const data = (curve: Curve): uPlot.AlignedData => series(curve).data;
