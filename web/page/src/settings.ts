/** What a run can be told: every setting with its meaning, and presets of them. */

import type { ClassifierOptions, DeviceChoice, LanguageModelOptions, RunOptions } from "volta-ml";

export type Kind = "language" | "digits";
export type Value = number | string | boolean;
export type Values = Record<string, Value>;

/** Everything that a link shares. */
export interface Settings {
  kind: Kind;
  preset: string;
  device: DeviceChoice;
  values: Values;
}

export interface Field {
  key: string;
  label: string;
  /** What it means, in a sentence. */
  meaning: string;
  kinds: readonly Kind[];
  group: "Model" | "Training" | "Watching";
  type: "count" | "real" | "choice" | "widths" | "flag" | "text";
  unit?: string;
  min?: number;
  max?: number;
  choices?: readonly string[];
  /** Whether the value says something under these settings. */
  applies?: (values: Values) => boolean;
}

const BOTH = ["language", "digits"] as const;
const LANGUAGE = ["language"] as const;
const DIGITS = ["digits"] as const;

export const FIELDS: readonly Field[] = [
  { key: "layers", label: "Layers", meaning: "Transformer blocks, one after the other.", kinds: LANGUAGE, group: "Model", type: "count", min: 1, max: 48 },
  { key: "heads", label: "Heads", meaning: "Attention heads of a block. They must divide the width.", kinds: LANGUAGE, group: "Model", type: "count", min: 1, max: 64 },
  { key: "width", label: "Width", meaning: "The length of the vector that stands for a token.", kinds: LANGUAGE, group: "Model", type: "count", min: 8, max: 4096 },
  { key: "context", label: "Context", meaning: "How many tokens the model sees at once.", kinds: LANGUAGE, group: "Model", type: "count", unit: "tokens", min: 4, max: 8192 },
  { key: "tokenizer", label: "Tokenizer", meaning: "How text becomes tokens: characters, bytes, or frequent byte pairs.", kinds: LANGUAGE, group: "Model", type: "choice", choices: ["chars", "bytes", "bpe"] },
  { key: "vocabulary", label: "Vocabulary", meaning: "The most tokens that byte pairs may make.", kinds: LANGUAGE, group: "Model", type: "count", unit: "tokens", min: 257, max: 65536, applies: (values) => values.tokenizer === "bpe" },
  { key: "dropout", label: "Dropout", meaning: "The part of the values that training leaves out at random.", kinds: LANGUAGE, group: "Model", type: "real", min: 0, max: 0.9 },
  { key: "hidden", label: "Hidden layers", meaning: "Widths of the layers between pixels and digits, with commas.", kinds: DIGITS, group: "Model", type: "widths" },
  { key: "convolutional", label: "Convolutions", meaning: "Two convolutions look at the picture before the layers do.", kinds: DIGITS, group: "Model", type: "flag" },
  { key: "steps", label: "Steps", meaning: "How many updates are made.", kinds: BOTH, group: "Training", type: "count", min: 1, max: 10_000_000 },
  { key: "batch", label: "Batch", meaning: "Examples that make one update.", kinds: BOTH, group: "Training", type: "count", unit: "a step", min: 1, max: 8192 },
  { key: "learningRate", label: "Learning rate", meaning: "The size of an update, at its highest.", kinds: BOTH, group: "Training", type: "real", min: 1e-8, max: 10 },
  { key: "schedule", label: "Schedule", meaning: "How the learning rate goes down after the warm-up.", kinds: BOTH, group: "Training", type: "choice", choices: ["cosine", "linear", "constant"] },
  { key: "warmup", label: "Warm-up", meaning: "The steps in which the learning rate rises.", kinds: BOTH, group: "Training", type: "count", unit: "steps", min: 0, max: 1_000_000 },
  { key: "weightDecay", label: "Weight decay", meaning: "How strongly weights are drawn to zero.", kinds: BOTH, group: "Training", type: "real", min: 0, max: 10 },
  { key: "clip", label: "Clip", meaning: "The longest gradient there may be; 0 lets all pass.", kinds: BOTH, group: "Training", type: "real", min: 0, max: 1e6 },
  { key: "seed", label: "Seed", meaning: "Where the random numbers start. The same seed gives the same run.", kinds: BOTH, group: "Training", type: "count", min: 0, max: 4294967295 },
  { key: "validateEvery", label: "Validate every", meaning: "Steps between measurements on data that is kept apart; 0 for none.", kinds: BOTH, group: "Watching", type: "count", unit: "steps", min: 0, max: 1_000_000 },
  { key: "sampleEvery", label: "Sample every", meaning: "Steps between samples of what the model writes; 0 for none.", kinds: LANGUAGE, group: "Watching", type: "count", unit: "steps", min: 0, max: 1_000_000 },
  { key: "prompt", label: "Prompt", meaning: "What samples begin with.", kinds: LANGUAGE, group: "Watching", type: "text" },
  { key: "temperature", label: "Temperature", meaning: "How freely samples are drawn; 0 takes the likeliest token.", kinds: LANGUAGE, group: "Watching", type: "real", min: 0, max: 10 },
  { key: "topP", label: "Top-p", meaning: "Samples choose among the likeliest tokens of this probability together.", kinds: LANGUAGE, group: "Watching", type: "real", min: 0.01, max: 1 },
];

export interface Preset {
  name: string;
  kind: Kind;
  label: string;
  about: string;
  values: Values;
}

