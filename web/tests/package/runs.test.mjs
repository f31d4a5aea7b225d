// Whole runs in workers of the package's own, in node on the CPU.

import assert from "node:assert/strict";
import { test } from "node:test";
import { VoltaError, bench, estimate, openLanguageModel, stories, trainClassifier, trainLanguageModel } from "../../dist/package/index.js";
import { gpt2 } from "./gpt2.mjs";

const all = async (run) => {
  const metrics = [];
  for await (const m of run) metrics.push(m);
  return metrics;
};

const SMALL = { device: "cpu", batch: 32, hidden: [32], steps: 60, validateEvery: 30, learningRate: 3e-3, warmup: 5 };
const TINY = { device: "cpu", layers: 1, heads: 2, width: 16, context: 16, batch: 4, steps: 12, warmup: 2, validateEvery: 6 };

test("a classifier learns drawn digits, and tells what it does", async () => {
  const run = trainClassifier(SMALL);
  const info = await run.info;
  assert.equal(info.parameters, 784 * 32 + 32 + 32 * 10 + 10);
  assert.ok(info.kernels > 0 && info.peakBytes > 100_000 && info.plan.includes("kernels"), JSON.stringify(info));
  const metrics = await all(run);
  await run.finished;
  assert.deepEqual(metrics.map(({ step }) => step), Array.from({ length: 60 }, (_, k) => k + 1));
  const last = metrics.at(-1);
  assert.ok(last.loss < 0.7 * metrics[0].loss, `${metrics[0].loss} → ${last.loss}`);
  assert.ok(last.accuracy > 0.5 && last.validationLoss > 0, JSON.stringify(last));
  assert.ok(last.examplesPerSecond > 0 && last.memory.wasmBytes > 0 && last.gradNorm > 0);
  const probabilities = await run.classify(new Float32Array(784));
  assert.ok(Math.abs(probabilities.reduce((a, b) => a + b) - 1) < 1e-4);
  await assert.rejects(run.classify(new Float32Array(3)), /784 pixels/);
  const weights = await run.weights();
  assert.ok(weights.length === 4 && weights.every(({ histogram, gradient }) => histogram.counts.length === 40 && gradient));
  assert.ok((await run.model()).length > 100_000);
  run.terminate();
  await assert.rejects(run.model(), (error) => error.kind === "abort");
});

test("a run is paused, stepped, resumed and stopped", async () => {
  const run = trainClassifier({ ...SMALL, paused: true, steps: 1000 });
  await run.info;
  assert.equal((await run.step()).step, 1);
  assert.equal((await run.step()).step, 2);
  const iterator = run[Symbol.asyncIterator]();
  assert.equal((await iterator.next()).value.step, 1);
  await run.resume();
  for (let k = 2; k <= 5; k++) assert.equal((await iterator.next()).value.step, k);
  await run.pause();
  const profile = await run.profile();
  assert.ok(profile.kernels.length > 0);
  await run.stop();
  while (!(await iterator.next()).done);
  await run.finished;
  run.terminate();
});

test("what is asked while the model is built waits for it", async () => {
  const run = trainClassifier({ ...SMALL, paused: true });
  const [probabilities, { step }] = await Promise.all([run.classify(new Float32Array(784)), run.step()]);
  assert.deepEqual([probabilities.length, step], [10, 1]);
  run.terminate();
  const wrong = trainClassifier({ ...SMALL, batch: 0 });
  wrong.finished.catch(() => {});
  await assert.rejects(wrong.info, /batch is 0/);
  wrong.terminate();
});

test("a checkpoint goes on to the same bits", async () => {
  const steps = 12;
  const whole = trainClassifier({ ...SMALL, steps });
  const expected = (await all(whole)).map(({ loss }) => loss);
  whole.terminate();
  const first = trainClassifier({ ...SMALL, steps, paused: true });
  for (let k = 0; k < 5; k++) await first.step();
  const checkpoint = await first.checkpoint();
  first.terminate();
  const second = trainClassifier({ ...SMALL, steps, checkpoint });
  assert.equal((await second.info).firstStep, 6);
  assert.deepEqual((await all(second)).map(({ loss }) => loss), expected.slice(5));
  second.terminate();
});

test("a signal ends a run", async () => {
  const controller = new AbortController();
  const run = trainClassifier({ ...SMALL, steps: 10_000, signal: controller.signal });
  await assert.rejects(
    async () => {
      for await (const { step } of run) if (step === 3) controller.abort();
    },
    (error) => error instanceof VoltaError && error.kind === "abort",
  );
  await assert.rejects(run.finished);
});

