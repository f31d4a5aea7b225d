// How large the published module is: what a visitor waits for.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";

const dist = new URL("../../dist/", import.meta.url);
const profile = (await readFile(new URL("profile", dist), "utf8")).trim();

test("the module is at most 1.1 MB packed by gzip and 0.8 MB by brotli", { skip: profile !== "web" && "built for tests, not as it is published" }, async (t) => {
  const module = await readFile(new URL("package/volta_bg.wasm", dist));
  const [gzip, brotli] = [gzipSync(module, { level: 9 }).length, brotliCompressSync(module).length];
  t.diagnostic(`${module.length} bytes, ${gzip} by gzip, ${brotli} by brotli`);
  assert.ok(gzip <= 1_100_000, `${gzip} bytes by gzip`);
  assert.ok(brotli <= 800_000, `${brotli} bytes by brotli`);
});
