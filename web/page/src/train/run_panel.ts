/** The run that is looked at: its name and status, buttons, numbers, curves and samples. */

import type { AdapterInfo } from "volta-ml";
import type { App } from "../app.ts";
import { LineChart, type Series } from "../chart/line_chart.ts";
import { h, setText } from "../parts/dom.ts";
import { ago, bytes, compact, digits, duration, loss, milliseconds, percent, short, whole } from "../parts/format.ts";
import type { Column } from "../runs/history.ts";
import type { Session } from "../runs/session.ts";
import { rememberSpeed } from "../runs/speed.ts";
import { controls } from "./controls.ts";
import { runList } from "./run_list.ts";
import { samplesPanel } from "./samples.ts";
import { statusWord, stepText } from "./status.ts";

interface Stat {
  label: string;
  value: (session: Session) => string;
  title?: (session: Session) => string;
}

/** Of the last steps, so that it is calm. */
function recent(session: Session, column: Column, count = 20): number {
  const values = session.history.column(column);
  const last = [...values.subarray(Math.max(0, values.length - count))].filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  return last[last.length >> 1] ?? NaN;
}

const STATS: readonly Stat[] = [
  { label: "Step", value: stepText },
  { label: "Loss", value: (s) => loss(s.history.last("loss")) },
  { label: "Validation", value: (s) => loss(s.history.last("validation")) },
  { label: "Accuracy", value: (s) => (s.kind === "digits" ? percent(s.history.last("accuracy")) : "") },
  { label: "Tokens / s", value: (s) => (s.kind === "language" ? rate(s) : "") },
  { label: "Images / s", value: (s) => (s.kind === "digits" ? rate(s) : "") },
  { label: "A step", value: (s) => milliseconds(recent(s, "milliseconds")) },
  { label: "Time left", value: timeLeft },
  { label: "Memory", value: (s) => (s.history.length && s.isLive ? bytes(s.history.last("bytes")) : "–"), title: (s) => (s.info ? `At most ${bytes(s.info.peakBytes)} in a step` : "") },
  { label: "Parameters", value: (s) => (s.info ? short(s.info.parameters) : "–"), title: (s) => (s.info ? whole(s.info.parameters) : "") },
  { label: "Runs on", value: (s) => (s.info ? runsOn(s.info.adapter) : "–"), title: (s) => (s.info ? `${s.info.adapter.name}, ${s.info.adapter.backend}` : "") },
  { label: "Kept", value: (s) => (s.stored && s.store ? `step ${short(s.stored.step)}` : "not yet"), title: (s) => (s.stored ? `${bytes(s.stored.bytes)}, ${ago(s.stored.time)}` : "") },
];

/** The device, and its name where that says more. */
function runsOn({ device, name }: AdapterInfo): string {
  return device === "gpu" && name.toUpperCase() !== "GPU" ? `GPU · ${name}` : device.toUpperCase();
}

function rate(session: Session): string {
  return session.history.length ? short(recent(session, "rate")) : "–";
}

function timeLeft(session: Session): string {
  if (session.status === "finished" || session.step >= session.steps) return "done";
  const ms = recent(session, "milliseconds");
  return Number.isNaN(ms) || !session.isLive ? "–" : duration(((session.steps - session.step) * ms) / 1000);
}

const SMOOTHING = [{ label: "Raw", weight: 0 }, { label: "Smooth", weight: 0.9 }, { label: "Smoother", weight: 0.98 }];

