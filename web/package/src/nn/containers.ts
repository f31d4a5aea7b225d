// Layers without weights, losses as modules, and lists of modules.

import * as functional from "../functional.js";
import type { Pair, Reduction } from "../functional.js";
import type { Tensor } from "../tensor.js";
import { type AnyModule, Module } from "./module.js";

/** Modules one after the other. */
export class Sequential extends Module {
  readonly layers: readonly Module[];

  constructor(...layers: Module[]) {
    super();
    this.layers = layers;
  }

  override namedChildren(): [name: string, module: AnyModule][] {
    return this.layers.map((layer, k) => [String(k), layer as unknown as AnyModule]);
  }

  override forward(x: Tensor): Tensor {
    return this.layers.reduce((value, layer) => layer.forward(value), x);
  }
}

/** A function as a module. */
export class Lambda extends Module {
  readonly #f: (x: Tensor) => Tensor;

  constructor(f: (x: Tensor) => Tensor) {
    super();
    this.#f = f;
  }

  override forward(x: Tensor): Tensor {
    return this.#f(x);
  }
}

/** What comes in. */
export class Identity extends Module {
  override forward(x: Tensor): Tensor {
    return x;
  }
}
export class ReLU extends Module {
  override forward(x: Tensor): Tensor {
    return x.relu();
  }
}
export class GELU extends Module {
  constructor(readonly approximate: "none" | "tanh" = "none") {
    super();
  }
  override forward(x: Tensor): Tensor {
    return x.gelu(this.approximate);
  }
}
export class SiLU extends Module {
  override forward(x: Tensor): Tensor {
    return x.silu();
  }
}
export class Mish extends Module {
  override forward(x: Tensor): Tensor {
    return x.mish();
  }
}
export class Sigmoid extends Module {
  override forward(x: Tensor): Tensor {
    return x.sigmoid();
  }
}
export class Tanh extends Module {
  override forward(x: Tensor): Tensor {
    return x.tanh();
  }
}
export class ELU extends Module {
  constructor(readonly alpha = 1) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return x.elu(this.alpha);
  }
}
export class LeakyReLU extends Module {
  constructor(readonly slope = 0.01) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return x.leakyRelu(this.slope);
  }
}
export class Softmax extends Module {
  constructor(readonly dim = -1) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return x.softmax(this.dim);
  }
}
export class LogSoftmax extends Module {
  constructor(readonly dim = -1) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return x.logSoftmax(this.dim);
  }
}
/** Drops elements while training. */
export class Dropout extends Module {
  constructor(readonly p = 0.5) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return functional.dropout(x, this.p, this.training);
  }
}
export class Flatten extends Module {
  constructor(
    readonly first = 1,
    readonly last = -1,
  ) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return x.flatten(this.first, this.last);
  }
}
export class MaxPool2d extends Module {
  constructor(
    readonly kernel: Pair,
    readonly options: { stride?: Pair; padding?: Pair } = {},
  ) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return functional.maxPool2d(x, this.kernel, this.options);
  }
}
export class AvgPool2d extends Module {
  constructor(
    readonly kernel: Pair,
    readonly options: { stride?: Pair; padding?: Pair } = {},
  ) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return functional.avgPool2d(x, this.kernel, this.options);
  }
}
export class AdaptiveAvgPool2d extends Module {
  constructor(readonly size: Pair) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return functional.adaptiveAvgPool2d(x, this.size);
  }
}
export class Upsample extends Module {
  constructor(
    readonly size: Pair,
    readonly options: { mode?: "nearest" | "bilinear"; alignCorners?: boolean } = {},
  ) {
    super();
  }
  override forward(x: Tensor): Tensor {
    return functional.interpolate(x, this.size, this.options);
  }
}

/** {@link functional.crossEntropy} as a module. */
export class CrossEntropyLoss extends Module<[logits: Tensor, target: Tensor]> {
  constructor(readonly options: Parameters<typeof functional.crossEntropy>[2] = {}) {
    super();
  }
  override forward(logits: Tensor, target: Tensor): Tensor {
    return functional.crossEntropy(logits, target, this.options);
  }
}
/** {@link functional.mseLoss} as a module. */
export class MSELoss extends Module<[input: Tensor, target: Tensor]> {
  constructor(readonly reduction: Reduction = "mean") {
    super();
  }
  override forward(input: Tensor, target: Tensor): Tensor {
    return functional.mseLoss(input, target, this.reduction);
  }
}
/** {@link functional.bceWithLogits} as a module. */
export class BCEWithLogitsLoss extends Module<[input: Tensor, target: Tensor]> {
  constructor(readonly options: Parameters<typeof functional.bceWithLogits>[2] = {}) {
    super();
  }
  override forward(input: Tensor, target: Tensor): Tensor {
    return functional.bceWithLogits(input, target, this.options);
  }
}
