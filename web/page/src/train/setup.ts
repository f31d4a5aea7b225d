/** What the next run will be: model, data, every setting, what it will take, and the button that starts it. */

import { estimate } from "volta-ml";
import { shareLink } from "../address.ts";
import type { App } from "../app.ts";
import { offer } from "../gpu.ts";
import { Choice } from "../parts/choice.ts";
import { button, fill, h, setText } from "../parts/dom.ts";
import { bytes, duration, short, whole } from "../parts/format.ts";
import { announce, attempt, notice, sentence } from "../parts/notice.ts";
import { secondsOf } from "../runs/speed.ts";
import { classifierOptions, conflict, type Field, fieldsOf, type Kind, languageOptions, parse, presetsOf } from "../settings.ts";
import { dataPanel } from "./data_panel.ts";

const GROUPS = ["Model", "Training", "Watching"] as const;

export function setupPanel(app: App): HTMLElement {
  const kinds = new Choice("What to train", [{ value: "language", label: "Language model" }, { value: "digits", label: "Digits" }], app.settings.kind, (kind) => app.chooseKind(kind as Kind));
  const devices = new Choice("Device", [{ value: "auto", label: "Auto" }, { value: "gpu", label: "GPU" }, { value: "cpu", label: "CPU" }], app.settings.device, (device) => app.set((settings) => (settings.device = device as "auto")));
  const presets = h("div");
  const groups = h("div", { class: "groups" });
  const problems = new Map<string, string>();
  const problem = h("p", { class: "problem", role: "alert" });
  const facts = { parameters: h("dd", {}, "–"), memory: h("dd", {}, "–"), time: h("dd", {}, "–") };
  const start = button({ class: "button primary wide", icon: "play", "data-test": "start" }, "Start training", () => attempt("The run could not begin.", () => app.start()));
  const share = button({ class: "button wide", icon: "link" }, "Copy a link to these settings", () => copyLink(app));
  let shape = "";

  const showProblems = (): void => {
    const first = problems.values().next().value ?? conflict(app.settings);
    setText(problem, first ?? "");
    start.disabled = first !== undefined;
  };

  const rebuild = (): void => {
    shape = `${app.settings.kind}/${app.settings.preset}`;
    problems.clear();
    const options = presetsOf(app.settings.kind).map(({ name, label, about }) => ({ value: name, label, about }));
    const choice = new Choice("Size", options, app.settings.preset, (name) => app.choosePreset(name), "cards");
    fill(presets, choice.element);
    const opened = new Set([...groups.querySelectorAll("details[open]")].map((details) => details.getAttribute("data-group")));
    fill(groups, ...GROUPS.map((name) => group(app, name, problems, showProblems, opened.has(name))));
  };

  let asked = 0;
  const refresh = async (): Promise<void> => {
    kinds.value = app.settings.kind;
    devices.value = app.settings.device;
    if (shape !== `${app.settings.kind}/${app.settings.preset}`) rebuild();
    showFields(groups, app);
    showProblems();
    if (start.disabled) return;
    const mine = ++asked;
    // Whoever types a number is not asked about at every digit.
    if (mine > 1) await new Promise((later) => setTimeout(later, 150));
    if (mine !== asked) return;
    try {
      const settings = structuredClone(app.settings);
      const text = app.data.text?.text;
      const wanted = settings.kind === "language"
        ? await estimate({ ...languageOptions(settings), ...(text === undefined ? {} : { text: text.slice(0, 200_000) }) }, "language-model")
        : await estimate(classifierOptions(settings), "classifier");
      if (mine !== asked) return;
      const { name, software } = await offer();
      const device = settings.device === "auto" ? (name && !software ? "gpu" : "cpu") : settings.device;
      const { seconds, measured } = secondsOf(settings, wanted.parameters, { device, software });
      setText(facts.parameters, short(wanted.parameters));
      setText(facts.memory, bytes(wanted.peakBytes));
      setText(facts.time, `${measured ? "≈" : "roughly"} ${duration(seconds)}`);
      facts.parameters.title = whole(wanted.parameters);
      facts.time.title = measured ? "From the runs before on this device" : "A guess, until a run was measured on this device";
    } catch (error) {
      if (mine !== asked) return;
      setText(problem, sentence(error));
    }
  };

  app.settingsChanged.subscribe(() => void refresh());
  void refresh();
  return h(
    "section", { class: "panel setup", "aria-labelledby": "setup-title" },
    h("h2", { id: "setup-title", class: "panel-title" }, "New run"),
    kinds.element,
    presets,
    dataPanel(app),
    groups,
    h("div", { class: "row-label" }, h("span", {}, "Device"), devices.element),
    h("dl", { class: "facts" }, h("div", {}, h("dt", {}, "Parameters"), facts.parameters), h("div", {}, h("dt", {}, "Memory"), facts.memory), h("div", {}, h("dt", {}, "Time"), facts.time)),
    problem,
    h("div", { class: "setup-actions" }, start, share),
  );
}

