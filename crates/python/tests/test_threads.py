"""Several threads of Python on one model."""

import threading
import time

import numpy
import pytest

import frazil

SOURCE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.fc = nn.Linear(64, 64)

    def forward(self, x):
        for _ in range(20):
            x = torch.tanh(self.fc(x))
        return x

    @torch.jit.export
    def count(self) -> int:
        self.calls += 1
        return self.calls
"""


def in_threads(count, work):
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.fixture
def model():
    return frazil.script(SOURCE).eval()


def test_threads_get_the_results_of_one(model):
    inputs = [numpy.full((2, 64), number, dtype="float32") for number in range(8)]
    expected = [model(x) for x in inputs]

    def work(number):
        for _ in range(30):
            numpy.testing.assert_array_equal(model(inputs[number]), expected[number])

    in_threads(8, work)


def test_first_calls_on_all_threads_at_once(model):
    shapes = [(rows, 64) for rows in range(1, 5)]

    def work(number):
        for rows, columns in shapes:
            assert model(numpy.ones((rows, columns), dtype="float32")).shape == (rows, columns)

    in_threads(8, work)


def test_models_are_loaded_and_dropped_meanwhile(model):
    archive = model.save_to_buffer()
    x = numpy.ones((1, 64), dtype="float32")
    expected = model(x)

    def work(number):
        for _ in range(5):
            if number % 2:
                numpy.testing.assert_allclose(frazil.load(archive)(x), expected, rtol=1e-6)
            else:
                numpy.testing.assert_array_equal(model(x), expected)

    in_threads(6, work)


def test_attributes_are_read_and_set_meanwhile(model):
    def work(number):
        for step in range(10):
            if number == 0:
                model.calls = step
            elif number == 1:
                assert isinstance(model.calls, int)
            else:
                assert isinstance(model.count(), int)

    in_threads(4, work)


def test_other_threads_run_during_a_call():
    endless = frazil.script("def f(n: int):\n    x = 0\n    while x < n:\n        x += 1\n    return x\n", engine="interpreter")
    done = threading.Event()

    def work():
        endless.f(300_000)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    ticks = 0
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 3
