// Tensors, layers, optimizers and files, in node on the CPU.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import * as volta from "../../dist/package/index.js";

const { Tensor, VoltaError, init, manualSeed, nn, noGrad, optim, tensor } = volta;
const F = nn.functional;

before(async () => {
  const adapter = await init();
  assert.equal(adapter.device, "cpu");
  assert.match(adapter.reason, /WebGPU/);
});

const close = (actual, expected, tolerance = 1e-5) => {
  const [a, b] = [actual, expected].map((x) => Array.from([x].flat(Infinity), Number));
  assert.equal(a.length, b.length);
  a.forEach((x, k) => assert.ok(Math.abs(x - b[k]) <= tolerance * Math.max(1, Math.abs(b[k])), `${a} is not ${b}`));
};

/** An op's name, what calls it, and what it gives: numbers that PyTorch gives too. */
const OPS = [
  ["relu", () => tensor([-1, 2]).relu(), [0, 2]],
  ["gelu", () => tensor([1]).gelu(), [0.8413447]],
  ["silu", () => tensor([1]).silu(), [0.7310586]],
  ["softplus", () => tensor([0]).softplus(), [0.6931472]],
  ["clamp", () => tensor([-5, 0, 5]).clamp(-1, 1), [-1, 0, 1]],
  ["clamp from below", () => tensor([-5, 5]).clamp(0), [0, 5]],
  ["pow", () => tensor([2, 3]).pow(2), [4, 9]],
  ["broadcast", () => tensor([[1], [2]]).add(tensor([10, 20])), [[11, 21], [12, 22]]],
  ["div of integers", () => tensor([1, 2], undefined, { dtype: "int32" }).div(2), [0.5, 1]],
  ["remainder", () => tensor([-1, 5]).remainder(3), [2, 2]],
  ["compare", () => tensor([1, 2]).lt(2).float(), [1, 0]],
  ["where", () => volta.where(tensor([true, false]), tensor([1, 2]), 7), [1, 7]],
  ["where of numbers", () => volta.where(tensor([true, false]), 1, 0), [1, 0]],
  ["maskedFill", () => tensor([1, 2]).maskedFill(tensor([true, false]), 9), [9, 2]],
  ["sum", () => tensor([[1, 2], [3, 4]]).sum(0), [4, 6]],
  ["mean, kept", () => tensor([[1, 2], [3, 4]]).mean(-1, true), [[1.5], [3.5]]],
  ["var", () => tensor([1, 2, 3, 4]).var(), [1.6666667]],
  ["std of the population", () => tensor([1, 2, 3, 4]).std(undefined, 0), [1.118034]],
  ["norm", () => tensor([3, 4]).norm(), [5]],
  ["max with index", () => tensor([[1, 9], [8, 2]]).maxWithIndex(1).indices, [1, 0]],
  ["argmax", () => tensor([[1, 9], [8, 2]]).argmax(1), [1, 0]],
  ["softmax", () => tensor([0, Math.log(3)]).softmax(0), [0.25, 0.75]],
  ["logsumexp", () => tensor([0, 0]).logsumexp(0), [0.6931472]],
  ["cumsum", () => tensor([1, 2, 3]).cumsum(0), [1, 3, 6]],
  ["sort", () => tensor([3, 1, 2]).sort(0, true).values, [3, 2, 1]],
  ["topk", () => tensor([3, 1, 2]).topk(2).indices, [0, 2]],
  ["matmul", () => tensor([[1, 2], [3, 4]]).matmul(tensor([[0, 1], [1, 0]])), [[2, 1], [4, 3]]],
  ["einsum", () => volta.einsum("ij,kj->ik", tensor([[1, 2]]), tensor([[3, 4], [5, 6]])), [[11, 17]]],
  ["reshape", () => tensor([1, 2, 3, 4]).reshape(2, -1).t(), [[1, 3], [2, 4]]],
  ["permute", () => tensor([[1, 2]]).permute([1, 0]), [[1], [2]]],
  ["slice", () => tensor([0, 1, 2, 3, 4, 5]).slice([1, undefined, 2]), [1, 3, 5]],
  ["slice from the end", () => tensor([0, 1, 2, 3]).slice([-2, undefined]), [2, 3]],
  ["pad", () => tensor([1]).pad([[1, 2]], 5), [5, 1, 5, 5]],
  ["cat", () => volta.cat([tensor([1]), tensor([2])]), [1, 2]],
  ["stack", () => volta.stack([tensor([1, 2]), tensor([3, 4])], 1), [[1, 3], [2, 4]]],
  ["split", () => tensor([1, 2, 3]).split(2)[1], [3]],
  ["gather", () => tensor([[1, 2], [3, 4]]).gather(1, tensor(Int32Array.of(1, 0), [2, 1])), [[2], [3]]],
  ["indexSelect", () => tensor([5, 6, 7]).indexSelect(0, tensor(Int32Array.of(2, 0))), [7, 5]],
  ["tril", () => volta.ones([2, 2]).tril(), [[1, 0], [1, 1]]],
  ["oneHot", () => F.oneHot(tensor(Int32Array.of(1, 0)), 2), [[0, 1], [1, 0]]],
  ["layerNorm", () => F.layerNorm(tensor([1, 3]), [2]), [-0.999995, 0.999995]],
  ["conv2d", () => F.conv2d(volta.ones([1, 1, 3, 3]), volta.ones([1, 1, 2, 2])), [[[[4, 4], [4, 4]]]]],
  ["maxPool2d", () => F.maxPool2d(tensor([1, 2, 3, 4]).reshape(1, 1, 2, 2), 2), [[[[4]]]]],
  ["attention", () => F.scaledDotProductAttention(volta.ones([1, 1, 2, 4]), volta.ones([1, 1, 2, 4]), tensor([1, 2, 3, 4], [1, 1, 2, 2]), { causal: true }), [[[[1, 2], [2, 3]]]]],
  ["arange", () => volta.arange(3), [0, 1, 2]],
  ["linspace", () => volta.linspace(0, 1, 3), [0, 0.5, 1]],
  ["crossEntropy", () => F.crossEntropy(tensor([[0, 0]]), tensor(Int32Array.of(1))), [0.6931472]],
  ["bceWithLogits", () => F.bceWithLogits(tensor([0]), tensor([1])), [0.6931472]],
  ["mseLoss, summed", () => F.mseLoss(tensor([1, 2]), tensor([0, 0]), "sum"), [5]],
  ["huberLoss", () => F.huberLoss(tensor([3]), tensor([0])), [2.5]],
];

