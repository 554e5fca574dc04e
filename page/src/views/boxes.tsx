// The four boxes of the first screen.
import type { Client, Failure, View } from "../documents";
import { clock, failureWords, length, many, number, percent, range, rate } from "../format";
import { Box } from "../parts/Box";
import { href } from "../route";
import { count } from "../states";
import { titleOf } from "./Failures";

const more = (section: string, words: string) => (
  <a class="more" href={href({ section, task: "" })}>
    {words}
  </a>
);

export function FailureBox({ view }: { view: View }) {
  const causes = view.failures.length;
  const again = count(view.counts, "retrying");
  const retrying = view.retrying ?? [];
  const lines = (failures: Failure[]) => (
    <ul class="lines">
      {failures.slice(0, 3).map((failure) => (
        <li key={`${failure.cause} ${failure.tasks[0]}`}>
          <b>{number(failure.count)} ×</b> <bdi>{titleOf(failure)}</bdi>
          {titleOf(failure) !== failureWords(failure.cause) && <span class="quiet"> {failureWords(failure.cause)}</span>}
          {again > 0 && (failure.attempts ?? 0) > 1 && <span class="quiet">, up to {many(failure.attempts!, "attempt")}</span>}
        </li>
      ))}
    </ul>
  );
  if (!view.failures_total && !causes) {
    return (
      <Box title="Failures" tone={again ? "" : "good"} beside={again ? more("failures", "last output") : undefined}>
        <p class="answer">{again ? `${many(again, "task")} retrying` : "None"}</p>
        {again ? lines(retrying) : <p class="quiet">No task has failed.</p>}
      </Box>
    );
  }
  return (
    <Box title="Failures" tone="bad" beside={more("failures", "last output")}>
      <p class="answer">
        {many(view.failures_total, "task")}, {many(causes, "cause")}
      </p>
      {lines(view.failures)}
      {again > 0 && <p class="quiet">{many(again, "more task", "more tasks")} will be retried.</p>}
    </Box>
  );
}

function bad(client: Client) {
  return (
    <li key={client.client}>
      <b>
        <bdi>{client.name || client.client}</bdi>
      </b>
      : {client.remark || `${number(client.failed)} failed, ${number(client.lost)} lost`}
    </li>
  );
}

export function WorkerBox({ view }: { view: View }) {
  const alive = view.clients.filter((client) => client.alive).length;
  const poor = view.clients.filter((client) => client.bad);
  const over = view.ended !== null || view.state === "stopped";
  return (
    <Box title="Workers" tone={poor.length ? "bad" : ""} beside={more("workers", "all workers")}>
      <p class="answer">{over ? `${many(view.clients.length, "worker")} took part` : `${number(alive)} of ${number(view.clients.length)} connected`}</p>
      {poor.length ? (
        <ul class="lines">{poor.slice(0, 3).map(bad)}</ul>
      ) : (
        <p class="quiet">{view.clients.length ? "No worker is unusually slow or failing." : "No workers yet."}</p>
      )}
      {!over && view.source === "server" && !alive && (
        <p class="quiet">
          Start one with <code>eligo work {location.origin}</code>
        </p>
      )}
      {poor.length > 3 && <p class="quiet">and {many(poor.length - 3, "more", "more")}</p>}
    </Box>
  );
}

export function OrderBox({ view }: { view: View }) {
  const [first, ...rest] = view.order.words;
  return (
    <Box title="Would another order have helped?" kind="order">
      <p class="said">{first ?? "Not known yet."}</p>
      {rest.map((words) => (
        <p key={words} class="quiet">
          {words}
        </p>
      ))}
    </Box>
  );
}

export function PaceBox({ view }: { view: View }) {
  const over = view.ended !== null || view.state === "stopped";
  const done = count(view.counts, "done");
  const lines: [string, string][] = [over ? ["Mean rate", rate(done / (view.seconds || 1))] : ["Current rate", rate(view.rate)]];
  if (view.busy !== null) lines.push(["Workers busy", percent(view.busy, 1)]);
  if (!over && view.left) {
    lines.push(["Ends between", `${clock(view.now + view.left[0], view.now)} and ${clock(view.now + view.left[1], view.now)}`]);
  }
  if (over) lines.push(["Attempts ended", number(view.attempts)]);
  return (
    <Box title={over ? "How long it took" : "Time left"}>
      <p class="answer">{over ? length(view.seconds) : view.left_words?.replace(/ left$|^time left /, "") ?? (view.left ? range(...view.left) : "not known yet")}</p>
      <dl class="pairs">
        {lines.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {over && done < view.tasks && <p class="quiet">{percent(done, view.tasks)} of the tasks are done.</p>}
    </Box>
  );
}
