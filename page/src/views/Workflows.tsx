// All workflows of a server: those that are running, and those that have ended.
import type { WorkflowLine } from "../documents";
import { clock, number, percent } from "../format";
import { Scroll } from "../parts/Scroll";
import { Bar } from "../parts/StateBar";
import { href } from "../route";
import { problem, workflows } from "../session";
import { count, runWords } from "../states";

const ENDED = ["done", "failed", "cancelled"];

function Row({ flow }: { flow: WorkflowLine }) {
  return (
    <tr>
      <th scope="row">
        <a class="task" href={href({ workflow: flow.workflow, section: "overview", task: "", search: "", state: "" })}>
          <bdi>{flow.name || flow.workflow}</bdi>
        </a>
        <span class="quiet id">{flow.workflow}</span>
      </th>
      <td>{runWords[flow.state] ?? flow.state}</td>
      <td class="rep wide">
        <Bar counts={flow.counts} small />
      </td>
      <td class="num">{percent(count(flow.counts, "done"), flow.tasks)}</td>
      <td class="num wide">{number(flow.tasks)}</td>
      <td class="num">{number(count(flow.counts, "failed"))}</td>
      <td class="wide">{flow.owner}</td>
      <td class="wide">{flow.policy}</td>
      <td class="num wide">{clock(flow.made, Date.now() / 1000)}</td>
    </tr>
  );
}

function List({ title, flows }: { title: string; flows: WorkflowLine[] }) {
  if (!flows.length) return null;
  return (
    <section class="box">
      <h2>{title}</h2>
      <Scroll label={title}>
        <table class="plain flows">
          <thead>
            <tr>
              <th scope="col">Workflow</th>
              <th scope="col">State</th>
              <th scope="col" class="wide">Tasks by state</th>
              <th scope="col" class="num">Done</th>
              <th scope="col" class="num wide">Tasks</th>
              <th scope="col" class="num">Failed</th>
              <th scope="col" class="wide">Owner</th>
              <th scope="col" class="wide">Policy</th>
              <th scope="col" class="num wide">Submitted</th>
            </tr>
          </thead>
          <tbody>
            {flows.map((flow) => (
              <Row key={flow.workflow} flow={flow} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

export function Workflows() {
  const all = workflows.value;
  if (!all) return <p class="empty">{problem.value || "Loading …"}</p>;
  if (!all.length) return <p class="empty">This server has no workflow yet. Submit one with: <code>eligo submit {location.origin} FILE</code></p>;
  const newest = [...all].sort((first, second) => second.made - first.made);
  return (
    <>
      <List title="Running" flows={newest.filter((flow) => !ENDED.includes(flow.state))} />
      <List title="Ended" flows={newest.filter((flow) => ENDED.includes(flow.state))} />
    </>
  );
}
