"""Makes the files that tests/io reads, with the libraries whose files they must be.

    python make.py torch        # needs torch
    python make.py safetensors  # needs safetensors and numpy
    python make.py gguf         # needs gguf and numpy
"""

import sys


def with_torch():
    import torch
    from torch import nn

    ramp = torch.arange(12.0).reshape(3, 4)
    types = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool"]
    state = {name: (ramp % 5 - 1 if name != "uint8" else ramp).to(getattr(torch, name)) for name in types}
    state["bool"] = ramp % 2 == 0
    torch.save(state, "torch_types.pt")

    views = {
        "transposed": ramp.t(),
        "slice": ramp[1:, 1:3],
        "step": ramp[:, ::2],
        "row": ramp[1],
        "expanded": ramp[:, :1].expand(3, 5),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "parameter": nn.Parameter(ramp * 2),
        "channels_last": torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
    }
    torch.save(views, "torch_views.pt")

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(torch.arange(float(p.numel())).reshape(p.shape) + 10 * k)
    adam = torch.optim.Adam(net.parameters(), lr=0.125)
    net(torch.ones(2, 3)).sum().backward()
    adam.step()
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(torch.arange(float(p.numel())).reshape(p.shape) + 10 * k)
    whole = {"epoch": 3, "loss": 0.25, "name": "net", "model": net.state_dict(), "optimizer": adam.state_dict()}
    torch.save(whole, "torch_checkpoint.pt")
    torch.save(net.state_dict(), "torch_protocol4.pt", pickle_protocol=4)
    torch.save({"w": ramp}, "torch_old.pt", _use_new_zipfile_serialization=False)
    odd = {"kept": ramp, "int8": ramp.to(torch.int8), "uint16": torch.arange(3).to(torch.uint16)}
    odd["fp8"] = torch.ones(3).to(torch.float8_e4m3fn)
    torch.save(odd, "torch_odd.pt")
    torch.save(net, "torch_module.pt")


def with_safetensors():
    import numpy as np
    import safetensors
    from safetensors.numpy import save_file

    ramp = np.arange(12.0).reshape(3, 4)
    names = {"F32": "float32", "F64": "float64", "F16": "float16", "I32": "int32", "I64": "int64", "I8": "int8"}
    state = {f"of.{short}": (ramp - 5).astype(name) for short, name in names.items()}
    state["of.U8"] = (ramp * 20).astype("uint8")
    state["of.U32"] = (ramp * 3e8).astype("uint32")
    state["of.BOOL"] = ramp % 2 == 0
    state["scalar"] = np.array(2.5, dtype="float32")
    state["empty"] = np.zeros((0, 3), dtype="float32")
    save_file(state, "python.safetensors", metadata={"made by": "Python", "é": "ü"})
    # NumPy has no bfloat16: the upper halves of floats.
    halves = np.array([1.0, -2.5, 0.0, np.inf], dtype="float32").view("uint16")[1::2].copy()
    spec = safetensors.TensorSpec(dtype="bfloat16", shape=[2, 2], data_ptr=halves.ctypes.data, data_len=8)
    with open("python_bf16.safetensors", "wb") as file:
        file.write(safetensors.serialize({"w": spec}))


def with_gguf():
    """Every element type, and beside each what the package makes of it; every type of metadata; a vocabulary."""
    import gguf
    import numpy as np
    from gguf import GGMLQuantizationType as Type

    numbers = np.random.default_rng(7)
    writer = gguf.GGUFWriter("python.gguf", "llama")
    writer.add_name("made by Python, ünïcödé")
    writer.add_block_count(2)
    writer.add_uint8("of.u8", 200)
    writer.add_int8("of.i8", -100)
    writer.add_uint16("of.u16", 60000)
    writer.add_int16("of.i16", -30000)
    writer.add_uint32("of.u32", 4000000000)
    writer.add_int32("of.i32", -2000000000)
    writer.add_uint64("of.u64", 2**63)
    writer.add_int64("of.i64", -(2**62))
    writer.add_float32("of.f32", 0.5)
    writer.add_float64("of.f64", 0.1)
    writer.add_bool("of.bool", True)
    writer.add_array("of.list", [1, -2, 3])
    writer.add_array("of.floats", [0.5, -1.5])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(["<|endoftext|>", "a", "b", "ab", "Ġü"])
    writer.add_token_types([3, 1, 1, 1, 1])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{{ messages[0]['content'] }}")

    values = (numbers.standard_normal((3, 256)) * 0.1).astype(np.float32)
    values[1, 32:64] = 0.0
    values[1, 64:96] = 0.25
    writer.add_tensor("values", values)
    writer.add_tensor("F16", values.astype(np.float16))
    written = [Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0]
    for kind in written:
        blocks = gguf.quants.quantize(values, kind)
        writer.add_tensor(kind.name, blocks, raw_dtype=kind)
        if kind != Type.BF16:
            writer.add_tensor(f"{kind.name}.f32", gguf.quants.dequantize(blocks, kind))
    # The package does not make these: any bytes are such blocks, if their scales are numbers.
    scales = {Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208]}
    for kind, places in scales.items():
        size = gguf.GGML_QUANT_SIZES[kind][1]
        blocks = numbers.integers(0, 256, (4, size), dtype=np.uint8)
        for place in places:
            blocks[:, place : place + 2] = numbers.uniform(0.001, 0.01, (4, 1)).astype(np.float16).view(np.uint8)
        blocks = blocks.reshape(2, 2 * size)
        writer.add_tensor(kind.name, blocks, raw_dtype=kind)
        writer.add_tensor(f"{kind.name}.f32", gguf.quants.dequantize(blocks, kind))
    writer.add_tensor("three_axes", np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    writer.add_tensor("int32", np.arange(-3, 3, dtype=np.int32))
    writer.add_tensor("int8", np.arange(-3, 3, dtype=np.int8))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


{"torch": with_torch, "safetensors": with_safetensors, "gguf": with_gguf}[sys.argv[1]]()
