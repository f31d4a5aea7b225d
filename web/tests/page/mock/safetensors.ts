/** Safetensors files as small as they can be: zeros under names, and metadata. */

export function writeSafetensors(tensors: [string, number[]][], metadata: Record<string, string>): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let end = 0;
  for (const [name, shape] of tensors) {
    const begin = end;
    end += 4 * shape.reduce((a, b) => a * b, 1);
    header[name] = { dtype: "F32", shape, data_offsets: [begin, end] };
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + end);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(text, 8);
  return bytes;
}

export function readHeader(
  bytes: Uint8Array,
  Refused: new (kind: "data", message: string) => Error,
): { metadata: Record<string, string> } {
  const length = bytes.length < 8 ? Infinity : Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (length > bytes.length - 8) throw new Refused("data", "the file is no safetensors file, or was cut off: its header is longer than itself");
  try {
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length))) as { __metadata__?: Record<string, string> };
    return { metadata: header.__metadata__ ?? {} };
  } catch {
    throw new Refused("data", "the header of the safetensors file is no JSON");
  }
}
