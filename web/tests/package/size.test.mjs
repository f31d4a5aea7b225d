// How large the module is: what a visitor waits for.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

/** Bytes by gzip. docs/benchmarks.md has what is wanted. */
const MAX_PACKED_BYTES = 1_480_000;

test("the module does not grow", async (t) => {
  const module = await readFile(new URL("../../dist/package/volta_bg.wasm", import.meta.url));
  const packed = gzipSync(module, { level: 9 }).length;
  t.diagnostic(`${module.length} bytes, ${packed} by gzip`);
  assert.ok(packed <= MAX_PACKED_BYTES, `${packed} bytes by gzip`);
});