export function runPanel(app: App): { element: HTMLElement; update(): void } {
  const title = h("h2", { class: "run-name" });
  const swatch = h("i", { class: "swatch swatch-large" });
  const status = h("span", { class: "status" });
  const bar = h("div", { class: "progress", role: "progressbar", "aria-label": "Steps done", "aria-valuemin": 0, "aria-valuemax": 100 }, h("i"));
  const buttons = controls(app);
  const stats = STATS.map((stat) => ({ ...stat, dd: h("dd", {}, "–"), box: h("div") }));
  for (const stat of stats) stat.box.append(h("dt", {}, stat.label), stat.dd);
  const smoothing = h("select", { "aria-label": "Smoothing", class: "small-select" }, ...SMOOTHING.map(({ label }, i) => h("option", { value: i }, label)));
  const log = h("select", { "aria-label": "Scale of the losses", class: "small-select" }, h("option", { value: "" }, "Linear"), h("option", { value: "log" }, "Log"));
  const curves = new LineChart({ title: "Loss", height: 280, format: (value) => digits(value, 3) }, smoothing, log);
  const accuracy = new LineChart({ title: "Accuracy", height: 150, format: percent, tick: (value) => `${Number((100 * value).toPrecision(3))} %`, atMost: 1 });
  const speed = new LineChart({ title: "Speed, a second", height: 150, format: short, tick: compact, fromZero: true });
  const rates = new LineChart({ title: "Learning rate", height: 150, fromZero: true });
  const norms = new LineChart({ title: "Gradient norm", height: 150, fromZero: true });
  smoothing.addEventListener("change", () => {
    curves.smoothing = SMOOTHING[Number(smoothing.value)]?.weight ?? 0;
    curves.redraw();
  });
  log.addEventListener("change", () => {
    curves.log = log.value === "log";
    curves.redraw();
  });
  const runs = runList(app);
  const samples = samplesPanel();
  const failure = h("p", { class: "failure" });
  const element = h(
    "section", { class: "run", "aria-labelledby": "run-title" },
    h("header", { class: "run-head" }, h("div", { class: "run-title", id: "run-title" }, swatch, title, status), buttons.element),
    bar, failure,
    h("dl", { class: "stats" }, ...stats.map(({ box }) => box)),
    curves.element,
    runs.element,
    h("div", { class: "chart-row" }, accuracy.element, speed.element, rates.element, norms.element),
    samples.element,
  );
  let remembered = 0;
  return {
    element,
    update() {
      const session = app.registry.selected;
      if (!session) return;
      setText(title, session.name);
      swatch.style.setProperty("--swatch", `var(--run-${session.color})`);
      setText(status, statusWord(session));
      status.dataset.status = session.status;
      const done = Math.min(1, session.step / Math.max(1, session.steps));
      (bar.firstElementChild as HTMLElement).style.transform = `scaleX(${done})`;
      bar.style.setProperty("--swatch", `var(--run-${session.color})`);
      bar.setAttribute("aria-valuenow", String(Math.round(100 * done)));
      setText(failure, session.failure ?? "");
      buttons.update(session);
      for (const { dd, value, title: hint, box } of stats) {
        const text = value(session);
        box.hidden = text === "";
        setText(dd, text);
        if (hint) box.title = hint(session);
      }
      const shown = app.registry.sessions.filter((other) => other === session || other.visible);
      curves.show(shown.flatMap((one) => lossSeries(one, shown.length > 1)));
      accuracy.element.hidden = !shown.some((one) => one.kind === "digits");
      accuracy.show(shown.filter((one) => one.kind === "digits").map((one) => series(one, "accuracy", { dots: true })));
      speed.show(shown.map((one) => series(one, "rate")));
      rates.show(shown.map((one) => series(one, "learningRate")));
      norms.show(shown.filter((one) => !Number.isNaN(one.history.last("gradNorm"))).map((one) => series(one, "gradNorm")));
      norms.element.hidden = session.kind === "digits" && shown.some((one) => one.kind === "digits");
      runs.update();
      samples.update(session);
      if (session.info && session.status === "running" && session.history.length > 20 && performance.now() - remembered > 2000) {
        remembered = performance.now();
        rememberSpeed(session.settings, session.info.parameters, session.info.adapter, recent(session, "milliseconds"));
      }
    },
  };
}

function series(session: Session, column: Column, more: Partial<Series> = {}): Series {
  return { label: session.name, color: `--run-${session.color}`, x: session.history.column("step"), y: session.history.column(column), ...more };
}

function lossSeries(session: Session, several: boolean): Series[] {
  const name = several ? `${session.name}` : "training";
  const validation = several ? `${session.name}, validation` : "validation";
  return [series(session, "loss", { label: name, noisy: true }), series(session, "validation", { label: validation, dashed: true, dots: true })].filter(({ y }) => y.some((value) => !Number.isNaN(value)));
}
