/** Whoever can write: language models in training, those kept, and those opened from files. */

import { type AttentionMap, type GenerateOptions, type LanguageModel, type ModelFiles, openLanguageModel, type Token } from "volta-ml";
import type { App } from "../app.ts";
import { short } from "../parts/format.ts";
import { notice } from "../parts/notice.ts";
import { Signal } from "../parts/signal.ts";

export interface Writer {
  id: string;
  name: string;
  about: string;
  layers: number;
  heads: number;
  /** It is in the browser's storage and is opened first. */
  open?: () => Promise<void>;
  generate(options: GenerateOptions): AsyncIterable<Token>;
  attention(text: string, layer: number, head: number): Promise<AttentionMap>;
}

export const modelsChanged = new Signal();
const opened: { id: string; name: string; model: LanguageModel }[] = [];
/** The one that views take first. */
let preferred: string | undefined;

/** Opens a model's files and goes to where it can be talked with. */
export async function openModel(app: App, name: string, files: ModelFiles): Promise<void> {
  notice("info", `“${name}” is being opened…`, { key: "opening", seconds: 60 });
  try {
    const model = await openLanguageModel(files, { device: app.settings.device });
    const id = `file-${opened.length + 1}`;
    opened.push({ id, name, model });
    preferred = id;
    notice("info", `“${name}” is open: ${short(model.info.parameters)} parameters, ${model.info.layers} layers.`, { key: "opening" });
    modelsChanged.emit();
    app.go("talk");
  } catch (error) {
    notice("error", `“${name}” cannot be opened. ${error instanceof Error ? error.message : String(error)}`, { key: "opening" });
  }
}

/** All of them; the ones just opened and those in training first. */
export function writers(app: App): Writer[] {
  const files = [...opened].reverse().map(({ id, name, model }): Writer => ({
    id, name, about: `${short(model.info.parameters)} parameters, from a file`, layers: model.info.layers, heads: model.info.heads,
    generate: (options) => model.generate(options), attention: (text, layer, head) => model.attention(text, layer, head),
  }));
  const runs = [...app.registry.sessions].reverse().filter((session) => session.kind === "language" && (session.isLive || session.stored)).map((session): Writer => {
    const run = (): NonNullable<typeof session.language> => {
      if (!session.language) throw new Error(`“${session.name}” is not open`);
      return session.language;
    };
    return {
      id: session.id, name: session.name, about: `${session.isLive ? "" : "kept, "}step ${short(session.step)}`,
      layers: Number(session.settings.values.layers), heads: Number(session.settings.values.heads),
      ...(session.isLive ? {} : { open: () => session.continue({ paused: true }) }),
      generate: (options) => run().generate(options), attention: (text, layer, head) => run().attention(text, layer, head),
    };
  });
  return [...files, ...runs];
}

/** The writer of this name, else the one to take first. */
export function chooseWriter(app: App, id: string | undefined): Writer | undefined {
  const all = writers(app);
  const wanted = preferred ?? id;
  preferred = undefined;
  return all.find((one) => one.id === wanted) ?? all.find((one) => one.id === app.registry.selected?.id) ?? all.find((one) => !one.open) ?? all[0];
}
