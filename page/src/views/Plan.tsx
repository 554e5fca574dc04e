// A plan as a page: its gain, its curve, its dag, and its order.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { PlanPage } from "../documents";
import { fileName, saveCsv, saveJson } from "../download";
import { many, number } from "../format";
import { Box } from "../parts/Box";
import { Curve } from "../parts/Curve";
import { Facts, Figures } from "../parts/Figures";
import { Footer } from "../parts/Footer";
import { Rows } from "../parts/Rows";
import { go, route } from "../route";
import { answer, type Query, WHOLE } from "../table";
import { DagBody } from "./Dag";
import { Nav } from "./Nav";
import { Sections } from "./Run";
import { TaskPanel } from "./TaskPanel";
import { Pager } from "./Tasks";

/** The file and the gain: "montage.json: gain 12 %". */
export function planTitle(page: PlanPage): string {
  const gain = page.facts.find(([name]) => /gain/i.test(name));
  if (gain) return `${page.title}: ${gain[0]} ${gain[1]}`;
  return page.headline[0] ? `${page.title}: ${page.headline[0]}` : page.title;
}

function Overview({ page }: { page: PlanPage }) {
  const [first, ...rest] = page.headline;
  return (
    <>
      <section class="summary" aria-label="Result of the plan">
        <p class="headline">{first ?? page.title}</p>
        {rest.map((words) => (
          <p key={words}>{words}</p>
        ))}
        <Facts facts={page.facts} />
      </section>
      {page.curve && <Curve curve={page.curve} />}
      {page.words.length > 0 && (
        <Box title="In words" kind="words">
          {page.words.map((words) => (
            <p key={words}>{words}</p>
          ))}
        </Box>
      )}
    </>
  );
}

function Order({ page }: { page: PlanPage }) {
  const { search } = route.value;
  const [rest, setRest] = useState<Query>(WHOLE);
  const query: Query = { ...rest, search };
  const change = ({ search: words = search, ...next }: Partial<Query>) => {
    if (words !== search) go({ search: words }, true);
    setRest((now) => ({ ...now, offset: 0, ...next }));
  };
  const table = answer(page.table, query);
  const whole = () => answer(page.table, { ...query, offset: 0, limit: Infinity });
  return (
    <>
      <div class="top controls">
        <div class="filters">
          <label>
            <span>Name contains</span>
            <input type="search" value={query.search} onInput={(event) => change({ search: event.currentTarget.value })} />
          </label>
        </div>
        <div class="downloads">
          <button type="button" onClick={() => saveCsv(fileName(page.title, "order", "csv"), page.table.columns, whole().rows)}>
            Save as CSV
          </button>
          <button type="button" onClick={() => saveJson(fileName(page.title, "order", "json"), { columns: page.table.columns, rows: whole().rows })}>
            Save as JSON
          </button>
        </div>
      </div>
      <p class="quiet" role="status">
        {table.total === table.tasks ? many(table.total, "task") : `${number(table.total)} of ${many(table.tasks, "task")}`}
      </p>
      <Rows table={table} sort={query.sort} descending={query.descending} change={change} label="The order" />
      <Pager query={query} total={table.total} change={change} />
    </>
  );
}

export function Plan({ page, extra }: { page: PlanPage; extra: ComponentChildren }) {
  const entries = [
    { section: "overview", words: "Overview", shown: () => <Overview page={page} /> },
    { section: "order", words: "Order", shown: () => <Order page={page} /> },
    ...(page.dag ? [{ section: "dag", words: "Dag", shown: () => <DagBody dag={page.dag!} states={null} view={null} /> }] : []),
    ...(page.figures.length ? [{ section: "figures", words: "Figures", shown: () => <Figures figures={page.figures} /> }] : []),
  ];
  return (
    <>
      <Nav entries={entries} />
      <div class={route.value.task ? "body beside" : "body"}>
        <main id="main" tabIndex={-1}>
          <Sections entries={entries} />
        </main>
        {route.value.task && <TaskPanel key={route.value.task} task={route.value.task} view={null} />}
      </div>
      <Footer words={page.title}>{extra}</Footer>
    </>
  );
}
