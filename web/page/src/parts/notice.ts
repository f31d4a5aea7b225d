/** Sentences about what happened: shown at the top until they are closed, and read out. */

import { h, icon } from "./dom.ts";

export type Tone = "info" | "warning" | "error";

const shown = new Map<string, HTMLElement>();

/** Shows a sentence. One with the same key takes the place of the one before. */
export function notice(tone: Tone, text: string, options: { key?: string; seconds?: number; action?: HTMLElement } = {}): void {
  const key = options.key ?? text;
  shown.get(key)?.remove();
  const remove = (): void => {
    element.remove();
    if (shown.get(key) === element) shown.delete(key);
  };
  const element = h(
    "div",
    { class: `notice notice-${tone}`, role: tone === "error" ? "alert" : "status" },
    h("p", {}, text),
    options.action,
    h("button", { type: "button", class: "icon-button", "aria-label": "Close this message", on: { click: remove } }, icon("close")),
  );
  shown.set(key, element);
  document.getElementById("notices")?.append(element);
  const seconds = options.seconds ?? (tone === "info" ? 8 : 0);
  if (seconds > 0) setTimeout(remove, 1000 * seconds);
}

export function withdraw(key: string): void {
  shown.get(key)?.remove();
  shown.delete(key);
}

/** Says something to screen readers alone. */
export function announce(text: string): void {
  const status = document.getElementById("status");
  if (status) status.textContent = text;
}

/** What an error says, as a sentence. */
export function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`;
}

/** Does something, and tells in a sentence why it did not work. */
export async function attempt(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    notice("error", `${what} ${sentence(error)}`);
  }
}
