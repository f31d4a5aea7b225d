// What lives in the module, freed when nobody in JavaScript holds it any longer.

import { call, memoryBytes } from "./wasm.js";

// Safari has no `using` yet; what is written for it works there all the same.
if (typeof Symbol.dispose !== "symbol") {
  Object.defineProperty(Symbol, "dispose", { value: Symbol.for("Symbol.dispose") });
}

/** The handle of what was freed: it names nothing. */
export const DISPOSED = 0xffffffff;

/** Kinds of what is held, and how each is freed. */
const FREE = {
  tensor: (handles: Uint32Array) => call((wasm) => wasm.tensors_free(handles)),
  layer: (handles: Uint32Array) => call((wasm) => wasm.layers_free(handles)),
  optimizer: (handles: Uint32Array) => call((wasm) => wasm.optimizers_free(handles)),
  scheduler: (handles: Uint32Array) => call((wasm) => wasm.schedulers_free(handles)),
  ema: (handles: Uint32Array) => call((wasm) => wasm.emas_free(handles)),
  rawDevice: (handles: Uint32Array) => call((wasm) => wasm.raw_free("device", handles)),
  rawBuffer: (handles: Uint32Array) => call((wasm) => wasm.raw_free("buffer", handles)),
  rawTensor: (handles: Uint32Array) => call((wasm) => wasm.raw_free("tensor", handles)),
};

/** A kind of what is held. */
export type Kind = keyof typeof FREE;

const registry = new FinalizationRegistry<{ kind: Kind; handle: number }>(({ kind, handle }) => {
  try {
    FREE[kind](Uint32Array.of(handle));
  } catch {
    // A module that trapped frees nothing, and whoever calls it next is told.
  }
});

/** Frees a handle when its owner is collected. */
export function own(owner: object, kind: Kind, handle: number): void {
  registry.register(owner, { kind, handle }, owner);
}

/** Frees it now. */
export function free(owner: object, kind: Kind, handle: number): void {
  registry.unregister(owner);
  FREE[kind](Uint32Array.of(handle));
}

/** Bytes of growth that are worth a collection of garbage. */
const WORTH_COLLECTING = 64 << 20;
/** The most that is asked for at once to make the browser collect. */
const LARGEST_PROVOCATION = 512 << 20;
/** Reads between two looks at memory. */
const READS_BETWEEN_LOOKS = 16;

let reads = 0;
let baseline = 0;
let lastTurn = 0;

/** Lets the event loop run once: timers, messages, and the freeing of what was collected. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      lastTurn = performance.now();
      resolve();
    };
    port2.postMessage(0);
  });
}

/**
 * Called where something is waited for. A browser does not see the memory behind handles, so nothing would make it collect them
 * in time: where much was taken, it is given something as large to look after. Also lets the event loop run now and then, which
 * frees what was collected, where everything is computed without waiting.
 */
export async function relieve(): Promise<void> {
  if (++reads % READS_BETWEEN_LOOKS === 0) {
    const counted = call((wasm) => wasm.engine_counters()) as { poolBytes: number };
    const held = Math.max(counted.poolBytes, memoryBytes());
    if (held > baseline + WORTH_COLLECTING) {
      let provocation: ArrayBuffer | undefined = new ArrayBuffer(Math.min(held - baseline, LARGEST_PROVOCATION));
      provocation = undefined;
      void provocation;
      await turn();
      const left = call((wasm) => wasm.engine_counters()) as { poolBytes: number };
      baseline = Math.max(left.poolBytes, memoryBytes());
    }
  }
  if (performance.now() - lastTurn > 50) await turn();
}
