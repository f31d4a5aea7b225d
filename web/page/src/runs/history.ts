/** What a run measured, a column a quantity: grows by the step, and is written and read as one file. */

import type { Metrics } from "volta-ml";

export const COLUMNS = ["step", "loss", "validation", "accuracy", "rate", "milliseconds", "learningRate", "gradNorm", "bytes"] as const;
export type Column = (typeof COLUMNS)[number];

export class History {
  length = 0;
  #capacity = 1024;
  #columns = new Map<Column, Float64Array>(COLUMNS.map((name) => [name, new Float64Array(1024)]));

  /** The values of a column; NaN where a step did not measure it. */
  column(name: Column): Float64Array {
    return (this.#columns.get(name) ?? new Float64Array(0)).subarray(0, this.length);
  }

  last(name: Column): number {
    const values = this.column(name);
    for (let i = values.length - 1; i >= 0; i--) if (!Number.isNaN(values[i])) return values[i] ?? NaN;
    return NaN;
  }

  get step(): number {
    return this.length === 0 ? 0 : (this.column("step")[this.length - 1] ?? 0);
  }

  push(metrics: Metrics): void {
    // A run that went back to a checkpoint measures some steps again.
    if (metrics.step <= this.step) this.truncate(metrics.step - 1);
    // The CPU's tensors lie in the module's own memory.
    const { step, loss, validationLoss, accuracy, tokensPerSecond, examplesPerSecond, msPerStep, learningRate, gradNorm, memory } = metrics;
    this.#append([step, loss, validationLoss, accuracy, tokensPerSecond ?? examplesPerSecond, msPerStep, learningRate, gradNorm, memory.liveBytes > 0 ? memory.liveBytes : memory.wasmBytes]);
  }

  #append(values: readonly (number | undefined)[]): void {
    if (this.length === this.#capacity) {
      this.#capacity *= 2;
      for (const [name, old] of this.#columns) {
        const grown = new Float64Array(this.#capacity);
        grown.set(old);
        this.#columns.set(name, grown);
      }
    }
    COLUMNS.forEach((name, i) => {
      const column = this.#columns.get(name);
      if (column) column[this.length] = values[i] ?? NaN;
    });
    this.length++;
  }

  /** Forgets all after a step. */
  truncate(step: number): void {
    const steps = this.column("step");
    while (this.length > 0 && (steps[this.length - 1] ?? 0) > step) this.length--;
  }

  /** As 32-bit floats, row by row. */
  toBytes(): Uint8Array {
    const rows = new Float32Array(this.length * COLUMNS.length);
    COLUMNS.forEach((name, c) => {
      const column = this.column(name);
      for (let i = 0; i < this.length; i++) rows[i * COLUMNS.length + c] = column[i] ?? NaN;
    });
    return new Uint8Array(rows.buffer);
  }

  static fromBytes(bytes: Uint8Array): History {
    const history = new History();
    const rows = new Float32Array(bytes.slice().buffer, 0, Math.floor(bytes.length / 4));
    for (let at = 0; at + COLUMNS.length <= rows.length; at += COLUMNS.length) history.#append([...rows.subarray(at, at + COLUMNS.length)]);
    return history;
  }

  /** As a table for other programs. */
  toCsv(): string {
    const columns = COLUMNS.map((name) => this.column(name));
    const lines = Array.from({ length: this.length }, (_, i) => columns.map((c) => (Number.isNaN(c[i]) ? "" : c[i])).join(","));
    return `${COLUMNS.join(",")}\n${lines.join("\n")}\n`;
  }
}
