/** The pad to draw on: by finger, mouse or pen, and by keyboard. */

import { h } from "../parts/dom.ts";
import { Signal } from "../parts/signal.ts";
import { color, themeChanged } from "../parts/theme_switch.ts";
import { trace } from "./pixels.ts";
import { DIGITS, type Point, type Stroke } from "./strokes.ts";

const SIZE = 320;
/** How far a key moves the brush. */
const KEY_STEP = 0.04;

export class Pad {
  readonly changed = new Signal();
  readonly element: HTMLCanvasElement;
  strokes: Stroke[] = [];
  #open: Point[] | undefined;
  #brush: Point = [0.5, 0.3];
  #keys = false;

  constructor() {
    this.element = h("canvas", { class: "pad", width: SIZE * 2, height: SIZE * 2, tabindex: 0, role: "img", "aria-label": "Drawing pad. A digit's key draws that digit. Arrow keys move a brush, Space puts it down and lifts it, Backspace clears." });
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      this.#keys = false;
      this.#begin(this.#at(event));
    });
    this.element.addEventListener("pointermove", (event) => {
      if (!this.#open || this.#keys) return;
      for (const one of event.getCoalescedEvents?.() ?? [event]) this.#open.push(this.#at(one));
      this.#paint();
      this.changed.emit();
    });
    const end = (): void => {
      if (!this.#keys) this.#open = undefined;
    };
    this.element.addEventListener("pointerup", end);
    this.element.addEventListener("pointercancel", end);
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("blur", () => {
      this.#keys = false;
      this.#open = undefined;
      this.#paint();
    });
    themeChanged.subscribe(() => this.#paint());
    this.#paint();
  }

  clear(): void {
    this.strokes = [];
    this.#open = undefined;
    this.#paint();
    this.changed.emit();
  }

  /** Draws a digit as a person might. */
  put(digit: number): void {
    this.strokes = [...(DIGITS[digit] ?? [])];
    this.#open = undefined;
    this.#paint();
    this.changed.emit();
  }

  #at(event: PointerEvent): Point {
    const box = this.element.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  #begin(at: Point): void {
    this.#open = [at];
    this.strokes.push(this.#open);
    this.#paint();
    this.changed.emit();
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    if (dx || dy) {
      this.#brush = [clamp(this.#brush[0] + dx! * KEY_STEP), clamp(this.#brush[1] + dy! * KEY_STEP)];
      if (this.#keys && this.#open) {
        this.#open.push(this.#brush);
        this.changed.emit();
      }
    } else if (event.key === " ") {
      if (this.#keys && this.#open) this.#open = undefined;
      else {
        this.#keys = true;
        this.#begin(this.#brush);
      }
    } else if (event.key === "Backspace" || event.key === "Delete") {
      this.clear();
    } else if (/^\d$/.test(event.key)) {
      this.put(Number(event.key));
    } else {
      return;
    }
    event.preventDefault();
    this.#paint();
  }

  #paint(): void {
    const pen = this.element.getContext("2d");
    if (!pen) return;
    const size = this.element.width;
    pen.clearRect(0, 0, size, size);
    const place = ([x, y]: Point): [number, number] => [x * size, y * size];
    if (this.strokes.length === 0) {
      pen.fillStyle = color("--muted");
      pen.font = `${size / 22}px system-ui, sans-serif`;
      pen.textAlign = "center";
      pen.fillText("Draw a digit here", size / 2, size / 2);
    }
    pen.strokeStyle = color("--ink");
    pen.lineCap = pen.lineJoin = "round";
    pen.lineWidth = size / 14;
    for (const stroke of this.strokes) trace(pen, stroke, place);
    if (document.activeElement === this.element && this.element.matches(":focus-visible")) {
      pen.strokeStyle = color("--accent");
      pen.lineWidth = 3;
      pen.beginPath();
      pen.arc(this.#brush[0] * size, this.#brush[1] * size, size / 28, 0, 7);
      pen.stroke();
    }
  }
}

function clamp(x: number): number {
  return Math.min(0.96, Math.max(0.04, x));
}
