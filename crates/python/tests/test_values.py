"""Values of every kind that TorchScript passes, in and out."""

import collections
import enum
import math
from typing import NamedTuple

import numpy as np
import pytest

import frazil

SOURCE = """
class Color(Enum):
    RED = 1
    GREEN = 2

class Mode(Enum):
    FAST = "fast"
    SLOW = "slow"

class Pair(NamedTuple):
    first: Tensor
    count: int

@torch.jit.script
class Counter:
    def __init__(self, start: int, step: float):
        self.value = start
        self.step = step
        self.data = torch.zeros(2)
        self.names = ["a"]
    def bump(self, by: int):
        self.value += by

class Values(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return x
    @torch.jit.export
    def an_int(self, x: int): return x
    @torch.jit.export
    def a_float(self, x: float): return x
    @torch.jit.export
    def a_bool(self, x: bool): return x
    @torch.jit.export
    def a_complex(self, x: complex): return x
    @torch.jit.export
    def a_str(self, x: str): return x
    @torch.jit.export
    def a_device(self, x: torch.device): return x
    @torch.jit.export
    def a_dtype(self, x: torch.dtype): return torch.zeros(1, dtype=x)
    @torch.jit.export
    def optional(self, x: Optional[int]): return x
    @torch.jit.export
    def optional_tensor(self, x: Optional[Tensor] = None): return x
    @torch.jit.export
    def union(self, x: Union[int, str, Tensor]): return x
    @torch.jit.export
    def ints(self, x: List[int]): return x
    @torch.jit.export
    def floats(self, x: List[float]): return x
    @torch.jit.export
    def tensors(self, x: List[Tensor]): return x
    @torch.jit.export
    def appended(self, x: List[int]):
        x.append(7)
        return x
    @torch.jit.export
    def a_tuple(self, x: Tuple[int, str, Tensor]): return x
    @torch.jit.export
    def a_dict(self, x: Dict[str, int]): return x
    @torch.jit.export
    def of_ints(self, x: Dict[int, List[float]]): return x
    @torch.jit.export
    def stored(self, x: Dict[str, int]):
        x["new"] = 1
        return len(x)
    @torch.jit.export
    def nested(self, x: Dict[str, List[Tuple[int, Optional[Tensor]]]]): return x
    @torch.jit.export
    def color(self, x: Color): return x
    @torch.jit.export
    def green(self): return Color.GREEN
    @torch.jit.export
    def mode(self, x: Mode): return x, x.value, x.name
    @torch.jit.export
    def colors(self, x: List[Color]): return x
    @torch.jit.export
    def pair(self, x: Pair): return Pair(x.first + 1, x.count + 1)
    @torch.jit.export
    def make(self, start: int): return Counter(start, 0.5)
    @torch.jit.export
    def bump(self, c: Counter, by: int):
        c.bump(by)
        return c
    @torch.jit.export
    def nothing(self, x: int) -> None:
        y = x
    @torch.jit.export
    def several(self): return 1, 2.5, "s", None, [1, 2], {"a": 1}, (True, 1j)
"""


@pytest.fixture(scope="module")
def model():
    return frazil.script(SOURCE, name="Values")


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**63 - 1, -(2**63)])
def test_ints_of_64_bits(model, number):
    got = model.an_int(number)
    assert type(got) is int and got == number


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_larger_ints_are_refused(model, number):
    with pytest.raises(ValueError, match=f"argument 1: expected an integer of 64 bits, not {number}"):
        model.an_int(number)


@pytest.mark.parametrize("number", [0.0, -0.0, 1e308, 5e-324, math.inf, -math.inf])
def test_floats(model, number):
    got = model.a_float(number)
    assert type(got) is float and got == number and math.copysign(1, got) == math.copysign(1, number)


def test_nan(model):
    assert math.isnan(model.a_float(math.nan))


def test_bools(model):
    assert model.a_bool(True) is True and model.a_bool(False) is False
    assert type(model.optional(5)) is int
    # PyTorch takes numbers for bools.
    assert model.a_bool(3) is True and model.a_bool(None) is False


def test_complex_numbers(model):
    got = model.a_complex(1.5 - 2j)
    assert type(got) is complex and got == 1.5 - 2j
    assert model.a_complex(3) == 3 + 0j and type(model.a_complex(3.5)) is complex


@pytest.mark.parametrize("text", ["", "text", "ä€🎉", "with\0nul", "a\nb"])
def test_strings(model, text):
    assert model.a_str(text) == text


def test_a_lone_surrogate_is_refused(model):
    with pytest.raises((ValueError, TypeError)):
        model.a_str("\ud800")


def test_scalars_of_numpy(model):
    assert model.an_int(np.int32(3)) == 3 and type(model.an_int(np.int64(3))) is int
    assert model.a_float(np.float32(0.5)) == 0.5 and type(model.a_float(np.float64(0.5))) is float
    assert model.a_bool(np.bool_(True)) is True
    assert model.a_complex(np.complex128(1j)) == 1j
    assert model.ints([np.int64(1), 2]) == [1, 2]
    assert model.a_str(np.str_("s")) == "s"


def test_subclasses_of_numbers_and_strings(model):
    class Number(enum.IntEnum):
        TWO = 2

    class Text(str):
        pass

    class Real(float):
        pass

    assert model.an_int(Number.TWO) == 2
    assert model.a_str(Text("s")) == "s"
    assert model.a_float(Real(0.5)) == 0.5


def test_none_and_optionals(model):
    assert model.optional(None) is None and model.optional(4) == 4
    assert model.optional_tensor() is None and model.optional_tensor(None) is None
    assert model.optional_tensor(np.ones(2)).tolist() == [1.0, 1.0]
    assert model.nothing(3) is None


