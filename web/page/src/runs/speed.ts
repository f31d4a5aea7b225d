/** How fast runs were on this device, to tell how long the next one will take. */

import type { DeviceName } from "volta-ml";
import type { Settings } from "../settings.ts";

/** Where a run computes: a software adapter is neither. */
export interface Place {
  device: DeviceName;
  software: boolean;
}

/** Arithmetic a second until something was measured here, and the least time of a step, in seconds: its launches, its reading. */
const GUESSES = {
  cpu: { speed: 7e9, step: 0.0005 },
  gpu: { speed: 1e11, step: 0.004 },
  software: { speed: 5e7, step: 0.1 },
} as const;

function place({ device, software }: Place): keyof typeof GUESSES {
  return device === "gpu" && software ? "software" : device;
}

function key(where: Place, kind: string): string {
  return `volta-speed-${place(where)}-${kind}`;
}

/** Six operations a parameter and token are a step's arithmetic; convolutions use each weight at every place. */
function arithmetic(settings: Settings, parameters: number): number {
  const { batch, context, convolutional } = settings.values;
  const tokens = Number(batch) * (settings.kind === "language" ? Number(context) : 1);
  return 6 * parameters * tokens * (convolutional === true ? 20 : 1);
}

export function secondsOf(settings: Settings, parameters: number, where: Place): { seconds: number; measured: boolean } {
  let speed = NaN;
  try {
    speed = Number(localStorage.getItem(key(where, settings.kind)) ?? NaN);
  } catch {
    // Storage is refused: the guess holds.
  }
  const measured = speed > 0;
  const guess = GUESSES[place(where)];
  const step = Math.max(guess.step, arithmetic(settings, parameters) / (measured ? speed : guess.speed));
  return { seconds: step * Number(settings.values.steps), measured };
}

export function rememberSpeed(settings: Settings, parameters: number, where: Place, msPerStep: number): void {
  try {
    localStorage.setItem(key(where, settings.kind), String((1000 * arithmetic(settings, parameters)) / msPerStep));
  } catch {
    // Storage is refused: the next visit guesses.
  }
}