test("ops give what PyTorch gives", async (t) => {
  for (const [name, f, expected] of OPS) {
    await t.test(name, async () => close(await f().tolist(), expected));
  }
});

test("every type of elements is made and read", async () => {
  for (const dtype of ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "uint32", "bool"]) {
    const x = tensor([0, 1, 1], undefined, { dtype });
    assert.equal(x.dtype, dtype);
    close(Array.from(await x.data(), Number), [0, 1, 1]);
  }
  assert.equal(tensor(new Uint8Array(2)).dtype, "uint8");
  assert.equal(tensor(new Float64Array(2)).dtype, "float64");
});

test("misuse throws at the call, with the engine's sentence and a kind", () => {
  const x = tensor([[1, 2]]);
  const cases = [
    [() => x.matmul(tensor([1, 2, 3])), "shape", /inner extents 2 and 3 differ/],
    [() => x.reshape(5), "shape", /reshape/],
    [() => x.sum(4), "shape", /axis/],
    [() => x.softmax(0.5), "argument", /whole number/],
    [() => tensor([1, 2], [3]), "shape", /2 elements do not fill/],
    [() => F.crossEntropy(x, tensor([0.5, 0.5, 0.5])), undefined, /cross_entropy/],
    [() => new nn.Linear(0, 3), "argument", /from 1 on/],
    [() => new nn.Linear(25000, 25000), undefined, /memory|too many/],
    [() => new nn.MultiHeadAttention(10, 3), "argument", /divide/],
    [() => new optim.SGD([x.mul(2)]), "argument", /result of an op/],
    [() => new optim.SGD([x], { lr: -1 }), "argument", /learning rate/],
    [() => new optim.AdamW([x], { betas: [2, 0.9] }), "argument", /beta/],
    [() => new optim.SGD([x], { speed: 1 }), "argument", /no option "speed"/],
    [() => volta.zeros([1e9, 1e9]), "shape", /too many elements/],
    [() => tensor([1], undefined, { dtype: "float8" }), undefined, /float8/],
    [() => x.backward(), "autograd", /does not depend/],
  ];
  for (const [f, kind, message] of cases) {
    assert.throws(f, (error) => {
      assert.ok(error instanceof Error, String(error));
      assert.match(error.message, message);
      if (kind) assert.equal(error.kind, kind, error.message);
      return true;
    });
  }
});

