// A made-up run, always the same: workers take tasks, and some fail; the documents of any moment are derived from it.

export const STATES = ["done", "running", "ready", "pending", "blocked", "retrying", "failed"];

export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state * 1664525 + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Layers of kinds; every task of a layer needs a few of the layer before. */
export function layered(layers, seed = 1) {
  const rand = random(seed);
  const tasks = [];
  let before = [];
  for (const { kind, count, needs, seconds, named } of layers) {
    const layer = [];
    for (let at = 0; at < count; at += 1) {
      const parents = new Set();
      if (needs === "all") for (const parent of before) parents.add(parent);
      else if (before.length) {
        const first = Math.floor((at * before.length) / count);
        for (let k = 0; k < needs; k += 1) parents.add(before[(first + k) % before.length]);
      }
      layer.push(tasks.length);
      tasks.push({
        name: named?.[at] ?? `${kind}-${String(at + 1).padStart(String(count).length, "0")}`,
        kind,
        parents: [...parents],
        children: [],
        seconds: seconds * (0.6 + 0.8 * rand()),
      });
    }
    before = layer;
  }
  tasks.forEach((task, at) => task.parents.forEach((parent) => tasks[parent].children.push(at)));
  return tasks;
}

/** Plays the run through: every attempt with its begin, end and how it ended. */
export function play(tasks, { workers, retries = 2, broken = [], poor = null, seed = 7, began = 0 }) {
  const rand = random(seed);
  const missing = tasks.map((task) => task.parents.length);
  const tries = tasks.map(() => 0);
  const ready = tasks.map((_, at) => at).filter((at) => !missing[at]);
  const free = workers.map((worker) => ({ worker, at: began }));
  const attempts = [];
  const busy = [];
  let now = began;
  const later = new Map();
  for (;;) {
    free.sort((first, second) => first.at - second.at);
    while (ready.length && free.length && free[0].at <= now) {
      const { worker } = free.shift();
      const task = ready.shift();
      tries[task] += 1;
      const bad = broken.includes(tasks[task].name) || (worker === poor && rand() < 0.9);
      const lost = !bad && rand() < 0.004;
      const took = tasks[task].seconds * (bad ? 0.3 : lost ? 3 : 1) * (0.9 + 0.2 * rand());
      const one = { task, worker, attempt: tries[task], began: now, ended: now + took, good: !bad && !lost, lost, broken: broken.includes(tasks[task].name) };
      attempts.push(one);
      busy.push(one);
    }
    if (!busy.length) break;
    busy.sort((first, second) => first.ended - second.ended);
    const one = busy.shift();
    now = one.ended;
    free.push({ worker: one.worker, at: now });
    if (one.good) {
      for (const child of tasks[one.task].children) {
        missing[child] -= 1;
        if (!missing[child]) ready.push(child);
      }
    } else if (tries[one.task] <= retries) {
      ready.push(one.task);
      later.set(one.task, true);
    }
    if (!ready.length && !busy.length) break;
  }
  return attempts.sort((first, second) => first.began - second.began);
}

/** The state of every task at a time. */
export function states(tasks, attempts, time, retries = 2) {
  const state = tasks.map(() => "pending");
  const good = tasks.map(() => false);
  const failures = tasks.map(() => 0);
  const running = new Set();
  for (const one of attempts) {
    if (one.began > time) continue;
    if (one.ended > time) running.add(one.task);
    else if (one.good) good[one.task] = true;
    else failures[one.task] += 1;
  }
  const dead = tasks.map(() => false);
  tasks.forEach((task, at) => {
    if (good[at]) state[at] = "done";
    else if (running.has(at)) state[at] = "running";
    else if (failures[at] > retries) {
      state[at] = "failed";
      dead[at] = true;
    } else if (failures[at]) state[at] = "retrying";
    else if (task.parents.some((parent) => dead[parent])) {
      state[at] = "blocked";
      dead[at] = true;
    } else if (task.parents.every((parent) => good[parent])) state[at] = "ready";
  });
  return state;
}

/** How many tasks are ready after each step when they are taken in some order of preference. */
export function readyCurve(tasks, preference) {
  const missing = tasks.map((task) => task.parents.length);
  const ready = tasks.map((_, at) => at).filter((at) => !missing[at]);
  const line = [ready.length];
  for (let step = 0; step < tasks.length; step += 1) {
    const at = preference(ready);
    const [task] = ready.splice(at, 1);
    for (const child of tasks[task].children) {
      missing[child] -= 1;
      if (!missing[child]) ready.push(child);
    }
    line.push(ready.length);
  }
  return line;
}
