// The current state: the latest view, the connection, and the time on the server's clock.
import { computed, signal } from "@preact/signals";
import { asked, call, get, said } from "./calls";
import type { RunPage, View, WorkflowLine } from "./documents";
import { route } from "./route";
import { Served, type Source } from "./source";
import { Stream, type End } from "./stream";

export type Link = { state: "fine" } | { state: "lost" | "gone"; since: number; why: string };

export const view = signal<View | null>(null);
export const source = signal<Source | null>(null);
export const link = signal<Link>({ state: "fine" });
export const workflows = signal<WorkflowLine[] | null>(null);
export const problem = signal("");
/** What an ended run on this machine has left: its data, and its report as the path and the text of a file. */
export const finished = signal<{ page: RunPage; path: string | null; report: string } | null>(null);

const came = signal(0);
const ticks = signal(0);

/** The time on the server's clock; it stops when the run has ended and while the connection is lost. */
export const now = computed(() => {
  const current = view.value;
  if (!current) return 0;
  const still = !source.value?.live || current.ended !== null || current.state === "stopped" || link.value.state !== "fine";
  return current.now + (still ? 0 : Math.max(0, ticks.value - came.value) / 1000);
});

export const address = (workflow: string) => `/v1/workflows/${encodeURIComponent(workflow)}`;

let stream: Stream | null = null;
let followed = "";

function heard(next: View): void {
  came.value = ticks.value = performance.now();
  link.value = { state: "fine" };
  view.value = next;
}

/** The data of the ended run, which this tab then holds itself; the report is the same data as one file. */
async function finish(workflow: string, { report: path }: End): Promise<void> {
  const report = path ? await (await call("/report.html")).text() : "";
  const data = /<script type="application\/json" id="data">([^<]*)/.exec(report)?.[1];
  const page = data ? (JSON.parse(data) as RunPage) : await get<RunPage>(`${address(workflow)}/report`);
  page.view.workflow = workflow;
  if (followed === workflow) finished.value = { page, path, report };
}

function broken(state: "lost" | "gone", why: string): void {
  const before = link.peek();
  link.value = { state, since: before.state === "fine" ? Date.now() / 1000 : before.since, why };
}

/** Follows one workflow, and stops following the previous one. */
export function follow(workflow: string): void {
  if (workflow === followed) return;
  stream?.stop();
  stream = null;
  followed = workflow;
  view.value = null;
  link.value = { state: "fine" };
  source.value = workflow ? new Served(address(workflow)) : null;
  if (!workflow) return;
  stream = new Stream(address(workflow), {
    view: heard,
    lost: (why) => broken("lost", why),
    gone: (why) => broken("gone", why),
    ended: (end) => finish(workflow, end).catch((trouble) => broken("lost", said(trouble))),
  });
}

/** Loads everything again, after the reader entered a token. */
export function again(): void {
  const workflow = followed;
  followed = "";
  if (workflow) follow(workflow);
  void list();
}

interface Page {
  workflows: WorkflowLine[];
  before?: string | null;
}

async function everyPage(): Promise<WorkflowLine[]> {
  const found: WorkflowLine[] = [];
  let before = "";
  do {
    const page = await get<Page>(`/v1/workflows${before && `?before=${encodeURIComponent(before)}`}`);
    found.push(...page.workflows);
    before = page.before ?? "";
  } while (before);
  return found;
}

export async function list(): Promise<void> {
  try {
    workflows.value = await everyPage();
    problem.value = "";
  } catch (trouble) {
    if (asked.peek() === null) problem.value = said(trouble);
  }
}

function tick(): void {
  if (!document.hidden) ticks.value = performance.now();
}

export function start(): void {
  setInterval(tick, 1000);
  let beats = 0;
  setInterval(() => {
    beats += 1;
    // The list of workflows is refreshed often; while one run is shown, only now and then, for new workflows.
    if (!document.hidden && asked.peek() === null && !finished.peek() && (!route.peek().workflow || beats % 6 === 0)) void list();
  }, 5000);
  void list();
}
