// The WebAssembly module: loaded once in a thread, and called with its errors made into the package's own.

import { VoltaError, asVoltaError } from "./errors.js";
import * as bindings from "./wasm/volta.js";
import type { InitOptions, Progress } from "./types.js";

let memory: WebAssembly.Memory | undefined;
let compiled: Promise<WebAssembly.Module> | undefined;
let loading: Promise<void> | undefined;
let broken: VoltaError | undefined;

/** Imports what only node has, without bundlers looking for it. */
export async function importOfNode(name: string): Promise<unknown> {
  return import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);
}

/** Whether this is node. */
export const isNode: boolean =
  typeof (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node === "string" &&
  typeof (globalThis as { Deno?: unknown }).Deno === "undefined";

/** Where the module lies that belongs to this file. */
export function moduleUrl(): URL {
  return new URL("./volta_bg.wasm", import.meta.url);
}

async function bytesOf(url: URL, onProgress?: (progress: Progress) => void): Promise<ArrayBuffer> {
  if (url.protocol === "file:" && isNode) {
    const files = (await importOfNode("fs/promises")) as { readFile(url: URL): Promise<Uint8Array<ArrayBuffer>> };
    const read = await files.readFile(url);
    return read.buffer.slice(read.byteOffset, read.byteOffset + read.byteLength);
  }
  const response = await fetch(url);
  if (!response.ok) {
    throw new VoltaError("io", `the module cannot be loaded from ${url.href}: ${response.status} ${response.statusText}`);
  }
  if (!response.body || !onProgress) return response.arrayBuffer();
  const total = Number(response.headers.get("content-length")) || 0;
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = response.body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    chunks.push(next.value);
    length += next.value.length;
    // A compressed answer is longer than it says.
    onProgress({ stage: "loading", fraction: total > 0 ? Math.min(length / total, 0.95) : 0 });
  }
  const bytes = new Uint8Array(length);
  let end = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, end);
    end += chunk.length;
  }
  return bytes.buffer;
}

async function compile(options: InitOptions): Promise<WebAssembly.Module> {
  const { wasm, onProgress } = options;
  if (wasm instanceof WebAssembly.Module) return wasm;
  onProgress?.({ stage: "loading", fraction: 0 });
  if (wasm instanceof ArrayBuffer || ArrayBuffer.isView(wasm)) return WebAssembly.compile(wasm as BufferSource);
  const url = wasm === undefined ? moduleUrl() : new URL(wasm, typeof location === "undefined" ? undefined : location.href);
  const module = await WebAssembly.compile(await bytesOf(url, onProgress));
  onProgress?.({ stage: "loading", fraction: 1 });
  return module;
}

async function load(options: InitOptions): Promise<void> {
  memory = bindings.initSync({ module: await compiledModule(options) }).memory;
}

/** Loads the module, if it is not loaded. */
export async function ensureLoaded(options: InitOptions = {}): Promise<void> {
  loading ??= load(options).catch((thrown: unknown) => {
    loading = undefined;
    throw asVoltaError(thrown);
  });
  return loading;
}

/** The compiled module, for this thread and for others. */
export async function compiledModule(options: InitOptions = {}): Promise<WebAssembly.Module> {
  compiled ??= compile(options).catch((thrown: unknown) => {
    compiled = undefined;
    throw asVoltaError(thrown);
  });
  return compiled;
}

/** The bytes of the module's memory. */
export function memoryBytes(): number {
  return memory?.buffer.byteLength ?? 0;
}

/** What the module does, with its errors as the package's. After a trap every call says so. */
export function call<T>(f: (wasm: typeof bindings) => T): T {
  if (broken) throw broken;
  if (!memory) throw new VoltaError("module", "the module is not there yet: await init() first");
  try {
    return f(bindings);
  } catch (thrown) {
    throw remember(asVoltaError(thrown));
  }
}

/** {@link call} of what gives a promise. */
export async function callAsync<T>(f: (wasm: typeof bindings) => Promise<unknown>): Promise<T> {
  try {
    return (await call(f)) as T;
  } catch (thrown) {
    throw remember(asVoltaError(thrown));
  }
}

function remember(error: VoltaError): VoltaError {
  if (error.kind === "module") broken = error;
  return error;
}
