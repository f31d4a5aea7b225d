/** Where the time of a step goes: kernels as bars and on a line of time. */

import type { Profile } from "volta-ml";
import { download } from "../files.ts";
import { button, fill, h, setText } from "../parts/dom.ts";
import { milliseconds, percent } from "../parts/format.ts";
import { attempt } from "../parts/notice.ts";
import type { Session } from "../runs/session.ts";
import type { Panel } from "./view.ts";

/** Bars that are shown; the rest is one more. */
const MAX_BARS = 16;

export function kernelPanel(): Panel {
  let session: Session | undefined;
  let profile: Profile | undefined;
  let of: string | undefined;
  const picture = h("div", { class: "kernels" });
  const about = h("p", { class: "about" });
  const measure = button({ class: "button", "data-test": "profile" }, "Measure a step", () => attempt("The step could not be measured.", async () => {
    const run = session?.run;
    if (!run || !session) return;
    const measured = run.profile();
    // A paused run has no next step unless it is asked for one.
    if (session.status === "paused") await session.singleStep();
    profile = await measured;
    of = session.id;
    show();
  }));
  const trace = button({ class: "button", icon: "download" }, "Trace for Perfetto", () => {
    if (profile && session) download(`${session.name}-trace.json`, profile.trace, "application/json");
  });
  const element = h("section", { class: "card card-wide" }, h("h2", {}, "Kernel times"), about, h("div", { class: "row" }, measure, trace), picture);
  const show = (): void => {
    trace.hidden = profile === undefined;
    picture.hidden = profile === undefined;
    if (!profile) {
      setText(about, "How long each kernel of one step takes: by the GPU's own clock where it has one.");
      return;
    }
    const { kernels, wallMs, deviceMs, timed } = profile;
    const clock = !timed ? "; times are those on the host, as this device offers no clock of its own" : deviceMs > 0 ? `, ${milliseconds(deviceMs)} on the device by its own clock` : "";
    setText(about, `${kernels.length} kernels, ${milliseconds(wallMs)} from first to last${clock}.`);
    fill(picture, timeline(profile), bars(profile));
  };
  show();
  return {
    element,
    update(now) {
      if (now.id !== session?.id) {
        session = now;
        if (of !== now.id) profile = undefined;
        show();
      }
      measure.hidden = !now.isLive || now.status === "finished" || now.status === "stopped";
      if (measure.hidden && !profile) setText(about, "Kernels are measured in a step of a run that is open and not over.");
    },
  };
}

function timeline({ kernels, wallMs }: Profile): HTMLElement {
  const whole = Math.max(wallMs, ...kernels.map(({ startMs, ms, count }) => startMs + ms / Math.max(1, count)));
  const parts = kernels.map(({ name, startMs, ms, count }, i) => {
    const part = h("i", { title: `${name}: begins at ${milliseconds(startMs)}, ${milliseconds(ms)}` });
    part.style.left = `${(100 * startMs) / whole}%`;
    part.style.width = `${Math.max(0.15, (100 * ms) / Math.max(1, count) / whole)}%`;
    part.style.setProperty("--swatch", `var(--run-${i % 8})`);
    return part;
  });
  return h("div", { class: "timeline-box" }, h("div", { class: "timeline", "aria-hidden": "true" }, ...parts), h("div", { class: "timeline-ends", "aria-hidden": "true" }, h("span", {}, "0"), h("span", {}, milliseconds(whole))));
}

function bars({ kernels }: Profile): HTMLElement {
  const sum = kernels.reduce((total, { ms }) => total + ms, 0) || 1;
  const sorted = kernels.map((kernel, index) => ({ ...kernel, index })).sort((a, b) => b.ms - a.ms);
  const shown = sorted.slice(0, MAX_BARS);
  const rest = sorted.slice(MAX_BARS);
  if (rest.length > 0) shown.push({ name: `${rest.length} more`, count: rest.reduce((n, { count }) => n + count, 0), ms: rest.reduce((n, { ms }) => n + ms, 0), startMs: 0, index: 7 });
  const longest = shown.reduce((most, { ms }) => Math.max(most, ms), 1e-9);
  return h("table", { class: "kernel-table" }, h("colgroup", {}, ...["name", "count", "bar", "time"].map((name) => h("col", { class: `kernel-col-${name}` }))), h("thead", { class: "visually-hidden" }, h("tr", {}, ...["Kernel", "Runs", "Share", "Time"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...shown.map(({ name, count, ms, index }) => {
    const bar = h("i");
    bar.style.width = `${(100 * ms) / longest}%`;
    bar.style.setProperty("--swatch", `var(--run-${index % 8})`);
    return h("tr", {}, h("td", { class: "kernel-name", title: name }, name), h("td", { class: "number" }, `×${count}`), h("td", { class: "kernel-bar" }, h("span", { class: "bar" }, bar), h("span", { class: "visually-hidden" }, percent(ms / sum))), h("td", { class: "number" }, milliseconds(ms)));
  })));
}
