// A notice when the connection is lost, and announcements of important changes for screen readers.
import { useEffect, useRef, useState } from "preact/hooks";
import type { View } from "../documents";
import { clock } from "../format";
import { news } from "../headline";
import { save } from "../download";
import { finished, link, view } from "../session";

/** The end of a run on this machine, whose page has no server any more. */
function Finished() {
  const { path, report } = finished.value!;
  return (
    <div class="notice" role="status">
      The run has ended, and this tab holds all of its data.
      {path && (
        <>
          {" "}
          Report: <code>{path}</code>{" "}
          <button type="button" onClick={() => save("report.html", "text/html", report)}>
            Save report.html
          </button>
        </>
      )}
    </div>
  );
}

export function Connection() {
  const state = link.value;
  if (finished.value) return <Finished />;
  if (state.state === "fine") return null;
  const since = clock(state.since, Date.now() / 1000);
  return (
    <div class="lost" role="alert">
      {state.state === "lost"
        ? `Connection lost at ${since}; reconnecting. The page shows the state at that time.`
        : `The server does not show this workflow: ${state.why}`}
    </div>
  );
}

const QUIET = 30_000;

/** Announces at most once in half a minute; later changes are part of the next announcement. */
export function Announcer() {
  const [words, setWords] = useState("");
  const announced = useRef<{ view: View | null; at: number }>({ view: null, at: -QUIET });
  const current = view.value;
  useEffect(() => {
    if (!current) return;
    const before = announced.current.view;
    if (before?.workflow !== current.workflow) announced.current = { view: current, at: -QUIET };
    if (performance.now() - announced.current.at < QUIET && before?.state === current.state) return;
    const said = news(announced.current.view, current);
    if (said === null) return;
    announced.current = { view: current, at: performance.now() };
    setWords(said);
  }, [current]);
  return (
    <div class="sr" role="status" aria-live="polite">
      {words}
    </div>
  );
}
