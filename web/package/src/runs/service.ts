// What is asked of a worker without a run: estimates, stories, measurements, a model to talk to.

import type {
  AttentionMap,
  BenchOptions,
  BenchRow,
  ClassifierOptions,
  DeviceChoice,
  Estimate,
  GenerateOptions,
  LanguageModel,
  LanguageModelInfo,
  LanguageModelOptions,
  ModelFiles,
  Token,
} from "../types.js";
import { aborted } from "../errors.js";
import { Link } from "./link.js";

let shared: Link | undefined;

/** A worker that many small questions share. */
function service(): Link {
  shared ??= new Link({
    onEvent: (name) => {
      if (name === "end") shared = undefined;
    },
  });
  return shared;
}

/** Parameters and memory of a run, without computing anything. */
export async function estimate(
  options: LanguageModelOptions | ClassifierOptions,
  kind: "language-model" | "classifier",
): Promise<Estimate> {
  const { signal: _signal, onProgress: _onProgress, checkpoint: _checkpoint, ...rest } = options;
  return service().call("estimate", [rest, kind]);
}

/** The built-in stories: what a language model learns where no `text` is given. */
export async function stories(): Promise<string> {
  return service().call("stories");
}

/** Measures a device, in a worker. Rows come as they are measured. */
export async function* bench(options: BenchOptions = {}): AsyncGenerator<BenchRow, void, undefined> {
  const { signal, ...rest } = options;
  const link = new Link();
  try {
    yield* link.stream<BenchRow>("bench", [rest], signal);
  } finally {
    link.terminate();
  }
}

class LanguageModelOfWorker implements LanguageModel {
  constructor(
    readonly link: Link,
    readonly info: LanguageModelInfo,
  ) {}

  generate(options: GenerateOptions): AsyncIterable<Token> {
    const { signal, ...rest } = options;
    return this.link.stream<Token>("generate", [rest], signal);
  }
  attention(text: string, layer: number, head: number): Promise<AttentionMap> {
    return this.link.call("attention", [text, layer, head]);
  }
  dispose(): void {
    this.link.terminate();
  }
}

/** Opens a language model in a worker. */
export async function openLanguageModel(
  model: ModelFiles,
  options: { device?: DeviceChoice; signal?: AbortSignal } = {},
): Promise<LanguageModel> {
  const { signal, ...rest } = options;
  if (signal?.aborted) throw aborted(signal.reason);
  const link = new Link();
  signal?.addEventListener("abort", () => link.terminate(aborted(signal.reason)), { once: true });
  try {
    return new LanguageModelOfWorker(link, await link.call<LanguageModelInfo>("open", [model, rest]));
  } catch (thrown) {
    link.terminate();
    throw thrown;
  }
}
