// Tensors to and from safetensors, and checkpoints that the desktop's programs read.

import type { Module, StateDict } from "./nn/module.js";
import type { Optimizer } from "./optim/optimizers.js";
import type { Scheduler } from "./optim/schedules.js";
import { Tensor, handlesOf } from "./tensor.js";
import { call, callAsync } from "./wasm.js";

interface Named {
  name: string;
  handle: number;
}

const owned = (found: readonly Named[]): Record<string, Tensor> =>
  Object.fromEntries(found.map(({ name, handle }) => [name, Tensor.of(handle)]));

/** A safetensors file of these tensors. */
export async function saveSafetensors(tensors: StateDict, metadata: Record<string, string> = {}): Promise<Uint8Array> {
  const handles = handlesOf(Object.values(tensors));
  const about = Object.entries(metadata).flat();
  return callAsync((wasm) => wasm.safetensors_save(Object.keys(tensors), handles, about));
}

/** The tensors of a safetensors file, and what is written beside them. */
export function loadSafetensors(bytes: Uint8Array): { tensors: Record<string, Tensor>; metadata: Record<string, string> } {
  const found = call((wasm) => wasm.weights_load(bytes)) as { tensors: Named[]; metadata: [string, string][] };
  return { tensors: owned(found.tensors), metadata: Object.fromEntries(found.metadata) };
}

/** What goes into a checkpoint, under names of choice. */
export interface CheckpointParts {
  modules?: Record<string, Module<readonly never[], unknown>>;
  optimizers?: Record<string, Optimizer>;
  schedulers?: Record<string, Scheduler>;
  /** Numbers, such as the step. */
  numbers?: Record<string, number>;
}

/** Everything that a training needs to go on, and the state of the random numbers, in one file. */
export async function saveCheckpoint(parts: CheckpointParts): Promise<Uint8Array> {
  return callAsync((wasm) => {
    const checkpoint = new wasm.CheckpointParts();
    for (const [name, module] of Object.entries(parts.modules ?? {})) {
      const state = module.stateDict();
      checkpoint.add_tensors(name, Object.keys(state), handlesOf(Object.values(state)));
    }
    for (const [name, optimizer] of Object.entries(parts.optimizers ?? {})) checkpoint.add_optimizer(name, optimizer.handle);
    for (const [name, scheduler] of Object.entries(parts.schedulers ?? {})) checkpoint.add_scheduler(name, scheduler.handle);
    for (const [name, value] of Object.entries(parts.numbers ?? {})) checkpoint.add_number(name, value);
    checkpoint.add_rng();
    const bytes = checkpoint.bytes();
    checkpoint.free();
    return bytes as Promise<Uint8Array>;
  });
}

/** Gives everything the state that a checkpoint has for it. Numbers are returned. */
export function loadCheckpoint(bytes: Uint8Array, parts: CheckpointParts): Record<string, number> {
  return call((wasm) => {
    const checkpoint = wasm.CheckpointParts.open(bytes);
    try {
      for (const [name, module] of Object.entries(parts.modules ?? {})) {
        module.loadStateDict(owned(checkpoint.tensors(name) as Named[]));
      }
      for (const [name, optimizer] of Object.entries(parts.optimizers ?? {})) {
        checkpoint.restore_optimizer(name, optimizer.handle);
      }
      for (const [name, scheduler] of Object.entries(parts.schedulers ?? {})) {
        checkpoint.restore_scheduler(name, scheduler.handle);
      }
      checkpoint.restore_rng();
      return Object.fromEntries(Object.keys(parts.numbers ?? {}).map((name) => [name, checkpoint.number(name)]));
    } finally {
      checkpoint.free();
    }
  });
}
