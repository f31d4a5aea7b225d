// The page's end of a worker of the package's own.

import { VoltaError, aborted } from "../errors.js";
import { compiledModule, importOfNode, isNode } from "../wasm.js";
import type { Progress } from "../types.js";
import type { Reply, Request } from "./protocol.js";

interface Waiting {
  resolve(value: unknown): void;
  reject(error: VoltaError): void;
  onItem?: (value: unknown) => void;
}

interface AnyWorker {
  post(message: Request | { module: WebAssembly.Module }, transfer?: Transferable[]): void;
  terminate(): void;
  /** Whether node waits for it before it ends. */
  hold(yes: boolean): void;
}

async function spawn(onReply: (reply: Reply) => void, onFault: (message: string) => void): Promise<AnyWorker> {
  if (isNode) {
    interface NodeWorker {
      postMessage(message: unknown, transfer?: readonly unknown[]): void;
      on(name: string, listener: (value: unknown) => void): void;
      terminate(): Promise<number>;
      ref(): void;
      unref(): void;
    }
    const threads = (await importOfNode("worker_threads")) as { Worker: new (url: URL) => NodeWorker };
    // Bundlers look for the pattern below, and would take this one along twice.
    const url = new URL(`./${"worker"}.js`, import.meta.url);
    const worker = new threads.Worker(url);
    worker.on("message", (reply) => onReply(reply as Reply));
    worker.on("error", (error) => onFault(error instanceof Error ? error.message : String(error)));
    return {
      post: (message, transfer) => worker.postMessage(message, transfer ?? []),
      terminate: () => void worker.terminate(),
      hold: (yes) => (yes ? worker.ref() : worker.unref()),
    };
  }
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "volta" });
  worker.onmessage = (event: MessageEvent<Reply>) => onReply(event.data);
  worker.onerror = (event) => {
    event.preventDefault();
    onFault(event.message || "the worker could not be loaded");
  };
  return {
    post: (message, transfer) => worker.postMessage(message, transfer ?? []),
    terminate: () => worker.terminate(),
    hold: () => {},
  };
}

/** A worker that is called by method names. */
export class Link {
  readonly #waiting = new Map<number, Waiting>();
  readonly #worker: Promise<AnyWorker>;
  readonly #onEvent: (name: string, value: unknown) => void;
  readonly #onProgress: ((progress: Progress) => void) | undefined;
  #next = 0;
  #ended: VoltaError | undefined;
  #isKept = false;

  constructor(options: { onEvent?: (name: string, value: unknown) => void; onProgress?: ((progress: Progress) => void) | undefined } = {}) {
    this.#onEvent = options.onEvent ?? (() => {});
    this.#onProgress = options.onProgress;
    this.#worker = this.#start();
    this.#worker.catch((thrown: unknown) => this.#end(thrown instanceof VoltaError ? thrown : new VoltaError("io", String(thrown))));
  }

  async #start(): Promise<AnyWorker> {
    const { onProgress } = { onProgress: this.#onProgress };
    const module = await compiledModule(onProgress ? { onProgress } : {});
    const worker = await spawn(
      (reply) => this.#take(reply),
      (message) => this.#end(new VoltaError("module", `the worker cannot go on: ${message}`)),
    );
    worker.post({ module });
    if (this.#ended) worker.terminate();
    return worker;
  }

  #take(reply: Reply): void {
    if (reply.type === "event") return this.#onEvent(reply.name, reply.value);
    if (reply.type === "progress") return this.#onProgress?.(reply.value);
    if (reply.type === "fatal") return this.#end(new VoltaError("module", `the module cannot go on: ${reply.message}`));
    const waiting = this.#waiting.get(reply.id);
    if (!waiting) return;
    if (reply.type === "item") return waiting.onItem?.(reply.value);
    this.#waiting.delete(reply.id);
    this.#hold();
    if (reply.type === "result") waiting.resolve(reply.value);
    else waiting.reject(new VoltaError(reply.kind, reply.message));
  }

  #hold(): void {
    const yes = this.#isKept || this.#waiting.size > 0;
    this.#worker.then((worker) => worker.hold(yes)).catch(() => {});
  }

  #end(error: VoltaError): void {
    if (this.#ended) return;
    this.#ended = error;
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
    this.#worker.then((worker) => worker.terminate()).catch(() => {});
    this.#onEvent("end", error);
  }

  /** Whether node is to wait for the worker while nothing is asked of it. */
  keep(yes: boolean): void {
    this.#isKept = yes;
    this.#hold();
  }

  /** Calls a method. What it gives before its end goes to `onItem`. */
  async call<T>(method: string, args: unknown[] = [], onItem?: (value: unknown) => void): Promise<T> {
    if (this.#ended) throw this.#ended;
    const id = this.#next++;
    const result = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, onItem ? { resolve, reject, onItem } : { resolve, reject });
    });
    const worker = await this.#worker;
    this.#hold();
    if (!this.#ended) worker.post({ id, method, args });
    return (await result) as T;
  }

  /** The items of a method as they come. Leaving the loop early, or the signal, ends the call in the worker. */
  async *stream<T>(method: string, args: unknown[], signal?: AbortSignal): AsyncGenerator<T, void, undefined> {
    if (signal?.aborted) throw aborted(signal.reason);
    const items: T[] = [];
    let wake: () => void = () => {};
    let outcome: { error?: unknown } | undefined;
    const token = `${this.#next}`;
    const cancel = (): void => void this.call("cancel", [token]).catch(() => {});
    signal?.addEventListener("abort", cancel, { once: true });
    this.call<void>(method, [...args, token], (item) => {
      items.push(item as T);
      wake();
    }).then(
      () => {
        outcome = {};
        wake();
      },
      (error: unknown) => {
        outcome = { error };
        wake();
      },
    );
    try {
      for (;;) {
        if (signal?.aborted) throw aborted(signal.reason);
        const item = items.shift();
        if (item !== undefined) yield item;
        else if (outcome?.error !== undefined) throw outcome.error;
        else if (outcome) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      signal?.removeEventListener("abort", cancel);
      if (!outcome) cancel();
    }
  }

  /** Ends the worker; calls that wait are rejected. */
  terminate(reason: VoltaError = new VoltaError("abort", "it was ended by terminate()")): void {
    this.#end(reason);
  }
}
