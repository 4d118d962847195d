"""NumPy arrays, and arrays of other libraries by DLPack: dtypes, layouts, writes, and which memory is shared."""

import gc
import weakref

import numpy as np
import pytest

import frazil
from frazil._frazil import has_native_engine

SOURCE = """
class Arrays(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = torch.zeros(3)
    def forward(self, x): return x
    @torch.jit.export
    def twice(self, x): return x + x
    @torch.jit.export
    def write(self, x):
        x.add_(1)
        return x
    @torch.jit.export
    def fill_first(self, x, y):
        x.fill_(7)
        return y.clone()
    @torch.jit.export
    def set_first(self, x, value: float):
        x[0] = value
    @torch.jit.export
    def sizes(self, x): return list(x.size()), list(x.stride()), x.storage_offset(), x.is_contiguous()
    @torch.jit.export
    def view(self, x): return x[1:], x.t() if x.dim() == 2 else x, x.view(-1)
    @torch.jit.export
    def pair(self, x): return x, x
    @torch.jit.export
    def keep(self, x): self.kept = x.clone()
    @torch.jit.export
    def keep_itself(self, x): self.kept = x
    @torch.jit.export
    def set_nothing(self, x): self.kept = x + 1
    @torch.jit.export
    def read(self): return self.kept + 0
    @torch.jit.export
    def fill_nothing(self, x, y): return y.size(0)
    @torch.jit.export
    def in_list(self, x: List[Tensor]):
        for t in x:
            t.mul_(2)
    @torch.jit.export
    def in_dict(self, x: Dict[str, Tensor]):
        x["a"].zero_()
        return x["a"]
    @torch.jit.export
    def is_sum(self, x): return x.sum()
    @torch.jit.export
    def transposed(self, x): return x.t()
    @torch.jit.export
    def write_then_raise(self, x):
        x.add_(1)
        raise ValueError("stop")
    @torch.jit.export
    def cast(self, x, dtype: int): return x.to(dtype)
"""


@pytest.fixture(scope="module")
def model():
    return frazil.script(SOURCE, name="Arrays")


def address(array):
    return array.__array_interface__["data"][0]


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_in_and_out_without_a_copy(model, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    assert model(array) is array
    got = model.twice(array) if dtype != "bool" else model.transposed(array).T
    want = array + array if dtype != "bool" else array
    assert got.dtype == array.dtype and (got == want).all()


@pytest.mark.parametrize("dtype", ["longlong", "intc", "long", "short", "byte", "ubyte"])
def test_c_names_of_integers(model, dtype):
    array = np.ones(3, dtype)
    assert model.is_sum(array) == 3


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "longdouble", "S3", "U3", "O", "datetime64[s]", "V4"])
def test_dtypes_that_torchscript_has_not(model, dtype):
    with pytest.raises(frazil.ArgumentError, match="argument 1: NumPy arrays of .* are not supported: expected bool"):
        model(np.zeros(2, dtype))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (1, 1, 1), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128", "bool"])
def test_shapes(model, shape, dtype):
    array = np.ones(shape, dtype)
    got = model.cast(array, 7)
    assert got.shape == shape and got.dtype == np.float64 and (got == 1).all()
    assert model(array).shape == shape


