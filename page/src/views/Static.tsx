// A page with its data inside: a saved run, a plan, or a report.
import { useEffect } from "preact/hooks";
import type { RunPage, StaticPage } from "../documents";
import { fileName, saveJson } from "../download";
import { title } from "../headline";
import { remember } from "../parts/useLatest";
import { source, view } from "../session";
import { Written } from "../source";
import { answer, WHOLE } from "../table";
import { Header } from "./Header";
import { Plan, planTitle } from "./Plan";
import { Report } from "./Report";
import { Run } from "./Run";
import { Skip } from "./Skip";
import { tableKey } from "./Tasks";
import { ganttKey } from "./Timeline";

/** All data are here already, so no view has to wait, in print either. */
export function prepare(page: StaticPage): void {
  if (page.kind === "report") return;
  if (page.kind === "plan") {
    const gantt = { begin: 0, end: 0, workers: [], kinds: [], bars: [], attempts: 0, merged: 0 };
    const table = { total: page.table.rows.length, tasks: page.table.rows.length, ...page.table };
    const dag = page.dag ?? { aggregated: false, tasks: 0, width: 0, height: 0, kinds: [], nodes: [], arcs: [] };
    source.value = new Written({ dag, gantt, table, details: {} });
    return;
  }
  source.value = new Written(page);
  view.value = { ...page.view, can: { cancel: false, retry: false, release: false, approve: false, pause: false, workers: false } };
  const { workflow } = page.view;
  remember(`dag ${workflow}`, page.dag);
  remember(ganttKey(workflow, null), page.gantt);
  remember(tableKey(workflow, WHOLE), answer(page.table, WHOLE));
}

const prepared = new WeakSet<StaticPage>();

function name(page: StaticPage): string {
  return page.kind === "run" ? page.view.title : page.title;
}

export function Static({ page }: { page: StaticPage }) {
  if (!prepared.has(page)) {
    prepared.add(page);
    prepare(page);
  }
  useEffect(() => {
    document.title = page.kind === "run" ? title(page.view) : page.kind === "plan" ? planTitle(page) : page.title;
  }, [page]);
  const shown = page.kind === "run" ? (view.value ?? (page as RunPage).view) : null;
  const extra = (
    <button type="button" onClick={() => saveJson(fileName(name(page), page.kind, "json"), page)}>
      Save all data of this page as JSON
    </button>
  );
  return (
    <>
      <Skip />
      <Header shown={shown} name={name(page)} live={false} table={page.kind === "plan" ? "order" : "tasks"} search={page.kind !== "report"} />
      {page.kind === "run" && shown && <Run view={shown} extra={extra} />}
      {page.kind === "plan" && <Plan page={page} extra={extra} />}
      {page.kind === "report" && <Report page={page} extra={extra} />}
    </>
  );
}
