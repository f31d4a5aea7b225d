/** The settings that a checkpoint was made with, read from its header. */

import type { Header } from "../files.ts";
import { fieldsOf, fromPreset, parse, presetsOf, type Kind, type Settings } from "../settings.ts";

/** What `volta train` calls a setting, where it is not the same word with dashes. */
const NAMES: Record<string, string> = { "valid-interval": "validateEvery", "sample-interval": "sampleEvery" };

function camel(name: string): string {
  return NAMES[name] ?? name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** The settings of a run under way; what the file does not say is as in the smallest preset. */
export function settingsOf(header: Header, now: Settings): Settings {
  const config = configuration(header);
  const kind = kindOf(header, config);
  const [preset] = presetsOf(kind);
  if (!preset) throw new Error("there is no preset");
  const settings = now.kind === kind ? structuredClone(now) : fromPreset(preset, now.device);
  for (const field of fieldsOf(kind)) {
    const text = config.get(field.key);
    const parsed = text === undefined ? undefined : parse(field, text);
    if (parsed && "value" in parsed) settings.values[field.key] = parsed.value;
  }
  if (kind === "digits" && config.size === 0) fromShapes(header, settings);
  return settings;
}

function kindOf(header: Header, config: Map<string, string>): Kind {
  const told = header.metadata.kind ?? config.get("kind");
  if (told) return told === "classifier" ? "digits" : "language";
  if (config.has("context") || config.has("heads")) return "language";
  if (config.has("hidden")) return "digits";
  return weights(header).some((shape) => shape.length === 4 || shape[1] === 784) ? "digits" : "language";
}

/** Shapes of matrices and filters of the model, in the order of their names. */
function weights(header: Header): number[][] {
  const names = Object.keys(header.tensors).filter((name) => name.startsWith("model.") && name.endsWith("weight"));
  names.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  return names.map((name) => header.tensors[name]?.shape ?? []).filter((shape) => shape.length >= 2);
}

function fromShapes(header: Header, settings: Settings): void {
  const matrices = weights(header).filter((shape) => shape.length === 2);
  if (matrices.length === 0) return;
  settings.values.hidden = matrices.slice(0, -1).map(([width]) => width).join(", ");
  settings.values.convolutional = weights(header).some((shape) => shape.length === 4);
}

/** The notes of a checkpoint: the configuration as `volta train` writes it, or as JSON. */
function configuration(header: Header): Map<string, string> {
  const text = header.metadata.config ?? noteIn(header.metadata.state, "config") ?? "";
  const found = new Map<string, string>();
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null) {
      for (const [name, value] of Object.entries(json)) found.set(camel(name), Array.isArray(value) ? value.join(", ") : String(value));
    }
    return found;
  } catch {
    // It is TOML.
  }
  for (const line of text.split("\n")) {
    const match = /^([\w-]+)\s*=\s*(?:"([^"]*)"|\[([^\]]*)\]|(\S+))\s*$/.exec(line.trim());
    if (match?.[1]) found.set(camel(match[1]), match[2] ?? match[3] ?? match[4] ?? "");
  }
  return found;
}

/** A text that a checkpoint's state holds under a name. */
function noteIn(state: string | undefined, name: string): string | undefined {
  if (!state) return undefined;
  try {
    const { values } = JSON.parse(state) as { values?: Record<string, unknown> };
    const value = values?.[name];
    if (typeof value === "string") return value;
  } catch {
    // A damaged state: the package says so when it is opened.
  }
  return undefined;
}
