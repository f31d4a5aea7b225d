// What is done with gradients before a step: `nn.clipGradNorm`, `nn.clipGradValue`.

import { Tensor, handlesOf } from "../tensor.js";
import { call } from "../wasm.js";

/** Scales gradients so that together they are no longer than `maxNorm`; gives their length before. */
export function clipGradNorm(parameters: readonly Tensor[], maxNorm: number): Tensor {
  return Tensor.of(call((wasm) => wasm.clip_grad_norm(handlesOf(parameters), maxNorm)));
}

/** Cuts off gradients at `-limit` and `limit`. */
export function clipGradValue(parameters: readonly Tensor[], limit: number): void {
  call((wasm) => wasm.clip_grad_value(handlesOf(parameters), limit));
}
