/** Strokes as the 28 by 28 pixels that the network sees: fitted into the middle as MNIST's are, whatever their place and size. */

import type { Point, Stroke } from "./strokes.ts";

export const SIDE = 28;
/** The longer side of the digit, in pixels, as in MNIST. */
const BOX = 20;
/** Each pixel is a mean of so many by so many. */
const FINE = 4;

const canvas = document.createElement("canvas");
canvas.width = canvas.height = SIDE * FINE;
const pen = canvas.getContext("2d", { willReadFrequently: true });

/** Ink from 0 to 1, row by row; nothing where nothing is drawn. */
export function rasterize(strokes: readonly Stroke[]): Float32Array | undefined {
  const points = strokes.flat();
  if (points.length === 0 || !pen) return undefined;
  const [left, right] = extent(points, 0);
  const [top, bottom] = extent(points, 1);
  const scale = (BOX * FINE) / Math.max(right - left, bottom - top, 0.08);
  const middle = (SIDE * FINE) / 2;
  const place = ([x, y]: Point): [number, number] => [middle + (x - (left + right) / 2) * scale, middle + (y - (top + bottom) / 2) * scale];
  pen.fillStyle = "#000";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.strokeStyle = "#fff";
  pen.lineWidth = 2.4 * FINE;
  pen.lineCap = pen.lineJoin = "round";
  for (const stroke of strokes) trace(pen, stroke, place);
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  const pixels = new Float32Array(SIDE * SIDE);
  for (let y = 0; y < SIDE * FINE; y++) {
    for (let x = 0; x < SIDE * FINE; x++) {
      const at = ((y / FINE) | 0) * SIDE + ((x / FINE) | 0);
      pixels[at] = (pixels[at] ?? 0) + (data[4 * (y * SIDE * FINE + x)] ?? 0) / (255 * FINE * FINE);
    }
  }
  return pixels;
}

function extent(points: readonly Point[], axis: 0 | 1): [number, number] {
  const values = points.map((point) => point[axis]);
  return [Math.min(...values), Math.max(...values)];
}

/** Draws a stroke; a point alone is a dot. */
export function trace(pen: CanvasRenderingContext2D, stroke: Stroke, place: (point: Point) => [number, number]): void {
  const [first, ...rest] = stroke;
  if (!first) return;
  pen.beginPath();
  pen.moveTo(...place(first));
  if (rest.length === 0) pen.lineTo(...place(first));
  for (const point of rest) pen.lineTo(...place(point));
  pen.stroke();
}
