// Talk, Draw, Look inside and Bench.

import assert from "node:assert/strict";
import { test } from "node:test";
import { gpt2 } from "../package/gpt2.mjs";
import { control, drop, noticed, stat, status, step, tab, until, visit } from "./support/visit.mjs";

const verdict = (page) => page.textContent(".verdict");

test("views without a run say what to do, and nothing in them is dead", async (t) => {
  const { page, clean } = await visit(t);
  for (const [id, words] of [["talk", /No language model yet/], ["draw", /No digit classifier yet/], ["inside", /Nothing to look into yet/]]) {
    await tab(page, id);
    assert.match(await page.textContent(`#view-${id}`), words);
    assert.equal(await page.$$eval(`#view-${id} button`, (all) => all.filter((one) => one.checkVisibility()).length), 1);
  }
  await tab(page, "talk");
  await page.click("#view-talk button:has-text(\"Train a language model\")");
  assert.equal(await page.isVisible("#view-train"), true);
  clean();
});

test("a model goes on from a text, and its tokens are tinted by their probability", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?steps=20&width=32&context=32" });
  await page.click("[data-test=start]");
  await until("it is over", async () => (await status(page)) === "finished");
  await tab(page, "talk");
  await page.fill(".prompt", "One day ");
  await page.click("[data-test=write]");
  await until("tokens", async () => (await page.$$(".paper .token")).length >= 20);
  assert.match(await page.textContent(".paper-text"), /^One day /);
  assert.match(await page.getAttribute(".paper .token", "title"), /%/);
  // It may be done before it is stopped.
  await page.click(".talk-panel button:has-text(\"Stop\")", { timeout: 500 }).catch(() => {});
  await until("it can write again", async () => page.isVisible("[data-test=write]"));
  // A model that is kept is opened and writes, too.
  await page.reload();
  await page.waitForSelector("[data-tab=talk]");
  await tab(page, "talk");
  await page.fill(".prompt", "One day ");
  await page.click("[data-test=write]");
  await until("tokens of the kept model", async () => (await page.$$(".paper .token")).length >= 5);
  assert.equal((await page.$$(".notice-error")).length, 0);
  clean();
});

test("a model that was downloaded is dropped in and writes", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?steps=20&width=32&context=32" });
  await page.click("[data-test=start]");
  await until("it is over", async () => (await status(page)) === "finished");
  const downloading = page.waitForEvent("download");
  await page.click(".controls .menu button[aria-label=Download]");
  await page.click("[role=menuitem]:has-text(\"Model\")");
  const { readFile } = await import("node:fs/promises");
  await drop(page, [{ name: "stories.safetensors", bytes: await readFile(await (await downloading).path()) }]);
  await noticed(page, /“stories” is open/);
  await page.click("[data-test=write]");
  await until("tokens", async () => (await page.$$(".paper .token")).length >= 5);
  clean();
});

test("files of Hugging Face are taken together", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?device=cpu" });
  await drop(page, Object.entries(gpt2()).map(([name, bytes]) => ({ name, bytes })));
  await noticed(page, /“GPT-2” is open/);
  assert.equal(await page.isVisible("#view-talk"), true);
  await page.fill(".prompt", "Is the");
  await page.click("[data-test=write]");
  await until("tokens", async () => (await page.$$(".paper .token")).length >= 5);
  clean();
});

test("a digit is drawn by hand, and the bars tell what it is taken for", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?preset=mlp&hidden=64&steps=200" });
  await page.click("[data-test=start]");
  await until("it has learnt", async () => parseFloat(await stat(page, "Accuracy")) > 80 || (await status(page)) === "finished");
  await tab(page, "draw");
  const box = await (await page.$(".pad")).boundingBox();
  const at = (x, y) => [box.x + x * box.width, box.y + y * box.height];
  await page.mouse.move(...at(0.25, 0.15));
  await page.mouse.down();
  for (const [x, y] of [[0.75, 0.15], [0.62, 0.45], [0.45, 0.9]]) await page.mouse.move(...at(x, y), { steps: 12 });
  await page.mouse.up();
  await until("a verdict", async () => /^It (is|may be) an? \d/.test(await verdict(page)));
  const shares = await page.$$eval(".bar-number", (all) => all.map((one) => parseFloat(one.textContent)));
  assert.equal(shares.length, 10);
  assert.ok(Math.abs(shares.reduce((a, b) => a + b, 0) - 100) < 1, `${shares}`);
  await page.click("[data-test=clear]");
  await until("nothing is drawn", async () => /Nothing is drawn/.test(await verdict(page)));
  clean();
});

test("the plan, kernel times, histograms and attention are shown", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?steps=100000" });
  await page.click("[data-test=start]");
  await until("the third step", async () => (await step(page)) >= 3);
  await tab(page, "inside");
  await until("the plan", async () => (await page.textContent(".plan-text")).length > 40);
  await page.click("[data-test=profile]");
  await until("kernels", async () => (await page.$$(".kernel-table tbody tr")).length >= 3);
  const downloading = page.waitForEvent("download");
  await page.click("button:has-text(\"Trace for Perfetto\")");
  assert.match((await downloading).suggestedFilename(), /trace\.json$/);
  await until("histograms", async () => (await page.$$(".histogram canvas")).length >= 3);
  await page.click(".card-head label:has-text(\"Gradients\")");
  await until("gradients", async () => (await page.$$(".histogram canvas")).length >= 3);
  await page.click("[data-test=attention]");
  await page.waitForSelector(".attention:not([hidden])");
  await page.focus(".attention");
  await page.keyboard.press("ArrowUp");
  await until("a cell is told", async () => /takes .*% from/.test(await page.textContent(".attention-readout")));
  await tab(page, "train");
  await control(page, "stop");
  clean();
});

test("the bench measures, and is copied as JSON", async (t) => {
  const { page, clean } = await visit(t);
  await tab(page, "bench");
  await page.click("[data-test=bench]");
  await until("a row", async () => (await page.$$(".bench-table tbody tr")).length >= 1);
  await until("the end", async () => /Done/.test(await page.textContent("#view-bench [role=status]")), 400_000);
  await page.click("[data-test=copy]");
  const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
  assert.ok(copied.rows.length >= 3);
  for (const row of copied.rows) assert.ok(row.ms > 0 && row.name && ["cpu", "gpu"].includes(row.device), JSON.stringify(row));
  clean();
});
