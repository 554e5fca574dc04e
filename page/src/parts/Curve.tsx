// The ready curve: a drawing, its legend with the numbers under the pointer, a sentence, and a table.
import uPlot from "uplot";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Curve as Numbers, LineName } from "../documents";
import { figure, number } from "../format";
import { rows, shown, summary } from "../curve";
import { printing, theme } from "../theme";
import { Box } from "./Box";
import { data, options } from "./chart";

const partly = (curve: Numbers, name: LineName): boolean => (curve.lines[name]?.y.length ?? 0) < curve.steps.length;

function Legend({ curve, at, going }: { curve: Numbers; at: number | null; going: boolean }) {
  return (
    <ul class="lines-legend">
      {shown(curve).map(({ name, words, dash, width, colour }) => (
        <li key={name}>
          <svg width="34" height="10" aria-hidden="true" class={colour}>
            <line x1="1" y1="5" x2="33" y2="5" stroke-width={width} stroke-dasharray={dash.join(" ")} />
          </svg>
          <span>{words}</span>
          <b>
            {at === null
              ? typeof curve.averages[name] === "number" && `mean ${going && partly(curve, name) ? "so far " : ""}${figure(curve.averages[name])}`
              : figure(curve.lines[name]?.y[at])}
          </b>
        </li>
      ))}
      {curve.starved.length > 0 && (
        <li>
          <span class="starved-swatch" aria-hidden="true" />
          <span>idle workers: too few ready tasks</span>
        </li>
      )}
    </ul>
  );
}

/** What the look of the chart depends on, apart from the numbers: when it changes, the chart is rebuilt. */
const shape = (curve: Numbers) => shown(curve).map(({ name }) => `${name}${curve.lines[name]?.least ? "+" : ""}`).join();

function Drawing({ curve, moved }: { curve: Numbers; moved: (at: number | null) => void }) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(curve);
  latest.current = curve;
  const look = `${theme.value} ${printing.value} ${shape(curve)}`;

  useLayoutEffect(() => {
    const box = place.current!;
    const size = () => ({ width: Math.max(200, box.clientWidth), height: box.clientWidth < 500 ? 220 : Math.max(230, Math.min(385, window.innerHeight - 560)) });
    const first = size();
    // The chart reads the curve through a view of the latest one, so that shading follows the run.
    const live = new Proxy({} as Numbers, { get: (_, name) => latest.current[name as keyof Numbers] });
    chart.current = new uPlot(options(live, first.width, first.height, moved), data(latest.current), box);
    const watch = new ResizeObserver(() => {
      if (box.clientWidth !== chart.current?.width) chart.current?.setSize(size());
    });
    watch.observe(box);
    return () => {
      watch.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, [look]);

  useEffect(() => {
    const { current } = chart;
    if (!current) return;
    const [full] = current.data;
    const { min, max } = current.scales.x ?? {};
    const zoomed = full && (min !== full[0] || max !== full[full.length - 1]);
    current.setData(data(curve), !zoomed);
    if (zoomed) current.redraw();
  }, [curve]);

  return <div class="chart" ref={place} role="img" aria-label={summary(curve)} />;
}

export function Curve({ curve, going = false }: { curve: Numbers; going?: boolean }) {
  const [at, setAt] = useState<number | null>(null);
  const step = at === null ? null : curve.steps[at];
  return (
    <Box title="Ready tasks, step by step" kind="curve" beside={<span class="quiet">{step === null || step === undefined ? "more ready tasks keep more workers busy" : `after ${number(step)} steps`}</span>}>
      <Legend curve={curve} at={at} going={going} />
      <Drawing curve={curve} moved={setAt} />
      <p class="quiet">{summary(curve)}</p>
      <details>
        <summary>Show as a table</summary>
        <table class="plain numbers">
          <thead>
            <tr>
              <th scope="col" class="num">
                Steps
              </th>
              {shown(curve).map(({ name, short }) => (
                <th key={name} scope="col" class="num">
                  {short}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows(curve).map((row) => (
              <tr key={row[0]}>
                {row.map((value, place) => (
                  <td key={place} class="num">
                    {value}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </Box>
  );
}
