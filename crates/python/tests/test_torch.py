"""With PyTorch in the process: its tensors, its modules, and archives that both read."""

import gc
import io

import numpy as np
import pytest

import frazil
from conftest import FIXTURES

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SOURCE = """
class Arrays(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = torch.zeros(2)
    def forward(self, x): return x
    @torch.jit.export
    def twice(self, x): return x + x
    @torch.jit.export
    def write(self, x):
        x.add_(1)
        return x
    @torch.jit.export
    def part(self, x): return x[1:], x.t()
    @torch.jit.export
    def fill_first(self, x, y):
        x.fill_(7)
        return y.clone()
    @torch.jit.export
    def both(self, x, y): return x + y
    @torch.jit.export
    def device(self, x): return x.device
    @torch.jit.export
    def of_dtype(self, x, dtype: torch.dtype): return x.to(dtype)
    @torch.jit.export
    def sizes(self, x: List[int]): return x
    @torch.jit.export
    def is_conj(self, x): return x.conj()
"""


@pytest.fixture(scope="module")
def model():
    return frazil.script(SOURCE, name="Arrays")


DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16]
DTYPES += [torch.float32, torch.float64, torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(model, dtype):
    x = torch.arange(6).reshape(2, 3).to(dtype)
    assert model(x) is x
    got = model.part(x)[1]
    assert got.dtype == dtype and got.data_ptr() == x.data_ptr() and torch.equal(got, x.t())
    if dtype != torch.bool:
        assert torch.equal(model.twice(x), x + x) and model.twice(x).dtype == dtype


def test_layouts(model):
    base = torch.arange(24.0).reshape(4, 6)
    for x in (base.t(), base[::2, 1::2], base[:, 0], base[0].expand(3, 6), base[:0], torch.tensor(2.0), base.reshape(2, 2, 2, 3).to(memory_format=torch.channels_last)):
        assert torch.equal(model.twice(x), x + x)
        assert model(x) is x


def test_requires_grad_and_parameters(model):
    x = torch.ones(3, requires_grad=True)
    got = model.twice(x)
    assert got.tolist() == [2, 2, 2] and not got.requires_grad
    parameter = torch.nn.Parameter(torch.ones(3))
    assert model.twice(parameter).tolist() == [2, 2, 2]
    assert model.part(parameter.reshape(3, 1))[0].shape == (2, 1)
    with torch.no_grad():
        model.write(parameter)
    assert parameter.tolist() == [2, 2, 2]


def test_conjugates_and_negatives(model):
    x = torch.tensor([1 + 2j, 3 - 1j])
    assert model.twice(x.conj()).tolist() == [2 - 4j, 6 + 2j]
    assert model(x.conj()).tolist() == [1 - 2j, 3 + 1j]
    assert model.twice(x.conj().imag).tolist() == [-4, 2]
    assert model.is_conj(x).tolist() == [1 - 2j, 3 + 1j]
    y = x.clone()
    model.write(y.conj())
    assert y.tolist() == [2 + 2j, 4 - 1j], "writes through a conjugate reach the tensor"


def test_writes(model):
    x = torch.zeros(3)
    assert model.write(x) is x and x.tolist() == [1, 1, 1]
    x = torch.zeros(2, 4)
    model.write(x[:, ::2])
    assert x.tolist() == [[1, 0, 1, 0]] * 2
    x = torch.zeros(3)
    assert model.fill_first(x, x).tolist() == [7, 7, 7]
    assert model.fill_first(torch.zeros(1), x).tolist() == [7, 7, 7]
    x = torch.zeros(4)
    assert model.fill_first(x[:3], x[1:]).tolist() == [7, 7, 0] and x.tolist() == [7, 7, 7, 0]
    x = torch.zeros(3)
    assert model.fill_first(x.numpy(), x).tolist() == [7, 7, 7]


def test_kinds_of_results(model):
    assert isinstance(model.twice(torch.ones(1)), torch.Tensor)
    assert isinstance(model.twice(np.ones(1)), np.ndarray)
    assert isinstance(model.both(np.ones(1), torch.ones(1, dtype=torch.float64)), torch.Tensor), "one tensor makes tensors"
    assert isinstance(model.kept, np.ndarray)


def test_memory_is_shared(model):
    x = torch.arange(6.0).reshape(2, 3)
    rest, turned = model.part(x)
    assert rest.data_ptr() == x.data_ptr() + 12 and turned.data_ptr() == x.data_ptr()
    rest[0, 0] = 100
    assert x[1, 0] == 100
    del x
    gc.collect()
    assert rest.tolist() == [[100, 4, 5]]


def test_results_keep_their_memory(model):
    got = [model.twice(torch.full((n,), 1.0)) for n in (0, 1, 3, 1000)]
    gc.collect()
    assert all((x == 2).all() for x in got)


def test_devices_dtypes_and_sizes(model):
    assert model.device(torch.ones(1)) == torch.device("cpu") and isinstance(model.device(torch.ones(1)), torch.device)
    assert model.device(np.ones(1)) == "cpu"
    assert model.of_dtype(torch.ones(1), torch.float64).dtype == torch.float64
    assert model.sizes(torch.ones(2, 3).shape) == [2, 3]


@pytest.mark.parametrize("make", [lambda: torch.ones(2, device="meta"), lambda: torch.eye(2).to_sparse(), lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)])
def test_tensors_without_elements_here(model, make):
    with pytest.raises((TypeError, ValueError, RuntimeError, BufferError)):
        model(make())


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.register_buffer("calls", torch.zeros(1))
        self.scale = 2.0

    def forward(self, x):
        self.calls += 1
        return torch.relu(self.norm(self.conv(x))) * self.scale


