// The types that the package ships.

import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

test("types allow what is right and refuse what is wrong", async () => {
  await promisify(execFile)(path("../../node_modules/.bin/tsc"), ["--project", path("types")]).catch((error) => {
    throw new Error(error.stdout);
  });
});
