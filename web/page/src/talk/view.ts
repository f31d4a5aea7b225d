/** The view “Talk”: a model goes on from a text; every token is tinted by how sure the model was of it. */

import type { App, View } from "../app.ts";
import { button, h, setText } from "../parts/dom.ts";
import { emptyState } from "../parts/empty.ts";
import { percent } from "../parts/format.ts";
import { announce, notice, sentence } from "../parts/notice.ts";
import { Picker } from "../parts/picker.ts";
import { eachFrame } from "../parts/signal.ts";
import { Slider } from "../parts/slider.ts";
import { chooseWriter, modelsChanged, writers, type Writer } from "./models.ts";

/** Texts that stay on the page. */
const MAX_TEXTS = 20;

export function talkView(app: App): View {
  let chosen: string | undefined;
  let writing: AbortController | undefined;
  const picker = new Picker("Model", (id) => {
    chosen = id;
    update();
  });
  const about = h("p", { class: "about" });
  const prompt = h("textarea", { class: "prompt", rows: 3, "aria-label": "The text to go on from", placeholder: "One day", spellcheck: "false" });
  const temperature = new Slider({ label: "Temperature", min: 0, max: 2, step: 0.05, value: 0.8, format: (x) => x.toFixed(2), about: "How freely it writes; 0 takes the likeliest token" });
  const topP = new Slider({ label: "Top-p", min: 0.05, max: 1, step: 0.05, value: 0.95, format: (x) => x.toFixed(2), about: "It chooses among the likeliest tokens of this probability together" });
  const length = new Slider({ label: "Length", min: 20, max: 1000, step: 20, value: 200, format: (x) => `${x} tokens`, about: "How many tokens it writes" });
  const write = button({ class: "button primary", icon: "play", "data-test": "write" }, "Write", () => void begin());
  const stop = button({ class: "button", icon: "stop" }, "Stop", () => writing?.abort());
  const texts = h("div", { class: "texts" });
  const legend = h("p", { class: "legend" }, "Surprise: ", ...[0, 1, 2, 3, 4].map((tint) => h("span", { class: `token tint-${tint}` }, ["> 80 %", "> 50 %", "> 20 %", "> 5 %", "less"][tint])));
  const nothing = emptyState("No language model yet", "Train one, or drop a model of the command line or of Hugging Face (GPT-2: config.json, its tokenizer's files and model.safetensors together) anywhere on this page.", { label: "Train a language model", work: () => {
    app.chooseKind("language");
    app.go("train");
  } });
  const body = h(
    "div", { class: "talk" },
    h("section", { class: "panel talk-panel", "aria-label": "What to write" }, picker.element, about, prompt, temperature.element, topP.element, length.element, h("div", { class: "row" }, write, stop), h("p", { class: "hint" }, "Ctrl + Enter writes.")),
    h("section", { class: "talk-main", "aria-label": "What it wrote" }, legend, texts),
  );
  const element = h("div", {}, nothing, body);
  stop.hidden = true;
  prompt.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void begin();
  });

  const update = eachFrame(() => {
    const all = writers(app);
    nothing.hidden = all.length > 0;
    body.hidden = all.length === 0;
    const writer = current();
    picker.show(all.map(({ id, name, about: what }) => ({ id, label: `${name} (${what.replace(/\d+.*parameters, /, "")})` })), writer?.id);
    setText(about, writer ? `${writer.layers} layers, ${writer.heads} heads. ${writer.open ? "It is opened from the browser's storage when it writes." : ""}` : "");
    if (texts.childElementCount === 0) texts.append(h("p", { class: "empty paper-empty" }, "What the model writes stands here. Pale words are those it was sure of; tinted ones surprised it."));
  });

  function current(): Writer | undefined {
    const writer = chooseWriter(app, chosen);
    chosen = writer?.id;
    return writer;
  }

  async function begin(): Promise<void> {
    if (writing) return;
    let writer = current();
    if (!writer) return;
    const abort = (writing = new AbortController());
    write.hidden = true;
    stop.hidden = false;
    const start = prompt.value;
    const paper = h("article", { class: "paper" }, h("header", {}, `${writer.name}, temperature ${temperature.value.toFixed(2)}`));
    const text = h("p", { class: "paper-text" }, h("b", {}, start));
    paper.append(text);
    texts.querySelector(".paper-empty")?.remove();
    texts.prepend(paper);
    while (texts.childElementCount > MAX_TEXTS) texts.lastElementChild?.remove();
    let all = start;
    try {
      if (writer.open) {
        await writer.open();
        writer = writers(app).find((one) => one.id === chosen) ?? writer;
      }
      const options = { prompt: start, length: length.value, temperature: temperature.value, topP: topP.value, signal: abort.signal };
      for await (const token of writer.generate(options)) {
        text.append(h("span", { class: `token tint-${tint(token.probability)}`, title: percent(token.probability) }, token.text));
        all += token.text;
      }
      announce(`It wrote: ${all}`);
    } catch (error) {
      if (!abort.signal.aborted) notice("error", `The model could not write. ${sentence(error)}`, { key: "talk" });
    } finally {
      writing = undefined;
      write.hidden = false;
      stop.hidden = true;
      if (document.activeElement === document.body) write.focus();
      paper.append(button({ class: "link-button" }, "Go on from here", () => {
        prompt.value = all;
        prompt.focus();
      }));
    }
  }

  modelsChanged.subscribe(update);
  app.registry.changed.subscribe(() => element.isConnected && update());
  return { element, show: update };
}

/** Five tints: none for what the model expected. */
function tint(probability: number): number {
  const bounds = [0.8, 0.5, 0.2, 0.05];
  const found = bounds.findIndex((least) => probability > least);
  return found < 0 ? bounds.length : found;
}
