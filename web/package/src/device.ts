// Starting the module in this thread, and choosing a device.

import { VoltaError, asVoltaError } from "./errors.js";
import { call, callAsync, ensureLoaded } from "./wasm.js";
import type { AdapterInfo, InitOptions } from "./types.js";

let current: AdapterInfo | undefined;

interface Opened {
  name: string;
  software: boolean;
  f16: boolean;
  timestamps: boolean;
  limits: Record<string, number>;
}

const cpu = (reason?: string): AdapterInfo => {
  const threads = 1;
  return {
    device: "cpu",
    name: `processor, ${threads} thread, SIMD`,
    backend: "WebAssembly",
    software: false,
    f16: true,
    timestamps: false,
    limits: {},
    ...(reason === undefined ? {} : { reason }),
  };
};

const hasWebGpu = (): boolean => typeof navigator !== "undefined" && "gpu" in navigator;

/** The adapter, asked before anything is opened: none, or a software one, is told here. */
async function describeAdapter(options: InitOptions): Promise<{ isFallback: boolean } | undefined> {
  interface Gpu {
    requestAdapter(options?: object): Promise<{ isFallbackAdapter?: boolean; info?: { isFallbackAdapter?: boolean; architecture?: string; vendor?: string } } | null>;
  }
  const gpu = (navigator as unknown as { gpu: Gpu }).gpu;
  const wanted = options.powerPreference ? { powerPreference: options.powerPreference } : {};
  const adapter = await gpu.requestAdapter(wanted).catch(() => null);
  if (!adapter) return undefined;
  const isFallback = adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter ?? adapter.info?.architecture === "swiftshader";
  return { isFallback: isFallback || adapter.info?.architecture === "swiftshader" };
}

async function openGpu(): Promise<AdapterInfo> {
  const opened = await callAsync<Opened | null>((wasm) => wasm.use_gpu());
  if (!opened) throw new VoltaError("device", "the browser has WebGPU, but no adapter: look at chrome://gpu");
  return { device: "gpu", backend: "WebGPU", ...opened, name: opened.name || "GPU" };
}

async function choose(options: InitOptions): Promise<AdapterInfo> {
  const wanted = options.device ?? "auto";
  const useCpu = (reason?: string): AdapterInfo => {
    call((wasm) => wasm.use_cpu());
    return cpu(reason);
  };
  if (wanted === "cpu") return useCpu();
  if (!hasWebGpu()) {
    const where = typeof isSecureContext === "boolean" && !isSecureContext ? "a page that is not served over https" : "this browser";
    const message = `${where} has no WebGPU`;
    if (wanted === "gpu") throw new VoltaError("device", message);
    return useCpu(message);
  }
  const adapter = await describeAdapter(options);
  if (!adapter) {
    const message = "WebGPU is there, but no adapter: the graphics driver may be blocked";
    if (wanted === "gpu") throw new VoltaError("device", message);
    return useCpu(message);
  }
  if (wanted === "auto" && adapter.isFallback && !options.allowSoftware) {
    return useCpu("WebGPU's only adapter is software, which is slower than the CPU");
  }
  try {
    return await openGpu();
  } catch (thrown) {
    const error = asVoltaError(thrown);
    if (wanted === "gpu") throw error;
    return useCpu(`the GPU could not be opened: ${error.message}`);
  }
}

/**
 * Starts the module in this thread; tensors and modules are then made here. Calling it again chooses another device.
 *
 * ```ts
 * const { device, reason } = await init();
 * ```
 */
export async function init(options: InitOptions = {}): Promise<AdapterInfo> {
  await ensureLoaded(options);
  options.onProgress?.({ stage: "opening the device", fraction: 0 });
  current = await choose(options);
  options.onProgress?.({ stage: "opening the device", fraction: 1 });
  return current;
}

/** The device of this thread. */
export function adapter(): AdapterInfo {
  if (!current) throw new VoltaError("module", "there is no device yet: await init() first");
  return current;
}

/** Opens the GPU anew after it was lost. */
export async function reopen(): Promise<AdapterInfo> {
  current = await openGpu();
  return current;
}
