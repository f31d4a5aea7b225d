// Layers whose weights and forward pass are the engine's.

import { DISPOSED, own, free } from "../handles.js";
import { Tensor, handlesOf } from "../tensor.js";
import { call } from "../wasm.js";
import { Module } from "./module.js";

/** A layer of the engine, by its name and sizes. */
export abstract class Layer<Inputs extends readonly unknown[] = [x: Tensor], Output = Tensor> extends Module<Inputs, Output> {
  #handle: number;
  readonly #tensors: [name: string, tensor: Tensor, trained: boolean][];

  /** @internal */
  protected constructor(name: string, numbers: readonly number[]) {
    super();
    this.#handle = call((wasm) => wasm.layer_new(name, Float64Array.from(numbers)));
    own(this, "layer", this.#handle);
    const found = call((wasm) => wasm.layer_tensors(this.#handle)) as { name: string; handle: number; trained: boolean }[];
    this.#tensors = found.map(({ name, handle, trained }) => [name, Tensor.of(handle), trained]);
  }

  /** @internal */
  override ownTensors(): [name: string, tensor: Tensor, trained: boolean][] {
    return this.#tensors;
  }

  /** One of its tensors. */
  protected tensorNamed(name: string): Tensor | undefined {
    return this.#tensors.find(([known]) => known === name)?.[1];
  }

  /** The weight. */
  get weight(): Tensor {
    return this.tensorNamed("weight")!;
  }

  /** The bias, if it has one. */
  get bias(): Tensor | undefined {
    return this.tensorNamed("bias");
  }

  /** The results for inputs. @internal */
  protected run(inputs: readonly Tensor[], causal = false): Tensor[] {
    const results = call((wasm) => wasm.layer_forward(this.#handle, handlesOf(inputs), causal));
    return Array.from(results, (handle) => Tensor.of(handle));
  }

  override train(yes = true): this {
    super.train(yes);
    call((wasm) => wasm.layer_train(this.#handle, yes));
    return this;
  }

  override dispose(): void {
    super.dispose();
    free(this, "layer", this.#handle);
    this.#handle = DISPOSED;
  }

  /** Its name and sizes. */
  override toString(): string {
    return `${this.constructor.name}(${call((wasm) => wasm.layer_describe(this.#handle))})`;
  }
}

/** A layer of one input and one output. */
export abstract class PlainLayer extends Layer {
  override forward(x: Tensor): Tensor {
    return this.run([x])[0]!;
  }
}
