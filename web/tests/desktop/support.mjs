// The program `volta`, as it is built, in a folder of its own.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const program = process.env.VOLTA_PROGRAM ?? ["debug", "release"].map((profile) => join(target, profile, "volta")).find(existsSync);

/** The Python that reads safetensors files, where there is one. */
export const python = process.env.VOLTA_PYTHON ?? join(target, "python/bin/python");

/** A folder that goes with the test, and `volta` in it, on one thread of the CPU. */
export async function desktop(t) {
  const folder = await mkdtemp(join(tmpdir(), "volta-desktop-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const environment = { ...process.env, VOLTA_DEVICE: "cpu", VOLTA_THREADS: "1" };
  const run = (name, args) => promisify(execFile)(name, args, { cwd: folder, env: environment, maxBuffer: 1 << 26 });
  return { folder, run, volta: (...args) => run(program, args) };
}

/** The losses of every step that a run of the program has written, by step. */
export async function losses(folder, name) {
  const rows = (await readFile(join(folder, "models", name, "metrics.csv"), "utf8")).trim().split("\n").map((row) => row.split(","));
  return new Map(rows.filter(([, , what]) => what === "train/loss").map(([step, , , value]) => [Number(step), Number(value)]));
}

/** A safetensors file's tensors of 32-bit floats, and its texts. */
export function safetensors(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const { __metadata__: texts = {}, ...entries } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const floats = Object.entries(entries).filter(([, { dtype }]) => dtype === "F32");
  const values = floats.map(([name, { data_offsets: [begin, end] }]) => [name, new Float32Array(bytes.slice(8 + length + begin, 8 + length + end).buffer)]);
  return { texts, names: Object.keys(entries).sort(), tensors: Object.fromEntries(values) };
}
