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


def walked(optimizer, schedulers, steps):
    """The rates of the first group, step by step, under several schedules."""
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        for scheduler in schedulers:
            scheduler.step()
    return found


def test_schedules_of_one_optimizer_multiply():
    optimizer = sgd()
    both = [schedules.ExponentialLR(optimizer, 0.9), schedules.StepLR(optimizer, 2, 0.1)]
    near(walked(optimizer, both, 5), [1, 0.9, 0.081, 0.0729, 0.006561])
    optimizer = sgd()
    both = [schedules.LinearLR(optimizer, 0.5, 1.0, 2), schedules.CosineAnnealingLR(optimizer, 4)]
    cosine = [(1 + math.cos(math.pi * k / 4)) / 2 for k in range(4)]
    near(walked(optimizer, both, 4), [f * c for f, c in zip([0.5, 0.75, 1, 1], cosine)])
    optimizer = sgd()
    both = [schedules.PolynomialLR(optimizer, 4, 2.0), schedules.MultiStepLR(optimizer, [1, 3, 3])]
    near(walked(optimizer, both, 4), [1, 9 / 16 * 0.1, 4 / 16 * 0.1, 1 / 16 * 1e-3])


def test_a_rate_that_is_set_by_hand_is_gone_on_from():
    for make, factor in [
        (lambda o: schedules.ExponentialLR(o, 0.5), 0.5),
        (lambda o: schedules.StepLR(o, 1, 0.5), 0.5),
        (lambda o: schedules.MultiStepLR(o, [5]), 1.0),
        (lambda o: schedules.ConstantLR(o, 0.5, 9), 1.0),
    ]:
        optimizer = sgd()
        scheduler = make(optimizer)
        scheduler.step()
        optimizer.param_groups[0]["lr"] = 7.0
        scheduler.step()
        assert optimizer.param_groups[0]["lr"] == 7.0 * factor == scheduler.get_last_lr()[0]


def test_a_plateau_touches_rates_only_when_it_lowers_them():
    optimizer = sgd(groups=2)
    warm = schedules.LinearLR(optimizer, 0.5, 1.0, 4)
    plateau = schedules.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    for k in range(4):
        warm.step()
        plateau.step(-k)
    near([g["lr"] for g in optimizer.param_groups], [1.0, 2.0])
    optimizer.param_groups[0]["lr"] = 0.25
    plateau.step(5)
    assert [g["lr"] for g in optimizer.param_groups] == [0.125, 1.0] == plateau.get_last_lr()


def test_a_plateaus_state_is_its_own_and_its_least_rates_may_differ():
    optimizer = sgd(groups=2)
    plateau = schedules.ReduceLROnPlateau(optimizer, factor=0.1, patience=0, min_lr=[0.5, 0.05])
    state = plateau.state_dict()
    for metric in (1, 1, 1):
        plateau.step(metric)
    near([g["lr"] for g in optimizer.param_groups], [0.5, 0.05])
    assert state["_last_lr"] == [1.0, 2.0] and state["best"] == math.inf and state["min_lrs"] == [0.5, 0.05]
    state["min_lrs"][0] = 9
    assert plateau.min_lrs == [0.5, 0.05]
    with pytest.raises(ValueError, match="min_lr has 1 rates for 2 groups"):
        schedules.ReduceLROnPlateau(optimizer, min_lr=[0.1])


def test_one_cycle_turns_momentum_the_other_way():
    optimizer = optim.SGD([nn.Parameter(volta.ones(1))], lr=1.0, momentum=0.5)
    cycle = schedules.OneCycleLR(optimizer, max_lr=0.5, total_steps=10, anneal_strategy="linear")
    group = optimizer.param_groups[0]
    assert (group["initial_lr"], group["max_lr"], group["min_lr"]) == (0.5 / 25, 0.5, 0.5 / 25 / 1e4)
    assert cycle.base_lrs == [0.5 / 25] and (group["max_momentum"], group["base_momentum"]) == (0.95, 0.85)
    momenta = []
    for _ in range(10):
        momenta.append(group["momentum"])
        cycle.step()
    near(momenta, [0.95, 0.9, 0.85] + [0.85 + 0.1 * k / 7 for k in range(1, 8)])
    # The last step of a loop that steps after every batch is no mistake, the one after it is.
    with pytest.raises(ValueError, match="step 11 of a cycle of 10"):
        cycle.step()
    adam = optim.Adam([nn.Parameter(volta.ones(1))])
    schedules.OneCycleLR(adam, 0.1, 10, max_momentum=0.8)
    assert adam.param_groups[0]["betas"] == (0.8, 0.999)
    still = optim.SGD([nn.Parameter(volta.ones(1))], momentum=0.5)
    schedules.OneCycleLR(still, 0.1, 10, cycle_momentum=False)
    assert still.param_groups[0]["momentum"] == 0.5
    with pytest.raises(ValueError, match="cycle_momentum=False"):
        schedules.OneCycleLR(optim.Adagrad([nn.Parameter(volta.ones(1))]), 0.1, 10)


