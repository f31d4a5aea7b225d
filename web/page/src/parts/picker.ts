/** A list to choose one thing from, which follows as things come and go. */

import { h } from "./dom.ts";

export class Picker {
  readonly element: HTMLElement;
  readonly #select: HTMLSelectElement;
  #shown = "";

  constructor(label: string, choose: (id: string) => void) {
    this.#select = h("select", { class: "picker", "aria-label": label, on: { change: () => choose(this.#select.value) } });
    this.element = h("label", { class: "picker-label" }, h("span", {}, label), this.#select);
  }

  show(entries: readonly { id: string; label: string }[], chosen: string | undefined): void {
    const shown = JSON.stringify(entries);
    if (shown !== this.#shown) {
      this.#shown = shown;
      this.#select.replaceChildren(...entries.map(({ id, label }) => h("option", { value: id }, label)));
    }
    if (chosen !== undefined && this.#select.value !== chosen) this.#select.value = chosen;
  }
}
