/** The view “Bench”: how fast this computer is, GPU beside CPU, and what the adapter allows. */

import { bench, type BenchRow, type DeviceName } from "volta-ml";
import type { App, View } from "../app.ts";
import { offer, type Offer } from "../gpu.ts";
import { button, fill, h, setText } from "../parts/dom.ts";
import { digits, milliseconds, whole } from "../parts/format.ts";
import { announce, attempt, notice, sentence } from "../parts/notice.ts";

const MEANINGS: readonly [string, string][] = [
  ["ms", "the median of some runs"],
  ["GFLOP/s", "billions of additions and multiplications a second"],
  ["GB/s", "billions of bytes read and written a second"],
];

/** Limits that computing meets; the rest are about pictures. */
const COMPUTE = /Buffer(Size|BindingSize|sPerShaderStage|OffsetAlignment)|Compute|BindGroups|BindingsPer|immediate|sPerPipelineLayout/i;

export function benchView(_app: App): View {
  const rows: BenchRow[] = [];
  let running: AbortController | undefined;
  let found: Offer | undefined;
  const body = h("tbody");
  const state = h("p", { class: "about", role: "status" });
  const start = button({ class: "button primary", icon: "play", "data-test": "bench" }, "Run the bench", () => void measure(found?.name && !found.software ? ["gpu", "cpu"] : ["cpu"]));
  const both = button({ class: "button" }, "Measure the software GPU too", () => void measure(["cpu", "gpu"]));
  const stop = button({ class: "button", icon: "stop" }, "Stop", () => running?.abort());
  const copy = button({ class: "button", "data-test": "copy" }, "Copy as JSON", () => attempt("It could not be copied.", async () => {
    await navigator.clipboard.writeText(JSON.stringify({ date: new Date().toISOString(), browser: navigator.userAgent, adapter: found?.name ?? null, features: found?.features ?? [], limits: found?.limits ?? {}, rows }, null, 2));
    notice("info", "The measurements are copied.", { key: "copy" });
  }));
  const limits = h("div", { class: "limits" });
  const head = h("thead");
  const table = h("table", { class: "bench-table" }, head, body);
  const empty = h("p", { class: "empty" }, "Products, softmax, layer norm and whole training steps, a few seconds each. Nothing else should run meanwhile.");
  const element = h(
    "div", { class: "bench" },
    h("section", { class: "card card-wide" }, h("h2", { class: "view-title" }, "How fast is it here?"), state, h("div", { class: "row" }, start, both, stop, copy), empty, h("div", { class: "table-box" }, table)),
    h("section", { class: "card card-wide" }, h("h2", {}, "What the adapter allows"), limits),
  );
  stop.hidden = true;
  both.hidden = true;

  const show = (): void => {
    const devices = (["gpu", "cpu"] as const).filter((device) => rows.some((row) => row.device === device));
    const compared = devices.length === 2;
    empty.hidden = rows.length > 0;
    table.hidden = rows.length === 0;
    copy.hidden = rows.length === 0;
    const headings = ["Workload", ...devices.flatMap((device) => [device.toUpperCase(), "GFLOP/s", "GB/s"]), ...(compared ? ["CPU / GPU"] : [])];
    fill(head, h("tr", {}, ...headings.map((name, i) => h("th", { scope: "col", class: i ? "number" : "" }, name))));
    const names = [...new Set(rows.map(({ name }) => name))];
    fill(body, ...names.map((name) => {
      const of = (device: string): BenchRow | undefined => rows.find((row) => row.name === name && row.device === device);
      const number = (value: number | undefined): string => (value === undefined ? "" : digits(value));
      const cells = devices.flatMap((device) => {
        const row = of(device);
        return [row ? milliseconds(row.ms) : "", number(row?.gflops), number(row?.gbps)];
      });
      const gpu = of("gpu"), cpu = of("cpu");
      if (compared) cells.push(gpu && cpu ? `${digits(cpu.ms / gpu.ms, 2)}×` : "");
      return h("tr", {}, h("th", { scope: "row" }, name), ...cells.map((cell) => h("td", { class: "number" }, cell)));
    }));
  };

  async function measure(devices: readonly DeviceName[]): Promise<void> {
    if (running) return;
    const abort = (running = new AbortController());
    rows.length = 0;
    start.hidden = both.hidden = true;
    stop.hidden = false;
    show();
    try {
      for (const device of devices) {
        setText(state, `Measuring the ${device.toUpperCase()}…`);
        for await (const row of bench({ device, signal: abort.signal })) {
          rows.push(row);
          setText(state, `Measuring the ${device.toUpperCase()}: ${row.name}, ${milliseconds(row.ms)}`);
          show();
        }
      }
      setText(state, abort.signal.aborted ? "Stopped." : "Done.");
      announce("The bench is done.");
    } catch (error) {
      setText(state, abort.signal.aborted ? "Stopped." : "");
      if (!abort.signal.aborted) notice("error", `The bench ended early. ${sentence(error)}`, { key: "bench" });
    } finally {
      running = undefined;
      start.hidden = false;
      both.hidden = !found?.software;
      stop.hidden = true;
    }
  }

  void offer().then((what) => {
    found = what;
    both.hidden = !what.software || running !== undefined;
    showLimits(limits, what);
    if (rows.length === 0) setText(state, what.name ? `${what.name}${what.software ? " is a program that stands for a GPU, and slow: the bench measures the CPU by WebAssembly" : " by WebGPU, beside the CPU by WebAssembly"}.` : "The CPU by WebAssembly: this browser offers no GPU to pages.");
  });
  show();
  return { element };
}

function showLimits(box: HTMLElement, { name, features, limits, software }: Offer): void {
  if (!name) {
    fill(box, h("p", { class: "about" }, "This browser offers no WebGPU here: everything is computed on the CPU, in WebAssembly. Chrome, Edge, Safari and Firefox have WebGPU in their current versions; on Linux it may have to be switched on."));
    return;
  }
  const bytes = /Size|Memory/;
  const shown = Object.entries(limits).filter(([limit]) => COMPUTE.test(limit)).sort(([a], [b]) => a.localeCompare(b));
  const useful = features.filter((feature) => !/texture|depth|unorm|float32-|rg11|clip|first-instance/.test(feature));
  fill(
    box,
    h("p", { class: "about" }, `${name}${software ? ", a program on the processor" : ""}. Features for computing: ${useful.length ? useful.join(", ") : "none beyond the standard"}.`),
    h("dl", { class: "limit-list" }, ...shown.map(([limit, value]) => h("div", {}, h("dt", {}, words(limit)), h("dd", { title: bytes.test(limit) ? "bytes" : "" }, power(value))))),
    h("p", { class: "hint" }, MEANINGS.map(([unit, meaning]) => `${unit}: ${meaning}`).join(". ") + "."),
  );
}

/** `maxBufferSize` as “buffer size”. */
function words(name: string): string {
  return name.replace(/^max/, "").replace(/([a-z])([A-Z0-9])/g, "$1 $2").toLowerCase();
}

function power(value: number): string {
  for (const [unit, size] of [["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]] as const) {
    if (value >= size && value % size === 0) return `${value / size} ${unit}`;
  }
  return whole(value);
}
