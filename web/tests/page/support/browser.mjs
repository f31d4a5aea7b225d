// Debian's chromium, driven as a visitor would; everything it complains about is kept.

import { after } from "node:test";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--enable-unsafe-webgpu",
];

let launched;

/** One browser for all tests of a file; it starts once. */
async function browser() {
  launched ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS });
  return launched;
}

after(async () => (await launched)?.close());

/** A visitor who was never here: a profile of their own. Without `webgpu` the browser offers none to pages. */
export async function open({ webgpu = true, viewport = { width: 1280, height: 860 }, ...more } = {}) {
  const context = await (await browser()).newContext({ viewport, ...more });
  if (!webgpu) await context.addInitScript(() => Object.defineProperty(Navigator.prototype, "gpu", { get: () => undefined }));
  const complaints = [];
  const hosts = new Set();
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`${message.type()}: ${message.text()}`);
  });
  context.on("weberror", (error) => complaints.push(`uncaught: ${error.error().stack ?? error.error()}`));
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (["http:", "https:", "ws:", "wss:"].includes(url.protocol)) hosts.add(url.host);
  });
  return { context, complaints, hosts, page: await context.newPage(), close: () => context.close() };
}
