"""What goes with training: `volta.utils.data`."""

from . import data

__all__ = ["data"]
