/** The button that turns the page dark or light. */

import { fill, icon } from "./dom.ts";
import { Signal } from "./signal.ts";

/** Colours have changed: canvases are drawn again. */
export const themeChanged = new Signal();

const system = matchMedia("(prefers-color-scheme: dark)");

function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

export function mountThemeSwitch(button: HTMLElement): void {
  const show = (): void => {
    fill(button, icon(isDark() ? "sun" : "moon"));
    button.setAttribute("aria-label", isDark() ? "Switch to light" : "Switch to dark");
    button.title = button.getAttribute("aria-label") ?? "";
    themeChanged.emit();
  };
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("volta-theme", theme);
    } catch {
      // Storage is refused: the choice holds until the page is closed.
    }
    show();
  });
  system.addEventListener("change", show);
  show();
}

const probe = document.createElement("span");

/** What a variable of the style sheet is as a colour now. */
export function color(variable: string): string {
  if (!probe.isConnected) {
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}
