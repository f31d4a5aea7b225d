// Tensors: PyTorch's names in camelCase. Ops check shapes at once and compute nothing; values are computed when they are read, or
// when an optimizer takes a step.

import { VoltaError } from "./errors.js";
import { DISPOSED, free, own, relieve } from "./handles.js";
import { call, callAsync } from "./wasm.js";
import type { DeviceName } from "./types.js";

/** The types of elements. `float64` is on the CPU alone, and `int64` where the adapter has it. */
export type DType =
  | "float32"
  | "float64"
  | "float16"
  | "bfloat16"
  | "int32"
  | "int64"
  | "uint8"
  | "uint32"
  | "bool";

/** What elements are read as: 16-bit floats as 32-bit ones, truth values as bytes. */
export type TypedArray = Float32Array | Float64Array | Int32Array | BigInt64Array | Uint8Array | Uint32Array;

/** Numbers in lists of lists. */
export type NestedNumbers = number | readonly NestedNumbers[];

/** What a tensor can be made of. */
export type TensorData = NestedNumbers | TypedArray | Int8Array | Uint8ClampedArray | Int16Array | Uint16Array | readonly boolean[];

/** A tensor, or a number that is broadcast. */
export type Operand = Tensor | number;

/** An axis, or several. */
export type Axes = number | readonly number[];

/** How a tensor is made. */
export interface TensorOptions {
  /** Default: what the data are; `float32` of lists of numbers. */
  dtype?: DType;
  /** Whether it collects gradients. Default: false. */
  requiresGrad?: boolean;
}

/** What a backward pass does with the graph. */
export interface BackwardOptions {
  /** The gradient to start from, of the same shape; needed where the tensor is not one number. */
  gradient?: Tensor;
  /** Keeps the graph, and intermediate results, so that it can be differentiated again. */
  retainGraph?: boolean;
  /** Records the backward pass itself, for gradients of gradients. */
  createGraph?: boolean;
}

/** No tensor. */
const NONE = 0xffffffff;

let types: DType[] | undefined;

const axes = (dim: Axes | undefined): readonly number[] => (dim === undefined ? [] : typeof dim === "number" ? [dim] : dim);

const flag = (yes: boolean | undefined): number => (yes ? 1 : 0);

function shapeOf(data: NestedNumbers | readonly boolean[]): number[] {
  const shape: number[] = [];
  for (let at: unknown = data; Array.isArray(at); at = at[0]) shape.push(at.length);
  return shape;
}

/** Handles of what an op reads. */
export function handlesOf(tensors: readonly Tensor[]): Uint32Array {
  const handles = new Uint32Array(tensors.length);
  for (let k = 0; k < tensors.length; k++) handles[k] = tensors[k]!.handle;
  return handles;
}

/** The result of an op. */
export function op(name: string, tensors: readonly Tensor[], numbers: readonly number[] = []): Tensor {
  return Tensor.of(call((wasm) => wasm.op(name, handlesOf(tensors), Float64Array.from(numbers))));
}

/** The results of an op that has several. */
export function opSeveral(name: string, tensors: readonly Tensor[], numbers: readonly number[] = []): Tensor[] {
  const handles = call((wasm) => wasm.op_several(name, handlesOf(tensors), Float64Array.from(numbers)));
  return Array.from(handles, (handle) => Tensor.of(handle));
}

