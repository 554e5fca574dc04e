// The visible part of a drawing, and its scale.
export interface Camera {
  scale: number;
  x: number;
  y: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Fits the whole drawing into the window; small drawings are not enlarged. */
export function fit(drawing: Size, window: Size, margin = 16): Camera {
  const scale = Math.min(1.6, (window.width - 2 * margin) / (drawing.width || 1), (window.height - 2 * margin) / (drawing.height || 1));
  const safe = Math.max(scale, 1e-6);
  return { scale: safe, x: (window.width - drawing.width * safe) / 2, y: (window.height - drawing.height * safe) / 2 };
}

const LEGIBLE = 0.75;

/** The first view of a drawing: the whole of it, or if it is too deep to be read then, its upper part. */
export function start(drawing: Size, window: Size, margin = 16): Camera {
  const whole = fit(drawing, window, margin);
  const scale = Math.min(LEGIBLE, (window.width - 2 * margin) / (drawing.width || 1));
  if (whole.scale >= scale || scale < LEGIBLE) return whole;
  return { scale, x: (window.width - drawing.width * scale) / 2, y: margin };
}

/** Zooms, while the point (x, y) of the window stays where it is. */
export function zoom(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = Math.min(8, Math.max(0.002, camera.scale * factor));
  const change = scale / camera.scale;
  return { scale, x: x - (x - camera.x) * change, y: y - (y - camera.y) * change };
}

export const moved = (camera: Camera, x: number, y: number): Camera => ({ ...camera, x: camera.x + x, y: camera.y + y });

/** The same scale, with a point of the drawing in the middle of the window. */
export function centred(camera: Camera, x: number, y: number, window: Size): Camera {
  return { ...camera, x: window.width / 2 - x * camera.scale, y: window.height / 2 - y * camera.scale };
}
