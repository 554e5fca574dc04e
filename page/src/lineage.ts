// The ancestors and descendants of a node, from the drawing alone.
import type { Dag, Lineage } from "./documents";

function reach(start: number, next: number[][]): number[] {
  const found = new Set<number>([start]);
  const open = [start];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const other of next[at] ?? []) {
      if (found.has(other)) continue;
      found.add(other);
      open.push(other);
    }
  }
  found.delete(start);
  return [...found];
}

/** The longest path from a node along `next`, without the node itself. */
function longest(start: number, next: number[][]): number[] {
  const best = new Map<number, number>();
  const deepest = (node: number) => (next[node] ?? []).reduce((most, other) => Math.max(most, (best.get(other) ?? 0) + 1), 0);
  const open: [number, boolean][] = [[start, false]];
  const seen = new Set<number>();
  while (open.length) {
    const [node, ready] = open.pop()!;
    if (ready) best.set(node, deepest(node));
    else if (!seen.has(node)) {
      seen.add(node);
      open.push([node, true]);
      for (const other of next[node] ?? []) open.push([other, false]);
    }
  }
  const path: number[] = [];
  for (let at: number | undefined = start; at !== undefined; ) {
    const depth: number = best.get(at) ?? 0;
    at = depth ? (next[at] ?? []).find((other) => best.get(other) === depth - 1) : undefined;
    if (at !== undefined) path.push(at);
  }
  return path;
}

export function lineage(dag: Dag, self: number): Lineage {
  const up: number[][] = dag.nodes.map(() => []);
  const down: number[][] = dag.nodes.map(() => []);
  for (const [from, to] of dag.arcs) {
    down[from]?.push(to);
    up[to]?.push(from);
  }
  const path = [...longest(self, up).reverse(), self, ...longest(self, down)];
  return { above: reach(self, up), below: reach(self, down), self, path };
}

/** The node of a task; null if the task is one of many in a group. */
export function nodeOf(dag: Dag, task: string): number | null {
  return dag.nodes.find((node) => node.tasks.includes(task))?.id ?? null;
}