/** Shows the settings' values in the fields, and which of them say something. */
function showFields(groups: HTMLElement, app: App): void {
  for (const field of fieldsOf(app.settings.kind)) {
    const row = groups.querySelector<HTMLElement>(`[data-field="${field.key}"]`);
    const input = row?.querySelector<HTMLInputElement | HTMLSelectElement>("input, select");
    if (!row || !input) continue;
    row.hidden = field.applies ? !field.applies(app.settings.values) : false;
    const value = app.settings.values[field.key];
    if (input instanceof HTMLInputElement && input.type === "checkbox") input.checked = value === true;
    else if (document.activeElement !== input && !row.classList.contains("wrong")) input.value = String(value);
  }
  for (const details of groups.querySelectorAll<HTMLElement>("details")) {
    const summary = details.querySelector(".group-values");
    if (summary) setText(summary, brief(details.dataset.group ?? "", app));
  }
}

/** The values of a group in a line. */
function brief(group: string, { settings: { kind, values } }: App): string {
  if (group === "Model") {
    if (kind === "language") return `${values.layers} × ${values.width}, context ${values.context}`;
    return `${values.convolutional === true ? "convolutions, " : ""}${String(values.hidden).replaceAll(", ", " · ") || "no hidden layer"}`;
  }
  if (group === "Training") return `${short(Number(values.steps))} steps of ${values.batch}`;
  return kind === "language" ? `every ${values.validateEvery} steps` : `every ${values.validateEvery} steps`;
}

function group(app: App, name: string, problems: Map<string, string>, check: () => void, open: boolean): HTMLElement {
  const fields = fieldsOf(app.settings.kind).filter((field) => field.group === name);
  return h(
    "details", { class: "group", "data-group": name, open },
    h("summary", {}, h("span", {}, name), h("span", { class: "group-values" })),
    h("div", { class: "fields" }, ...fields.map((field) => row(app, field, problems, check))),
  );
}

function row(app: App, field: Field, problems: Map<string, string>, check: () => void): HTMLElement {
  const id = `field-${field.key}`;
  const value = app.settings.values[field.key];
  const common = { id, "aria-describedby": `${id}-meaning` };
  const input = field.type === "choice"
    ? h("select", common, ...(field.choices ?? []).map((choice) => h("option", { value: choice, selected: choice === value }, choice)))
    : field.type === "flag"
      ? h("input", { ...common, type: "checkbox", checked: value === true })
      : h("input", { ...common, type: "text", inputmode: field.type === "count" ? "numeric" : field.type === "real" ? "decimal" : "text", value: String(value), autocomplete: "off", spellcheck: "false" });
  const element = h(
    "div", { class: `field field-${field.type}`, "data-field": field.key },
    h("label", { for: id }, field.label),
    h("div", { class: "field-input" }, input, field.unit ? h("span", { class: "unit" }, field.unit) : null),
    h("p", { class: "meaning", id: `${id}-meaning` }, field.meaning),
  );
  input.addEventListener(field.type === "flag" || field.type === "choice" ? "change" : "input", () => {
    const parsed = parse(field, input instanceof HTMLInputElement && input.type === "checkbox" ? String(input.checked) : input.value);
    const wrong = "problem" in parsed;
    element.classList.toggle("wrong", wrong);
    input.setAttribute("aria-invalid", String(wrong));
    if (wrong) {
      problems.set(field.key, parsed.problem);
      check();
    } else {
      problems.delete(field.key);
      app.set((settings) => (settings.values[field.key] = parsed.value));
    }
  });
  return element;
}

export async function copyLink(app: App, settings = app.settings): Promise<void> {
  const link = shareLink(settings);
  try {
    await navigator.clipboard.writeText(link);
    const own = settings === app.settings && (app.data.text || app.data.digits);
    notice("info", own ? "The link is copied. It has the settings; your own data stays with you." : "The link is copied.", { key: "link" });
  } catch {
    notice("info", `The browser does not let the page copy. The link is ${link}`, { key: "link", seconds: 30 });
  }
  announce("The link is copied.");
}
