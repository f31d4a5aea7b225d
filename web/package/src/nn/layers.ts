// Layers with weights.

import { type Pair, pair } from "../functional.js";
import type { Tensor } from "../tensor.js";
import { Layer, PlainLayer } from "./layer.js";

const flag = (yes: boolean): number => (yes ? 1 : 0);

/** x·Wᵀ + b. */
export class Linear extends PlainLayer {
  constructor(inputs: number, outputs: number, options: { bias?: boolean } = {}) {
    super("Linear", [inputs, outputs, flag(options.bias ?? true)]);
  }
}

/** A table of vectors, looked up by integers. */
export class Embedding extends PlainLayer {
  constructor(rows: number, width: number, options: { paddingIdx?: number } = {}) {
    super("Embedding", [rows, width, options.paddingIdx ?? NaN]);
  }
}

/** Options of convolutions as layers. */
export interface ConvLayerOptions<P = Pair> {
  stride?: P;
  padding?: P;
  dilation?: P;
  groups?: number;
  bias?: boolean;
}

function convolution(options: ConvLayerOptions): number[] {
  const { stride = 1, padding = 0, dilation = 1, groups = 1, bias = true } = options;
  return [...pair(stride), ...pair(padding), ...pair(dilation), groups, flag(bias)];
}

/** A convolution over (batch, channels, height, width). */
export class Conv2d extends PlainLayer {
  constructor(inputs: number, outputs: number, kernel: Pair, options: ConvLayerOptions = {}) {
    super("Conv2d", [inputs, outputs, ...pair(kernel), ...convolution(options)]);
  }
}

/** A convolution over (batch, channels, length). */
export class Conv1d extends PlainLayer {
  constructor(inputs: number, outputs: number, kernel: number, options: ConvLayerOptions<number> = {}) {
    super("Conv1d", [inputs, outputs, kernel, ...convolution(options)]);
  }
}

/** The transpose of a convolution, which makes images larger. */
export class ConvTranspose2d extends PlainLayer {
  constructor(inputs: number, outputs: number, kernel: Pair, options: ConvLayerOptions & { outputPadding?: Pair } = {}) {
    super("ConvTranspose2d", [inputs, outputs, ...pair(kernel), ...convolution(options), ...pair(options.outputPadding ?? 0)]);
  }
}

/** Every example's last axes to mean 0 and deviation 1, then scaled and shifted. */
export class LayerNorm extends PlainLayer {
  constructor(shape: number | readonly number[], options: { eps?: number; affine?: boolean; bias?: boolean } = {}) {
    const { eps = 1e-5, affine = true, bias = true } = options;
    super("LayerNorm", [eps, flag(affine), flag(bias), ...(typeof shape === "number" ? [shape] : shape)]);
  }
}

/** Every example's last axes to a root mean square of 1, then scaled. */
export class RMSNorm extends PlainLayer {
  constructor(shape: number | readonly number[], options: { eps?: number; affine?: boolean } = {}) {
    const { eps = NaN, affine = true } = options;
    super("RMSNorm", [eps, flag(affine), ...(typeof shape === "number" ? [shape] : shape)]);
  }
}

/** Groups of channels to mean 0 and deviation 1. */
export class GroupNorm extends PlainLayer {
  constructor(groups: number, channels: number, options: { eps?: number; affine?: boolean } = {}) {
    super("GroupNorm", [groups, channels, options.eps ?? 1e-5, flag(options.affine ?? true)]);
  }
}

/** Options of batch norms. */
export interface BatchNormOptions {
  eps?: number;
  /** Of the running averages; `null` averages over all batches. */
  momentum?: number | null;
  affine?: boolean;
  trackRunningStats?: boolean;
}

function batchNorm(channels: number, options: BatchNormOptions): number[] {
  const { eps = 1e-5, momentum = 0.1, affine = true, trackRunningStats = true } = options;
  return [channels, eps, momentum ?? NaN, flag(affine), flag(trackRunningStats)];
}

/** Channels of (batch, channels) or (batch, channels, length) to mean 0 and deviation 1 over the batch. */
export class BatchNorm1d extends PlainLayer {
  constructor(channels: number, options: BatchNormOptions = {}) {
    super("BatchNorm1d", batchNorm(channels, options));
  }
}

/** Channels of (batch, channels, height, width) to mean 0 and deviation 1 over the batch. */
export class BatchNorm2d extends PlainLayer {
  constructor(channels: number, options: BatchNormOptions = {}) {
    super("BatchNorm2d", batchNorm(channels, options));
  }
}

