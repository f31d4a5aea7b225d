"""Networks where micrograd has them."""

from . import MLP, Layer, Module, Neuron

__all__ = ["MLP", "Layer", "Module", "Neuron"]
