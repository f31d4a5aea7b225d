// The public interface: what every call takes and gives. Tensors, `nn` and `optim` are classes in files of their own.

/** Where tensors live: WebGPU, or WebAssembly on the processor. */
export type DeviceName = "gpu" | "cpu";

/** A device, or `"auto"`: WebGPU where there is an adapter worth using, else the CPU with the reason told. */
export type DeviceChoice = "auto" | DeviceName;

/** What an error is about; the names of Volta's own kinds, and of those that only a browser has. */
export type ErrorKindName =
  | "shape"
  | "dtype"
  | "device"
  | "autograd"
  | "argument"
  | "non-finite"
  | "index"
  | "zero-division"
  | "memory"
  | "io"
  | "data"
  | "not-run"
  | "interrupted"
  /** The module was not started, or trapped and cannot go on. */
  | "module"
  /** The call was ended by its `AbortSignal` or by `terminate()`. */
  | "abort"
  | "other";

// ---------------------------------------------------------------------------------------------------------------- init

/** How the module is started. */
export interface InitOptions {
  /** Where tensors are made from now on. Default: `"auto"`. */
  device?: DeviceChoice;
  /** The WebAssembly module, where the one beside the package's file is not to be used. */
  wasm?: URL | string | BufferSource | WebAssembly.Module;
  /** Which adapter is asked for where there are two. */
  powerPreference?: "low-power" | "high-performance";
  /** Takes a software adapter for `"auto"` too, which is slower than the CPU as a rule. Default: false. */
  allowSoftware?: boolean;
  /** Hears how far loading is. */
  onProgress?: (progress: Progress) => void;
}

/** How far something is. */
export interface Progress {
  /** What is done now, for people: `"loading"`, `"opening the device"`, `"compiling"`. */
  stage: string;
  /** From 0 to 1. */
  fraction: number;
}

/** The device that is used, and what it can do. */
export interface AdapterInfo {
  device: DeviceName;
  /** The adapter's name as the browser tells it; of the CPU: what is used of it. */
  name: string;
  /** `"WebGPU"` or `"WebAssembly"`. */
  backend: string;
  /** Whether a program on the processor stands for a GPU, as SwiftShader does. */
  software: boolean;
  /** Whether 16-bit floats are computed with. */
  f16: boolean;
  /** Whether kernels can be timed on the device. */
  timestamps: boolean;
  /** The limits that kernels are made for, by WebGPU's names; empty for the CPU. */
  limits: Record<string, number>;
  /** Why the CPU was taken although `"auto"` was asked for. */
  reason?: string;
}

// ---------------------------------------------------------------------------------------------- memory and profiles

/** Memory in use, in bytes. */
export interface MemoryReport {
  /** The WebAssembly module's whole memory. It grows and never shrinks. */
  wasmBytes: number;
  /** Tensors that are alive on the device. */
  liveBytes: number;
  /** The most that was alive at once. */
  peakBytes: number;
  /** What the device has given out, live and kept for reuse. */
  reservedBytes: number;
}

/** Time by kernel and by op. */
export interface Profile {
  /** The kernels that ran, the longest first. */
  kernels: KernelTime[];
  /** The ops they stand for, the longest first. */
  ops: { name: string; ms: number; calls: number }[];
  /** From first to last, in milliseconds. */
  wallMs: number;
  /** The device's own time, where it has timestamps; 0 where not. */
  deviceMs: number;
  /** Whether `kernels` has the device's own times; else they are times on the host. */
  timed: boolean;
  /** A trace in Chrome's format: https://ui.perfetto.dev opens it. */
  trace: string;
}

/** A kernel of a profile. */
export interface KernelTime {
  name: string;
  count: number;
  /** All its runs together. */
  ms: number;
  /** When its first run began, in milliseconds from the profile's begin. */
  startMs: number;
}

// ----------------------------------------------------------------------------------------------------------- training

/** How rates change from step to step. */
export type ScheduleName = "cosine" | "linear" | "constant";

/** What every run is told. */
export interface RunOptions {
  /** Default: `"auto"`. */
  device?: DeviceChoice;
  /** Decides weights, order and dropout. Default: 0. The same seed on the same device gives the same run. */
  seed?: number;
  /** How many steps. Default: 500 for digits, 1000 for text. */
  steps?: number;
  /** AdamW's rate at its highest. Default: 0.001. */
  learningRate?: number;
  /** Examples (sequences) a step. Default: 64 digits, 8 sequences. */
  batch?: number;
  /** AdamW's decay of weights. Default: 0.01. */
  weightDecay?: number;
  /** The largest norm of all gradients together; 0 for any. Default: 1. */
  clip?: number;
  /** Steps over which the rate grows. Default: 20 for digits, 50 for text. */
  warmup?: number;
  /** What the rate does after the warm-up. Default: `"cosine"`. */
  schedule?: ScheduleName;
  /** Steps between validations; 0 for none. */
  validateEvery?: number;
  /**
   * Go on from this checkpoint: of a tab, or of `volta train`. Options of a language model that are not given are the checkpoint's;
   * those that are must fit it. The text must be the same.
   */
  checkpoint?: Uint8Array;
  /** Ends the run; its iterator throws an error of kind `"abort"`. */
  signal?: AbortSignal;
  /** Begin paused: `step()` and `resume()` move it. */
  paused?: boolean;
  /** Seconds between the checkpoints kept in the worker's memory, from which a lost device is made good. Default: 10. */
  keepEvery?: number;
  /** Hears of loading, of opening the device, and of compiling before the first step. */
  onProgress?: (progress: Progress) => void;
}

