"""Makes the files that tests/io reads, with the libraries whose files they must be.

    python make.py torch        # needs torch
    python make.py safetensors  # needs safetensors and numpy
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


{"torch": with_torch, "safetensors": with_safetensors}[sys.argv[1]]()
