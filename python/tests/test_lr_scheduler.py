"""Schedules: rates step by step, written out or by PyTorch's recursive forms."""

import math

import pytest

import volta
from volta import nn, optim
from volta.optim import lr_scheduler as schedules


def sgd(lr=1.0, groups=1):
    return optim.SGD([{"params": [nn.Parameter(volta.ones(1))], "lr": lr * (g + 1)} for g in range(groups)])


def rates(make, steps, lr=1.0):
    optimizer = sgd(lr)
    scheduler = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        assert scheduler.get_last_lr() == [found[-1]]
        scheduler.step()
    return found


def near(found, expected):
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_rates_that_fall():
    near(rates(lambda o: schedules.StepLR(o, 2, 0.5), 6), [1, 1, 0.5, 0.5, 0.25, 0.25])
    near(rates(lambda o: schedules.MultiStepLR(o, [3, 1]), 5), [1, 0.1, 0.1, 0.01, 0.01])
    near(rates(lambda o: schedules.ExponentialLR(o, 0.5), 4), [1, 0.5, 0.25, 0.125])
    near(rates(lambda o: schedules.LinearLR(o, 0.5, 1.0, 4), 6), [0.5, 0.625, 0.75, 0.875, 1, 1])
    near(rates(lambda o: schedules.ConstantLR(o, 0.25, 2), 4), [0.25, 0.25, 1, 1])
    near(rates(lambda o: schedules.PolynomialLR(o, 4, 2.0), 6), [1, 9 / 16, 4 / 16, 1 / 16, 0, 0])
    near(rates(lambda o: schedules.LambdaLR(o, lambda k: 1 / (k + 1)), 3), [1, 1 / 2, 1 / 3])


def test_a_cosine_follows_pytorchs_recursion():
    t_max, least = 5, 0.1
    expected = [1.0]
    for t in range(1, 12):
        if (t - 1 - t_max) % (2 * t_max) == 0:
            expected.append(expected[-1] + (1.0 - least) * (1 - math.cos(math.pi / t_max)) / 2)
        else:
            ratio = (1 + math.cos(math.pi * t / t_max)) / (1 + math.cos(math.pi * (t - 1) / t_max))
            expected.append(ratio * (expected[-1] - least) + least)
    assert rates(lambda o: schedules.CosineAnnealingLR(o, t_max, least), 12) == pytest.approx(expected, abs=1e-9)


def test_restarts_begin_anew_and_take_longer():
    down = lambda n: [(1 + math.cos(math.pi * k / n)) / 2 for k in range(n)]  # noqa: E731
    near(rates(lambda o: schedules.CosineAnnealingWarmRestarts(o, 2, 2), 14), down(2) + down(4) + down(8))
    near(rates(lambda o: schedules.CosineAnnealingWarmRestarts(o, 3), 6), down(3) * 2)


def test_one_cycle_goes_up_and_down():
    found = rates(lambda o: schedules.OneCycleLR(o, max_lr=0.5, total_steps=10), 9) + [0.5 / 25 / 1e4]
    near(found[0], 0.5 / 25)
    near(found[2], 0.5)
    near(found[1], (0.5 + 0.02) / 2)
    near(found[5], 2e-6 + (0.5 - 2e-6) * (1 + math.cos(math.pi * 3 / 7)) / 2)
    straight = rates(lambda o: schedules.OneCycleLR(o, 1.0, epochs=2, steps_per_epoch=5, anneal_strategy="linear"), 9)
    near(straight[:3], [0.04, 0.52, 1.0])
    with pytest.raises(ValueError, match="cycle of 3"):
        rates(lambda o: schedules.OneCycleLR(o, 1.0, 3), 4)
    with pytest.raises(ValueError, match="total_steps"):
        schedules.OneCycleLR(sgd(), 1.0)


def test_schedules_are_made_of_schedules():
    def warm(o):
        return schedules.WarmupLR(o, 3, then=schedules.ExponentialLR(o, 0.5))

    near(rates(warm, 6), [0.25, 0.5, 0.75, 1, 0.5, 0.25])

    def after(o):
        first, second = schedules.ConstantLR(o, 0.1, 100), schedules.ExponentialLR(o, 0.5)
        return schedules.SequentialLR(o, [first, second], [2])

    near(rates(after, 5), [0.1, 0.1, 1, 0.5, 0.25])

    def together(o):
        return schedules.ChainedScheduler([schedules.ConstantLR(o, 0.1, 2), schedules.ExponentialLR(o, 0.5)])

    near(rates(together, 4), [0.1, 0.05, 0.25, 0.125])


def test_a_plateau_lowers_the_rate():
    optimizer = sgd()
    plateau = schedules.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    found = []
    for metric in [3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]:
        plateau.step(metric)
        found.append(optimizer.param_groups[0]["lr"])
    assert found == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2]
    best = schedules.ReduceLROnPlateau(sgd(), mode="max", patience=0, threshold=0.1, threshold_mode="abs")
    for metric, rate in [(1.0, 1.0), (1.2, 1.0), (1.25, 0.1)]:
        best.step(metric)
        assert best.get_last_lr() == pytest.approx([rate])
    with pytest.raises(TypeError, match="metric"):
        best.step()


def test_each_group_starts_from_its_own_rate():
    optimizer = sgd(groups=2)
    scheduler = schedules.ExponentialLR(optimizer, 0.5)
    scheduler.step()
    assert scheduler.get_last_lr() == [0.5, 1.0] and scheduler.base_lrs == [1.0, 2.0]


@pytest.mark.parametrize("steps", [0, 3])
def test_a_schedule_goes_on_where_it_stopped(steps):
    make = lambda o: schedules.CosineAnnealingLR(o, 10)  # noqa: E731
    first = make(sgd())
    for _ in range(steps):
        first.step()
    other = make(sgd(lr=7.0))
    other.load_state_dict(first.state_dict())
    first.step()
    other.step()
    assert other.get_last_lr() == first.get_last_lr() and other.last_epoch == steps + 1
    plateau = schedules.ReduceLROnPlateau(sgd(), patience=0)
    for metric in (1.0, 2.0):
        plateau.step(metric)
    again = schedules.ReduceLROnPlateau(sgd(), patience=0)
    again.load_state_dict(plateau.state_dict())
    assert again.get_last_lr() == plateau.get_last_lr() == [0.1] and again.best == 1.0


def test_misuse_is_named():
    for call, words in [
        (lambda: schedules.SequentialLR(sgd(), [schedules.StepLR(sgd(), 1)], [1]), "milestones"),
        (lambda: schedules.ReduceLROnPlateau(sgd(), mode="down"), "down"),
        (lambda: schedules.ReduceLROnPlateau(sgd(), factor=1.5), "below 1"),
        (lambda: schedules.LambdaLR(sgd(), []), "functions"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
