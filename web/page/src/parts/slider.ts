/** A number chosen by sliding, with its value beside it. */

import { h } from "./dom.ts";

export interface SliderOptions {
  label: string;
  min: number;
  max: number;
  step: number;
  value: number;
  format?: (value: number) => string;
  about: string;
}

export class Slider {
  readonly element: HTMLElement;
  readonly #input: HTMLInputElement;

  constructor({ label, min, max, step, value, about, format = String }: SliderOptions) {
    const shown = h("output", {}, format(value));
    this.#input = h("input", { type: "range", min, max, step, value, on: { input: () => {
      shown.textContent = format(this.value);
      this.#input.setAttribute("aria-valuetext", format(this.value));
    } } });
    this.element = h("label", { class: "slider", title: about }, h("span", {}, label), this.#input, shown);
  }

  get value(): number {
    return Number(this.#input.value);
  }
}
