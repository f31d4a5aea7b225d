// The package in Chromium: from a plain page, on WebGPU (SwiftShader) and on the CPU.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { open, serve } from "./browser.mjs";

const dist = fileURLToPath(new URL("../../dist/package/", import.meta.url));
const PAGE = `<!doctype html><meta charset="utf-8"><title>test</title><link rel="icon" href="data:,">
<script type="module">import * as volta from "/package/index.js"; window.volta = volta;</script>`;

let server;
let browser;

before(async () => {
  server = await serve({ "/package/": dist }, { "/": PAGE });
  browser = await open();
  await browser.page.goto(`${server.url}/`);
  await browser.page.waitForFunction(() => "volta" in window);
});

after(async () => {
  await browser?.close();
  server?.close();
});

test("WebGPU computes what the CPU does", async () => {
  const { page } = browser;
  const adapter = await page.evaluate(() => volta.init({ device: "gpu" }));
  assert.equal(adapter.device, "gpu");
  assert.equal(adapter.software, true);
  assert.ok(adapter.limits.maxStorageBufferBindingSize >= 128 << 20, JSON.stringify(adapter));
  const [gpu, cpu] = await page.evaluate(async () => {
    const losses = async (device) => {
      await volta.init({ device });
      const { nn, optim } = volta;
      volta.manualSeed(5);
      const model = new nn.Sequential(new nn.Linear(8, 16), new nn.Tanh(), new nn.Linear(16, 3));
      const optimizer = new optim.AdamW(model.parameters(), { lr: 0.05 });
      const x = volta.linspace(-1, 1, 64).reshape(8, 8);
      const y = volta.tensor(Int32Array.of(0, 1, 2, 0, 1, 2, 0, 1));
      const found = [];
      for (let k = 0; k < 6; k++) {
        optimizer.zeroGrad();
        const loss = nn.functional.crossEntropy(model.forward(x), y);
        loss.backward();
        optimizer.step();
        found.push(await loss.item());
      }
      return found;
    };
    return [await losses("gpu"), await losses("cpu")];
  });
  assert.ok(gpu[5] < gpu[0]);
  gpu.forEach((loss, k) => assert.ok(Math.abs(loss - cpu[k]) < 1e-4, `${gpu} ${cpu}`));
});

test("gradients of a table's rows are the CPU's, however many positions share a row", async () => {
  const differences = await browser.page.evaluate(async () => {
    const gradient = async (device, counts) => {
      await volta.init({ device });
      const ids = Int32Array.from(counts.flatMap((count, row) => Array(count).fill(row)));
      const table = volta.linspace(-1, 1, 16 * counts.length).reshape(counts.length, 16).realize().requiresGrad_();
      const weights = volta.linspace(0, 3, 16 * ids.length).sin().reshape(ids.length, 16);
      volta.nn.functional.embedding(volta.tensor(ids), table).mul(weights).sum().backward();
      return table.grad.data();
    };
    const found = [];
    for (const counts of [[1, 4, 3, 0, 8], [5, 9, 2, 17], [41, 1, 6]]) {
      const [gpu, cpu] = [await gradient("gpu", counts), await gradient("cpu", counts)];
      found.push(Math.max(...gpu.map((x, k) => Math.abs(x - cpu[k]))));
    }
    return found;
  });
  for (const difference of differences) assert.ok(difference < 1e-5, `${differences}`);
});

test("errors are the same on WebGPU, and tensors move", async () => {
  const found = await browser.page.evaluate(async () => {
    await volta.init({ device: "gpu" });
    const x = volta.tensor([[1, 2]]);
    let error;
    try {
      x.matmul(x);
    } catch (thrown) {
      error = { kind: thrown.kind, message: thrown.message };
    }
    const moved = await x.to("cpu");
    return { error, devices: [x.device, moved.device], values: await moved.tolist() };
  });
  assert.equal(found.error.kind, "shape");
  assert.match(found.error.message, /inner extents/);
  assert.deepEqual(found.devices, ["gpu", "cpu"]);
  assert.deepEqual(found.values, [[1, 2]]);
});

test("the raw face computes", async () => {
  const found = await browser.page.evaluate(async () => {
    const { GpuBuffer, GpuDevice, GpuTensor } = volta;
    const device = await GpuDevice.create();
    const buffer = GpuBuffer.from(device, Float32Array.of(1, 2, 3));
    const bytes = await buffer.read();
    const a = GpuTensor.from(Float32Array.of(1, -2, 3, 4), [2, 2], device);
    const b = GpuTensor.from(Float32Array.of(1, 0, 0, 1), [2, 2], device);
    const results = {};
    for (const op of ["add", "sub", "mul", "matmul"]) results[op] = Array.from(await (await a[op](b)).data(), (x) => x + 0);
    results.relu = Array.from(await (await a.relu()).data());
    let error;
    try {
      await a.matmul(GpuTensor.zeros([3, 1], device));
    } catch (thrown) {
      error = thrown.message;
    }
    return { name: device.info.name, read: Array.from(new Float32Array(bytes.buffer)), size: buffer.size, results, error };
  });
  assert.deepEqual(found.read, [1, 2, 3]);
  assert.equal(found.size, 12);
  assert.deepEqual(found.results, {
    add: [2, -2, 3, 5], sub: [0, -2, 3, 3], mul: [1, 0, 0, 4], matmul: [1, -2, 3, 4], relu: [1, 0, 3, 4],
  });
  assert.match(found.error, /inner extents 2 and 3 differ/);
});

