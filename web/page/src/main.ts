/** The page begins here: views, address, runs, files, offline use. */

import { readAddress, writeAddress } from "./address.ts";
import { App, type View } from "./app.ts";
import { benchView } from "./bench/view.ts";
import { drawView } from "./draw/view.ts";
import { mountDrop } from "./drop.ts";
import { describe, offer } from "./gpu.ts";
import { insideView } from "./inside/view.ts";
import { mountLifecycle } from "./lifecycle.ts";
import { setText } from "./parts/dom.ts";
import { notice } from "./parts/notice.ts";
import { mountThemeSwitch } from "./parts/theme_switch.ts";
import { Tabs } from "./tabs.ts";
import { talkView } from "./talk/view.ts";
import { trainView } from "./train/view.ts";

const VIEWS: readonly { id: string; label: string; build: (app: App) => View }[] = [
  { id: "train", label: "Train", build: trainView },
  { id: "talk", label: "Talk", build: talkView },
  { id: "draw", label: "Draw", build: drawView },
  { id: "inside", label: "Look inside", build: insideView },
  { id: "bench", label: "Bench", build: benchView },
];

function begin(): void {
  const { view, settings, problems } = readAddress(location.hash);
  for (const problem of problems) notice("warning", `The link asks for what cannot be. ${problem}`);
  const app = new App(settings);
  const tabs = new Tabs(VIEWS.map(({ id, label, build }) => ({ id, label, build: () => build(app) })));
  app.go = (to) => {
    tabs.show(to);
    write(true);
  };
  const write = (asStep: boolean): void => {
    const address = writeAddress(tabs.current, app.settings);
    if (address === location.hash) return;
    if (asStep) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  };
  tabs.chosen = () => write(true);
  app.settingsChanged.subscribe(() => write(false));
  // Somebody edits the address, follows a link, or goes back.
  addEventListener("popstate", () => {
    const now = readAddress(location.hash);
    app.settings = now.settings;
    app.settingsChanged.emit();
    tabs.show(now.view);
  });
  tabs.show(view);
  mountThemeSwitch(document.getElementById("theme")!);
  mountDrop(app);
  mountLifecycle(app);
  void app.registry.open();
  void offer().then((found) => {
    const chip = document.getElementById("adapter");
    const name = chip?.querySelector(".adapter-name");
    if (!chip || !name) return;
    const { short, why } = describe(found);
    setText(name, short);
    chip.title = why;
    chip.dataset.device = found.name && !found.software ? "gpu" : "cpu";
  });
  void offlineUse();
}

/** After the first visit the page opens without a network. */
async function offlineUse(): Promise<void> {
  if (!("serviceWorker" in navigator) || !isSecureContext) return;
  try {
    await navigator.serviceWorker.register("./offline.js");
  } catch {
    // Private windows refuse it: the page works, with a network.
  }
}

begin();
