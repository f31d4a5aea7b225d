/** Where a head looks: each row is a token, each column what it looks at. */

import type { AttentionMap } from "volta-ml";
import type { App } from "../app.ts";
import { button, fill, h, setText } from "../parts/dom.ts";
import { percent } from "../parts/format.ts";
import { announce, attempt } from "../parts/notice.ts";
import { color, themeChanged } from "../parts/theme_switch.ts";
import { chooseWriter, modelsChanged, writers } from "../talk/models.ts";
import type { Panel } from "./view.ts";
import type { Session } from "../runs/session.ts";
import { Picker } from "../parts/picker.ts";

/** Letters of a token that are shown beside its row. */
const MAX_LABEL = 8;

export function attentionPanel(app: App): Panel {
  let chosen: string | undefined;
  let map: AttentionMap | undefined;
  let cell: [number, number] | undefined;
  let session: Session | undefined;
  const picker = new Picker("Model", (id) => {
    chosen = id;
    map = undefined;
    update();
    paint();
  });
  const text = h("input", { type: "text", "aria-label": "Text to look at", value: "Lily had a red ball.", maxlength: 200 });
  const layer = h("select", { "aria-label": "Layer" });
  const head = h("select", { "aria-label": "Head" });
  const canvas = h("canvas", { class: "attention", role: "img", tabindex: 0, "aria-label": "Attention map" });
  const readout = h("p", { class: "attention-readout" });
  const ask = button({ class: "button", "data-test": "attention" }, "Show", () => attempt("The attention could not be computed.", compute));
  const about = h("p", { class: "about" }, "Each row is a token of the text, each column a token before it: the stronger the colour, the more the row's token takes from there.");
  const element = h("section", { class: "card card-wide" }, h("h2", {}, "Attention"), about, h("div", { class: "row attention-form" }, picker.element, text, h("label", {}, "Layer ", layer), h("label", {}, "Head ", head), ask), canvas, readout);

  async function compute(): Promise<void> {
    const writer = writers(app).find(({ id }) => id === chosen);
    if (!writer) return;
    if (writer.open) await writer.open();
    map = await writer.attention(text.value, Number(layer.value), Number(head.value));
    cell = undefined;
    paint();
    announce(`The attention of head ${Number(head.value) + 1} of layer ${Number(layer.value) + 1} over ${map.tokens.length} tokens is shown.`);
  }

  for (const select of [layer, head]) select.addEventListener("change", () => map && void attempt("The attention could not be computed.", compute));
  text.addEventListener("keydown", (event) => event.key === "Enter" && ask.click());

  const update = (): void => {
    const all = writers(app);
    element.hidden = all.length === 0;
    const ids = new Set(all.map(({ id }) => id));
    if (!chosen || !ids.has(chosen)) chosen = chooseWriter(app, session?.id)?.id;
    const writer = all.find(({ id }) => id === chosen);
    picker.show(all.map(({ id, name }) => ({ id, label: name })), chosen);
    options(layer, writer?.layers ?? 1);
    options(head, writer?.heads ?? 1);
  };

  /** Where the cells lie: labels take what the longest of them needs, and are upright if they are short. */
  const geometry = (): { left: number; top: number; size: number; n: number } => {
    const n = map?.tokens.length ?? 0;
    const longest = Math.max(1, ...(map?.tokens ?? []).map((token) => Math.min(MAX_LABEL, token.length)));
    const left = 8 * longest + (longest <= 2 ? 14 : 10), top = longest <= 2 ? 20 : left;
    return { left, top, n, size: Math.max(6, Math.min(22, Math.floor((canvas.parentElement!.clientWidth - 40 - left) / Math.max(1, n)))) };
  };

  const paint = (): void => {
    canvas.hidden = map === undefined;
    if (!map) return setText(readout, "");
    const { left, top, n, size } = geometry();
    const ratio = devicePixelRatio || 1;
    const width = left + n * size + 2, height = top + n * size + 2;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    if (!pen) return;
    pen.scale(ratio, ratio);
    const accent = color("--accent"), grid = color("--grid"), ink = color("--muted");
    for (let row = 0; row < n; row++) {
      for (let column = 0; column < n; column++) {
        const weight = map.weights[row * n + column] ?? 0;
        pen.globalAlpha = 1;
        pen.fillStyle = grid;
        if (column <= row) pen.fillRect(left + column * size, top + row * size, size - 1, size - 1);
        pen.fillStyle = accent;
        pen.globalAlpha = Math.min(1, Math.sqrt(weight));
        pen.fillRect(left + column * size, top + row * size, size - 1, size - 1);
      }
    }
    pen.globalAlpha = 1;
    pen.fillStyle = ink;
    pen.font = `${Math.min(12, size + 1)}px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
    pen.textBaseline = "middle";
    map.tokens.forEach((token, i) => {
      pen.textAlign = "right";
      pen.fillText(visible(token).slice(0, MAX_LABEL), left - 5, top + i * size + size / 2);
      pen.save();
      pen.translate(left + i * size + size / 2, top - 5);
      const upright = top < left;
      if (!upright) pen.rotate(-Math.PI / 2);
      pen.textAlign = upright ? "center" : "left";
      pen.fillText(visible(token).slice(0, MAX_LABEL), 0, upright ? -4 : 0);
      pen.restore();
    });
    if (cell) {
      pen.strokeStyle = color("--ink");
      pen.strokeRect(left + cell[1] * size - 0.5, top + cell[0] * size - 0.5, size, size);
      setText(readout, tell());
    } else {
      setText(readout, "Point at a cell, or move with the arrow keys.");
    }
  };

  const tell = (): string => {
    if (!map || !cell) return "";
    const [row, column] = cell;
    const weight = map.weights[row * map.tokens.length + column] ?? 0;
    return `“${visible(map.tokens[row] ?? "")}” takes ${percent(weight)} from “${visible(map.tokens[column] ?? "")}”`;
  };

  canvas.addEventListener("pointermove", (event) => {
    const { left, top, size, n } = geometry();
    const row = Math.floor((event.offsetY - top) / size), column = Math.floor((event.offsetX - left) / size);
    cell = row >= 0 && column >= 0 && row < n && column < n ? [row, column] : undefined;
    paint();
  });
  canvas.addEventListener("keydown", (event) => {
    const moves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move || !map) return;
    event.preventDefault();
    const n = map.tokens.length;
    const [row, column] = cell ?? [n - 1, n - 1];
    cell = [Math.min(n - 1, Math.max(0, row + move[0])), Math.min(n - 1, Math.max(0, column + move[1]))];
    paint();
    announce(tell());
  });
  themeChanged.subscribe(paint);
  modelsChanged.subscribe(update);
  paint();
  return {
    element,
    update(now) {
      if (now !== session) {
        session = now;
        if (now.kind === "language") chosen = now.id;
      }
      update();
    },
  };
}

/** Numbers from 1, as people count; the package counts from 0. */
function options(select: HTMLSelectElement, count: number): void {
  if (select.options.length !== count) fill(select, ...Array.from({ length: count }, (_, i) => h("option", { value: i }, i + 1)));
}

function visible(token: string): string {
  return token.replaceAll("\n", "↵").replaceAll(" ", "␣");
}
