// The timeline: which worker ran which task when.
import { useMemo } from "preact/hooks";
import { MARK, type Bar, type Gantt, type View } from "../documents";
import { length, many, number, percent } from "../format";
import { fileName, saveCsv, saveJson } from "../download";
import { Action } from "../parts/Action";
import { GanttCanvas } from "../parts/GanttCanvas";
import { useLatest } from "../parts/useLatest";
import { go, route } from "../route";
import { now, source } from "../session";
import { Served } from "../source";

const COLUMNS = ["task", "attempt", "client", "began", "ended", "answer", "failure", "code", "memory"] as const;

function Downloads({ view }: { view: View }) {
  const from = source.value;
  if (!(from instanceof Served)) return null;
  const take = (end: "csv" | "json") => async () => {
    const all = await from.attempts(() => undefined);
    const name = fileName(view.title, "attempts", end);
    if (end === "csv") saveCsv(name, [...COLUMNS], all.map((one) => COLUMNS.map((column) => one[column])));
    else saveJson(name, all);
    return `${many(all.length, "attempt")} saved.`;
  };
  return (
    <div class="downloads">
      <Action label="Save all attempts as CSV" act={take("csv")} />
      <Action label="as JSON" act={take("json")} />
    </div>
  );
}

function describe(gantt: Gantt): string {
  const busy = typeof gantt.busy === "number" ? `, busy ${percent(gantt.busy, 1)} of the time` : "";
  const merged = gantt.merged ? ` ${number(gantt.merged)} of them are too short to be drawn separately and share a bar (finely hatched).` : "";
  return `${many(gantt.attempts, "attempt")} on ${many(gantt.workers.length, "lane")}${busy}.${merged} A lane is a task that a worker can run at a time.`;
}

const MARKED = [
  ["failed", MARK.failed, "failed"],
  ["again", MARK.lost, "lost with its worker"],
  ["going", MARK.running, "running (open end)"],
] as const;

function Key({ gantt }: { gantt: Gantt }) {
  return (
    <ul class="key">
      {gantt.kinds.slice(0, 8).map((kind, at) => (
        <li key={kind}>
          <span class={`kind-swatch kind-${at % 8}`} aria-hidden="true" />
          <bdi class="short">{kind || "task"}</bdi>
        </li>
      ))}
      {gantt.kinds.length > 8 && <li class="quiet">and {number(gantt.kinds.length - 8)} more kinds</li>}
      {MARKED.map(([name, mark, words]) => gantt.bars.some((bar) => bar[4] === mark) && (
        <li key={name}>
          <span class={`swatch ${name}`} aria-hidden="true" />
          {words}
        </li>
      ))}
      {(gantt.path?.length ?? 0) > 0 && (
        <li>
          <span class="swatch path" aria-hidden="true" />
          critical path: it decided when the run ended
        </li>
      )}
    </ul>
  );
}

function Busy({ gantt }: { gantt: Gantt }) {
  return (
    <details class="listed">
      <summary>Show as a table</summary>
      <table class="plain numbers">
        <thead>
          <tr>
            <th scope="col">Lane</th>
            <th scope="col" class="num">Busy</th>
            <th scope="col" class="num">Attempts shown</th>
            <th scope="col" class="num">Bars with failed or lost attempts</th>
          </tr>
        </thead>
        <tbody>
          {gantt.workers.slice(0, 200).map(({ name, busy }, at) => {
            const mine = gantt.bars.filter((bar) => bar[0] === at);
            return (
              <tr key={name}>
                <th scope="row">
                  <bdi>{name}</bdi>
                </th>
                <td class="num">{percent(busy, 1)}</td>
                <td class="num">{number(mine.reduce((sum, bar) => sum + bar[5], 0))}</td>
                <td class="num">{number(mine.filter((bar) => bar[4] >= MARK.lost).length)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </details>
  );
}

export const ganttKey = (workflow: string, range: [number, number] | null): string => `gantt ${workflow} ${range}`;

/** The part of the timeline that an address names: its begin and end in seconds since 1970. */
function rangeOf(words: string): [number, number] | null {
  const [begin, end] = words.split("-").map(Number);
  return begin && end && begin < end ? [begin, end] : null;
}

/** The timeline with its running bars drawn up to now, and until now if the whole run is shown. */
function upTo(gantt: Gantt, end: number | null, view: View): Gantt {
  if (view.ended !== null || view.state === "stopped") return gantt;
  const bars = gantt.bars.map((bar): Bar => (bar[4] === MARK.running ? [bar[0], bar[1], Math.max(bar[2], now.peek()), bar[3], bar[4], bar[5], bar[6]] : bar));
  return { ...gantt, bars, end: end === null ? gantt.end : Math.max(gantt.end, end) };
}

export function Timeline({ view }: { view: View }) {
  const range = rangeOf(route.value.range);
  const setRange = (wanted: [number, number] | null) => go({ range: wanted ? wanted.map((time) => time.toFixed(3)).join("-") : "" }, true);
  const key = ganttKey(view.workflow, range);
  const { value: fetched, problem } = useLatest(() => source.peek()!.gantt(...(range ?? [])), key, view.now, 4000);
  const gantt = useMemo(() => fetched && upTo(fetched, range ? null : Math.floor(now.value), view), [fetched, route.value.range, Math.floor(now.value)]);
  if (!gantt) return <p class="empty">{problem || "Drawing the timeline …"}</p>;
  const until = view.ended ?? view.now;
  const closer = (begin: number, end: number) => {
    const [from, to] = [Math.max(begin, view.began), Math.min(end, Math.max(until, view.began + 1))];
    if (to - from > 1e-3) setRange(from <= view.began && to >= until ? null : [from, to]);
  };
  return (
    <div class="timeline">
      <div class="top controls">
        <Key gantt={gantt} />
        <Downloads view={view} />
      </div>
      {problem && <p class="message bad">{problem}</p>}
      <div class="top controls">
        <p class="quiet">
          {range ? `From ${length(range[0] - view.began)} to ${length(range[1] - view.began)} of the run` : "The whole run"}
          <span class="hint">; drag to zoom, click a bar to open its task. Keys: + − and arrows, 0 shows the whole run.</span>
        </p>
        {range && (
          <button type="button" onClick={() => setRange(null)}>
            Show the whole run
          </button>
        )}
      </div>
      <GanttCanvas gantt={gantt} began={view.began} label={describe(gantt)} zoomed={closer} whole={() => setRange(null)} chosen={(task) => go({ task })} />
      <p class="quiet">{describe(gantt)}</p>
      <Busy gantt={gantt} />
    </div>
  );
}