test("wrong options and wrong files are told", async () => {
  const cases = [
    [() => trainClassifier({ ...SMALL, hidden: [-1] }), /hidden layer has width -1/],
    [() => trainClassifier({ ...SMALL, batch: 0 }), /batch is 0/],
    [() => trainClassifier({ ...SMALL, data: { images: new Uint8Array(9), labels: new Uint8Array(9) } }), /IDX/],
    [() => trainClassifier({ ...SMALL, checkpoint: new Uint8Array(100) }), /checkpoint|safetensors/],
    [() => trainLanguageModel({ ...TINY, heads: 3 }), /heads|width/],
    [() => trainLanguageModel({ ...TINY, text: " " }), /no text/],
    [() => trainLanguageModel({ ...TINY, checkpoint: new Uint8Array(100) }), /./],
  ];
  for (const [start, message] of cases) {
    const run = start();
    await assert.rejects(run.info, (error) => error instanceof VoltaError && message.test(error.message) && error.kind !== "module");
    await assert.rejects(run.finished, VoltaError);
    run.terminate();
  }
});

test("a language model learns, samples, writes, and goes on from its checkpoint", async () => {
  const run = trainLanguageModel({ ...TINY, sampleEvery: 6, prompt: "The " });
  const metrics = await all(run);
  assert.equal(metrics.length, 12);
  assert.ok(metrics.at(-1).loss < metrics[0].loss);
  assert.ok(metrics[0].tokensPerSecond > 0);
  assert.ok(metrics[5].sample.text.startsWith("The ") && metrics[5].sample.text.length > 20);
  assert.ok(metrics[5].validationLoss > 0, JSON.stringify(metrics[5]));
  let text = "";
  for await (const { text: piece, probability } of run.generate({ prompt: "The ", length: 20, seed: 1 })) {
    assert.ok(probability > 0 && probability <= 1);
    text += piece;
  }
  assert.equal(text.length, 20);
  const attention = await run.attention("The cat", 0, 1);
  assert.equal(attention.tokens.length, 7);
  assert.equal(attention.weights.length, 49);
  assert.ok((await run.weights()).every(({ gradient }) => gradient));
  const model = await openLanguageModel(await run.model(), { device: "cpu" });
  assert.deepEqual([model.info.layers, model.info.width, model.info.tokenizer], [1, 16, "chars"]);
  let again = "";
  for await (const { text: piece } of model.generate({ prompt: "The ", length: 20, seed: 1 })) again += piece;
  assert.equal(again, text);
  model.dispose();
  run.terminate();
});

test("a language model's checkpoint goes on to the same bits", async () => {
  const whole = trainLanguageModel(TINY);
  const expected = (await all(whole)).map(({ loss }) => loss);
  whole.terminate();
  const first = trainLanguageModel({ ...TINY, paused: true });
  for (let k = 0; k < 5; k++) await first.step();
  const checkpoint = await first.checkpoint();
  first.terminate();
  const second = trainLanguageModel({ device: "cpu", checkpoint });
  assert.deepEqual((await all(second)).map(({ loss }) => loss), expected.slice(5));
  second.terminate();
});

test("GPT-2 is opened from Hugging Face's files", async () => {
  const model = await openLanguageModel({ files: gpt2() }, { device: "cpu" });
  assert.deepEqual([model.info.layers, model.info.heads, model.info.width, model.info.vocabulary], [1, 2, 16, 259]);
  let tokens = 0;
  for await (const { probability } of model.generate({ prompt: "Is the", length: 5, temperature: 0 })) tokens += probability > 0;
  assert.equal(tokens, 5);
  model.dispose();
  const { "merges.txt": _, ...without } = gpt2();
  await assert.rejects(openLanguageModel({ files: without }, { device: "cpu" }), /GPT-2|tokenizer/);
});

test("estimates compute nothing", async () => {
  const { parameters, peakBytes } = await estimate({ hidden: [256, 128] }, "classifier");
  assert.equal(parameters, 784 * 256 + 256 + 256 * 128 + 128 + 1290);
  assert.ok(peakBytes > 4 * 4 * parameters);
  const model = await estimate({ layers: 12, heads: 12, width: 768, context: 1024 }, "language-model");
  assert.ok(model.parameters > 80e6, `${model.parameters}`);
  assert.ok((await stories()).length > 100_000);
});

test("the bench measures", async () => {
  const rows = [];
  for await (const row of bench({ device: "cpu", only: ["matmul 256", "softmax 1024 × 1024"] })) rows.push(row);
  assert.deepEqual(rows.map(({ name }) => name), ["matmul 256", "softmax 1024 × 1024"]);
  assert.ok(rows[0].gflops > 0 && rows[1].gbps > 0 && rows[0].device === "cpu");
});
