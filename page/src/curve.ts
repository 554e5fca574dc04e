// The curve of ready tasks as numbers and in words.
import type { Curve, LineName } from "./documents";
import { figure, many, number } from "./format";

export interface Kind {
  name: LineName;
  words: string;
  short: string;
  colour: string;
  width: number;
  dash: number[];
}

export const KINDS: Kind[] = [
  { name: "seen", words: "in this run", short: "in this run", colour: "line-seen", width: 2.5, dash: [] },
  { name: "plan", words: "planned by eligo", short: "planned", colour: "line-plan", width: 2, dash: [8, 4] },
  { name: "bound", words: "bound: no order does better", short: "bound", colour: "line-bound", width: 1.5, dash: [2, 3] },
  { name: "fifo", words: "first come, first served", short: "first come, first served", colour: "line-fifo", width: 2, dash: [10, 3, 2, 3] },
];

export const shown = (curve: Curve): Kind[] => KINDS.filter(({ name }) => curve.lines[name]?.y.length);

/** One entry for each step; null for steps that a line has not reached yet. */
export function padded(values: number[] | null | undefined, steps: number): (number | null)[] {
  return Array.from({ length: steps }, (_, at) => values?.[at] ?? null);
}

/** A description of the drawing, for screen readers. */
export function summary(curve: Curve): string {
  const said = shown(curve)
    .filter(({ name }) => typeof curve.averages[name] === "number")
    .map(({ name, short }) => `${figure(curve.averages[name])} ${short}`);
  const parts = said.length ? [`Ready tasks on average: ${said.join(", ")}.`] : [];
  if (curve.lines.seen) {
    const stretches = curve.starved.length;
    parts.push(stretches ? `Workers were idle in ${many(stretches, "period", "periods")} (shaded): too few tasks were ready.` : "Workers always had ready tasks.");
  }
  if (curve.sampled) parts.push("Each point covers several steps; the band shows their minimum and maximum.");
  if (curve.remark) parts.push(curve.remark);
  return parts.join(" ");
}

/** About twenty rows of the same numbers. */
export function rows(curve: Curve): (string | number)[][] {
  const size = curve.steps.length;
  const wanted = Math.min(size, 21);
  const places = Array.from({ length: wanted }, (_, at) => Math.round((at * (size - 1)) / Math.max(1, wanted - 1)));
  return places.map((at) => [
    number(curve.steps[at]),
    ...shown(curve).map(({ name }) => {
      const value = curve.lines[name]?.y[at];
      return value === undefined ? "–" : figure(value);
    }),
  ]);
}
