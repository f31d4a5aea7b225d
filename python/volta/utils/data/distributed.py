"""Samples shared out among ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import distributed as dist
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Gives each rank its own samples, as many as any other: every `num_replicas`-th, from its rank on.

    With `shuffle` they are in another order every epoch that `set_epoch` tells it, the same on all ranks: for one seed and epoch it
    is that of PyTorch's sampler. With `drop_last` the samples that are left are dropped; else the first ones come again.

    >>> sampler = DistributedSampler(data)
    >>> for epoch in range(3):
    ...     sampler.set_epoch(epoch)
    ...     for x, y in DataLoader(data, batch_size=32, sampler=sampler):
    ...         train(x, y)
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
        self.rank = dist.get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"rank {self.rank} is none of {self.num_replicas} ranks: they count from 0")
        self.dataset, self.shuffle, self.seed, self.drop_last = dataset, shuffle, seed, drop_last
        self.epoch = 0
        self.num_samples = len(dataset) // self.num_replicas
        if not drop_last and len(dataset) % self.num_replicas:
            self.num_samples += 1
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = _permutation(count, self.seed + self.epoch) if self.shuffle else np.arange(count)
        # Repeated until there are enough, or cut.
        return iter(np.resize(order, self.total_size)[self.rank :: self.num_replicas].tolist())

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch comes: the order depends on it."""
        self.epoch = epoch


def _permutation(count: int, seed: int) -> np.ndarray[Any, Any]:
    """That of `torch.randperm` with a generator of this seed: MT19937, and Fisher and Yates's exchanges from the front."""
    bits = np.random.MT19937()
    bits._legacy_seeding(seed & 0xFFFFFFFF)  # type: ignore[attr-defined]
    order = list(range(count))
    places = bits.random_raw(max(count - 1, 0)) % np.arange(count, 1, -1, dtype=np.uint64)
    for k, place in enumerate(places.tolist()):
        other = k + place
        order[k], order[other] = order[other], order[k]
    return np.array(order, dtype=np.int64)
