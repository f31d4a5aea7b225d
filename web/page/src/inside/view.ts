/** The view “Look inside”: what a step is made of, where its time goes, where heads look, how weights move. */

import type { App, View } from "../app.ts";
import { h } from "../parts/dom.ts";
import { emptyState } from "../parts/empty.ts";
import { short } from "../parts/format.ts";
import { button } from "../parts/dom.ts";
import { attempt } from "../parts/notice.ts";
import { Picker } from "../parts/picker.ts";
import { eachFrame } from "../parts/signal.ts";
import type { Session } from "../runs/session.ts";
import { attentionPanel } from "./attention.ts";
import { histogramPanel } from "./histograms.ts";
import { kernelPanel } from "./kernels.ts";
import { planPanel } from "./plan.ts";

/** A part of the view, of the run that is looked at. */
export interface Panel {
  element: HTMLElement;
  update(session: Session): void;
}

export function insideView(app: App): View {
  let chosen: Session | undefined;
  const picker = new Picker("Run", (id) => {
    chosen = app.registry.sessions.find((session) => session.id === id);
    update();
  });
  const open = button({ class: "button" }, "Open it, paused", () => attempt("It cannot be opened.", async () => chosen?.continue({ paused: true })));
  const kept = h("p", { class: "hint kept" }, "This run is in the browser's storage; what is inside is seen when it is open. ", open);
  const panels = [planPanel(), kernelPanel(), histogramPanel(), attentionPanel(app)];
  const nothing = emptyState("Nothing to look into yet", "Start a run: then its plan, the time of its kernels, its weights and gradients, and where its attention heads look are here.", { label: "Go to Train", work: () => app.go("train") });
  const body = h("div", { class: "inside" }, h("div", { class: "inside-head" }, picker.element, kept), ...panels.map((panel) => panel.element));
  const element = h("div", {}, nothing, body);
  const update = eachFrame(() => {
    const all = [...app.registry.sessions].reverse();
    nothing.hidden = all.length > 0;
    body.hidden = all.length === 0;
    if (!chosen || !all.includes(chosen)) chosen = app.registry.selected ?? all[0];
    picker.show(all.map((session) => ({ id: session.id, label: `${session.name} (step ${short(session.step)})` })), chosen?.id);
    kept.hidden = !chosen || chosen.isLive;
    if (chosen) for (const panel of panels) panel.update(chosen);
  });
  app.registry.changed.subscribe(() => element.isConnected && !element.closest("[hidden]") && update());
  return { element, show: update };
}
