/** Ten bars: how probable each digit is. */

import { h, setText } from "../parts/dom.ts";
import { percent } from "../parts/format.ts";

export class Bars {
  readonly element: HTMLElement;
  #rows: { row: HTMLElement; bar: HTMLElement; number: HTMLElement }[];

  constructor() {
    this.#rows = Array.from({ length: 10 }, (_, digit) => {
      const bar = h("i"), number = h("span", { class: "bar-number" }, "–");
      return { bar, number, row: h("li", { "data-digit": digit }, h("b", {}, digit), h("span", { class: "bar" }, bar), number) };
    });
    this.element = h("ol", { class: "bars", "aria-label": "Probability of each digit" }, ...this.#rows.map(({ row }) => row));
  }

  show(probabilities: Float32Array | undefined): void {
    const best = probabilities ? probabilities.indexOf(Math.max(...probabilities)) : -1;
    this.#rows.forEach(({ row, bar, number }, digit) => {
      const probability = probabilities?.[digit] ?? 0;
      bar.style.transform = `scaleX(${probability})`;
      setText(number, probabilities ? percent(probability) : "–");
      row.classList.toggle("best", digit === best);
    });
  }
}
