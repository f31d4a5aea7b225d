/** A button with a list of what can be done. */

import { h, icon, type IconName } from "./dom.ts";

export interface Entry {
  label: string;
  about?: string;
  danger?: boolean;
  work: () => void | Promise<void>;
}

let menus = 0;

/** The entries are asked for when it opens, so that there are none that do nothing. */
export function menu(label: string, drawing: IconName, entries: () => Entry[], text?: string): HTMLElement {
  const id = `menu-${++menus}`;
  const list = h("div", { class: "menu-list", role: "menu", id, "aria-label": label, hidden: true });
  const opener = h(
    "button",
    { type: "button", class: text ? "button" : "button icon-button", "aria-haspopup": "menu", "aria-expanded": "false", "aria-controls": id, "aria-label": label, title: label },
    icon(drawing), text ? h("span", {}, text) : null,
  );
  const element = h("div", { class: "menu" }, opener, list);
  const close = (): void => {
    list.hidden = true;
    opener.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", outside);
  };
  const outside = (event: Event): void => {
    if (!element.contains(event.target as Node)) close();
  };
  const items = (): HTMLElement[] => [...list.querySelectorAll<HTMLElement>("[role=menuitem]")];
  const open = (): void => {
    list.replaceChildren(...entries().map((entry) => h(
      "button",
      { type: "button", role: "menuitem", class: entry.danger ? "danger" : "", tabindex: -1, on: { click: () => {
        close();
        opener.focus();
        void entry.work();
      } } },
      h("span", {}, entry.label), entry.about ? h("small", {}, entry.about) : null,
    )));
    list.hidden = false;
    opener.setAttribute("aria-expanded", "true");
    document.addEventListener("pointerdown", outside);
    items()[0]?.focus();
  };
  opener.addEventListener("click", () => (list.hidden ? open() : close()));
  element.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: (at + 1) % all.length, ArrowUp: (at - 1 + all.length) % all.length, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      all[to]?.focus();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      close();
      opener.focus();
    } else if (event.key === "Tab") {
      close();
    }
  });
  return element;
}
