/** Ten thousand points as what can be seen of them: a column of pixels keeps its first, least, greatest and last. */

/** Indices of `x` within a range, of which each pixel column keeps at most four, in order. NaN in `y` is passed over. */
export function decimate(x: Float64Array, y: Float64Array, from: number, to: number, columns: number): number[] {
  const kept: number[] = [];
  const scale = columns / Math.max(to - from, 1e-12);
  let column = -1;
  let first = -1, least = -1, greatest = -1, last = -1;
  const flush = (): void => {
    if (first < 0) return;
    const inside = least < greatest ? [least, greatest] : [greatest, least];
    let before = -1;
    for (const index of [first, ...inside, last]) {
      if (index !== before) kept.push(index);
      before = index;
    }
  };
  for (let i = firstAtLeast(x, from); i < x.length; i++) {
    const at = x[i] as number;
    if (at > to) break;
    const value = y[i] as number;
    if (value !== value) continue;
    const here = Math.floor((at - from) * scale);
    if (here !== column) {
      flush();
      column = here;
      first = least = greatest = i;
    }
    if (value < (y[least] as number)) least = i;
    if (value > (y[greatest] as number)) greatest = i;
    last = i;
  }
  flush();
  return kept;
}

/** The first index whose value is at least this; values grow. */
export function firstAtLeast(x: Float64Array, value: number): number {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((x[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** An exponential mean over the points, without its bias at the beginning. NaN stays out. */
export function smooth(y: Float64Array, weight: number): Float64Array {
  if (weight === 0) return y;
  const result = new Float64Array(y.length).fill(NaN);
  let mean = 0, norm = 0;
  for (let i = 0; i < y.length; i++) {
    const value = y[i] as number;
    if (value !== value) continue;
    mean = weight * mean + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    result[i] = mean / norm;
  }
  return result;
}
