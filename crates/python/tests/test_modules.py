"""Modules: attributes, state, submodules, conversions, copies, hooks, saving and loading."""

import copy
import io

import numpy as np
import pytest

import frazil
from conftest import FIXTURES

SOURCE = """
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("total", torch.zeros(2))
        self.version = 1
    def forward(self, x):
        self.total += x
        return x * self.weight

class Net(nn.Module):
    table: Dict[str, int]
    maybe: Optional[int]
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.other = nn.Linear(2, 3)
        self.count = 0
        self.rate = 0.5
        self.name = "net"
        self.sizes = [1, 2]
        self.table = {}
        self.maybe = None
    def forward(self, x):
        self.count += 1
        self.sizes.append(self.count)
        self.table["last"] = self.count
        return self.inner(x) * self.rate
    @torch.jit.export
    def reset(self):
        self.count = 0
        self.sizes = [0]
"""

ONES = np.ones(2, np.float32)


@pytest.fixture
def net():
    return frazil.script(SOURCE, name="Net").eval()


def test_attributes_are_read(net):
    assert (net.count, net.rate, net.name, net.sizes, net.table, net.maybe) == (0, 0.5, "net", [1, 2], {}, None)
    assert net.inner.version == 1 and net.inner.weight.tolist() == [1.0, 1.0]
    assert net.training is False and net.inner.training is False


def test_calls_change_attributes(net):
    for expected in (1, 2, 3):
        net(ONES)
        assert net.count == expected and net.table == {"last": expected}
    assert net.sizes == [1, 2, 1, 2, 3] and net.inner.total.tolist() == [3.0, 3.0]
    net.reset()
    assert net.count == 0 and net.sizes == [0] and net.inner.total.tolist() == [3.0, 3.0]


def test_attributes_are_set(net):
    net(ONES)
    net.rate, net.count, net.name, net.maybe = 2.0, 10, "other", 5
    net.sizes, net.table = [], {"a": 1}
    assert net(ONES).tolist() == [2.0, 2.0]
    assert (net.count, net.name, net.maybe, net.sizes) == (11, "other", 5, [11])
    assert net.table == {"a": 1, "last": 11}
    net.inner.weight = np.full(2, 3, np.float32)
    assert net(ONES).tolist() == [6.0, 6.0] and net.inner.total.tolist() == [3.0, 3.0]
    net.inner.version = 7
    assert net.inner.version == 7
    net.inner(ONES)
    assert net.inner.version == 7 and net.inner.total.tolist() == [4.0, 4.0]


def test_attributes_keep_copies(net):
    array = np.full(2, 3, np.float32)
    net.inner.weight = array
    array[...] = 100
    assert net.inner.weight.tolist() == [3.0, 3.0]
    got = net.inner.weight
    got[...] = 50
    assert net.inner.weight.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("name, value", [("count", "text"), ("rate", None), ("name", 1), ("sizes", ["a"]), ("table", {1: 1})])
def test_values_of_other_types_are_refused(net, name, value):
    before = getattr(net, name)
    with pytest.raises((TypeError, frazil.Error), match=name):
        setattr(net, name, value)
    assert getattr(net, name) == before


def test_missing_attributes(net):
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'missing'"):
        net.missing
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'missing': use register_buffer"):
        net.missing = 1
    assert not hasattr(net, "missing") and not hasattr(net.inner, "missing")
    with pytest.raises((AttributeError, TypeError)):
        del net.count


def test_dir_has_all_members(net):
    assert {"count", "inner", "forward", "reset", "named_parameters", "training"} <= set(dir(net))
    assert {"weight", "total", "forward"} <= set(dir(net.inner))


