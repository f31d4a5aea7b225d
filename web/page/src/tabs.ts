/** The views as tabs: arrow keys move among them; each is built when it is first shown. */

import type { View } from "./app.ts";
import { h } from "./parts/dom.ts";

export interface Tab {
  id: string;
  label: string;
  build: () => View;
}

export class Tabs {
  current = "";
  chosen: () => void = () => {};
  #views = new Map<string, View>();
  #buttons = new Map<string, HTMLButtonElement>();

  constructor(readonly tabs: readonly Tab[]) {
    const bar = document.getElementById("tabs")!;
    for (const { id, label } of tabs) {
      const tab = h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `view-${id}`, "data-tab": id, on: { click: () => this.#choose(id) } }, label);
      this.#buttons.set(id, tab);
      bar.append(tab);
    }
    bar.addEventListener("keydown", (event) => {
      const ids = tabs.map((tab) => tab.id), at = ids.indexOf(this.current);
      const to = { ArrowRight: (at + 1) % ids.length, ArrowLeft: (at - 1 + ids.length) % ids.length, Home: 0, End: ids.length - 1 }[event.key];
      const id = to === undefined ? undefined : ids[to];
      if (!id) return;
      event.preventDefault();
      this.#choose(id);
      this.#buttons.get(id)?.focus();
    });
  }

  #choose(id: string): void {
    this.show(id);
    this.chosen();
  }

  show(wanted: string): void {
    const tab = this.tabs.find(({ id }) => id === wanted) ?? this.tabs[0];
    if (!tab) return;
    if (tab.id !== this.current) scrollTo(0, 0);
    this.current = tab.id;
    for (const [id, button] of this.#buttons) {
      button.setAttribute("aria-selected", String(id === tab.id));
      button.tabIndex = id === tab.id ? 0 : -1;
    }
    this.#buttons.get(tab.id)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    let view = this.#views.get(tab.id);
    if (!view) {
      view = tab.build();
      view.element.id = `view-${tab.id}`;
      view.element.setAttribute("role", "tabpanel");
      view.element.setAttribute("aria-labelledby", `tab-${tab.id}`);
      view.element.classList.add("view");
      view.element.prepend(h("h1", { class: "visually-hidden" }, tab.label));
      this.#views.set(tab.id, view);
      document.getElementById("main")?.append(view.element);
    }
    for (const [id, other] of this.#views) {
      if (id !== tab.id && !other.element.hidden) other.hide?.();
      other.element.hidden = id !== tab.id;
    }
    view.show?.();
    document.title = `${tab.label} · Volta`;
  }
}
