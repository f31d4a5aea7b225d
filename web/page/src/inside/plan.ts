/** The plan of a step: its kernels, one a line, and what the whole takes. */

import { h, setText } from "../parts/dom.ts";
import { bytes, short, whole } from "../parts/format.ts";
import type { Panel } from "./view.ts";

export function planPanel(): Panel {
  const text = h("pre", { class: "plan-text", tabindex: 0, "aria-label": "The plan, one kernel a line" });
  const facts = { kernels: h("dd"), memory: h("dd"), parameters: h("dd"), adapter: h("dd") };
  const empty = h("p", { class: "empty" }, "The plan is known when the model is built.");
  const list = h("dl", { class: "stats" },
    h("div", {}, h("dt", {}, "Kernels of a step"), facts.kernels), h("div", {}, h("dt", {}, "Memory of a step"), facts.memory),
    h("div", {}, h("dt", {}, "Parameters"), facts.parameters), h("div", {}, h("dt", {}, "Adapter"), facts.adapter));
  const element = h("section", { class: "card card-wide" }, h("h2", {}, "The plan of a step"), h("p", { class: "about" }, "A step is compiled once, into few fused kernels, and replayed. Each line is one of them: what it reads, writes and computes."), empty, list, text);
  return {
    element,
    update({ info }) {
      empty.hidden = info !== undefined;
      list.hidden = text.hidden = info === undefined;
      if (!info) return;
      setText(facts.kernels, whole(info.kernels));
      setText(facts.memory, bytes(info.peakBytes));
      setText(facts.parameters, short(info.parameters));
      setText(facts.adapter, `${info.adapter.name}, ${info.adapter.backend}`);
      setText(text, info.plan);
    },
  };
}
