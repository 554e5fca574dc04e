// Rows of tasks, sorted by the column whose heading is clicked.
import type { State, Table, Value } from "../documents";
import { bytes, clock, length, number } from "../format";
import { now } from "../session";
import type { Query } from "../table";
import { StateName } from "./Mark";
import { Scroll } from "./Scroll";
import { Task } from "./Task";

interface Column {
  words: string;
  number?: boolean;
  narrow?: boolean;
  shown?: (value: Value) => preact.ComponentChildren;
}

const COLUMNS: Record<string, Column> = {
  place: { words: "Position", number: true, narrow: true, shown: (value) => number(value as number | null) },
  task: { words: "Task", narrow: true, shown: (value) => <Task name={String(value)} /> },
  kind: { words: "Kind" },
  state: { words: "State", narrow: true, shown: (value) => <StateName state={value as State} /> },
  client: { words: "Worker" },
  began: { words: "Started", number: true, shown: (value) => clock(value as number | null, now.value || undefined) },
  took: { words: "Took", number: true, narrow: true, shown: (value) => length(value as number | null) },
  expected: { words: "Expected", number: true, shown: (value) => length(value as number | null) },
  seconds: { words: "Seconds", number: true, narrow: true, shown: (value) => length(value as number | null) },
  tries: { words: "Attempts", number: true },
  code: { words: "Exit code", number: true },
  memory: { words: "Memory", number: true, shown: (value) => bytes(value as number | null) },
  why: { words: "Reason", narrow: true },
};

function cell(name: string, value: Value) {
  const shown = COLUMNS[name]?.shown;
  if (shown) return shown(value);
  return value === null || value === "" ? "–" : <bdi>{String(value)}</bdi>;
}

const classes = (name: string): string => {
  const column = COLUMNS[name];
  return `${column?.number ? "num" : ""} ${column?.narrow ? "" : "wide"} c-${name}`;
};

interface Words {
  table: Pick<Table, "columns" | "rows">;
  sort: string;
  descending: boolean;
  change: (next: Partial<Query>) => void;
  label: string;
}

function Heading({ name, sort, descending, change }: Omit<Words, "table" | "label"> & { name: string }) {
  const mine = name === sort;
  return (
    <th scope="col" class={classes(name)} aria-sort={mine ? (descending ? "descending" : "ascending") : undefined}>
      <button type="button" class="sort" onClick={() => change({ sort: name, descending: mine && !descending })}>
        {COLUMNS[name]?.words ?? name}
        <span aria-hidden="true" class="arrow">
          {mine ? (descending ? "▼" : "▲") : ""}
        </span>
      </button>
    </th>
  );
}

export function Rows({ table, label, ...sorting }: Words) {
  const task = table.columns.indexOf("task");
  return (
    <Scroll label={label} card>
      <table class="plain rows">
        <thead>
          <tr>
            {table.columns.map((name) => (
              <Heading key={name} name={name} {...sorting} />
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={String(row[task])}>
              {table.columns.map((name, at) => (
                <td key={name} class={classes(name)}>
                  {cell(name, row[at] ?? null)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {!table.rows.length && <p class="empty">No task matches.</p>}
    </Scroll>
  );
}
