// The panel for one task: the reason for its place in the order, its dependencies, and its output.
import { useEffect, useRef } from "preact/hooks";
import type { Attempt, Detail, State, View } from "../documents";
import { bytes, clock, failureWords, length, many, number } from "../format";
import { Action } from "../parts/Action";
import { release, retry } from "../parts/actions";
import { StateName } from "../parts/Mark";
import { Log, Task } from "../parts/Task";
import { useLatest } from "../parts/useLatest";
import { go, href, route } from "../route";
import { now, source } from "../session";

function Names({ title, names, total }: { title: string; names: [string, State | ""][]; total: number }) {
  if (!total) return null;
  return (
    <details open={total <= 8}>
      <summary>
        {title} <span class="quiet">{number(total)}</span>
      </summary>
      <ul class="tasks">
        {names.map(([name, state]) => (
          <li key={name}>
            <Task name={name} />
            {state && <StateName state={state} />}
          </li>
        ))}
        {total > names.length && <li class="quiet">and {number(total - names.length)} more</li>}
      </ul>
    </details>
  );
}

function Path({ path }: { path: Detail["path"] }) {
  if (!path?.tasks.length) return null;
  return (
    <details>
      <summary>
        Longest path through it <span class="quiet">{many(path.total, "task")}{path.seconds === null ? "" : `, ${length(path.seconds)}`}</span>
      </summary>
      <ol class="tasks">
        {path.tasks.map((name) => (
          <li key={name}>
            <Task name={name} />
          </li>
        ))}
        {path.total > path.tasks.length && <li class="quiet">and {number(path.total - path.tasks.length)} more</li>}
      </ol>
    </details>
  );
}

function Tries({ attempts }: { attempts: Attempt[] }) {
  if (!attempts.length) return null;
  return (
    <>
      <h3>Attempts</h3>
      <ul class="attempts">
        {attempts.map((one) => (
          <li key={one.attempt}>
            <b>{one.attempt}.</b> on <bdi>{one.client || "?"}</bdi>, {clock(one.began, now.value || undefined)}
            {one.began !== null && one.ended !== null && `, ${length(one.ended - one.began)}`}
            {one.memory ? `, ${bytes(one.memory)}` : ""}: <bdi>{one.failure ? failureWords(one.failure) : one.answer}</bdi>
            {one.code && !one.failure?.includes(String(one.code)) ? ` (${failureWords(`exit code ${one.code}`)})` : ""}
          </li>
        ))}
      </ul>
    </>
  );
}

function Files({ title, files }: { title: string; files: string[] }) {
  if (!files.length) return null;
  return (
    <details>
      <summary>
        {title} <span class="quiet">{number(files.length)}</span>
      </summary>
      <ul class="files">
        {files.map((file) => (
          <li key={file}>
            <bdi>{file}</bdi>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Known({ detail, view }: { detail: Detail; view: View | null }) {
  const failed = detail.state === "failed";
  return (
    <>
      <p class="line">
        {detail.state && <StateName state={detail.state} />}
        {detail.kind && <span class="tag">{detail.kind}</span>}
        {detail.place !== null && <span class="quiet">position {number(detail.place)} in the order</span>}
      </p>
      {failed && view?.can.retry && <Action label="Retry" act={() => retry(view.workflow, [detail.task])} />}
      {detail.state === "running" && view?.can.release && <Action label="Reassign to another client" act={() => release(view.workflow, [detail.task])} />}
      {detail.why.length > 0 && (
        <>
          <h3>Reason for its place</h3>
          {detail.why.map((words) => (
            <p key={words}>{words}</p>
          ))}
        </>
      )}
      <Tries attempts={detail.attempts} />
      {(detail.log.length > 0 || failed) && (
        <>
          <h3>Last lines printed</h3>
          <Log lines={detail.log} label="Last lines printed" />
        </>
      )}
      {detail.command && (
        <>
          <h3>Command</h3>
          <Log lines={[detail.command]} label="Command" />
        </>
      )}
      {detail.above !== null && (
        <>
          <h3>Lineage</h3>
          <p>
            It depends on {many(detail.above, "task")}; {many(detail.below ?? 0, "task")} {detail.below === 1 ? "depends" : "depend"} on it.
          </p>
        </>
      )}
      <Names title="Depends on" names={detail.parents} total={detail.parents_total} />
      <Names title="Required by" names={detail.children} total={detail.children_total} />
      <Path path={detail.path} />
      <Files title="Inputs" files={detail.inputs} />
      <Files title="Outputs" files={detail.outputs} />
    </>
  );
}

export function TaskPanel({ task, view }: { task: string; view: View | null }) {
  const { value: detail, problem } = useLatest(() => source.peek()!.detail(task), `task ${view?.workflow} ${task}`, view?.now ?? 0, 3000);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    // The focus stays in a drawing that is used with the keyboard, except on a narrow page, where the panel covers the drawing.
    const walking = before instanceof HTMLCanvasElement && window.innerWidth > 900;
    if (!walking) heading.current?.focus({ preventScroll: true });
    const press = (event: KeyboardEvent) => event.key === "Escape" && !document.querySelector("dialog[open]") && go({ task: "" });
    document.addEventListener("keydown", press);
    return () => {
      document.removeEventListener("keydown", press);
      if (!walking) before?.focus?.({ preventScroll: true });
    };
  }, []);
  return (
    <aside class="panel" aria-label="Task">
      <div class="top">
        <h2 ref={heading} tabIndex={-1}>
          <bdi>{task}</bdi>
        </h2>
        <a class="close" href={href({ task: "" })} aria-label="Close">
          ✕
        </a>
      </div>
      {problem && <p class="message bad">{problem}</p>}
      {detail && <Known detail={detail} view={view} />}
      {route.value.section !== "dag" && (
        <p>
          <a href={href({ section: "dag", task })}>Show in the dag</a>
        </p>
      )}
    </aside>
  );
}
