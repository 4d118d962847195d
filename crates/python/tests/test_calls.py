"""Calls: positional and keyword arguments, defaults, methods, submodules, and PyTorch's words for arguments that do not fit."""

import json

import numpy as np
import pytest

import frazil
import recorded
from conftest import FIXTURES

SOURCE = """
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
    def forward(self, x, k: int = 3):
        return x * self.weight * k
    @torch.jit.export
    def plus(self, x):
        return x + self.weight

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x, scale: float = 2.0, name: str = "n", flag: bool = False, other: Optional[Tensor] = None):
        if flag:
            x = -x
        if other is not None:
            x = x + other
        return self.inner(x) * scale, name
    @torch.jit.export
    def twice(self, x, times: int = 2):
        return x * times
"""


@pytest.fixture
def net():
    return frazil.script(SOURCE, name="Net").eval()


ONES = np.ones(2, np.float32)


def test_positional_arguments_and_defaults(net):
    result, name = net(ONES)
    assert result.tolist() == [6.0, 6.0] and name == "n"
    result, name = net(ONES, 1.0, "m")
    assert result.tolist() == [3.0, 3.0] and name == "m"


def test_keyword_arguments(net):
    result, name = net(x=ONES, name="k", scale=0.5)
    assert result.tolist() == [1.5, 1.5] and name == "k"
    result, _ = net(ONES, flag=True)
    assert result.tolist() == [-6.0, -6.0]
    result, _ = net(ONES, other=ONES, flag=False)
    assert result.tolist() == [12.0, 12.0]


def test_an_int_is_a_float_where_one_is_expected(net):
    result, _ = net(ONES, 3)
    assert result.tolist() == [9.0, 9.0]


def test_methods(net):
    assert net.twice(ONES).tolist() == [2.0, 2.0]
    assert net.twice(ONES, times=5).tolist() == [5.0, 5.0]
    assert net.forward(ONES)[0].tolist() == [6.0, 6.0]
    method = net.twice
    assert isinstance(method, frazil.ScriptMethod) and method.name == "twice"
    assert "twice" in repr(method)
    assert method(ONES).tolist() == [2.0, 2.0]


def test_submodules_are_called(net):
    assert net.inner(ONES).tolist() == [3.0, 3.0]
    assert net.inner(ONES, k=1).tolist() == [1.0, 1.0]
    assert net.inner.plus(ONES).tolist() == [2.0, 2.0]
    assert net.get_submodule("inner").forward(ONES, 2).tolist() == [2.0, 2.0]


def test_functions_are_called():
    unit = frazil.script("def f(x, y: int = 2) -> Tensor:\n    return x * y\ndef g(x: int):\n    return x + 1\n", name="g")
    assert unit(1) == 2
    unit = frazil.script("def f(x, y: int = 2) -> Tensor:\n    return x * y\n")
    assert unit.f(ONES).tolist() == [2.0, 2.0]
    assert unit.f(y=4, x=ONES).tolist() == [4.0, 4.0]


def test_a_function_of_python_is_compiled():
    assert frazil.script(python_function).python_function(ONES, 2).tolist() == [3.0, 3.0]


def python_function(x, n: int):
    for _ in range(n):
        x = x + 1
    return x


def test_one_model_of_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    model = frazil.script("def f(x):\n    return (x * 2).sum()\n")
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: float(model.f(np.full(100, i, np.float32))), range(200)))
    assert results == [200.0 * i for i in range(200)]


@pytest.mark.parametrize(
    "args, kwargs, words",
    [
        ((), {}, "missing value for argument 'x'"),
        ((ONES, 1.0, "n", False, None, 7), {}, "at most"),
        ((ONES,), {"unknown": 1}, "unknown"),
        ((ONES,), {"x": ONES}, "x"),
        ((ONES, "text"), {}, "Expected a value of type 'float' for argument 'scale' but instead found type 'str'"),
        ((ONES,), {"name": 3}, "Expected a value of type 'str' for argument 'name' but instead found type 'int'"),
    ],
)
def test_arguments_that_do_not_fit(net, args, kwargs, words):
    with pytest.raises(frazil.ArgumentError) as caught:
        net(*args, **kwargs)
    assert isinstance(caught.value, TypeError)
    assert words in str(caught.value)
    assert not str(caught.value).startswith("RuntimeError")


def recorded_calls(name):
    return json.loads((FIXTURES / "calls" / name).read_text())


@pytest.fixture(scope="module")
def models_of_calls():
    folder = FIXTURES / "calls"
    return {
        "source": frazil.load(folder / "arguments.py"),
        "archive": frazil.load(folder / "arguments.pt"),
        "declarations": frazil.load(folder / "declarations.py"),
        "function": frazil.load(folder / "function.py"),
    }


@pytest.mark.parametrize("file", ["arguments.json", "declarations.json"])
def test_calls_give_what_pytorch_gives(models_of_calls, file):
    """Results, and the first line of PyTorch's errors."""
    failures = []
    for index, call in enumerate(recorded_calls(file)):
        model = models_of_calls[call["of"]]
        args = [recorded.value(argument, {}, "numpy") for argument in call["args"]]
        kwargs = {k: recorded.value(v, {}, "numpy") for k, v in call.get("kwargs", {}).items()}
        function = getattr(model, call["method"])
        try:
            got = function(*args, **kwargs)
        except frazil.ArgumentError as error:
            expected = call.get("raises", "")
            if not str(error).startswith(expected.splitlines()[0] if expected else "no error"):
                failures.append(f"{index}: {call}\n   {error}")
        except Exception as error:
            failures.append(f"{index}: {call}\n   {type(error).__name__}: {error}")
        else:
            if "result" not in call:
                failures.append(f"{index}: {call}\n   {got!r}")
                continue
            recorded.check(got, call["result"], {}, "numpy", 1e-6, 1e-6)
    assert not failures, f"{len(failures)} fail\n" + "\n".join(failures)
