/** What a view says while there is nothing to show, and what to do about it. */

import { button, h } from "./dom.ts";

export function emptyState(title: string, text: string, action?: { label: string; work: () => void | Promise<void> }): HTMLElement {
  return h(
    "section", { class: "empty-state" },
    h("h2", {}, title), h("p", {}, text),
    action ? button({ class: "button primary" }, action.label, action.work) : null,
  );
}
