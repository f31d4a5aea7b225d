"""Making one batch of many samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._volta import Tensor


def default_collate(samples: Sequence[Any]) -> Any:
    """Samples on one another: tensors, arrays and numbers become tensors with the batch as first axis; tuples, lists and
    dicts of them become one of batches; texts and whatever else stay a list."""
    import volta

    first = samples[0]
    if isinstance(first, Tensor):
        return volta.stack(list(samples))
    if isinstance(first, np.ndarray):
        return volta.tensor(np.stack(samples))
    if isinstance(first, (bool, np.bool_)):
        return volta.tensor(np.asarray(samples, dtype=np.bool_))
    if isinstance(first, (int, np.integer)):
        return volta.tensor(np.asarray(samples, dtype=np.int64))
    if isinstance(first, (float, np.floating)):
        return volta.tensor(np.asarray(samples, dtype=np.float32))
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise ValueError("samples of different lengths do not make a batch: give a collate_fn of your own")
        parts = [default_collate(part) for part in zip(*samples)]
        if isinstance(first, tuple):
            return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
        return parts
    return list(samples)


def moved(batch: Any, device: Any) -> Any:
    """The batch with all of its tensors on a device."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: moved(value, device) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        parts = [moved(part, device) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch
