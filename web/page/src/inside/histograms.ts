/** Weights and gradients as histograms over time: a column of every picture is one look at the tensor. */

import type { Histogram, WeightSummary } from "volta-ml";
import { fill, h, setText } from "../parts/dom.ts";
import { Choice } from "../parts/choice.ts";
import { digits, short } from "../parts/format.ts";
import { color } from "../parts/theme_switch.ts";
import type { Session } from "../runs/session.ts";
import type { Panel } from "./view.ts";

/** Looks that are kept, and the least time between two, in milliseconds. */
const MAX_LOOKS = 120;
const LOOK_EVERY_MS = 1500;
const WIDTH = 240;
const HEIGHT = 72;

interface Looks {
  steps: number[];
  summaries: Map<string, { shape: number[]; weights: Histogram[]; gradients: (Histogram | undefined)[] }>;
}

const kept = new WeakMap<Session, Looks>();

export function histogramPanel(): Panel {
  let what: "weights" | "gradients" = "weights";
  let session: Session | undefined;
  let asking = false, lastStep = -1, lastTime = 0, lastRun: unknown;
  const choice = new Choice("What", [{ value: "weights", label: "Weights" }, { value: "gradients", label: "Gradients" }], what, (value) => {
    what = value as "weights";
    show();
  });
  const about = h("p", { class: "about" });
  const grid = h("div", { class: "histograms" });
  const element = h("section", { class: "card card-wide" }, h("div", { class: "card-head" }, h("h2", {}, "Weights and gradients"), choice.element), about, grid);
  const show = (): void => {
    const looks = session && kept.get(session);
    setText(about, looks ? `Every tensor's values over ${looks.steps.length} ${looks.steps.length === 1 ? "look" : "looks"}, from step ${short(looks.steps[0] ?? 0)} to ${short(looks.steps.at(-1) ?? 0)}; looked at while this view is open.` : "Histograms are collected while this view is open and a run is open.");
    if (!looks) return fill(grid);
    fill(grid, ...[...looks.summaries].map(([name, one]) => picture(name, one.shape, what === "weights" ? one.weights : one.gradients)));
  };
  const look = async (): Promise<void> => {
    const of = session, run = of?.run;
    if (!of || !run || asking) return;
    const due = of.step !== lastStep || run !== lastRun;
    if (!due || performance.now() - lastTime < LOOK_EVERY_MS) return;
    asking = true;
    try {
      const step = of.step;
      keep(of, step, await run.weights());
      lastStep = step;
      lastRun = run;
    } catch {
      // The run ended meanwhile, which its own view tells.
    } finally {
      asking = false;
      lastTime = performance.now();
    }
    if (of === session) show();
  };
  return {
    element,
    update(now) {
      if (now !== session) {
        session = now;
        lastStep = -1;
        lastTime = 0;
        show();
      }
      void look();
    },
  };
}

function keep(session: Session, step: number, summaries: WeightSummary[]): void {
  const looks: Looks = kept.get(session) ?? { steps: [], summaries: new Map() };
  kept.set(session, looks);
  looks.steps.push(step);
  const trim = <T>(list: T[]): T[] => (list.length > MAX_LOOKS ? list.filter((_, i) => i % 2 === 0 || i === list.length - 1) : list);
  for (const { name, shape, histogram, gradient } of summaries) {
    const one = looks.summaries.get(name) ?? { shape, weights: [], gradients: [] };
    one.weights = trim([...one.weights, histogram]);
    one.gradients = trim([...one.gradients, gradient]);
    looks.summaries.set(name, one);
  }
  looks.steps = trim(looks.steps);
}

function picture(name: string, shape: number[], histograms: readonly (Histogram | undefined)[]): HTMLElement {
  const last = histograms.at(-1);
  const canvas = h("canvas", { width: WIDTH * 2, height: HEIGHT * 2, role: "img", "aria-label": last ? `${name}: mean ${digits(last.mean)}, standard deviation ${digits(last.std)}` : `${name}: none` });
  const present = histograms.filter((one): one is Histogram => one !== undefined);
  if (present.length > 0) draw(canvas, present);
  return h(
    "figure", { class: "histogram" },
    h("figcaption", {}, h("b", { title: name }, name), h("span", {}, shape.join(" × "))),
    last ? canvas : h("p", { class: "empty" }, "no gradient yet"),
    last ? h("p", { class: "histogram-facts" }, `${digits(last.mean, 2)} ± ${digits(last.std, 2)}`) : null,
  );
}

/** Time to the right, values upwards, as much ink as there are values; at the right the last one as an outline. */
function draw(canvas: HTMLCanvasElement, histograms: readonly Histogram[]): void {
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const low = Math.min(...histograms.map(({ min }) => min)), high = Math.max(...histograms.map(({ max }) => max));
  const span = high - low || 1;
  const outline = canvas.width * 0.26;
  const width = (canvas.width - outline - 8) / Math.max(histograms.length, 8);
  const y = (value: number): number => canvas.height * (1 - (value - low) / span);
  pen.fillStyle = color("--accent");
  histograms.forEach(({ min, max, counts }, i) => {
    const most = counts.reduce((a, b) => Math.max(a, b), 1), bin = (max - min) / counts.length;
    counts.forEach((count, b) => {
      if (count === 0) return;
      pen.globalAlpha = 0.06 + 0.94 * Math.sqrt(count / most);
      const top = y(min + (b + 1) * bin), bottom = y(min + b * bin);
      pen.fillRect(i * width, top, Math.ceil(width), Math.max(1, bottom - top));
    });
  });
  const last = histograms[histograms.length - 1];
  if (!last) return;
  const most = last.counts.reduce((a, b) => Math.max(a, b), 1), bin = (last.max - last.min) / last.counts.length;
  pen.globalAlpha = 0.85;
  last.counts.forEach((count, b) => {
    const top = y(last.min + (b + 1) * bin), bottom = y(last.min + b * bin);
    pen.fillRect(canvas.width - outline, top, (outline * count) / most, Math.max(1, bottom - top - 0.5));
  });
  pen.globalAlpha = 0.5;
  if (low < 0 && high > 0) {
    pen.fillStyle = color("--muted");
    pen.fillRect(0, y(0), canvas.width, 1);
  }
}
