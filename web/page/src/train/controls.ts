/** The buttons of a run: pause, step, resume, stop, continue, files, and the rest. */

import type { App } from "../app.ts";
import { download } from "../files.ts";
import { button, fill, h, type IconName } from "../parts/dom.ts";
import { bytes } from "../parts/format.ts";
import { menu, type Entry } from "../parts/menu.ts";
import { attempt } from "../parts/notice.ts";
import type { Session } from "../runs/session.ts";
import { copyLink } from "./setup.ts";
import { canContinue, canExtend } from "./status.ts";

interface Control {
  key: string;
  label: string;
  icon: IconName;
  primary?: boolean;
  when: (session: Session) => boolean;
  work: (session: Session) => Promise<void>;
}

const CONTROLS: readonly Control[] = [
  { key: "pause", label: "Pause", icon: "pause", primary: true, when: (s) => s.isLive && s.isBusy, work: (s) => s.pause() },
  { key: "resume", label: "Resume", icon: "play", primary: true, when: (s) => s.isLive && s.status === "paused", work: (s) => s.resume() },
  { key: "continue", label: "Continue", icon: "play", primary: true, when: canContinue, work: (s) => s.continue() },
  { key: "extend", label: "Train further", icon: "play", primary: true, when: canExtend, work: (s) => s.continue({ moreSteps: s.steps }) },
  { key: "step", label: "One step", icon: "step", when: (s) => s.isLive && s.status === "paused", work: (s) => s.singleStep() },
  { key: "stop", label: "Stop", icon: "stop", when: (s) => s.isLive && (s.isBusy || s.status === "paused"), work: (s) => s.stop() },
];

/** Buttons are made anew only when others are needed, so that the focus stays. */
export function controls(app: App): { element: HTMLElement; update(session: Session): void } {
  const bar = h("div", { class: "controls-main" });
  let current: Session | undefined;
  const files = menu("Download", "download", () => (current ? fileEntries(current) : []), "Download");
  const more = menu("More", "more", () => (current ? moreEntries(app, current) : []));
  let shown = "";
  return {
    element: h("div", { class: "controls" }, bar, files, more),
    update(session) {
      current = session;
      const wanted = CONTROLS.filter((control) => control.when(session));
      const shape = `${session.id} ${wanted.map(({ key }) => key).join()}`;
      files.hidden = !session.isLive && !session.stored;
      if (shape === shown) return;
      shown = shape;
      const focused = bar.contains(document.activeElement);
      fill(bar, ...wanted.map(({ key, label, icon, primary, work }) => button(
        { class: primary ? "button primary" : "button", icon, "data-control": key }, label, () => attempt(`“${session.name}” did not do that.`, () => work(session)),
      )));
      if (focused) bar.querySelector("button")?.focus();
    },
  };
}

function fileEntries(session: Session): Entry[] {
  const name = session.name.replace(/[^\p{L}\p{N}-]+/gu, "-");
  const entries: Entry[] = [{
    label: "Checkpoint",
    about: `goes on here, or with volta train --resume${session.stored ? `; ${bytes(session.stored.bytes)}` : ""}`,
    work: () => attempt("The checkpoint could not be written.", async () => download(`${name}-step-${session.step}.safetensors`, await session.checkpoint())),
  }];
  if (session.run) {
    entries.push({
      label: "Model",
      about: session.kind === "language" ? "for volta chat" : "weights as safetensors",
      work: () => attempt("The model could not be written.", async () => {
        if (session.run) download(`${name}.safetensors`, await session.run.model());
      }),
    });
  }
  entries.push({ label: "Curves", about: "as CSV", work: () => download(`${name}.csv`, session.history.toCsv(), "text/csv") });
  return entries;
}

function moreEntries(app: App, session: Session): Entry[] {
  const entries: Entry[] = [
    { label: "Rename", work: () => rename(session) },
    { label: "Copy a link to its settings", work: () => copyLink(app, session.settings) },
    { label: "Use its settings for the next run", work: () => {
      app.settings = structuredClone(session.settings);
      app.settingsChanged.emit();
    } },
  ];
  if (session.isLive && (session.status === "finished" || session.status === "stopped") && session.stored) {
    entries.push({ label: "Close", about: "frees its memory; it stays kept", work: () => app.registry.close(session) });
  }
  entries.push({ label: "Delete", about: "also from the browser's storage", danger: true, work: () => confirmDelete(app, session) });
  return entries;
}

function rename(session: Session): void {
  const input = h("input", { type: "text", value: session.name, maxlength: 60, "aria-label": "Name" });
  ask("Rename the run", input, "Rename", () => {
    if (input.value.trim()) void session.rename(input.value.trim());
  });
  input.select();
}

function confirmDelete(app: App, session: Session): void {
  ask(`Delete “${session.name}”?`, h("p", {}, "Its checkpoint, curves and samples are gone then."), "Delete", () => void attempt("It could not be deleted.", () => app.registry.remove(session)));
}

/** A small dialog with one thing to do. */
function ask(title: string, body: HTMLElement, action: string, work: () => void): void {
  const form = h(
    "form", { method: "dialog" },
    h("h2", { id: "ask-title" }, title), body,
    h("div", { class: "dialog-actions" }, h("button", { class: "button", value: "" , formnovalidate: true }, "Cancel"), h("button", { class: "button primary", value: "yes" }, action)),
  );
  const dialog = h("dialog", { class: "dialog small", "aria-labelledby": "ask-title" }, form);
  // Enter in a field does it, and not the first button.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    dialog.close("yes");
  });
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "yes") work();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
}
