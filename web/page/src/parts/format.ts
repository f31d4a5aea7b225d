/** Numbers as people read them, with their units. */

const THIN = "\u202f";

/** Three digits that count, without an exponent where one can do without. */
export function digits(x: number, count = 3): string {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "–" : x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-3 || size >= 1e7) return x.toExponential(Math.max(0, count - 2)).replace("e-", "e−").replace("e+", "e");
  const decimals = Math.max(0, count - 1 - Math.floor(Math.log10(size)));
  return x.toFixed(Math.min(decimals, 6));
}

/** 1234567 as 1,234,567. */
export function whole(x: number): string {
  return Math.round(x).toLocaleString("en-US");
}

/** 1234567 as 1.23 M. */
export function short(x: number): string {
  const size = Math.abs(x);
  if (size >= 1e9) return `${digits(x / 1e9)}${THIN}G`;
  if (size >= 1e6) return `${digits(x / 1e6)}${THIN}M`;
  if (size >= 1e4) return `${digits(x / 1e3)}${THIN}k`;
  return whole(x);
}

/** A round number as 50k, for axes. */
export function compact(x: number): string {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]] as const) {
    if (Math.abs(x) >= size) return `${Number((x / size).toPrecision(3))}${unit}`;
  }
  return String(Number(x.toPrecision(3)));
}

export function bytes(x: number): string {
  if (!Number.isFinite(x)) return "–";
  if (x >= 1e9) return `${digits(x / 1e9)}${THIN}GB`;
  if (x >= 1e6) return `${digits(x / 1e6)}${THIN}MB`;
  if (x >= 1e3) return `${digits(x / 1e3)}${THIN}kB`;
  return `${Math.round(x)}${THIN}B`;
}

export function milliseconds(x: number): string {
  if (!Number.isFinite(x)) return "–";
  if (x >= 1000) return `${digits(x / 1000)}${THIN}s`;
  if (x < 0.1) return `${digits(x * 1000, 2)}${THIN}µs`;
  return `${digits(x)}${THIN}ms`;
}

/** 75 as 1 min 15 s. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return "–";
  if (seconds < 1) return `less than a second`;
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded}${THIN}s`;
  const minutes = Math.floor(rounded / 60);
  if (minutes < 60) return minutes < 10 ? `${minutes}${THIN}min ${rounded % 60}${THIN}s` : `${minutes}${THIN}min`;
  return `${Math.floor(minutes / 60)}${THIN}h ${minutes % 60}${THIN}min`;
}

export function percent(x: number): string {
  if (!Number.isFinite(x)) return "–";
  return `${(100 * x).toFixed(1)}${THIN}%`;
}

export function loss(x: number | undefined): string {
  return x === undefined || Number.isNaN(x) ? "–" : digits(x, 4);
}

/** How long ago, in words. */
export function ago(time: number, now = Date.now()): string {
  const seconds = Math.max(0, (now - time) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}
