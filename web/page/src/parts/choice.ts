/** One of a few: a group of radio buttons in a row. */

import { h, type Child } from "./dom.ts";

export interface Option {
  value: string;
  label: string;
  about?: Child;
}

let groups = 0;

export class Choice {
  readonly element: HTMLElement;
  #inputs: HTMLInputElement[];

  constructor(label: string, options: readonly Option[], chosen: string, choose: (value: string) => void, style = "segmented") {
    const name = `choice-${++groups}`;
    this.#inputs = options.map(({ value }) => h("input", { type: "radio", name, value, checked: value === chosen, on: { change: () => choose(value) } }));
    this.element = h(
      "fieldset", { class: `choice ${style}` },
      h("legend", { class: style === "segmented" ? "visually-hidden" : "" }, label),
      ...options.map((option, i) => h("label", {}, this.#inputs[i], h("span", { class: "choice-label" }, option.label), option.about ? h("span", { class: "choice-about" }, option.about) : null)),
    );
  }

  set value(value: string) {
    for (const input of this.#inputs) input.checked = input.value === value;
  }
}
