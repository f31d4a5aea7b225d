"""In which order samples are taken."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class Sampler:
    """The numbers of samples in some order: subclasses define `__iter__` and `__len__`."""

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class SequentialSampler(Sampler):
    """One after the other."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """In another order every epoch. The same seed gives the same orders; `epoch` says which comes next."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.data_source, self.replacement = data_source, replacement
        self.num_samples = len(data_source) if num_samples is None else num_samples
        if not replacement and self.num_samples > len(data_source):
            raise ValueError(f"{self.num_samples} of {len(data_source)} samples cannot be taken without repeating one")
        self.seed = random.randrange(1 << 63) if seed is None else seed
        self.epoch = 0

    def __iter__(self) -> Iterator[int]:
        generator = random.Random(f"{self.seed}:{self.epoch}")
        self.epoch += 1
        total = len(self.data_source)
        if self.replacement:
            return iter([generator.randrange(total) for _ in range(self.num_samples)])
        order = list(range(total))
        generator.shuffle(order)
        return iter(order[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class WeightedRandomSampler(Sampler):
    """Samples by their weights, with repetition."""

    def __init__(self, weights: Sequence[float], num_samples: int, seed: int | None = None) -> None:
        self.weights, self.num_samples = [float(w) for w in weights], num_samples
        self.seed = random.randrange(1 << 63) if seed is None else seed
        self.epoch = 0

    def __iter__(self) -> Iterator[int]:
        generator = random.Random(f"{self.seed}:{self.epoch}")
        self.epoch += 1
        return iter(generator.choices(range(len(self.weights)), self.weights, k=self.num_samples))

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler:
    """The numbers of another sampler in lists of `batch_size`."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool = False) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, and must be at least 1")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return whole + (1 if rest and not self.drop_last else 0)
