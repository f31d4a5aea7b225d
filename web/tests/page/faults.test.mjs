// What goes wrong is told in a sentence, and nothing is lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import { drop, loss, noticed, notices, stat, step, until, visit } from "./support/visit.mjs";

const text = (string) => new TextEncoder().encode(string);

/** A safetensors file with this header. */
function safetensors(header, length = header.length, tail = 0) {
  const bytes = new Uint8Array(8 + header.length + tail);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(text(header), 8);
  return bytes;
}

function idx(...header) {
  return new Uint8Array(header);
}

const HOSTILE = [
  { name: "empty.txt", bytes: text(""), says: /empty/ },
  { name: "binary.bin", bytes: new Uint8Array(4096).map((_, i) => (i * 89) % 256), says: /cannot be used/ },
  { name: "huge-header.safetensors", bytes: safetensors("{}", 2 ** 52), says: /cut off|longer/ },
  { name: "no-json.safetensors", bytes: safetensors("{not json"), says: /header cannot be read/ },
  { name: "beyond.safetensors", bytes: safetensors('{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'), says: /lies beyond its end/ },
  { name: "negative.safetensors", bytes: safetensors('{"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}}'), says: /says nothing useful/ },
  { name: "list.safetensors", bytes: safetensors("[1,2]"), says: /names no tensors/ },
  { name: "short.safetensors", bytes: text("{}"), says: /no header/ },
  { name: "model.pt", bytes: text("PK\u0003\u0004xxxxxxxxxxxx"), says: /PyTorch/ },
  { name: "images", bytes: idx(0, 0, 8, 3, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28, 0, 0, 0, 28), says: /cut off/ },
  { name: "images", bytes: idx(0, 0, 13, 3, 0, 0, 0, 1), says: /not bytes/ },
  { name: "wide", bytes: idx(0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 7), says: /not 28 by 28/ },
  { name: "packed.gz", bytes: idx(0x1f, 0x8b, 8, 0, 1, 2, 3, 4, 5, 6), says: /damaged/ },
  { name: "few.txt", bytes: text("too little"), says: /less than 200 characters/ },
  { name: "config.json", bytes: text("{}"), says: /weights are missing/ },
  { name: "<img src=x onerror=alert(1)>.bin", bytes: new Uint8Array([0xff, 0xfe, 0, 1]), says: /<img src=x/ },
];

test("hostile files are refused in a sentence each", async (t) => {
  const { page, clean } = await visit(t);
  for (const { name, bytes, says } of HOSTILE) {
    await drop(page, [{ name, bytes }]);
    await noticed(page, says);
    for (const close of await page.$$(".notice .icon-button")) await close.click();
  }
  assert.equal(await page.$$eval(".notice img", (all) => all.length), 0);
  assert.equal((await page.$$(".runs tbody tr")).length, 0);
  clean();
});

test("a checkpoint and a model that only look like ones are refused, and the page works on", async (t) => {
  const { page, clean } = await visit(t);
  const tensor = '"model.a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}';
  await drop(page, [{ name: "fake.safetensors", bytes: safetensors(`{"__metadata__":{"format":"volta-checkpoint","version":"1","state":"{}"},${tensor}}`, undefined, 8) }]);
  await until("it is refused", async () => (await notices(page)).some((one) => /fake/.test(one) && /ended|cannot/.test(one)));
  await drop(page, [{ name: "odd.safetensors", bytes: safetensors(`{${tensor}}`, undefined, 8) }]);
  await noticed(page, /“odd” cannot be opened/);
  await page.click("[data-test=start]");
  await until("a loss", async () => (await loss(page)) > 0);
  clean();
});

test("pictures and labels that do not belong together are refused", async (t) => {
  const { page, clean } = await visit(t);
  const images = new Uint8Array(16 + 2 * 784);
  images.set([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28]);
  await drop(page, [{ name: "train-images", bytes: images }]);
  await noticed(page, /drop the labels/);
  await drop(page, [{ name: "train-labels", bytes: idx(0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3) }]);
  await noticed(page, /do not belong together/);
  clean();
});

test("without storage runs work, and the page says that they are not kept", async (t) => {
  const { page, clean } = await visit(t, {
    before: () => { StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException("no", "SecurityError")); },
  });
  await noticed(page, /Runs cannot be kept/);
  await page.click("[data-test=start-digits]");
  await until("a loss", async () => (await loss(page)) > 0);
  assert.equal(await stat(page, "Kept"), "not yet");
  page.on("dialog", (dialog) => dialog.accept());
  clean();
});

test("a full storage is told of, and training goes on", async (t) => {
  const { page, clean } = await visit(t, {
    before: () => { FileSystemWritableFileStream.prototype.write = () => Promise.reject(new DOMException("full", "QuotaExceededError")); },
    hash: "#train?preset=mlp&hidden=32&steps=100000",
  });
  await page.click("[data-test=start]");
  await noticed(page, /storage is full/);
  const before = await step(page);
  await until("it goes on", async () => (await step(page)) > before + 5);
  clean();
});

test("without WebGPU the CPU computes, and the page says so", async (t) => {
  const { page, clean } = await visit(t, { webgpu: false });
  await until("the chip says CPU", async () => /CPU/.test(await page.textContent("#adapter")));
  await page.click("[data-test=start-digits]");
  await until("a loss", async () => (await loss(page)) > 0);
  assert.equal(await stat(page, "Runs on"), "CPU");
  await page.click("[data-tab=bench]");
  assert.match(await page.textContent("#view-bench"), /no WebGPU here/);
  clean();
});

test("after the first visit the page opens without a network", async (t) => {
  const { page, server, context } = await visit(t, { allow: [/Failed to load resource/] });
  await page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) await new Promise((controlled) => navigator.serviceWorker.addEventListener("controllerchange", controlled, { once: true }));
  });
  await server.close();
  await context.setOffline(true);
  await page.reload();
  await page.click("[data-test=start-digits]");
  await until("a loss, without a network", async () => (await loss(page)) > 0);
});

test("one run is not trained by two tabs", async (t) => {
  const { page, context, server, clean } = await visit(t, { hash: "#train?preset=mlp&hidden=32&steps=100000" });
  await page.click("[data-test=start]");
  await until("it is kept", async () => /^step [1-9]/.test(await stat(page, "Kept")));
  const second = await context.newPage();
  await second.goto(server.url);
  await second.click("[data-control=continue]");
  await noticed(second, /open in another tab/);
  clean();
});
