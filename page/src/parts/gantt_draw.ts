// The timeline on a canvas: a row for each worker, a bar for each attempt, or one for several that are too thin to distinguish.
import { MARK, type Gantt } from "../documents";
import { length } from "../format";
import { across, type Layout, marks } from "../gantt";
import { colour } from "../theme";
import { cut, hatch } from "./pen";

const FONT = "12px system-ui, sans-serif";

function axis(pen: CanvasRenderingContext2D, at: Layout, began: number): void {
  pen.font = FONT;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  for (const time of marks(at, began)) {
    const x = Math.round(across(at, began + time)) + 0.5;
    pen.strokeStyle = colour("grid");
    pen.beginPath();
    pen.moveTo(x, at.top - 6);
    pen.lineTo(x, at.height - 6);
    pen.stroke();
    pen.fillStyle = colour("ink-2");
    const words = length(time);
    const half = pen.measureText(words).width / 2;
    pen.fillText(words, Math.min(Math.max(x, at.left + half - 8), at.width - half - 2), 10);
  }
}

function names(pen: CanvasRenderingContext2D, gantt: Gantt, at: Layout): void {
  pen.font = FONT;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const every = Math.ceil(14 / at.row);
  gantt.workers.forEach(({ name }, place) => {
    const y = at.top + place * at.row;
    if (place % 2 === 0) {
      pen.fillStyle = colour("stripe");
      pen.fillRect(at.left, y, at.width - at.left - 8, at.row);
    }
    if (place % every) return;
    pen.fillStyle = colour("ink");
    pen.fillText(cut(pen, name, at.left - 14), at.left - 8, y + at.row / 2);
  });
}

function bars(pen: CanvasRenderingContext2D, gantt: Gantt, at: Layout): void {
  const kinds = Array.from({ length: 8 }, (_, place) => colour(`kind-${place}`));
  const [failed, lost, paper] = [colour("failed"), colour("again"), colour("paper")];
  const crossed = hatch(pen, colour("hatch"), 6);
  const merged = hatch(pen, colour("hatch-soft"), 4, 1);
  const gap = Math.min(4, at.row * 0.18);
  pen.save();
  pen.beginPath();
  pen.rect(at.left, 0, at.width - at.left - 8, at.height);
  pen.clip();
  for (const [worker, began, ended, kind, mark, count, task] of gantt.bars) {
    const bad = mark >= MARK.lost;
    const x = across(at, began);
    const width = Math.max(1, across(at, ended) - x);
    const y = at.top + worker * at.row + gap;
    const height = at.row - 2 * gap;
    pen.fillStyle = mark === MARK.failed ? failed : bad ? lost : kinds[Math.max(0, kind) % 8]!;
    pen.fillRect(x, y, width, height);
    if (width > 2 && (bad || count > 1)) {
      pen.fillStyle = bad ? crossed : merged;
      pen.fillRect(x, y, width, height);
    }
    if (width > 4) {
      pen.strokeStyle = paper;
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y, width - 0.5, height);
    }
    if (mark === MARK.running) open(pen, x + width, y, height);
    if (bad && width > 10 && height > 8 ) (mark === MARK.failed ? cross : query)(pen, x + width / 2, y + height / 2, Math.min(5, height / 3), paper);
    else if (!bad && count === 1 && width > 48 && height > 12) named(pen, task, x, y + height / 2, width, kind);
  }
  pen.restore();
}

/** The critical path: its attempts outlined, each joined with the end that it waited for. */
function path(pen: CanvasRenderingContext2D, gantt: Gantt, at: Layout): void {
  pen.save();
  pen.beginPath();
  pen.rect(at.left, 0, at.width - at.left - 8, at.height);
  pen.clip();
  pen.strokeStyle = colour("ink");
  pen.lineWidth = 2;
  let before: [x: number, y: number] | null = null;
  for (const [lane, began, ended] of gantt.path ?? []) {
    const x = across(at, began);
    const top = at.top + lane * at.row + Math.min(4, at.row * 0.18);
    const height = at.row - 2 * Math.min(4, at.row * 0.18);
    pen.strokeRect(x, top, Math.max(1, across(at, ended) - x), height);
    if (before) {
      pen.beginPath();
      pen.moveTo(...before);
      pen.lineTo(x, top + height / 2);
      pen.stroke();
    }
    before = [across(at, ended), top + height / 2];
  }
  pen.restore();
}

function named(pen: CanvasRenderingContext2D, task: string, x: number, y: number, width: number, kind: number): void {
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "left";
  pen.fillStyle = [0, 7].includes(Math.max(0, kind) % 8) ? "#fff" : "#0c1722";
  // A shortened name would be useless; the reader points at a short bar to see its name.
  const words = width > 90 || pen.measureText(task).width <= width - 10 ? cut(pen, task, width - 10) : "";
  if (words) pen.fillText(words, x + 6, y + 0.5);
}

/** The open end of an attempt that is under way. */
function open(pen: CanvasRenderingContext2D, x: number, y: number, height: number): void {
  pen.fillStyle = colour("paper");
  const teeth = Math.max(2, Math.round(height / 6));
  for (let tooth = 0; tooth < teeth; tooth += 1) {
    pen.beginPath();
    pen.moveTo(x + 1, y + (tooth * height) / teeth);
    pen.lineTo(x - 4, y + ((tooth + 0.5) * height) / teeth);
    pen.lineTo(x + 1, y + ((tooth + 1) * height) / teeth);
    pen.fill();
  }
}

/** The sign of a lost attempt, of which no end is known. */
function query(pen: CanvasRenderingContext2D, x: number, y: number, size: number, ink: string): void {
  pen.font = `bold ${Math.round(2.4 * size)}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.fillStyle = ink;
  pen.fillText("?", x, y + 0.5);
}

function cross(pen: CanvasRenderingContext2D, x: number, y: number, size: number, ink: string): void {
  pen.strokeStyle = ink;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(x - size, y - size);
  pen.lineTo(x + size, y + size);
  pen.moveTo(x + size, y - size);
  pen.lineTo(x - size, y + size);
  pen.stroke();
}

export function draw(pen: CanvasRenderingContext2D, gantt: Gantt, at: Layout, began: number, ratio: number): void {
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, at.width, at.height);
  names(pen, gantt, at);
  axis(pen, at, began);
  bars(pen, gantt, at);
  path(pen, gantt, at);
}