function upload(values: ArrayLike<number> | ArrayLike<bigint>, dtype: DType | undefined, shape: Uint32Array): number {
  return call((wasm) => {
    if (dtype === undefined) {
      if (values instanceof Float32Array) return wasm.tensor_from_f32(values, shape);
      if (values instanceof Float64Array) return wasm.tensor_from_f64(values, shape);
      if (values instanceof Int32Array) return wasm.tensor_from_i32(values, shape);
      if (values instanceof BigInt64Array) return wasm.tensor_from_i64(values, shape);
      if (values instanceof Uint32Array) return wasm.tensor_from_u32(values, shape);
      if (values instanceof Uint8Array) return wasm.tensor_from_u8(values, shape);
      if (values instanceof Uint8ClampedArray) return wasm.tensor_from_u8(new Uint8Array(values), shape);
      if (values instanceof Int8Array || values instanceof Int16Array || values instanceof Uint16Array) {
        return wasm.tensor_from_i32(Int32Array.from(values), shape);
      }
      return wasm.tensor_from_f32(Float32Array.from(values as ArrayLike<number>), shape);
    }
    const numbers = values as ArrayLike<number>;
    switch (dtype) {
      case "float32":
        return wasm.tensor_from_f32(values instanceof Float32Array ? values : Float32Array.from(numbers, Number), shape);
      case "float64":
        return wasm.tensor_from_f64(Float64Array.from(numbers, Number), shape);
      case "int32":
        return wasm.tensor_from_i32(Int32Array.from(numbers, Number), shape);
      case "int64":
        return wasm.tensor_from_i64(BigInt64Array.from(Array.from(numbers, (x) => BigInt(x))), shape);
      case "uint32":
        return wasm.tensor_from_u32(Uint32Array.from(numbers, Number), shape);
      case "uint8":
        return wasm.tensor_from_u8(Uint8Array.from(numbers, Number), shape);
      case "bool":
        return wasm.tensor_from_bool(Uint8Array.from(numbers, (x) => (x ? 1 : 0)), shape);
      // 16-bit floats; the engine refuses what is no type.
      default: {
        const wide = wasm.tensor_from_f32(Float32Array.from(numbers, Number), shape);
        try {
          return wasm.op_cast(wide, dtype);
        } finally {
          wasm.tensors_free(Uint32Array.of(wide));
        }
      }
    }
  });
}

/**
 * Numbers of one type with a shape, on the GPU or the CPU.
 *
 * ```ts
 * const x = tensor([[1, 2], [3, 4]]);
 * const y = x.matmul(x).relu().sum();
 * console.log(await y.item()); // 54
 * ```
 *
 * Memory is freed when a tensor is collected, or by `dispose()`, or at the end of a block with `using`.
 */
export class Tensor {
  /** @internal */
  handle: number;
  #shape: readonly number[] | undefined;

  /** @internal */
  private constructor(handle: number) {
    this.handle = handle;
    own(this, "tensor", handle);
  }

  /** @internal */
  static of(handle: number): Tensor {
    return new Tensor(handle);
  }

  // ---------------------------------------------------------------------------------------------------- what it is

