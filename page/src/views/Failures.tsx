// Failures by cause, with the last lines of output.
import type { Failure, View } from "../documents";
import { many, number } from "../format";
import { Action } from "../parts/Action";
import { retry } from "../parts/actions";
import { Box } from "../parts/Box";
import { Log, Task } from "../parts/Task";
import { count } from "../states";

function Cause({ failure, view }: { failure: Failure; view: View }) {
  const worst = failure.clients[0];
  const alone = worst && worst[1] === failure.count && failure.count > 1;
  return (
    <Box title={failure.cause} tone="bad" kind="cause" beside={<span class="badge">{many(failure.count, "time")}</span>}>
      {alone && (
        <p class="said">
          All on one worker, <bdi>{worst[0]}</bdi>: the cause may be the worker and not the task.
        </p>
      )}
      <dl class="pairs wide">
        <div>
          <dt>Tasks</dt>
          <dd class="names">
            {failure.tasks.map((name) => (
              <Task key={name} name={name} />
            ))}
            {failure.count > failure.tasks.length && <span class="quiet">and {number(failure.count - failure.tasks.length)} more</span>}
          </dd>
        </div>
        <div>
          <dt>Workers</dt>
          <dd class="names">
            {failure.clients.map(([name, times]) => (
              <span key={name}>
                <bdi>{name}</bdi> <span class="quiet">{number(times)} ×</span>
              </span>
            ))}
          </dd>
        </div>
      </dl>
      <h3>Last lines printed</h3>
      <Log lines={failure.tail} label={`Last lines printed: ${failure.cause}`} />
      {view.can.retry && failure.count === failure.tasks.length && (
        <Action label={`Retry ${failure.count === 1 ? "it" : "these"}`} act={() => retry(view.workflow, failure.tasks)} />
      )}
    </Box>
  );
}

export function Failures({ view }: { view: View }) {
  const blocked = count(view.counts, "blocked");
  return (
    <>
      <div class="top">
        <p class="headline small">
          {view.failures_total ? `${many(view.failures_total, "task")} failed, ${many(view.failures.length, "cause")}` : "No task has failed"}
          {blocked ? `; ${many(blocked, "task")} blocked` : ""}
        </p>
        {view.can.retry && count(view.counts, "failed") > 0 && <Action label="Retry all failed tasks" act={() => retry(view.workflow, null)} />}
      </div>
      {view.failures.map((failure) => (
        <Cause key={failure.cause} failure={failure} view={view} />
      ))}
      {!view.failures.length && <p class="empty">If a task fails, this page shows the cause and the last lines of its output.</p>}
    </>
  );
}
