// Documents as the server provides them, from made-up runs: a small one with failures, a large one, a plan, and a report.
import { layered, play, random, readyCurve, states, STATES } from "./simulation.mjs";

export const SCRIPT = "<script>alert(1)</script>";
export const LONG = `align_${"very_long_sample_name_".repeat(9)}end`;
export const RTL = "עיבוד-דגימה-שלוש";
const BEGAN = 1_790_000_000;

const counted = (list) => Object.fromEntries(STATES.map((state) => [state, list.filter((one) => one === state).length]));

export function small() {
  const tasks = layered(
    [
      { kind: "fetch", count: 8, needs: 0, seconds: 12, named: [SCRIPT, LONG, RTL] },
      { kind: "align", count: 16, needs: 1, seconds: 30 },
      { kind: "merge", count: 8, needs: 2, seconds: 20 },
      { kind: "call", count: 8, needs: 1, seconds: 25 },
      { kind: "annotate", count: 4, needs: 2, seconds: 9 },
      { kind: "report", count: 1, needs: "all", seconds: 8 },
    ],
    3,
  );
  const workers = ["ann", "ben", "cho", "dee"];
  return flow("w-1", "survey", tasks, workers, { broken: ["merge-3"], poor: "dee", retries: 2 });
}

export function large() {
  const tasks = layered(
    [
      { kind: "split", count: 400, needs: 0, seconds: 20 },
      { kind: "project", count: 4200, needs: 1, seconds: 40 },
      { kind: "difference", count: 4200, needs: 2, seconds: 25 },
      { kind: "fit", count: 1100, needs: 4, seconds: 15 },
      { kind: "background", count: 90, needs: 12, seconds: 60 },
      { kind: "mosaic", count: 9, needs: 10, seconds: 90 },
      { kind: "shrink", count: 1, needs: "all", seconds: 30 },
    ],
    5,
  );
  const workers = Array.from({ length: 16 }, (_, at) => `node-${String(at + 1).padStart(2, "0")}`);
  return flow("w-2", "mosaic of the sky", tasks, workers, { broken: ["project-0100", "project-2107", "fit-0017"], poor: "node-04", retries: 2 });
}

function flow(id, title, tasks, workers, { broken, poor, retries }) {
  const attempts = play(tasks, { workers, broken, poor, retries, began: BEGAN });
  const end = Math.max(...attempts.map((one) => one.ended));
  const depth = tasks.map(() => 0);
  for (let at = tasks.length - 1; at >= 0; at -= 1) depth[at] = Math.max(0, ...tasks[at].children.map((child) => depth[child] + 1)) + tasks[at].children.length / 100;
  const order = tasks.map((_, at) => at).sort((first, second) => depth[second] - depth[first]);
  const place = [];
  order.forEach((task, at) => (place[task] = at + 1));
  const plan = readyCurve(tasks, () => 0);
  const fifo = plan.map((value, at) => Math.round(value * (0.72 + 0.16 * Math.sin(at / (tasks.length / 9)))));
  const curves = { plan, fifo };
  return { id, title, tasks, workers, attempts, began: BEGAN, end, retries, poor, place, curves };
}

function sample(line, columns) {
  const each = Math.max(1, Math.ceil(line.length / columns));
  const result = { y: [], least: [], most: [] };
  for (let at = 0; at < line.length; at += each) {
    const part = line.slice(at, at + each);
    result.y.push(part.reduce((sum, value) => sum + value, 0) / part.length);
    result.least.push(Math.min(...part));
    result.most.push(Math.max(...part));
  }
  return { each, ...(each === 1 ? { y: line, least: null, most: null } : result) };
}

const average = (line) => line.reduce((sum, value) => sum + value, 0) / (line.length || 1);

function curveOf(run, done) {
  const rand = random(11);
  const seen = run.curves.plan.slice(0, done + 1).map((value, at) => Math.max(0, Math.round(value * (0.86 + 0.2 * rand()) - (at % 17 === 3 ? 2 : 0))));
  const bound = run.curves.plan.map((value, at) => Math.max(value, run.curves.fifo[at]) + (at ? Math.min(3, at) : 0) * (value ? 1 : 0));
  const columns = 600;
  const { each, ...plan } = sample(run.curves.plan, columns);
  const line = (values) => {
    const { each: _, ...rest } = sample(values, Math.ceil(values.length / each));
    return rest;
  };
  const total = run.tasks.length;
  const starved = done > total * 0.55 ? [[Math.round(total * 0.5), Math.round(total * 0.54)]] : [];
  return {
    steps: plan.y.map((_, at) => at * each),
    lines: { seen: line(seen), plan, bound: line(bound), fifo: line(run.curves.fifo) },
    starved,
    averages: { seen: average(seen), plan: average(run.curves.plan), bound: average(bound), fifo: average(run.curves.fifo) },
    sampled: each > 1,
    remark: "",
  };
}