  /** The extents. */
  get shape(): readonly number[] {
    return (this.#shape ??= Object.freeze(Array.from(call((wasm) => wasm.tensor_shape(this.handle)))));
  }

  /** The extent of an axis, counted from the end when negative; of all without one. */
  size(): readonly number[];
  size(dim: number): number;
  size(dim?: number): number | readonly number[] {
    if (dim === undefined) return this.shape;
    const extent = this.shape.at(dim);
    if (extent === undefined || dim < -this.ndim) throw new RangeError(`shape [${this.shape}] has no axis ${dim}`);
    return extent;
  }

  /** How many axes there are. */
  get ndim(): number {
    return this.shape.length;
  }

  /** How many elements there are. */
  get numel(): number {
    return this.shape.reduce((product, extent) => product * extent, 1);
  }

  /** The type of the elements. */
  get dtype(): DType {
    types ??= call((wasm) => wasm.tensor_types()) as DType[];
    return types[call((wasm) => wasm.tensor_type(this.handle))]!;
  }

  /** Where it lives. */
  get device(): DeviceName {
    return call((wasm) => wasm.tensor_on_gpu(this.handle)) ? "gpu" : "cpu";
  }

  /** Whether gradients flow into or through it. */
  get requiresGrad(): boolean {
    return call((wasm) => wasm.tensor_state(this.handle))[0] === 1;
  }

  set requiresGrad(yes: boolean) {
    this.requiresGrad_(yes);
  }

  /** Whether it collects its own gradient, rather than being the result of an op that is differentiated. */
  get isLeaf(): boolean {
    return call((wasm) => wasm.tensor_state(this.handle))[1] === 1;
  }

  /** Whether its values are there. */
  get isRealized(): boolean {
    return call((wasm) => wasm.tensor_state(this.handle))[2] === 1;
  }

  toString(): string {
    return `Tensor(${this.dtype} [${this.shape.join(", ")}] on ${this.device}${this.requiresGrad ? ", requires grad" : ""})`;
  }

  // --------------------------------------------------------------------------------------------------- reading values

  /** All elements in row-major order; 16-bit floats as 32-bit ones. Computes what is pending. */
  async data(): Promise<TypedArray> {
    const values = await callAsync<TypedArray>((wasm) => wasm.tensor_data(this.handle));
    await relieve();
    return values;
  }

  /** The value of a tensor of one element. */
  async item(): Promise<number> {
    if (this.numel !== 1) {
      throw new RangeError(`item: only a tensor of one element is one number, and this has shape [${this.shape.join(", ")}]`);
    }
    return Number((await this.data())[0]);
  }

  /** The elements in lists of lists. */
  async tolist(): Promise<NestedNumbers> {
    const values = await this.data();
    let at = 0;
    const nest = (axis: number): NestedNumbers =>
      axis === this.ndim ? Number(values[at++]) : Array.from({ length: this.shape[axis]! }, () => nest(axis + 1));
    return nest(0);
  }

  /** Submits what its value takes, without waiting for it. */
  realize(): this {
    call((wasm) => wasm.tensors_realize(Uint32Array.of(this.handle)));
    return this;
  }

  /** The same values on another device, cut from the tape. */
  async to(device: DeviceName): Promise<Tensor> {
    return Tensor.of(await callAsync<number>((wasm) => wasm.tensor_to(this.handle, device === "gpu")));
  }

  // ------------------------------------------------------------------------------------------------------ gradients

  /** Makes it collect gradients from now on, or stop. What is differentiated already stays the result that it is. */
  requiresGrad_(yes = true): this {
    if (!this.isLeaf) {
      if (yes) return this;
      throw new VoltaError("autograd", "requiresGrad_: only leaves stop collecting gradients; detach() gives one with the same values");
    }
    const leaf = call((wasm) => wasm.tensor_requires_grad(this.handle, yes));
    free(this, "tensor", this.handle);
    this.handle = leaf;
    own(this, "tensor", leaf);
    return this;
  }

  /**
   * Adds the gradient of this number to every leaf it was computed from. The graph is let go, and so are intermediate results that
   * other ops have read, but for operands of losses: `keep()` those that are to be read later.
   */
  backward(options: BackwardOptions = {}): void {
    const { gradient, retainGraph = false, createGraph = false } = options;
    call((wasm) => wasm.tensor_backward(this.handle, gradient?.handle, retainGraph, createGraph));
  }

  /** Keeps an intermediate result beyond `backward()`. */
  keep(): this {
    call((wasm) => wasm.tensor_keep(this.handle));
    return this;
  }

  /** The collected gradient. */
  get grad(): Tensor | undefined {
    const handle = call((wasm) => wasm.tensor_grad(this.handle));
    return handle === undefined ? undefined : Tensor.of(handle);
  }

  set grad(gradient: Tensor | undefined) {
    call((wasm) => wasm.tensor_set_grad(this.handle, gradient?.handle));
  }

  /** The same value, cut from the tape. */
  detach(): Tensor {
    return op("detach", [this]);
  }

  /** Gives it a new value of the same shape, without recording it. */
  assign(value: Tensor): this {
    call((wasm) => wasm.tensors_assign(Uint32Array.of(this.handle), Uint32Array.of(value.handle)));
    return this;
  }

  // ----------------------------------------------------------------------------------------------- elementwise, one operand

  neg(): Tensor {
    return op("neg", [this]);
  }
  abs(): Tensor {
    return op("abs", [this]);
  }
  sign(): Tensor {
    return op("sign", [this]);
  }
  reciprocal(): Tensor {
    return op("recip", [this]);
  }
  sqrt(): Tensor {
    return op("sqrt", [this]);
  }
  rsqrt(): Tensor {
    return op("rsqrt", [this]);
  }
  square(): Tensor {
    return op("square", [this]);
  }
  exp(): Tensor {
    return op("exp", [this]);
  }
  exp2(): Tensor {
    return op("exp2", [this]);
  }
  /** eˣ − 1, exact near zero. */
  expm1(): Tensor {
    return op("expm1", [this]);
  }
  log(): Tensor {
    return op("log", [this]);
  }
  log2(): Tensor {
    return op("log2", [this]);
  }
  /** ln(1 + x), exact near zero. */
  log1p(): Tensor {
    return op("log1p", [this]);
  }
  sin(): Tensor {
    return op("sin", [this]);
  }
  cos(): Tensor {
    return op("cos", [this]);
  }
  tan(): Tensor {
    return op("tan", [this]);
  }
  tanh(): Tensor {
    return op("tanh", [this]);
  }
  erf(): Tensor {
    return op("erf", [this]);
  }
  floor(): Tensor {
    return op("floor", [this]);
  }
  ceil(): Tensor {
    return op("ceil", [this]);
  }
  /** The nearest integer, halves to even. */
  round(): Tensor {
    return op("round", [this]);
  }
  trunc(): Tensor {
    return op("trunc", [this]);
  }
  isnan(): Tensor {
    return op("isnan", [this]);
  }
  logicalNot(): Tensor {
    return op("logical_not", [this]);
  }
  sigmoid(): Tensor {
    return op("sigmoid", [this]);
  }
  relu(): Tensor {
    return op("relu", [this]);
  }
  /** x·Φ(x); `"tanh"` for GPT-2's approximation. */
  gelu(approximate: "none" | "tanh" = "none"): Tensor {
    return op(approximate === "tanh" ? "gelu_tanh" : "gelu", [this]);
  }
  silu(): Tensor {
    return op("silu", [this]);
  }
  mish(): Tensor {
    return op("mish", [this]);
  }
  elu(alpha = 1): Tensor {
    return op("elu", [this], [alpha]);
  }
  leakyRelu(slope = 0.01): Tensor {
    return op("leaky_relu", [this], [slope]);
  }
  softplus(beta = 1, threshold = 20): Tensor {
    return op("softplus", [this], [beta, threshold]);
  }
  softsign(): Tensor {
    return op("softsign", [this]);
  }
  logSigmoid(): Tensor {
    return op("log_sigmoid", [this]);
  }
  relu6(): Tensor {
    return op("relu6", [this]);
  }
  hardtanh(min = -1, max = 1): Tensor {
    return op("hardtanh", [this], [min, max]);
  }
  hardsigmoid(): Tensor {
    return op("hardsigmoid", [this]);
  }
  hardswish(): Tensor {
    return op("hardswish", [this]);
  }
  prelu(weight: Tensor): Tensor {
    return op("prelu", [this, weight]);
  }
  /** Cut off at both ends, or at one. */
  clamp(min?: number, max?: number): Tensor {
    return op("clamp", [this], [min ?? NaN, max ?? NaN]);
  }
  /** The same values in another type: floats truncate to integers, anything but zero is true. */
  toDtype(dtype: DType): Tensor {
    return Tensor.of(call((wasm) => wasm.op_cast(this.handle, dtype)));
  }
  float(): Tensor {
    return this.toDtype("float32");
  }
  half(): Tensor {
    return this.toDtype("float16");
  }
  int(): Tensor {
    return this.toDtype("int32");
  }
  bool(): Tensor {
    return this.toDtype("bool");
  }
  /** A copy that gradients flow through. */
  clone(): Tensor {
    return op("clone", [this]);
  }

  // ----------------------------------------------------------------------------------------- elementwise, two operands

  #binary(name: string, other: Operand): Tensor {
    return typeof other === "number" ? op(name, [this], [other]) : op(name, [this, other]);
  }
  add(other: Operand): Tensor {
    return this.#binary("add", other);
  }
  sub(other: Operand): Tensor {
    return this.#binary("sub", other);
  }
  mul(other: Operand): Tensor {
    return this.#binary("mul", other);
  }
  /** a / b; of integers too, in floats. */
  div(other: Operand): Tensor {
    return this.#binary("div", other);
  }
  pow(exponent: Operand): Tensor {
    return this.#binary("pow", exponent);
  }
  maximum(other: Operand): Tensor {
    return this.#binary("maximum", other);
  }
  minimum(other: Operand): Tensor {
    return this.#binary("minimum", other);
  }
  /** a − b·⌊a/b⌋: has the sign of `other`. */
  remainder(other: Operand): Tensor {
    return this.#binary("remainder", other);
  }
  floorDivide(other: Operand): Tensor {
    return this.#binary("floor_divide", other);
  }
  lt(other: Operand): Tensor {
    return this.#binary("lt", other);
  }
  le(other: Operand): Tensor {
    return this.#binary("le", other);
  }
  gt(other: Operand): Tensor {
    return this.#binary("gt", other);
  }
  ge(other: Operand): Tensor {
    return this.#binary("ge", other);
  }
  eq(other: Operand): Tensor {
    return this.#binary("eq", other);
  }
  ne(other: Operand): Tensor {
    return this.#binary("ne", other);
  }
  logicalAnd(other: Operand): Tensor {
    return this.#binary("logical_and", other);
  }
  logicalOr(other: Operand): Tensor {
    return this.#binary("logical_or", other);
  }
  logicalXor(other: Operand): Tensor {
    return this.#binary("logical_xor", other);
  }
  /** `value` where the mask holds. */
  maskedFill(mask: Tensor, value: Operand): Tensor {
    return typeof value === "number" ? op("masked_fill", [this, mask], [value]) : op("masked_fill", [this, mask, value]);
  }
  isclose(other: Tensor, rtol = 1e-5, atol = 1e-8): Tensor {
    return op("isclose", [this, other], [rtol, atol]);
  }