def test_one_cycle_in_three_phases():
    def make(o):
        return schedules.OneCycleLR(
            o, 1.0, 10, pct_start=0.4, anneal_strategy="linear", div_factor=10, final_div_factor=10, three_phase=True
        )

    up = [0.1, 0.4, 0.7, 1.0]
    near(rates(make, 10), [*up, 0.7, 0.4, 0.1, 0.1 - 0.03, 0.1 - 0.06, 0.01])


def test_functions_of_their_own_reach_every_group_through_other_schedules():
    def lambdas(o):
        return schedules.LambdaLR(o, [lambda k: 0.5**k, lambda k: 0.1**k])

    def found(make):
        optimizer = sgd(groups=2)
        scheduler = make(optimizer)
        rows = []
        for _ in range(4):
            rows.append([g["lr"] for g in optimizer.param_groups])
            scheduler.step()
        return [x for row in rows for x in row]

    near(found(lambdas), [1, 2, 0.5, 0.2, 0.25, 0.02, 0.125, 0.002])
    near(found(lambda o: schedules.ChainedScheduler([lambdas(o)])), [1, 2, 0.5, 0.2, 0.25, 0.02, 0.125, 0.002])
    after = lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.5, 9), lambdas(o)], [2])  # noqa: E731
    near(found(after), [0.5, 1, 0.5, 1, 1, 2, 0.5, 0.2])
    near(found(lambda o: schedules.WarmupLR(o, 1, then=lambdas(o))), [0.5, 1, 1, 2, 0.5, 0.2, 0.25, 0.02])


def test_sequences_hold_sequences_and_chains():
    def nested(o):
        inner = schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.5, 9), schedules.ExponentialLR(o, 0.1)], [1])
        chain = schedules.ChainedScheduler([schedules.ConstantLR(o, 0.1, 1), schedules.ExponentialLR(o, 0.5)])
        return schedules.SequentialLR(o, [inner, chain], [3])

    near(rates(nested, 6), [0.5, 1, 0.1, 0.1, 0.5, 0.25])
    with pytest.raises(ValueError, match="metrics"):
        optimizer = sgd()
        schedules.ChainedScheduler([schedules.ReduceLROnPlateau(optimizer)])


def test_states_of_pytorch_load():
    common = {"_step_count": 4, "verbose": False, "_get_lr_called_within_step": False}
    step = {"step_size": 2, "gamma": 0.5, "base_lrs": [1.0], "last_epoch": 3, "_last_lr": [0.5], **common}
    optimizer = sgd()
    scheduler = schedules.StepLR(optimizer, 30)
    scheduler.load_state_dict(step)
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.25 and scheduler.gamma == 0.5

    optimizer = sgd()
    plateau = schedules.ReduceLROnPlateau(optimizer, patience=7)
    plateau.load_state_dict(
        {"factor": 0.5, "default_min_lr": 0, "min_lrs": [0], "patience": 1, "cooldown": 0, "eps": 1e-8, "last_epoch": 3,
         "_last_lr": [0.5], "mode": "min", "threshold": 1e-4, "threshold_mode": "rel", "best": 2.0, "num_bad_epochs": 1,
         "mode_worse": math.inf, "cooldown_counter": 0}
    )  # fmt: skip
    plateau.step(3.0)
    assert optimizer.param_groups[0]["lr"] == 0.25

    exponential = {"gamma": 0.5, "base_lrs": [1.0], "last_epoch": 0, "_last_lr": [1.0], **common}
    constant = {"factor": 0.1, "total_iters": 100, "base_lrs": [1.0], "last_epoch": 1, "_last_lr": [0.1], **common}
    optimizer = sgd()
    children = [schedules.ConstantLR(optimizer, 0.1, 100), schedules.ExponentialLR(optimizer, 0.5)]
    sequence = schedules.SequentialLR(optimizer, children, [9])
    sequence.load_state_dict(
        {"_milestones": [2], "last_epoch": 1, "_last_lr": [0.1], "_schedulers": [constant, {**exponential, "last_epoch": -1}]}
    )
    near(walked(optimizer, [sequence], 4), [0.1, 1, 0.5, 0.25])

    optimizer = sgd()
    chain = schedules.ChainedScheduler([schedules.ConstantLR(optimizer), schedules.ExponentialLR(optimizer, 0.9)])
    chain.load_state_dict({"_last_lr": [0.05], "_schedulers": [{**constant, "total_iters": 2}, {**exponential, "last_epoch": 1}]})
    near(walked(optimizer, [chain], 2), [0.05, 0.25])

    steps = schedules.MultiStepLR(sgd(), [9])
    steps.load_state_dict({"milestones": {1: 1, 3: 2}, "gamma": 0.1, "base_lrs": [1.0], "last_epoch": 2, "_last_lr": [0.1], **common})
    steps.step()
    assert steps.get_last_lr() == pytest.approx([1e-3])


