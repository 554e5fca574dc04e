// The drawing of the dag, moved by pointer, fingers, wheel or keys.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Counts, Dag, DagNode, Lineage } from "../documents";
import { type Camera, centred, fit, moved, start, type Size, zoom } from "../camera";
import { colour, printing, theme } from "../theme";
import { many } from "../format";
import { draw, type Ink } from "./dag_draw";
import { described } from "./StateBar";

const NAMES = ["done", "running", "ready", "pending", "blocked", "again", "failed"];

function inks(): Ink {
  const ink: Ink = { ink: colour("ink"), ink2: colour("ink-2"), paper: colour("paper"), edge: colour("edge"), arc: colour("arc"), accent: colour("accent"), hatch: colour("hatch") };
  for (const name of NAMES) {
    ink[name] = colour(name);
    ink[`on-${name}`] = colour(`on-${name}`);
  }
  for (let at = 0; at < 8; at += 1) ink[`kind-${at}`] = colour(`kind-${at}`);
  return ink;
}

interface Words {
  dag: Dag;
  counts: Counts[];
  lineage: Lineage | null;
  chosen: (node: DagNode | null) => void;
  label: string;
  legend: ComponentChildren;
  children?: ComponentChildren;
}

/** The nearest node in one of the four directions; a node straight ahead is preferred to a closer one at the side. */
export function neighbour(dag: Dag, from: DagNode, key: string): DagNode | null {
  const [dx, dy] = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[key] ?? [0, 0];
  let best: DagNode | null = null;
  let least = Infinity;
  for (const node of dag.nodes) {
    const [x, y] = [node.x - from.x, node.y - from.y];
    const ahead = x * dx! + y * dy!;
    const aside = Math.abs(x * dy!) + Math.abs(y * dx!);
    if (ahead <= 1e-9 || ahead + 2 * aside >= least) continue;
    least = ahead + 2 * aside;
    best = node;
  }
  return best;
}

