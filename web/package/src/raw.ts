// The raw face: a GPU without the engine. Every op is one dispatch, and nothing is lazy.

import { DISPOSED, free, own } from "./handles.js";
import { call, callAsync, ensureLoaded } from "./wasm.js";

/** A GPU of its own. */
export class GpuDevice {
  /** @internal */
  handle: number;

  private constructor(handle: number) {
    this.handle = handle;
    own(this, "rawDevice", handle);
  }

  /** Opens the browser's adapter. */
  static async create(): Promise<GpuDevice> {
    await ensureLoaded();
    return new GpuDevice(await callAsync<number>((wasm) => wasm.raw_device()));
  }

  /** What it is. */
  get info(): { name: string; driver: string } {
    return call((wasm) => wasm.raw_device_info(this.handle)) as { name: string; driver: string };
  }

  dispose(): void {
    free(this, "rawDevice", this.handle);
    this.handle = DISPOSED;
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Memory of a GPU. */
export class GpuBuffer {
  #handle: number;

  private constructor(handle: number) {
    this.#handle = handle;
    own(this, "rawBuffer", handle);
  }

  /** Zeros. */
  static zeros(device: GpuDevice, bytes: number): GpuBuffer {
    return new GpuBuffer(call((wasm) => wasm.raw_buffer_zeros(device.handle, bytes)));
  }

  /** A copy of what an array has. */
  static from(device: GpuDevice, data: ArrayBufferView): GpuBuffer {
    const buffer = GpuBuffer.zeros(device, data.byteLength);
    buffer.write(data);
    return buffer;
  }

  /** Its bytes. */
  get size(): number {
    return call((wasm) => wasm.raw_buffer_size(this.#handle));
  }

  /** Overwrites it from its start. */
  write(data: ArrayBufferView): void {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    call((wasm) => wasm.raw_buffer_write(this.#handle, bytes));
  }

  /** A copy, after all that was submitted so far. */
  async read(): Promise<Uint8Array> {
    return callAsync((wasm) => wasm.raw_buffer_read(this.#handle));
  }

  dispose(): void {
    free(this, "rawBuffer", this.#handle);
    this.#handle = DISPOSED;
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** 32-bit floats with a shape. */
export class GpuTensor {
  #handle: number;

  private constructor(handle: number) {
    this.#handle = handle;
    own(this, "rawTensor", handle);
  }

  static zeros(shape: readonly number[], device: GpuDevice): GpuTensor {
    return new GpuTensor(call((wasm) => wasm.raw_tensor(device.handle, undefined, Uint32Array.from(shape))));
  }

  static from(data: Float32Array, shape: readonly number[], device: GpuDevice): GpuTensor {
    return new GpuTensor(call((wasm) => wasm.raw_tensor(device.handle, data, Uint32Array.from(shape))));
  }

  get shape(): number[] {
    return Array.from(call((wasm) => wasm.raw_tensor_shape(this.#handle)));
  }

  async data(): Promise<Float32Array> {
    return callAsync((wasm) => wasm.raw_tensor_data(this.#handle));
  }

  async #op(name: string, other?: GpuTensor): Promise<GpuTensor> {
    return new GpuTensor(await callAsync<number>((wasm) => wasm.raw_tensor_op(name, this.#handle, other === undefined ? undefined : other.#handle)));
  }
  add(other: GpuTensor): Promise<GpuTensor> {
    return this.#op("add", other);
  }
  sub(other: GpuTensor): Promise<GpuTensor> {
    return this.#op("sub", other);
  }
  mul(other: GpuTensor): Promise<GpuTensor> {
    return this.#op("mul", other);
  }
  div(other: GpuTensor): Promise<GpuTensor> {
    return this.#op("div", other);
  }
  matmul(other: GpuTensor): Promise<GpuTensor> {
    return this.#op("matmul", other);
  }
  relu(): Promise<GpuTensor> {
    return this.#op("relu");
  }
  sigmoid(): Promise<GpuTensor> {
    return this.#op("sigmoid");
  }

  dispose(): void {
    free(this, "rawTensor", this.#handle);
    this.#handle = DISPOSED;
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
}