def test_members(net):
    assert [n for n, _ in net.named_parameters()] == ["inner.weight", "other.weight", "other.bias"]
    assert [n for n, _ in net.named_parameters(recurse=False)] == []
    assert [n for n, _ in net.inner.named_parameters(prefix="p")] == ["p.weight"]
    assert [p.shape for p in net.parameters()] == [(2,), (3, 2), (3,)]
    assert [n for n, _ in net.named_buffers()] == ["inner.total"] and len(list(net.buffers())) == 1
    assert [n for n, _ in net.named_children()] == ["inner", "other"] and len(list(net.children())) == 2
    assert [n for n, _ in net.named_modules()] == ["", "inner", "other"] and len(list(net.modules())) == 3
    memo = set()
    assert len(list(net.named_modules(memo=memo))) == 3 and len(memo) == 3
    assert list(net.named_modules(memo=memo)) == []
    assert net.get_submodule("inner") == net.inner and net.get_submodule("") == net
    assert net.get_parameter("inner.weight").tolist() == [1.0, 1.0]
    assert net.get_buffer("inner.total").tolist() == [0.0, 0.0]
    for get, target in ((net.get_submodule, "x"), (net.get_parameter, "inner.total"), (net.get_buffer, "inner.weight")):
        with pytest.raises(AttributeError):
            get(target)


def test_modules_are_equal_and_hashed_by_identity(net):
    assert net.inner == net.inner and hash(net.inner) == hash(net.inner) and net.inner != net.other and net != 3
    assert len({net, net.inner, net.inner}) == 2


def test_state_dicts(net):
    net(ONES)
    state = net.state_dict()
    assert list(state) == ["inner.weight", "inner.total", "other.weight", "other.bias"]
    assert state["inner.total"].tolist() == [1.0, 1.0]
    other = frazil.script(SOURCE, name="Net").eval()
    assert other.load_state_dict(state) == ([], [])
    assert other.inner.total.tolist() == [1.0, 1.0]
    assert list(net.state_dict(prefix="a.", keep_vars=True))[0] == "a.inner.weight"
    given = {}
    assert net.state_dict(destination=given) is given and len(given) == 4
    assert len(net.state_dict(None, "b.", False)) == 4 and "b.inner.weight" in net.state_dict({}, "b.")
    assert list(net.inner.state_dict()) == ["weight", "total"]


def test_state_dicts_that_do_not_fit(net):
    state = net.state_dict()
    del state["other.bias"]
    state["more"] = ONES
    keys = net.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["other.bias"] and keys.unexpected_keys == ["more"]
    with pytest.raises(frazil.InputError, match='(?s)Error.*in loading state_dict for Net.*Missing key.*"other.bias"'):
        net.load_state_dict(state)
    with pytest.raises(frazil.InputError, match="size mismatch for inner.weight"):
        net.load_state_dict({"inner.weight": np.ones(5, np.float32)}, strict=False)
    with pytest.raises(TypeError, match="`state_dict`: expected a dict, not 3"):
        net.load_state_dict(3)
    with pytest.raises(TypeError, match="`inner.weight`: expected an array, not 'x'"):
        net.load_state_dict({"inner.weight": "x"})
    with pytest.raises(TypeError, match="names of type str"):
        net.load_state_dict({1: ONES})


def test_hooks_of_state_dicts(net):
    seen = []
    with net.register_state_dict_pre_hook(lambda m, prefix, keep_vars: seen.append((m == net, prefix, keep_vars))):
        net.state_dict(prefix="p.")
    net.state_dict()
    assert seen == [(True, "p.", False)]

    def double(module, state, prefix, metadata):
        for name in state:
            state[name] = state[name] * 2

    handle = net.register_state_dict_post_hook(double)
    assert net.state_dict()["inner.weight"].tolist() == [2.0, 2.0]
    handle.remove()
    assert net.state_dict()["inner.weight"].tolist() == [1.0, 1.0]

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state["inner.weight"] = state.pop("old")

    def forgive(module, keys):
        keys.missing_keys.clear()

    first, second = net.register_load_state_dict_pre_hook(rename), net.register_load_state_dict_post_hook(forgive)
    net.load_state_dict({"old": np.full(2, 9, np.float32)})
    assert net.inner.weight.tolist() == [9.0, 9.0]
    first.remove(), second.remove()
    with pytest.raises(KeyError):
        net.register_load_state_dict_pre_hook(rename)
        net.load_state_dict({})


