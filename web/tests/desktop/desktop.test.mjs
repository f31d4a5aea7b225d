// The desktop's program and the tab's module, both on the CPU: the same losses, and checkpoints and models that go from one to the other.
//
// Not to the bit: the program multiplies and adds in one rounding where its processor can, and WebAssembly cannot. A difference of an
// ulp in a product is some 1e-7 of the loss at first, and grows with the steps.

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openLanguageModel, trainLanguageModel } from "../../dist/package/index.js";
import { desktop, losses, python, safetensors } from "./support.mjs";

const TOLERANCE = 2e-5;
const TEXT = Array.from({ length: 300 }, (_, k) => `${k % 10} is followed by ${(k + 1) % 10}, `).join("");

/** What both are told, by the package's names and by the program's. */
const OPTIONS = { layers: 1, heads: 2, width: 32, context: 24, batch: 4, dropout: 0.1, steps: 20, warmup: 4, learningRate: 3e-3, seed: 3, validateEvery: 0 };
const flags = (steps) => [
  "--layers=1", "--heads=2", "--width=32", "--context=24", "--batch=4", "--dropout=0.1", `--steps=${steps}`, "--warmup=4", "--learning-rate=0.003", "--seed=3",
  "--valid-interval=0", "--sample-interval=0", "--checkpoint-interval=10", "--data=text.txt", "--name=both", "--device=cpu", "--quiet",
];
const CHECKPOINTS = "models/both/checkpoints";

async function all(run) {
  const found = new Map();
  for await (const { step, loss } of run) found.set(step, loss);
  return found;
}

function same(actual, expected, steps) {
  assert.deepEqual([...actual.keys()], steps);
  for (const step of steps) {
    const difference = Math.abs(actual.get(step) - expected.get(step)) / expected.get(step);
    assert.ok(difference < TOLERANCE, `step ${step}: ${actual.get(step)} in the tab, ${expected.get(step)} on the desktop`);
  }
}

const numbers = (first, last) => Array.from({ length: last - first + 1 }, (_, k) => first + k);

test("twenty steps have the desktop's losses, and each goes on from the other's checkpoint", async (t) => {
  const { folder, volta } = await desktop(t);
  await writeFile(join(folder, "text.txt"), TEXT);
  await volta("train", ...flags(20));
  const native = await losses(folder, "both");
  assert.ok(native.get(20) < native.get(1));

  const whole = trainLanguageModel({ device: "cpu", text: TEXT, ...OPTIONS });
  const tab = await all(whole);
  whole.terminate();
  same(tab, native, numbers(1, 20));

  // Native to tab: the same options are in the checkpoint.
  const checkpoint = await readFile(join(folder, CHECKPOINTS, "step-00000010.safetensors"));
  const onward = trainLanguageModel({ device: "cpu", text: TEXT, checkpoint });
  assert.equal((await onward.info).firstStep, 11);
  same(await all(onward), native, numbers(11, 20));
  onward.terminate();

  // Tab to native, half way.
  const half = trainLanguageModel({ device: "cpu", text: TEXT, ...OPTIONS, paused: true });
  for (let k = 0; k < 10; k++) await half.step();
  const saved = await half.checkpoint();
  half.terminate();
  const back = await desktop(t);
  await writeFile(join(back.folder, "text.txt"), TEXT);
  await mkdir(join(back.folder, CHECKPOINTS), { recursive: true });
  await writeFile(join(back.folder, CHECKPOINTS, "step-00000010.safetensors"), saved);
  await back.volta("train", "--resume", ...flags(20));
  same(await losses(back.folder, "both"), native, numbers(11, 20));

  // The same file: names, notes, and numbers to tolerance; the optimizer's state and the tokenizer are among them.
  const [ours, theirs] = [saved, checkpoint].map((bytes) => safetensors(new Uint8Array(bytes)));
  assert.deepEqual(ours.names, theirs.names);
  assert.deepEqual(Object.keys(ours.texts).sort(), Object.keys(theirs.texts).sort());
  assert.ok(ours.names.filter((name) => !name.startsWith("model.")).length > 10, `${ours.names}`);
  for (const [name, values] of Object.entries(ours.tensors)) {
    const largest = values.reduce((most, _, k) => Math.max(most, Math.abs(values[k] - theirs.tensors[name][k])), 0);
    assert.ok(largest < 1e-4, `${name}: ${largest}`);
  }
});

test("a model of either writes the same text in both, and Python reads its file", async (t) => {
  const { folder, volta, run } = await desktop(t);
  await writeFile(join(folder, "text.txt"), TEXT);
  await volta("train", ...flags(200));
  const training = trainLanguageModel({ device: "cpu", text: TEXT, ...OPTIONS, steps: 200 });
  await all(training);
  const files = { both: new Uint8Array(await readFile(join(folder, "models/both.safetensors"))), tab: await training.model() };
  const checkpoint = await training.checkpoint();
  training.terminate();
  await writeFile(join(folder, "models/tab.safetensors"), files.tab);
  for (const [name, bytes] of Object.entries(files)) {
    const { stdout } = await volta("generate", "--device=cpu", `--model=${name}`, "--temperature=0", "--length=30", "--json", "3 is ");
    const written = JSON.parse(stdout.trim().split("\n").at(-1));
    const model = await openLanguageModel(bytes, { device: "cpu" });
    let text = "";
    for await (const token of model.generate({ prompt: "3 is ", length: 30, temperature: 0 })) text += token.text;
    model.dispose();
    assert.equal(text, written.text);
    assert.match(text, /^followed by/);
  }

  const found = await run(python, ["-c", "import safetensors.numpy"]).catch(() => undefined);
  if (!found) return t.diagnostic(`${python} has no safetensors: what Python makes of the files is not tested here`);
  await writeFile(join(folder, "checkpoint.safetensors"), checkpoint);
  const script = "import json, sys\nfrom safetensors.numpy import load_file\nprint(json.dumps({k: [list(v.shape), float(v.astype('float64').sum())] for path in sys.argv[1:] for k, v in load_file(path).items()}))";
  for (const [path, bytes] of [["models/tab.safetensors", files.tab], ["checkpoint.safetensors", checkpoint]]) {
    const read = JSON.parse((await run(python, ["-c", script, path])).stdout);
    const { names, tensors } = safetensors(bytes);
    assert.deepEqual(Object.keys(read).sort(), names);
    for (const [name, values] of Object.entries(tensors)) {
      const sum = values.reduce((a, b) => a + b, 0);
      assert.ok(Math.abs(read[name][1] - sum) < 1e-3 * (1 + Math.abs(sum)), name);
    }
  }
});
