/** What the next run learns from: built-in, pasted or from a file. */

import type { App } from "../app.ts";
import { readFiles } from "../files.ts";
import { button, fill, h } from "../parts/dom.ts";
import { short } from "../parts/format.ts";
import { notice } from "../parts/notice.ts";
import { receive } from "../drop.ts";

export function dataPanel(app: App): HTMLElement {
  const body = h("div", { class: "data-body" });
  const picker = h("input", { type: "file", multiple: true, class: "visually-hidden", tabindex: -1, "aria-label": "Choose files", "data-test": "files" });
  picker.addEventListener("change", () => {
    void readFiles([...(picker.files ?? [])]).then((read) => receive(app, read));
    picker.value = "";
  });
  const paste = pasteDialog(app);
  const show = (): void => {
    const { text, digits } = app.data;
    const language = app.settings.kind === "language";
    const own = language ? text?.name : digits?.name;
    const size = language ? (text ? `${short(text.text.length)} characters` : "told by the program itself") : digits ? `${short(digits.labels.length - 8)} pictures` : "drawn by the program itself";
    fill(
      body,
      h("p", { class: "data-now" }, h("b", {}, own ?? (language ? "Little stories" : "Digits")), h("span", {}, size)),
      h(
        "div", { class: "data-actions" },
        language ? button({ class: "link-button" }, "Paste text", () => paste.showModal()) : null,
        button({ class: "link-button" }, language ? "Choose a file" : "Choose MNIST files", () => picker.click()),
        own ? button({ class: "link-button" }, "Back to the built-in", () => {
          if (language) delete app.data.text;
          else delete app.data.digits;
          app.settingsChanged.emit();
        }) : null,
      ),
    );
  };
  app.settingsChanged.subscribe(show);
  show();
  return h("section", { class: "data", "aria-label": "Data" }, h("h3", { class: "label" }, "Learns from"), body, picker, paste);
}

function pasteDialog(app: App): HTMLDialogElement {
  const area = h("textarea", { rows: 12, "aria-label": "Text to learn from", placeholder: "A few thousand characters at least. It stays on this computer." });
  const use = (): void => {
    const text = area.value.trim();
    if (text.length < 200) {
      notice("warning", "A model cannot learn from less than 200 characters.", { key: "paste" });
      return;
    }
    app.data.text = { name: "pasted text", text };
    app.settingsChanged.emit();
    dialog.close();
  };
  const dialog: HTMLDialogElement = h(
    "dialog", { class: "dialog", "aria-labelledby": "paste-title" },
    h("h2", { id: "paste-title" }, "Paste a text"),
    area,
    h("div", { class: "dialog-actions" }, button({ class: "button" }, "Cancel", () => dialog.close()), button({ class: "button primary" }, "Learn from it", use)),
  );
  return dialog;
}
