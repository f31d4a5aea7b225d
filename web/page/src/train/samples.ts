/** What a language model wrote while it was trained, the newest first. */

import { fill, h, setText } from "../parts/dom.ts";
import { whole } from "../parts/format.ts";
import type { Session } from "../runs/session.ts";

export function samplesPanel(): { element: HTMLElement; update(session: Session): void } {
  const list = h("ol", { class: "samples-list", reversed: true });
  const empty = h("p", { class: "empty" });
  const element = h("section", { class: "samples" }, h("h3", {}, "Samples"), empty, list);
  let shown = "";
  return {
    element,
    update(session) {
      element.hidden = session.kind !== "language";
      const { samples } = session;
      const every = Number(session.settings.values.sampleEvery);
      setText(empty, samples.length ? "" : every > 0 ? `The model writes something every ${every} steps.` : "No samples are asked for: “Sample every” is 0.");
      empty.hidden = samples.length > 0;
      const key = `${session.id}/${samples.length}/${samples.at(-1)?.step}`;
      if (key === shown) return;
      shown = key;
      fill(list, ...[...samples].reverse().slice(0, 30).map(({ step, text }) => h(
        "li", { class: "sample" }, h("span", { class: "sample-step" }, `step ${whole(step)}`), h("p", {}, text),
      )));
    },
  };
}
