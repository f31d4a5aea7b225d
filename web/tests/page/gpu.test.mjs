// The page on WebGPU, by SwiftShader; a device that is lost on the way.

import assert from "node:assert/strict";
import { test } from "node:test";
import { drop, loss, noticed, stat, status, step, until, visit } from "./support/visit.mjs";

/** In the worker: destroys its devices when the page says so, as a driver's fault would. */
const DESTROYER = `
const devices = [];
const { requestDevice } = GPUAdapter.prototype;
GPUAdapter.prototype.requestDevice = async function (...options) {
  const device = await requestDevice.apply(this, options);
  devices.push(device);
  return device;
};
new BroadcastChannel("destroy").onmessage = () => devices.splice(0).forEach((device) => device.destroy());
`;

test("a run on WebGPU loses its device, says so and goes on by itself; its checkpoint goes on on the CPU", async (t) => {
  const { page, clean } = await visit(t, {
    hash: "#train?preset=mlp&hidden=16&batch=8&steps=100000&validateEvery=0&device=gpu",
    prelude: { "/volta/worker.js": DESTROYER },
  });
  await page.click("[data-test=start]");
  await until("the third step", async () => (await step(page)) >= 3);
  assert.match(await stat(page, "Runs on"), /software adapter/);
  await page.evaluate(() => new BroadcastChannel("destroy").postMessage("now"));
  await noticed(page, /was lost .*opened again.*goes on from step/);
  const before = await step(page);
  await until("it goes on", async () => (await step(page)) > before + 2 && (await status(page)) === "training");
  assert.ok((await loss(page)) > 0);
  await page.click("[data-control=pause]");
  const downloading = page.waitForEvent("download");
  await page.click(".controls .menu button[aria-label=Download]");
  await page.click("[role=menuitem]:has-text(\"Checkpoint\")");
  const { readFile } = await import("node:fs/promises");
  const bytes = await readFile(await (await downloading).path());
  await page.click(".setup label:has-text(\"CPU\")");
  await drop(page, [{ name: "moved.safetensors", bytes }]);
  await noticed(page, /“moved”.*is open at step/);
  assert.equal(await stat(page, "Runs on"), "CPU");
  clean();
});
