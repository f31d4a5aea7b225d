// The address, phones, the keyboard alone, names for screen readers, themes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { loss, noticed, status, tab, until, visit } from "./support/visit.mjs";

test("settings are shared by the address", async (t) => {
  const { page, clean, server } = await visit(t, { hash: "#train?preset=small&layers=3&learningRate=0.004&device=cpu" });
  const value = (key) => page.inputValue(`#field-${key}`);
  assert.deepEqual([await value("layers"), await value("learningRate"), await value("width")], ["3", "0.004", "128"]);
  await page.click("summary:has-text(\"Training\")");
  await page.fill("#field-steps", "123");
  await until("the address", () => page.url().includes("steps=123"));
  await page.click("text=Copy a link to these settings");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(link.startsWith(server.url));
  await page.goto("about:blank");
  await page.goto(link);
  await page.waitForSelector("#field-steps", { state: "attached" });
  assert.deepEqual([await value("steps"), await value("layers")], ["123", "3"]);
  await tab(page, "bench");
  await until("the address of the view", () => page.url().includes("#bench"));
  await page.goBack();
  await until("back at Train", () => page.isVisible("#view-train"));
  clean();
});

test("an address that asks for what cannot be is told of, and the page works", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?preset=nonsense&layers=-7&tokenizer=%3Cscript%3E&steps=1e99&x=y" });
  await noticed(page, /no preset “nonsense”/);
  await noticed(page, /Layers is a whole number/);
  assert.equal(await page.inputValue("#field-layers"), "2");
  clean();
});

test("a wrong value is told beside the button, which waits for a right one", async (t) => {
  const { page, clean } = await visit(t);
  await page.click("summary:has-text(\"Model\")");
  await page.fill("#field-heads", "5");
  await until("the conflict", async () => /5 heads do not divide a width of 64/.test(await page.textContent(".problem")));
  assert.equal(await page.isDisabled("[data-test=start]"), true);
  await page.fill("#field-heads", "many");
  assert.match(await page.textContent(".problem"), /Heads is a whole number/);
  await page.fill("#field-heads", "4");
  await page.click("summary:has-text(\"Training\")");
  await page.fill("#field-steps", "10");
  await until("the other conflict", async () => /warm-up of 20 steps is longer/.test(await page.textContent(".problem")));
  await page.fill("#field-warmup", "5");
  await until("no problem", async () => (await page.textContent(".problem")) === "");
  assert.equal(await page.isDisabled("[data-test=start]"), false);
  clean();
});

test("on a phone nothing is wider than the window, in any view", async (t) => {
  const { page, clean } = await visit(t, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, hash: "#train?preset=mlp&hidden=32&steps=60" });
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok((await overflow()) <= 0);
  await page.tap("[data-test=start]");
  await until("it is over", async () => (await status(page)) === "finished");
  for (const id of ["train", "talk", "draw", "inside", "bench"]) {
    await page.tap(`[data-tab=${id}]`);
    await page.waitForTimeout(200);
    assert.ok((await overflow()) <= 0, id);
  }
  await page.tap("[data-tab=draw]");
  const box = await (await page.$(".pad")).boundingBox();
  await page.touchscreen.tap(box.x + box.width / 2, box.y + box.height / 2);
  await until("a verdict", async () => /^It/.test(await page.textContent(".verdict")));
  clean();
});

/** Presses Tab until the focused element fits. */
async function tabTo(page, fits) {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(fits)) return;
  }
  assert.fail(`nothing focusable fits ${fits}`);
}

test("everything is reached by keyboard alone", async (t) => {
  const { page, clean } = await visit(t);
  await page.waitForSelector("[data-test=start-digits]");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await tabTo(page, () => document.activeElement.dataset.test === "start-digits");
  await page.keyboard.press("Enter");
  await until("a loss", async () => (await loss(page)) > 0);
  await page.focus("[data-tab=train]");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.tab), "draw");
  assert.equal(await page.isVisible("#view-draw"), true);
  await tabTo(page, () => document.activeElement.className === "pad");
  await page.keyboard.press("4");
  await until("a verdict", async () => /^It/.test(await page.textContent(".verdict")));
  await page.keyboard.press("Backspace");
  for (const key of [" ", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", " "]) await page.keyboard.press(key);
  await until("a verdict of the brush", async () => /^It/.test(await page.textContent(".verdict")));
  await page.focus("[data-tab=draw]");
  await page.keyboard.press("Home");
  await tabTo(page, () => document.activeElement.dataset.control === "stop" || document.activeElement.dataset.control === "extend");
  await tabTo(page, () => document.activeElement.getAttribute("aria-label") === "More");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "menuitem");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "More");
  await page.focus(".chart canvas");
  await page.keyboard.press("ArrowLeft");
  assert.match(await page.textContent("#status"), /^Step .*: /);
  clean();
});

test("whatever can be used has a name, and identifiers are unique", async (t) => {
  const { page, clean } = await visit(t, { hash: "#train?preset=mlp&hidden=32&steps=20" });
  await page.click("[data-test=start]");
  await until("it is over", async () => (await status(page)) === "finished");
  for (const id of ["train", "talk", "draw", "inside", "bench"]) {
    await tab(page, id);
    await page.waitForTimeout(100);
    const { nameless, twice } = await page.evaluate(() => {
      const named = (one) => (one.getAttribute("aria-label") ?? "").trim() || one.textContent.trim() || one.labels?.length || one.getAttribute("aria-labelledby");
      const all = [...document.querySelectorAll("button, input, select, textarea, canvas, [role=tab], dialog, [role=progressbar]")];
      const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
      return { nameless: all.filter((one) => !named(one)).map((one) => one.outerHTML.slice(0, 120)), twice: ids.filter((one, i) => ids.indexOf(one) !== i) };
    });
    assert.deepEqual({ nameless, twice }, { nameless: [], twice: [] }, id);
  }
  clean();
});

test("dark and light follow the system, and the switch is remembered", async (t) => {
  const { page, clean } = await visit(t, { colorScheme: "dark" });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await paper();
  await page.click("#theme");
  const light = await paper();
  assert.notEqual(light, dark);
  await page.reload();
  assert.equal(await paper(), light);
  clean();
});
