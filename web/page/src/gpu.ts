/** What the browser offers, asked without starting anything. */

export interface Offer {
  /** A GPU's name, or nothing if the browser has none for this page. */
  name: string | undefined;
  software: boolean;
  features: string[];
  limits: Record<string, number>;
}

interface Adapter {
  info?: { vendor?: string; architecture?: string; device?: string; description?: string; isFallbackAdapter?: boolean };
  isFallbackAdapter?: boolean;
  features: Iterable<string>;
  limits: object;
}

const NOTHING: Offer = { name: undefined, software: false, features: [], limits: {} };
let asked: Promise<Offer> | undefined;

export function offer(): Promise<Offer> {
  return (asked ??= ask());
}

async function ask(): Promise<Offer> {
  const gpu = (navigator as { gpu?: { requestAdapter(options?: object): Promise<Adapter | null> } }).gpu;
  const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!adapter) return NOTHING;
  const { vendor = "", architecture = "", device = "", description = "", isFallbackAdapter } = adapter.info ?? {};
  const name = description || [vendor, device || architecture].filter(Boolean).join(" ") || "a GPU";
  const software = (isFallbackAdapter ?? adapter.isFallbackAdapter) === true || /swiftshader|llvmpipe|software/i.test(`${name} ${architecture}`);
  const limits: Record<string, number> = {};
  // The limits are getters of the prototype.
  for (const key in adapter.limits) {
    const value = (adapter.limits as Record<string, unknown>)[key];
    if (typeof value === "number") limits[key] = value;
  }
  return { name: name.charAt(0).toUpperCase() + name.slice(1), software, features: [...adapter.features].sort(), limits };
}

/** What a run will most likely use, in a few words, and why in a sentence. */
export function describe({ name, software }: Offer): { short: string; why: string } {
  if (!name) return { short: "CPU · WebAssembly", why: "This browser offers no GPU to pages: runs use the CPU." };
  if (software) return { short: "CPU · WebAssembly", why: `The only GPU here is ${name}, a program on the processor: the CPU is faster.` };
  return { short: `${name} · WebGPU`, why: "Runs use this GPU, unless the settings say otherwise." };
}