const TAIL = ["reading raw/sample_17.fits", "warning: header has no WCS, trying again without it", "Traceback (most recent call last):", '  File "merge.py", line 88, in combine', "ValueError: tiles do not overlap: 0 of 214 pixels"];

function clientsOf(run, time, list) {
  const names = run.workers;
  return names
    .map((name, at) => {
      const mine = run.attempts.filter((one) => one.worker === name && one.began <= time);
      const ended = mine.filter((one) => one.ended <= time);
      const holds = mine.filter((one) => one.ended > time);
      const failed = ended.filter((one) => !one.good && !one.lost).length;
      const done = ended.filter((one) => one.good).length;
      const bad = name === run.poor;
      const gone = at === names.length - 2 && time < run.end;
      return {
        client: `c-${at + 1}`,
        name,
        seen: gone ? time - 412 : time - (at % 5) * 1.7,
        alive: !gone,
        approved: !(run.id === "w-1" && at === 2),
        speed: bad ? null : 0.8 + 0.09 * at,
        quota: bad ? 1 : null,
        done,
        failed,
        lost: ended.filter((one) => one.lost).length,
        paused: 0,
        held: holds.length,
        holds: holds.slice(0, 20).map((one) => ({ task: list[one.task].name, since: one.began, attempt: one.attempt })),
        bad,
        remark: bad ? `fails nearly everything: ${failed} of its ${ended.length} attempts, while others fail 2 of 100` : gone ? "has not been seen for 6 min 52 s" : "",
      };
    })
    .sort((first, second) => Number(second.bad) - Number(first.bad));
}

function failuresOf(run, time, state) {
  const groups = new Map();
  run.attempts.forEach((one) => {
    if (one.good || one.lost || one.ended > time || state[one.task] !== "failed") return;
    const cause = one.broken ? "exit code 3" : "exit code 127: command not found";
    const group = groups.get(cause) ?? { cause, found: new Set(), clients: new Map() };
    group.found.add(run.tasks[one.task].name);
    group.clients.set(one.worker, (group.clients.get(one.worker) ?? 0) + 1);
    groups.set(cause, group);
  });
  return [...groups.values()].map(({ cause, found, clients }) => ({
    cause,
    count: found.size,
    tasks: [...found].slice(0, 10),
    tail: cause.includes("127") ? ["/bin/sh: 1: mProject: not found"] : TAIL,
    clients: [...clients].sort((first, second) => second[1] - first[1]),
  }));
}

/** The view of a run as it was at a time. */
export function viewOf(run, time = run.end) {
  const over = time >= run.end;
  const now = Math.min(time, run.end);
  const state = states(run.tasks, run.attempts, now, run.retries);
  const counts = counted(state);
  const going = run.attempts.filter((one) => one.began <= now && one.ended > now);
  const ended = run.attempts.filter((one) => one.ended <= now).sort((first, second) => first.ended - second.ended);
  const failures = failuresOf(run, now, state);
  const left = over ? 0 : run.end - now;
  return {
    kind: "run",
    workflow: run.id,
    title: run.title,
    state: over ? (counts.failed ? "failed" : "done") : "running",
    source: "server",
    now,
    began: run.began,
    ended: over ? run.end : null,
    seconds: now - run.began,
    policy: "finish",
    tasks: run.tasks.length,
    arcs: run.tasks.reduce((sum, task) => sum + task.children.length, 0),
    counts,
    rate: over ? 0 : ended.length / Math.max(1, now - run.began),
    left: over ? null : [left * 0.85, left * 1.2],
    workers: run.workers.length,
    busy: 0.93,
    attempts: ended.length,
    lost: ended.filter((one) => one.lost).length,
    repeated: run.attempts.filter((one) => one.attempt > 1 && one.began <= now).length,
    saved: 3.2e9,
    curve: curveOf(run, counts.done),
    clients: clientsOf(run, now, run.tasks),
    failures,
    failures_total: counts.failed,
    running: going
      .sort((first, second) => first.began - second.began)
      .slice(0, 100)
      .map((one) => ({ task: run.tasks[one.task].name, client: one.worker, since: one.began, attempt: one.attempt, kind: run.tasks[one.task].kind, expected: run.tasks[one.task].seconds })),
    recent: ended
      .slice(-20)
      .reverse()
      .map((one) => ({ task: run.tasks[one.task].name, client: one.worker, ended: one.ended, took: one.ended - one.began, failure: one.good ? null : one.lost ? "lost: the worker did not come back" : "exit code 3" })),
    order: {
      words: [
        "First come, first served would have starved workers 14 times; this order did so once.",
        "No order could have ended more than 2 min earlier: the longest path alone takes 81 % of the time.",
      ],
    },
    can: { cancel: !over, retry: true, release: !over, approve: true },
  };
}