/** A language model's run. */
export interface LanguageModelOptions extends RunOptions {
  /** What to learn. Default: the built-in stories. */
  text?: string;
  /** Tokens that the model sees. Default: 64. */
  context?: number;
  /** Transformer blocks. Default: 2. */
  layers?: number;
  /** Attention heads of a block. Default: 4. */
  heads?: number;
  /** The length of the vector that stands for a token. Default: 64. */
  width?: number;
  /** The part of the values that training leaves out at random. Default: 0. */
  dropout?: number;
  /** What a token is. Default: `"chars"`. */
  tokenizer?: "bytes" | "chars" | "bpe";
  /** Tokens of a `"bpe"` tokenizer. */
  vocabulary?: number;
  /** Steps between samples; 0 for none. */
  sampleEvery?: number;
  /** What samples begin with. */
  prompt?: string;
  /** Of samples. Default: 0.8. */
  temperature?: number;
  /** Of samples. Default: 0.95. */
  topP?: number;
}

/** A digit classifier's run. */
export interface ClassifierOptions extends RunOptions {
  /** MNIST's idx files, packed by gzip or not (`train-images-idx3-ubyte`, `train-labels-idx1-ubyte`). Default: digits that the program draws. */
  data?: { images: Uint8Array; labels: Uint8Array };
  /** Widths of the hidden layers. Default: [256, 128]. */
  hidden?: number[];
  /** Two convolutions before the layers. */
  convolutional?: boolean;
}

/** What a step tells. */
export interface Metrics {
  /** The step that is over, from 1. */
  step: number;
  /** How many there are. */
  steps: number;
  /** The mean loss of the batch. */
  loss: number;
  /** The loss on examples that are kept apart, where this step measured it. */
  validationLoss?: number;
  /** Of a classifier: the part of kept-apart examples that it gets right, from 0 to 1, where this step measured it. */
  accuracy?: number;
  tokensPerSecond?: number;
  examplesPerSecond?: number;
  msPerStep: number;
  learningRate: number;
  /** The norm of all gradients together, before clipping. */
  gradNorm?: number;
  memory: MemoryReport;
  /** What the model writes, where this step sampled. */
  sample?: { step: number; text: string };
  /** What happened, for people: a lost device that was opened again, and from which step the run went on. */
  warning?: string;
}

/** What is known before the first step. */
export interface RunInfo {
  /** Trained numbers. */
  parameters: number;
  /** Memory that a step takes at most, from the plan of a step. */
  peakBytes: number;
  /** Kernels of a step. */
  kernels: number;
  adapter: AdapterInfo;
  /** What people should know: "the CPU was taken as …". */
  warnings: string[];
  /** How long the run will take; from the first steps' times. NaN before there are any. */
  secondsEstimate: number;
  /** The plan of a step as text, one kernel a line: what it reads, writes and computes. */
  plan: string;
  /** The step that comes first: 1, or the one after the checkpoint's. */
  firstStep: number;
  /** The file name's end of what `checkpoint()` and `model()` give. */
  extension: string;
}

/** Counts of equal bins from `min` to `max`. */
export interface Histogram {
  min: number;
  max: number;
  counts: Uint32Array;
  mean: number;
  std: number;
}

/** A tensor's values in short. */
export interface WeightSummary {
  name: string;
  shape: number[];
  histogram: Histogram;
  gradient?: Histogram;
}

/**
 * A run in a worker of the package's own. Iterating it gives the metrics of every step, in order; they are kept until they
 * are taken. The page is never kept waiting.
 *
 * ```ts
 * const run = trainClassifier({ steps: 200 });
 * for await (const { step, loss } of run) console.log(step, loss);
 * ```
 */
export interface Run extends AsyncIterable<Metrics> {
  /** Known when the model is built and its step planned. */
  readonly info: Promise<RunInfo>;
  /** Settles when the step that is running is over. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** One step of a paused run. */
  step(): Promise<Metrics>;
  /** Ends the run after the step that is running: the iterator ends. What `checkpoint()`, `model()` and the model's own methods give is still there. */
  stop(): Promise<void>;
  /** At any time, also after the end: what goes on from here, in a tab or by `volta train --resume`. */
  checkpoint(): Promise<Uint8Array>;
  /** At any time: the model alone, as a safetensors file; of a language model what `volta chat` reads. */
  model(): Promise<Uint8Array>;
  /** Weights and the last step's gradients as histograms. */
  weights(): Promise<WeightSummary[]>;
  /** Of the next step. */
  profile(): Promise<Profile>;
  /** What the device has now. */
  memory(): Promise<MemoryReport>;
  /** Settles when the last step is over or the run was stopped; rejected when it failed. */
  readonly finished: Promise<void>;
  /** Ends the worker and frees all memory at once. */
  terminate(): void;
  /** Destroys the GPU device as a driver's fault would, for tests: the run goes on from its last kept checkpoint. */
  loseDevice(): Promise<void>;
}

