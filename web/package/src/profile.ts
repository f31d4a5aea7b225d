// Profiles of this thread.

import { adapter } from "./device.js";
import { profile as taken } from "./telemetry.js";
import type { Profile } from "./types.js";

/** Runs `f` and tells where the time went: by kernel, by op, and as a trace that https://ui.perfetto.dev opens. */
export async function profile<T>(f: () => Promise<T>): Promise<Profile & { result: T }> {
  return taken(f, adapter().device === "gpu");
}
