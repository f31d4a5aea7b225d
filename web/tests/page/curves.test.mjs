// What the curves draw of many points.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

async function load(t, path) {
  const folder = await mkdtemp(join(tmpdir(), "volta-curves-"));
  t.after(() => rm(folder, { recursive: true }));
  const outfile = join(folder, "module.mjs");
  await build({ entryPoints: [join(dirname(fileURLToPath(import.meta.url)), "../../page/src", path)], bundle: true, format: "esm", outfile, logLevel: "error" });
  return import(outfile);
}

test("a hundred thousand points become four a column, and no spike is lost", async (t) => {
  const { decimate } = await load(t, "chart/decimate.ts");
  const x = Float64Array.from({ length: 100_000 }, (_, i) => i + 1);
  const y = Float64Array.from(x, (step) => (step === 54_321 ? 50 : step === 12_345 ? -50 : Math.sin(step)));
  const kept = decimate(x, y, 1, 100_000, 800);
  assert.ok(kept.length <= 4 * 801, `${kept.length}`);
  assert.ok(kept.includes(54_320) && kept.includes(12_344));
  assert.deepEqual(kept, [...kept].sort((a, b) => a - b));
});

test("steps that measured nothing are passed over", async (t) => {
  const { decimate, smooth } = await load(t, "chart/decimate.ts");
  const x = Float64Array.of(1, 2, 3, 4), y = Float64Array.of(NaN, 5, NaN, 7);
  assert.deepEqual(decimate(x, y, 1, 4, 100), [1, 3]);
  assert.deepEqual([...smooth(y, 0.5)].map((value) => Math.round(value * 100) / 100), [NaN, 5, NaN, 6.33]);
});

test("ticks are round numbers within the scale", async (t) => {
  const { linear, logarithmic } = await load(t, "chart/scale.ts");
  assert.deepEqual(linear(0, 4.2, 5).ticks, [0, 1, 2, 3, 4]);
  assert.deepEqual(logarithmic(0.1, 10).ticks.length > 3, true);
  for (const scale of [linear(5, 5, 4), linear(0, 0, 4), logarithmic(0, 0)]) assert.ok(Number.isFinite(scale.at(1)) && scale.ticks.every(Number.isFinite));
});