test("a tensor of several elements is no number", async () => {
  await assert.rejects(tensor([1, 2]).item(), /only a tensor of one element/);
});

test("what was disposed of is told", () => {
  const x = tensor([1]);
  x.dispose();
  // Its place is given to the next one.
  const next = tensor([2]);
  assert.throws(() => x.add(1), /disposed/);
  x.dispose();
  assert.equal(next.numel, 1);
});

test("gradients flow, and gradients of gradients", async () => {
  const x = tensor([2, 3], undefined, { requiresGrad: true });
  x.pow(3).sum().backward();
  close(await x.grad.tolist(), [12, 27]);
  const y = tensor([2], undefined, { requiresGrad: true });
  const [first] = volta.grad(y.pow(3).sum(), [y], { createGraph: true });
  const [second] = volta.grad(first.sum(), [y]);
  close(await second.tolist(), [12]);
  assert.equal(noGrad(() => x.mul(2)).requiresGrad, false);
});

test("what ops have made becomes a leaf, and what is differentiated stays a result", async () => {
  const w = volta.linspace(1, 2, 4).reshape(2, 2).realize().requiresGrad_();
  assert.deepEqual([w.requiresGrad, w.isLeaf], [true, true]);
  const y = w.mul(3).requiresGrad_();
  y.sum().backward();
  close(await w.grad.tolist(), [[3, 3], [3, 3]]);
  assert.throws(() => w.mul(2).requiresGrad_(false), (error) => error.kind === "autograd" && /detach/.test(error.message));
});

test("backward lets go of intermediate results, but for what was kept and for operands of losses", async () => {
  const w = tensor([[1, 2]], undefined, { requiresGrad: true });
  const hidden = w.mul(3);
  const kept = hidden.mul(2).keep();
  const logits = kept.add(1);
  const loss = F.mseLoss(logits, volta.zeros([1, 2]));
  const optimizer = new optim.SGD([w], { lr: 0.1 });
  loss.backward();
  optimizer.step();
  close(await loss.item(), (7 * 7 + 13 * 13) / 2);
  close(await logits.tolist(), [[7, 13]]);
  close(await kept.tolist(), [[6, 12]]);
  await assert.rejects(hidden.data(), (error) => error.kind === "autograd" && /keep\(\)/.test(error.message));
});

test("data made before the loop serve every step", async () => {
  const x = tensor([1, 2, 3, 4], [4, 1]).div(4);
  const w = tensor([[0]], undefined, { requiresGrad: true });
  const optimizer = new optim.SGD([w], { lr: 0.5 });
  let last = Infinity;
  for (let k = 0; k < 20; k++) {
    optimizer.zeroGrad();
    const loss = F.mseLoss(x.matmul(w), x.mul(3));
    loss.backward();
    optimizer.step();
    last = await loss.item();
  }
  assert.ok(last < 1e-2, `${last}`);
  close(await x.tolist(), [[0.25], [0.5], [0.75], [1]]);
});