def test_unions(model):
    assert model.union(3) == 3 and model.union("s") == "s" and model.union(np.ones(1)).tolist() == [1.0]
    with pytest.raises(frazil.ArgumentError):
        model.union(1.5)


def test_lists(model):
    assert model.ints([]) == [] and model.ints([1, 2, 3]) == [1, 2, 3]
    assert model.floats([1.0, 2.5]) == [1.0, 2.5]
    tensors = model.tensors([np.ones(2), np.zeros((0, 3), np.int32)])
    assert [t.shape for t in tensors] == [(2,), (0, 3)] and tensors[1].dtype == np.int32
    assert model.tensors([]) == []
    assert model.ints(collections.UserList([1]).data) == [1]


def test_the_caller_keeps_the_list(model):
    """PyTorch copies lists and dicts of Python on the way in."""
    given = [1, 2]
    assert model.appended(given) == [1, 2, 7] and given == [1, 2]
    names = {"a": 1}
    assert model.stored(names) == 2 and names == {"a": 1}


def test_tuples(model):
    number, text, array = model.a_tuple((1, "s", np.ones(1)))
    assert (number, text, array.tolist()) == (1, "s", [1.0])
    with pytest.raises(frazil.ArgumentError):
        model.a_tuple((1, "s"))


def test_dicts(model):
    given = {"b": 1, "a": 2}
    got = model.a_dict(given)
    assert got == given and list(got) == ["b", "a"] and got is not given
    assert model.of_ints({1: [0.5], -1: []}) == {1: [0.5], -1: []}
    assert model.a_dict({}) == {}
    assert model.a_dict(collections.OrderedDict(given)) == given
    assert model.a_dict(collections.defaultdict(int, given)) == given


def test_nested_containers(model):
    given = {"k": [(1, None), (2, np.ones(2))], "empty": []}
    got = model.nested(given)
    assert got["k"][0] == (1, None) and got["k"][1][1].tolist() == [1.0, 1.0] and got["empty"] == []


def test_containers_that_contain_themselves_are_refused(model):
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested at most 1000 deep"):
        model.ints(endless)
    endless = {}
    endless["a"] = endless
    with pytest.raises(ValueError, match="nested at most 1000 deep"):
        model.a_dict(endless)


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


def test_enumerations_come_back_as_the_callers(model):
    assert model.color(Color.RED) is Color.RED
    assert model.green() is Color.GREEN
    assert model.colors([Color.GREEN, Color.RED]) == [Color.GREEN, Color.RED]
    assert model.mode(Mode.SLOW) == (Mode.SLOW, "slow", "SLOW")


def test_enumerations_that_the_caller_has_not():
    other = frazil.script(SOURCE.replace("Color", "Shade").replace("class Values", "class Other"), name="Other")
    got = other.green()
    assert isinstance(got, enum.Enum) and got.name == "GREEN" and got.value == 2 and type(got).__name__ == "Shade"
    assert other.color(got) is got


def test_enumerations_that_the_model_has_not(model):
    class Elsewhere(enum.Enum):
        ONE = 1

    with pytest.raises(TypeError, match="no value of TorchScript"):
        model.color(Elsewhere.ONE)


class Pair(NamedTuple):
    first: np.ndarray
    count: int


def test_named_tuples(model):
    got = model.pair(Pair(np.ones(2, np.float32), 3))
    assert isinstance(got, tuple) and got._fields == ("first", "count") and type(got).__name__ == "Pair"
    assert got.first.tolist() == [2.0, 2.0] and got.count == 4
    again = model.pair(got)
    assert again.count == 5 and type(again) is type(got)


def test_objects_of_classes(model):
    counter = model.make(3)
    assert isinstance(counter, frazil.Object)
    assert counter.value == 3 and counter.step == 0.5 and counter.names == ["a"] and counter.data.tolist() == [0.0, 0.0]
    counter.value = 10
    back = model.bump(counter, 5)
    assert back.value == 15 and counter.value == 15, "objects are passed by reference"
    assert {"value", "step", "data", "names"} <= set(dir(counter))
    assert "Counter" in repr(counter)
    with pytest.raises(AttributeError, match="missing"):
        counter.missing
    with pytest.raises(AttributeError, match="missing"):
        counter.missing = 1
    with pytest.raises(TypeError, match="attribute `value`: expected a value of type int, not str"):
        counter.value = "text"


def test_arrays_that_objects_keep_are_copies(model):
    counter = model.make(1)
    array = np.ones(2, np.float32)
    counter.data = array
    array += 5
    assert counter.data.tolist() == [1.0, 1.0]


def test_devices(model):
    assert model.a_device("cpu") == "cpu"


def test_dtypes(model):
    assert model.a_dtype(np.float64).dtype == np.float64
    assert model.a_dtype(np.dtype("int32")).dtype == np.int32
    assert model.a_dtype(5).dtype == np.float16


def test_results_of_several_kinds(model):
    assert model.several() == (1, 2.5, "s", None, [1, 2], {"a": 1}, (True, 1j))


@pytest.mark.parametrize("given", [object(), {1, 2}, b"bytes", range(3), lambda: 0, int, Ellipsis])
def test_what_is_no_value(model, given):
    with pytest.raises(frazil.ArgumentError, match="argument 1: .* is no value of TorchScript: expected an array"):
        model(given)


def test_futures_are_waited_for():
    source = "def add(x: Tensor) -> Tensor:\n    return x + 1\ndef f(x):\n    return torch.jit.fork(add, x)\n"
    assert frazil.script(source, name="f")(np.ones(1)).tolist() == [2.0]
