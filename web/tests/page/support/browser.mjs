// Debian's chromium, driven as a visitor would; everything it complains about is kept.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/** A browser with a new profile. Without `webgpu` it offers none to pages. */
export async function open({ webgpu = true, viewport = { width: 1280, height: 860 }, ...more } = {}) {
  const profile = await mkdtemp(join(tmpdir(), "volta-page-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, viewport,
    args: [...FLAGS, webgpu ? "--enable-unsafe-webgpu" : "--disable-features=WebGPU,WebGPUService"],
    ...(webgpu ? {} : { ignoreDefaultArgs: ["--enable-unsafe-webgpu"] }), ...more,
  });
  const complaints = [];
  const hosts = new Set();
  const watch = (page) => {
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(`${message.type()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => complaints.push(`uncaught: ${error.stack ?? error}`));
  };
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (["http:", "https:", "ws:", "wss:"].includes(url.protocol)) hosts.add(url.host);
  });
  context.on("page", watch);
  context.pages().forEach(watch);
  return {
    context, complaints, hosts, page: context.pages()[0] ?? (await context.newPage()),
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
