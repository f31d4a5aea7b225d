// GPT-2's files as Hugging Face has them, of a model that is as small as it gets.

const LAYERS = 1, HEADS = 2, WIDTH = 16, CONTEXT = 32;

/** The letter that stands for each byte in a vocabulary. */
function letters() {
  const isShown = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let hidden = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isShown(byte) ? byte : 256 + hidden++));
}

/** A safetensors file of these tensors. */
function safetensors(tensors) {
  let end = 0;
  const header = {};
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    header[name] = { dtype: "F32", shape, data_offsets: [end, (end += 4 * values.length)] };
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + end);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(text, 8);
  let begin = 8 + text.length;
  for (const { values } of Object.values(tensors)) {
    bytes.set(new Uint8Array(values.buffer), begin);
    begin += 4 * values.length;
  }
  return bytes;
}

/** `config.json`, `vocab.json`, `merges.txt` and `model.safetensors`, by name. */
export function gpt2() {
  const merges = ["t h", "th e", "Ġ the"];
  const vocabulary = Object.fromEntries([...letters(), ...merges.map((pair) => pair.replace(" ", ""))].map((token, id) => [token, id]));
  let state = 1;
  const random = () => (state = (state * 16807) % 2147483647) / 2147483647 - 0.5;
  const tensor = (...shape) => ({ shape, values: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, random) });
  const constant = (value) => ({ shape: [WIDTH], values: new Float32Array(WIDTH).fill(value) });
  const tensors = { "wte.weight": tensor(259, WIDTH), "wpe.weight": tensor(CONTEXT, WIDTH), "ln_f.weight": constant(1), "ln_f.bias": constant(0) };
  for (let k = 0; k < LAYERS; k++) {
    for (const norm of ["ln_1", "ln_2"]) {
      tensors[`h.${k}.${norm}.weight`] = constant(1);
      tensors[`h.${k}.${norm}.bias`] = constant(0);
    }
    for (const [part, inputs, outputs] of [["attn.c_attn", 1, 3], ["attn.c_proj", 1, 1], ["mlp.c_fc", 1, 4], ["mlp.c_proj", 4, 1]]) {
      tensors[`h.${k}.${part}.weight`] = tensor(inputs * WIDTH, outputs * WIDTH);
      tensors[`h.${k}.${part}.bias`] = tensor(outputs * WIDTH);
    }
  }
  const text = (string) => new TextEncoder().encode(string);
  return {
    "config.json": text(JSON.stringify({ model_type: "gpt2", n_head: HEADS, n_embd: WIDTH })),
    "vocab.json": text(JSON.stringify(vocabulary)),
    "merges.txt": text(`#version: 0.2\n${merges.join("\n")}\n`),
    "model.safetensors": safetensors(tensors),
  };
}
