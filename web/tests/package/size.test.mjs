// How large the module is: what a visitor waits for.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";

test("the module does not grow beyond 1.4 MB packed by gzip and 1.05 MB by brotli", async (t) => {
  const module = await readFile(new URL("../../dist/package/volta_bg.wasm", import.meta.url));
  const [gzip, brotli] = [gzipSync(module, { level: 9 }).length, brotliCompressSync(module).length];
  t.diagnostic(`${module.length} bytes, ${gzip} by gzip, ${brotli} by brotli`);
  assert.ok(gzip <= 1_400_000, `${gzip} bytes by gzip`);
  assert.ok(brotli <= 1_050_000, `${brotli} bytes by brotli`);
});
