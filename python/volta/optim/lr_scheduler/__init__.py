"""Learning rates that change from step to step, under PyTorch's names.

Most schedules go from the rate that a group has now, so that several of one optimizer multiply and a rate that was set by hand
is gone on from. A schedule also is a function of the step wherever it can be, for those that begin in the middle of another.
"""

from .base import LRScheduler
from .composed import ChainedScheduler, SequentialLR, WarmupLR
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .factor import ConstantLR, ExponentialLR, LambdaLR, LinearLR, MultiStepLR, PolynomialLR, StepLR
from .one_cycle import OneCycleLR
from .plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR", "LRScheduler",
    "LambdaLR", "LinearLR", "MultiStepLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
    "WarmupLR",
]  # fmt: skip
