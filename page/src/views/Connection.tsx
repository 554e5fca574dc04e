// Says when the connection is lost, and big changes to those who listen to the page.
import { useEffect, useRef, useState } from "preact/hooks";
import type { View } from "../documents";
import { clock } from "../format";
import { news } from "../headline";
import { link, view } from "../session";

export function Connection() {
  const state = link.value;
  if (state.state === "fine") return null;
  const since = clock(state.since, Date.now() / 1000);
  return (
    <div class="lost" role="alert">
      {state.state === "lost"
        ? `Connection lost since ${since}; reconnecting. The page shows the state at that time.`
        : `The server does not show this workflow: ${state.why}`}
    </div>
  );
}

const QUIET = 30_000;

/** Speaks at most once in half a minute; what happens meanwhile is told with the next news. */
export function Announcer() {
  const [words, setWords] = useState("");
  const told = useRef<{ view: View | null; at: number }>({ view: null, at: -QUIET });
  const current = view.value;
  useEffect(() => {
    if (!current) return;
    const before = told.current.view;
    if (before?.workflow !== current.workflow) told.current = { view: current, at: -QUIET };
    if (performance.now() - told.current.at < QUIET && before?.state === current.state) return;
    const said = news(told.current.view, current);
    if (said === null) return;
    told.current = { view: current, at: performance.now() };
    setWords(said);
  }, [current]);
  return (
    <div class="sr" role="status" aria-live="polite">
      {words}
    </div>
  );
}
