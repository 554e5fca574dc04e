// The running tasks, the longest first, and the attempts that ended last.
import type { View } from "../documents";
import { ago, clock, failureWords, length, number } from "../format";
import { Box } from "../parts/Box";
import { Mark } from "../parts/Mark";
import { Scroll } from "../parts/Scroll";
import { Task } from "../parts/Task";
import { now } from "../session";
import { count } from "../states";

function Progress({ since, expected }: { since: number; expected: number | null }) {
  const taken = Math.max(0, now.value - since);
  if (!expected) return null;
  const share = Math.min(1, taken / expected);
  return (
    <span class={taken > 1.5 * expected ? "progress late" : "progress"} aria-hidden="true">
      <span style={{ width: `${100 * share}%` }} />
    </span>
  );
}

export function RunningBox({ view }: { view: View }) {
  const whole = count(view.counts, "running");
  if (!view.running.length && view.ended !== null) return null;
  if (!view.running.length) {
    return (
      <Box title="Running now">
        <p class="quiet">No task is running.</p>
      </Box>
    );
  }
  return (
    <Box title="Running now" kind="running-now" beside={<span class="quiet">{number(whole)}, the longest first</span>}>
      <Scroll label="Running tasks" tall>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Task</th>
              <th scope="col">Worker</th>
              <th scope="col" class="num">
                For
              </th>
              <th scope="col" class="num wide">
                Expected
              </th>
            </tr>
          </thead>
          <tbody>
            {view.running.map((one) => (
              <tr key={`${one.task} ${one.attempt} ${one.client}`}>
                <td>
                  <Task name={one.task} />
                  {one.attempt > 1 && <span class="tag">attempt {one.attempt}</span>}
                </td>
                <td>
                  <bdi>{one.client}</bdi>
                </td>
                <td class="num">
                  {one.assigned ? <span class="quiet">assigned</span> : length(Math.max(0, Math.round(now.value - one.since)))}
                  {!one.assigned && <Progress since={one.since} expected={one.expected} />}
                </td>
                <td class="num wide">{length(one.expected)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {whole > view.running.length && <p class="quiet">and {number(whole - view.running.length)} more</p>}
    </Box>
  );
}

export function RecentBox({ view }: { view: View }) {
  if (!view.recent.length) return null;
  return (
    <Box title="Recently ended" kind="ended-last">
      <Scroll label="Latest attempts" tall>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Task</th>
              <th scope="col">Result</th>
              <th scope="col" class="wide">
                Worker
              </th>
              <th scope="col" class="num">
                Took
              </th>
              <th scope="col" class="num wide">
                When
              </th>
            </tr>
          </thead>
          <tbody>
            {view.recent.map((one) => (
              <tr key={`${one.task} ${one.ended}`}>
                <td>
                  <Task name={one.task} />
                </td>
                <td>
                  <span class={`state ${one.failure === null ? "done" : "failed"}`}>
                    <Mark state={one.failure === null ? "done" : "failed"} />
                    <bdi>{one.failure === null ? "done" : failureWords(one.failure)}</bdi>
                  </span>
                </td>
                <td class="wide">
                  <bdi>{one.client}</bdi>
                </td>
                <td class="num">{length(one.took)}</td>
                <td class="num wide" title={clock(one.ended)}>
                  {view.ended === null ? ago(one.ended, now.value) : clock(one.ended, view.now)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Box>
  );
}