const COLUMNS = ["place", "task", "kind", "state", "client", "began", "took", "expected", "tries", "code", "memory"];

export function tableOf(run, time = run.end) {
  const state = states(run.tasks, run.attempts, time, run.retries);
  const last = new Map();
  for (const one of run.attempts) if (one.began <= time) last.set(one.task, one);
  const rows = run.tasks.map((task, at) => {
    const one = last.get(at);
    const over = one && one.ended <= time;
    return [run.place[at], task.name, task.kind, state[at], one?.worker ?? null, one?.began ?? null, over ? one.ended - one.began : null, task.seconds, one?.attempt ?? 0, over ? (one.good ? 0 : 3) : null, over ? Math.round(2e8 + 1e7 * at) : null];
  });
  return { total: rows.length, tasks: rows.length, columns: COLUMNS, rows };
}

export function detailOf(run, name, time = run.end) {
  const at = run.tasks.findIndex((task) => task.name === name);
  if (at < 0) return null;
  const task = run.tasks[at];
  const state = states(run.tasks, run.attempts, time, run.retries);
  const mine = run.attempts.filter((one) => one.task === at && one.began <= time);
  const pairs = (list) => list.slice(0, 50).map((other) => [run.tasks[other].name, state[other]]);
  const reach = (next) => {
    const found = new Set();
    const open = [at];
    while (open.length) for (const other of next(run.tasks[open.pop()])) if (!found.has(other) && found.add(other)) open.push(other);
    return found.size;
  };
  const path = [at];
  while (run.tasks[path[0]].parents.length) path.unshift(run.tasks[path[0]].parents[0]);
  while (run.tasks[path[path.length - 1]].children.length) path.push(run.tasks[path[path.length - 1]].children[0]);
  const failed = mine.some((one) => !one.good && one.ended <= time);
  return {
    task: name,
    kind: task.kind,
    state: state[at],
    command: `python ${task.kind}.py --in raw/${task.kind}.fits --out made/${task.kind}_${at}.fits --threads 2`,
    place: run.place[at],
    why: ["It makes 2 tasks ready, more than any other that is ready at this point.", "Among those it begins the longest path, which decides when the run can end."],
    parents: pairs(task.parents),
    parents_total: task.parents.length,
    children: pairs(task.children),
    children_total: task.children.length,
    above: reach((one) => one.parents),
    below: reach((one) => one.children),
    path: { tasks: path.map((one) => run.tasks[one].name).slice(0, 100), total: path.length, seconds: path.reduce((sum, one) => sum + run.tasks[one].seconds, 0) },
    attempts: mine.map((one) => ({
      attempt: one.attempt, client: one.worker, began: one.began, ended: one.ended <= time ? one.ended : null,
      answer: one.ended > time ? "running" : one.good ? "done" : "failed", failure: one.ended <= time && !one.good ? "exit code 3" : null, code: one.ended <= time ? (one.good ? 0 : 3) : null, memory: 2.1e8,
    })),
    log: failed ? TAIL : ["reading 4 files", "writing made/part.fits", "done in 12.4 s"],
    inputs: [`raw/${task.kind}.fits`],
    outputs: [`made/${task.kind}_${at}.fits`],
  };
}

export function dagOf(run, time = run.end) {
  const state = states(run.tasks, run.attempts, time, run.retries);
  const kinds = [...new Set(run.tasks.map((task) => task.kind))];
  return run.tasks.length > 500 ? groups(run, state, kinds) : singles(run, state, kinds);
}