  // ----------------------------------------------------------------------------------------------------- reductions

  #reduce(name: string, dim: Axes | undefined, keepdim: boolean | undefined): Tensor {
    return op(name, [this], [flag(keepdim), ...axes(dim)]);
  }
  /** Of everything, or along some axes. */
  sum(dim?: Axes, keepdim = false): Tensor {
    return this.#reduce("sum", dim, keepdim);
  }
  mean(dim?: Axes, keepdim = false): Tensor {
    return this.#reduce("mean", dim, keepdim);
  }
  prod(dim?: Axes, keepdim = false): Tensor {
    return this.#reduce("prod", dim, keepdim);
  }
  /** The largest values. {@link maxWithIndex} says where they are. */
  max(dim?: Axes, keepdim = false): Tensor {
    return this.#reduce("max", dim, keepdim);
  }
  /** The smallest values. */
  min(dim?: Axes, keepdim = false): Tensor {
    return this.#reduce("min", dim, keepdim);
  }
  any(dim?: Axes, keepdim = false): Tensor {
    return this.#reduce("any", dim, keepdim);
  }
  all(dim?: Axes, keepdim = false): Tensor {
    return this.#reduce("all", dim, keepdim);
  }
  /** The largest values along an axis, and where they are. */
  maxWithIndex(dim: number, keepdim = false): { values: Tensor; indices: Tensor } {
    const [values, indices] = opSeveral("max", [this], [dim, flag(keepdim)]) as [Tensor, Tensor];
    return { values, indices };
  }
  /** The smallest values along an axis, and where they are. */
  minWithIndex(dim: number, keepdim = false): { values: Tensor; indices: Tensor } {
    const [values, indices] = opSeveral("min", [this], [dim, flag(keepdim)]) as [Tensor, Tensor];
    return { values, indices };
  }
  argmax(dim?: number, keepdim = false): Tensor {
    return op("argmax", [this], [flag(keepdim), ...axes(dim)]);
  }
  argmin(dim?: number, keepdim = false): Tensor {
    return op("argmin", [this], [flag(keepdim), ...axes(dim)]);
  }
  /** The variance, with Bessel's correction unless told otherwise. */
  var(dim?: Axes, correction = 1, keepdim = false): Tensor {
    return op("var", [this], [correction, flag(keepdim), ...axes(dim)]);
  }
  std(dim?: Axes, correction = 1, keepdim = false): Tensor {
    return op("std", [this], [correction, flag(keepdim), ...axes(dim)]);
  }
  /** The p-norm. */
  norm(p = 2, dim?: Axes, keepdim = false): Tensor {
    return op("norm", [this], [p, flag(keepdim), ...axes(dim)]);
  }
  logsumexp(dim: Axes, keepdim = false): Tensor {
    return op("logsumexp", [this], [flag(keepdim), ...axes(dim)]);
  }
  median(): Tensor {
    return op("median", [this]);
  }
  softmax(dim: number): Tensor {
    return op("softmax", [this], [dim]);
  }
  logSoftmax(dim: number): Tensor {
    return op("log_softmax", [this], [dim]);
  }
  cumsum(dim: number): Tensor {
    return op("cumsum", [this], [dim]);
  }
  cumprod(dim: number): Tensor {
    return op("cumprod", [this], [dim]);
  }
  diff(n = 1, dim = -1): Tensor {
    return op("diff", [this], [n, dim]);
  }
  sort(dim = -1, descending = false): { values: Tensor; indices: Tensor } {
    const [values, indices] = opSeveral("sort", [this], [dim, flag(descending)]) as [Tensor, Tensor];
    return { values, indices };
  }
  argsort(dim = -1, descending = false): Tensor {
    return op("argsort", [this], [dim, flag(descending)]);
  }
  topk(k: number, dim = -1, largest = true): { values: Tensor; indices: Tensor } {
    const [values, indices] = opSeveral("topk", [this], [k, dim, flag(largest)]) as [Tensor, Tensor];
    return { values, indices };
  }

  // ------------------------------------------------------------------------------------------------------- products

  matmul(other: Tensor): Tensor {
    return op("matmul", [this, other]);
  }
  dot(other: Tensor): Tensor {
    return op("dot", [this, other]);
  }
  outer(other: Tensor): Tensor {
    return op("outer", [this, other]);
  }

  // -------------------------------------------------------------------------------------------------------- shapes

  /** The same elements in order under another shape; one extent may be -1. */
  reshape(...shape: number[] | [readonly number[]]): Tensor {
    return op("reshape", [this], extents(shape));
  }
  /** {@link reshape}. */
  view(...shape: number[] | [readonly number[]]): Tensor {
    return op("reshape", [this], extents(shape));
  }
  permute(...order: number[] | [readonly number[]]): Tensor {
    return op("permute", [this], extents(order));
  }
  transpose(first: number, second: number): Tensor {
    return op("transpose", [this], [first, second]);
  }
  /** The transpose of a matrix. */
  t(): Tensor {
    return op("t", [this]);
  }
  expand(...shape: number[] | [readonly number[]]): Tensor {
    return op("expand", [this], extents(shape));
  }
  squeeze(dim?: number): Tensor {
    return dim === undefined ? op("squeeze_all", [this]) : op("squeeze", [this], [dim]);
  }
  unsqueeze(dim: number): Tensor {
    return op("unsqueeze", [this], [dim]);
  }
  flatten(first = 0, last = -1): Tensor {
    return op("flatten", [this], [first, last]);
  }
  unflatten(dim: number, sizes: readonly number[]): Tensor {
    return op("unflatten", [this], [dim, ...sizes]);
  }
  flip(dims: Axes): Tensor {
    return op("flip", [this], axes(dims));
  }
  roll(shift: number, dim: number): Tensor {
    return op("roll", [this], [shift, dim]);
  }
  repeat(...times: number[] | [readonly number[]]): Tensor {
    return op("repeat", [this], extents(times));
  }
  repeatInterleave(times: number, dim?: number): Tensor {
    return op("repeat_interleave", [this], [times, ...axes(dim)]);
  }
  /** Elements added around it: pairs of before and after for every axis, the first axis first. */
  pad(pads: readonly (readonly [number, number])[], value = 0): Tensor {
    return op("pad", [this], [value, ...pads.flat()]);
  }
  /** Parts of axes, the first axis first: `[start, end, step]` with `undefined` for an open end, or `undefined` for all. */
  slice(...ranges: (readonly [start?: number | undefined, end?: number | undefined, step?: number] | undefined)[]): Tensor {
    const numbers = ranges.flatMap((range) => [range?.[0] ?? NaN, range?.[1] ?? NaN, range?.[2] ?? 1]);
    return op("slice", [this], [ranges.length, ...numbers]);
  }
  narrow(dim: number, start: number, length: number): Tensor {
    return op("narrow", [this], [dim, start, length]);
  }
  select(dim: number, index: number): Tensor {
    return op("select", [this], [dim, index]);
  }
  unfold(dim: number, size: number, step: number): Tensor {
    return op("unfold", [this], [dim, size, step]);
  }
  /** Parts of `size`, or of these sizes. */
  split(size: number | readonly number[], dim = 0): Tensor[] {
    return typeof size === "number"
      ? opSeveral("split", [this], [dim, size])
      : opSeveral("split_sizes", [this], [dim, ...size]);
  }
  chunk(chunks: number, dim = 0): Tensor[] {
    return opSeveral("chunk", [this], [dim, chunks]);
  }
  unbind(dim = 0): Tensor[] {
    return opSeveral("unbind", [this], [dim]);
  }

  // ------------------------------------------------------------------------------------------------------- indices

  gather(dim: number, index: Tensor): Tensor {
    return op("gather", [this, index], [dim]);
  }
  scatterAdd(dim: number, index: Tensor, source: Tensor): Tensor {
    return op("scatter_add", [this, index, source], [dim]);
  }
  indexSelect(dim: number, index: Tensor): Tensor {
    return op("index_select", [this, index], [dim]);
  }
  indexAdd(dim: number, index: Tensor, source: Tensor): Tensor {
    return op("index_add", [this, index, source], [dim]);
  }
  tril(diagonal = 0): Tensor {
    return op("tril", [this], [diagonal]);
  }
  triu(diagonal = 0): Tensor {
    return op("triu", [this], [diagonal]);
  }

  // ------------------------------------------------------------------------------------------------------- memory

  /** Frees its memory now. Reading it from then on is an error. */
  dispose(): void {
    free(this, "tensor", this.handle);
    this.handle = DISPOSED;
  }

  /** `using x = …` frees it at the end of the block. */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

