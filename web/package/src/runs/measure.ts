// Measuring a device: products, reductions, a training step.

import { adapter, init } from "../device.js";
import * as functional from "../functional.js";
import { turn } from "../handles.js";
import * as nn from "../nn/index.js";
import { AdamW } from "../optim/index.js";
import { type Tensor, manualSeed, noGrad, randint, randn } from "../tensor.js";
import type { BenchOptions, BenchRow } from "../types.js";

/** Milliseconds that a row is measured for, and runs at least. */
const BUDGET = 400;
const LEAST_RUNS = 3;
const MOST_RUNS = 30;

/** What a row does once, and how much that is. */
interface Work {
  run(): Promise<void>;
  flops?: number;
  bytes?: number;
}

const read = async (t: Tensor): Promise<void> => {
  // One number says that all is done.
  using sum = t.sum();
  await sum.data();
};

function matmul(n: number): Work {
  const [a, b] = [randn([n, n]).realize(), randn([n, n]).realize()];
  return {
    run: () =>
      noGrad(async () => {
        using c = a.matmul(b);
        c.realize();
        await read(c.slice([0, 1], [0, 1]));
      }),
    flops: 2 * n ** 3,
  };
}

function rows(f: (x: Tensor) => Tensor, count: number, width: number): Work {
  const x = randn([count, width]).realize();
  return {
    run: () =>
      noGrad(async () => {
        using y = f(x);
        y.realize();
        await read(y.slice([0, 1], [0, 1]));
      }),
    bytes: 8 * count * width,
  };
}

function training(): Work {
  const model = new nn.Sequential(
    new nn.Linear(784, 256),
    new nn.ReLU(),
    new nn.Linear(256, 128),
    new nn.ReLU(),
    new nn.Linear(128, 10),
  );
  const optimizer = new AdamW(model.parameters(), { lr: 1e-3 });
  const [x, y] = [randn([64, 784]).realize(), randint(0, 10, [64]).realize()];
  return {
    run: async () => {
      optimizer.zeroGrad();
      using loss = functional.crossEntropy(model.forward(x), y);
      loss.backward();
      optimizer.step();
      await loss.item();
    },
    flops: 6 * 64 * (784 * 256 + 256 * 128 + 128 * 10),
  };
}

const WORKS: Record<string, () => Work> = {
  "matmul 256": () => matmul(256),
  "matmul 512": () => matmul(512),
  "softmax 1024 × 1024": () => rows((x) => x.softmax(-1), 1024, 1024),
  "layer norm 1024 × 1024": () => rows((x) => functional.layerNorm(x, [1024]), 1024, 1024),
  "gelu 1024 × 1024": () => rows((x) => x.gelu(), 1024, 1024),
  "mlp step 784-256-128-10, batch 64": training,
};

/** Measures row by row. */
export async function measure(options: BenchOptions, give: (row: BenchRow) => void, isCancelled: () => boolean): Promise<void> {
  const { device } = await init({ device: options.device ?? "auto", allowSoftware: options.device === "gpu" });
  manualSeed(0);
  for (const [name, make] of Object.entries(WORKS)) {
    if (options.only && !options.only.includes(name)) continue;
    const work = make();
    const times: number[] = [];
    // The first run compiles.
    await work.run();
    await work.run();
    const began = performance.now();
    while (times.length < LEAST_RUNS || (performance.now() - began < BUDGET && times.length < MOST_RUNS)) {
      if (isCancelled()) return;
      const start = performance.now();
      await work.run();
      times.push(performance.now() - start);
      await turn();
    }
    times.sort((a, b) => a - b);
    const ms = times[times.length >> 1]!;
    const row: BenchRow = { name, ms, device: adapter().device === device ? device : adapter().device };
    if (work.flops !== undefined) row.gflops = work.flops / ms / 1e6;
    if (work.bytes !== undefined) row.gbps = work.bytes / ms / 1e6;
    give(row);
  }
}
