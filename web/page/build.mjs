// Bundles the page; `web/page/build` is its face. The package's built files are copied beside the page and loaded as they are.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: { package: { type: "string", default: join(here, "../dist/package") }, out: { type: "string", default: join(here, "../dist/page") } },
});
const out = resolve(values.out);
const STATIC = ["index.html", "icon.svg", "manifest.webmanifest"];
const common = { bundle: true, format: "esm", target: "es2022", minify: true, legalComments: "none", logLevel: "warning" };

await rm(out, { recursive: true, force: true });
await mkdir(join(out, "volta"), { recursive: true });

if (values.package === "mock") {
  await build({ ...common, entryPoints: [join(here, "../tests/page/mock/index.ts")], outfile: join(out, "volta/index.js") });
} else {
  await stat(join(values.package, "index.js")).catch(() => {
    throw new Error(`${values.package} has no index.js: build the package first, with web/build`);
  });
  await cp(values.package, join(out, "volta"), { recursive: true, filter: (path) => !/\.(d\.ts|map|tgz)$|node_modules/.test(path) });
}

/** The package stays a module of its own: its worker and its .wasm lie beside it. */
const beside = { name: "package-beside", setup: ({ onResolve }) => onResolve({ filter: /^volta-ml$/ }, () => ({ path: "./volta/index.js", external: true })) };

await build({ ...common, plugins: [beside], entryPoints: [join(here, "src/main.ts")], outfile: join(out, "page.js") });
await build({ ...common, format: "iife", entryPoints: [join(here, "src/theme.ts")], outfile: join(out, "theme.js") });
await build({ ...common, entryPoints: [join(here, "css/page.css")], outfile: join(out, "page.css") });
for (const name of STATIC) await cp(join(here, name), join(out, name));

async function files(folder) {
  const found = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) found.push(...(await files(path)));
    else found.push(path);
  }
  return found.sort();
}

const all = await files(out);
const hash = createHash("sha256");
for (const path of all) hash.update(relative(out, path)).update(await readFile(path));
const names = ["./", ...all.map((path) => relative(out, path).replaceAll("\\", "/"))];
await build({
  ...common, format: "iife", entryPoints: [join(here, "src/offline.ts")], outfile: join(out, "offline.js"),
  define: { FILES: JSON.stringify(names), VERSION: JSON.stringify(hash.digest("hex").slice(0, 16)) },
});
let bytes = 0;
for (const path of await files(out)) bytes += (await stat(path)).size;
console.log(`${relative(process.cwd(), out) || "."}: ${names.length} files, ${(bytes / 1e6).toFixed(2)} MB`);