function extents(given: readonly number[] | readonly [readonly number[]]): readonly number[] {
  return Array.isArray(given[0]) ? (given[0] as readonly number[]) : (given as readonly number[]);
}

/** A tensor of numbers in lists, or of a typed array with a shape (default: one axis). */
export function tensor(data: TensorData, shape?: readonly number[], options: TensorOptions = {}): Tensor {
  const isList = Array.isArray(data);
  const values = isList ? (data.flat(Infinity) as number[]) : typeof data === "number" ? [data] : (data as TypedArray);
  const found = isList ? shapeOf(data as readonly NestedNumbers[]) : typeof data === "number" ? [] : [values.length];
  const dtype = options.dtype ?? (isList && typeof values[0] === "boolean" ? "bool" : undefined);
  const made = Tensor.of(upload(values, dtype, Uint32Array.from(shape ?? found)));
  return options.requiresGrad ? made.requiresGrad_() : made;
}

function create(name: string, numbers: number[], shape: readonly number[], options: TensorOptions = {}): Tensor {
  const handle = call((wasm) => wasm.tensor_create(name, Float64Array.from(numbers), Uint32Array.from(shape), options.dtype));
  return options.requiresGrad ? Tensor.of(handle).requiresGrad_() : Tensor.of(handle);
}

