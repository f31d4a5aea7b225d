// The README's examples run, and do what it says.

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";

const dist = new URL("../../dist/package/", import.meta.url);
const readme = await readFile(new URL("README.md", dist), "utf8");
const examples = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code);

async function run(code) {
  const path = fileURLToPath(new URL(`example-${process.pid}.mjs`, dist));
  await writeFile(path, code.replace('from "volta-ml"', 'from "./index.js"').replace("steps: 300", "steps: 5"));
  try {
    return (await promisify(execFile)(process.execPath, [path])).stdout;
  } finally {
    await rm(path);
  }
}

test("XOR is learned", async () => {
  assert.ok(Number(await run(examples[0])) < 0.05);
});

test("a run is trained, and the program ends", async () => {
  assert.match(await run(examples[1]), /^1 \d/);
});
