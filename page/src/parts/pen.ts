// Helpers for all drawings on a canvas.

const tiles = new Map<string, HTMLCanvasElement>();

function tile(ink: string, gap: number, width: number): HTMLCanvasElement {
  const ratio = window.devicePixelRatio || 1;
  const key = `${ink} ${gap} ${width} ${ratio}`;
  const found = tiles.get(key);
  if (found) return found;
  const made = document.createElement("canvas");
  made.width = made.height = Math.round(gap * ratio);
  const pen = made.getContext("2d");
  if (pen) {
    pen.strokeStyle = ink;
    pen.lineWidth = width * ratio;
    const size = made.width;
    for (const shift of [-size, 0, size]) {
      pen.beginPath();
      pen.moveTo(shift, size);
      pen.lineTo(shift + size, 0);
      pen.stroke();
    }
  }
  tiles.set(key, made);
  return made;
}

/** A pattern of slanted lines in one colour: shading that is visible without colours, too. */
export function hatch(context: CanvasRenderingContext2D, ink: string, gap = 7, width = 1.5): CanvasPattern | string {
  return context.createPattern(tile(ink, gap, width), "repeat") ?? ink;
}

/** A text shortened in the middle so that it fits, because names often differ at their ends. Empty if nothing readable fits. */
export function cut(pen: CanvasRenderingContext2D, text: string, width: number): string {
  const whole = pen.measureText(text).width;
  if (whole <= width) return text;
  for (let kept = Math.floor((width / whole) * text.length); kept > 3; kept -= 1) {
    const front = Math.ceil(kept * 0.6);
    const short = `${text.slice(0, front)}…${text.slice(text.length - (kept - front))}`;
    if (pen.measureText(short).width <= width) return short;
  }
  return "";
}
