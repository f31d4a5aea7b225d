/** The view “Draw”: a digit is drawn, and the classifier says at every stroke what it takes it for. */

import type { App, View } from "../app.ts";
import { button, h, setText } from "../parts/dom.ts";
import { emptyState } from "../parts/empty.ts";
import { percent, short } from "../parts/format.ts";
import { announce, attempt, notice, sentence } from "../parts/notice.ts";
import { Picker } from "../parts/picker.ts";
import { eachFrame } from "../parts/signal.ts";
import { color, themeChanged } from "../parts/theme_switch.ts";
import type { Session } from "../runs/session.ts";
import { Bars } from "./bars.ts";
import { Pad } from "./pad.ts";
import { rasterize, SIDE } from "./pixels.ts";

export function drawView(app: App): View {
  let chosen: Session | undefined;
  const pad = new Pad();
  const bars = new Bars();
  const verdict = h("p", { class: "verdict" });
  const seen = h("canvas", { class: "seen", width: SIDE, height: SIDE, role: "img", "aria-label": "What the network sees: 28 by 28 pixels" });
  const picker = new Picker("Classifier", (id) => {
    chosen = app.registry.sessions.find((session) => session.id === id);
    update();
    look();
  });
  const open = button({ class: "button primary" }, "Open it", () => attempt("It cannot be opened.", async () => {
    await chosen?.continue({ paused: true });
    look();
  }));
  const kept = h("p", { class: "hint" }, "It is in the browser's storage. ", open);
  const nothing = emptyState("No digit classifier yet", "Training one takes some seconds. Then draw a digit here, and see what the network takes it for.", { label: "Train a digit classifier", work: async () => {
    app.chooseKind("digits");
    app.go("train");
    await attempt("The run could not begin.", () => app.start());
  } });
  const body = h(
    "div", { class: "draw-view" },
    h("section", { class: "draw-left", "aria-label": "Drawing" }, pad.element, h("div", { class: "row" }, button({ class: "button", "data-test": "clear" }, "Clear", () => pad.clear()), h("div", { class: "seen-box" }, h("span", {}, "The network sees"), seen)), h("p", { class: "hint" }, "With the keyboard: a digit's key draws it; arrows move a brush, Space puts it down.")),
    h("section", { class: "draw-right", "aria-label": "Probabilities" }, picker.element, kept, verdict, bars.element),
  );
  const element = h("div", {}, nothing, body);

  const update = eachFrame(() => {
    const all = [...app.registry.sessions].reverse().filter((session) => session.kind === "digits" && (session.isLive || session.stored));
    nothing.hidden = all.length > 0;
    body.hidden = all.length === 0;
    if (!chosen || !all.includes(chosen)) chosen = all.find((session) => session === app.registry.selected) ?? all.find((session) => session.isLive) ?? all[0];
    picker.show(all.map((session) => ({ id: session.id, label: `${session.name} (step ${short(session.step)})` })), chosen?.id);
    kept.hidden = !chosen || chosen.isLive;
    if (pad.strokes.length === 0) setText(verdict, chosen?.isLive ? "Nothing is drawn yet." : "");
  });

  let asking = false, again = false, spoken = 0;
  /** One question at a time; the newest drawing is asked last. */
  function look(): void {
    const pixels = rasterize(pad.strokes);
    show(pixels);
    const run = chosen?.classifier;
    if (!pixels || !run) {
      bars.show(undefined);
      setText(verdict, chosen?.isLive ? "Nothing is drawn yet." : "");
      return;
    }
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    if (/^Nothing/.test(verdict.textContent ?? "")) setText(verdict, "Looking…");
    run.classify(pixels).then((probabilities) => {
      if (pad.strokes.length === 0) return;
      bars.show(probabilities);
      const sure = Math.max(...probabilities), digit = probabilities.indexOf(sure);
      const named = `${digit === 8 ? "an" : "a"} ${digit}`;
      setText(verdict, sure > 0.5 ? `It is ${named}.` : `It may be ${named}.`);
      clearTimeout(spoken);
      spoken = window.setTimeout(() => announce(`It is ${named}, ${percent(sure)}.`), 700);
    }, (error: unknown) => notice("error", `The digit could not be read. ${sentence(error)}`, { key: "draw" })).finally(() => {
      asking = false;
      if (again) {
        again = false;
        look();
      }
    });
  }

  function show(pixels: Float32Array | undefined): void {
    const pen = seen.getContext("2d");
    if (!pen) return;
    pen.clearRect(0, 0, SIDE, SIDE);
    pen.fillStyle = color("--ink");
    pixels?.forEach((ink, i) => {
      pen.globalAlpha = ink;
      pen.fillRect(i % SIDE, (i / SIDE) | 0, 1, 1);
    });
  }

  /** While it trains, what it thinks of the drawing changes. */
  let lastStep = -1;
  const follow = (): void => {
    if (!element.isConnected || element.closest("[hidden]")) return;
    update();
    const step = chosen?.step ?? -1;
    if (chosen?.classifier && pad.strokes.length > 0 && Math.abs(step - lastStep) >= 10) {
      lastStep = step;
      look();
    }
  };

  pad.changed.subscribe(eachFrame(look));
  themeChanged.subscribe(() => show(rasterize(pad.strokes)));
  app.registry.changed.subscribe(follow);
  return { element, show: () => {
    update();
    look();
  } };
}
