"""Data sets and loaders: order, batches, workers, errors."""

import random
import threading

import numpy as np
import pytest

import volta
from volta.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)


def flat(loader):
    return [int(x) for batch in loader for x in batch.tolist()]


def test_any_sequence_is_a_data_set():
    batches = list(DataLoader(list(range(7)), batch_size=3))
    assert [b.tolist() for b in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches[0].dtype == volta.int64 and len(DataLoader(range(7), batch_size=3)) == 3
    short = DataLoader(range(7), batch_size=3, drop_last=True)
    assert [b.tolist() for b in short] == [[0, 1, 2], [3, 4, 5]] and len(short) == 2


def test_any_iterable_is_one_too():
    class Count(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    for source in (Count(), {3: 0, 4: 0, 0: 0}.keys()):
        loader = DataLoader(source, batch_size=2)
        assert flat(loader) == list(source) and flat(loader) == list(source)
        with pytest.raises(TypeError, match="at its end"):
            len(loader)
    assert [b.tolist() for b in DataLoader((x for x in [1.5, 2.5, 3.5]), batch_size=2, drop_last=True)] == [[1.5, 2.5]]
    with pytest.raises(ValueError, match="cannot be shuffled"):
        DataLoader(Count(), shuffle=True)


def test_samples_of_all_kinds_make_batches():
    class Both(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, k):
            image = np.full((2, 2), k, np.float32)
            return {"image": image, "label": k, "name": f"no {k}", "pair": (volta.tensor([float(k)]), k > 1)}

    (batch,) = DataLoader(Both(), batch_size=4)
    assert batch["image"].shape == (4, 2, 2) and batch["image"].dtype == volta.float32
    assert batch["label"].tolist() == [0, 1, 2, 3] and batch["name"] == ["no 0", "no 1", "no 2", "no 3"]
    assert batch["pair"][0].shape == (4, 1) and batch["pair"][1].tolist() == [False, False, True, True]


def test_shuffling_goes_by_the_seed_and_differs_from_epoch_to_epoch():
    make = lambda seed, workers=0: DataLoader(range(50), 8, shuffle=True, seed=seed, num_workers=workers)  # noqa: E731
    loader, again, threads = make(3), make(3), make(3, workers=3)
    epochs = [flat(loader), flat(loader)]
    assert sorted(epochs[0]) == list(range(50)) and epochs[0] != epochs[1] != list(range(50))
    assert epochs == [flat(again), flat(again)] == [flat(threads), flat(threads)]
    assert flat(make(4)) != epochs[0]


def test_rows_of_tensors_are_taken_together():
    x, y = np.arange(20, dtype=np.float32).reshape(10, 2), np.arange(10)
    data = TensorDataset(volta.tensor(x), volta.tensor(y))
    for a, b in DataLoader(data, batch_size=4, shuffle=True, seed=1):
        assert np.array_equal(a.numpy(), x[b.numpy()])
    first = next(iter(DataLoader(data, batch_size=4)))
    assert first[1].tolist() == [0, 1, 2, 3] and data[3][0].tolist() == [6, 7] and len(data) == 10
    with pytest.raises(ValueError, match="rows"):
        TensorDataset(volta.ones(2), volta.ones(3))


def test_parts_and_sums_of_data_sets():
    parts = random_split(range(10), [7, 3], seed=5)
    assert [len(p) for p in parts] == [7, 3] and sorted([*parts[0], *parts[1]]) == list(range(10))
    assert list(parts[0]) == list(random_split(range(10), [7, 3], seed=5)[0])
    assert [len(p) for p in random_split(range(11), [0.5, 0.5])] == [6, 5]
    with pytest.raises(ValueError, match="sum up to 9"):
        random_split(range(10), [6, 3])
    both = ConcatDataset([range(3), range(10, 12)])
    assert list(both[k] for k in range(5)) == [0, 1, 2, 10, 11] and both[-1] == 11
    rows = Subset(TensorDataset(volta.tensor([5.0, 6.0, 7.0])), [2, 0])
    (batch,) = DataLoader(rows, batch_size=2)
    assert batch[0].tolist() == [7, 5]


def test_samplers_decide_the_order():
    assert flat(DataLoader(range(5), batch_size=2, sampler=[4, 0, 4])) == [4, 0, 4]
    assert flat(DataLoader(range(5), batch_sampler=BatchSampler([3, 2, 1], 2))) == [3, 2, 1]
    often = list(WeightedRandomSampler([0, 1, 9], 1000, seed=0))
    assert often.count(0) == 0 and often.count(2) > 5 * often.count(1)
    drawn = RandomSampler(range(3), replacement=True, num_samples=20, seed=0)
    assert len(list(drawn)) == 20 and set(drawn) <= {0, 1, 2}
    with pytest.raises(ValueError, match="leave shuffle out"):
        DataLoader(range(5), shuffle=True, sampler=[0])


def test_single_samples_and_collators_of_ones_own():
    assert list(DataLoader(["a", "b"], batch_size=None)) == ["a", "b"]
    assert list(DataLoader(range(4), batch_size=2, collate_fn=sum)) == [1, 5]


def test_workers_work_at_the_same_time_and_keep_the_order():
    meeting = threading.Barrier(2, timeout=20)

    class Slow(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, k):
            # Two samples are in the making at once, or this breaks.
            meeting.wait()
            return k

    assert flat(DataLoader(Slow(), batch_size=1, num_workers=2)) == list(range(8))


def test_a_sample_that_fails_raises_in_order_and_is_named():
    class Bad(Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, k):
            if k == 3:
                raise OSError("no such image")
            return k

    for workers in (0, 2):
        seen = []
        with pytest.raises(OSError, match="no such image") as caught:
            for batch in DataLoader(Bad(), num_workers=workers):
                seen.append(batch.item())
        assert seen == [0, 1, 2]
        if hasattr(caught.value, "__notes__"):
            assert caught.value.__notes__ == ["while the loader took sample 3"]


def test_leaving_early_stops_the_workers():
    taken = []

    class Endless(IterableDataset):
        def __iter__(self):
            k = 0
            while True:
                taken.append(k)
                yield k
                k += 1

    for batch in DataLoader(Endless(), batch_size=2, num_workers=2, prefetch_factor=2):
        if batch.tolist()[0] >= 10:
            break
    assert len(taken) < 30


def test_batches_arrive_on_the_device():
    x, y = next(iter(DataLoader([(1.0, {"k": 2})], device="cpu")))
    assert str(x.device) == "cpu" and y["k"].tolist() == [2]


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"num_workers": -1}, {"prefetch_factor": 0}])
def test_misuse_is_named(options):
    with pytest.raises(ValueError):
        DataLoader(range(3), **options)


def test_parts_without_a_seed_come_from_pythons_generator():
    def parts(seed=None):
        random.seed(3)
        return [part.indices for part in random_split(range(20), [10, 10], seed=seed)]

    assert parts() == parts() and parts(1) == parts(1) != parts()