test("layers of every kind have parameters, and their outputs have the right shapes", () => {
  const cases = [
    [new nn.Linear(4, 2), [3, 4], [3, 2]],
    [new nn.Conv2d(1, 4, 3, { padding: 1, stride: 2 }), [2, 1, 8, 8], [2, 4, 4, 4]],
    [new nn.Conv1d(2, 4, 3), [1, 2, 8], [1, 4, 6]],
    [new nn.ConvTranspose2d(2, 1, 2, { stride: 2 }), [1, 2, 4, 4], [1, 1, 8, 8]],
    [new nn.LayerNorm(4), [2, 4], [2, 4]],
    [new nn.RMSNorm(4), [2, 4], [2, 4]],
    [new nn.GroupNorm(2, 4), [1, 4, 3, 3], [1, 4, 3, 3]],
    [new nn.BatchNorm1d(4), [5, 4], [5, 4]],
    [new nn.BatchNorm2d(4), [2, 4, 3, 3], [2, 4, 3, 3]],
    [new nn.MultiHeadAttention(8, 2), [1, 5, 8], [1, 5, 8]],
    [new nn.TransformerEncoderLayer(8, 2, { dimFeedforward: 16 }), [1, 5, 8], [1, 5, 8]],
  ];
  for (const [layer, input, output] of cases) {
    assert.deepEqual([...layer.forward(volta.randn(input)).shape], output, layer.toString());
    assert.ok(layer.parameters().length > 0);
  }
  assert.deepEqual([...new nn.Embedding(10, 4).forward(tensor(Int32Array.of(1, 2))).shape], [2, 4]);
  const [y, [h, c]] = new nn.LSTM(3, 5, { batchFirst: true }).forward(volta.randn([2, 7, 3]));
  assert.deepEqual([[...y.shape], [...h.shape], [...c.shape]], [[2, 7, 5], [1, 2, 5], [1, 2, 5]]);
});

class Net extends nn.Module {
  hidden = new nn.Linear(2, 16);
  more = [new nn.Linear(16, 16), new nn.BatchNorm1d(16)];
  output = new nn.Linear(16, 1);
  forward(x) {
    return this.output.forward(this.more[1].forward(this.more[0].forward(this.hidden.forward(x).tanh())).tanh());
  }
}

test("a module of one's own has names, a state, and learns XOR with every optimizer", async () => {
  const names = new Net().namedParameters().map(([name]) => name);
  assert.deepEqual(names.sort(), [
    "hidden.bias", "hidden.weight", "more.0.bias", "more.0.weight", "more.1.bias", "more.1.weight", "output.bias", "output.weight",
  ]);
  assert.ok("more.1.running_mean" in new Net().stateDict());
  const x = tensor([[0, 0], [0, 1], [1, 0], [1, 1]]);
  const y = tensor([[0], [1], [1], [0]]);
  const optimizers = {
    SGD: (p) => new optim.SGD(p, { lr: 0.3, momentum: 0.9 }),
    Adam: (p) => new optim.Adam(p, { lr: 0.02 }),
    AdamW: (p) => new optim.AdamW(p, { lr: 0.02, betas: [0.9, 0.99] }),
    RMSprop: (p) => new optim.RMSprop(p, { lr: 0.01 }),
    Adagrad: (p) => new optim.Adagrad(p, { lr: 0.1 }),
    Lion: (p) => new optim.Lion(p, { lr: 0.01 }),
  };
  for (const [name, make] of Object.entries(optimizers)) {
    manualSeed(3);
    const model = new Net();
    const optimizer = make(model.parameters());
    let loss;
    for (let k = 0; k < 120; k++) {
      optimizer.zeroGrad();
      loss = F.mseLoss(model.forward(x), y);
      loss.backward();
      optimizer.step();
    }
    assert.ok((await loss.item()) < 0.05, `${name}: ${await loss.item()}`);
  }
});

test("schedules set the rates", () => {
  const optimizer = new optim.SGD([tensor([1], undefined, { requiresGrad: true })], { lr: 1 });
  const scheduler = new optim.Scheduler(optimizer, {
    kind: "WarmupLR",
    steps: 3,
    schedules: [{ kind: "CosineAnnealingLR", tMax: 2 }],
  });
  const rates = [];
  for (let k = 0; k < 6; k++) {
    rates.push(scheduler.getLastLr()[0]);
    scheduler.step();
  }
  close(rates, [0.25, 0.5, 0.75, 1, 0.5, 0]);
});

test("groups have options of their own", () => {
  const [a, b] = [1, 2].map((x) => tensor([x], undefined, { requiresGrad: true }));
  const optimizer = new optim.AdamW([{ params: [a] }, { params: [b], lr: 0.5 }], { lr: 0.1 });
  close(optimizer.learningRates, [0.1, 0.5]);
});

