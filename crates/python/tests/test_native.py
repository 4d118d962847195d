"""What needs native code: profiles, libraries, stages of compilation, notes."""

import ctypes

import numpy
import pytest

import frazil
from frazil import _frazil

pytestmark = pytest.mark.skipif(not _frazil.has_native_engine, reason="this build has no native engine")

SOURCE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return torch.relu(self.fc(x))
"""
X = numpy.linspace(-1, 1, 16, dtype="float32").reshape(2, 8)


@pytest.fixture
def model():
    return frazil.script(SOURCE).eval()


def test_native_results_are_those_of_the_interpreter(model):
    expected = model.with_options(engine="interpreter")(X)
    numpy.testing.assert_allclose(model.with_options(strict=True)(X), expected, rtol=1e-5, atol=1e-6)
    assert model.notes == []
    model(X)
    assert any("kernel" in note for note in model.notes) and model.compile_seconds > 0


def test_a_profile(model):
    profile = model.profile(X, seconds=0.01)
    assert profile.runs > 0 and profile.total_seconds > 0
    assert {"kernel", "calls", "seconds", "flops", "bytes", "operators"} == set(profile.rows[0])
    assert "GFLOP/s" in str(profile) and "<table>" in profile._repr_html_() and "kernels" in repr(profile)


def test_a_profile_of_what_does_not_run_natively_as_a_whole():
    model = frazil.script("def f(x): return torch.unique(x)")
    with pytest.raises(frazil.UnsupportedError, match="natively"):
        model.profile(X, method="f", seconds=0.01)
    with pytest.raises(ValueError, match="seconds"):
        model.profile(X, method="f", seconds=-1)


def test_a_library(model, tmp_path):
    path = tmp_path / "libnet.so"
    model.save_library(path, [X], name="net")
    assert "net_run" in path.with_suffix(".h").read_text()
    library = ctypes.CDLL(str(path))
    instance = ctypes.c_void_p()
    assert library.net_create(None, ctypes.byref(instance)) == 0
    y = numpy.empty((2, 4), dtype="float32")
    addresses = [(ctypes.c_void_p * 1)(array.ctypes.data) for array in (X, y)]
    assert library.net_run(instance, *addresses) == 0
    library.net_destroy(instance)
    numpy.testing.assert_allclose(y, model(X), rtol=1e-6)


@pytest.mark.parametrize("inputs", [[("B", 8)], [("float32", ["B", 8])]])
def test_a_library_for_ranges_of_sizes(model, tmp_path, inputs):
    path = tmp_path / "libnet.so"
    model.save_library(path, inputs, name="net", ranges={"B": (1, 3)})
    assert "B: 1 to 3" in path.with_suffix(".h").read_text()
    library = ctypes.CDLL(str(path))
    instance = ctypes.c_void_p()
    assert library.net_create(None, ctypes.byref(instance)) == 0
    for rows in range(1, 5):
        x = X[:1].repeat(rows, 0)
        y = numpy.empty((rows, 4), dtype="float32")
        addresses = [(ctypes.c_void_p * 1)(array.ctypes.data) for array in (x, y)]
        status = library.net_run(instance, (ctypes.c_int64 * 1)(rows), *addresses)
        assert (status == 0) == (rows <= 3)
        if status == 0:
            numpy.testing.assert_allclose(y, model(x), rtol=1e-6)
    library.net_destroy(instance)


def test_ranges_have_the_order_of_the_dict(model, tmp_path):
    header = tmp_path / "libtotal.h"
    total = frazil.script("def f(x, y): return x.sum() + y.sum()")
    total.save_library(header.with_suffix(".so"), [("N",), ("B",)], method="f", ranges={"N": (1, 2), "B": (1, 2)})
    assert "MODEL_INDEX_N 0" in header.read_text() and "MODEL_INDEX_B 1" in header.read_text()


def test_wrong_ranges(model, tmp_path):
    path = tmp_path / "libnet.so"
    for ranges, error, message in (
        (None, frazil.Error, "the size B has no range"),
        ({"B": (3, 1)}, frazil.Error, "the range 3..1 of B is not a range"),
        ({"B": (1, 3), "N": (1, 3)}, frazil.Error, "no input has the size N"),
        ({"B": 3}, TypeError, "`ranges`: expected names with the smallest and the largest size"),
        ([("B", (1, 3))], TypeError, "ranges"),
    ):
        with pytest.raises(error, match=message):
            model.save_library(path, [("B", 8)], ranges=ranges)
    with pytest.raises(ValueError, match="only libraries have sizes with names"):
        model.emit("asm", [("B", 8)])
    assert not path.exists()


@pytest.mark.parametrize("inputs", [[X], [(2, 8)], [("float32", (2, 8))], [(numpy.float32, [2, 8])]])
def test_kinds_of_inputs(model, inputs):
    assert "aten::relu" in model.emit("kernels", inputs)
    assert "func" in model.emit("mlir", inputs)
    assert ".text" in model.emit("asm", inputs)
    assert model.emit("obj", inputs)[:4] == b"\x7fELF"


def test_wrong_inputs(model):
    for inputs, error in (([(2, -8)], ValueError), ([3], TypeError), ([("float33", (2, 8))], TypeError), ([], frazil.Error)):
        with pytest.raises(error):
            model.emit("asm", inputs)
    with pytest.raises(ValueError, match="kind"):
        model.emit("pdf", [X])


def test_options(model, tmp_path):
    options = model.options
    assert options["threads"] == 1 and options["engine"] == "native" and options["limits"] is None
    other = model.with_options(
        threads=2, cache_dir=tmp_path, cache_bytes=1 << 20, limits="untrusted", specialisations=3, strict=True
    )
    assert other.options["threads"] == 2 and other.options["strict"] and "memory" in other.options["limits"]
    assert options["cache_bytes"] == 2 << 30 and other.options["cache_bytes"] == 1 << 20
    assert model.options == options
    # Calls that use the code library store nothing. Own code is compiled after calls have taken some 50 ms, and stored.
    calls = 0
    while not list(tmp_path.iterdir()) and calls < 100_000:
        other(X)
        calls += 1
    assert list(tmp_path.iterdir())
    assert options["fusion_strategy"] == [("STATIC", 2)]
    strategy = [("STATIC", 1), ("DYNAMIC", 3)]
    shared = model.with_options(fusion_strategy=strategy)
    assert shared.options["fusion_strategy"] == strategy and shared.options["specialisations"] == 4
    for rows in range(1, 5):
        numpy.testing.assert_array_equal(shared(X[:1].repeat(rows, 0)), model(X[:1].repeat(rows, 0)))
    for wrong, error in (
        ({"threads": 0}, ValueError),
        ({"threads": "2"}, TypeError),
        ({"engine": "fast"}, ValueError),
        ({"limits": "nothing=1"}, ValueError),
        ({"unknown": 1}, TypeError),
        ({"fusion_strategy": [("STATIC", 1), ("EAGER", 1)]}, ValueError),
        ({"fusion_strategy": "STATIC"}, TypeError),
    ):
        with pytest.raises(error, match=next(iter(wrong))):
            model.with_options(**wrong)


def test_limits_are_errors_that_name_them(model):
    archive = model.save_to_buffer()
    with pytest.raises(frazil.LimitError, match="nodes"):
        frazil.load(archive, limits="nodes=1")
    careful = model.with_options(limits="elements=4")
    with pytest.raises(frazil.LimitError, match="elements"):
        careful(X)
