// The dag on a canvas: nodes at the places that the server computed, groups with a small bar of their states.
import { type Counts, type Dag, type DagArc, type DagNode, type Lineage, STATES, type State } from "../documents";
import type { Camera, Size } from "../camera";
import { number } from "../format";
import { count, slug, stateOf, total } from "../states";
import { cut, hatch } from "./pen";

export type Ink = Record<string, string>;

export interface Picture {
  dag: Dag;
  counts: Counts[];
  lineage: Lineage | null;
  camera: Camera;
  size: Size;
  ink: Ink;
  /** Print allows smaller text than a screen. */
  paper: boolean;
}

interface Marked {
  near: Set<number>;
  path: Set<string>;
}

const GLYPHS: Record<State, string> = { done: "✓", running: "▶", ready: "●", pending: "…", blocked: "⊘", retrying: "↻", failed: "✕" };

function marked(lineage: Lineage): Marked {
  const path = new Set(lineage.path.slice(1).map((node, at) => `${lineage.path[at]} ${node}`));
  return { near: new Set([...lineage.above, ...lineage.below, lineage.self, ...lineage.path]), path };
}

type Ends = [fromX: number, fromY: number, x: number, y: number];

/** Adds an arc to a path; returns the point from which it approaches its end. */
function trace(pen: CanvasPath, dag: Dag, [from, to, , bends]: DagArc): Ends {
  const [first, last] = [dag.nodes[from]!, dag.nodes[to]!];
  const points: [number, number][] = [[first.x, first.y + first.h / 2], ...bends, [last.x, last.y - last.h / 2]];
  pen.moveTo(...points[0]!);
  if (points.length === 2) {
    const middle = (points[0]![1] + points[1]![1]) / 2;
    pen.bezierCurveTo(points[0]![0], middle, points[1]![0], middle, ...points[1]!);
    return [points[1]![0], middle, ...points[1]!];
  }
  for (let at = 1; at < points.length - 1; at += 1) {
    const [[x, y], [nextX, nextY]] = [points[at]!, points[at + 1]!];
    const end = at === points.length - 2;
    pen.quadraticCurveTo(x, y, end ? nextX : (x + nextX) / 2, end ? nextY : (y + nextY) / 2);
  }
  return [...points[points.length - 2]!, ...points[points.length - 1]!];
}

function head(pen: CanvasPath, [fromX, fromY, x, y]: Ends, size: number): void {
  const angle = Math.atan2(y - fromY, x - fromX);
  pen.moveTo(x, y);
  pen.lineTo(x - size * Math.cos(angle - 0.4), y - size * Math.sin(angle - 0.4));
  pen.lineTo(x - size * Math.cos(angle + 0.4), y - size * Math.sin(angle + 0.4));
}

interface Traced {
  lines: Map<number, Path2D>;
  ends: Ends[];
}

const traced = new WeakMap<Dag, Traced>();
const width = (number: number): number => Math.min(4, 1 + Math.round(2 * Math.log10(number || 1)) / 2);

/** All arcs as a few paths, one for each width, so that many thousands can be drawn while the drawing is moved. */
function paths(dag: Dag): Traced {
  const known = traced.get(dag);
  if (known) return known;
  const made: Traced = { lines: new Map(), ends: [] };
  for (const arc of dag.arcs) {
    if (!dag.nodes[arc[0]] || !dag.nodes[arc[1]]) continue;
    const size = width(arc[2]);
    const path = made.lines.get(size) ?? new Path2D();
    made.lines.set(size, path);
    made.ends.push(trace(path, dag, arc));
  }
  traced.set(dag, made);
  return made;
}

function allArcs(pen: CanvasRenderingContext2D, { dag, camera, size, ink }: Picture): void {
  const unit = 1 / camera.scale;
  pen.strokeStyle = pen.fillStyle = ink.arc!;
  for (const [wide, path] of paths(dag).lines) {
    pen.lineWidth = wide * unit;
    pen.stroke(path);
  }
  if (camera.scale <= 0.35) return;
  pen.beginPath();
  for (const end of paths(dag).ends) {
    const [x, y] = [end[2] * camera.scale + camera.x, end[3] * camera.scale + camera.y];
    if (x > 0 && y > 0 && x < size.width && y < size.height + 9) head(pen, end, 7 * Math.max(unit, 0.6));
  }
  pen.fill();
}

function nearArcs(pen: CanvasRenderingContext2D, { dag, camera, ink }: Picture, marks: Marked): void {
  const unit = 1 / camera.scale;
  for (const arc of dag.arcs) {
    if (!marks.near.has(arc[0]) || !marks.near.has(arc[1])) continue;
    const onPath = marks.path.has(`${arc[0]} ${arc[1]}`);
    pen.strokeStyle = pen.fillStyle = onPath ? ink.accent! : ink.ink2!;
    pen.lineWidth = (onPath ? 3 : width(arc[2])) * unit;
    pen.beginPath();
    const end = trace(pen, dag, arc);
    pen.stroke();
    pen.beginPath();
    if (camera.scale > 0.35) head(pen, end, 7 * Math.max(unit, 0.6));
    pen.fill();
  }
}

function fill(pen: CanvasRenderingContext2D, state: State, ink: Ink, draw: () => void): void {
  pen.fillStyle = ink[slug[state]]!;
  draw();
  if (["blocked", "retrying", "failed"].includes(state)) {
    pen.fillStyle = hatch(pen, ink.hatch!, state === "blocked" ? 4 : 7);
    draw();
  }
}

