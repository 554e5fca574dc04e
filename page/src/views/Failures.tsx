// Failures by cause, with the last lines of output.
import type { Failure, View } from "../documents";
import { plain } from "../ansi";
import { failureWords, many, number } from "../format";
import { Action } from "../parts/Action";
import { retry } from "../parts/actions";
import { Box } from "../parts/Box";
import { Log, Task } from "../parts/Task";
import { count } from "../states";

/** The last line of output says most about a failure; without output it is the cause. */
export const titleOf = ({ cause, tail }: Failure): string => plain(tail[tail.length - 1] ?? "").trim() || failureWords(cause);

function Cause({ failure, view, retried = false }: { failure: Failure; view: View; retried?: boolean }) {
  const title = titleOf(failure);
  const cause = failureWords(failure.cause);
  const worst = failure.clients[0];
  const alone = worst && worst[1] === failure.count && failure.count > 1;
  return (
    <Box title={title} tone={retried ? "" : "bad"} kind="cause" beside={<span class="badge">{many(failure.count, "task")}</span>}>
      {(title !== cause || retried) && (
        <p class="said">
          {title !== cause && <bdi>{cause}</bdi>}
          {retried && `${title === cause ? "" : "; "}${failure.attempts && failure.attempts > 1 ? `up to ${number(failure.attempts)} attempts so far` : "1 attempt so far"}, will be retried`}
        </p>
      )}
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
      {view.can.retry && !retried && failure.count === failure.tasks.length && (
        <Action label={`Retry ${failure.count === 1 ? "it" : "these"}`} act={() => retry(view.workflow, failure.tasks)} />
      )}
    </Box>
  );
}

export function Failures({ view }: { view: View }) {
  const blocked = count(view.counts, "blocked");
  const retrying = view.retrying ?? [];
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
        <Cause key={`${failure.cause} ${failure.tasks[0]}`} failure={failure} view={view} />
      ))}
      {retrying.map((failure) => (
        <Cause key={`${failure.cause} ${failure.tasks[0]}`} failure={failure} view={view} retried />
      ))}
      {!view.failures.length && !retrying.length && <p class="empty">If a task fails, this page shows the cause and the last lines of its output.</p>}
    </>
  );
}
