"""Bad input: which exception, which words, no leaks, and no end of the interpreter."""

import gc
import io
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import frazil
from conftest import FIXTURES

ARCHIVE = FIXTURES / "models" / "residual_cnn" / "model.pt"

SOURCE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.steps = 1
    def forward(self, x, n: int = 1):
        if n < 0:
            raise ValueError("n is negative")
        return x @ self.weight
"""


@pytest.fixture(scope="module")
def net():
    return frazil.script(SOURCE, name="Net").eval()


ONES = np.ones((3, 2), np.float32)


def test_classes():
    assert issubclass(frazil.Error, RuntimeError)
    for name, base in (("ArgumentError", TypeError), ("InputError", ValueError), ("UnsupportedError", NotImplementedError)):
        assert issubclass(getattr(frazil, name), (frazil.Error, base))
    assert issubclass(frazil.RaisedError, frazil.Error) and issubclass(frazil.LimitError, frazil.Error)


def test_exceptions_of_models(net):
    with pytest.raises(frazil.RaisedError, match="(?s)n is negative") as caught:
        net(ONES, -1)
    assert str(caught.value).startswith("ValueError: n is negative")
    assert caught.value.places and all(place.count(":") >= 2 for place in caught.value.places)
    assert str(caught.value).endswith("at <string>:9:12") and caught.value.places == ["<string>:9:12"]
    assert frazil.Error.places == []


def test_operators_that_raise(net):
    with pytest.raises(frazil.RaisedError) as caught:
        net(np.ones((3, 5), np.float32))
    assert "shapes cannot be multiplied" in str(caught.value) and caught.value.places == ["<string>:10:15"]


def test_mistakes_in_source():
    with pytest.raises(frazil.InputError, match=r"<string>:2:\d+"):
        frazil.script("def f(x):\n    return y\n").f(1)
    with pytest.raises(frazil.InputError, match="syntax error"):
        frazil.script("def f(:\n")


def test_exceptions_can_be_pickled(net):
    with pytest.raises(frazil.RaisedError) as caught:
        net(ONES, -1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is frazil.RaisedError and again.args == caught.value.args and again.places == caught.value.places


def failing_calls(net):
    """Calls that fail, each in another way, with the exception."""
    circle = []
    circle.append(circle)
    other = {"a": object()}
    read_only = np.ones(2, np.float32)
    read_only.flags.writeable = False
    writer = frazil.script("def f(x):\n    x.add_(1)\n    return x\n").f
    data = ARCHIVE.read_bytes()
    return [
        (lambda: net(), TypeError),
        (lambda: net(ONES, "x"), TypeError),
        (lambda: net(ONES, wrong=1), TypeError),
        (lambda: net(object()), TypeError),
        (lambda: net([ONES, object()]), TypeError),
        (lambda: net(circle), ValueError),
        (lambda: net(other), TypeError),
        (lambda: net(2**70), ValueError),
        (lambda: net(np.array(["a"])), TypeError),
        (lambda: net(ONES, -1), frazil.RaisedError),
        (lambda: net(np.ones((3, 5), np.float32)), frazil.RaisedError),
        (lambda: writer(read_only), ValueError),
        (lambda: net.missing, AttributeError),
        (lambda: setattr(net, "steps", "x"), TypeError),
        (lambda: setattr(net, "missing", 1), AttributeError),
        (lambda: net.get_submodule("a.b"), AttributeError),
        (lambda: net.load_state_dict({"weight": np.ones(7, np.float32)}), ValueError),
        (lambda: net.load_state_dict(3), TypeError),
        (lambda: net.cuda(), NotImplementedError),
        (lambda: net.with_options(nonsense=1), TypeError),
        (lambda: frazil.load(b"garbage"), ValueError),
        (lambda: frazil.load(data[:500]), ValueError),
        (lambda: frazil.load("/no/such/file.pt"), FileNotFoundError),
        (lambda: frazil.load(3), TypeError),
        (lambda: frazil.load(io.StringIO("text")), TypeError),
        (lambda: frazil.script("def f(x): return y"), (ValueError, AttributeError)),
        (lambda: frazil.script(3), TypeError),
        (lambda: frazil.freeze(3), TypeError),
        (lambda: frazil.freeze(net, "weight"), TypeError),
        (lambda: frazil.run_passes(net, "nonsense"), ValueError),
        (lambda: frazil.save(net, 3), TypeError),
        (lambda: net.named_parameters(recurse="x"), TypeError),
        (lambda: net.register_forward_hook(3), TypeError),
        (lambda: net.to("nowhere"), (ValueError, frazil.Error)),
    ]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_ten_thousand_failing_calls_leak_nothing(net):
    calls = failing_calls(net)

    def round_of_calls(count):
        for index in range(count):
            call, expected = calls[index % len(calls)]
            try:
                call()
            except expected:
                continue
            raise AssertionError(f"call {index % len(calls)} does not fail")

    round_of_calls(3_000)
    gc.collect()
    objects, memory = len(gc.get_objects()), resident()
    references = sys.getrefcount(ONES), sys.getrefcount(None)
    round_of_calls(10_000)
    gc.collect()
    assert abs(len(gc.get_objects()) - objects) < 50
    assert abs(sys.getrefcount(ONES) - references[0]) < 5 and abs(sys.getrefcount(None) - references[1]) < 500
    assert resident() - memory < 4 << 20


def test_loading_and_dropping_leaks_nothing():
    for _ in range(20):
        frazil.load(ARCHIVE)(np.zeros((1, 3, 32, 32), np.float32))
    gc.collect()
    memory = resident()
    for _ in range(100):
        frazil.load(ARCHIVE)(np.zeros((1, 3, 32, 32), np.float32))
    gc.collect()
    assert resident() - memory < 16 << 20


def archives():
    """Malformed archives."""
    data = ARCHIVE.read_bytes()
    for end in (0, 1, 4, 100, len(data) // 2, len(data) - 1, len(data) - 20):
        yield f"cut at {end}", data[:end]
    yield "zeros", bytes(1000)
    yield "text", b"no archive at all\n" * 10
    for place in range(0, len(data), max(1, len(data) // 40)):
        yield f"changed at {place}", data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]

    def zipped(**files):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, contents in files.items():
                archive.writestr(name.replace("__", "/").replace("_pkl", ".pkl"), contents)
        return buffer.getvalue()

    class Global:
        def __reduce__(self):
            return os.system, ("true",)

    yield "no module", zipped(m__version=b"3")
    yield "unknown global", zipped(m__data_pkl=pickle.dumps(Global()), m__version=b"3", m__constants_pkl=b"\x80\x02).")
    yield "deep pickle", zipped(m__data_pkl=b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", m__version=b"3")
    yield "bomb", zipped(m__data_pkl=bytes(300_000_000), m__version=b"3")
    for path in sorted((FIXTURES / "foreign").iterdir()):
        yield path.name, path.read_bytes()


PROGRAM = """
import resource, sys, frazil
import numpy as np
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        data = file.read()
    for limits in (None, "untrusted"):
        try:
            frazil.load(data, limits=limits)
        except (frazil.Error, OSError) as error:
            assert str(error)
        print(path)