def test_conversions(net):
    assert net.double() is net and net.inner.weight.dtype == np.float64 and net.inner.total.dtype == np.float64
    assert net(np.ones(2)).dtype == np.float64
    for convert, dtype in ((net.half, "float16"), (net.float, "float32")):
        convert()
        assert net.inner.weight.dtype == dtype
    assert net.to("float64").inner.weight.dtype == np.float64
    assert net.to(np.float32).inner.weight.dtype == np.float32
    assert net.to(dtype=np.float64, device="cpu", non_blocking=True).inner.weight.dtype == np.float64
    assert net.to("cpu", "float32").inner.weight.dtype == np.float32
    assert net.to(np.ones(1)).inner.weight.dtype == np.float64
    assert net.type("torch.FloatTensor").inner.weight.dtype == np.float32
    assert net.type("float64").inner.weight.dtype == np.float64
    assert net.cpu() is net and net.share_memory() is net and net.zero_grad() is None
    assert net.to_empty(device="cpu") is net and net.requires_grad_(False) is net
    with pytest.raises((ValueError, TypeError, frazil.Error)):
        net.to("cuda:0")
    with pytest.raises((ValueError, TypeError)):
        net.to("no such device")


def test_training_mode(net):
    assert net.train() is net and net.training is True and net.inner.training is True
    net.inner.eval()
    assert net.training is True and net.inner.training is False
    net.train(False)
    assert net.training is False


def test_apply(net):
    seen = []
    assert net.apply(lambda module: seen.append(module.original_name)) is net
    assert seen == ["Inner", "Linear", "Net"]

    def fill(module):
        if module.original_name == "Linear":
            module.weight = np.full((3, 2), 4, np.float32)

    net.apply(fill)
    assert (net.other.weight == 4).all()


def test_members_are_added(net):
    child = frazil.script("class C(nn.Module):\n    def forward(self, x):\n        return x + 5\n")
    net.add_module("child", child)
    assert net.child(ONES).tolist() == [6.0, 6.0]
    net.register_module("second", child)
    net.third = child
    assert {"child", "second", "third"} <= {name for name, _ in net.named_children()}
    net.set_submodule("third", child)
    net.register_buffer("data", ONES)
    net.register_buffer("hidden", ONES, persistent=False)
    net.register_parameter("param", ONES)
    net.register_attribute("flag", True)
    assert net.data.tolist() == [1, 1] and net.flag is True
    assert "data" in net.state_dict() and "hidden" not in net.state_dict() and "param" in net.state_dict()
    net.define("def more(self, x):\n    return x + self.data + self.param\n")
    assert net.more(ONES).tolist() == [3.0, 3.0]


def test_copies_have_a_state_of_their_own(net):
    net(ONES)
    for other in (copy.copy(net), copy.deepcopy(net), net.with_options(threads=1)):
        other(ONES)
        assert other.count == 2 and net.count == 1
        other.inner.weight = np.zeros(2, np.float32)
        assert net.inner.weight.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="`inner` is a submodule: copy the model"):
        copy.copy(net.inner)


def test_hooks(net):
    calls = []
    with net.register_forward_pre_hook(lambda module, args: calls.append(("pre", module == net, len(args)))):
        with net.register_forward_hook(lambda module, args, result: calls.append(("post", result.tolist()))):
            net(ONES)
    net(ONES)
    assert calls == [("pre", True, 1), ("post", [0.5, 0.5])]
    handle = net.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    assert net(ONES).tolist() == [5.0, 5.0]
    handle.remove(), handle.remove()
    seen = []
    handle = net.inner.register_forward_hook(lambda module, args, result: seen.append(module) or result + 1)
    assert net.inner(ONES).tolist() == [2.0, 2.0] and seen == [net.inner]
    assert net(ONES).tolist() == [0.5, 0.5], "code that was compiled calls submodules without hooks, as in PyTorch"
    handle.remove()
    with net.register_forward_hook(lambda m, args, kwargs, result: kwargs["x"] * 3, with_kwargs=True):
        assert net(x=ONES).tolist() == [3.0, 3.0]
    with net.register_forward_pre_hook(lambda m, args, kwargs: ((), {"x": kwargs["x"] * 4}), with_kwargs=True):
        assert net(x=ONES).tolist() == [2.0, 2.0]
    order = []
    net.register_forward_hook(lambda *_: order.append(1))
    net.register_forward_hook(lambda *_: order.append(2), prepend=True, always_call=True)
    net(ONES)
    assert order == [2, 1]
    with pytest.raises(TypeError, match="`hook`: expected a callable, not 3"):
        net.register_forward_hook(3)


