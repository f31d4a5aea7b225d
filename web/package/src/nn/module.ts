// What every layer and network is.

import { VoltaError } from "../errors.js";
import { Tensor, handlesOf, noGrad } from "../tensor.js";
import { call } from "../wasm.js";

/** A tensor that is trained: a leaf that collects gradients. */
export function Parameter(value: Tensor): Tensor {
  return value.requiresGrad_();
}

/** Names and tensors: a module's weights and buffers. */
export type StateDict = Record<string, Tensor>;

/** What `loadStateDict` did not find. */
export interface LoadReport {
  missing: string[];
  unexpected: string[];
}

/**
 * A network, or a part of one. Tensors that collect gradients, modules, and arrays of modules among its properties are its
 * parameters and children.
 *
 * ```ts
 * class Net extends nn.Module {
 *   hidden = new nn.Linear(4, 8);
 *   output = new nn.Linear(8, 2);
 *   override forward(x: Tensor): Tensor {
 *     return this.output.forward(this.hidden.forward(x).relu());
 *   }
 * }
 * ```
 */
export abstract class Module<Inputs extends readonly unknown[] = [x: Tensor], Output = Tensor> {
  /** Whether it trains: `train()` and `eval()` switch it. */
  training = true;

  /** The output for an input. */
  abstract forward(...inputs: Inputs): Output;

  /** Tensors of its own, not those of children: what is trained, and what is only kept. @internal */
  ownTensors(): [name: string, tensor: Tensor, trained: boolean][] {
    const found: [string, Tensor, boolean][] = [];
    for (const [name, value] of Object.entries(this)) {
      if (value instanceof Tensor) found.push([name, value, value.requiresGrad]);
    }
    return found;
  }

  /** Modules right inside, by name. */
  namedChildren(): [name: string, module: AnyModule][] {
    const found: [string, AnyModule][] = [];
    for (const [name, value] of Object.entries(this)) {
      if (value instanceof Module) found.push([name, value as AnyModule]);
      else if (Array.isArray(value)) {
        value.forEach((item: unknown, k) => {
          if (item instanceof Module) found.push([`${name}.${k}`, item as AnyModule]);
        });
      }
    }
    return found;
  }

  /** Modules right inside. */
  children(): AnyModule[] {
    return this.namedChildren().map(([, module]) => module);
  }

  #tensors(prefix: string, seen: Set<Tensor>): [string, Tensor, boolean][] {
    const own = this.ownTensors().filter(([, t]) => !seen.has(t) && seen.add(t));
    const named = own.map(([name, t, trained]): [string, Tensor, boolean] => [prefix + name, t, trained]);
    return named.concat(this.namedChildren().flatMap(([name, child]) => child.#tensors(`${prefix}${name}.`, seen)));
  }

  /** What is trained, by full name: `blocks.0.norm.weight`. */
  namedParameters(): [name: string, parameter: Tensor][] {
    return this.#tensors("", new Set()).flatMap(([name, t, trained]) => (trained ? [[name, t] as [string, Tensor]] : []));
  }

  /** What is trained. */
  parameters(): Tensor[] {
    return this.namedParameters().map(([, t]) => t);
  }

  /** How many numbers are trained. */
  numParameters(): number {
    return this.parameters().reduce((sum, t) => sum + t.numel, 0);
  }

  /** All tensors by full name: what is trained, and buffers such as running means. They are the module's own, not copies. */
  stateDict(): StateDict {
    return Object.fromEntries(this.#tensors("", new Set()).map(([name, t]) => [name, t]));
  }

  /** Gives its tensors the values of their names. Whatever does not fit is an error, and nothing is changed. */
  loadStateDict(state: StateDict, options: { strict?: boolean } = {}): LoadReport {
    const own = this.stateDict();
    const missing = Object.keys(own).filter((name) => !(name in state));
    const unexpected = Object.keys(state).filter((name) => !(name in own));
    if ((options.strict ?? true) && missing.length + unexpected.length > 0) {
      const parts = [
        missing.length > 0 ? `it has no ${missing.slice(0, 5).join(", ")}` : "",
        unexpected.length > 0 ? `it has ${unexpected.slice(0, 5).join(", ")}, which the module has not` : "",
      ];
      throw new VoltaError("argument", `the state does not fit the module: ${parts.filter(Boolean).join("; ")}`);
    }
    const names = Object.keys(own).filter((name) => name in state);
    for (const name of names) {
      const [mine, theirs] = [own[name]!.shape, state[name]!.shape];
      if (mine.length !== theirs.length || mine.some((extent, k) => extent !== theirs[k])) {
        throw new VoltaError("shape", `the state does not fit the module: ${name} is [${theirs}], and must be [${mine}]`);
      }
    }
    const pick = (from: StateDict): Tensor[] => names.map((name) => from[name]!);
    call((wasm) => {
      wasm.tensors_assign(handlesOf(pick(own)), handlesOf(pick(state)));
      wasm.tensors_realize(handlesOf(pick(own)));
    });
    return { missing, unexpected };
  }

  /** Switches to training, or to evaluation. */
  train(yes = true): this {
    this.training = yes;
    for (const child of this.children()) child.train(yes);
    return this;
  }

  /** Switches to evaluation. */
  eval(): this {
    return this.train(false);
  }

  /** Forgets all gradients. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) parameter.grad = undefined;
  }

  /** Makes all parameters collect gradients, or none of them. */
  requiresGrad_(yes = true): this {
    for (const parameter of this.parameters()) parameter.requiresGrad_(yes);
    return this;
  }

  /** Calls `f` with this module and with all inside. */
  apply(f: (module: AnyModule) => void): this {
    for (const child of this.children()) child.apply(f);
    f(this as unknown as AnyModule);
    return this;
  }

  /** Runs `f` as evaluation without a tape, and goes back to what was set before. */
  evaluate<T>(f: () => T): T {
    const training = this.training;
    this.eval();
    const back = (): void => {
      this.train(training);
    };
    let result: T;
    try {
      result = noGrad(f);
    } catch (thrown) {
      back();
      throw thrown;
    }
    if (result instanceof Promise) return result.finally(back) as T;
    back();
    return result;
  }

  /** Frees its memory now. */
  dispose(): void {
    for (const [, t] of this.#tensors("", new Set())) t.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** A module whatever it takes. */
export type AnyModule = Module<readonly never[], unknown>;
