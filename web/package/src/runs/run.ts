// Runs as the page sees them.

import { VoltaError, aborted } from "../errors.js";
import type {
  AttentionMap,
  ClassifierOptions,
  ClassifierRun,
  GenerateOptions,
  LanguageModelOptions,
  LanguageModelRun,
  MemoryReport,
  Metrics,
  Profile,
  Run,
  RunInfo,
  RunOptions,
  Token,
  WeightSummary,
} from "../types.js";
import { Link } from "./link.js";

/** Options without what cannot be sent to a worker. */
function sendable(options: RunOptions): object {
  const { signal: _signal, onProgress: _onProgress, ...rest } = options;
  return rest;
}

/** One who reads metrics. */
interface Reader {
  queue: Metrics[];
  wake(): void;
}

class AnyRun implements Run {
  protected readonly link: Link;
  readonly info: Promise<RunInfo>;
  readonly finished: Promise<void>;
  readonly #readers = new Set<Reader>();
  #backlog: Metrics[] | undefined = [];
  #outcome: { error?: unknown } | undefined;
  #settle!: { resolve(): void; reject(error: unknown): void };

  constructor(kind: "classifier" | "language-model", options: RunOptions) {
    this.finished = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    this.finished.catch(() => {});
    const { onProgress, signal } = options;
    this.link = new Link({ onEvent: (name, value) => this.#hear(name, value), onProgress });
    this.link.keep(options.paused !== true);
    this.info = this.link.call<RunInfo>("start", [kind, sendable(options)]);
    this.info.catch((error: unknown) => this.#finish({ error }));
    if (signal) {
      const abort = (): void => {
        const error = aborted(signal.reason);
        this.#finish({ error });
        this.link.terminate(error);
      };
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    }
  }

  #hear(name: string, value: unknown): void {
    if (name === "metrics") {
      const metrics = value as Metrics;
      this.#backlog?.push(metrics);
      for (const reader of this.#readers) {
        reader.queue.push(metrics);
        reader.wake();
      }
    } else if (name === "finished") {
      this.#finish({});
    } else if (name === "failed") {
      const { kind, message } = value as VoltaError;
      this.#finish({ error: new VoltaError(kind, message) });
    } else if (name === "end") {
      this.#finish({ error: value });
    }
  }

  #finish(outcome: { error?: unknown }): void {
    if (this.#outcome) return;
    this.#outcome = outcome;
    this.link.keep(false);
    if (outcome.error === undefined) this.#settle.resolve();
    else this.#settle.reject(outcome.error);
    for (const reader of this.#readers) reader.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Metrics, void, undefined> {
    const reader: Reader = { queue: this.#backlog ?? [], wake: () => {} };
    // The first reader gets what came before it; others what comes from now on.
    this.#backlog = undefined;
    this.#readers.add(reader);
    try {
      for (;;) {
        const metrics = reader.queue.shift();
        if (metrics) yield metrics;
        else if (this.#outcome?.error !== undefined) throw this.#outcome.error;
        else if (this.#outcome) return;
        else await new Promise<void>((resolve) => (reader.wake = resolve));
      }
    } finally {
      this.#readers.delete(reader);
    }
  }

  pause(): Promise<void> {
    return this.link.call("pause");
  }
  async resume(): Promise<void> {
    this.link.keep(this.#outcome === undefined);
    await this.link.call("resume");
  }
  step(): Promise<Metrics> {
    return this.link.call("step");
  }
  stop(): Promise<void> {
    return this.link.call("stop");
  }
  checkpoint(): Promise<Uint8Array> {
    return this.link.call("checkpoint");
  }
  model(): Promise<Uint8Array> {
    return this.link.call("model");
  }
  weights(): Promise<WeightSummary[]> {
    return this.link.call("weights");
  }
  profile(): Promise<Profile> {
    return this.link.call("profile");
  }
  memory(): Promise<MemoryReport> {
    return this.link.call("memory");
  }
  loseDevice(): Promise<void> {
    return this.link.call("loseDevice");
  }
  terminate(): void {
    const error = new VoltaError("abort", "the run was ended by terminate()");
    this.#finish({ error });
    this.link.terminate(error);
  }
}

class ClassifierRunOfWorker extends AnyRun implements ClassifierRun {
  classify(pixels: Float32Array): Promise<Float32Array> {
    return this.link.call("classify", [pixels]);
  }
}

class LanguageModelRunOfWorker extends AnyRun implements LanguageModelRun {
  generate(options: GenerateOptions): AsyncIterable<Token> {
    const { signal, ...rest } = options;
    return this.link.stream<Token>("generate", [rest], signal);
  }
  attention(text: string, layer: number, head: number): Promise<AttentionMap> {
    return this.link.call("attention", [text, layer, head]);
  }
}

/**
 * Trains a digit classifier in a worker.
 *
 * ```ts
 * const run = trainClassifier({ steps: 200 });
 * for await (const { step, loss } of run) console.log(step, loss);
 * ```
 */
export function trainClassifier(options: ClassifierOptions = {}): ClassifierRun {
  return new ClassifierRunOfWorker("classifier", options);
}

/** Trains a language model in a worker. */
export function trainLanguageModel(options: LanguageModelOptions = {}): LanguageModelRun {
  return new LanguageModelRunOfWorker("language-model", options);
}
