// All tasks of a run as a table; the source of the data searches, sorts and pages it.
import { useEffect, useState } from "preact/hooks";
import type { Table, View } from "../documents";
import { STATES } from "../documents";
import { many, number } from "../format";
import { fileName, saveCsv, saveJson } from "../download";
import { Action } from "../parts/Action";
import { Rows } from "../parts/Rows";
import { useLatest } from "../parts/useLatest";
import { go, route } from "../route";
import { source } from "../session";
import { type Query, WHOLE } from "../table";

/** The key under which an answer is cached. */
export const tableKey = (workflow: string, query: Query): string => `table ${workflow} ${JSON.stringify(query)}`;

/** All rows that match, fetched page by page; only for a download. */
async function everything(query: Query): Promise<Table> {
  const limit = 1000;
  const first = await source.peek()!.table({ ...query, offset: 0, limit });
  const rows = [...first.rows];
  while (rows.length < first.total) {
    const next = await source.peek()!.table({ ...query, offset: rows.length, limit });
    if (!next.rows.length) break;
    rows.push(...next.rows);
  }
  return { ...first, rows };
}

function Downloads({ title, query }: { title: string; query: Query }) {
  const take = (end: "csv" | "json") => async () => {
    const { columns, rows } = await everything(query);
    const name = fileName(title, "tasks", end);
    if (end === "csv") saveCsv(name, columns, rows);
    else saveJson(name, { columns, rows });
    return `${many(rows.length, "row")} saved.`;
  };
  return (
    <div class="downloads">
      <Action label="Save as CSV" act={take("csv")} />
      <Action label="Save as JSON" act={take("json")} />
    </div>
  );
}

function Filters({ query, change, kinds }: { query: Query; change: (next: Partial<Query>) => void; kinds: string[] }) {
  return (
    <div class="filters" role="group" aria-label="Which tasks">
      <label>
        <span>Name contains</span>
        <input type="search" value={query.search} onInput={(event) => change({ search: event.currentTarget.value })} />
      </label>
      <label>
        <span>State</span>
        <select value={query.state} onChange={(event) => change({ state: event.currentTarget.value })}>
          <option value="">all</option>
          {STATES.map((state) => (
            <option key={state} value={state}>
              {state}
            </option>
          ))}
        </select>
      </label>
      {kinds.length > 1 && (
        <label>
          <span>Kind</span>
          <select value={query.kind} onChange={(event) => change({ kind: event.currentTarget.value })}>
            <option value="">all</option>
            {kinds.map((kind) => (
              <option key={kind} value={kind}>
                {kind}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

export function Pager({ query, total, change }: { query: Query; total: number; change: (next: Partial<Query>) => void }) {
  if (total <= query.limit && !query.offset) return null;
  const last = Math.min(total, query.offset + query.limit);
  return (
    <div class="pager" role="group" aria-label="Pages">
      <button type="button" disabled={!query.offset} onClick={() => change({ offset: Math.max(0, query.offset - query.limit) })}>
        Earlier
      </button>
      <span>
        {number(query.offset + 1)} to {number(last)} of {number(total)}
      </span>
      <button type="button" disabled={last >= total} onClick={() => change({ offset: query.offset + query.limit })}>
        Later
      </button>
    </div>
  );
}

/** The kinds seen so far: only the server has the full list, so the box grows as rows are shown. */
function useKinds(table: Table | null): string[] {
  const [kinds, setKinds] = useState<string[]>([]);
  useEffect(() => {
    if (!table) return;
    const at = table.columns.indexOf("kind");
    const found = new Set(kinds);
    for (const row of table.rows) if (row[at]) found.add(String(row[at]));
    if (found.size !== kinds.length) setKinds([...found].sort().slice(0, 200));
  }, [table]);
  return kinds;
}

export function Tasks({ view }: { view: View }) {
  const { search, state } = route.value;
  const [rest, setRest] = useState<Query>(WHOLE);
  const query: Query = { ...rest, search, state };
  const { value: table, problem } = useLatest(() => source.peek()!.table(query), tableKey(view.workflow, query), view.now);
  const kinds = useKinds(table);
  useEffect(() => setRest((now) => ({ ...now, offset: 0 })), [search, state]);

  const change = (next: Partial<Query>) => {
    const { search: words = search, state: only = state, ...others } = next;
    if (words !== search || only !== state) go({ search: words, state: only }, true);
    else setRest((now) => ({ ...now, offset: 0, ...others }));
  };
  return (
    <>
      <div class="top controls">
        <Filters query={query} change={change} kinds={kinds} />
        <Downloads title={view.title} query={query} />
      </div>
      {problem && <p class="message bad">{problem}</p>}
      {table && (
        <>
          <p class="quiet" role="status">
            {table.total === table.tasks ? many(table.total, "task") : `${number(table.total)} of ${many(table.tasks, "task")}`}
          </p>
          <Rows table={table} sort={query.sort} descending={query.descending} change={change} label="Tasks" />
          <Pager query={query} total={table.total} change={change} />
        </>
      )}
    </>
  );
}
