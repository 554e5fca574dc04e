// The search for tasks by name, on every page.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { State, Value } from "../documents";
import { number } from "../format";
import { StateName } from "../parts/Mark";
import { go } from "../route";
import { source } from "../session";
import { WHOLE } from "../table";

const SHOWN = 8;

interface Found {
  total: number;
  tasks: { name: string; state: State }[];
}

/** The tasks that match, a moment after the words were typed. */
function useFound(words: string): Found | null {
  const [found, setFound] = useState<Found | null>(null);
  useEffect(() => {
    const from = source.peek();
    setFound(null);
    if (!words.trim() || !from) return;
    let current = true;
    const timer = setTimeout(async () => {
      try {
        const table = await from.table({ ...WHOLE, search: words, limit: SHOWN });
        const value = (row: Value[], name: string) => row[table.columns.indexOf(name)];
        const tasks = table.rows.map((row) => ({ name: String(value(row, "task")), state: value(row, "state") as State }));
        if (current) setFound({ total: table.total, tasks });
      } catch {
        if (current) setFound(null);
      }
    }, 150);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [words]);
  return found;
}

export function Search({ table }: { table: string }) {
  const id = useId();
  const [words, setWords] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const field = useRef<HTMLInputElement>(null);
  const found = useFound(words);
  const tasks = found?.tasks ?? [];
  const shows = open && !!words.trim() && found !== null;

  const choose = (name: string) => {
    setOpen(false);
    go({ task: name });
  };
  const all = () => {
    setOpen(false);
    go({ section: table, search: words.trim(), state: "", task: "" });
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setOpen(true);
      setAt((now) => Math.max(-1, Math.min(tasks.length - 1, now + step)));
    } else if (event.key === "Enter") {
      event.preventDefault();
      const chosen = tasks[at];
      if (chosen) choose(chosen.name);
      else all();
    } else if (event.key === "Escape") {
      setOpen(false);
      setAt(-1);
    }
  };

  return (
    <div class="search" role="search" onFocusOut={(event) => !event.currentTarget.contains(event.relatedTarget as Node) && setOpen(false)}>
      <input
        ref={field}
        type="search"
        role="combobox"
        aria-label="Find a task by its name"
        aria-expanded={shows}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        list={undefined}
        aria-activedescendant={shows && at >= 0 ? `${id}-${at}` : undefined}
        placeholder="Find a task …"
        value={words}
        onFocus={() => setOpen(true)}
        onInput={(event) => {
          setWords(event.currentTarget.value);
          setAt(-1);
          setOpen(true);
        }}
        onKeyDown={press}
      />
      <ul id={`${id}-list`} role="listbox" aria-label="Tasks found" class={shows ? "found" : "found hidden"}>
        {shows &&
          tasks.map(({ name, state }, place) => (
            <li
              key={name}
              id={`${id}-${place}`}
              role="option"
              aria-selected={place === at}
              onMouseDown={(event) => {
                event.preventDefault();
                choose(name);
              }}
            >
              <bdi class="short">{name}</bdi>
              {state && <StateName state={state} />}
            </li>
          ))}
        {shows && (
          <li role="option" aria-selected={false} class="all" onMouseDown={all}>
            {found?.total ? `Enter shows ${found.total === 1 ? "it" : `all ${number(found.total)}`} in the table` : "No task matches"}
          </li>
        )}
      </ul>
    </div>
  );
}