const LANGUAGE_BASE: Values = {
  layers: 2, heads: 2, width: 64, context: 64, tokenizer: "chars", vocabulary: 512, dropout: 0,
  steps: 500, batch: 8, learningRate: 0.003, schedule: "cosine", warmup: 20, weightDecay: 0.01, clip: 1, seed: 0,
  validateEvery: 50, sampleEvery: 50, prompt: "", temperature: 0.8, topP: 0.95,
};

const DIGITS_BASE: Values = {
  hidden: "256, 128", convolutional: false,
  steps: 500, batch: 64, learningRate: 0.001, schedule: "cosine", warmup: 20, weightDecay: 0.01, clip: 1, seed: 0,
  validateEvery: 20,
};

export const PRESETS: readonly Preset[] = [
  { name: "tiny", kind: "language", label: "Tiny", about: "Words within a minute", values: LANGUAGE_BASE },
  { name: "small", kind: "language", label: "Small", about: "Sentences; some minutes on a CPU", values: { ...LANGUAGE_BASE, layers: 4, heads: 4, width: 128, context: 128, batch: 16, steps: 1500, learningRate: 0.002, warmup: 50, validateEvery: 100, sampleEvery: 100 } },
  { name: "large", kind: "language", label: "Large", about: "For a GPU", values: { ...LANGUAGE_BASE, layers: 6, heads: 6, width: 384, context: 256, tokenizer: "bpe", vocabulary: 2048, batch: 32, steps: 5000, learningRate: 0.001, warmup: 100, weightDecay: 0.1, dropout: 0.1, validateEvery: 200, sampleEvery: 200 } },
  { name: "mlp", kind: "digits", label: "Layers", about: "Two hidden layers; seconds", values: DIGITS_BASE },
  { name: "convolutional", kind: "digits", label: "Convolutions", about: "Sharper eyes; slower", values: { ...DIGITS_BASE, hidden: "128", convolutional: true, steps: 300 } },
];

export function presetsOf(kind: Kind): Preset[] {
  return PRESETS.filter((preset) => preset.kind === kind);
}

export function presetNamed(name: string): Preset | undefined {
  return PRESETS.find((preset) => preset.name === name);
}

export function fieldsOf(kind: Kind): Field[] {
  return FIELDS.filter((field) => field.kinds.includes(kind));
}

export function fromPreset(preset: Preset, device: DeviceChoice = "auto"): Settings {
  return { kind: preset.kind, preset: preset.name, device, values: { ...preset.values } };
}

/** A value as its field has it, or a sentence about why it cannot be. */
export function parse(field: Field, text: string): { value: Value } | { problem: string } {
  const between = `from ${field.min} to ${field.max}`;
  switch (field.type) {
    case "flag":
      return { value: text === "true" };
    case "text":
      return { value: text };
    case "choice":
      return field.choices?.includes(text) ? { value: text } : { problem: `${field.label} is one of ${field.choices?.join(", ")}.` };
    case "widths": {
      const widths = text.split(/[\s,]+/).filter(Boolean).map(Number);
      const fits = widths.length <= 8 && widths.every((width) => Number.isInteger(width) && width >= 1 && width <= 8192);
      return fits ? { value: widths.join(", ") } : { problem: "Hidden layers are at most 8 whole numbers from 1 to 8192." };
    }
    default: {
      const value = Number(text);
      const whole = field.type === "real" || Number.isInteger(value);
      const fits = text.trim() !== "" && Number.isFinite(value) && value >= (field.min ?? -Infinity) && value <= (field.max ?? Infinity);
      return whole && fits ? { value } : { problem: `${field.label} is a ${field.type === "count" ? "whole " : ""}number ${between}.` };
    }
  }
}

/** What does not go together, if anything. */
export function conflict(settings: Settings): string | undefined {
  const { width, heads, warmup, steps } = settings.values;
  if (settings.kind === "language" && Number(width) % Number(heads) !== 0) {
    return `${heads} heads do not divide a width of ${width}: each head takes an equal part.`;
  }
  if (settings.kind === "language" && Number(warmup) > Number(steps)) {
    return `A warm-up of ${warmup} steps is longer than the run, which has ${steps}.`;
  }
  return undefined;
}

function number(values: Values, key: string): number {
  return Number(values[key]);
}

function runOptions({ device, values }: Settings): RunOptions {
  return {
    device,
    seed: number(values, "seed"), steps: number(values, "steps"), batch: number(values, "batch"),
    learningRate: number(values, "learningRate"), weightDecay: number(values, "weightDecay"), clip: number(values, "clip"),
    warmup: number(values, "warmup"), schedule: values.schedule as "cosine" | "linear" | "constant",
    validateEvery: number(values, "validateEvery"),
  };
}

export function languageOptions(settings: Settings): LanguageModelOptions {
  const { values } = settings;
  const tokenizer = values.tokenizer as "chars" | "bytes" | "bpe";
  return {
    ...runOptions(settings),
    layers: number(values, "layers"), heads: number(values, "heads"), width: number(values, "width"),
    context: number(values, "context"), dropout: number(values, "dropout"), tokenizer,
    ...(tokenizer === "bpe" ? { vocabulary: number(values, "vocabulary") } : {}),
    sampleEvery: number(values, "sampleEvery"), prompt: String(values.prompt),
    temperature: number(values, "temperature"), topP: number(values, "topP"),
  };
}

export function classifierOptions(settings: Settings): ClassifierOptions {
  const { values } = settings;
  return {
    ...runOptions(settings),
    hidden: String(values.hidden).split(/[\s,]+/).filter(Boolean).map(Number),
    convolutional: values.convolutional === true,
  };
}
