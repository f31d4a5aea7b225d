// Functions that layers are made of, and losses: `nn.functional`.

import { Tensor, handlesOf, op } from "./tensor.js";
import { call } from "./wasm.js";

/** What is made of the losses of all elements. */
export type Reduction = "mean" | "sum" | "none" | "batchmean";

/** A number for both axes, or one each. */
export type Pair = number | readonly [number, number];

const REDUCTIONS: Record<Reduction, number> = { mean: 0, sum: 1, none: 2, batchmean: 3 };

/** Both numbers of a pair. */
export const pair = (x: Pair): readonly [number, number] => (typeof x === "number" ? [x, x] : x);

const flag = (yes: boolean | undefined): number => (yes ? 1 : 0);

function loss(name: string, tensors: readonly Tensor[], reduction: Reduction = "mean", numbers: readonly number[] = []): Tensor {
  return Tensor.of(call((wasm) => wasm.loss(name, handlesOf(tensors), Float64Array.of(REDUCTIONS[reduction], ...numbers))));
}

const given = (...tensors: (Tensor | undefined)[]): Tensor[] => tensors.filter((t) => t !== undefined);

// ------------------------------------------------------------------------------------------------------------- losses

/** The mean square of differences. */
export function mseLoss(input: Tensor, target: Tensor, reduction?: Reduction): Tensor {
  return loss("mse_loss", [input, target], reduction);
}
/** The mean of absolute differences. */
export function l1Loss(input: Tensor, target: Tensor, reduction?: Reduction): Tensor {
  return loss("l1_loss", [input, target], reduction);
}
/** Quadratic below `beta`, linear above. */
export function smoothL1Loss(input: Tensor, target: Tensor, options: { beta?: number; reduction?: Reduction } = {}): Tensor {
  return loss("smooth_l1_loss", [input, target], options.reduction, [options.beta ?? 1]);
}
/** Quadratic below `delta`, linear above. */
export function huberLoss(input: Tensor, target: Tensor, options: { delta?: number; reduction?: Reduction } = {}): Tensor {
  return loss("huber_loss", [input, target], options.reduction, [options.delta ?? 1]);
}
/** Cross-entropy of logits (batch, classes, …) with classes as integers, or with probabilities of the logits' shape. */
export function crossEntropy(
  logits: Tensor,
  target: Tensor,
  options: { weight?: Tensor; ignoreIndex?: number; labelSmoothing?: number; reduction?: Reduction } = {},
): Tensor {
  const numbers = [options.ignoreIndex ?? -100, options.labelSmoothing ?? 0];
  return loss("cross_entropy", given(logits, target, options.weight), options.reduction, numbers);
}
/** The negative logarithms of probabilities, picked by class. */
export function nllLoss(
  input: Tensor,
  target: Tensor,
  options: { weight?: Tensor; ignoreIndex?: number; reduction?: Reduction } = {},
): Tensor {
  return loss("nll_loss", given(input, target, options.weight), options.reduction, [options.ignoreIndex ?? -100]);
}
/** Binary cross-entropy of probabilities. */
export function bceLoss(input: Tensor, target: Tensor, options: { weight?: Tensor; reduction?: Reduction } = {}): Tensor {
  return loss("bce_loss", given(input, target, options.weight), options.reduction, [flag(!!options.weight), 0]);
}
/** Binary cross-entropy of logits. */
export function bceWithLogits(
  input: Tensor,
  target: Tensor,
  options: { weight?: Tensor; posWeight?: Tensor; reduction?: Reduction } = {},
): Tensor {
  const { weight, posWeight, reduction } = options;
  return loss("bce_with_logits", given(input, target, weight, posWeight), reduction, [flag(!!weight), flag(!!posWeight)]);
}
/** The Kullback-Leibler divergence of log-probabilities from probabilities. */
export function klDiv(input: Tensor, target: Tensor, options: { logTarget?: boolean; reduction?: Reduction } = {}): Tensor {
  return loss("kl_div", [input, target], options.reduction, [flag(options.logTarget)]);
}
/** Of pairs of vectors that should point the same way (1) or not (-1). */
export function cosineEmbeddingLoss(
  a: Tensor,
  b: Tensor,
  target: Tensor,
  options: { margin?: number; reduction?: Reduction } = {},
): Tensor {
  return loss("cosine_embedding_loss", [a, b, target], options.reduction, [options.margin ?? 0]);
}
/** Of vectors that should be nearer to one than to another. */
export function tripletMarginLoss(
  anchor: Tensor,
  positive: Tensor,
  negative: Tensor,
  options: { margin?: number; p?: number; reduction?: Reduction } = {},
): Tensor {
  return loss("triplet_margin_loss", [anchor, positive, negative], options.reduction, [options.margin ?? 1, options.p ?? 2]);
}

// ------------------------------------------------------------------------------------------------------------- functions