test("auto takes the CPU where the only adapter is software, and says so", async () => {
  const adapter = await browser.page.evaluate(() => volta.init());
  assert.equal(adapter.device, "cpu");
  assert.match(adapter.reason, /software/);
});

test("a run in a worker keeps the page free, on the CPU and on WebGPU", async () => {
  const found = await browser.page.evaluate(async () => {
    const train = async (device, steps) => {
      let longest = 0;
      let last = performance.now();
      const timer = setInterval(() => {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }, 5);
      const run = volta.trainClassifier({ device, steps, batch: 16, hidden: [16], validateEvery: 0, learningRate: 5e-3, warmup: 2 });
      const losses = [];
      for await (const { loss } of run) losses.push(loss);
      clearInterval(timer);
      const { adapter, kernels } = await run.info;
      const checkpoint = await run.checkpoint();
      run.terminate();
      return { losses, device: adapter.device, kernels, bytes: checkpoint.length, longest };
    };
    return [await train("cpu", 20), await train("gpu", 8)];
  });
  for (const { losses, kernels, bytes } of found) {
    assert.ok(losses.at(-1) < losses[0], `${losses}`);
    assert.ok(kernels > 0 && bytes > 50_000);
  }
  assert.deepEqual(found.map(({ device }) => device), ["cpu", "gpu"]);
  found[1].losses.slice(0, 4).forEach((loss, k) => assert.ok(Math.abs(loss - found[0].losses[k]) < 1e-3, JSON.stringify(found)));
});

test("a lost device is opened again, and the run goes on from its last checkpoint", async () => {
  const found = await browser.page.evaluate(async () => {
    const run = volta.trainClassifier({ device: "gpu", steps: 8, batch: 8, hidden: [8], validateEvery: 0, keepEvery: 0 });
    const told = [];
    for await (const { step, warning } of run) {
      told.push({ step, warning });
      if (step === 3 && told.length === 3) await run.loseDevice();
    }
    run.terminate();
    return told;
  });
  assert.equal(found.at(-1).step, 8);
  const warning = found.find(({ warning }) => warning);
  assert.match(warning.warning, /device was lost .* goes on from step \d/);
});

test("two thousand steps leave memory flat, on the CPU and on WebGPU", async () => {
  const found = await browser.page.evaluate(async () => {
    const train = async (device) => {
      const run = volta.trainClassifier({ device, steps: 2000, batch: 4, hidden: [8], validateEvery: 0 });
      const told = [];
      for await (const { step, memory } of run) if (step === 500 || step === 2000) told.push(memory);
      run.terminate();
      return told;
    };
    return { cpu: await train("cpu"), gpu: await train("gpu") };
  });
  for (const [device, [early, late]] of Object.entries(found)) {
    // A page of a thing that is collected now and then may be live at either time.
    for (const what of ["wasmBytes", "liveBytes", "reservedBytes"]) {
      assert.ok(late[what] <= early[what] + (1 << 20), `${device} ${what}: ${early[what]} → ${late[what]}`);
    }
  }
});

test("a language model on WebGPU has the CPU's losses", async () => {
  const [cpu, gpu] = await browser.page.evaluate(async () => {
    const train = async (device) => {
      const losses = [];
      const text = "one two three four five six seven eight nine ten. ".repeat(40);
      const run = volta.trainLanguageModel({ device, text, steps: 6, layers: 1, heads: 2, width: 16, context: 16, batch: 2, validateEvery: 0, warmup: 1 });
      for await (const { loss } of run) losses.push(loss);
      run.terminate();
      return losses;
    };
    return [await train("cpu"), await train("gpu")];
  });
  assert.equal(cpu.length, 6);
  cpu.forEach((loss, k) => assert.ok(Math.abs(loss - gpu[k]) < 1e-4, `${cpu} ${gpu}`));
});

test("no page said anything wrong", () => {
  assert.deepEqual(browser.complaints.filter((text) => !/powerPreference|No available adapters/.test(text)), []);
});

test("without WebGPU the CPU is taken, with the reason", async () => {
  const without = await open({ webgpu: false });
  try {
    await without.page.goto(`${server.url}/`);
    await without.page.waitForFunction(() => "volta" in window);
    const found = await without.page.evaluate(async () => {
      const adapter = await volta.init();
      const run = volta.trainClassifier({ steps: 3, batch: 8, hidden: [8], validateEvery: 0 });
      let steps = 0;
      for await (const _ of run) steps++;
      const { warnings } = await run.info;
      run.terminate();
      const wanted = await volta.init({ device: "gpu" }).catch((error) => ({ kind: error.kind }));
      return { adapter, steps, warnings, wanted };
    });
    assert.equal(found.adapter.device, "cpu");
    assert.match(found.adapter.reason, /WebGPU/);
    assert.equal(found.steps, 3);
    assert.match(found.warnings[0], /CPU is used/);
    assert.equal(found.wanted.kind, "device");
  } finally {
    await without.close();
  }
});
