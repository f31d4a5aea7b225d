// Asks Chromium whether it takes the shaders in files of WGSL: those of the snapshots, or of the folders that are named.
//
//   node web/tests/shaders/check.mjs [FOLDER…]
//
// A file has one shader or several, each below a line that says what it computes. Shaders that need what the adapter lacks, or
// what no browser has, are counted apart.
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const folders = process.argv.length > 2 ? process.argv.slice(2) : [join(root, "crates/gpu/tests/snapshots")];

// What a shader needs, by what is in its text, and the feature of an adapter that has it; none where no browser has it.
const needs = [
  [/\bcoop_mat|coopLoad|coopMultiplyAdd/, "cooperative matrices", null],
  [/\b(i64|u64)\b|\d+l[iu]\b/, "64-bit integers", null],
  [/\bsubgroup[A-Z]\w*\(|\bsubgroup_\w+/, "subgroups, which wgpu does not ask a browser for", null],
  [/^enable f16;/m, "f16", "shader-f16"],
];

/** The shaders of a file: each begins below a comment that stands by itself. */
function split(name, text) {
  const parts = text.split(/^\/\/ (.*)$/m);
  const shaders = [];
  if (parts[0].trim() !== "") shaders.push({ name, source: parts[0] });
  for (let k = 1; k < parts.length; k += 2) shaders.push({ name: `${name}: ${parts[k]}`, source: parts[k + 1] });
  return shaders;
}

async function read(folder) {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".wgsl")).sort();
  const files = names.map(async (name) => split(name, await readFile(join(folder, name), "utf8")));
  return (await Promise.all(files)).flat();
}

const shaders = (await Promise.all(folders.map(read))).flat();
if (shaders.length === 0) throw new Error(`there are no shaders (*.wgsl) in ${folders.join(", ")}`);

// WebGPU needs a page that is served.
const server = createServer((_, answer) => {
  answer.setHeader("content-type", "text/html");
  answer.end("<!doctype html><title>shaders</title>");
}).listen(0, "127.0.0.1");
await new Promise((listening) => server.once("listening", listening));
const profile = await mkdtemp(join(tmpdir(), "shaders-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-unsafe-webgpu",
  ],
});
try {
  const page = browser.pages()[0] ?? (await browser.newPage());
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const features = await page.evaluate(async () => {
    const adapter = await navigator.gpu?.requestAdapter();
    if (!adapter) throw new Error("this browser has no WebGPU");
    globalThis.device = await adapter.requestDevice({ requiredFeatures: [...adapter.features] });
    return [...adapter.features];
  });
  const skipped = new Map();
  const refused = [];
  let taken = 0;
  for (const { name, source } of shaders) {
    const missing = needs.find(([text, , feature]) => text.test(source) && !features.includes(feature));
    if (missing) {
      skipped.set(missing[1], (skipped.get(missing[1]) ?? 0) + 1);
      continue;
    }
    const errors = await page.evaluate(async (code) => {
      globalThis.device.pushErrorScope("validation");
      const { messages } = await globalThis.device.createShaderModule({ code }).getCompilationInfo();
      await globalThis.device.popErrorScope();
      const lines = code.split("\n");
      return messages
        .filter((message) => message.type === "error")
        .map((message) => `${message.message}\n    ${lines[message.lineNum - 1]}`);
    }, source);
    if (errors.length > 0) refused.push(`${name}\n  ${errors.join("\n  ")}`);
    else taken += 1;
  }
  console.log(`${taken} of ${shaders.length} shaders are taken by Chromium ${browser.browser()?.version() ?? ""}`);
  for (const [what, count] of skipped) console.log(`${count} not tried: they need ${what}`);
  if (refused.length > 0) {
    console.error(`${refused.length} refused:\n${refused.join("\n")}`);
    process.exitCode = 1;
  }
} finally {
  await browser.close();
  server.close();
  await rm(profile, { recursive: true, force: true });
}
