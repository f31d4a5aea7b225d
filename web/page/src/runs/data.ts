/** What a run learns from: the program's own stories and digits, or what the visitor brought. */

import type { Store } from "./storage.ts";

export interface OwnData {
  text?: { name: string; text: string };
  digits?: { name: string; images: Uint8Array; labels: Uint8Array };
}

/** Keeps the data beside a run, so that it can go on after the page was closed. */
export async function storeData(store: Store, run: string, data: OwnData): Promise<void> {
  if (data.text) await store.write(run, "text.txt", data.text.text);
  if (data.digits) {
    await store.write(run, "images.idx", data.digits.images);
    await store.write(run, "labels.idx", data.digits.labels);
  }
}

export async function loadData(store: Store, run: string, name: string | undefined): Promise<OwnData> {
  if (name === undefined) return {};
  const text = await store.read(run, "text.txt");
  if (text) return { text: { name, text: new TextDecoder().decode(text) } };
  const images = await store.read(run, "images.idx");
  const labels = await store.read(run, "labels.idx");
  if (images && labels) return { digits: { name, images, labels } };
  throw new Error(`the data it learnt from, “${name}”, is not in the browser's storage any more`);
}
