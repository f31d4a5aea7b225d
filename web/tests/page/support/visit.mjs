// A visit of the built page: what was asked of whom and what the browser complained about is checked when it ends.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { open } from "./browser.mjs";
import { serve } from "./server.mjs";

const dist = join(dirname(fileURLToPath(import.meta.url)), "../../../dist");
/** The built page; and one with a stand-in for the package, which can be told to fail. */
const REAL = process.env.VOLTA_PAGE ?? join(dist, "page");
const MOCK = join(dist, "mock-page");

/** How long training may take until something is seen, on a loaded machine without a GPU. */
export const PATIENT = 120_000;

/** `prelude` is put in front of files by their paths, `before` runs in the page first; complaints that fit `allow` are expected. */
export async function visit(t, { hash = "", before, allow = [], mock = false, prelude = {}, ...options } = {}) {
  const server = await serve(mock ? MOCK : REAL, { prelude });
  const browser = await open(options);
  const { page, context } = browser;
  page.setDefaultTimeout(PATIENT);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => {});
  if (before) await page.addInitScript(before);
  t.after(async () => {
    await browser.close();
    await server.close();
  });
  await page.goto(server.url + hash, { waitUntil: "domcontentloaded" });
  await page.waitForSelector("[role=tab]");
  return {
    ...browser, server, page,
    /** Nothing was complained about, and nobody else was asked. */
    clean() {
      const unexpected = browser.complaints.filter((complaint) => !allow.some((pattern) => pattern.test(complaint)));
      assert.deepEqual(unexpected, []);
      assert.deepEqual([...browser.hosts], [new URL(server.url).host]);
    },
  };
}

/** A number of the run's list of numbers; NaN while there is none. */
export async function stat(page, label) {
  return page.$$eval(".run .stats div", (boxes, wanted) => {
    const box = boxes.find((one) => one.querySelector("dt").textContent === wanted);
    return box?.querySelector("dd").textContent ?? "";
  }, label);
}

export async function step(page) {
  return Number((await stat(page, "Step")).split("/")[0].replaceAll(",", ""));
}

export async function loss(page) {
  return Number(await stat(page, "Loss"));
}

/** Waits until something holds. */
export async function until(what, holds, patience = PATIENT) {
  const end = Date.now() + patience;
  for (;;) {
    if (await holds()) return;
    if (Date.now() > end) assert.fail(`after ${patience / 1000} s still not: ${what}`);
    await new Promise((later) => setTimeout(later, 100));
  }
}

export const status = (page) => page.textContent(".run .status");
export const control = (page, key) => page.click(`[data-control=${key}]`);
export const tab = (page, id) => page.click(`[data-tab=${id}]`);

/** Drops files on the page as a hand would. */
export async function drop(page, files) {
  const given = files.map(({ name, bytes }) => ({ name, bytes: [...bytes] }));
  const transfer = await page.evaluateHandle((list) => {
    const data = new DataTransfer();
    for (const { name, bytes } of list) data.items.add(new File([new Uint8Array(bytes)], name));
    return data;
  }, given);
  await page.dispatchEvent("body", "dragenter", { dataTransfer: transfer });
  await page.dispatchEvent("body", "dragover", { dataTransfer: transfer });
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
}

export async function notices(page) {
  return page.$$eval(".notice p", (all) => all.map((one) => one.textContent));
}

export async function noticed(page, pattern) {
  await until(`a notice like ${pattern}`, async () => (await notices(page)).some((text) => pattern.test(text)), PATIENT);
}
