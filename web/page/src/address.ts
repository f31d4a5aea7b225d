/** The view and the settings in the address, so that a link shares them: `#train?preset=tiny&layers=4`. */

import { type Settings, fieldsOf, fromPreset, parse, presetNamed, PRESETS } from "./settings.ts";

export interface Address {
  view: string;
  settings: Settings;
  /** What the address asked for that cannot be. */
  problems: string[];
}

export function readAddress(hash: string): Address {
  const [view = "", query = ""] = hash.replace(/^#/, "").split("?", 2) as [string?, string?];
  const asked = new URLSearchParams(query);
  const problems: string[] = [];
  const named = asked.get("preset");
  const preset = presetNamed(named ?? "tiny") ?? PRESETS[0];
  if (!preset) throw new Error("there is no preset");
  if (named !== null && named !== preset.name) problems.push(`There is no preset “${named.slice(0, 40)}”.`);
  const settings = fromPreset(preset);
  const device = asked.get("device");
  if (device === "gpu" || device === "cpu") settings.device = device;
  for (const field of fieldsOf(settings.kind)) {
    const text = asked.get(field.key);
    if (text === null) continue;
    const parsed = parse(field, text.slice(0, 500));
    if ("value" in parsed) settings.values[field.key] = parsed.value;
    else problems.push(parsed.problem);
  }
  return { view, settings, problems };
}

/** Only what differs from the preset is written. */
export function writeAddress(view: string, settings: Settings): string {
  const query = new URLSearchParams();
  if (settings.preset !== "tiny") query.set("preset", settings.preset);
  if (settings.device !== "auto") query.set("device", settings.device);
  const usual = presetNamed(settings.preset)?.values ?? {};
  for (const field of fieldsOf(settings.kind)) {
    const value = settings.values[field.key];
    if (value !== undefined && value !== usual[field.key]) query.set(field.key, String(value));
  }
  const text = query.toString();
  return `#${view}${text ? `?${text}` : ""}`;
}

/** The link to these settings. */
export function shareLink(settings: Settings): string {
  return `${location.origin}${location.pathname}${writeAddress("train", settings)}`;
}
