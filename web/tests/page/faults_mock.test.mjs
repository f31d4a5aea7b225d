// Faults that only the package's stand-in can be told to have: what the page does about them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { noticed, stat, status, step, until, visit } from "./support/visit.mjs";

test("a lost device is told of, and the run goes on", async (t) => {
  const { page, clean } = await visit(t, { mock: true, hash: "#train?preset=mlp&hidden=32&steps=100000" });
  await page.click("[data-test=start]");
  await until("the third step", async () => (await step(page)) >= 3);
  const before = await step(page);
  await page.evaluate(() => (globalThis.voltaMock.failNext = "lose-device"));
  await noticed(page, /lost and opened again/);
  await until("it goes on", async () => (await step(page)) > before + 5);
  clean();
});

test("a run that runs out of memory says so, and continues from what is kept", async (t) => {
  const { page, clean } = await visit(t, { mock: true, hash: "#train?preset=mlp&hidden=32&steps=100000" });
  await page.click("[data-test=start]");
  await until("it is kept", async () => /^step [1-9]/.test(await stat(page, "Kept")));
  await page.evaluate(() => (globalThis.voltaMock.failNext = "out-of-memory"));
  await noticed(page, /no memory left.*is kept/);
  assert.equal(await status(page), "ended by an error");
  const before = await step(page);
  await page.click("[data-control=continue]");
  await until("it goes on", async () => (await step(page)) > before);
  clean();
});

test("a worker that traps is started again from what is kept, by itself", async (t) => {
  const { page, clean } = await visit(t, { mock: true, hash: "#train?preset=mlp&hidden=32&steps=100000" });
  await page.click("[data-test=start]");
  await until("it is kept", async () => /^step [1-9]/.test(await stat(page, "Kept")));
  await page.evaluate(() => (globalThis.voltaMock.failNext = "trap"));
  await noticed(page, /was interrupted.*goes on from step/);
  const before = await step(page);
  await until("it goes on", async () => (await step(page)) > before + 5 && (await status(page)) === "training");
  clean();
});
