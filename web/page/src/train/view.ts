/** The view “Train”: the next run on the left, the runs on the right. */

import type { App, View } from "../app.ts";
import { h } from "../parts/dom.ts";
import { eachFrame } from "../parts/signal.ts";
import { runPanel } from "./run_panel.ts";
import { setupPanel } from "./setup.ts";
import { welcome } from "./welcome.ts";

export function trainView(app: App): View {
  const greeting = welcome(app);
  const panel = runPanel(app);
  const right = h("div", { class: "train-main" }, greeting, panel.element);
  const element = h("div", { class: "train" }, right, setupPanel(app));
  const update = eachFrame(() => {
    const any = app.registry.sessions.length > 0;
    element.classList.toggle("is-first", !any);
    greeting.hidden = any;
    panel.element.hidden = !any;
    if (any && element.isConnected && !element.hidden) panel.update();
  });
  greeting.hidden = true;
  panel.element.hidden = true;
  app.registry.changed.subscribe(() => app.registry.ready && update());
  return { element, show: () => app.registry.ready && update() };
}