function bar(pen: CanvasRenderingContext2D, counts: Counts, ink: Ink, x: number, y: number, width: number, height: number): void {
  const whole = total(counts);
  let at = x;
  for (const state of STATES) {
    const part = (width * count(counts, state)) / whole;
    if (!part) continue;
    const wide = Math.max(part, width * 0.02);
    fill(pen, state, ink, () => pen.fillRect(at, y, Math.min(wide, x + width - at), height));
    at += part;
  }
}

function node(pen: CanvasRenderingContext2D, one: DagNode, picture: Picture, faded: boolean): void {
  const { camera, ink, counts } = picture;
  const mine = counts[one.id] ?? one.counts;
  const state = one.count === 1 ? stateOf(mine) : null;
  const { x, y, w, h } = one;
  const self = picture.lineage?.self === one.id;
  const unit = 1 / camera.scale;
  pen.globalAlpha = faded ? 0.3 : 1;
  const shape = () => {
    pen.beginPath();
    pen.roundRect(x - w / 2, y - h / 2, w, h, Math.min(w, h) * 0.18);
  };
  const tiny = h * camera.scale < 9;
  shape();
  const loud = tiny || state === null ? null : state;
  pen.fillStyle = ink.paper!;
  pen.fill();
  if (tiny && total(mine)) {
    if (state) fill(pen, state, ink, () => pen.fill());
    else bar(pen, mine, ink, x - w / 2, y - h / 2, w, h);
  }
  pen.strokeStyle = self ? ink.ink! : loud ? ink[slug[loud]]! : ink.edge!;
  pen.lineWidth = (self ? 3 : 1.2) * unit;
  shape();
  pen.stroke();
  if (!tiny) inside(pen, one, picture, mine, state);
  pen.globalAlpha = 1;
}

function inside(pen: CanvasRenderingContext2D, one: DagNode, { camera, ink, dag, paper }: Picture, counts: Counts, state: State | null): void {
  const { x, y, w, h } = one;
  const left = x - w / 2;
  const group = one.count > 1;
  const edge = w < 1.8 * h ? w : Math.min(h * 0.58, w * 0.3);
  let from = left + h * 0.2;
  if (state) {
    pen.save();
    shapeLeft(pen, left, y - h / 2, edge, h);
    pen.clip();
    fill(pen, state, ink, () => pen.fillRect(left, y - h / 2, edge, h));
    pen.restore();
    glyph(pen, GLYPHS[state], left + edge / 2, y, Math.min(edge * 0.75, h * 0.6), ink[`on-${slug[state]}`] ?? ink.paper!);
    from = left + edge + h * 0.14;
  } else if (one.kind >= 0 && !total(counts)) {
    pen.fillStyle = ink[`kind-${one.kind % 8}`]!;
    shapeLeft(pen, left, y - h / 2, h * 0.3, h);
    pen.fill();
    from = left + h * 0.5;
  }
  const size = Math.min(h * (group || dag.aggregated ? 0.36 : 0.5), 15 / Math.min(1, camera.scale));
  if (size * camera.scale < (paper ? 4 : 6)) {
    if (group && total(counts)) bar(pen, counts, ink, left + h * 0.15, y - h * 0.3, w - h * 0.3, h * 0.6);
    return;
  }
  const middle = group && total(counts) ? y - h * 0.14 : y;
  pen.font = `${size}px system-ui, sans-serif`;
  pen.textBaseline = "middle";
  let room = left + w - from - h * 0.1;
  if (group) {
    const words = number(one.count);
    pen.textAlign = "right";
    pen.fillStyle = ink.ink2!;
    pen.fillText(words, left + w - h * 0.18, middle);
    room -= pen.measureText(words).width + h * 0.3;
  }
  pen.textAlign = "left";
  pen.fillStyle = ink.ink!;
  const name = one.label || one.tasks[0] || dag.kinds[one.kind] || "";
  // A name that fits in a slightly smaller size is not shortened.
  const squeeze = Math.max(0.78, Math.min(1, room / pen.measureText(name).width));
  pen.font = `${size * squeeze}px system-ui, sans-serif`;
  pen.fillText(cut(pen, name, room), from, middle);
  if (group && total(counts)) bar(pen, counts, ink, left + h * 0.18, y + h * 0.16, w - h * 0.36, h * 0.2);
}

function shapeLeft(pen: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
  pen.beginPath();
  pen.roundRect(x, y, w, h, [h * 0.18, 0, 0, h * 0.18]);
}

function glyph(pen: CanvasRenderingContext2D, text: string, x: number, y: number, size: number, ink: string): void {
  pen.font = `bold ${size}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = ink;
  pen.fillText(text, x, y);
}

export function draw(pen: CanvasRenderingContext2D, picture: Picture, ratio: number): void {
  const { camera, size, dag, lineage } = picture;
  const marks = lineage ? marked(lineage) : null;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, size.width, size.height);
  pen.setTransform(ratio * camera.scale, 0, 0, ratio * camera.scale, ratio * camera.x, ratio * camera.y);
  pen.globalAlpha = marks ? 0.25 : 1;
  allArcs(pen, picture);
  pen.globalAlpha = 1;
  if (marks) nearArcs(pen, picture, marks);
  for (const one of dag.nodes) {
    const x = one.x * camera.scale + camera.x;
    const y = one.y * camera.scale + camera.y;
    const [w, h] = [one.w * camera.scale, one.h * camera.scale];
    if (x + w < 0 || y + h < 0 || x - w > size.width || y - h > size.height) continue;
    node(pen, one, picture, marks !== null && !marks.near.has(one.id));
  }
}
