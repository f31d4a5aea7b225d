// Errors: the engine's own sentence, with a kind to decide by.

import type { ErrorKindName } from "./types.js";

/** What every call of the package throws. */
export class VoltaError extends Error {
  override readonly name = "VoltaError";
  /** What it is about. */
  readonly kind: ErrorKindName;

  constructor(kind: ErrorKindName, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Whatever was thrown, as an error of the package. */
export function asVoltaError(thrown: unknown): VoltaError {
  if (thrown instanceof VoltaError) return thrown;
  if (thrown instanceof WebAssembly.RuntimeError) {
    return new VoltaError("module", `the module cannot go on, load the page again: ${thrown.message}`);
  }
  if (thrown instanceof Error) {
    const kind = (thrown as { kind?: unknown }).kind;
    const error = new VoltaError(typeof kind === "string" ? (kind as ErrorKindName) : "other", thrown.message);
    if (thrown.stack !== undefined) error.stack = thrown.stack;
    return error;
  }
  return new VoltaError("other", String(thrown));
}

/** The error of a call that was ended. */
export function aborted(reason?: unknown): VoltaError {
  const why = reason instanceof Error && reason.name !== "AbortError" ? `: ${reason.message}` : "";
  return new VoltaError("abort", `it was ended${why}`);
}