/** x·Wᵀ + b. */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  return op("linear", given(x, weight, bias));
}
/** Rows of a table. */
export function embedding(index: Tensor, weight: Tensor): Tensor {
  return op("embedding", [weight, index]);
}
/** The classes as rows that are 1 at one place. */
export function oneHot(index: Tensor, classes: number): Tensor {
  return op("one_hot", [index], [classes]);
}
export function relu(x: Tensor): Tensor {
  return x.relu();
}
export function gelu(x: Tensor, approximate?: "none" | "tanh"): Tensor {
  return x.gelu(approximate);
}
export function silu(x: Tensor): Tensor {
  return x.silu();
}
export function sigmoid(x: Tensor): Tensor {
  return x.sigmoid();
}
export function tanh(x: Tensor): Tensor {
  return x.tanh();
}
export function softmax(x: Tensor, dim: number): Tensor {
  return x.softmax(dim);
}
export function logSoftmax(x: Tensor, dim: number): Tensor {
  return x.logSoftmax(dim);
}
/** Drops elements, and scales the others so that the mean stays. */
export function dropout(x: Tensor, p = 0.5, training = true): Tensor {
  return training ? op("dropout", [x], [p]) : x;
}
/** Drops whole channels. */
export function dropout2d(x: Tensor, p = 0.5, training = true): Tensor {
  return training ? op("dropout2d", [x], [p]) : x;
}
export function layerNorm(x: Tensor, shape: readonly number[], weight?: Tensor, bias?: Tensor, eps = 1e-5): Tensor {
  return op("layer_norm", given(x, weight, bias), [eps, ...shape]);
}
export function rmsNorm(x: Tensor, shape: readonly number[], weight?: Tensor, eps?: number): Tensor {
  return op("rms_norm", given(x, weight), [eps ?? NaN, ...shape]);
}
export function groupNorm(x: Tensor, groups: number, weight?: Tensor, bias?: Tensor, eps = 1e-5): Tensor {
  return op("group_norm", given(x, weight, bias), [groups, eps]);
}
/** Vectors scaled to length 1. */
export function normalize(x: Tensor, p = 2, dim = 1, eps = 1e-12): Tensor {
  return op("normalize", [x], [p, dim, eps]);
}
export function cosineSimilarity(a: Tensor, b: Tensor, dim = 1, eps = 1e-8): Tensor {
  return op("cosine_similarity", [a, b], [dim, eps]);
}

/** Options of convolutions. */
export interface ConvOptions<P = Pair> {
  stride?: P;
  padding?: P;
  dilation?: P;
  groups?: number;
}

function convolution(name: string, x: Tensor, weight: Tensor, bias: Tensor | undefined, options: ConvOptions & { outputPadding?: Pair }): Tensor {
  const { stride = 1, padding = 0, dilation = 1, groups = 1, outputPadding = 0 } = options;
  return op(name, given(x, weight, bias), [...pair(stride), ...pair(padding), ...pair(dilation), groups, ...pair(outputPadding)]);
}
/** A convolution over (batch, channels, height, width). */
export function conv2d(x: Tensor, weight: Tensor, bias?: Tensor, options: ConvOptions = {}): Tensor {
  return convolution("conv2d", x, weight, bias, options);
}
/** A convolution over (batch, channels, length). */
export function conv1d(x: Tensor, weight: Tensor, bias?: Tensor, options: ConvOptions<number> = {}): Tensor {
  return convolution("conv1d", x, weight, bias, options);
}
export function convTranspose2d(x: Tensor, weight: Tensor, bias?: Tensor, options: ConvOptions & { outputPadding?: Pair } = {}): Tensor {
  return convolution("conv_transpose2d", x, weight, bias, options);
}
/** The largest element of each window. */
export function maxPool2d(x: Tensor, kernel: Pair, options: { stride?: Pair; padding?: Pair } = {}): Tensor {
  return op("max_pool2d", [x], [...pair(kernel), ...pair(options.stride ?? kernel), ...pair(options.padding ?? 0)]);
}
/** The mean of each window. */
export function avgPool2d(x: Tensor, kernel: Pair, options: { stride?: Pair; padding?: Pair } = {}): Tensor {
  return op("avg_pool2d", [x], [...pair(kernel), ...pair(options.stride ?? kernel), ...pair(options.padding ?? 0)]);
}
export function adaptiveAvgPool2d(x: Tensor, size: Pair): Tensor {
  return op("adaptive_avg_pool2d", [x], pair(size));
}
/** Images of another size. */
export function interpolate(x: Tensor, size: Pair, options: { mode?: "nearest" | "bilinear"; alignCorners?: boolean } = {}): Tensor {
  return op("interpolate", [x], [...pair(size), flag(options.mode === "bilinear"), flag(options.alignCorners)]);
}
export function pixelShuffle(x: Tensor, factor: number): Tensor {
  return op("pixel_shuffle", [x], [factor]);
}
/** Attention over (batch, heads, length, width). A mask of truth values says which keys are seen; one of numbers is added. */
export function scaledDotProductAttention(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  options: { mask?: Tensor; causal?: boolean; dropout?: number; scale?: number } = {},
): Tensor {
  const numbers = [flag(options.causal), options.dropout ?? 0, options.scale ?? NaN];
  return op("scaled_dot_product_attention", given(query, key, value, options.mask), numbers);
}