function singles(run, state, kinds) {
  const [w, h, gapX, gapY] = [84, 22, 14, 40];
  const rows = kinds.map((kind) => run.tasks.map((_, at) => at).filter((at) => run.tasks[at].kind === kind));
  const width = Math.max(...rows.map((row) => row.length)) * (w + gapX);
  const nodes = run.tasks.map((task, id) => {
    const row = rows[kinds.indexOf(task.kind)];
    const x = width / 2 + (row.indexOf(id) - (row.length - 1) / 2) * (w + gapX);
    return { id, label: task.name, kind: kinds.indexOf(task.kind), x, y: h / 2 + kinds.indexOf(task.kind) * (h + gapY), w, h, count: 1, tasks: [task.name], counts: { [state[id]]: 1 } };
  });
  const arcs = run.tasks.flatMap((task, at) => task.children.map((child) => [at, child, 1, []]));
  return { aggregated: false, tasks: run.tasks.length, width, height: kinds.length * (h + gapY) - gapY, kinds, nodes, arcs };
}

function groups(run, state, kinds) {
  const [w, h, gapX, gapY, parts] = [120, 22, 26, 40, 4];
  const where = new Map();
  const nodes = [];
  kinds.forEach((kind, row) => {
    const all = run.tasks.map((_, at) => at).filter((at) => run.tasks[at].kind === kind);
    const pieces = Math.min(parts, all.length);
    for (let piece = 0; piece < pieces; piece += 1) {
      const mine = all.slice(Math.floor((piece * all.length) / pieces), Math.floor(((piece + 1) * all.length) / pieces));
      const id = nodes.length;
      mine.forEach((task) => where.set(task, id));
      nodes.push({ id, label: kind, kind: row, x: (parts * (w + gapX)) / 2 + (piece - (pieces - 1) / 2) * (w + gapX), y: h / 2 + row * (h + gapY), w, h, count: mine.length, tasks: mine.slice(0, 10).map((task) => run.tasks[task].name), counts: counted(mine.map((task) => state[task])) });
    }
  });
  const arcs = new Map();
  run.tasks.forEach((task, at) => task.children.forEach((child) => {
    const key = `${where.get(at)} ${where.get(child)}`;
    arcs.set(key, (arcs.get(key) ?? 0) + 1);
  }));
  return { aggregated: true, tasks: run.tasks.length, width: parts * (w + gapX), height: kinds.length * (h + gapY) - gapY, kinds, nodes, arcs: [...arcs].map(([key, count]) => [...key.split(" ").map(Number), count, []]), where };
}

export function lineageOf(run, name, time = run.end) {
  const dag = dagOf(run, time);
  const at = run.tasks.findIndex((task) => task.name === name);
  if (at < 0) return null;
  const self = dag.where?.get(at) ?? at;
  const walk = (from, to) => {
    const found = new Set();
    const open = [self];
    while (open.length) {
      const node = open.pop();
      for (const arc of dag.arcs) if (arc[from] === node && !found.has(arc[to]) && found.add(arc[to])) open.push(arc[to]);
    }
    return [...found];
  };
  const path = [self];
  for (let arc = dag.arcs.find((one) => one[1] === path[0]); arc; arc = dag.arcs.find((one) => one[1] === path[0])) path.unshift(arc[0]);
  for (let arc = dag.arcs.find((one) => one[0] === path.at(-1)); arc; arc = dag.arcs.find((one) => one[0] === path.at(-1))) path.push(arc[1]);
  return { above: walk(1, 0), below: walk(0, 1), self, path };
}

export function ganttOf(run, time = run.end, begin = run.began, end = Math.min(time, run.end), limit = 2000) {
  const kinds = [...new Set(run.tasks.map((task) => task.kind))];
  const shown = run.attempts.filter((one) => one.began <= Math.min(time, end) && one.ended >= begin);
  const each = Math.ceil(shown.length / limit);
  const bars = [];
  run.workers.forEach((name, worker) => {
    const mine = shown.filter((one) => one.worker === name);
    for (let at = 0; at < mine.length; at += each) {
      const part = mine.slice(at, at + each);
      const last = Math.min(part.at(-1).ended, time);
      bars.push([worker, part[0].began, last, kinds.indexOf(run.tasks[part[0].task].kind), 3 * Number(part.some((one) => !one.good && one.ended <= time)), part.length, run.tasks[part[0].task].name]);
    }
  });
  const workers = run.workers.map((name, at) => ({ name, busy: 0.7 + 0.018 * (at % 16) }));
  return { begin, end, workers, kinds, bars, attempts: shown.length, merged: each > 1 ? shown.length : 0 };
}

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 180" width="640" height="360"><rect width="320" height="180" fill="#fff"/><path d="M20 160C90 20 150 150 300 30" fill="none" stroke="#0072b2" stroke-width="3"/><text x="20" y="20" font-size="12">profile</text></svg>';

