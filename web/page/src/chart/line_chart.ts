/** Curves over steps on a canvas: several runs, decimated to the pixels, with a cross-hair for pointer and keyboard. */

import { h, setText } from "../parts/dom.ts";
import { compact, digits, short } from "../parts/format.ts";
import { announce } from "../parts/notice.ts";
import { eachFrame } from "../parts/signal.ts";
import { color, themeChanged } from "../parts/theme_switch.ts";
import { decimate, firstAtLeast, smooth } from "./decimate.ts";
import { linear, logarithmic, type Scale } from "./scale.ts";

export interface Series {
  label: string;
  /** A variable of the style sheet. */
  color: string;
  x: Float64Array;
  y: Float64Array;
  dashed?: boolean;
  /** Whether smoothing is for it. */
  noisy?: boolean;
  width?: number;
  /** What is drawn into few points. */
  dots?: boolean;
}

export interface ChartOptions {
  title: string;
  /** How a value is written, with its unit. */
  format?: (value: number) => string;
  height: number;
  /** How a tick of the axis is written; a shorter form. */
  tick?: (value: number) => string;
  /** The axis begins at 0. */
  fromZero?: boolean;
  atMost?: number;
}

const MARGIN = { top: 10, right: 12, bottom: 22, left: 46 };

export class LineChart {
  readonly element: HTMLElement;
  smoothing = 0;
  log = false;
  #canvas: HTMLCanvasElement;
  #readout: HTMLElement;
  #series: Series[] = [];
  #at: number | undefined;
  #draw = eachFrame(() => this.#paint());
  #x: Scale = linear(0, 1, 1);
  #width = 0;

