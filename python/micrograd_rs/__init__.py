"""micrograd's scalar engine and small networks in Rust, and batches and tensors that are computed on any GPU.

>>> from micrograd_rs import Value
>>> a, b = Value(-4.0), Value(2.0)
>>> c = (a * b + b**3).relu()
>>> c.backward()
>>> a
Value(data=-4.0, grad=0.0)
"""

from volta._volta import _micrograd as _native

Device = _native.Device
Value = _native.Value
ValueBatch = _native.ValueBatch
Tensor = _native.Tensor
Module = _native.Module
Neuron = _native.Neuron
Layer = _native.Layer
MLP = _native.MLP
live_values = _native.live_values

__all__ = ["Device", "Value", "ValueBatch", "Tensor", "Module", "Neuron", "Layer", "MLP", "live_values"]