/** What is hidden from queries of attention. */
export interface AttentionMaskOptions {
  /** A query sees the keys up to its own place only. */
  causal?: boolean;
  /** Truth values, false where a key is hidden, or numbers to add to the scores. */
  mask?: Tensor;
}

/** Attention of several heads over (batch, length, width). */
export class MultiHeadAttention extends Layer<[query: Tensor, key?: Tensor, value?: Tensor, options?: AttentionMaskOptions]> {
  constructor(
    width: number,
    heads: number,
    options: { bias?: boolean; dropout?: number; kvHeads?: number; rotary?: boolean } = {},
  ) {
    const { bias = true, dropout = 0, kvHeads = NaN, rotary = false } = options;
    super("MultiHeadAttention", [width, heads, flag(bias), dropout, kvHeads, flag(rotary)]);
  }

  /** What each query finds among the keys. Without a key it is attention of a sequence to itself. */
  override forward(query: Tensor, key = query, value = key, options: AttentionMaskOptions = {}): Tensor {
    const { mask, causal = false } = options;
    return this.run(mask ? [query, key, value, mask] : [query, key, value], causal)[0]!;
  }
}

/** Attention and two linear layers, over (batch, length, width). */
export class TransformerEncoderLayer extends Layer<[x: Tensor, options?: AttentionMaskOptions]> {
  constructor(
    width: number,
    heads: number,
    options: {
      dimFeedforward?: number;
      dropout?: number;
      activation?: "relu" | "gelu";
      normFirst?: boolean;
      rotary?: boolean;
    } = {},
  ) {
    const { dimFeedforward = 2048, dropout = 0.1, activation = "relu", normFirst = false, rotary = false } = options;
    super("TransformerEncoderLayer", [
      width,
      heads,
      dimFeedforward,
      dropout,
      flag(activation === "gelu"),
      flag(normFirst),
      flag(rotary),
    ]);
  }

  override forward(x: Tensor, options: AttentionMaskOptions = {}): Tensor {
    return this.run(options.mask ? [x, options.mask] : [x], options.causal)[0]!;
  }
}

/** Options of recurrent networks. */
export interface RecurrentOptions {
  layers?: number;
  bias?: boolean;
  /** (batch, length, width) rather than (length, batch, width). */
  batchFirst?: boolean;
  dropout?: number;
  bidirectional?: boolean;
}

function recurrent(inputs: number, hidden: number, options: RecurrentOptions): number[] {
  const { layers = 1, bias = true, batchFirst = false, dropout = 0, bidirectional = false } = options;
  return [inputs, hidden, layers, flag(bias), flag(batchFirst), dropout, flag(bidirectional)];
}

/** h' = tanh(W·x + b + U·h + c), step by step. Gives the outputs and the last state. */
export class RNN extends Layer<[x: Tensor, state?: Tensor], [output: Tensor, state: Tensor]> {
  constructor(inputs: number, hidden: number, options: RecurrentOptions = {}) {
    super("RNN", recurrent(inputs, hidden, options));
  }

  override forward(x: Tensor, state?: Tensor): [output: Tensor, state: Tensor] {
    return this.run(state ? [x, state] : [x]) as [Tensor, Tensor];
  }
}

/** Gated recurrent units. Gives the outputs and the last state. */
export class GRU extends Layer<[x: Tensor, state?: Tensor], [output: Tensor, state: Tensor]> {
  constructor(inputs: number, hidden: number, options: RecurrentOptions = {}) {
    super("GRU", recurrent(inputs, hidden, options));
  }

  override forward(x: Tensor, state?: Tensor): [output: Tensor, state: Tensor] {
    return this.run(state ? [x, state] : [x]) as [Tensor, Tensor];
  }
}

/** Long short-term memory. Gives the outputs, and the last state: output and cell. */
export class LSTM extends Layer<
  [x: Tensor, state?: readonly [hidden: Tensor, cell: Tensor]],
  [output: Tensor, state: [hidden: Tensor, cell: Tensor]]
> {
  constructor(inputs: number, hidden: number, options: RecurrentOptions = {}) {
    super("LSTM", recurrent(inputs, hidden, options));
  }

  override forward(
    x: Tensor,
    state?: readonly [hidden: Tensor, cell: Tensor],
  ): [output: Tensor, state: [hidden: Tensor, cell: Tensor]] {
    const [output, hidden, cell] = this.run(state ? [x, ...state] : [x]) as [Tensor, Tensor, Tensor];
    return [output, [hidden, cell]];
  }
}
