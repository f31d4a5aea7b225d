"""How tensors are printed: like NumPy's arrays, with what differs from the usual behind."""

import numpy as np

# What the elements show by themselves.
_OBVIOUS = ("float32", "int64", "bool")


def tensor_repr(tensor, array):
    """The text of a tensor whose values are in `array`."""
    start = "tensor("
    shown = np.array2string(array, separator=", ", prefix=start)
    details = []
    if array.size == 0 and array.shape != (0,):
        details.append(f"size={tuple(array.shape)}")
    dtype = repr(tensor.dtype)
    if dtype.removeprefix("volta.") not in _OBVIOUS or (array.size == 0 and dtype != "volta.float32"):
        details.append(f"dtype={dtype}")
    if tensor.device.type != "cpu":
        details.append(f"device='{tensor.device}'")
    if tensor.requires_grad:
        details.append("requires_grad=True")
    return start + ", ".join([shown, *details]) + ")"
