/** Where a value lies on an axis, and where its ticks are. */

export interface Scale {
  /** From 0 to 1. */
  at(value: number): number;
  ticks: number[];
  low: number;
  high: number;
}

/** A step of 1, 2 or 5 times a power of ten. */
function niceStep(span: number, count: number): number {
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((times) => times * power >= rough) ?? 10;
  return step * power;
}

export function linear(low: number, high: number, count: number): Scale {
  if (!(high > low)) high = low + (Math.abs(low) || 1) * 0.1;
  const step = niceStep(high - low, count);
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) ticks.push(Math.abs(tick) < step * 1e-9 ? 0 : tick);
  return { at: (value) => (value - low) / (high - low), ticks, low, high };
}

export function logarithmic(low: number, high: number): Scale {
  if (!(low > 0)) low = 1e-6;
  if (!(high > low)) high = low * 1.1;
  const from = Math.log10(low), to = Math.log10(high);
  const marks = to - from > 3 ? [1] : to - from > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const ticks: number[] = [];
  for (let power = Math.floor(from); power <= Math.ceil(to); power++) {
    for (const mark of marks) {
      const tick = mark * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return { at: (value) => (Math.log10(Math.max(value, 1e-30)) - from) / (to - from), ticks, low, high };
}