  constructor(readonly options: ChartOptions, ...controls: HTMLElement[]) {
    this.#canvas = h("canvas", { role: "img", tabindex: 0, "aria-label": options.title });
    this.#canvas.style.height = `${options.height}px`;
    this.#readout = h("p", { class: "chart-readout" });
    this.element = h(
      "section", { class: "chart" },
      h("div", { class: "chart-head" }, h("h3", {}, options.title), this.#readout, ...controls),
      this.#canvas,
    );
    this.#canvas.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.#canvas.addEventListener("pointerleave", () => this.#unpoint());
    this.#canvas.addEventListener("blur", () => this.#unpoint());
    this.#canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#draw()).observe(this.#canvas);
    themeChanged.subscribe(() => this.#draw());
  }

  show(series: Series[]): void {
    this.#series = series.filter(({ x }) => x.length > 0);
    this.#draw();
  }

  redraw(): void {
    this.#draw();
  }

  #point(offset: number): void {
    const share = (offset - MARGIN.left) / (this.#width - MARGIN.left - MARGIN.right);
    this.#at = this.#x.low + Math.min(1, Math.max(0, share)) * (this.#x.high - this.#x.low);
    this.#draw();
  }

  #unpoint(): void {
    this.#at = undefined;
    this.#draw();
  }

  #key(event: KeyboardEvent): void {
    const step = (this.#x.high - this.#x.low) / 50;
    const now = this.#at ?? this.#x.high;
    const moved = { ArrowLeft: now - step, ArrowRight: now + step, Home: this.#x.low, End: this.#x.high }[event.key];
    if (moved === undefined) return;
    event.preventDefault();
    this.#at = Math.min(this.#x.high, Math.max(this.#x.low, moved));
    this.#draw();
    announce(this.#tell(this.#at));
  }

  #format(value: number): string {
    return (this.options.format ?? digits)(value);
  }

  /** The values at a step, in words. */
  #tell(at: number): string {
    const values = this.#series.map((series) => `${series.label} ${this.#format(nearest(series, at).y)}`);
    return `Step ${short(Math.round(at))}: ${values.join(", ")}`;
  }

  #paint(): void {
    const canvas = this.#canvas;
    const width = canvas.clientWidth, height = this.options.height, ratio = devicePixelRatio || 1;
    if (width === 0) return;
    this.#width = width;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    if (!pen) return;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const lines = this.#series.map((series) => {
      const y = series.noisy && this.smoothing > 0 ? smooth(series.y, this.smoothing) : series.y;
      return { series, y };
    });
    const plotWidth = width - MARGIN.left - MARGIN.right, plotHeight = height - MARGIN.top - MARGIN.bottom;
    const { x, y: yScale } = this.#scales(plotWidth, plotHeight);
    this.#x = x;
    const px = (value: number): number => MARGIN.left + x.at(value) * plotWidth;
    const py = (value: number): number => MARGIN.top + (1 - yScale.at(value)) * plotHeight;
    this.#axes(pen, x, yScale, px, py, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(MARGIN.left - 1, 0, plotWidth + 2, height - MARGIN.bottom + 2);
    pen.clip();
    for (const { series, y } of lines) {
      const smoothed = series.noisy && this.smoothing > 0;
      if (smoothed) this.#line(pen, series, series.y, px, py, plotWidth, 0.22, 1);
      this.#line(pen, series, y, px, py, plotWidth, 1, series.width ?? 1.75);
    }
    if (this.#at !== undefined) this.#cross(pen, this.#at, px, py, height);
    pen.restore();
    this.#read();
    canvas.setAttribute("aria-label", this.#series.length ? `${this.options.title}. ${this.#tell(x.high)}. Arrow keys read other steps.` : `${this.options.title}: nothing measured yet`);
  }

  #scales(plotWidth: number, plotHeight: number): { x: Scale; y: Scale } {
    let xLow = Infinity, xHigh = -Infinity;
    const values: number[] = [];
    for (const { x, y } of this.#series) {
      xLow = Math.min(xLow, x[0] ?? Infinity);
      xHigh = Math.max(xHigh, x[x.length - 1] ?? -Infinity);
      let low = Infinity, high = -Infinity;
      for (let i = 0; i < y.length; i++) {
        const value = y[i] as number;
        if (value < low && (!this.log || value > 0)) low = value;
        if (value > high && value !== Infinity) high = value;
      }
      if (low <= high) values.push(low, high);
    }
    if (!(xLow <= xHigh)) [xLow, xHigh] = [0, 100];
    if (xHigh - xLow < 10) xHigh = xLow + 10;
    let low = values.length ? Math.min(...values) : 0, high = values.length ? Math.max(...values) : 1;
    const room = (high - low) * 0.06;
    if (this.options.fromZero) low = 0;
    else if (!this.log) low = low >= 0 ? Math.max(0, low - room) : low - room;
    high = Math.min(this.options.atMost ?? Infinity, high + room);
    const x = linear(Math.max(0, xLow <= 1 ? 0 : xLow), xHigh, Math.max(2, plotWidth / 90));
    return { x, y: this.log ? logarithmic(low, high) : linear(low, high, Math.max(2, plotHeight / 40)) };
  }

  #axes(pen: CanvasRenderingContext2D, x: Scale, y: Scale, px: (v: number) => number, py: (v: number) => number, width: number, height: number): void {
    pen.font = `11px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
    pen.fillStyle = color("--muted");
    pen.strokeStyle = color("--grid");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of y.ticks) {
      const at = Math.round(py(tick)) + 0.5;
      pen.beginPath();
      pen.moveTo(MARGIN.left, at);
      pen.lineTo(width - MARGIN.right, at);
      pen.stroke();
      pen.fillText((this.options.tick ?? plain)(tick), MARGIN.left - 8, at);
    }
    pen.textBaseline = "alphabetic";
    pen.textAlign = "center";
    for (const tick of x.ticks) {
      const at = px(tick);
      if (at > width - 8) continue;
      pen.fillText(compact(tick), at, height - 5);
    }
  }

  #line(pen: CanvasRenderingContext2D, series: Series, y: Float64Array, px: (v: number) => number, py: (v: number) => number, columns: number, alpha: number, width: number): void {
    const kept = decimate(series.x, y, this.#x.low, this.#x.high, columns);
    pen.globalAlpha = alpha;
    pen.strokeStyle = color(series.color);
    pen.lineWidth = width;
    pen.lineJoin = "round";
    pen.setLineDash(series.dashed ? [5, 4] : []);
    pen.beginPath();
    for (const i of kept) {
      const left = px(series.x[i] as number), top = py(y[i] as number);
      pen.lineTo(left, top);
    }
    pen.stroke();
    pen.setLineDash([]);
    const few = kept.length <= 60 && (series.dots || kept.length === 1);
    if (few) {
      pen.fillStyle = color(series.color);
      for (const i of kept) {
        pen.beginPath();
        pen.arc(px(series.x[i] as number), py(y[i] as number), 2.4, 0, 7);
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
  }

  #cross(pen: CanvasRenderingContext2D, at: number, px: (v: number) => number, py: (v: number) => number, height: number): void {
    pen.strokeStyle = color("--muted");
    pen.globalAlpha = 0.6;
    pen.beginPath();
    pen.moveTo(px(at), MARGIN.top);
    pen.lineTo(px(at), height - MARGIN.bottom);
    pen.stroke();
    pen.globalAlpha = 1;
    for (const series of this.#series) {
      const point = nearest(series, at);
      if (Number.isNaN(point.y)) continue;
      pen.fillStyle = color(series.color);
      pen.strokeStyle = color("--surface");
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(px(point.x), py(point.y), 4, 0, 7);
      pen.fill();
      pen.stroke();
    }
  }

  /** The values under the cross-hair, else the newest ones. */
  #read(): void {
    const at = this.#at;
    if (this.#series.length === 0) return setText(this.#readout, "");
    this.#readout.replaceChildren();
    if (at !== undefined) this.#readout.append(h("span", { class: "readout-step" }, `step ${short(Math.round(at))}`));
    for (const series of this.#series.slice(0, 6)) {
      const { y } = nearest(series, at ?? Infinity);
      if (Number.isNaN(y)) continue;
      const swatch = h("i", { class: series.dashed ? "swatch swatch-dashed" : "swatch" });
      swatch.style.setProperty("--swatch", `var(${series.color})`);
      this.#readout.append(h("span", { class: "readout-item" }, swatch, h("span", { class: "readout-label" }, series.label), h("b", {}, this.#format(y))));
    }
  }
}

/** A round number without the zeros at its end. */
function plain(value: number): string {
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

/** The last measured point that is not after a step. */
function nearest({ x, y }: Series, at: number): { x: number; y: number } {
  let i = Math.min(firstAtLeast(x, at), x.length - 1);
  if ((x[i] as number) > at) i--;
  while (i > 0 && Number.isNaN(y[i])) i--;
  const first = Math.max(i, 0);
  return { x: x[first] ?? NaN, y: y[first] ?? NaN };
}
