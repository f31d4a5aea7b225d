/** The package's interface without a network behind it: plausible numbers at a chosen pace, for the page's own tests. */

import type {
  AdapterInfo, AttentionMap, BenchOptions, BenchRow, ClassifierOptions, ClassifierRun, DeviceChoice, ErrorKindName,
  Estimate, GenerateOptions, Histogram, LanguageModel, LanguageModelOptions, LanguageModelRun, MemoryReport, Metrics,
  ModelFiles, Profile, Run, RunInfo, RunOptions, Token, WeightSummary,
} from "../../../package/src/types.ts";
import { readHeader, writeSafetensors } from "./safetensors.ts";

export type * from "../../../package/src/types.ts";

export class VoltaError extends Error {
  constructor(readonly kind: ErrorKindName, message: string) {
    super(message);
    this.name = "VoltaError";
  }
}

/** What tests turn: how fast a step is, and faults to come. */
const control = { msPerStep: 6, failNext: "" as "" | "lose-device" | "out-of-memory" | "trap" };
(globalThis as { voltaMock?: typeof control }).voltaMock = control;

const STORY = "Lily had a red ball. She ran to the park with Tom. The ball rolled under a tree. \"I see it!\" said Tom. They were happy and went home. ";

function random(seed: number): () => number {
  let state = seed * 2654435761 + 12345;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2246822507) + 3266489909) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 4294967296;
  };
}

function adapterOf(choice: DeviceChoice | undefined): AdapterInfo {
  if (choice === "gpu") {
    const limits = { maxBufferSize: 268435456, maxStorageBufferBindingSize: 134217728, maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupStorageSize: 16384 };
    return { device: "gpu", name: "Pretended adapter", backend: "WebGPU", software: true, f16: true, timestamps: true, limits };
  }
  return { device: "cpu", name: "SIMD, one thread", backend: "WebAssembly", software: false, f16: false, timestamps: false, limits: {}, reason: choice === "cpu" ? undefined : "the only adapter here is a program on the processor, which is slower" };
}

function memoryOf(parameters: number, step: number): MemoryReport {
  const liveBytes = parameters * 16 + 65536 * (step % 3);
  return { wasmBytes: 48 << 20, liveBytes, peakBytes: parameters * 24, reservedBytes: parameters * 28 };
}

function histogramOf(step: number, seed: number): Histogram {
  const counts = new Uint32Array(40);
  const width = 0.3 + 0.2 * Math.min(1, step / 300);
  for (let bin = 0; bin < 40; bin++) {
    const x = (bin - 19.5) / 20 / width;
    counts[bin] = Math.round(900 * Math.exp(-x * x * (1 + (seed % 3))) * (0.9 + 0.1 * Math.sin(bin + step)));
  }
  return { min: -0.4, max: 0.4, counts, mean: 0, std: width * 0.3 };
}

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

interface Shape { kind: "language-model" | "classifier"; parameters: number; layers: number; heads: number; width: number; tensors: [string, number[]][] }

function languageShape(o: LanguageModelOptions): Shape {
  const layers = o.layers ?? 2, width = o.width ?? 64, heads = o.heads ?? 2, context = o.context ?? 64;
  const vocabulary = o.tokenizer === "bpe" ? (o.vocabulary ?? 512) : o.tokenizer === "bytes" ? 256 : 70;
  if (width % heads !== 0) throw new VoltaError("argument", `heads: ${heads} must divide the width ${width}: each head takes an equal part`);
  const tensors: [string, number[]][] = [["embedding.weight", [vocabulary, width]], ["positions.weight", [context, width]]];
  for (let layer = 0; layer < layers; layer++) {
    tensors.push([`blocks.${layer}.attention.weight`, [3 * width, width]], [`blocks.${layer}.mlp.weight`, [4 * width, width]]);
  }
  const parameters = vocabulary * width + context * width + layers * 12 * width * width;
  return { kind: "language-model", parameters, layers, heads, width, tensors };
}

