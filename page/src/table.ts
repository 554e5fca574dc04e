// Tables that the browser searches, sorts and pages: those of static pages.
import { STATES, type Table, type Value } from "./documents";

export interface Query {
  search: string;
  state: string;
  kind: string;
  sort: string;
  descending: boolean;
  offset: number;
  limit: number;
}

export const WHOLE: Query = { search: "", state: "", kind: "", sort: "place", descending: false, offset: 0, limit: 100 };

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** Compares numbers by size, states by their order, and other text alphabetically. */
export function compare(first: Value, second: Value, column: string): number {
  if (typeof first === "number" && typeof second === "number") return first - second;
  if (column === "state") return STATES.indexOf(first as never) - STATES.indexOf(second as never);
  return collator.compare(String(first), String(second));
}

/** The rows sorted by one column; unknown values are always last, and equal rows keep their order. */
export function sorted(rows: Value[][], columns: string[], column: string, descending: boolean): Value[][] {
  const at = columns.indexOf(column);
  if (at < 0) return rows;
  const sign = descending ? -1 : 1;
  return [...rows].sort((first, second) => {
    const [one, two] = [first[at] ?? null, second[at] ?? null];
    if (one === null || two === null) return Number(one === null) - Number(two === null);
    return sign * compare(one, two, column);
  });
}

function matching(table: Pick<Table, "columns" | "rows">, query: Query): Value[][] {
  const [task, state, kind] = ["task", "state", "kind"].map((name) => table.columns.indexOf(name)) as [number, number, number];
  const search = query.search.trim().toLowerCase();
  return table.rows.filter(
    (row) =>
      (!search || String(row[task]).toLowerCase().includes(search)) &&
      (!query.state || row[state] === query.state) &&
      (!query.kind || row[kind] === query.kind),
  );
}

/** The answer that a server would give to the same query. */
export function answer(table: Pick<Table, "columns" | "rows">, query: Query): Table {
  const rows = sorted(matching(table, query), table.columns, query.sort, query.descending);
  const cut = rows.slice(query.offset, query.offset + query.limit);
  return { total: rows.length, tasks: table.rows.length, columns: table.columns, rows: cut };
}

function quoted(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = String(value);
  // A spreadsheet would run a text that begins like a formula, and names are untrusted.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Rows as comma-separated values. */
export function csv(columns: string[], rows: unknown[][]): string {
  return [columns, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}
