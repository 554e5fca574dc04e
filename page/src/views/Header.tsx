// The header of every page: name and state of the workflow, search, and the choice of colours.
import type { View } from "../documents";
import { asked, keep, token } from "../calls";
import { Action } from "../parts/Action";
import { cancel, pause, resume } from "../parts/actions";
import { go, href } from "../route";
import { view, workflows } from "../session";
import { runWords } from "../states";
import { choice, choose, type Choice } from "../theme";
import { Search } from "./Search";

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 16 16" width="22" height="22" aria-hidden="true">
      <path d="M8 3v4M8 7L4 12M8 7l4 5" />
      <circle cx="8" cy="3" r="2.4" class="a" />
      <circle cx="3.6" cy="12.6" r="2.4" class="b" />
      <circle cx="12.4" cy="12.6" r="2.4" class="c" />
    </svg>
  );
}

export function Theme() {
  return (
    <label class="theme">
      <span class="sr">Colours</span>
      <select value={choice.value} onChange={(event) => choose(event.currentTarget.value as Choice)}>
        <option value="auto">◐ auto</option>
        <option value="light">○ light</option>
        <option value="dark">● dark</option>
      </select>
    </label>
  );
}

export function RunState({ view }: { view: View }) {
  return <span class={`chip ${view.state}`}>{runWords[view.state] ?? view.state}</span>;
}

function Switcher() {
  const all = workflows.value ?? [];
  const current = view.value?.workflow;
  if (all.length < 2 || !current) return null;
  return (
    <>
      <label class="switcher">
        <span class="sr">Workflow</span>
        <select value={current} onChange={(event) => go({ workflow: event.currentTarget.value, task: "", search: "", state: "" })}>
          {all.map((flow) => (
            <option key={flow.workflow} value={flow.workflow}>
              {`${flow.name || flow.workflow} (${flow.state})`}
            </option>
          ))}
        </select>
      </label>
      <a href={href({ workflow: "", section: "", task: "", search: "", state: "" })}>all workflows</a>
    </>
  );
}

function Tools({ shown }: { shown: View | null }) {
  return (
    <div class="tools">
      {shown?.can.pause &&
        (shown.state === "held" ? (
          <Action label="Resume" act={() => resume(shown.workflow)} />
        ) : (
          <Action label="Pause" act={() => pause(shown.workflow)} />
        ))}
      {shown?.can.cancel && (
        <Action
          label="Cancel the run"
          danger
          confirm={
            shown.source === "run"
              ? "Running tasks are stopped. Finished tasks keep their results, and eligo run --resume continues the run later."
              : "The server stops handing out tasks and takes back those that are running. Finished tasks keep their results. This cannot be undone."
          }
          act={() => cancel(shown.workflow)}
        />
      )}
      {token() && asked.value === null && shown?.source !== "run" && (
        <button
          type="button"
          onClick={() => {
            keep("");
            location.reload();
          }}
        >
          Forget the token
        </button>
      )}
      <Theme />
    </div>
  );
}

interface Words {
  shown: View | null;
  name: string;
  live: boolean;
  search: boolean;
  table?: string;
}

export function Header({ shown, name, live, search, table = "tasks" }: Words) {
  return (
    <header class="head">
      <div class="inner">
        <div class="who">
          <Logo />
          <span class="brand">eligo</span>
          <h1 title={name}>
            <bdi>{name}</bdi>
          </h1>
          {shown && <RunState view={shown} />}
          {live && <Switcher />}
        </div>
        {search && <Search table={table} />}
        <Tools shown={shown} />
      </div>
    </header>
  );
}