export function DagCanvas({ dag, counts, lineage, chosen, label, legend, children }: Words) {
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  const [camera, setCamera] = useState<Camera | null>(null);
  const [over, setOver] = useState<{ node: DagNode; x: number; y: number } | null>(null);
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const travelled = useRef(0);
  const look = `${theme.value} ${printing.value}`;

  useLayoutEffect(() => {
    const box = place.current!;
    const measure = () => setSize({ width: box.clientWidth, height: box.clientHeight });
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(box);
    return () => watch.disconnect();
  }, []);

  const shown = camera ?? start(dag, size);
  useLayoutEffect(() => {
    const pen = canvas.current?.getContext("2d");
    if (!pen || !size.width) return;
    const paper = printing.peek();
    const ratio = Math.max(paper ? 3 : 1, window.devicePixelRatio || 1);
    canvas.current!.width = Math.round(size.width * ratio);
    canvas.current!.height = Math.round(size.height * ratio);
    draw(pen, { dag, counts, lineage, camera: paper ? fit(dag, size) : shown, size, ink: inks(), paper }, ratio);
  }, [dag, counts, lineage, shown.scale, shown.x, shown.y, size, look]);

  const bigger = (factor: number, x = size.width / 2, y = size.height / 2) => setCamera((now) => zoom(now ?? start(dag, size), factor, x, y));
  const shift = (x: number, y: number) => setCamera((now) => moved(now ?? start(dag, size), x, y));
  const under = (event: PointerEvent): DagNode | null => {
    const bounds = canvas.current!.getBoundingClientRect();
    const x = (event.clientX - bounds.left - shown.x) / shown.scale;
    const y = (event.clientY - bounds.top - shown.y) / shown.scale;
    const slack = 3 / shown.scale;
    return dag.nodes.find((node) => Math.abs(node.x - x) <= node.w / 2 + slack && Math.abs(node.y - y) <= node.h / 2 + slack) ?? null;
  };

  const down = (event: PointerEvent) => {
    canvas.current!.setPointerCapture(event.pointerId);
    pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    travelled.current = 0;
    setOver(null);
  };
  const move = (event: PointerEvent) => {
    const before = pointers.current.get(event.pointerId);
    if (!before) {
      const node = under(event);
      const bounds = canvas.current!.getBoundingClientRect();
      canvas.current!.classList.toggle("over", node !== null);
      setOver(node && { node, x: event.clientX - bounds.left, y: event.clientY - bounds.top });
      return;
    }
    const [x, y] = [event.clientX - before.x, event.clientY - before.y];
    const others = [...pointers.current].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    const other = others[0];
    if (other) {
      const gap = (at: { x: number; y: number }) => Math.hypot(at.x - other.x, at.y - other.y) || 1;
      const bounds = canvas.current!.getBoundingClientRect();
      bigger(gap({ x: event.clientX, y: event.clientY }) / gap(before), (event.clientX + other.x) / 2 - bounds.left, (event.clientY + other.y) / 2 - bounds.top);
    } else {
      shift(x, y);
    }
    travelled.current += Math.abs(x) + Math.abs(y);
    pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
  };
  const up = (event: PointerEvent) => {
    const had = pointers.current.delete(event.pointerId);
    if (had && travelled.current < 5) chosen(under(event));
  };
  const wheel = (event: WheelEvent) => {
    // Scrolling the page past the drawing must not zoom it.
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas.current) return;
    event.preventDefault();
    const bounds = canvas.current!.getBoundingClientRect();
    bigger(Math.exp(-event.deltaY * 0.002), event.clientX - bounds.left, event.clientY - bounds.top);
  };
  useLayoutEffect(() => {
    const drawing = canvas.current!;
    drawing.addEventListener("wheel", wheel, { passive: false });
    return () => drawing.removeEventListener("wheel", wheel);
  });

  const walk = (key: string) => {
    const from = lineage ? dag.nodes[lineage.self] : undefined;
    const to = from ? neighbour(dag, from, key) : dag.nodes[0];
    if (!to) return;
    setCamera(centred(shown, to.x, to.y, size));
    chosen(to);
  };
  const press = (event: KeyboardEvent) => {
    const step = 60;
    const ways: Record<string, () => void> = { "+": () => bigger(1.3), "=": () => bigger(1.3), "-": () => bigger(1 / 1.3), "0": () => setCamera(fit(dag, size)) };
    for (const [key, x, y] of [["ArrowUp", 0, step], ["ArrowDown", 0, -step], ["ArrowLeft", step, 0], ["ArrowRight", -step, 0]] as const) {
      ways[key] = () => (event.shiftKey ? shift(x, y) : walk(key));
    }
    const way = ways[event.key];
    if (!way || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    way();
  };

  return (
    <>
    <div class="top">
      {legend}
      <div class="zoom" role="group" aria-label="Size of the drawing">
        <button type="button" aria-label="Larger" onClick={() => bigger(1.4)}>
          +
        </button>
        <button type="button" aria-label="Smaller" onClick={() => bigger(1 / 1.4)}>
          −
        </button>
        <button type="button" onClick={() => setCamera(fit(dag, size))}>
          Whole
        </button>
      </div>
    </div>
    <div class="dag-place" ref={place} style={{ height: `${Math.max(300, (size.width * dag.height) / (dag.width || 1) + 48)}px` }}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={label}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={up}
        onPointerLeave={() => setOver(null)}
        onKeyDown={press}
      />
      {over && (
        <div class="tip" style={{ left: `${Math.max(4, Math.min(over.x + 12, size.width - 270))}px`, top: `${over.y + 16}px` }}>
          <bdi class="short">{over.node.label || over.node.tasks[0]}</bdi>
          <span>{[over.node.count > 1 ? many(over.node.count, "task") : "", described(counts[over.node.id] ?? {})].filter(Boolean).join(": ") || dag.kinds[over.node.kind]}</span>
        </div>
      )}
      {children}
    </div>
    </>
  );
}
