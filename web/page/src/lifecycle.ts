/** Tabs are hidden, put to sleep and closed: what is learnt is written first, what happened is told after, and the title tells how far it is. */

import type { App } from "./app.ts";
import { notice } from "./parts/notice.ts";
import { duration } from "./parts/format.ts";

/** A run that is silent for longer was asleep, in milliseconds. */
const ASLEEP_MS = 30_000;

export function mountLifecycle(app: App): void {
  const keepAll = (): void => {
    for (const session of app.registry.sessions) if (session.isLive && session.status !== "failed") void session.keep();
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return keepAll();
    const silent = Math.max(0, ...app.registry.sessions.map((session) => session.silence()));
    if (silent > ASLEEP_MS) notice("info", `The browser let this tab sleep for ${duration(silent / 1000)}. Training goes on where it was.`, { key: "sleep" });
  });
  document.addEventListener("freeze", keepAll);
  addEventListener("pagehide", keepAll);
  let view = document.title;
  setInterval(() => {
    if (!document.title.includes("%")) view = document.title;
    const busy = app.registry.sessions.find(({ status }) => status === "running");
    document.title = busy ? `${Math.floor((100 * busy.step) / Math.max(1, busy.steps))} % · ${busy.name} · Volta` : view;
  }, 2000);
  // What is kept nowhere is asked about before the tab closes.
  addEventListener("beforeunload", (event) => {
    if (!app.registry.store && app.registry.sessions.some((session) => session.isBusy)) event.preventDefault();
  });
}
