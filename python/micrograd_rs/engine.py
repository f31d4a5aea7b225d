"""`Value` where micrograd has it."""

from . import Value

__all__ = ["Value"]
