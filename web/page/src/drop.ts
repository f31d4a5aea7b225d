/** Files dropped anywhere on the page, and what becomes of them. */

import type { App } from "./app.ts";
import { type Dropped, readFiles } from "./files.ts";
import { h } from "./parts/dom.ts";
import { bytes, short } from "./parts/format.ts";
import { attempt, notice, withdraw } from "./parts/notice.ts";
import { settingsOf } from "./runs/recognise.ts";
import { openModel } from "./talk/models.ts";

export function mountDrop(app: App): void {
  const veil = h("div", { class: "drop-veil", hidden: true, "aria-hidden": "true" }, h("p", {}, "Drop texts, MNIST files, checkpoints or models"));
  document.body.append(veil);
  let depth = 0;
  const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    depth++;
    veil.hidden = false;
  });
  addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    veil.hidden = depth === 0;
  });
  addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  addEventListener("drop", (event) => {
    depth = 0;
    veil.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    void filesOf(event).then(readFiles).then((read) => receive(app, read));
  });
}

/** The files of a drop; those of a folder too. */
async function filesOf(event: DragEvent): Promise<File[]> {
  const entries = [...(event.dataTransfer?.items ?? [])].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry !== null && entry !== undefined);
  if (!entries.some((entry) => entry.isDirectory)) return [...(event.dataTransfer?.files ?? [])];
  const files: File[] = [];
  for (const entry of entries) await walk(entry, files);
  return files;
}

async function walk(entry: FileSystemEntry, files: File[]): Promise<void> {
  if (entry.isFile) {
    files.push(await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject)));
  } else if (entry.isDirectory && files.length < 100) {
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    const children = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    for (const child of children) await walk(child, files);
  }
}

/** Takes what was dropped or chosen. */
export async function receive(app: App, { dropped, problems }: { dropped: Dropped[]; problems: string[] }): Promise<void> {
  for (const problem of problems) notice("error", problem);
  for (const one of dropped) if (one.what === "text") takeText(app, one);
  const images = dropped.find((one) => one.what === "images");
  const labels = dropped.find((one) => one.what === "labels");
  if (images || labels) takeDigits(app, images, labels);
  for (const one of dropped) {
    if (one.what === "checkpoint") await attempt(`“${one.name}” cannot be gone on with.`, () => takeCheckpoint(app, one));
    if (one.what === "model") await attempt(`“${one.name}” cannot be opened.`, () => openModel(app, one.name.replace(/\.safetensors$/, ""), one.bytes));
    if (one.what === "pretrained") await attempt(`“${one.name}” cannot be opened.`, () => openModel(app, one.name, { files: one.files }));
  }
}

function takeText(app: App, { name, text }: { name: string; text: string }): void {
  if (text.trim().length < 200) {
    notice("error", `“${name}” cannot be used: a model cannot learn from less than 200 characters.`);
    return;
  }
  app.data.text = { name, text };
  app.chooseKind("language");
  app.settingsChanged.emit();
  app.go("train");
  notice("info", `The next language model learns from “${name}”, ${short(text.length)} characters.`, { key: "data" });
}

interface Idx {
  name: string;
  bytes: Uint8Array;
  count: number;
}

/** Pictures and labels may come one after the other. */
const half: { images?: Idx; labels?: Idx } = {};

function takeDigits(app: App, images: Idx | undefined, labels: Idx | undefined): void {
  if (images) half.images = images;
  if (labels) half.labels = labels;
  if (!half.images || !half.labels) {
    const missing = half.images ? "labels (train-labels-idx1-ubyte)" : "pictures (train-images-idx3-ubyte)";
    notice("info", `MNIST is two files: drop the ${missing} too.`, { key: "data", seconds: 20 });
    return;
  }
  if (half.images.count !== half.labels.count) {
    notice("error", `There are ${short(half.images.count)} pictures and ${short(half.labels.count)} labels: these files do not belong together.`, { key: "data" });
    delete half.images;
    delete half.labels;
    return;
  }
  app.data.digits = { name: half.images.name, images: half.images.bytes, labels: half.labels.bytes };
  app.chooseKind("digits");
  app.settingsChanged.emit();
  app.go("train");
  notice("info", `The next classifier learns from ${short(half.images.count)} pictures of “${half.images.name}”.`, { key: "data" });
}

/** Goes on, paused, with a run of which a checkpoint was dropped. */
async function takeCheckpoint(app: App, one: { name: string; bytes: Uint8Array; header: import("./files.ts").Header }): Promise<void> {
  const settings = settingsOf(one.header, app.settings);
  const session = app.registry.create(settings, app.data, one.name.replace(/\.safetensors$/, "").slice(0, 60));
  app.go("train");
  await session.start({ checkpoint: one.bytes, paused: true });
  let info;
  try {
    info = await session.run?.info;
  } catch (error) {
    await app.registry.remove(session);
    withdraw(`failed-${session.id}`);
    throw error;
  }
  if (info) notice("info", `“${session.name}” (${bytes(one.bytes.length)}) is open at step ${short(info.firstStep - 1)}: “Resume” trains on.`, { key: "dropped" });
}
