// The dag: dependencies, states, and the lineage of the selected task.
import { useMemo, useState } from "preact/hooks";
import type { Counts, Dag as Drawing, DagNode, Lineage, View } from "../documents";
import { STATES } from "../documents";
import { many, number } from "../format";
import { lineage as near } from "../lineage";
import { DagCanvas } from "../parts/DagCanvas";
import { Mark } from "../parts/Mark";
import { Scroll } from "../parts/Scroll";
import { Bar } from "../parts/StateBar";
import { Task } from "../parts/Task";
import { useLatest } from "../parts/useLatest";
import { go, route } from "../route";
import { source } from "../session";
import { slug, total } from "../states";

const KEYS = "Drag to move. Zoom with + and −, or with the wheel after a click. Keys: arrows select a node, shift and arrows move the drawing, 0 fits it to the window.";

function Key({ dag, states }: { dag: Drawing; states: boolean }) {
  return (
    <ul class="key">
      {states
        ? STATES.map((state) => (
            <li key={state}>
              <span class={`swatch ${slug[state]}`}>
                <Mark state={state} />
              </span>
              {state}
            </li>
          ))
        : dag.kinds.slice(0, 12).map((kind, at) => (
            <li key={kind}>
              <span class={`kind-swatch kind-${at % 8}`} />
              <bdi>{kind}</bdi>
            </li>
          ))}
    </ul>
  );
}

function Group({ node, counts, close }: { node: DagNode; counts: Counts; close: () => void }) {
  return (
    <div class="group box" role="status">
      <div class="top">
        <h3>
          <bdi>{node.label}</bdi> <span class="quiet">{many(node.count, "task")}</span>
        </h3>
        <button type="button" class="close" aria-label="Close" onClick={close}>
          ✕
        </button>
      </div>
      {total(counts) > 0 && <Bar counts={counts} />}
      <div class="names">
        {node.tasks.map((name) => (
          <Task key={name} name={name} />
        ))}
        {node.count > node.tasks.length && <span class="quiet">and {number(node.count - node.tasks.length)} more</span>}
      </div>
    </div>
  );
}

const LISTED = 200;

function List({ dag, counts, choose }: { dag: Drawing; counts: Counts[]; choose: (node: DagNode) => void }) {
  return (
    <details class="listed">
      <summary>Show as a list</summary>
      <Scroll label="Nodes of the dag">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Kind</th>
              <th scope="col" class="num">Tasks</th>
              <th scope="col">States</th>
            </tr>
          </thead>
          <tbody>
            {dag.nodes.slice(0, LISTED).map((node) => (
              <tr key={node.id}>
                <th scope="row">
                  <button type="button" class="link short" onClick={() => choose(node)}>
                    <bdi>{node.label || node.tasks[0]}</bdi>
                  </button>
                </th>
                <td>{dag.kinds[node.kind] ?? "–"}</td>
                <td class="num">{number(node.count)}</td>
                <td class="rep">{total(counts[node.id] ?? node.counts) > 0 && <Bar small counts={counts[node.id] ?? node.counts} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {dag.nodes.length > LISTED && <p class="quiet">and {number(dag.nodes.length - LISTED)} more</p>}
      </Scroll>
    </details>
  );
}

function describe(dag: Drawing, lineage: Lineage | null): string {
  const chosen = lineage && dag.nodes[lineage.self];
  const drawn = dag.aggregated
    ? `${many(dag.tasks, "task")} drawn as ${many(dag.nodes.length, "group")} of similar tasks.`
    : `${many(dag.tasks, "task")}, ${many(dag.arcs.length, "arc")}; each task is below the tasks it depends on.`;
  if (!lineage || !chosen) return drawn;
  const what = dag.aggregated ? "group" : "task";
  return `${drawn} Selected: ${chosen.label || chosen.tasks[0]}; ${many(lineage.above.length, what)} above, ${many(lineage.below.length, what)} below, ${number(lineage.path.length)} on the longest path through it.`;
}

export function DagBody({ dag, states, view }: { dag: Drawing; states: Counts[] | null; view: View | null }) {
  const [group, setGroup] = useState<DagNode | null>(null);
  const { task } = route.value;
  const { value: found, problem } = useLatest<Lineage | null>(async () => (task ? source.peek()!.lineage(task) : null), `lineage ${route.value.workflow} ${task}`, 0);
  const counts = useMemo(() => (states && states.length === dag.nodes.length ? states : dag.nodes.map((node) => node.counts)), [dag, states]);
  const around = useMemo(() => (group ? near(dag, group.id) : null), [dag, group]);
  const lineage = around ?? (task ? found : null);
  const choose = (node: DagNode | null) => {
    const single = node && node.count === 1 ? node.tasks[0] : undefined;
    setGroup(node && single === undefined ? node : null);
    go({ task: single ?? "" }, true);
  };
  return (
    <div class="dag">
      {task && problem && <p class="message bad">{problem}</p>}
      <DagCanvas dag={dag} counts={counts} lineage={lineage} chosen={choose} label={describe(dag, lineage)} legend={<Key dag={dag} states={view !== null} />}>
        {group && <Group node={group} counts={counts[group.id] ?? {}} close={() => setGroup(null)} />}
      </DagCanvas>
      <p class="quiet" role="status">
        {describe(dag, lineage)}
      </p>
      <p class="quiet hint">{KEYS}</p>
      <List dag={dag} counts={counts} choose={choose} />
    </div>
  );
}

export function Dag({ view }: { view: View }) {
  const { value: dag, problem } = useLatest(() => source.peek()!.dag(), `dag ${view.workflow}`, 0);
  const { value: states } = useLatest(() => source.peek()!.states(), `states ${view.workflow}`, view.now);
  if (!dag) return <p class="empty">{problem || "Drawing the dag …"}</p>;
  return <DagBody dag={dag} states={states} view={view} />;
}
