// The first screen: what is running, what failed and why, when the run ends, which workers cause problems, and whether another order would have helped.
import type { View } from "../documents";
import { bytes, clock, length, many } from "../format";
import { headline } from "../headline";
import { Curve } from "../parts/Curve";
import { StateBar } from "../parts/StateBar";
import { FailureBox, OrderBox, PaceBox, WorkerBox } from "./boxes";
import { RecentBox, RunningBox } from "./Now";

function facts(view: View): string[] {
  const said = [`started ${clock(view.began, view.now)}`];
  if (view.ended !== null) said.push(`ended ${clock(view.ended, view.now)}`);
  said.push(`${view.ended === null ? "running for" : "ran for"} ${length(view.seconds)}`, `policy ${view.policy}`, `${many(view.tasks, "task")}, ${many(view.arcs, "arc")}`);
  if (view.lost) said.push(`${many(view.lost, "attempt")} lost`);
  if (view.repeated) said.push(`${many(view.repeated, "task")} ${view.source === "run" ? "run again" : "reassigned"}`);
  if (view.saved) said.push(`${bytes(view.saved)} of transfers saved`);
  return said;
}

function Summary({ view }: { view: View }) {
  return (
    <section class="summary" aria-label="Progress">
      <p class="headline">{headline(view)}</p>
      {view.unmet?.map((sentence) => (
        <p key={sentence} class="unmet">
          {sentence}
        </p>
      ))}
      <StateBar counts={view.counts} />
      <ul class="facts">
        {facts(view).map((fact) => (
          <li key={fact}>{fact}</li>
        ))}
      </ul>
    </section>
  );
}

export function Overview({ view }: { view: View }) {
  return (
    <>
      <Summary view={view} />
      <div class="boxes">
        <FailureBox view={view} />
        <WorkerBox view={view} />
        <PaceBox view={view} />
      </div>
      <div class="two">
        <div class="stack">
          {view.curve && <Curve curve={view.curve} going={view.ended === null} />}
          <OrderBox view={view} />
        </div>
        <div class="stack">
          <RunningBox view={view} />
          <RecentBox view={view} />
        </div>
      </div>
    </>
  );
}
