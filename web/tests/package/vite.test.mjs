// The package as `npm pack` packs it, in a project of Vite: built, and by its server.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build, createServer } from "vite";
import { open, serve } from "./browser.mjs";

const exec = promisify(execFile);
const dist = fileURLToPath(new URL("../../dist/package/", import.meta.url));
const MAIN = `
import { init, tensor, trainClassifier } from "volta-ml";
const { device } = await init({ device: "cpu" });
const sum = await tensor([1, 2, 3]).sum().item();
const run = trainClassifier({ device: "cpu", steps: 2, batch: 4, hidden: [4], validateEvery: 0 });
let steps = 0;
for await (const _ of run) steps++;
run.terminate();
document.title = JSON.stringify({ device, sum, steps });
`;

let project;
let browser;

before(async () => {
  project = await mkdtemp(join(tmpdir(), "volta-vite-"));
  const { stdout } = await exec("npm", ["pack", dist, "--silent", "--pack-destination", project]);
  const archive = join(project, stdout.trim().split("\n").at(-1));
  await mkdir(join(project, "node_modules/volta-ml"), { recursive: true });
  await exec("tar", ["xf", archive, "--strip-components=1", "-C", join(project, "node_modules/volta-ml")]);
  await writeFile(join(project, "package.json"), JSON.stringify({ type: "module", dependencies: { "volta-ml": "*" } }));
  await writeFile(join(project, "index.html"), `<!doctype html><title></title><link rel="icon" href="data:,"><script type="module" src="/main.js"></script>`);
  await writeFile(join(project, "main.js"), MAIN);
  browser = await open();
});

after(async () => {
  await browser?.close();
  await rm(project, { recursive: true, force: true });
});

async function works(url) {
  await browser.page.goto(url);
  await browser.page.waitForFunction(() => document.title.length > 0, undefined, { timeout: 60_000 }).catch(() => {});
  assert.deepEqual(browser.complaints, []);
  assert.equal(await browser.page.title(), '{"device":"cpu","sum":6,"steps":2}');
}

test("built by Vite without settings", async () => {
  await build({ root: project, logLevel: "error", configFile: false });
  const server = await serve({ "/": join(project, "dist/") });
  try {
    await works(`${server.url}/index.html`);
  } finally {
    server.close();
  }
});

test("served by Vite without settings", async () => {
  const server = await createServer({ root: project, logLevel: "error", configFile: false, server: { port: 0 } });
  await server.listen();
  try {
    await works(server.resolvedUrls.local[0]);
  } finally {
    await server.close();
  }
});
