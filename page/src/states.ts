// States of tasks and of runs: how they are called, drawn and explained.
import type { Counts, State } from "./documents";
import { STATES } from "./documents";

export const slug: Record<State, string> = {
  done: "done",
  running: "running",
  ready: "ready",
  waiting: "waiting",
  futile: "futile",
  "to be tried again": "again",
  failed: "failed",
};

export const meaning: Record<State, string> = {
  done: "ended well",
  running: "somebody is at it now",
  ready: "could be handed out now",
  waiting: "waits for other tasks",
  futile: "cannot be done: something it needs has failed",
  "to be tried again": "failed or was lost, and will be handed out again",
  failed: "failed, and will not be tried again",
};

export const count = (counts: Counts | undefined, state: State): number => counts?.[state] ?? 0;

export const total = (counts: Counts): number => STATES.reduce((sum, state) => sum + count(counts, state), 0);

export const runWords: Record<string, string> = {
  running: "running",
  paused: "waiting for files or signatures",
  held: "paused: eligo resume continues it",
  done: "done",
  failed: "ended with failures",
  cancelled: "cancelled",
  stopped: "stopped: nobody is at it now",
};

/** The state of a node with one task; of several, the one that most needs to be seen. */
export function stateOf(counts: Counts): State | null {
  const order: State[] = ["failed", "to be tried again", "running", "ready", "futile", "waiting", "done"];
  return order.find((state) => count(counts, state)) ?? null;
}
