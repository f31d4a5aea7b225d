/** What a file that was dropped is: told by its first bytes, not by its name. */

/** A file's bytes, with what they are. */
export type Dropped =
  | { what: "text"; name: string; text: string }
  | { what: "images"; name: string; bytes: Uint8Array; count: number }
  | { what: "labels"; name: string; bytes: Uint8Array; count: number }
  | { what: "model"; name: string; bytes: Uint8Array; header: Header }
  | { what: "checkpoint"; name: string; bytes: Uint8Array; header: Header }
  | { what: "pretrained"; name: string; files: Record<string, Uint8Array> };

/** What stands in front of a safetensors file's numbers. */
export interface Header {
  metadata: Record<string, string>;
  tensors: Record<string, { dtype: string; shape: number[] }>;
}

/** The largest text that is learnt from: more would only cost memory. */
const MAX_TEXT_BYTES = 256 * 2 ** 20;
/** More than this is no header, and parsing it would hold up the page. */
const MAX_HEADER_BYTES = 32 * 2 ** 20;
/** Files of a model as Hugging Face has it. */
const PRETRAINED = ["config.json", "tokenizer.json", "vocab.json", "merges.txt", "generation_config.json", "tokenizer_config.json"];

/** Reads a safetensors file's header; a sentence where it has none. */
export function readHeader(bytes: Uint8Array): Header {
  if (bytes.length < 10) throw new Error("it has no header");
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
  if (length > bytes.length - 8) throw new Error("it was cut off, or is no safetensors file");
  if (length > MAX_HEADER_BYTES) throw new Error("its header is longer than 32 MB");
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(8, 8 + length)));
  } catch {
    throw new Error("its header cannot be read");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new Error("its header names no tensors");
  const header: Header = { metadata: {}, tensors: {} };
  for (const [name, entry] of Object.entries(parsed as Record<string, unknown>)) {
    if (name === "__metadata__") header.metadata = strings(entry);
    else header.tensors[name] = tensor(name, entry, bytes.length - 8 - length);
  }
  return header;
}

function strings(entry: unknown): Record<string, string> {
  const pairs = typeof entry === "object" && entry !== null ? Object.entries(entry as Record<string, unknown>) : [];
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => typeof pair[1] === "string"));
}

function tensor(name: string, entry: unknown, available: number): { dtype: string; shape: number[] } {
  const { dtype, shape, data_offsets: offsets } = (entry ?? {}) as { dtype?: unknown; shape?: unknown; data_offsets?: unknown };
  const numbers = (list: unknown): list is number[] => Array.isArray(list) && list.every((n) => Number.isSafeInteger(n) && n >= 0);
  if (typeof dtype !== "string" || !numbers(shape) || !numbers(offsets)) throw new Error(`its header says nothing useful of “${name.slice(0, 60)}”`);
  const [begin = 0, end = 0] = offsets;
  if (begin > end || end > available) throw new Error(`it was cut off: “${name.slice(0, 60)}” lies beyond its end`);
  return { dtype, shape };
}

/** What the file of a run under way says of itself; it holds the optimizer's state too. */
const CHECKPOINT = "volta-checkpoint";

function idx(name: string, bytes: Uint8Array): Dropped {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const dimensions = view.getUint8(3);
  if (view.getUint8(2) !== 8) throw new Error("its numbers are not bytes, as those of MNIST are");
  const sizes = Array.from({ length: dimensions }, (_, i) => (4 + 4 * i + 4 <= bytes.length ? view.getUint32(4 + 4 * i) : 0));
  const expected = 4 + 4 * dimensions + sizes.reduce((a, b) => a * b, 1);
  if (expected !== bytes.length) throw new Error(`it was cut off, or is too long: its header tells of ${expected} bytes, it has ${bytes.length}`);
  const count = sizes[0] ?? 0;
  if (dimensions === 1) return { what: "labels", name, bytes, count };
  if (dimensions === 3 && sizes[1] === 28 && sizes[2] === 28) return { what: "images", name, bytes, count };
  throw new Error("its pictures are not 28 by 28");
}

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new Error("it was packed with gzip, and is damaged");
  }
}

async function identify(file: File): Promise<Dropped> {
  let bytes: Uint8Array<ArrayBuffer> = new Uint8Array(await file.arrayBuffer());
  let name = file.name;
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    bytes = await gunzip(bytes);
    name = name.replace(/\.gz$/, "");
  }
  if (bytes.length === 0) throw new Error("it is empty");
  if (bytes.length >= 8 && bytes[0] === 0 && bytes[1] === 0 && (bytes[3] === 1 || bytes[3] === 3)) return idx(name, bytes);
  if (name.endsWith(".safetensors") || (bytes.length > 9 && bytes[8] === 0x7b && bytes[7] === 0 && bytes[6] === 0)) {
    const header = readHeader(bytes);
    return { what: header.metadata.format === CHECKPOINT ? "checkpoint" : "model", name, bytes, header };
  }
  if (bytes[0] === 0x50 && bytes[1] === 0x4b) throw new Error("it is a zip archive, or a model of PyTorch: unpack it, or save the model as safetensors");
  if (bytes.length > MAX_TEXT_BYTES) throw new Error("it is longer than 256 MB");
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.includes("\0")) throw new Error("binary");
    return { what: "text", name, text };
  } catch {
    throw new Error("it is neither a text in UTF-8, nor a safetensors file, nor one of MNIST's");
  }
}

/** What these files are. Those that make up one model are one; what cannot be used is told in a sentence. */
export async function readFiles(files: readonly File[]): Promise<{ dropped: Dropped[]; problems: string[] }> {
  const dropped: Dropped[] = [];
  const problems: string[] = [];
  const parts = files.filter((file) => PRETRAINED.includes(file.name));
  const weights = files.find((file) => file.name.endsWith(".safetensors"));
  let rest = files;
  if (parts.length > 0 && weights) {
    rest = files.filter((file) => !parts.includes(file) && file !== weights);
    const contents: Record<string, Uint8Array> = {};
    for (const part of parts) contents[part.name] = new Uint8Array(await part.arrayBuffer());
    contents["model.safetensors"] = new Uint8Array(await weights.arrayBuffer());
    dropped.push({ what: "pretrained", name: "GPT-2", files: contents });
  } else if (parts.length > 0) {
    rest = files.filter((file) => !parts.includes(file));
    problems.push(`${parts.map((part) => part.name).join(", ")}: the weights are missing. Drop model.safetensors together with the other files of the model.`);
  }
  for (const file of rest) {
    try {
      dropped.push(await identify(file));
    } catch (error) {
      problems.push(`“${file.name}” cannot be used: ${error instanceof Error ? error.message : String(error)}.`);
    }
  }
  return { dropped, problems };
}

/** Offers bytes as a download. */
export function download(name: string, content: Uint8Array | string, type = "application/octet-stream"): void {
  const link = document.createElement("a");
  const url = URL.createObjectURL(new Blob([content as BlobPart], { type }));
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
