// Training as a visitor does it: one click, pause, step, resume, stop, keep, reload, continue, download, drop in.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { control, drop, loss, noticed, stat, status, step, tab, until, visit } from "./support/visit.mjs";

test("a language model starts with one click, its loss falls, and it writes samples", async (t) => {
  const { page, clean } = await visit(t);
  await page.click("[data-test=start-language]");
  await until("a first loss", async () => (await loss(page)) > 0);
  const first = await loss(page);
  await until("a loss a fifth lower within the run", async () => (await loss(page)) < 0.8 * first);
  await until("a sample", async () => (await page.$$(".sample")).length > 0);
  assert.match(await stat(page, "Tokens / s"), /\d/);
  assert.match(await stat(page, "Runs on"), /CPU|GPU/);
  assert.match(await stat(page, "Parameters"), /\d/);
  clean();
});

test("a digit classifier starts with one click, and its accuracy rises", async (t) => {
  const { page, clean } = await visit(t);
  await page.click("[data-test=start-digits]");
  await until("an accuracy over 50 %", async () => parseFloat(await stat(page, "Accuracy")) > 50);
  assert.equal(await page.isVisible(".samples"), false);
  clean();
});

test("a run is paused, moved by one step, resumed and stopped", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?preset=mlp&hidden=32&steps=100000" });
  await page.click("[data-test=start]");
  await until("the third step", async () => (await step(page)) >= 3);
  await control(page, "pause");
  await page.waitForSelector("[data-control=resume]");
  await page.waitForTimeout(400);
  const paused = await step(page);
  await page.waitForTimeout(400);
  assert.equal(await step(page), paused);
  await control(page, "step");
  await until("one more step", async () => (await step(page)) === paused + 1);
  await control(page, "resume");
  await until("steps go on", async () => (await step(page)) > paused + 3);
  await control(page, "stop");
  await until("it is stopped", async () => (await status(page)) === "stopped");
  clean();
});

test("a run is kept, found after a reload, continued where it was, downloaded and dropped in", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?preset=mlp&hidden=32&steps=100000" });
  await page.click("[data-test=start]");
  await until("it is kept", async () => /^step [1-9]/.test(await stat(page, "Kept")));
  await control(page, "pause");
  await until("it is kept as it is paused", async () => (await stat(page, "Kept")) === `step ${await step(page)}`);
  const before = await step(page);
  const lossBefore = await loss(page);
  await page.reload();
  await until("it is there again", async () => (await page.$$(".runs tbody tr")).length === 1);
  await until("its curve too", async () => (await step(page)) === before);
  assert.equal(await status(page), "kept");
  assert.equal(await loss(page), lossBefore);
  await control(page, "continue");
  await until("it goes on", async () => (await step(page)) > before + 3);
  await control(page, "pause");
  const downloading = page.waitForEvent("download");
  await page.click(".controls .menu button[aria-label=Download]");
  await page.click("[role=menuitem]:has-text(\"Checkpoint\")");
  const file = await downloading;
  assert.match(file.suggestedFilename(), /^digits-1-step-\d+\.safetensors$/);
  const bytes = await readFile(await file.path());
  await drop(page, [{ name: "mine.safetensors", bytes }]);
  await noticed(page, /“mine”.*is open at step/);
  await until("two runs", async () => (await page.$$(".runs tbody tr")).length === 2);
  await control(page, "resume");
  await until("the dropped one goes on", async () => (await step(page)) > before);
  clean();
});

test("runs stand side by side, are hidden from the curves, renamed and deleted", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?preset=mlp&hidden=32&steps=30" });
  await page.click("[data-test=start]");
  await until("the first is over", async () => (await status(page)) === "finished");
  await page.click("[data-test=start]");
  await until("two runs", async () => (await page.$$(".runs tbody tr")).length === 2);
  await until("the second is over", async () => (await status(page)) === "finished");
  assert.equal(await page.$$eval(".chart:first-of-type .readout-item", (all) => all.length) >= 2, true);
  await page.click(".controls .menu button[aria-label=More]");
  await page.click("[role=menuitem]:has-text(\"Rename\")");
  await page.fill("dialog input", "second");
  await page.keyboard.press("Enter");
  await until("the new name", async () => (await page.textContent(".run-name")) === "second");
  await page.click(".controls .menu button[aria-label=More]");
  await page.click("[role=menuitem]:has-text(\"Delete\")");
  await page.click("dialog button:has-text(\"Delete\")");
  await until("one run", async () => (await page.$$(".runs tbody tr")).length === 1);
  await page.reload();
  await until("still one run", async () => (await page.$$(".runs tbody tr")).length === 1);
  clean();
});

test("a finished run trains further", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?preset=mlp&hidden=32&steps=20" });
  await page.click("[data-test=start]");
  await until("it is over", async () => (await status(page)) === "finished");
  await page.waitForSelector("[data-control=extend]");
  await control(page, "extend");
  await until("twice the steps", async () => (await step(page)) === 40);
  assert.match(await stat(page, "Step"), /40 \/ 40/);
  clean();
});

test("text is pasted, or dropped, and learnt from", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?width=32&context=32" });
  const text = "the cat sat on the mat and the dog lay on the rug. ".repeat(60);
  await page.click("text=Paste text");
  await page.fill("dialog textarea", "too short");
  await page.click("dialog >> text=Learn from it");
  await noticed(page, /less than 200 characters/);
  await page.fill("dialog textarea", text);
  await page.click("dialog >> text=Learn from it");
  assert.match(await page.textContent(".data-now"), /pasted text/);
  await drop(page, [{ name: "cats.txt", bytes: new TextEncoder().encode(text) }]);
  await until("the file's name", async () => /cats\.txt/.test(await page.textContent(".data-now")));
  await page.click("[data-test=start]");
  await until("a first loss", async () => (await loss(page)) > 0);
  await until("it is kept", async () => /^step/.test(await stat(page, "Kept")));
  await page.reload();
  await page.waitForSelector("[data-control=continue], [data-control=extend]");
  const before = await step(page);
  await page.click("[data-control=continue], [data-control=extend]");
  await until("it goes on with its own text", async () => (await step(page)) > before || (await status(page)) === "training");
  await tab(page, "talk");
  clean();
});

/** Pictures of ten patterns as MNIST's files: the rows of a band are lit. */
function patterns(count) {
  const images = new Uint8Array(16 + count * 784), labels = new Uint8Array(8 + count);
  const head = (bytes, kind) => {
    bytes.set([0, 0, 8, kind]);
    new DataView(bytes.buffer).setUint32(4, count);
  };
  head(images, 3);
  images[11] = images[15] = 28;
  head(labels, 1);
  for (let i = 0; i < count; i++) {
    labels[8 + i] = i % 10;
    images.fill(255, 16 + i * 784 + (i % 10) * 56, 16 + i * 784 + (i % 10) * 56 + 56);
  }
  return [{ name: "train-images-idx3-ubyte", bytes: images }, { name: "train-labels-idx1-ubyte", bytes: labels }];
}

test("MNIST's files are dropped together and learnt from", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?preset=mlp&hidden=32&steps=300" });
  await drop(page, patterns(1200));
  await noticed(page, /learns from 1,200 pictures/);
  await page.click("[data-test=start]");
  await until("an accuracy over 50 %", async () => parseFloat(await stat(page, "Accuracy")) > 50);
  clean();
});