def test_exceptions_of_hooks_reach_the_caller(net):
    class Mine(Exception):
        pass

    def fail(*_):
        raise Mine("from the hook")

    with net.register_forward_hook(fail):
        with pytest.raises(Mine, match="from the hook"):
            net(ONES)
    assert net(ONES).tolist() == [0.5, 0.5]


def test_saving_and_loading(net, tmp_path):
    net(ONES)
    path = tmp_path / "model.pt"
    net.save(path, _extra_files={"note.txt": "text", "data": b"\xff\x00"})
    for source in (path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes()), open(path, "rb"), memoryview(path.read_bytes()), bytearray(path.read_bytes())):
        again = frazil.load(source)
        assert again.count == 1 and again.inner.total.tolist() == [1.0, 1.0]
        again(ONES)
        assert again.count == 2
    files = {"note.txt": "", "data": "", "missing": "x"}
    frazil.load(path, _extra_files=files)
    assert files == {"note.txt": "text", "data": b"\xff\x00", "missing": ""}
    buffer = io.BytesIO()
    frazil.save(net, buffer)
    assert frazil.load(buffer.getvalue()).count == 1
    frazil.save(net, tmp_path / "other.pt", _extra_files={})
    assert frazil.load(net.save_to_buffer()).count == 1
    with pytest.raises(TypeError, match="`f`: expected a path or a file object, not 3"):
        frazil.save(net, 3)
    with pytest.raises(OSError):
        net.save(tmp_path / "no" / "folder.pt")
    with pytest.raises(TypeError, match="`inner` is a submodule: save the model"):
        net.inner.save(path)


def test_map_location():
    path = FIXTURES / "models" / "residual_cnn" / "model.pt"
    assert frazil.load(path, map_location="cpu", _restore_shapes=True).training is False
    assert frazil.load(path, "meta").original_name
    with pytest.raises((ValueError, frazil.Error)):
        frazil.load(path, map_location="nowhere")


def test_source_and_graphs(net):
    assert "self.inner" in net.code and "def forward" in net.code
    assert "prim::CallMethod" in str(net.graph) and "graph(" in str(net.inlined_graph)
    code, constants = net.code_with_constants
    assert "def forward" in code and isinstance(constants, dict)
    assert "def reset" in net.reset.code and "graph(" in str(net.reset.graph)
    assert net.forward.schema == "forward(__torch__.Net self, Tensor x) -> Tensor" or "forward(" in net.forward.schema
    assert "Inner" in repr(net) and net.original_name == "Net" and net.extra_repr() is not None
    assert "graph(" in str(net.graph_for(ONES))


def test_options(net):
    options = net.with_options(threads=2, strict=False, limits="untrusted").options
    assert options["threads"] == 2 and options["strict"] is False and options["limits"]
    with pytest.raises(TypeError, match="unexpected keyword argument `thread`; the options are .*threads"):
        net.with_options(thread=1)
    with pytest.raises(ValueError, match="`threads`: expected a positive number, not 0"):
        net.with_options(threads=0)
    with pytest.raises(TypeError, match="`strict`: expected a bool, not 'x'"):
        net.with_options(strict="x")
    with pytest.raises(ValueError, match="`engine`: expected 'native' or 'interpreter'"):
        net.with_options(engine="fast")
    with pytest.raises(ValueError, match="`limits`"):
        net.with_options(limits="nonsense")


def test_passes(net):
    assert "inline" in frazil.passes()
    assert "prim::CallMethod" not in str(frazil.run_passes(net, "inline,cse").graph)
    assert "prim::CallMethod" in str(net.graph), "the model stays as it is"
    with pytest.raises(frazil.InputError, match="nonsense"):
        frazil.run_passes(net, "nonsense")
    with pytest.raises(TypeError, match="`pipeline`: expected a str or a callable, not 3"):
        frazil.run_passes(net, 3)


def test_iterators_are_made_of_snapshots(net):
    for name, _ in net.named_parameters():
        net.register_buffer("copy_" + name.replace(".", "_"), ONES)
    assert len(list(net.buffers())) == 4
