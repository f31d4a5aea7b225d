/** All runs: which are drawn, which one is looked at. */

import type { App } from "../app.ts";
import { fill, h, setText } from "../parts/dom.ts";
import { ago, bytes, loss, percent } from "../parts/format.ts";
import type { Session } from "../runs/session.ts";
import { FIELDS, presetNamed } from "../settings.ts";
import { statusWord, stepText } from "./status.ts";

interface Row {
  session: Session;
  element: HTMLElement;
  update(): void;
}

export function runList(app: App): { element: HTMLElement; update(): void } {
  const body = h("tbody");
  const count = h("span", { class: "count" });
  let rows: Row[] = [];
  const element = h(
    "section", { class: "runs" },
    h("h3", {}, "Runs ", count),
    h("div", { class: "table-box" }, h(
      "table", {},
      h("thead", {}, h("tr", {}, ...["Draw", "Name", "Status", "Step", "Loss", "Validation", "Settings", "Kept"].map((name) => h("th", { scope: "col", class: `col-${name.toLowerCase()}` }, name)))),
      body,
    )),
  );
  return {
    element,
    update() {
      const { sessions } = app.registry;
      if (rows.length !== sessions.length || rows.some((row, i) => row.session !== sessions[i])) {
        rows = sessions.map((session) => row(app, session));
        fill(body, ...rows.map((one) => one.element));
      }
      const kept = sessions.reduce((sum, { stored, store }) => sum + (stored && store ? stored.bytes : 0), 0);
      setText(count, [sessions.length > 1 ? String(sessions.length) : "", kept > 0 ? `${bytes(kept)} kept in this browser` : ""].filter(Boolean).join(", "));
      for (const one of rows) one.update();
    },
  };
}

function row(app: App, session: Session): Row {
  const box = h("input", { type: "checkbox", checked: session.visible, on: { change: () => {
    session.visible = box.checked;
    app.registry.changed.emit();
  } } });
  const swatch = h("i", { class: "swatch" });
  swatch.style.setProperty("--swatch", `var(--run-${session.color})`);
  const name = h("button", { type: "button", class: "name-button", on: { click: () => app.registry.select(session) } });
  const cells = Array.from({ length: 6 }, () => h("td"));
  const element = h("tr", {}, h("td", { class: "col-draw" }, h("label", { class: "draw" }, box, swatch, h("span", { class: "visually-hidden" }, "Draw this run"))), h("td", { class: "col-name" }, name), ...cells);
  const classes = ["col-status", "col-step number", "col-loss number", "col-validation number", "col-settings", "col-kept"];
  cells.forEach((cell, i) => (cell.className = classes[i] ?? ""));
  return {
    session, element,
    update() {
      const selected = app.registry.selected === session;
      element.classList.toggle("selected", selected);
      name.setAttribute("aria-pressed", String(selected));
      setText(name, session.name);
      box.checked = session.visible;
      const validation = session.kind === "digits" && !Number.isNaN(session.history.last("accuracy")) ? percent(session.history.last("accuracy")) : loss(session.history.last("validation"));
      const kept = session.stored && session.store ? `${bytes(session.stored.bytes)}, ${ago(session.stored.time)}` : "–";
      const texts = [statusWord(session), stepText(session), loss(session.history.last("loss")), validation, brief(session), kept];
      cells.forEach((cell, i) => setText(cell, texts[i] ?? ""));
    },
  };
}

/** What it is, and what differs from its preset. */
function brief({ settings: { preset, values, kind } }: Session): string {
  const usual = presetNamed(preset);
  const different = Object.entries(values).filter(([key, value]) => usual?.values[key] !== value && key !== "prompt");
  const head = `${kind === "language" ? "text" : "digits"}, ${usual?.label.toLowerCase() ?? "own"}`;
  return [head, ...different.slice(0, 4).map(([key, value]) => `${FIELDS.find((field) => field.key === key)?.label.toLowerCase() ?? key} ${value}`)].join(" · ");
}
