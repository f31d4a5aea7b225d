"""Whole trainings: they learn, they need no more memory with time, they let other threads run, and stop at Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from nn_reference import normal

import volta
import volta.nn.functional as F
from volta import nn, optim
from volta.utils.data import DataLoader, TensorDataset


def test_an_mlp_learns_xor():
    volta.manual_seed(0)
    x = volta.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = volta.tensor([[0.0], [1.0], [1.0], [0.0]])
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    adam = optim.Adam(net.parameters(), lr=0.05)
    for _ in range(300):
        adam.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        adam.step()
    assert loss.item() < 1e-3
    assert np.array_equal(net(x).detach().numpy().round(), y.numpy())


def test_a_classifier_learns_from_a_loader():
    volta.manual_seed(1)
    centers = normal(4, 8, seed=1) * 3
    labels = np.arange(400) % 4
    data = TensorDataset(volta.tensor(centers[labels] + normal(400, 8)), volta.tensor(labels))
    net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
    sgd = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    schedule = optim.lr_scheduler.CosineAnnealingLR(sgd, 3)
    for _ in range(3):
        for x, y in DataLoader(data, batch_size=50, shuffle=True, seed=0, num_workers=1):
            sgd.zero_grad()
            F.cross_entropy(net(x), y).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            sgd.step()
        schedule.step()
    net.eval()
    with volta.no_grad():
        x, y = data.tensors
        accuracy = (net(x).argmax(1) == y).float().mean().item()
    assert accuracy > 0.95


def test_a_small_convolutional_network_learns():
    volta.manual_seed(0)
    x = np.zeros((32, 1, 6, 6), np.float32)
    x[::2, :, 2] = 1
    x[1::2, :, :, 2] = 1
    y = volta.tensor(np.arange(32) % 2)
    images = volta.tensor(x + 0.1 * normal(*x.shape))
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 2))
    adam = optim.AdamW(net.parameters(), lr=0.02)
    for _ in range(60):
        adam.zero_grad()
        loss = F.cross_entropy(net(images), y)
        loss.backward()
        adam.step()
    assert loss.item() < 0.1


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_ten_thousand_steps_need_no_more_memory_than_a_thousand():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    adam = optim.Adam(net.parameters(), lr=1e-3)
    x, y = volta.tensor(normal(4, 8)), volta.zeros(4, 1)

    def steps(count):
        for k in range(count):
            adam.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            adam.step()
            if k % 100 == 0:
                loss.item()

    steps(1000)
    memory, pool = resident(), volta.profiler.counters().pool_bytes
    steps(9000)
    assert volta.profiler.counters().pool_bytes <= pool
    assert resident() - memory < 4 << 20


def test_other_threads_run_while_a_step_computes():
    w = nn.Parameter(volta.tensor(normal(600, 600)))
    sgd = optim.SGD([w], lr=1e-6)
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    y = w
    for _ in range(12):
        y = y @ w
    y.sum().backward()
    interval = sys.getswitchinterval()
    # Held, the lock would now stay with this thread for longer than the step takes.
    sys.setswitchinterval(1000)
    try:
        thread.start()
        before = ticks[0]
        sgd.step()
        assert ticks[0] > before
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        thread.join()


def test_two_threads_train_two_networks():
    losses = {}

    def train(seed):
        net = nn.Linear(3, 1)
        sgd = optim.SGD(net.parameters(), lr=0.1)
        x = volta.tensor(normal(16, 3, seed=seed))
        y = x.sum(1, keepdim=True)
        for _ in range(200):
            sgd.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            sgd.step()
        losses[seed] = loss.item()

    threads = [threading.Thread(target=train, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(losses.values()) < 1e-3


def test_ctrl_c_ends_a_training():
    program = """
import signal, volta
from volta import nn, optim
# A process of a shell's background job ignores it from the start.
signal.signal(signal.SIGINT, signal.default_int_handler)
net = nn.Linear(64, 64)
adam = optim.Adam(net.parameters())
x = volta.ones(64, 64)
begun = False
try:
    while True:
        adam.zero_grad()
        net(x).sum().backward()
        adam.step()
        if not begun:
            begun = True
            print("begun", flush=True)
except KeyboardInterrupt:
    print("ended", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "ended\n"
        assert child.wait(60) == 0
    finally:
        child.kill()


def test_every_name_of_the_packages_is_there_and_explained():
    for package in (nn, optim, optim.lr_scheduler, volta.utils.data, volta.amp, volta.profiler):
        names = getattr(package, "__all__", [n for n in vars(package) if n[0].isupper()])
        for name in names:
            thing = getattr(package, name)
            assert thing.__doc__ or callable(thing) is False, f"{package.__name__}.{name}"
    for name, function in vars(F).items():
        if callable(function) and not name.startswith("_") and function.__module__ == F.__name__:
            assert function.__doc__, name
