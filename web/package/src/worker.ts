// The worker of the package's own: it answers the calls of one page.

import { init } from "./device.js";
import { VoltaError, asVoltaError } from "./errors.js";
import { RunHost, generate } from "./runs/host.js";
import { measure } from "./runs/measure.js";
import type { Reply, Request } from "./runs/protocol.js";
import type {
  BenchOptions,
  ClassifierOptions,
  DeviceChoice,
  GenerateOptions,
  LanguageModelInfo,
  ModelFiles,
  Progress,
  RunOptions,
} from "./types.js";
import { call, callAsync, ensureLoaded, importOfNode, isNode } from "./wasm.js";

/** The page's end, in a browser or in node. */
interface Page {
  post(reply: Reply, transfer?: Transferable[]): void;
  listen(f: (message: Request | { module: WebAssembly.Module }) => void): void;
}

let post: Page["post"];

async function pageOfNode(): Promise<Page> {
  interface ParentPort {
    postMessage(message: unknown, transfer?: readonly unknown[]): void;
    on(name: "message", f: (message: Request) => void): void;
  }
  const { parentPort } = (await importOfNode("worker_threads")) as { parentPort: ParentPort };
  return {
    post: (reply, transfer) => parentPort.postMessage(reply, transfer ?? []),
    listen: (f) => parentPort.on("message", f),
  };
}

function pageOfBrowser(): Page {
  const scope = globalThis as unknown as {
    postMessage(message: unknown, transfer?: Transferable[]): void;
    onmessage: (event: MessageEvent<Request>) => void;
    addEventListener(name: string, f: (event: PromiseRejectionEvent & ErrorEvent) => void): void;
  };
  const fatal = (reason: unknown): void => {
    if (reason instanceof WebAssembly.RuntimeError) scope.postMessage({ type: "fatal", message: reason.message });
  };
  scope.addEventListener("error", (event) => fatal(event.error));
  scope.addEventListener("unhandledrejection", (event) => fatal(event.reason));
  return {
    post: (reply, transfer) => scope.postMessage(reply, transfer ?? []),
    listen: (f) => {
      scope.onmessage = (event) => f(event.data);
    },
  };
}

let run: RunHost | undefined;
let opened: number | undefined;
const cancelled = new Set<string>();

const theRun = (): RunHost => {
  if (!run) throw new VoltaError("argument", "there is no run");
  return run;
};

const progress = (value: Progress): void => post({ type: "progress", value });

/** Bytes that are the worker's own are given away rather than copied. */
const transferable = (value: unknown): Transferable[] =>
  value instanceof Uint8Array || value instanceof Float32Array ? [value.buffer as ArrayBuffer] : [];

type Method = (give: (item: unknown) => void, ...args: never[]) => unknown;

const METHODS: Record<string, Method> = {
  start: (_give, kind: "classifier" | "language-model", options: RunOptions) => {
    run = new RunHost(kind, options, (name, value) => post({ type: "event", name, value }));
    return run.start(progress);
  },
  pause: () => theRun().pause(),
  resume: () => theRun().resume(),
  step: () => theRun().step(),
  stop: () => theRun().stop(),
  checkpoint: () => theRun().checkpoint(),
  model: () => theRun().model(),
  weights: () => theRun().weights(),
  profile: () => theRun().profile(),
  memory: () => theRun().memory(),
  loseDevice: () => theRun().loseDevice(),
  classify: (_give, pixels: Float32Array) => theRun().classify(pixels),
  attention: (_give, text: string, layer: number, head: number) =>
    run ? run.attention(text, layer, head) : callAsync((wasm) => wasm.run_attention(theModel(), text, layer, head)),
  generate: (give, options: GenerateOptions, token: string) => {
    const isCancelled = (): boolean => cancelled.has(token);
    return run ? run.generate(options, give, isCancelled) : generate(theModel(), options, give, isCancelled, (f) => f());
  },
  cancel: (_give, token: string) => void cancelled.add(token),
  estimate: async (_give, options: ClassifierOptions, kind: "classifier" | "language-model") => {
    await init({ device: "cpu" });
    return call((wasm) => (kind === "classifier" ? wasm.estimate_classifier(options) : wasm.estimate_language_model(options)));
  },
  stories: () => call((wasm) => wasm.built_in_stories(0, 200_000)),
  bench: (give, options: BenchOptions, token: string) => measure(options, give, () => cancelled.has(token)),
  open: async (_give, model: ModelFiles, options: { device?: DeviceChoice }): Promise<LanguageModelInfo> => {
    const adapter = await init({ device: options.device ?? "auto", onProgress: progress });
    const files = model instanceof Uint8Array ? { "model.safetensors": model } : model.files;
    const known = await callAsync<Omit<LanguageModelInfo, "adapter"> & { handle: number }>((wasm) =>
      wasm.language_model_open(Object.keys(files), Object.values(files)),
    );
    const { handle, ...info } = known;
    opened = handle;
    return { ...info, adapter };
  },
};

function theModel(): number {
  if (opened === undefined) throw new VoltaError("argument", "there is no model");
  return opened;
}

async function answer({ id, method, args }: Request): Promise<void> {
  try {
    const f = METHODS[method];
    if (!f) throw new VoltaError("argument", `the worker has no method ${method}`);
    const give = (value: unknown): void => post({ id, type: "item", value });
    const value = await f(give, ...(args as never[]));
    post({ id, type: "result", value }, transferable(value));
  } catch (thrown) {
    const { kind, message } = asVoltaError(thrown);
    post({ id, type: "error", kind, message });
    if (kind === "module") post({ type: "fatal", message });
  }
}

async function main(): Promise<void> {
  let loaded: Promise<void> = Promise.resolve();
  const page = isNode ? await pageOfNode() : pageOfBrowser();
  post = page.post;
  page.listen((message) => {
    if ("module" in message) loaded = ensureLoaded({ wasm: message.module });
    else void loaded.then(() => answer(message));
  });
}

void main();
