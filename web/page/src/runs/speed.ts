/** How fast runs were on this device, to tell how long the next one will take. */

import type { DeviceName } from "volta-ml";
import type { Settings } from "../settings.ts";

/** Arithmetic a second until something was measured here: one thread of WebAssembly; a small GPU. */
const GUESS: Record<DeviceName, number> = { cpu: 7e9, gpu: 1e11 };
/** A step is never faster: the time of its launches and its reading, in seconds. */
const LEAST: Record<DeviceName, number> = { cpu: 0.0005, gpu: 0.004 };

function key(device: DeviceName, kind: string): string {
  return `volta-speed-${device}-${kind}`;
}

/** Six operations a parameter and token are a step's arithmetic; convolutions use each weight at every place. */
function arithmetic(settings: Settings, parameters: number): number {
  const { batch, context, convolutional } = settings.values;
  const tokens = Number(batch) * (settings.kind === "language" ? Number(context) : 1);
  return 6 * parameters * tokens * (convolutional === true ? 20 : 1);
}

export function secondsOf(settings: Settings, parameters: number, device: DeviceName): { seconds: number; measured: boolean } {
  let speed = NaN;
  try {
    speed = Number(localStorage.getItem(key(device, settings.kind)) ?? NaN);
  } catch {
    // Storage is refused: the guess holds.
  }
  const measured = speed > 0;
  const step = Math.max(LEAST[device], arithmetic(settings, parameters) / (measured ? speed : GUESS[device]));
  return { seconds: step * Number(settings.values.steps), measured };
}

export function rememberSpeed(settings: Settings, parameters: number, device: DeviceName, msPerStep: number): void {
  try {
    localStorage.setItem(key(device, settings.kind), String((1000 * arithmetic(settings, parameters)) / msPerStep));
  } catch {
    // Storage is refused: the next visit guesses.
  }
}