@pytest.fixture
def scripted():
    torch.manual_seed(0)
    return torch.jit.script(Net().eval())


def test_script_modules_of_torch(scripted):
    ours = frazil.load(scripted)
    x = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        assert torch.allclose(ours(x), scripted(x), atol=1e-5)
    assert isinstance(ours.conv.weight, torch.Tensor) and torch.equal(ours.conv.weight, scripted.conv.weight)
    assert isinstance(ours(x.numpy()), np.ndarray)
    frozen = frazil.freeze(scripted)
    with torch.no_grad():
        assert torch.allclose(frozen(x), scripted(x), atol=1e-5)
    with pytest.raises(TypeError, match="not a plain nn.Module: script or trace it first"):
        frazil.load(Net())


def test_script_functions_of_torch():
    @torch.jit.script
    def triple(x):
        return x * 3

    loaded = frazil.load(triple)
    assert loaded(torch.ones(2)).tolist() == [3, 3] or loaded.triple(torch.ones(2)).tolist() == [3, 3]


def test_archives_go_both_ways(scripted, tmp_path):
    x = torch.randn(1, 3, 8, 8)
    ours = frazil.load(scripted)
    ours(x)
    ours.save(tmp_path / "ours.pt")
    theirs = torch.jit.load(str(tmp_path / "ours.pt"))
    assert theirs.calls.tolist() == [1] == ours.calls.tolist()
    with torch.no_grad():
        assert torch.allclose(theirs(x), ours(x), atol=1e-5)
    frazil.freeze(ours).save(tmp_path / "frozen.pt")
    with torch.no_grad():
        assert torch.allclose(torch.jit.load(str(tmp_path / "frozen.pt"))(x), ours(x), atol=1e-5)
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    with torch.no_grad():
        assert torch.allclose(frazil.load(buffer.getvalue())(x), scripted(x), atol=1e-5)


def test_state_dicts_go_both_ways(scripted):
    ours = frazil.load(scripted)
    other = Net()
    other.load_state_dict(ours.state_dict())
    assert torch.equal(other.conv.weight, scripted.conv.weight)
    torch.nn.init.ones_(other.conv.weight)
    assert ours.load_state_dict(other.state_dict()) == ([], [])
    assert (ours.conv.weight == 1).all()
    ours.conv.weight = torch.nn.Parameter(torch.zeros_like(other.conv.weight))
    assert (ours.conv.weight == 0).all()


def test_conversions_with_names_of_torch(scripted):
    ours = frazil.load(scripted)
    assert ours.to(torch.float64).conv.weight.dtype == torch.float64
    assert ours.to(torch.device("cpu"), torch.bfloat16).conv.weight.dtype == torch.bfloat16
    assert ours.to(torch.ones(1)).conv.weight.dtype == torch.float32
    assert ours.to(memory_format=torch.channels_last).conv.weight.is_contiguous(memory_format=torch.channels_last)
    assert ours.type(torch.float16).conv.weight.dtype == torch.float16


def test_torch_goes_on_working(scripted):
    """Both libraries run in one process, in turns and beside each other."""
    from concurrent.futures import ThreadPoolExecutor

    ours, x = frazil.load(scripted), torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        want = scripted(x)
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda i: ours(x) if i % 2 else scripted(x), range(40)))
    assert all(torch.allclose(result, want, atol=1e-5) for result in results)


def test_models_of_the_fixtures_agree_with_torch():
    path = FIXTURES / "models" / "residual_cnn" / "model.pt"
    theirs, ours = torch.jit.load(str(path)), frazil.load(path)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.allclose(ours(x), theirs(x), atol=1e-4)
