// The shape of each state, so that no state is recognised by colour alone.
import type { State } from "../documents";
import { slug } from "../states";

const SHAPES: Record<State, string> = {
  done: "M2.5 6.5l2.5 2.5 4.5-5.5",
  running: "M4 2.5v7l5.5-3.5z",
  ready: "M6 2.5a3.5 3.5 0 1 0 .01 0z",
  pending: "M2.5 6h.01M6 6h.01M9.5 6h.01",
  blocked: "M6 2a4 4 0 1 0 .01 0zM3.2 8.8l5.6-5.6",
  retrying: "M9.3 4.2A3.8 3.8 0 1 0 9.8 6.6M9.6 1.8v2.6H7",
  failed: "M3 3l6 6M9 3l-6 6",
};

export function Mark({ state }: { state: State }) {
  return (
    <svg class={`mark ${slug[state]}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      <path d={SHAPES[state]} />
    </svg>
  );
}

/** A state by its shape and its name. */
export function StateName({ state }: { state: State | "" }) {
  if (!state || !(state in SHAPES)) return <span>{state || "–"}</span>;
  return (
    <span class={`state ${slug[state]}`}>
      <Mark state={state} />
      {state}
    </span>
  );
}
