// Downloads; the page makes the files itself, from data that it has or fetches.
import { csv } from "./table";

export function save(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A name that every file system accepts. */
export const fileName = (title: string, what: string, end: string): string =>
  `${title.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 60) || "eligo"}-${what}.${end}`;

export const saveCsv = (name: string, columns: string[], rows: unknown[][]): void => save(name, "text/csv;charset=utf-8", csv(columns, rows));

export const saveJson = (name: string, value: unknown): void => save(name, "application/json", JSON.stringify(value, null, 1));
