"""What ops with two results return: tuples with names."""

from collections import namedtuple

__all__ = ["max", "median", "min", "sort", "topk"]


def _pair(name):
    kind = namedtuple(name, ["values", "indices"], module=__name__)
    kind.__doc__ = f"What `{name}` returns along a dimension: the values, and their positions."
    return kind


max = _pair("max")
median = _pair("median")
min = _pair("min")
sort = _pair("sort")
topk = _pair("topk")