function classifierShape(o: ClassifierOptions): Shape {
  const widths = [784, ...(o.hidden ?? [256, 128]), 10];
  const tensors = widths.slice(1).map((width, i): [string, number[]] => [`layers.${i}.weight`, [width, widths[i] ?? 1]]);
  return { kind: "classifier", parameters: tensors.reduce((sum, [, [a = 1, b = 1]]) => sum + a * b + a, 0), layers: tensors.length, heads: 1, width: 1, tensors };
}

/** A run whose loss falls as such losses do. */
class MockRun implements Run {
  readonly info: Promise<RunInfo>;
  readonly finished: Promise<void>;
  protected at = 0;
  #queue: Metrics[] = [];
  #wake: () => void = () => {};
  #paused: boolean;
  #state: "running" | "ended" | "failed" = "running";
  #error: unknown;
  #settle: { resolve: () => void; reject: (error: unknown) => void };
  #random: () => number;
  #steps: number;
  readonly adapter: AdapterInfo;

  constructor(readonly options: RunOptions & Partial<LanguageModelOptions>, readonly shape: Shape) {
    this.adapter = adapterOf(options.device);
    this.#random = random((options.seed ?? 0) + 1);
    this.#paused = options.paused ?? false;
    this.#steps = options.steps ?? 300;
    let settle: { resolve: () => void; reject: (error: unknown) => void } | undefined;
    this.finished = new Promise((resolve, reject) => (settle = { resolve, reject }));
    this.#settle = settle!;
    this.finished.catch(() => {});
    this.info = this.#open();
    this.info.then(() => this.#train(), (error: unknown) => this.#fail(error));
    options.signal?.addEventListener("abort", () => this.#fail(new VoltaError("abort", "the run was aborted")));
  }

  async #open(): Promise<RunInfo> {
    this.options.onProgress?.({ stage: "loading", fraction: 0.2 });
    await sleep(30);
    if (this.options.checkpoint) {
      const { metadata } = readHeader(this.options.checkpoint, VoltaError);
      if (metadata.step === undefined) throw new VoltaError("data", "the file is no checkpoint of a run: it has no step");
      if (metadata.kind !== this.shape.kind) throw new VoltaError("data", `the checkpoint is of a ${metadata.kind}, not of a ${this.shape.kind}`);
      this.at = Number(metadata.step);
    }
    this.options.onProgress?.({ stage: "compiling", fraction: 0.8 });
    await sleep(30);
    const plan = this.shape.tensors.map(([name], i) => `kernel ${i}  gemm        reads 2 tensors, ${12 + i} kB  writes ${8 + i} kB   ${name}`).join("\n");
    return {
      parameters: this.shape.parameters, peakBytes: this.shape.parameters * 24, kernels: this.shape.tensors.length * 6, adapter: this.adapter,
      warnings: this.adapter.reason ? [`the CPU computes: ${this.adapter.reason}`] : [], secondsEstimate: NaN, plan, firstStep: this.at + 1, extension: "safetensors",
    };
  }

  #metrics(): Metrics {
    const t = this.at, language = this.shape.kind === "language-model";
    const floor = language ? 1.1 : 0.08, start = language ? 4.2 : 2.3;
    const loss = floor + (start - floor) * Math.exp(-Math.pow(t / 60, 0.7)) + (this.#random() - 0.5) * 0.14 * (0.3 + Math.exp(-t / 200));
    const every = this.options.validateEvery ?? 20;
    const validated = every > 0 && t % every === 0;
    const sampleEvery = this.options.sampleEvery ?? 50;
    const ms = control.msPerStep;
    return {
      step: t, steps: this.#steps, loss, validationLoss: validated ? loss + 0.06 : undefined,
      accuracy: validated && !language ? Math.min(0.985, 1 - loss / 2.4) : undefined,
      tokensPerSecond: language ? 512000 / ms : undefined, examplesPerSecond: language ? undefined : 64000 / ms,
      msPerStep: ms * (0.9 + 0.2 * this.#random()), learningRate: (this.options.learningRate ?? 1e-3) * Math.min(1, t / 20) * (0.5 + 0.5 * Math.cos((Math.PI * t) / this.#steps)),
      gradNorm: 0.4 + 2 * Math.exp(-t / 50) + 0.1 * this.#random(), memory: memoryOf(this.shape.parameters, t),
      sample: language && sampleEvery > 0 && t % sampleEvery === 0 ? { step: t, text: (this.options.prompt ?? "") + this.#scrambled(t) } : undefined,
    };
  }

  #scrambled(step: number): string {
    const wrong = Math.exp(-step / 120);
    return [...STORY].map((c) => (this.#random() < wrong ? "etaoinshr ldu"[Math.floor(this.#random() * 13)] : c)).join("");
  }

  #advance(): Metrics {
    this.at++;
    const metrics = this.#metrics();
    if (control.failNext === "lose-device") {
      control.failNext = "";
      metrics.warning = "The GPU was lost and opened again; the run went on from step 1.";
    } else if (control.failNext === "trap") {
      control.failNext = "";
      throw new VoltaError("module", "the module trapped and cannot go on");
    } else if (control.failNext === "out-of-memory") {
      control.failNext = "";
      throw new VoltaError("memory", "the device has no memory left: a smaller batch or width takes less");
    }
    this.#queue.push(metrics);
    this.#wake();
    return metrics;
  }

  async #train(): Promise<void> {
    try {
      while (this.#state === "running" && this.at < this.#steps) {
        await sleep(control.msPerStep);
        if (!this.#paused && this.#state === "running") {
          const many = control.msPerStep < 1 ? 40 : 1;
          for (let i = 0; i < many && this.at < this.#steps; i++) this.#advance();
        }
      }
      this.#end();
    } catch (error) {
      this.#fail(error);
    }
  }

  #end(): void {
    if (this.#state !== "running") return;
    this.#state = "ended";
    this.#settle.resolve();
    this.#wake();
  }

  #fail(error: unknown): void {
    if (this.#state !== "running") return;
    this.#state = "failed";
    this.#error = error;
    this.#settle.reject(error);
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Metrics> {
    for (;;) {
      const next = this.#queue.shift();
      if (next) yield next;
      else if (this.#state === "ended") return;
      else if (this.#state === "failed") throw this.#error;
      else await new Promise<void>((wake) => (this.#wake = wake));
    }
  }

  async pause(): Promise<void> {
    this.#paused = true;
  }
  async resume(): Promise<void> {
    this.#paused = false;
  }
  async step(): Promise<Metrics> {
    await this.info;
    if (!this.#paused) throw new VoltaError("argument", "single steps are of a run that is paused");
    await sleep(control.msPerStep);
    return this.#advance();
  }
  async stop(): Promise<void> {
    this.#end();
  }
  async checkpoint(): Promise<Uint8Array> {
    await this.info;
    return writeSafetensors(this.shape.tensors, { format: "volta-checkpoint", kind: this.shape.kind, step: String(this.at) });
  }
  async model(): Promise<Uint8Array> {
    await this.info;
    return writeSafetensors(this.shape.tensors, { format: "volta-language-model", kind: this.shape.kind, steps: String(this.at) });
  }
  async weights(): Promise<WeightSummary[]> {
    await this.info;
    return this.shape.tensors.map(([name, shape], i) => ({ name, shape, histogram: histogramOf(this.at, i), gradient: histogramOf(this.at, i + 1) }));
  }
  async profile(): Promise<Profile> {
    await sleep(40);
    let startMs = 0;
    const kernels = ["gemm 64x64 f32", "softmax rows", "layer norm", "adamw (multi-tensor)", "cross-entropy", "gelu", "gemm 32x64 f32", "sum of columns"].map((name, i) => {
      const ms = 1.9 / (i + 1);
      const kernel = { name, count: 1 + (i % 4), ms, startMs };
      startMs += ms;
      return kernel;
    });
    return { kernels, ops: kernels.map(({ name, ms, count }) => ({ name: name.split(" ")[0] ?? name, ms, calls: count })), wallMs: startMs + 0.6, deviceMs: startMs, timed: this.adapter.timestamps, trace: JSON.stringify({ traceEvents: [] }) };
  }
  async memory(): Promise<MemoryReport> {
    return memoryOf(this.shape.parameters, this.at);
  }
  terminate(): void {
    this.#fail(new VoltaError("abort", "the run was terminated"));
  }
  async loseDevice(): Promise<void> {
    control.failNext = "lose-device";
  }
}

async function* written(o: GenerateOptions): AsyncGenerator<Token> {
  const draw = random((o.seed ?? 7) + 1);
  for (let i = 0; i < (o.length ?? 100); i++) {
    await sleep(8);
    if (o.signal?.aborted) throw new VoltaError("abort", "writing was ended");
    yield { text: STORY[i % STORY.length] ?? " ", probability: Math.pow(draw(), 0.35) };
  }
}

async function attended(text: string): Promise<AttentionMap> {
  const tokens = [...text].slice(0, 48);
  const n = tokens.length, weights = new Float32Array(n * n), draw = random(3);
  for (let row = 0; row < n; row++) {
    let sum = 0;
    for (let column = 0; column <= row; column++) sum += weights[row * n + column] = Math.exp(3 * draw() - 0.12 * (row - column));
    for (let column = 0; column <= row; column++) weights[row * n + column]! /= sum;
  }
  return { tokens, weights };
}

class MockLanguageRun extends MockRun implements LanguageModelRun {
  generate(o: GenerateOptions): AsyncIterable<Token> {
    return written(o);
  }
  attention(text: string): Promise<AttentionMap> {
    return attended(text);
  }
}

class MockClassifierRun extends MockRun implements ClassifierRun {
  async classify(pixels: Float32Array): Promise<Float32Array> {
    if (pixels.length !== 784) throw new VoltaError("shape", `classify: ${pixels.length} pixels were given, a digit has 784`);
    const ink = pixels.reduce((sum, x) => sum + x, 0);
    const scores = Array.from({ length: 10 }, (_, digit) => Math.exp(digit === Math.round(ink) % 10 ? 4 : 0.6 * Math.sin(digit + ink)));
    const sum = scores.reduce((a, b) => a + b, 0);
    return Float32Array.from(scores, (score) => score / sum);
  }
}

export function trainLanguageModel(options: LanguageModelOptions = {}): LanguageModelRun {
  return new MockLanguageRun(options, languageShape(options));
}

export function trainClassifier(options: ClassifierOptions = {}): ClassifierRun {
  if (options.data && options.data.images[2] !== 8) throw new VoltaError("data", "the images are no idx file: it does not begin with 0 0 8 3");
  return new MockClassifierRun(options, classifierShape(options));
}

export async function openLanguageModel(model: ModelFiles, _options: { device?: DeviceChoice; signal?: AbortSignal } = {}): Promise<LanguageModel> {
  await sleep(20);
  const bytes = model instanceof Uint8Array ? model : model.files["model.safetensors"];
  if (!bytes) throw new VoltaError("data", "model.safetensors is missing among the files");
  readHeader(bytes, VoltaError);
  return {
    info: { parameters: 107000, layers: 2, heads: 2, width: 64, context: 64, vocabulary: 70, tokenizer: "chars", adapter: adapterOf("cpu") },
    generate: written, attention: attended, dispose: () => {},
  };
}

export async function* bench(options: BenchOptions = {}): AsyncGenerator<BenchRow> {
  const device = options.device === "gpu" ? "gpu" : "cpu", speed = device === "gpu" ? 4 : 1;
  const rows: [string, number, number?, number?][] = [["matmul 512", 9.1, 29.4], ["softmax 1024 × 1024", 2.4, undefined, 3.5], ["layer norm 1024 × 1024", 1.9, undefined, 4.4], ["mlp step", 9.2, 4.1]];
  for (const [name, ms, gflops, gbps] of rows) {
    await sleep(60);
    if (options.signal?.aborted) return;
    yield { name, ms: ms / speed, gflops: gflops && gflops * speed, gbps: gbps && gbps * speed, device };
  }
}

export async function estimate(options: LanguageModelOptions | ClassifierOptions, kind: "language-model" | "classifier"): Promise<Estimate> {
  const { parameters } = kind === "classifier" ? classifierShape(options as ClassifierOptions) : languageShape(options as LanguageModelOptions);
  return { parameters, peakBytes: parameters * 24 };
}

export async function stories(): Promise<string> {
  return STORY.repeat(200);
}
