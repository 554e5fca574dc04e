// The headline of a run: its state, its progress, and the time left.
import type { View } from "./documents";
import { length, many, number, percent, range } from "./format";
import { count } from "./states";

const ENDS: Record<string, string> = { cancelled: "cancelled", failed: "ended", stopped: "stopped", done: "ended" };

/** "4,310 of 10,000 tasks done, 16 running; 12 to 17 min left". */
export function headline(view: View): string {
  if (view.headline) return view.tasks ? view.headline : "There are no tasks";
  const done = count(view.counts, "done");
  const failed = count(view.counts, "failed");
  const running = count(view.counts, "running");
  const end = ENDS[view.state];
  if (!view.tasks) return "There are no tasks";
  if (end && done === view.tasks) return `${view.tasks === 1 ? "The only task is" : `All ${number(view.tasks)} tasks`} done in ${length(view.seconds)}`;
  let said = `${number(done)} of ${many(view.tasks, "task")} done`;
  if (running && !end) said += `, ${number(running)} running`;
  if (failed) said += `, ${number(failed)} failed`;
  if (end) return `${said}; ${end} after ${length(view.seconds)}`;
  if (view.state === "paused" || view.state === "held") return `${said}; paused`;
  return `${said}; ${view.left ? `${range(...view.left)} left` : "time left not known yet"}`;
}

export function title(view: View): string {
  return `${view.title}: ${percent(count(view.counts, "done"), view.tasks)} done`;
}

/** A change that is important enough to announce to a screen reader, or null. */
export function news(before: View | null, after: View): string | null {
  if (!before || before.workflow !== after.workflow) return null;
  if (before.state !== after.state) return `${after.title} is ${after.state}. ${headline(after)}.`;
  if (after.failures_total > before.failures_total) return `${many(after.failures_total, "task")} failed so far.`;
  const quarter = (view: View) => Math.floor((4 * count(view.counts, "done")) / (view.tasks || 1));
  return quarter(after) > quarter(before) ? `${headline(after)}.` : null;
}