test("safetensors go out and come in; a damaged file is an error", async () => {
  const model = new nn.Linear(3, 2);
  const bytes = await volta.saveSafetensors(model.stateDict(), { author: "test" });
  const { tensors, metadata } = volta.loadSafetensors(bytes);
  assert.deepEqual(metadata, { author: "test" });
  const other = new nn.Linear(3, 2);
  other.loadStateDict(tensors);
  assert.deepEqual(await other.weight.tolist(), await model.weight.tolist());
  for (let length = 0; length < bytes.length; length += 7) {
    assert.throws(() => volta.loadSafetensors(bytes.subarray(0, length)), VoltaError);
  }
  for (let k = 0; k < 200; k++) {
    const spoilt = bytes.slice();
    spoilt[(k * 37) % bytes.length] ^= 1 << k % 8;
    try {
      volta.loadSafetensors(spoilt);
    } catch (error) {
      assert.ok(error instanceof VoltaError && error.kind !== "module", error.message);
    }
  }
  assert.throws(() => other.loadStateDict({ weight: tensors.weight }), /has no bias/);
  assert.throws(() => other.loadStateDict({ ...tensors, bias: volta.zeros([5]) }), /bias is \[5\]/);
});

test("a training goes on from a checkpoint to the same bits", async () => {
  const make = () => {
    manualSeed(11);
    const model = new nn.Sequential(new nn.Linear(4, 8), new nn.ReLU(), new nn.Dropout(0.1), new nn.Linear(8, 1));
    const optimizer = new optim.AdamW(model.parameters(), { lr: 0.05 });
    const scheduler = new optim.Scheduler(optimizer, { kind: "ExponentialLR", gamma: 0.95 });
    return { model, optimizer, scheduler };
  };
  const x = volta.linspace(-1, 1, 32).reshape(8, 4).realize();
  const train = async ({ model, optimizer, scheduler }, steps) => {
    const losses = [];
    for (let k = 0; k < steps; k++) {
      optimizer.zeroGrad();
      const loss = F.mseLoss(model.forward(x), x.sum(1, true));
      loss.backward();
      optimizer.step();
      scheduler.step();
      losses.push(await loss.item());
    }
    return losses;
  };
  const parts = ({ model, optimizer, scheduler }) => ({
    modules: { model }, optimizers: { optimizer }, schedulers: { scheduler }, numbers: { step: 5 },
  });
  const first = make();
  await train(first, 5);
  const checkpoint = await volta.saveCheckpoint(parts(first));
  const expected = await train(first, 5);
  const second = make();
  assert.deepEqual(volta.loadCheckpoint(checkpoint, parts(second)), { step: 5 });
  assert.deepEqual(await train(second, 5), expected);
});

test("a profile has kernels, ops and a trace", async () => {
  const x = volta.randn([64, 64]).realize();
  const { kernels, ops, trace, result } = await volta.profile(async () => x.matmul(x).relu().sum().item());
  assert.ok(Number.isFinite(result));
  assert.ok(kernels.length > 0 && kernels.every(({ ms, count }) => ms >= 0 && count > 0));
  assert.ok(ops.some(({ name }) => name.includes("matmul")), JSON.stringify(ops));
  assert.ok(JSON.parse(trace).traceEvents.length > 2);
  assert.match(volta.lastPlan().text, /kernels/);
});

test("ten thousand tensors leave memory flat", async () => {
  const x = volta.randn([64, 1024]).realize();
  const step = async () => Number(await x.mul(2).sum().item());
  for (let k = 0; k < 100; k++) await step();
  const before = await volta.memory();
  for (let k = 0; k < 3000; k++) await step();
  // Results that are computed and not disposed of: 256 kB each.
  for (let k = 0; k < 2000; k++) {
    const y = x.add(k).realize();
    await y.slice([0, 1], [0, 1]).item();
  }
  const after = await volta.memory();
  const grown = (after.wasmBytes - before.wasmBytes) / 2 ** 20;
  assert.ok(grown < 400, `${grown} MiB`);
});
