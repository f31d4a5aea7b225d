/** What is there before the first run: what this is, and two buttons that start something. */

import type { App } from "../app.ts";
import { offer } from "../gpu.ts";
import { button, h, setText } from "../parts/dom.ts";
import { attempt } from "../parts/notice.ts";

export function welcome(app: App): HTMLElement {
  const where = h("span", {}, "this device");
  void offer().then((found) => setText(where, found.name && !found.software ? `this device's GPU, ${found.name}` : "this device's processor"));
  const start = (kind: "language" | "digits") => (): Promise<void> => {
    app.chooseKind(kind);
    return attempt("The run could not begin.", () => app.start());
  };
  return h(
    "section", { class: "welcome", "aria-labelledby": "welcome-title" },
    curve(),
    h("h2", { class: "claim", id: "welcome-title" }, "Train a neural network in this tab."),
    h("p", { class: "lead" }, "It runs on ", where, ". Nothing is installed, nothing is uploaded, and it works without a network from the second visit on."),
    h(
      "div", { class: "offers" },
      h("div", { class: "offer" }, h("h3", {}, "A language model"), h("p", {}, "It reads little stories, letter by letter, and writes its own while you watch: noise first, then words."), button({ class: "button primary", icon: "play", "data-test": "start-language" }, "Train a language model", start("language"))),
      h("div", { class: "offer" }, h("h3", {}, "A digit classifier"), h("p", {}, "It sees drawn digits. Some seconds later you draw one yourself, and it tells which one it is."), button({ class: "button primary", icon: "play", "data-test": "start-digits" }, "Train a digit classifier", start("digits"))),
    ),
    h("p", { class: "hint" }, "Or drop a text, MNIST's files, a checkpoint or a model anywhere on this page. Checkpoints are the same files that the command line and Python read."),
  );
}

/** A falling loss, as a drawing. */
function curve(): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 600 120");
  svg.setAttribute("class", "welcome-curve");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("preserveAspectRatio", "none");
  const draw = (offset: number, noise: number, className: string): void => {
    const points = Array.from({ length: 121 }, (_, i) => {
      const y = 14 + 92 * (1 - Math.exp(-Math.pow(i / 22, 0.8))) + noise * Math.sin(i * 12.9898 + offset) * Math.cos(i * 4.1 + offset);
      return `${i * 5},${y.toFixed(1)}`;
    });
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    line.setAttribute("points", points.join(" "));
    line.setAttribute("class", className);
    svg.append(line);
  };
  draw(0, 9, "raw");
  draw(0, 0, "mean");
  return svg;
}
