// The layout of the timeline, and the time and bar at a point.
import type { Bar, Gantt } from "./documents";

export interface Layout {
  width: number;
  left: number;
  top: number;
  row: number;
  height: number;
  begin: number;
  end: number;
}

/** Browsers draw nothing on a canvas that is much taller than this. */
const TALLEST = 9000;

export function layout(gantt: Gantt, width: number): Layout {
  const workers = Math.max(1, gantt.workers.length);
  const tall = workers <= 6 ? 40 : workers <= 12 ? 30 : workers <= 40 ? 20 : workers <= 120 ? 12 : 6;
  const row = Math.min(tall, TALLEST / workers);
  const left = width < 500 ? 72 : 130;
  const end = gantt.end > gantt.begin ? gantt.end : gantt.begin + 1;
  return { width, left, top: 26, row, height: 26 + workers * row + 6, begin: gantt.begin, end };
}

export const across = (at: Layout, time: number): number => at.left + ((time - at.begin) / (at.end - at.begin)) * (at.width - at.left - 8);

export const timeAt = (at: Layout, x: number): number => at.begin + ((x - at.left) / (at.width - at.left - 8)) * (at.end - at.begin);

/** The bar at a point; a bar thinner than a pixel matches from a small distance. */
export function barAt(gantt: Gantt, at: Layout, x: number, y: number): Bar | null {
  const worker = Math.floor((y - at.top) / at.row);
  let best: Bar | null = null;
  let least = 4;
  for (const bar of gantt.bars) {
    if (bar[0] !== worker) continue;
    const [from, to] = [across(at, bar[1]), across(at, bar[2])];
    const gap = x < from ? from - x : x > to ? x - to : 0;
    if (gap < least) [best, least] = [bar, gap];
    if (gap === 0) return bar;
  }
  return best;
}

const STEPS = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];

/** Marks of the time axis, in seconds since the run started, about one for every 90 pixels. */
export function marks(at: Layout, began: number): number[] {
  const wanted = ((at.end - at.begin) / Math.max(1, at.width - at.left)) * 90;
  const step = STEPS.find((one) => one >= wanted) ?? Math.ceil(wanted / 604800) * 604800;
  const found: number[] = [];
  for (let time = Math.ceil((at.begin - began) / step - 1e-9) * step; time <= at.end - began + 1e-9 && found.length < 200; time += step) found.push(time || 0);
  return found;
}