/** Zeros. */
export function zeros(shape: readonly number[], options?: TensorOptions): Tensor {
  return create("full", [0], shape, options);
}
/** Ones. */
export function ones(shape: readonly number[], options?: TensorOptions): Tensor {
  return create("full", [1], shape, options);
}
/** A number everywhere. */
export function full(shape: readonly number[], value: number, options?: TensorOptions): Tensor {
  return create("full", [value], shape, options);
}
/** Numbers from `start` up to, not including, `end`; `int32` where all three are whole and the step is 1. */
export function arange(start: number, end?: number, step = 1, options?: TensorOptions): Tensor {
  return end === undefined ? create("arange", [0, start, step], [], options) : create("arange", [start, end, step], [], options);
}
/** `count` numbers evenly spaced from `start` to `end`, both included. */
export function linspace(start: number, end: number, count: number, options?: TensorOptions): Tensor {
  return create("linspace", [start, end, count], [], options);
}
/** The identity matrix. */
export function eye(n: number, options?: TensorOptions): Tensor {
  return create("eye", [n], [], options);
}
/** Uniform in [0, 1). */
export function rand(shape: readonly number[], options?: TensorOptions): Tensor {
  return create("rand", [], shape, options);
}
/** Normal with mean 0 and deviation 1. */
export function randn(shape: readonly number[], options?: TensorOptions): Tensor {
  return create("randn", [], shape, options);
}
/** Uniform integers from `low` up to, not including, `high`. */
export function randint(low: number, high: number, shape: readonly number[], options?: TensorOptions): Tensor {
  return create("randint", [low, high], shape, options);
}
/** True with a probability. */
export function bernoulli(p: number, shape: readonly number[], options?: TensorOptions): Tensor {
  return create("bernoulli", [p], shape, options);
}
/** Zeros of a tensor's shape and type. */
export function zerosLike(x: Tensor): Tensor {
  return zeros(x.shape, { dtype: x.dtype });
}
/** Ones of a tensor's shape and type. */
export function onesLike(x: Tensor): Tensor {
  return ones(x.shape, { dtype: x.dtype });
}