/** A language model's run. */
export interface LanguageModelRun extends Run {
  /** What the model writes now; between two steps where it trains. */
  generate(options: GenerateOptions): AsyncIterable<Token>;
  /** See {@link LanguageModel.attention}. */
  attention(text: string, layer: number, head: number): Promise<AttentionMap>;
}

/** A classifier's run. */
export interface ClassifierRun extends Run {
  /** Probabilities of the ten digits for 28 × 28 pixels from 0 (paper) to 1 (ink), row by row. */
  classify(pixels: Float32Array): Promise<Float32Array>;
}

/** How text is written. */
export interface GenerateOptions {
  prompt: string;
  /** Tokens to write. Default: 100. */
  length?: number;
  /** 0 takes the likeliest token. Default: 0.8. */
  temperature?: number;
  /** Only the likeliest tokens that have this probability together. Default: 0.95. */
  topP?: number;
  /** Default: another one each time. */
  seed?: number;
  signal?: AbortSignal;
}

/** A token that was written. */
export interface Token {
  text: string;
  /** What the model gave it before temperature and `topP`. */
  probability: number;
}

/** Where a head looks. */
export interface AttentionMap {
  tokens: string[];
  /** Row by row: how much the token of the row looks at that of the column. */
  weights: Float32Array;
}

/** What is known of an opened model. */
export interface LanguageModelInfo {
  parameters: number;
  layers: number;
  heads: number;
  width: number;
  context: number;
  vocabulary: number;
  tokenizer: string;
  adapter: AdapterInfo;
}

/** A language model opened to write, in a worker of the package's own. */
export interface LanguageModel {
  readonly info: LanguageModelInfo;
  generate(options: GenerateOptions): AsyncIterable<Token>;
  /** The attention of a head over a text. */
  attention(text: string, layer: number, head: number): Promise<AttentionMap>;
  dispose(): void;
}

/** Files of a language model: one safetensors file of `volta train` or of a tab, or GPT-2 as Hugging Face has it. */
export type ModelFiles = Uint8Array | { files: Record<string, Uint8Array> };

/** What a run will take. */
export interface Estimate {
  parameters: number;
  /** Memory that a step takes at most. */
  peakBytes: number;
}

// -------------------------------------------------------------------------------------------------------------- bench

/** What is measured. */
export interface BenchOptions {
  device?: DeviceChoice;
  /** Names of rows; default: all. */
  only?: string[];
  signal?: AbortSignal;
}

/** A measurement. */
export interface BenchRow {
  /** `"matmul 512"`, `"softmax 1024 × 1024"`, `"layer norm 1024 × 1024"`, `"mlp step"`… */
  name: string;
  /** The median of some runs. */
  ms: number;
  gflops?: number;
  gbps?: number;
  device: DeviceName;
}

// ------------------------------------------------------------------------------------------------------- the whole face

/** The functions of the package. */
export interface Volta {
  /** Starts the module in this thread; tensors and modules then run here. Calling it again chooses another device. */
  init(options?: InitOptions): Promise<AdapterInfo>;
  /** The device of this thread. */
  adapter(): AdapterInfo;
  /** Memory of this thread's module and device. */
  memory(): Promise<MemoryReport>;
  /** Runs `f` and tells where the time went. */
  profile<T>(f: () => Promise<T>): Promise<Profile & { result: T }>;
  /** Trains a language model in a worker. */
  trainLanguageModel(options?: LanguageModelOptions): LanguageModelRun;
  /** Trains a digit classifier in a worker. */
  trainClassifier(options?: ClassifierOptions): ClassifierRun;
  /** Opens a language model in a worker. */
  openLanguageModel(model: ModelFiles, options?: { device?: DeviceChoice; signal?: AbortSignal }): Promise<LanguageModel>;
  /** Measures a device, in a worker. Rows come as they are measured. */
  bench(options?: BenchOptions): AsyncIterable<BenchRow>;
  /** Parameters and memory of a run, without computing anything. */
  estimate(options: LanguageModelOptions, kind: "language-model"): Promise<Estimate>;
  estimate(options: ClassifierOptions, kind: "classifier"): Promise<Estimate>;
  /** The built-in stories: what a language model learns where no `text` is given. */
  stories(): Promise<string>;
  /** Seeds weights, dropout and random tensors of this thread. */
  manualSeed(seed: number): void;
}
