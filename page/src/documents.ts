// The documents that pages show, as the server and static pages provide them.

export const STATES = ["done", "running", "ready", "pending", "blocked", "retrying", "failed"] as const;
export type State = (typeof STATES)[number];
export type Counts = Partial<Record<State, number>>;

export interface Line {
  y: number[];
  least?: number[] | null;
  most?: number[] | null;
}

export type LineName = "seen" | "plan" | "bound" | "fifo";

export interface Curve {
  steps: number[];
  lines: Partial<Record<LineName, Line | null>>;
  starved: [number, number][];
  averages: Partial<Record<LineName, number | null>>;
  sampled: boolean;
  remark: string;
}

export interface Held {
  task: string;
  since: number;
  attempt: number;
}

export interface Client {
  client: string;
  name: string;
  seen: number;
  alive: boolean;
  approved: boolean;
  speed: number | null;
  quota: number | null;
  done: number;
  failed: number;
  lost: number;
  paused: number;
  held: number;
  holds: Held[];
  bad: boolean;
  remark: string;
}

export interface Failure {
  cause: string;
  count: number;
  tasks: string[];
  tail: string[];
  clients: [string, number][];
  /** The largest number of attempts at one of its tasks; absent from earlier reports. */
  attempts?: number;
}

export interface Running {
  task: string;
  client: string;
  since: number;
  attempt: number;
  kind: string | null;
  expected: number | null;
  /** Its worker has it and has not started it yet; absent from earlier reports. */
  assigned?: boolean;
}

export interface Recent {
  task: string;
  client: string;
  ended: number;
  took: number;
  failure: string | null;
}

export type RunState = "running" | "paused" | "held" | "done" | "failed" | "cancelled" | "stopped";

export interface View {
  kind: "run";
  workflow: string;
  title: string;
  state: RunState;
  source: "server" | "run";
  now: number;
  began: number;
  ended: number | null;
  seconds: number;
  policy: string;
  tasks: number;
  arcs: number;
  counts: Counts;
  rate: number;
  left: [number, number] | null;
  /** The time left, and the headline, in the words of every display; absent from earlier reports. */
  left_words?: string;
  headline?: string;
  workers: number;
  busy: number | null;
  attempts: number;
  lost: number;
  repeated: number;
  saved: number;
  curve: Curve | null;
  clients: Client[];
  failures: Failure[];
  failures_total: number;
  /** The causes of the last failures of tasks that will be retried; absent from earlier reports. */
  retrying?: Failure[];
  running: Running[];
  recent: Recent[];
  /** What ready tasks require and no connected client has, one sentence each; absent from earlier servers. */
  unmet?: string[];
  order: { words: string[] };
  can: { cancel: boolean; retry: boolean; release: boolean; approve: boolean; pause?: boolean; workers?: boolean };
}

export type Value = string | number | boolean | null;

export interface Table {
  total: number;
  tasks: number;
  columns: string[];
  rows: Value[][];
}

export interface Attempt {
  attempt: number;
  client: string;
  began: number | null;
  ended: number | null;
  answer: string;
  failure: string | null;
  code: number | null;
  memory: number | null;
}

export interface Detail {
  task: string;
  kind: string | null;
  state: State | "";
  command: string;
  place: number | null;
  why: string[];
  parents: [string, State | ""][];
  parents_total: number;
  children: [string, State | ""][];
  children_total: number;
  above: number | null;
  below: number | null;
  path: { tasks: string[]; total: number; seconds: number | null } | null;
  attempts: Attempt[];
  log: string[];
  inputs: string[];
  outputs: string[];
}

export interface DagNode {
  id: number;
  label: string;
  kind: number;
  x: number;
  y: number;
  w: number;
  h: number;
  count: number;
  tasks: string[];
  counts: Counts;
}

export type DagArc = [from: number, to: number, number: number, bends: [number, number][]];

export interface Dag {
  aggregated: boolean;
  tasks: number;
  width: number;
  height: number;
  kinds: string[];
  nodes: DagNode[];
  arcs: DagArc[];
}

export interface Lineage {
  above: number[];
  below: number[];
  self: number;
  path: number[];
}

/** How a bar is marked; one of several attempts has the highest mark of these. */
export const MARK = { none: 0, running: 1, lost: 2, failed: 3 } as const;

export type Bar = [worker: number, began: number, ended: number, kind: number, mark: number, count: number, task: string];

export interface Gantt {
  begin: number;
  end: number;
  workers: { name: string; busy: number }[];
  kinds: string[];
  bars: Bar[];
  attempts: number;
  merged: number;
  /** The share of all workers' time; absent from earlier reports. */
  busy?: number | null;
  /** The attempts that decided when the run ended, and whether each waited for a parent or a worker; empty before the end. */
  path?: [lane: number, began: number, ended: number, after: "parent" | "worker" | ""][];
}

export interface WorkflowLine {
  workflow: string;
  name: string;
  owner: string;
  policy: string;
  state: string;
  made: number;
  tasks: number;
  counts: Counts;
}

export interface Figure {
  title: string;
  svg: string;
  alt: string;
}

export type Cell = string | number | null | { text: string; mark: "yes" | "no" | "best" | "why" };

export interface ReportTable {
  caption: string;
  columns: string[];
  rows: Cell[][];
  numbers?: boolean[];
}

export interface RunPage {
  kind: "run";
  view: View;
  dag: Dag;
  gantt: Gantt;
  table: Table;
  details: Record<string, { log: string[] }>;
}

export interface PlanPage {
  kind: "plan";
  title: string;
  headline: string[];
  facts: [string, Value][];
  words: string[];
  curve: Curve | null;
  dag: Dag | null;
  figures: Figure[];
  table: { columns: string[]; rows: Value[][] };
}

export interface ReportPage {
  kind: "report";
  title: string;
  headline: string[];
  facts: [string, Value][];
  sections: { title: string; words: string[]; tables: ReportTable[]; figures: Figure[] }[];
}

export type StaticPage = RunPage | PlanPage | ReportPage;