/** Tensors side by side along an axis. */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  return op("cat", tensors, [dim]);
}
/** Tensors side by side along a new axis. */
export function stack(tensors: readonly Tensor[], dim = 0): Tensor {
  return op("stack", tensors, [dim]);
}
/** The elements of `a` where the condition holds, of `b` elsewhere. */
export function where(condition: Tensor, a: Operand, b: Operand): Tensor {
  const last = typeof b === "number" ? { tensors: [], numbers: [b] } : { tensors: [b], numbers: [] };
  return typeof a === "number"
    ? op("where_number", [condition, ...last.tensors], [a, ...last.numbers])
    : op("where", [condition, a, ...last.tensors], last.numbers);
}
/** Sums of products by Einstein's convention: `einsum("ij,jk->ik", a, b)`. */
export function einsum(equation: string, ...tensors: Tensor[]): Tensor {
  return Tensor.of(call((wasm) => wasm.op_einsum(equation, handlesOf(tensors))));
}

/** Gradients of outputs with respect to inputs, without collecting them; `undefined` where there is no way from one to the other. */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: readonly Tensor[],
  options: { createGraph?: boolean } = {},
): (Tensor | undefined)[] {
  const from = outputs instanceof Tensor ? [outputs] : outputs;
  const found = call((wasm) => wasm.tensor_grad_of(handlesOf(from), handlesOf(inputs), options.createGraph ?? false));
  return Array.from(found, (handle) => (handle === NONE ? undefined : Tensor.of(handle)));
}