def layouts():
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    unaligned = np.zeros(24 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(4, 6)
    unaligned[...] = base
    record = np.zeros(4, np.dtype([("a", np.uint8), ("b", np.float32)]))
    record["b"] = np.arange(4)
    yield "plain", base, True
    yield "transposed", base.T, True
    yield "fortran", np.asfortranarray(base), True
    yield "strided", base[::2, ::3], True
    yield "slice", base[1:, 2:], True
    yield "column", base[:, 2], True
    yield "broadcast", np.broadcast_to(base[0], (5, 6)), True
    yield "new axis", base[:, None], True
    yield "zero stride column", np.lib.stride_tricks.as_strided(base, (3, 2), (0, 4)), True
    yield "windows", np.lib.stride_tricks.sliding_window_view(base[0], 3), True
    yield "reversed", base[::-1], False
    yield "both reversed", base[::-1, ::-2], False
    yield "unaligned", unaligned, False
    yield "byte-swapped", base.astype(base.dtype.newbyteorder()), False
    yield "byte-swapped and reversed", base.astype(base.dtype.newbyteorder())[::-1], False
    yield "field", record["b"], False
    yield "empty reversed", base[:0][::-1], None
    yield "one reversed", base[:1][::-1], None


LAYOUTS = [pytest.param(array, shares, id=name) for name, array, shares in layouts()]


@pytest.mark.parametrize("array, shares", LAYOUTS)
def test_layouts(model, array, shares):
    got = model.twice(array)
    assert got.shape == array.shape and (got == array + array).all() and got.dtype == np.float32
    same = model(array)
    assert (same == array).all() and same.shape == array.shape
    if shares is not None:
        assert np.shares_memory(same, array) is shares
    sizes, strides, offset, contiguous = model.sizes(array)
    assert sizes == list(array.shape) and offset == 0
    if shares:
        walked = [i for i, size in enumerate(array.shape) if size > 1]
        assert [strides[i] for i in walked] == [array.strides[i] // 4 for i in walked]
        assert contiguous == array.flags.c_contiguous


@pytest.mark.parametrize("array, shares", [p for p in LAYOUTS if p.id not in ("broadcast", "zero stride column", "windows")])
def test_writes_reach_arrays_of_every_layout(model, array, shares):
    array = array.copy() if not array.flags.writeable else array
    want = array + 1
    before = array.copy()
    model.write(array)
    assert (array == want).all()
    array[...] = before


def test_only_the_view_is_written(model):
    base = np.zeros((4, 4), np.float32)
    model.write(base[1:3, 1:3])
    want = np.zeros((4, 4))
    want[1:3, 1:3] = 1
    assert (base == want).all()
    base[...] = 0
    model.write(base[::-1, ::2])
    want[...] = 0
    want[:, ::2] = 1
    assert (base == want).all()


def test_a_written_argument_that_is_returned_is_the_array(model):
    array = np.zeros(3, np.float32)
    assert model.write(array) is array and array.tolist() == [1.0, 1.0, 1.0]


def test_writes_before_an_exception_stay(model):
    array = np.zeros(3, np.float32)
    with pytest.raises(frazil.RaisedError):
        model.write_then_raise(array)
    assert array.tolist() == [1.0, 1.0, 1.0]


def test_results_that_are_views_of_arguments(model):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    rest, turned, flat = model.view(array)
    assert np.shares_memory(rest, array) and np.shares_memory(turned, array) and np.shares_memory(flat, array)
    assert address(rest) == address(array) + 12 and turned.shape == (3, 2) and flat.shape == (6,)
    flat[0] = 100
    assert array[0, 0] == 100
    first, second = model.pair(array)
    assert first is array and second is array


def test_results_own_their_memory(model):
    array = np.ones(1000, np.float32)
    got = model.twice(array)
    assert not np.shares_memory(got, array) and got.flags.writeable and got.flags.aligned
    got += 1
    assert (model.twice(array) == 2).all()


def test_views_keep_the_array_alive(model):
    class Array(np.ndarray):
        pass

    array = Array(6, np.float32)
    array[...] = range(6)
    alive = weakref.ref(array)
    rest = model.view(array)[0]
    del array
    gc.collect()
    assert alive() is not None and rest.tolist() == [1, 2, 3, 4, 5]
    del rest
    gc.collect()
    assert alive() is None


def test_arguments_are_released(model):
    class Array(np.ndarray):
        pass

    array = Array(3, np.float32)
    alive = weakref.ref(array)
    for function in (model, model.twice, model.write, model.set_nothing):
        function(array)
    del array
    gc.collect()
    assert alive() is None


def test_read_only_arrays(model):
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    assert model.twice(array).tolist() == [2.0, 2.0, 2.0]
    got = model.view(array)[0]
    assert np.shares_memory(got, array) and not got.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        model.write(array)
    assert array.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        model.write(np.frombuffer(b"\0" * 12, np.float32))


def test_subclasses(model, tmp_path):
    matrix = np.ma.masked_array([1.0, 2.0], mask=[0, 0])
    assert model.twice(matrix).tolist() == [2.0, 4.0]
    file = tmp_path / "array.npy"
    np.save(file, np.ones((2, 3), np.float32))
    mapped = np.load(file, mmap_mode="r")
    assert (model.twice(mapped) == 2).all() and np.shares_memory(model(mapped), mapped)
    mapped = np.load(file, mmap_mode="r+")
    model.write(mapped)
    mapped.flush()
    assert (np.load(file) == 2).all()


def test_one_array_given_twice(model):
    array = np.zeros(3, np.float32)
    assert model.fill_first(array, array).tolist() == [7.0, 7.0, 7.0], "a write through one is visible through the other"
    assert array.tolist() == [7.0, 7.0, 7.0]


def test_views_of_one_array(model):
    array = np.zeros(4, np.float32)
    assert model.fill_first(array[:2], array).tolist() == [7.0, 7.0, 0.0, 0.0]
    assert array.tolist() == [7.0, 7.0, 0.0, 0.0]
    array[...] = 0
    assert model.fill_first(array, array[1:]).tolist() == [7.0, 7.0, 7.0]
    array[...] = 0
    assert model.fill_first(array[:3], array[1:]).tolist() == [7.0, 7.0, 0.0]
    assert array.tolist() == [7.0, 7.0, 7.0, 0.0]
    matrix = np.zeros((3, 3), np.float32)
    assert model.fill_first(matrix[1], matrix.T).tolist() == [[0, 7, 0], [0, 7, 0], [0, 7, 0]]
    array = np.zeros(6, np.float32)
    assert model.fill_first(array[::2], array[1::2]).tolist() == [0, 0, 0]
    assert array.tolist() == [7, 0, 7, 0, 7, 0]


def test_views_of_other_dtypes(model):
    array = np.zeros(2, np.float32)
    bits = array.view(np.int32)
    assert model.fill_first(array, bits).tolist() == np.full(2, 7, np.float32).view(np.int32).tolist()


def test_views_of_which_one_is_copied(model):
    array = np.zeros(3, np.float32)
    model.fill_first(array[::-1], array)
    assert array.tolist() == [7.0, 7.0, 7.0]


def test_arrays_in_containers(model):
    first, second = np.ones(2, np.float32), np.ones((2, 2), np.float32)
    model.in_list([first, second.T, second])
    assert first.tolist() == [2, 2] and second.tolist() == [[4, 4], [4, 4]]
    array = np.ones(2, np.float32)
    assert model.in_dict({"a": array}) is array and array.tolist() == [0, 0]


def test_the_model_keeps_what_it_was_given(model):
    array = np.ones(3, np.float32)
    model.keep(array)
    array += 1
    assert model.read().tolist() == [1.0, 1.0, 1.0], "a clone is not the caller's"
    assert model.kept.tolist() == [1.0, 1.0, 1.0]
    array = np.ones(3, np.float32)
    model.keep_itself(array)
    array += 1
    assert model.read().tolist() == [1.0, 1.0, 1.0], "unlike in PyTorch, the model has a copy of its own after the call"
    model.keep_itself(array[:2])
    model.fill_first(array[1:], array)
    assert model.read().tolist() == [2.0, 2.0] and array.tolist() == [2.0, 7.0, 7.0]
    array[...] = 1
    model.keep_itself(array)
    del array
    gc.collect()
    _noise = [np.full(3, 9, np.float32) for _ in range(100)]
    assert model.read().tolist() == [1.0, 1.0, 1.0]


def test_calls_copy_no_arguments(model):
    """Copies of large arguments would show in the peak of memory."""
    import resource

    array = np.ones(64 << 20, np.uint8)
    model.sizes(array)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Native code works on a dense copy of an argument with gaps.
    others = () if has_native_engine else (array[::2], array.reshape(2, -1).T)
    for argument in (array, array[1:], *others):
        model.sizes(argument)
        assert np.shares_memory(model(argument), argument)
    model.pair(array)
    model.fill_nothing(array, array[1:])
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) << 10 < array.nbytes // 4


def test_zero_dimensions(model):
    got = model.is_sum(np.ones(3, np.float32))
    assert isinstance(got, np.ndarray) and got.shape == () and float(got) == 3.0
    scalar = np.array(2.0)
    assert model.twice(scalar) == 4.0
    model.write(scalar)
    assert scalar == 3.0


class Producer:
    """An array of a library that this package does not know."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.device


def test_dlpack(model):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = model.twice(Producer(array))
    assert isinstance(got, np.ndarray) and (got == array * 2).all()
    model.write(Producer(array))
    assert array[0, 0] == 1.0
    assert (model.twice(Producer(array.T)) == array.T * 2).all()
    reversed_view = Producer(array[::-1])
    with pytest.raises(ValueError, match="argument 1: the strides of the tensor are negative or too large"):
        model(reversed_view)


def test_dlpack_of_the_same_memory(model):
    array = np.zeros(3, np.float32)
    assert model.fill_first(Producer(array), array).tolist() == [7.0, 7.0, 7.0]


def test_dlpack_of_other_devices(model):
    with pytest.raises(frazil.ArgumentError, match="argument 1: .*CPU"):
        model(Producer(np.zeros(3, np.float32), device=(2, 0)))


def test_dlpack_that_raises(model):
    class Broken:
        def __dlpack__(self, **_):
            raise KeyError("broken")

    with pytest.raises((KeyError, frazil.Error)):
        model(Broken())

    class Odd:
        def __dlpack__(self, **_):
            return 5

    with pytest.raises(TypeError):
        model(Odd())


def test_dlpack_capsules_are_used_once(model):
    capsule = np.zeros(3, np.float32).__dlpack__()

    class Again:
        def __dlpack__(self, **_):
            return capsule

    model(Again())
    with pytest.raises(ValueError, match="used before"):
        model(Again())


def test_clones_before_a_write_keep_the_old_elements():
    source = """
def f(x):
    before = x.clone()
    part = x[:1].clone()
    x.mul_(2)
    return before, part, x
def g(x, y):
    before = y.clone()
    x.fill_(7)
    return before
"""
    unit = frazil.script(source)
    array = np.ones(3, np.float32)
    before, part, now = unit.f(array)
    assert before.tolist() == [1, 1, 1] and part.tolist() == [1] and now is array and array.tolist() == [2, 2, 2]
    reversed_view = np.ones(3, np.float32)[::-1]
    assert unit.f(reversed_view)[0].tolist() == [1, 1, 1] and reversed_view.tolist() == [2, 2, 2]
    array = np.ones(3, np.float32)
    assert unit.g(array[:2], array).tolist() == [1, 1, 1] and array.tolist() == [7, 7, 1]


def test_conjugates_and_negatives_of_arguments():
    unit = frazil.script("def f(x):\n    return x.conj(), x.conj().imag, x.imag\n")
    array = np.array([1 + 2j, 3 - 4j])
    conjugate, negative, imaginary = unit.f(array)
    assert conjugate.tolist() == [1 - 2j, 3 + 4j] and negative.tolist() == [-2, 4] and imaginary.tolist() == [2, -4]
    assert np.shares_memory(imaginary, array)