export function runPage(run) {
  const view = viewOf(run);
  const failed = tableOf(run).rows.filter((row) => row[3] === "failed");
  const { where: _, ...dag } = dagOf(run);
  return { kind: "run", view: { ...view, source: "run" }, dag, gantt: ganttOf(run), table: tableOf(run), details: Object.fromEntries(failed.map((row) => [row[1], { log: TAIL }])) };
}

export function planPage(run) {
  const { where: _, ...dag } = dagOf(run);
  const curve = curveOf(run, 0);
  return {
    kind: "plan",
    title: "survey.yaml",
    headline: ["On average 34 % more tasks are ready than first come, first served.", "This order is proved to be the best there is: no order has more ready tasks at any step."],
    facts: [["gain", "34 %"], ["tasks", run.tasks.length], ["arcs", dag.arcs.length], ["longest path", "6 tasks"], ["verdict", "optimal"], ["planned in", "4 ms"]],
    words: ["The workflow is made of 8 small parts that hang together in a row.", "Parts that make many tasks ready go first; within each, sources whose children are shared go together."],
    curve: { ...curve, lines: { ...curve.lines, seen: null }, averages: { ...curve.averages, seen: null }, starved: [] },
    dag: { ...dag, nodes: dag.nodes.map((node) => ({ ...node, counts: {} })) },
    figures: [{ title: "The profile", svg: SVG, alt: "A curve that rises, falls, and rises again." }, { title: "The super-dag", svg: SVG, alt: "Eight parts in a row." }],
    table: {
      columns: ["place", "task", "kind", "why", "seconds"],
      rows: run.tasks.map((task, at) => [run.place[at], task.name, task.kind, at % 3 ? "completes a part that has started" : "makes 2 tasks ready, more than any other", task.seconds]),
    },
  };
}

export function reportPage() {
  return {
    kind: "report",
    title: "Comparison of policies",
    headline: ["eligo's order ends 12 % earlier than first come, first served, on average over 60 games.", "In 4 of 5 workflows the difference is larger than chance."],
    facts: [["workflows", 5], ["games", 60], ["seed", 42], ["workers", "4 to 64"]],
    sections: [
      {
        title: "Who ends first",
        words: ["Each number is the mean of 60 games; the best of each row is marked."],
        tables: [{
          caption: "Mean time to the end, in seconds",
          columns: ["workflow", "tasks", "first come", "critical path", "eligo", "agrees"],
          numbers: [false, true, true, true, true, false],
          rows: [
            ["airsn", 773, 812.4, 760.2, { text: "701.9", mark: "best" }, { text: "as published", mark: "yes" }],
            ["inspiral", 2988, 2210.7, { text: "1990.1", mark: "best" }, 1995.3, { text: "0.3 % off", mark: "why" }],
            ["montage", 7881, 4021.0, 3890.5, { text: "3511.2", mark: "best" }, { text: "as published", mark: "yes" }],
            ["sdss", 48013, 20110, 19872, { text: "17023", mark: "best" }, { text: "differs", mark: "no" }],
            [SCRIPT, 12, null, null, null, null],
          ],
        }],
        figures: [{ title: "Mean ratio", svg: SVG, alt: "The ratio falls below one for all but one workflow." }],
      },
      { title: "How it was measured", words: ["Workers come and go; each game is played with the same numbers for every policy, so that luck is the same for all."], tables: [], figures: [] },
    ],
  };
}

/** A run that has not started: everything that can be missing is missing. */
export function emptyPage() {
  const nothing = { steps: [0], lines: { seen: { y: [0], least: null, most: null }, plan: null, bound: null, fifo: { y: [0], least: null, most: null } }, starved: [], averages: { seen: 0, plan: null, bound: null, fifo: 0 }, sampled: false, remark: "nothing has been done yet" };
  const view = {
    kind: "run", workflow: "w-9", title: "nothing yet", state: "stopped", source: "run", now: BEGAN, began: BEGAN, ended: null, seconds: 0, policy: "finish", tasks: 0, arcs: 0,
    counts: counted([]), rate: 0, left: null, workers: 0, busy: null, attempts: 0, lost: 0, repeated: 0, saved: 0, curve: nothing, clients: [], failures: [], failures_total: 0,
    running: [], recent: [], order: { words: [] }, can: { cancel: false, retry: false, release: false, approve: false },
  };
  return {
    kind: "run", view, dag: { aggregated: false, tasks: 0, width: 0, height: 0, kinds: [], nodes: [], arcs: [] },
    gantt: { begin: BEGAN, end: BEGAN, workers: [], kinds: [], bars: [], attempts: 0, merged: 0 }, table: { total: 0, tasks: 0, columns: COLUMNS, rows: [] }, details: {},
  };
}
