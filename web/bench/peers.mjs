// Steps of Volta's package beside jax-js's, in one tab of Chromium: `npm install --no-save @jax-js/jax` in web/, then
// `node web/bench/peers.mjs [SECONDS [PART OF A NAME]]`. One JSON line a measurement.

import { fileURLToPath } from "node:url";
import { open, serve } from "../tests/package/browser.mjs";

const [seconds = "5", part = ""] = process.argv.slice(2);
const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const { readFile } = await import("node:fs/promises");
const server = await serve({ "/package/": path("../dist/package/"), "/jax/": path("../node_modules/@jax-js/jax/dist/") }, { "/": await readFile(path("peers.html"), "utf8") });
for (const what of ["mlp", "gpt"]) {
  for (const who of ["volta gpu", "jax webgpu", "volta cpu", "jax wasm"]) {
    if (!`${what} ${who}`.includes(part)) continue;
    const browser = await open();
    await browser.page.goto(`${server.url}/`);
    await browser.page.waitForFunction("window.ready");
    const found = await browser.page.evaluate(([...given]) => window.measure(...given), [who, what, Number(seconds)]).catch((error) => ({ who, what, error: error.message }));
    console.log(JSON.stringify(found));
    await browser.close();
  }
}
server.close();
