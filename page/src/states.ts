// States of tasks and of runs: their names, shapes and meanings.
import type { Counts, State } from "./documents";
import { STATES } from "./documents";

export const slug: Record<State, string> = {
  done: "done",
  running: "running",
  ready: "ready",
  pending: "pending",
  blocked: "blocked",
  retrying: "again",
  failed: "failed",
};

export const meaning: Record<State, string> = {
  done: "succeeded",
  running: "running now",
  ready: "can be handed out now",
  pending: "waits for other tasks",
  blocked: "depends on a failed task",
  retrying: "failed or was lost, and will be retried",
  failed: "failed permanently",
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
  stopped: "stopped",
};

/** The state of a node with one task; of several, the most important one. */
export function stateOf(counts: Counts): State | null {
  const order: State[] = ["failed", "retrying", "running", "ready", "blocked", "pending", "done"];
  return order.find((state) => count(counts, state)) ?? null;
}
