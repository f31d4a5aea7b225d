"""Data sets: any sequence is one; these are made of tensors, of parts of others, or of several."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from ..._volta import Tensor
from .collate import default_collate

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Samples by number: subclasses define `__getitem__` and `__len__`. Any sequence serves as well."""

    def __getitem__(self, index: int) -> Sample:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Generic[Sample]):
    """Samples one after the other: subclasses define `__iter__`. Any iterable serves as well."""

    def __iter__(self) -> Iterator[Sample]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors: sample k is row k of each."""

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset needs at least one tensor")
        lengths = {t.shape[0] for t in tensors}
        if len(lengths) != 1:
            raise ValueError(f"the tensors have {sorted(lengths)} rows: they must have equally many")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        """Several rows at once, as a loader takes them."""
        import volta

        first, count = indices[0], len(indices)
        if list(indices) == list(range(first, first + count)):
            return tuple(t[first : first + count] for t in self.tensors)
        rows = volta.tensor(list(indices), dtype=volta.int32)
        return tuple(t.index_select(0, rows.to(t.device)) for t in self.tensors)


class Subset(Dataset[Any]):
    """Some samples of a data set, by their numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, list(indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)

    def batch(self, indices: Sequence[int]) -> Any:
        """Several samples at once, as a loader takes them."""
        chosen = [self.indices[k] for k in indices]
        if hasattr(self.dataset, "batch"):
            return self.dataset.batch(chosen)
        return default_collate([self.dataset[k] for k in chosen])


class ConcatDataset(Dataset[Any]):
    """Data sets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        self._ends = list(accumulate(len(d) for d in self.datasets))

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} samples")
        index %= len(self)
        k = bisect_right(self._ends, index)
        return self.datasets[k][index - (self._ends[k - 1] if k else 0)]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0


def random_split(dataset: Any, lengths: Sequence[int | float], seed: int | None = None) -> list[Subset]:
    """Cuts a data set into parts of these lengths, or shares that sum up to 1, at random.

    The same seed gives the same parts; without one it is drawn from Python's own generator.
    """
    total = len(dataset)
    if all(isinstance(x, float) for x in lengths) and abs(sum(lengths) - 1) < 1e-6:
        counts = [int(total * share) for share in lengths]
        for k in range(total - sum(counts)):
            counts[k % len(counts)] += 1
    else:
        counts = [int(x) for x in lengths]
    if sum(counts) != total:
        raise ValueError(f"the lengths sum up to {sum(counts)}, and there are {total} samples")
    order = list(range(total))
    random.Random(random.randrange(1 << 63) if seed is None else seed).shuffle(order)
    ends = list(accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for count, end in zip(counts, ends)]
