// Memory, profiles and plans of this thread.

import { call, memoryBytes } from "./wasm.js";
import type { MemoryReport, Profile } from "./types.js";

/** What the engine has done since it began, and memory. */
export interface Counters {
  plansCompiled: number;
  plansReplayed: number;
  kernelsRun: number;
  submissions: number;
  shadersCompiled: number;
  uploads: number;
  reads: number;
  poolBytes: number;
  usedBytes: number;
  peakBytes: number;
}

/** What the engine has done. */
export function counters(): Counters {
  return call((wasm) => wasm.engine_counters()) as Counters;
}

/** {@link memory} without a promise. */
export function memoryNow(): MemoryReport {
  const { poolBytes, peakBytes, usedBytes } = counters();
  return { wasmBytes: memoryBytes(), liveBytes: usedBytes, peakBytes, reservedBytes: poolBytes };
}

/** Memory of this thread's module and device. */
export async function memory(): Promise<MemoryReport> {
  return memoryNow();
}

/** Counts the peak of memory anew. */
export function resetPeak(): void {
  call((wasm) => wasm.engine_reset_peak());
}

/** A plan: few kernels made of many ops. */
export interface Plan {
  kernels: { name: string; kind: string; bytesRead: number; bytesWritten: number; flops: number }[];
  peakBytes: number;
  /** A table, one kernel a line. */
  text: string;
}

/** The plan that ran last in this thread. */
export function lastPlan(): Plan | undefined {
  return (call((wasm) => wasm.engine_last_plan()) as Plan | null) ?? undefined;
}

interface Taken {
  kernels: { name: string; kind: string; result: string; count: number; ms: number }[];
  ops: { name: string; calls: number; ms: number }[];
  totalMs: number;
  untimed: number;
  trace: string;
}

interface TraceEvent {
  name: string;
  cat?: string;
  ts?: number;
}

/** A profile as it is given to people. */
function profileOf(taken: Taken, wallMs: number, onGpu: boolean): Profile {
  const starts = new Map<string, number>();
  for (const event of (JSON.parse(taken.trace) as { traceEvents: TraceEvent[] }).traceEvents) {
    if (event.cat === "kernel" && event.ts !== undefined && !starts.has(event.name)) starts.set(event.name, event.ts / 1e3);
  }
  return {
    kernels: taken.kernels.map(({ name, count, ms }) => ({ name, count, ms, startMs: starts.get(name) ?? 0 })),
    ops: taken.ops,
    wallMs,
    deviceMs: onGpu ? taken.totalMs : 0,
    timed: taken.untimed === 0,
    trace: taken.trace,
  };
}

/** Runs `f` and tells where the time went. */
export async function profile<T>(f: () => Promise<T>, onGpu = false): Promise<Profile & { result: T }> {
  const handle = call((wasm) => wasm.profile_begin());
  const began = performance.now();
  let taken: Taken | undefined;
  try {
    const result = await f();
    const wallMs = performance.now() - began;
    taken = call((wasm) => wasm.profile_end(handle)) as Taken;
    return { ...profileOf(taken, wallMs, onGpu), result };
  } finally {
    if (!taken) call((wasm) => wasm.profile_end(handle));
  }
}
