// The drawing of the timeline: drag to zoom, point at a bar to read it, click it to open its task.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Bar, Gantt } from "../documents";
import { length, number } from "../format";
import { barAt, layout, timeAt } from "../gantt";
import { printing, theme } from "../theme";
import { draw } from "./gantt_draw";

interface Words {
  gantt: Gantt;
  began: number;
  label: string;
  zoomed: (begin: number, end: number) => void;
  chosen: (task: string) => void;
  whole: () => void;
}

const WORDS = ["", "running", "lost with its worker", "failed"];

function Tip({ bar, gantt, x, y }: { bar: Bar; gantt: Gantt; x: number; y: number }) {
  const [worker, began, ended, kind, mark, count, task] = bar;
  return (
    <div class="tip" style={{ left: `${x}px`, top: `${y}px` }}>
      <bdi class="short">{count > 1 ? `${number(count)} attempts, the first: ${task}` : task}</bdi>
      <span>
        {gantt.workers[worker]?.name}
        {gantt.kinds[kind] ? `, ${gantt.kinds[kind]}` : ""}, {length(ended - began)}
        {mark ? `, ${count > 1 ? "some " : ""}${WORDS[mark]}` : ""}
      </span>
    </div>
  );
}

export function GanttCanvas({ gantt, began, label, zoomed, chosen, whole }: Words) {
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [over, setOver] = useState<{ bar: Bar; x: number; y: number } | null>(null);
  const at = layout(gantt, width);
  const look = `${theme.value} ${printing.value}`;

  useLayoutEffect(() => {
    const measure = () => setWidth(place.current!.clientWidth);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(place.current!);
    return () => watch.disconnect();
  }, []);

  useLayoutEffect(() => {
    const pen = canvas.current?.getContext("2d");
    if (!pen || !width) return;
    const ratio = Math.max(printing.peek() ? 2 : 1, window.devicePixelRatio || 1);
    canvas.current!.width = Math.round(width * ratio);
    canvas.current!.height = Math.round(at.height * ratio);
    canvas.current!.style.height = `${at.height}px`;
    draw(pen, gantt, at, began, ratio);
  }, [gantt, width, look, began]);

  const point = (event: PointerEvent): [number, number] => {
    const bounds = canvas.current!.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };
  const inside = (x: number) => Math.min(Math.max(x, at.left), at.width - 8);
  const move = (event: PointerEvent) => {
    const [x, y] = point(event);
    if (drag) {
      setDrag([drag[0], inside(x)]);
      return;
    }
    const bar = barAt(gantt, at, x, y);
    setOver(bar ? { bar, x: Math.max(4, Math.min(x + 12, width - 270)), y: y + 16 } : null);
  };
  const up = (event: PointerEvent) => {
    if (!drag) return;
    const [from, to] = [...drag].sort((first, second) => first - second) as [number, number];
    setDrag(null);
    if (to - from > 6) {
      zoomed(timeAt(at, from), timeAt(at, to));
      return;
    }
    const bar = barAt(gantt, at, ...point(event));
    if (bar) chosen(bar[6]);
  };
  const press = (event: KeyboardEvent) => {
    const span = at.end - at.begin;
    const ways: Record<string, [number, number]> = {
      "+": [at.begin + span / 4, at.end - span / 4],
      "=": [at.begin + span / 4, at.end - span / 4],
      "-": [at.begin - span / 2, at.end + span / 2],
      ArrowLeft: [at.begin - span / 4, at.end - span / 4],
      ArrowRight: [at.begin + span / 4, at.end + span / 4],
    };
    const way = ways[event.key];
    if (!way && event.key !== "0") return;
    event.preventDefault();
    if (way) zoomed(...way);
    else whole();
  };
  return (
    <div class="gantt-place" ref={place}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={label}
        onPointerDown={(event) => {
          const [x] = point(event);
          canvas.current!.setPointerCapture(event.pointerId);
          setOver(null);
          if (x >= at.left) setDrag([x, x]);
        }}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => setOver(null)}
        onDblClick={whole}
        onKeyDown={press}
      />
      {drag && <div class="selected" style={{ left: `${Math.min(...drag)}px`, width: `${Math.abs(drag[1] - drag[0])}px` }} />}
      {over && <Tip gantt={gantt} {...over} />}
    </div>
  );
}
