// Optimizers. A step moves all parameters in one plan, together with the backward pass that is still pending.

import { DISPOSED, free, own } from "../handles.js";
import { Tensor, handlesOf } from "../tensor.js";
import { call } from "../wasm.js";

/** Options by their names here, and by the engine's. */
const ENGINE_NAMES: Record<string, string> = {
  lr: "learning_rate",
  eps: "epsilon",
  weightDecay: "weight_decay",
  lrDecay: "rate_decay",
  initialSum: "initial_sum",
  nsSteps: "iterations",
};

type OptionValue = number | boolean | readonly [number, number] | undefined;

/** Names and values as the engine takes them. */
function settings(options: object): { names: string[]; values: Float64Array } {
  const pairs: [string, number][] = [];
  for (const [name, value] of Object.entries(options) as [string, OptionValue][]) {
    if (value === undefined) continue;
    if (typeof value === "object") pairs.push(["beta1", value[0]], ["beta2", value[1]]);
    else pairs.push([ENGINE_NAMES[name] ?? name, Number(value)]);
  }
  return { names: pairs.map(([name]) => name), values: Float64Array.from(pairs, ([, value]) => value) };
}

/** Parameters with options of their own; others are those of the optimizer. */
export type ParameterGroup<Options> = { params: readonly Tensor[] } & Options;

/** What every optimizer does. */
export abstract class Optimizer<Options extends object = object> {
  /** @internal */
  handle: number;

  /** @internal */
  protected constructor(name: string, parameters: readonly Tensor[] | readonly ParameterGroup<Options>[], options: Options) {
    const isGroups = parameters.length > 0 && !(parameters[0] instanceof Tensor);
    const groups = isGroups
      ? (parameters as readonly ParameterGroup<Options>[])
      : [{ params: parameters as readonly Tensor[] } as ParameterGroup<Options>];
    const [first, ...others] = groups;
    const { params = [], ...own_ } = first ?? { params: [] };
    const { names, values } = settings({ ...options, ...own_ });
    this.handle = call((wasm) => wasm.optimizer_new(name, handlesOf(params), names, values));
    own(this, "optimizer", this.handle);
    for (const group of others) {
      const { params: more, ...theirs } = group;
      this.addParamGroup({ params: more, ...options, ...theirs } as ParameterGroup<Options>);
    }
  }

  /** More parameters, with options of their own. */
  addParamGroup(group: ParameterGroup<Options>): void {
    const { params, ...options } = group;
    const { names, values } = settings(options);
    call((wasm) => wasm.optimizer_add_group(this.handle, handlesOf(params), names, values));
  }

  /** Other options from the next step on, for one group. */
  setOptions(options: Options, group = 0): void {
    const { names, values } = settings(options);
    call((wasm) => wasm.optimizer_set(this.handle, group, names, values));
  }

  /** Moves all parameters that have gradients: forward, backward and update are computed here. A GPU is not waited for. */
  step(): void {
    call((wasm) => wasm.optimizer_step(this.handle));
  }

  /** Forgets all gradients. */
  zeroGrad(): void {
    call((wasm) => wasm.optimizer_zero_grad(this.handle));
  }

  /** The learning rate of every group. */
  get learningRates(): number[] {
    return Array.from(call((wasm) => wasm.optimizer_rates(this.handle)));
  }

  set learningRates(rates: readonly number[]) {
    call((wasm) => wasm.optimizer_set_rates(this.handle, Float64Array.from(rates)));
  }

  /** Frees its state now. */
  dispose(): void {
    free(this, "optimizer", this.handle);
    this.handle = DISPOSED;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Options of {@link SGD}. */
export interface SGDOptions {
  lr?: number;
  momentum?: number;
  dampening?: number;
  weightDecay?: number;
  nesterov?: boolean;
}
/** Options of {@link Adam} and {@link AdamW}. */
export interface AdamOptions {
  lr?: number;
  betas?: readonly [number, number];
  eps?: number;
  weightDecay?: number;
  amsgrad?: boolean;
}
/** Options of {@link RMSprop}. */
export interface RMSpropOptions {
  lr?: number;
  alpha?: number;
  eps?: number;
  weightDecay?: number;
  momentum?: number;
  centered?: boolean;
}
/** Options of {@link Adagrad}. */
export interface AdagradOptions {
  lr?: number;
  lrDecay?: number;
  weightDecay?: number;
  initialSum?: number;
  eps?: number;
}
/** Options of {@link Lion}. */
export interface LionOptions {
  lr?: number;
  betas?: readonly [number, number];
  weightDecay?: number;
}
/** Options of {@link Muon}. */
export interface MuonOptions {
  lr?: number;
  momentum?: number;
  weightDecay?: number;
  nesterov?: boolean;
  nsSteps?: number;
}

/** Parameters, all with the same options or in groups. */
export type ParameterList<Options> = readonly Tensor[] | readonly ParameterGroup<Options>[];

/** Gradient descent with momentum. */
export class SGD extends Optimizer<SGDOptions> {
  constructor(parameters: ParameterList<SGDOptions>, options: SGDOptions = {}) {
    super("SGD", parameters, options);
  }
}
/** Adam: a rate for every number, by the moments of its gradients. */
export class Adam extends Optimizer<AdamOptions> {
  constructor(parameters: ParameterList<AdamOptions>, options: AdamOptions = {}) {
    super("Adam", parameters, options);
  }
}
/** Adam with weight decay apart from the gradients. */
export class AdamW extends Optimizer<AdamOptions> {
  constructor(parameters: ParameterList<AdamOptions>, options: AdamOptions = {}) {
    super("AdamW", parameters, options);
  }
}
export class RMSprop extends Optimizer<RMSpropOptions> {
  constructor(parameters: ParameterList<RMSpropOptions>, options: RMSpropOptions = {}) {
    super("RMSprop", parameters, options);
  }
}
export class Adagrad extends Optimizer<AdagradOptions> {
  constructor(parameters: ParameterList<AdagradOptions>, options: AdagradOptions = {}) {
    super("Adagrad", parameters, options);
  }
}
export class Lion extends Optimizer<LionOptions> {
  constructor(parameters: ParameterList<LionOptions>, options: LionOptions = {}) {
    super("Lion", parameters, options);
  }
}
/** Orthogonalized momentum, for matrices. */
export class Muon extends Optimizer<MuonOptions> {
  constructor(parameters: ParameterList<MuonOptions>, options: MuonOptions = {}) {
    super("Muon", parameters, options);
  }
}

/** Moving averages of parameters, which often do better than the parameters. */
export class Ema {
  #handle: number;

  constructor(parameters: readonly Tensor[], decay = 0.999) {
    this.#handle = call((wasm) => wasm.ema_new(handlesOf(parameters), decay));
    own(this, "ema", this.#handle);
  }
  /** Moves the averages towards the parameters: call it after every step. */
  update(): void {
    call((wasm) => wasm.ema_update(this.#handle));
  }
  /** Exchanges averages and parameters; once more goes back. */
  swap(): void {
    call((wasm) => wasm.ema_swap(this.#handle));
  }
  averages(): Tensor[] {
    return Array.from(call((wasm) => wasm.ema_averages(this.#handle)), (handle) => Tensor.of(handle));
  }
  dispose(): void {
    free(this, "ema", this.#handle);
    this.#handle = DISPOSED;
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
}
