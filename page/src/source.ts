// The source of a workflow's documents: its server, or the file of this page.
import { get, query as words } from "./calls";
import type { Attempt, Counts, Dag, Detail, Gantt, Lineage, RunPage, State, Table, Value } from "./documents";
import { lineage, nodeOf } from "./lineage";
import { stateOf } from "./states";
import { answer, type Query } from "./table";

export type FullAttempt = Attempt & { task: string };

export interface Source {
  readonly live: boolean;
  table(query: Query): Promise<Table>;
  detail(task: string): Promise<Detail>;
  dag(): Promise<Dag>;
  states(): Promise<Counts[] | null>;
  lineage(task: string): Promise<Lineage | null>;
  gantt(begin?: number, end?: number): Promise<Gantt>;
}

export class Served implements Source {
  readonly live = true;

  constructor(readonly address: string) {}

  table(query: Query): Promise<Table> {
    return get(`${this.address}/table${words({ ...query })}`);
  }

  detail(task: string): Promise<Detail> {
    return get(`${this.address}/task${words({ name: task })}`);
  }

  dag(): Promise<Dag> {
    return get(`${this.address}/dag`);
  }

  async states(): Promise<Counts[]> {
    return (await get<{ counts: Counts[] }>(`${this.address}/dag/states`)).counts;
  }

  lineage(task: string): Promise<Lineage> {
    return get(`${this.address}/lineage${words({ name: task })}`);
  }

  gantt(begin?: number, end?: number): Promise<Gantt> {
    return get(`${this.address}/gantt${words({ begin, end, limit: 2000 })}`);
  }

  /** All attempts, fetched page by page, for a download. */
  async attempts(progress: (so_far: number) => void): Promise<FullAttempt[]> {
    const all: FullAttempt[] = [];
    let after: number | null = 0;
    while (after !== null) {
      const page: { attempts: FullAttempt[]; after: number | null } = await get(
        `${this.address}/attempts${words({ after: after || null, limit: 1000 })}`,
      );
      all.push(...page.attempts);
      after = page.after;
      progress(all.length);
    }
    return all;
  }
}

export class Written implements Source {
  readonly live = false;

  constructor(private readonly page: Pick<RunPage, "dag" | "gantt" | "table" | "details">) {}

  async table(query: Query): Promise<Table> {
    return answer(this.page.table, query);
  }

  async detail(task: string): Promise<Detail> {
    const { columns, rows } = this.page.table;
    const row = rows.find((one) => one[columns.indexOf("task")] === task);
    const value = (name: string): Value => row?.[columns.indexOf(name)] ?? null;
    const why = value("why");
    return {
      ...EMPTY,
      task,
      kind: value("kind") as string | null,
      state: (value("state") ?? "") as Detail["state"],
      place: value("place") as number | null,
      why: why === null ? [] : [String(why)],
      attempts: value("began") === null ? [] : [attempt(value)],
      log: this.page.details[task]?.log ?? [],
      ...this.relatives(task),
    };
  }

  /** The relatives of a task, from the drawing; nothing if the drawing has groups. */
  private relatives(task: string): Partial<Detail> {
    const { dag } = this.page;
    const self = dag.aggregated ? null : nodeOf(dag, task);
    if (self === null) return {};
    const { above, below, path } = lineage(dag, self);
    const name = (node: number) => dag.nodes[node]?.tasks[0] ?? "";
    const known = (node: number): [string, State | ""] => [name(node), stateOf(dag.nodes[node]?.counts ?? {}) ?? ""];
    const parents = dag.arcs.filter(([, to]) => to === self).map(([from]) => known(from));
    const children = dag.arcs.filter(([from]) => from === self).map(([, to]) => known(to));
    return {
      parents: parents.slice(0, 50),
      parents_total: parents.length,
      children: children.slice(0, 50),
      children_total: children.length,
      above: above.length,
      below: below.length,
      path: { tasks: path.map(name).slice(0, 100), total: path.length, seconds: null },
    };
  }

  async dag(): Promise<Dag> {
    return this.page.dag;
  }

  async states(): Promise<null> {
    return null;
  }

  async lineage(task: string): Promise<Lineage | null> {
    const node = nodeOf(this.page.dag, task);
    return node === null ? null : lineage(this.page.dag, node);
  }

  async gantt(begin?: number, end?: number): Promise<Gantt> {
    const whole = this.page.gantt;
    const [from, to] = [begin ?? whole.begin, end ?? whole.end];
    return { ...whole, begin: from, end: to, bars: whole.bars.filter((bar) => bar[2] >= from && bar[1] <= to) };
  }
}

const EMPTY: Detail = {
  task: "",
  kind: null,
  state: "",
  command: "",
  place: null,
  why: [],
  parents: [],
  parents_total: 0,
  children: [],
  children_total: 0,
  above: null,
  below: null,
  path: null,
  attempts: [],
  log: [],
  inputs: [],
  outputs: [],
};

function attempt(value: (name: string) => Value): Attempt {
  const began = Number(value("began"));
  const took = value("took");
  return {
    attempt: Number(value("tries") ?? 1),
    client: String(value("client") ?? ""),
    began,
    ended: took === null ? null : began + Number(took),
    answer: String(value("state") ?? ""),
    failure: null,
    code: value("code") as number | null,
    memory: value("memory") as number | null,
  };
}
