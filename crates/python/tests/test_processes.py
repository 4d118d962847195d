"""Forks, and processes of multiprocessing."""

import concurrent.futures
import multiprocessing
import os
import signal
import sys
import threading
import time

import numpy
import pytest

import frazil

SOURCE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 16)

    def forward(self, x):
        return torch.relu(self.fc(x))
"""
X = numpy.ones((3, 16), dtype="float32")
MODEL = None


def call(number):
    return MODEL(X * number)


def in_child(work, seconds=60):
    """Runs `work` in a forked child and returns its exit status; a child that hangs is killed and fails the test."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = work()
        finally:
            os._exit(status)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


@pytest.fixture(autouse=True)
def model():
    global MODEL
    MODEL = frazil.script(SOURCE).eval()
    yield MODEL


@pytest.mark.parametrize("threads", [1, 2])
def test_a_child_calls_and_compiles(model, threads):
    model = model.with_options(threads=threads)
    expected, other = model(X), X[:2]

    def work():
        numpy.testing.assert_array_equal(model(X), expected)
        return 0 if model(other).shape == (2, 16) else 2

    assert in_child(work) == 0
    numpy.testing.assert_array_equal(model(X), expected)


def test_a_fork_while_other_threads_call(model):
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            model(X)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()

    def work():
        try:
            model(X)
        except frazil.Error:
            # The parent was in the middle of a call for longer than the fork waits: refused, with a message.
            pass
        return 0

    try:
        for _ in range(10):
            assert in_child(work) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_pools_of_multiprocessing(model):
    context = multiprocessing.get_context("fork")
    expected = [call(number) for number in range(6)]
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        for got, wanted in zip(pool.map(call, range(6), timeout=60), expected, strict=True):
            numpy.testing.assert_array_equal(got, wanted)


def loads_and_calls(path, number):
    return frazil.load(path)(X * number)


def test_spawned_processes_load_for_themselves(model, tmp_path):
    path = tmp_path / "model.pt"
    model.save(path)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        got = pool.submit(loads_and_calls, path, 2).result(timeout=120)
    numpy.testing.assert_allclose(got, model(X * 2), rtol=1e-6)


class Batches:
    """A dataset of torch whose items a model computes."""

    def __len__(self):
        return 8

    def __getitem__(self, number):
        return MODEL(X * number)


def test_workers_of_a_torch_data_loader(model):
    data = pytest.importorskip("torch.utils.data")
    model(X)
    loader = data.DataLoader(Batches(), batch_size=2, num_workers=2, timeout=60)
    batches = list(loader)
    assert len(batches) == 4
    numpy.testing.assert_allclose(batches[1][1].numpy(), MODEL(X * 3), rtol=1e-6)


ENDLESS = """
import frazil, signal
# A shell's background jobs ignore it, and so do their children.
signal.signal(signal.SIGINT, signal.default_int_handler)
model = frazil.script("def f(n: int):\\n    x = 0\\n    while n > 0:\\n        x += 1\\n    return x\\n", engine="interpreter")
print("ready", flush=True)
try:
    model.f(1)
except KeyboardInterrupt:
    assert model.f(0) == 0
    print("interrupted", flush=True)
"""


def test_a_call_is_interrupted():
    import subprocess

    child = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.2)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    assert time.monotonic() - start < 5
    assert child.wait(30) == 0
