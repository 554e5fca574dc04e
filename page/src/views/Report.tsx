// A report: sections of text, tables and figures, one below the other.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Cell, ReportPage, ReportTable } from "../documents";
import { fileName, saveCsv } from "../download";
import { figure as digits } from "../format";
import { Facts, Figures } from "../parts/Figures";
import { Footer } from "../parts/Footer";
import { Scroll } from "../parts/Scroll";
import { compare } from "../table";

const MARKS = { yes: "✓", no: "✕", best: "★", why: "?" } as const;
const MEANING = { yes: "agrees", no: "does not agree", best: "the best", why: "explained" } as const;

const plain = (cell: Cell): string | number | null => (cell !== null && typeof cell === "object" ? cell.text : cell);

function Shown({ cell }: { cell: Cell }) {
  if (cell === null) return <>–</>;
  if (typeof cell === "number") return <>{digits(cell)}</>;
  if (typeof cell === "string") return <bdi>{cell}</bdi>;
  return (
    <span class={`marked ${cell.mark}`}>
      <span aria-hidden="true">{MARKS[cell.mark]}</span>
      <span class="sr">{MEANING[cell.mark]}: </span> <bdi>{cell.text}</bdi>
    </span>
  );
}

function order(rows: Cell[][], at: number, descending: boolean): Cell[][] {
  const value = (row: Cell[]) => {
    const text = plain(row[at] ?? null);
    const number = typeof text === "string" ? Number(text.replaceAll(",", "")) : Number.NaN;
    return Number.isFinite(number) && text !== "" ? number : text;
  };
  return [...rows].sort((first, second) => {
    const [one, two] = [value(first), value(second)];
    if (one === null || two === null) return Number(one === null) - Number(two === null);
    return (descending ? -1 : 1) * compare(one, two, "");
  });
}

function Table({ table, title }: { table: ReportTable; title: string }) {
  const [sort, setSort] = useState<{ at: number; descending: boolean } | null>(null);
  const rows = sort ? order(table.rows, sort.at, sort.descending) : table.rows;
  const numeric = (at: number) => (table.numbers?.[at] ? "num" : "");
  return (
    <div class="report-table">
      <Scroll label={table.caption || title}>
        <table class="plain">
          {table.caption && <caption>{table.caption}</caption>}
          <thead>
            <tr>
              {table.columns.map((column, at) => (
                <th key={at} scope="col" class={numeric(at)} aria-sort={sort?.at === at ? (sort.descending ? "descending" : "ascending") : undefined}>
                  <button type="button" class="sort" onClick={() => setSort({ at, descending: sort?.at === at && !sort.descending })}>
                    {column || <span class="sr">{`column ${at + 1}`}</span>}
                    <span aria-hidden="true" class="arrow">
                      {sort?.at === at ? (sort.descending ? "▼" : "▲") : ""}
                    </span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, place) => (
              <tr key={place}>
                {row.map((cell, at) => (
                  <td key={at} class={numeric(at)}>
                    <Shown cell={cell} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <div class="downloads">
        <button type="button" onClick={() => saveCsv(fileName(title, "table", "csv"), table.columns, table.rows.map((row) => row.map(plain)))}>
          Save as CSV
        </button>
      </div>
    </div>
  );
}

export function Report({ page, extra }: { page: ReportPage; extra: ComponentChildren }) {
  const [first, ...rest] = page.headline;
  return (
    <>
      <div class="body">
        <main id="main" tabIndex={-1} class="report">
          <section class="summary" aria-label="In short">
            <p class="headline">{first ?? page.title}</p>
            {rest.map((words) => (
              <p key={words}>{words}</p>
            ))}
            <Facts facts={page.facts} />
          </section>
          {page.sections.map((section, at) => (
            <section key={at} class="box" aria-labelledby={`section-${at}`}>
              <h2 id={`section-${at}`}>{section.title}</h2>
              {section.words.map((words) => (
                <p key={words} class="prose">
                  {words}
                </p>
              ))}
              {section.tables.map((table, place) => (
                <Table key={place} table={table} title={section.title} />
              ))}
              <Figures figures={section.figures} />
            </section>
          ))}
        </main>
      </div>
      <Footer words={page.title}>{extra}</Footer>
    </>
  );
}
