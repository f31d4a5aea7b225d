"""Batches of a data set, made ahead of time by threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .collate import default_collate, moved
from .sampler import BatchSampler, RandomSampler, SequentialSampler


class DataLoader:
    """Batches of any sequence (by number) or iterable (one after the other).

    `shuffle` takes samples in another order every epoch; the same `seed` gives the same orders, with any number of workers.
    `num_workers` threads make batches ahead, `prefetch_factor` each, and copy them to `device`. NumPy, image libraries and
    Volta itself let other threads run while they work.

    >>> for x, y in DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True, seed=0):
    ...     train(x, y)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        drop_last: bool = False,
        *,
        prefetch_factor: int = 2,
        seed: int | None = None,
        device: Any = None,
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, and must be at least 1, or None for single samples")
        if num_workers < 0 or prefetch_factor < 1:
            raise ValueError(f"{num_workers} workers with {prefetch_factor} batches each cannot be")
        if sampler is not None and shuffle:
            raise ValueError("a sampler decides the order itself: leave shuffle out")
        self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers
        self.drop_last, self.prefetch_factor, self.device = drop_last, prefetch_factor, device
        self.collate_fn = collate_fn
        self._by_number = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        if not self._by_number:
            if shuffle or sampler is not None or batch_sampler is not None:
                raise ValueError("an iterable has an order of its own: it cannot be shuffled or sampled")
            self.sampler, self.batch_sampler = None, None
            return
        if sampler is None:
            sampler = RandomSampler(dataset, seed=seed) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler

    def __len__(self) -> int:
        """How many batches an epoch has."""
        if self._by_number:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]
        raise TypeError("how many batches an iterable has shows at its end")

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return map(self._made, self._parts())
        return self._ahead()

    def _parts(self) -> Iterator[Any]:
        """What batches are made of: numbers of samples, or the samples of an iterable themselves."""
        if self._by_number:
            yield from self.sampler if self.batch_sampler is None else self.batch_sampler  # type: ignore[misc]
            return
        if self.batch_size is None:
            yield from self.dataset
            return
        samples: list[Any] = []
        for sample in self.dataset:
            samples.append(sample)
            if len(samples) == self.batch_size:
                yield samples
                samples = []
        if samples and not self.drop_last:
            yield samples

    def _made(self, part: Any) -> Any:
        if self.batch_size is None and self.batch_sampler is None:
            batch = self.dataset[part] if self._by_number else part
            batch = batch if self.collate_fn is None else self.collate_fn(batch)
        elif self._by_number and self.collate_fn is None and hasattr(self.dataset, "batch"):
            batch = self.dataset.batch(part)
        else:
            samples = [self._sample(index) for index in part] if self._by_number else part
            batch = (self.collate_fn or default_collate)(samples)
        return batch if self.device is None else moved(batch, self.device)

    def _sample(self, index: int) -> Any:
        try:
            return self.dataset[index]
        except Exception as error:
            if hasattr(error, "add_note"):
                error.add_note(f"while the loader took sample {index}")
            raise

    def _ahead(self) -> Iterator[Any]:
        """Batches in order, some of them in the making."""
        parts = self._parts()
        waiting: deque[Future[Any]] = deque()
        pool = ThreadPoolExecutor(self.num_workers, "volta-data")
        try:
            for part in parts:
                waiting.append(pool.submit(self._made, part))
                if len(waiting) > self.num_workers * self.prefetch_factor:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # Whoever leaves the loop early does not wait for batches that nobody wants.
            for future in waiting:
                future.cancel()
            pool.shutdown(wait=False, cancel_futures=True)