def test_a_schedule_leaves_the_rates_of_a_loaded_optimizer_alone():
    optimizer = sgd()
    both = [schedules.ExponentialLR(optimizer, 0.9), schedules.StepLR(optimizer, 2, 0.1)]
    walked(optimizer, both, 3)
    states = [optimizer.state_dict(), *(s.state_dict() for s in both)]
    near(walked(optimizer, both, 3), [0.0729, 0.006561, 0.0059049])
    again = sgd()
    others = [schedules.ExponentialLR(again, 0.9), schedules.StepLR(again, 2, 0.1)]
    again.load_state_dict(states[0])
    for scheduler, state in reversed(list(zip(others, states[1:]))):
        scheduler.load_state_dict(state)
    near(walked(again, others, 3), [0.0729, 0.006561, 0.0059049])


def test_a_schedule_that_begins_in_the_middle_leaves_the_rates_it_finds():
    for make, next_rate in [
        (lambda o: schedules.ExponentialLR(o, 0.5, last_epoch=2), 0.05),
        (lambda o: schedules.LinearLR(o, 0.2, 1.0, 10, last_epoch=2), 0.1 * 0.52 / 0.44),
        (lambda o: schedules.PolynomialLR(o, 9, last_epoch=2), 0.1 * 5 / 6),
    ]:
        optimizer = sgd()
        optimizer.param_groups[0].update(initial_lr=1.0, lr=0.1)
        scheduler = make(optimizer)
        assert scheduler.last_epoch == 3 and scheduler.get_last_lr() == [0.1]
        scheduler.step()
        assert scheduler.get_last_lr() == pytest.approx([next_rate])


def test_states_are_saved_with_a_checkpoint(tmp_path):
    optimizer = sgd()
    made = [
        schedules.MultiStepLR(optimizer, [1, 3]),
        schedules.WarmupLR(optimizer, 2),
        schedules.LambdaLR(optimizer, lambda k: 1.0),
        schedules.ReduceLROnPlateau(optimizer),
        schedules.OneCycleLR(optimizer, 1.0, 10),
    ]
    volta.save({"all": [s.state_dict() for s in made]}, tmp_path / "schedules.safetensors")
    for scheduler, state in zip(made, volta.load(tmp_path / "schedules.safetensors")["all"]):
        scheduler.load_state_dict(state)
        assert scheduler.state_dict() == state


def test_schedules_of_ones_own_define_rate_or_get_lr():
    class Halved(schedules.LRScheduler):
        def rate(self, base, step):
            return base / 2**step

    class Recursive(schedules.LRScheduler):
        def get_lr(self):
            return [group["lr"] * (0.5 if self.last_epoch else 1) for group in self.optimizer.param_groups]

    for kind in (Halved, Recursive):
        near(rates(kind, 4), [1, 0.5, 0.25, 0.125])
    with pytest.raises(NotImplementedError, match="neither rate nor get_lr"):
        schedules.LRScheduler(sgd())
    with pytest.raises(KeyError, match="initial_lr"):
        schedules.StepLR(sgd(), 1, last_epoch=3)
