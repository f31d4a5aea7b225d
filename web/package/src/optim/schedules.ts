// Learning rates that change from step to step: `optim.lrScheduler`.

import { DISPOSED, free, own } from "../handles.js";
import { call } from "../wasm.js";
import type { Optimizer } from "./optimizers.js";

/** A schedule, described. Each counts its own steps. */
export type Schedule =
  | { kind: "StepLR"; stepSize: number; gamma?: number }
  | { kind: "MultiStepLR"; milestones: readonly number[]; gamma?: number }
  | { kind: "ExponentialLR"; gamma: number }
  | { kind: "LinearLR"; startFactor?: number; endFactor?: number; totalIters?: number }
  | { kind: "CosineAnnealingLR"; tMax: number; etaMin?: number }
  | { kind: "CosineAnnealingWarmRestarts"; t0: number; tMult?: number; etaMin?: number }
  | { kind: "OneCycleLR"; totalSteps: number; pctStart?: number; divFactor?: number; finalDivFactor?: number; linear?: boolean }
  | {
      kind: "ReduceLROnPlateau";
      factor?: number;
      patience?: number;
      threshold?: number;
      cooldown?: number;
      minLr?: number;
      largerIsBetter?: boolean;
    }
  /** Up to the base rate in `steps`, then another schedule. */
  | { kind: "WarmupLR"; steps: number; schedules: readonly [Schedule] }
  /** One after the other: the second begins at the first milestone. */
  | { kind: "SequentialLR"; schedules: readonly Schedule[]; milestones: readonly number[] }
  /** All at once, multiplied. */
  | { kind: "ChainedScheduler"; schedules: readonly Schedule[] };

/**
 * Sets an optimizer's rates, step by step.
 *
 * ```ts
 * const scheduler = new optim.Scheduler(optimizer, { kind: "CosineAnnealingLR", tMax: 1000 });
 * // after every optimizer.step():
 * scheduler.step();
 * ```
 */
export class Scheduler {
  /** @internal */
  handle: number;
  readonly #optimizer: Optimizer;

  constructor(optimizer: Optimizer, schedule: Schedule) {
    this.#optimizer = optimizer;
    this.handle = call((wasm) => wasm.scheduler_new(schedule, optimizer.handle));
    own(this, "scheduler", this.handle);
  }

  /** Goes on to the next step's rates. `ReduceLROnPlateau` is told how well training goes. */
  step(metric?: number): void {
    call((wasm) => wasm.scheduler_step(this.handle, this.#optimizer.handle, metric));
  }

  /** The rates now. */
  getLastLr(): number[] {
    return this.#optimizer.learningRates;
  }

  dispose(): void {
    free(this, "scheduler", this.handle);
    this.handle = DISPOSED;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