function withGrad<T>(yes: boolean, f: () => T): T {
  const before = call((wasm) => wasm.set_grad_enabled(yes));
  const restore = (): void => {
    call((wasm) => wasm.set_grad_enabled(before));
  };
  let result: T;
  try {
    result = f();
  } catch (thrown) {
    restore();
    throw thrown;
  }
  if (result instanceof Promise) return result.finally(restore) as T;
  restore();
  return result;
}

/** Runs `f` without recording for differentiation; what it computes costs no memory for a tape. */
export function noGrad<T>(f: () => T): T {
  return withGrad(false, f);
}
/** Runs `f` with recording, also inside {@link noGrad}. */
export function enableGrad<T>(f: () => T): T {
  return withGrad(true, f);
}

/** Runs `f` with products and what is like them in another type, such as `"float16"`. */
export function autocast<T>(dtype: DType, f: () => T): T {
  const before = call((wasm) => wasm.set_autocast(dtype));
  try {
    return f();
  } finally {
    call((wasm) => wasm.set_autocast(before));
  }
}

/** Seeds weights, dropout and random tensors of this thread. */
export function manualSeed(seed: number): void {
  call((wasm) => wasm.manual_seed(seed));
}

/** Computes several tensors in one plan. */
export function realize(tensors: readonly Tensor[]): void {
  call((wasm) => wasm.tensors_realize(handlesOf(tensors)));
}
