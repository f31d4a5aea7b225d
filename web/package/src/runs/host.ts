// The worker's end of a run: steps one after the other, and calls between them.

import { init, adapter, reopen } from "../device.js";
import { VoltaError, asVoltaError } from "../errors.js";
import { relieve, turn } from "../handles.js";
import { memoryNow, profile } from "../telemetry.js";
import type {
  AdapterInfo,
  AttentionMap,
  ClassifierOptions,
  GenerateOptions,
  LanguageModelOptions,
  MemoryReport,
  Metrics,
  Profile,
  Progress,
  RunInfo,
  RunOptions,
  Token,
  WeightSummary,
} from "../types.js";
import { call, callAsync } from "../wasm.js";

/** What a run says to its page. */
export type Say = (name: string, value: unknown) => void;

/** A step as the engine tells it. */
interface Step extends Omit<Metrics, "memory" | "msPerStep"> {
  examples?: number;
  tokens?: number;
}

/** What the engine knows before the first step. */
interface Known {
  parameters: number;
  step: number;
  steps: number;
  plan: { kernels: unknown[]; peakBytes: number; text: string } | null;
}

/** Lost devices in a row after which a run gives up on the GPU. */
const MOST_LOSSES = 3;

/** Tokens of a sample. */
const SAMPLE_LENGTH = 120;

/** Milliseconds without a message from the worker that a page may notice. */
const LONGEST_SILENCE = 30;

/** Bytes as they are, or out of gzip. */
async function unpacked(bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream("gzip"));
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new VoltaError("data", "the file is damaged: gzip cannot unpack it");
  }
}

/** Where a run keeps its place: the engine's handle, and what makes it again. */
export class RunHost {
  readonly #kind: "classifier" | "language-model";
  readonly #options: RunOptions & ClassifierOptions & LanguageModelOptions;
  readonly #say: Say;
  readonly #warnings: string[] = [];
  #data: ClassifierOptions["data"];
  #handle = 0;
  #known!: Known;
  #isPaused: boolean;
  #isStopped = false;
  #isOver = false;
  #wake: () => void = () => {};
  /** What is to be done, one after the other. */
  #queue: Promise<unknown> = Promise.resolve();
  #kept: { bytes: Uint8Array; step: number } | undefined;
  #keptAt = 0;
  #losses = 0;
  #warning: string | undefined;
  #step = 0;
  #msPerStep = 0;
  #lastTurn = 0;
  /** Why it never began. */
  #stillborn: VoltaError | undefined;

  constructor(kind: "classifier" | "language-model", options: RunOptions, say: Say) {
    this.#kind = kind;
    this.#options = options;
    this.#say = say;
    this.#isPaused = options.paused === true;
  }

