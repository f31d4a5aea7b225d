// Chromium takes every shader of the snapshots, but for those that need what its adapter lacks or what no browser has. Tint is stricter
// than naga, which the Rust tests ask.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { open, serve } from "../package/browser.mjs";

const folders = [fileURLToPath(new URL("../../../crates/gpu/tests/snapshots/", import.meta.url)), process.env.VOLTA_SHADERS].filter(Boolean);

// What a shader needs, by what is in its text, and the feature of an adapter that has it; none where no browser has it.
const NEEDS = [
  [/\bcoop_mat|coopLoad|coopMultiplyAdd/, "cooperative matrices", null],
  [/\b(i64|u64)\b|\d+l[iu]\b/, "64-bit integers", null],
  [/\bsubgroup[A-Z]\w*\(|\bsubgroup_\w+/, "subgroups, which wgpu does not ask a browser for", null],
  [/^enable f16;/m, "16-bit floats", "shader-f16"],
];

/** The shaders of a file: each begins below a comment that stands by itself. */
function split(name, text) {
  const [first, ...rest] = text.split(/^\/\/ (.*)$/m);
  const shaders = first.trim() === "" ? [] : [{ name, source: first }];
  for (let k = 0; k < rest.length; k += 2) shaders.push({ name: `${name}: ${rest[k]}`, source: rest[k + 1] });
  return shaders;
}

async function read(folder) {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".wgsl")).sort();
  return (await Promise.all(names.map(async (name) => split(name, await readFile(join(folder, name), "utf8"))))).flat();
}

/** In the page: what the browser says against each of the shaders. */
async function complaints(sources) {
  const found = [];
  for (const code of sources) {
    globalThis.device.pushErrorScope("validation");
    const { messages } = await globalThis.device.createShaderModule({ code }).getCompilationInfo();
    const refused = await globalThis.device.popErrorScope();
    const lines = code.split("\n");
    const errors = messages.filter(({ type }) => type === "error").map(({ message, lineNum }) => `${message}\n    ${lines[lineNum - 1]}`);
    found.push(errors.length > 0 || !refused ? errors : [refused.message]);
  }
  return found;
}

test("Chromium takes the shaders of the snapshots", async (t) => {
  const shaders = (await Promise.all(folders.map(read))).flat();
  const server = await serve({}, { "/": "<!doctype html><title>shaders</title><link rel=\"icon\" href=\"data:,\">" });
  const browser = await open();
  t.after(async () => {
    await browser.close();
    server.close();
  });
  await browser.page.goto(`${server.url}/`);
  const features = await browser.page.evaluate(async () => {
    const adapter = await navigator.gpu.requestAdapter();
    globalThis.device = await adapter.requestDevice({ requiredFeatures: [...adapter.features] });
    return [...adapter.features];
  });
  const lacking = new Map();
  const tried = shaders.filter(({ source }) => {
    const missing = NEEDS.find(([text, , feature]) => text.test(source) && !features.includes(feature));
    if (missing) lacking.set(missing[1], (lacking.get(missing[1]) ?? 0) + 1);
    return !missing;
  });
  const found = await browser.page.evaluate(complaints, tried.map(({ source }) => source));
  for (const [what, count] of lacking) t.diagnostic(`${count} need ${what}`);
  t.diagnostic(`${tried.length} of ${shaders.length} are tried`);
  assert.ok(tried.length >= 8, `only ${tried.length} of ${shaders.length} are tried`);
  assert.deepEqual(found.flatMap((errors, k) => (errors.length > 0 ? [`${tried[k].name}\n  ${errors.join("\n  ")}`] : [])), []);
});
