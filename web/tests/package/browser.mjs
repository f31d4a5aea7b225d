// Chromium, and a server of files, for tests.

import { createServer } from "node:http";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".css": "text/css" };

/** Serves folders by their paths' beginnings; texts stand for files of their own. */
export async function serve(folders, texts = {}) {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    try {
      const prefix = Object.keys(folders).find((known) => path.startsWith(known));
      const body = path in texts ? texts[path] : await readFile(join(folders[prefix], path.slice(prefix.length)));
      response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/html" });
      response.end(body);
    } catch {
      response.writeHead(404);
      response.end(path === "/favicon.ico" ? "" : `${path} is not there`);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://localhost:${server.address().port}`, close: () => server.close() };
}

/** A browser of its own, with WebGPU by SwiftShader or without. What a page says wrong is collected. */
export async function open({ webgpu = true } = {}) {
  const profile = await mkdtemp(join(tmpdir(), "volta-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: webgpu ? [...FLAGS, "--enable-unsafe-webgpu"] : [...FLAGS, "--disable-features=WebGPU,WebGPUService"],
  });
  const complaints = [];
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  return {
    page,
    complaints,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}
