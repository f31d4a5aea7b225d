"""Optimizers, schedules of their learning rates, and running averages of parameters."""

from . import lr_scheduler
from .ema import EMA
from .optimizer import Optimizer
from .rules import SGD, Adagrad, Adam, AdamW, Lion, Muon, RMSprop

__all__ = ["EMA", "SGD", "Adagrad", "Adam", "AdamW", "Lion", "Muon", "Optimizer", "RMSprop", "lr_scheduler"]