  /** Opens the device, builds the model, plans its step, and begins. What is asked meanwhile waits for that. */
  async start(onProgress: (progress: Progress) => void): Promise<RunInfo> {
    const info = await this.#after(() => this.#open(onProgress)).catch((thrown: unknown) => {
      this.#stillborn = asVoltaError(thrown);
      throw this.#stillborn;
    });
    void this.#run();
    return info;
  }

  async #open(onProgress: (progress: Progress) => void): Promise<RunInfo> {
    const { reason } = await init({ device: this.#options.device ?? "auto", onProgress });
    if (reason !== undefined) this.#warnings.push(`The CPU is used: ${reason}.`);
    onProgress({ stage: "building the model", fraction: 0 });
    if (this.#options.checkpoint) this.#kept = { bytes: this.#options.checkpoint, step: 0 };
    await this.#unpack();
    await this.#buildSomewhere();
    onProgress({ stage: "building the model", fraction: 1 });
    return this.#info(adapter());
  }

  /** Files that were dropped as they came from the net. */
  async #unpack(): Promise<void> {
    const { data } = this.#options;
    if (data) this.#data = { images: await unpacked(data.images), labels: await unpacked(data.labels) };
  }

  /** Builds the model; on the CPU where the GPU was only a guess and does not do. */
  async #buildSomewhere(): Promise<void> {
    try {
      await this.#build();
    } catch (thrown) {
      const error = asVoltaError(thrown);
      const isGuess = (this.#options.device ?? "auto") === "auto" && adapter().device === "gpu";
      if (error.kind !== "device" || !isGuess) throw error;
      await init({ device: "cpu" });
      this.#warnings.push(`The CPU is used: the GPU failed (${error.message}).`);
      await this.#build();
    }
  }

  async #build(): Promise<void> {
    const { data: _data, checkpoint: _checkpoint, ...options } = this.#options;
    const data = this.#data;
    const bytes = this.#kept?.bytes;
    this.#handle = await callAsync<number>((wasm) =>
      this.#kind === "classifier"
        ? wasm.run_classifier(options, data?.images, data?.labels, bytes)
        : wasm.run_language_model(options, bytes),
    );
    this.#known = await callAsync<Known>((wasm) => wasm.run_info(this.#handle));
    this.#step = this.#known.step;
    if (this.#kept) this.#kept.step = this.#step;
    this.#keptAt = performance.now();
  }

  #info(opened: AdapterInfo): RunInfo {
    const { parameters, plan, step, steps } = this.#known;
    return {
      parameters,
      peakBytes: plan?.peakBytes ?? 0,
      kernels: plan?.kernels.length ?? 0,
      adapter: opened,
      warnings: this.#warnings,
      secondsEstimate: this.#msPerStep > 0 ? (this.#msPerStep * (steps - step)) / 1e3 : NaN,
      plan: plan?.text ?? "",
      firstStep: step + 1,
      extension: "safetensors",
    };
  }

  /** Runs `f` when all that was asked before is done. */
  #after<T>(f: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(() => {
      if (this.#stillborn) throw this.#stillborn;
      return f();
    });
    this.#queue = result.catch(() => {});
    return result;
  }

  /** Steps until the last one, while it is not paused. */
  async #run(): Promise<void> {
    try {
      while (!this.#isStopped && this.#step < this.#known.steps) {
        if (this.#isPaused) {
          await new Promise<void>((resolve) => (this.#wake = resolve));
          continue;
        }
        await this.#after(() => this.#advance());
        // Messages that came while a step was computed.
        if (performance.now() - this.#lastTurn > LONGEST_SILENCE || adapter().device === "cpu") {
          await turn();
          this.#lastTurn = performance.now();
        }
      }
      this.#isOver = true;
      this.#say("finished", undefined);
    } catch (thrown) {
      this.#isOver = true;
      const { kind, message } = asVoltaError(thrown);
      this.#say("failed", { kind, message });
    }
  }

  async #advance(): Promise<Metrics> {
    const began = performance.now();
    let step: Step;
    try {
      step = await callAsync<Step>((wasm) => wasm.run_step(this.#handle));
      await this.#keep();
    } catch (thrown) {
      await this.#recover(asVoltaError(thrown));
      return this.#advance();
    }
    this.#losses = 0;
    const msPerStep = performance.now() - began;
    this.#msPerStep = this.#msPerStep === 0 ? msPerStep : 0.9 * this.#msPerStep + 0.1 * msPerStep;
    this.#step = step.step;
    const { examples, tokens, ...told } = step;
    const metrics: Metrics = { ...told, msPerStep, memory: memoryNow() };
    if (examples !== undefined) metrics.examplesPerSecond = (examples * 1e3) / msPerStep;
    if (tokens !== undefined) metrics.tokensPerSecond = (tokens * 1e3) / msPerStep;
    if (this.#warning !== undefined) metrics.warning = this.#warning;
    this.#warning = undefined;
    for (const name of Object.keys(metrics) as (keyof Metrics)[]) {
      if (metrics[name] === undefined) delete metrics[name];
    }
    await this.#sample(metrics);
    this.#say("metrics", metrics);
    await relieve();
    return metrics;
  }

  /** Adds what a language model writes, where a sample is due. */
  async #sample(metrics: Metrics): Promise<void> {
    const { sampleEvery = 0, prompt = "", temperature, topP, seed = 0 } = this.#options;
    const isDue = sampleEvery > 0 && (metrics.step % sampleEvery === 0 || metrics.step === metrics.steps);
    if (this.#kind !== "language-model" || !isDue) return;
    let text = prompt;
    const options: GenerateOptions = { prompt, length: SAMPLE_LENGTH, seed: seed + metrics.step };
    if (temperature !== undefined) options.temperature = temperature;
    if (topP !== undefined) options.topP = topP;
    await generate(this.#handle, options, (token) => (text += token.text), () => this.#isStopped, (f) => f());
    metrics.sample = { step: metrics.step, text };
  }

  /** Keeps a checkpoint in memory now and then. */
  async #keep(): Promise<void> {
    const every = 1e3 * (this.#options.keepEvery ?? 10);
    const isFirst = this.#kept === undefined;
    if (adapter().device !== "gpu" || (!isFirst && performance.now() - this.#keptAt < every)) return;
    const bytes = await callAsync<Uint8Array>((wasm) => wasm.run_checkpoint(this.#handle));
    this.#kept = { bytes, step: this.#step + 1 };
    this.#keptAt = performance.now();
  }

  /** Goes on from the last checkpoint after the device was lost; any other error is one. */
  async #recover(error: VoltaError): Promise<void> {
    if (error.kind !== "device" || adapter().device !== "gpu") throw error;
    this.#losses++;
    const isAuto = (this.#options.device ?? "auto") === "auto";
    let where = "opened again";
    try {
      if (this.#losses > MOST_LOSSES) throw error;
      await reopen();
    } catch (thrown) {
      if (!isAuto) throw thrown;
      await init({ device: "cpu" });
      where = "given up, and the CPU taken";
    }
    try {
      call((wasm) => wasm.run_free(this.#handle));
    } catch {
      // It is gone already.
    }
    const from = this.#kept?.step ?? 0;
    await this.#build();
    this.#warning = `The device was lost (${error.message}) and ${where}; training goes on from step ${from}.`;
    this.#warnings.push(this.#warning);
  }

  /** Whether something can be asked of the model. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    await this.#after(async () => {});
  }

  resume(): void {
    this.#isPaused = false;
    this.#wake();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#wake();
    await this.#after(async () => {});
  }

  step(): Promise<Metrics> {
    this.#isPaused = true;
    return this.#after(async () => {
      if (this.#isOver || this.#step >= this.#known.steps) throw new VoltaError("argument", "step: the run is over");
      const metrics = await this.#advance();
      if (this.#step >= this.#known.steps) this.resume();
      return metrics;
    });
  }

  checkpoint(): Promise<Uint8Array> {
    return this.#after(() => callAsync<Uint8Array>((wasm) => wasm.run_checkpoint(this.#handle)));
  }

  model(): Promise<Uint8Array> {
    return this.#after(() => callAsync<Uint8Array>((wasm) => wasm.run_model(this.#handle)));
  }

  weights(): Promise<WeightSummary[]> {
    return this.#after(() => callAsync<WeightSummary[]>((wasm) => wasm.run_weights(this.#handle)));
  }

  classify(pixels: Float32Array): Promise<Float32Array> {
    return this.#after(() => callAsync<Float32Array>((wasm) => wasm.run_classify(this.#handle, pixels)));
  }

  async memory(): Promise<MemoryReport> {
    return memoryNow();
  }

  /** Of the next step, whoever takes it. */
  profile(): Promise<Profile> {
    return this.#after(async () => {
      if (this.#isOver || this.#step >= this.#known.steps) {
        throw new VoltaError("argument", "profile: the run is over, and no step follows");
      }
      const { result: _metrics, ...taken } = await profile(() => this.#advance(), adapter().device === "gpu");
      return taken;
    });
  }

  loseDevice(): void {
    call((wasm) => wasm.lose_gpu());
  }

  async generate(options: GenerateOptions, give: (token: Token) => void, isCancelled: () => boolean): Promise<void> {
    await generate(this.#handle, options, give, isCancelled, (f) => this.#after(f));
  }

  attention(text: string, layer: number, head: number): Promise<AttentionMap> {
    return this.#after(() => callAsync<AttentionMap>((wasm) => wasm.run_attention(this.#handle, text, layer, head)));
  }
}

/** Tokens of a model one by one; `between` lets other work of the model go first. */
export async function generate(
  handle: number,
  options: GenerateOptions,
  give: (token: Token) => void,
  isCancelled: () => boolean,
  between: <T>(f: () => Promise<T>) => Promise<T>,
): Promise<void> {
  const writer = await between(() => callAsync<number>((wasm) => wasm.writer_new(handle, options)));
  try {
    for (let k = 0; k < (options.length ?? 100) && !isCancelled(); k++) {
      const token = await between(() => callAsync<Token | null>((wasm) => wasm.writer_next(writer)));
      if (!token) break;
      give(token);
      await turn();
    }
  } finally {
    call((wasm) => wasm.writer_free(writer));
  }
}
