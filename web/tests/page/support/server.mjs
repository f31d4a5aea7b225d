// A folder over HTTP on the loopback, with the headers that `volta web` sends. Remembers what was asked for.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
  ".wasm": "application/wasm", ".json": "application/json", ".webmanifest": "application/manifest+json",
};

/** `prelude` is put in front of files by their paths. */
export async function serve(folder, { isolated = true, prelude = {} } = {}) {
  const asked = [];
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    asked.push(path);
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    try {
      const content = Buffer.concat([Buffer.from(prelude[path] ?? ""), await readFile(file)]);
      const isolation = isolated ? { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" } : {};
      response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream", ...isolation });
      response.end(content);
    } catch {
      response.writeHead(404, { "Content-Type": "text/plain" });
      response.end("not found");
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { url: `http://127.0.0.1:${server.address().port}/`, asked, close: () => new Promise((closed) => { server.closeAllConnections(); server.close(closed); }) };
}