"""


def test_malformed_archives_never_end_the_interpreter(tmp_path):
    paths = []
    for index, (name, data) in enumerate(archives()):
        paths.append(tmp_path / f"{index}.pt")
        paths[-1].write_bytes(data)
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *paths], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout[-300:] + ran.stderr[-2000:]
    assert len(ran.stdout.splitlines()) == 2 * len(paths)


def test_what_malformed_archives_raise():
    for name, data in archives():
        if name.startswith(("cut", "zeros", "text", "no module", "unknown", "deep", "bomb")):
            with pytest.raises(frazil.Error):
                frazil.load(data)


def test_limits():
    source = "def f(n: int):\n    t = torch.zeros(n)\n    return t\n"
    limited = frazil.script(source, limits="untrusted").f
    with pytest.raises((frazil.LimitError, frazil.RaisedError)):
        limited(2**50)


def test_wrong_arguments_are_named(net):
    """The argument, what was given, and what was expected."""
    cases = [
        (lambda: net.named_parameters(prefix=3), "`prefix`: expected a str, not 3 of type int"),
        (lambda: net.named_buffers(recurse="x"), "`recurse`: expected a bool, not 'x' of type str"),
        (lambda: net.named_modules(remove_duplicate=[]), r"`remove_duplicate`: expected a bool, not \[\] of type list"),
        (lambda: net.get_submodule(3), "`target`: expected a str, not 3"),
        (lambda: net.get_parameter(None), "`target`: expected a str, not None"),
        (lambda: net.add_module("a", 3), "`module`: expected a ScriptModule, not 3"),
        (lambda: net.add_module(3, net), "`name`: expected a str, not 3"),
        (lambda: net.set_submodule("a", "b"), "`module`: expected a ScriptModule, not 'b'"),
        (lambda: net.train(3), "`mode`: expected a bool, not 3"),
        (lambda: net.load_state_dict({}, strict=3), "`strict`: expected a bool, not 3"),
        (lambda: net.register_buffer(3, None), "`name`: expected a str, not 3"),
        (lambda: net.register_buffer("a", ONES, persistent="x"), "`persistent`: expected a bool"),
        (lambda: net.register_buffer("a", "x"), "`tensor`: expected an array, not 'x'"),
        (lambda: net.requires_grad_("x"), "`requires_grad`: expected a bool"),
        (lambda: net.zero_grad("x"), "`set_to_none`: expected a bool"),
        (lambda: net.define(3), "`src`: expected a str, not 3"),
        (lambda: net.save("x", 3), "`_extra_files`: expected a dict, not 3"),
        (lambda: net.save_to_buffer({1: "x"}), "`_extra_files`: expected names of type str, not 1"),
        (lambda: net.save_to_buffer({"a": 1}), "`_extra_files`: expected a str or bytes for 'a', not 1"),
        (lambda: net.to(memory_format="x"), "`memory_format`: there is no `x`"),
        (lambda: net.apply(3), "`fn`: expected a callable, not 3"),
        (lambda: net.named_modules(memo=3), "`memo`: expected a set, not 3"),
        (lambda: net.state_dict(destination=3), "`destination`: expected a dict, not 3"),
        (lambda: net.type(3), "`dst_type`: "),
        (lambda: net.dump_alias_db(method=3), "`method`: expected a str, not 3"),
        (lambda: net.register_forward_hook(print, prepend=3), "`prepend`: expected a bool, not 3"),
        (lambda: net.register_forward_hook(print, with_kwargs=3), "`with_kwargs`: expected a bool, not 3"),
        (lambda: frazil.save(3, "x"), "`m`: expected a ScriptModule, not 3"),
        (lambda: frazil.load("x", _extra_files=3), "`_extra_files`: expected a dict, not 3"),
        (lambda: frazil.load("x", _restore_shapes=3), "`_restore_shapes`: expected a bool, not 3"),
        (lambda: frazil.freeze(net, optimize_numerics="x"), "`optimize_numerics`: expected a bool, not 'x'"),
        (lambda: frazil.run_frozen_optimizations(3), "`mod`: expected a ScriptModule, not 3"),
        (lambda: frazil.run_passes(net, "cse", limit=-1), "`limit`: expected an int that is not negative, not -1"),
        (lambda: frazil.run_passes(net, "cse", verify_each=3), "`verify_each`: expected a bool, not 3"),
        (lambda: frazil.run_passes(3, "cse"), "`model`: expected a ScriptModule, not 3"),
        (lambda: frazil.script("x", name=3), "`name`: expected a str, not 3"),
        (lambda: frazil.enable_onednn_fusion(3), "`enabled`: expected a bool, not 3"),
        (lambda: frazil.load(io.StringIO("x")), "`f`: expected a file opened in binary mode"),
    ]
    for index, (call, words) in enumerate(cases):
        with pytest.raises(TypeError, match=words):
            call()
            pytest.fail(f"case {index}")
    with pytest.raises(ValueError, match="`map_location`: .*nowhere"):
        frazil.load("x", map_location="nowhere")
    with pytest.raises(ValueError, match="`device`: .*nowhere"):
        net.to_empty(device="nowhere")
