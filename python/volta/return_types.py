"""What ops with two results return along a dimension: the values, and their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._volta import Tensor

__all__ = ["max", "median", "min", "sort", "topk"]


class max(NamedTuple):
    """The largest elements along a dimension, and their positions."""

    values: Tensor
    indices: Tensor


class median(NamedTuple):
    """The middle elements along a dimension, and their positions."""

    values: Tensor
    indices: Tensor


class min(NamedTuple):
    """The smallest elements along a dimension, and their positions."""

    values: Tensor
    indices: Tensor


class sort(NamedTuple):
    """A dimension in order, and the positions its elements had."""

    values: Tensor
    indices: Tensor


class topk(NamedTuple):
    """The largest or smallest elements of a dimension in order, and their positions."""

    values: Tensor
    indices: Tensor
