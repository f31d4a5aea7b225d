"""Threads, signals, memory, and what happens to the lock while kernels run."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import volta


def in_threads(work, count=4):
    errors = []

    def guarded(k):
        try:
            work(k)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_threads_compute_side_by_side():
    def work(k):
        for step in range(20):
            x = volta.full((8, 8), float(k + step), requires_grad=True)
            y = (x @ x).sum()
            y.backward()
            assert y.item() == 512 * (k + step) ** 2
            assert x.grad[0, 0].item() == 16 * (k + step)

    in_threads(work)


def test_threads_share_tensors():
    shared = volta.arange(1000.0).requires_grad_()

    def work(k):
        for _ in range(20):
            assert (shared * 2).sum().item() == 999000

    in_threads(work)


def test_memory_of_others_is_let_go_of_while_threads_compute():
    def work(k):
        for step in range(200):
            array = np.full(64, float(step))
            total = (volta.from_dlpack(array) + volta.from_numpy(array)).sum()
            del array
            assert total.item() == 128 * step

    in_threads(work)


def test_modes_and_devices_are_each_threads_own():
    with volta.no_grad(), volta.device("gpu:7"):
        seen = []
        thread = threading.Thread(target=lambda: seen.append((volta.is_grad_enabled(), volta.get_default_device().type)))
        thread.start()
        thread.join()
    assert seen == [(True, "cpu")]


def test_other_threads_run_while_a_kernel_does():
    x = volta.rand(700, 700).realize()
    steps, done = [], threading.Event()

    def count():
        while not done.is_set():
            steps.append(1)

    thread = threading.Thread(target=count)
    thread.start()
    y = x
    for _ in range(12):
        y = y @ x * 1e-3
    before = len(steps)
    y.realize()
    during = len(steps) - before
    done.set()
    thread.join()
    # A thread that waited for the lock could not have counted.
    assert during > 100


def test_ctrl_c_stops_a_long_computation():
    program = textwrap.dedent(
        """
        import signal, volta
        # A process of a shell's background job ignores it from the start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        x = volta.rand(400, 400).realize()
        try:
            print("begun", flush=True)
            while True:
                x = (x @ x * 1e-3).realize()
        except KeyboardInterrupt:
            print("stopped", volta.ones(2).sum().item(), flush=True)
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    try:
        output, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert output == "stopped 2.0\n" and child.returncode == 0


def test_ctrl_c_stops_in_the_middle_of_a_plan():
    program = textwrap.dedent(
        """
        import signal, threading, volta
        signal.signal(signal.SIGINT, signal.default_int_handler)
        x = volta.rand(500, 500, device="cpu").realize()
        y = x
        for _ in range(4000):
            y = y @ x * 4e-3
        early = (x @ x).sum()
        # The plan takes long; this comes when it has begun.
        threading.Timer(1.0, lambda: print("begun", flush=True)).start()
        try:
            y.realize()
        except KeyboardInterrupt:
            print("stopped", y.is_realized, early.item() == (x @ x).sum().item(), flush=True)
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    try:
        output, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert output == "stopped False True\n" and child.returncode == 0


def resident():
    """The process's memory in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_memory_is_flat_over_ten_thousand_small_steps():
    w = volta.randn(8, 8, requires_grad=True)
    data = np.ones((4, 8), np.float32)

    def step(k):
        x = volta.from_numpy(data)
        loss = ((x @ w).tanh() ** 2).mean()
        loss.backward()
        with volta.no_grad():
            w.sub_(w.grad * 0.01)
        w.grad = None
        volta.realize(w)
        if k % 10 == 0:
            w.detach().numpy()
            np.from_dlpack(w.detach())
            loss.item()
            w[0, 1:3].tolist()

    def steps(count):
        for k in range(count):
            step(k)
        gc.collect()
        return resident()

    before = steps(2000)
    after = steps(8000)
    assert after - before < 4 << 20, f"{(after - before) >> 10} KiB more after 8000 steps"


def test_pending_chains_of_any_length_can_be_dropped_and_computed():
    x = volta.zeros(1)
    for _ in range(3000):
        x = x + 1
    assert x.item() == 3000
    y = volta.zeros(1)
    for _ in range(50000):
        y = y + 1
    del y
    gc.collect()
