/** What all views share: the settings of the next run, the visitor's data, and the runs. */

import { Signal } from "./parts/signal.ts";
import { Registry } from "./runs/registry.ts";
import type { OwnData } from "./runs/data.ts";
import { fromPreset, type Kind, presetNamed, presetsOf, type Settings } from "./settings.ts";

export class App {
  readonly settingsChanged = new Signal();
  readonly registry = new Registry();
  data: OwnData = {};
  settings: Settings;
  /** Goes to another view. */
  go: (view: string) => void = () => {};

  constructor(settings: Settings) {
    this.settings = settings;
  }

  set(change: (settings: Settings) => void): void {
    change(this.settings);
    this.settingsChanged.emit();
  }

  choosePreset(name: string): void {
    const preset = presetNamed(name);
    if (!preset) return;
    this.settings = fromPreset(preset, this.settings.device);
    this.settingsChanged.emit();
  }

  chooseKind(kind: Kind): void {
    const [preset] = presetsOf(kind);
    if (preset && this.settings.kind !== kind) this.choosePreset(preset.name);
  }

  /** Begins a run with the settings as they are. */
  async start(): Promise<void> {
    await this.registry.create(this.settings, this.data).start();
  }
}

/** A view: built when it is first looked at. */
export interface View {
  element: HTMLElement;
  /** Called whenever it comes into sight. */
  show?(): void;
  hide?(): void;
}
