"""Cases that PyTorch recorded (tests/README.md): values as JSON, tensors in files, and when two results agree."""

import cmath
import json
import struct

import numpy as np

try:
    import torch
except ImportError:
    torch = None

DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
    "C64": np.complex64,
    "C128": np.complex128,
}


class Inexpressible(Exception):
    """A value that NumPy alone has no arrays for."""


class Brain:
    """The elements of a bfloat16 tensor, as integers."""

    def __init__(self, bits):
        self.bits = bits


class Tensors:
    """The tensors of a `.safetensors` file, as arrays of NumPy."""

    def __init__(self, path):
        self.data = path.read_bytes() if path.exists() else struct.pack("<Q", 2) + b"{}"
        (length,) = struct.unpack_from("<Q", self.data)
        self.header = json.loads(self.data[8 : 8 + length])
        self.start = 8 + length

    def __getitem__(self, key):
        entry = self.header[key]
        begin, end = entry["data_offsets"]
        raw = self.data[self.start + begin : self.start + end]
        if entry["dtype"] == "BF16":
            return Brain(np.frombuffer(raw, np.int16).reshape(entry["shape"]).copy())
        dtype = DTYPES[entry["dtype"]]
        return np.frombuffer(raw, dtype).reshape(entry["shape"]).copy()


def number(value):
    return float(value) if isinstance(value, str) else value


def inline(body):
    """A tensor whose elements are in the JSON."""
    data = [number(x) for x in body["data"]]
    if body["dtype"].startswith("complex"):
        data = [complex(re, im) for re, im in zip(data[::2], data[1::2])]
    if body["dtype"] == "bfloat16":
        bits = np.array(data, np.float32).view(np.int32) >> 16
        return Brain(bits.astype(np.int16).reshape(body["shape"]))
    return np.array(data, body["dtype"]).reshape(body["shape"])


def value(recorded, tensors, kind):
    """The value of Python for a recorded one; `kind` is "numpy" or "torch"."""
    ((name, body),) = recorded.items()
    if name == "tensor":
        array = tensors[body] if isinstance(body, str) else inline(body)
        if kind == "torch":
            if isinstance(array, Brain):
                return torch.from_numpy(array.bits).view(torch.bfloat16)
            return torch.from_numpy(array)
        if isinstance(array, Brain):
            raise Inexpressible("bfloat16")
        return array
    if name in ("list", "tuple"):
        items = [value(item, tensors, kind) for item in body]
        return tuple(items) if name == "tuple" else items
    if name == "dict":
        return {value(k, tensors, kind): value(v, tensors, kind) for k, v in body}
    if name == "none":
        return None
    if name == "float":
        return float(body)
    if name == "complex":
        return complex(number(body[0]), number(body[1]))
    return body


def has_tensor(recorded):
    """Whether there is a tensor in a recorded value."""
    ((name, body),) = recorded.items()
    if name == "dict":
        return any(has_tensor(item) for pair in body for item in pair)
    return name == "tensor" or (name in ("list", "tuple") and any(has_tensor(item) for item in body))


def is_tensor(got):
    return isinstance(got, np.ndarray) or (torch is not None and isinstance(got, torch.Tensor))


def near(got, want, rtol, atol):
    if got == want or (cmath.isnan(got) and cmath.isnan(want)):
        return True
    return cmath.isfinite(want) and abs(got - want) <= atol + rtol * abs(want)


def array_of(tensor):
    """Elements as NumPy's, and the name of the dtype."""
    if isinstance(tensor, Brain):
        return (tensor.bits.astype(np.int32) << 16).view(np.float32), "bfloat16"
    if isinstance(tensor, np.ndarray):
        return tensor, str(tensor.dtype)
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "bfloat16":
        return tensor.float().numpy(), name
    return tensor.resolve_conj().resolve_neg().numpy(), name


def differ(got, want, rtol, atol):
    """Whether any elements differ by more than the tolerance."""
    if got.dtype.kind not in "fc":
        return bool((got != want).any())
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        close = (got == want) | (np.isnan(got) & np.isnan(want))
        close |= np.isfinite(want) & (np.abs(got - want) <= atol + rtol * np.abs(want))
    if wide is np.complex128 and not close.all():
        parts = [np.isclose(g, w, rtol, atol, equal_nan=True) for g, w in ((got.real, want.real), (got.imag, want.imag))]
        close |= parts[0] & parts[1]
    return not bool(close.all())


def check(got, recorded, tensors, kind, rtol, atol, place="result"):
    """Asserts that a result agrees with a recorded one."""
    ((name, body),) = recorded.items()
    if name == "tensor":
        want = tensors[body] if isinstance(body, str) else inline(body)
        assert is_tensor(got), f"{place}: {type(got)} instead of an array"
        assert isinstance(got, np.ndarray) == (kind == "numpy"), f"{place}: {type(got)} is of the wrong library"
        (got, got_name), (want, want_name) = array_of(got), array_of(want)
        assert got_name == want_name, f"{place}: dtype {got_name} instead of {want_name}"
        assert got.shape == want.shape, f"{place}: shape {got.shape} instead of {want.shape}"
        assert not differ(got, want, rtol, atol), f"{place}: {got} instead of {want}"
        return
    if name == "list":
        assert type(got) is list and len(got) == len(body), f"{place}: {got!r} instead of a list of {len(body)}"
        pairs = list(zip(got, body))
    elif name == "tuple":
        assert isinstance(got, tuple) and len(got) == len(body), f"{place}: {got!r} instead of a tuple of {len(body)}"
        pairs = list(zip(got, body))
    elif name == "dict":
        assert type(got) is dict and len(got) == len(body), f"{place}: {got!r} instead of a dict of {len(body)}"
        pairs = [(part, want) for item, wants in zip(got.items(), body) for part, want in zip(item, wants)]
    elif name in ("float", "complex"):
        want = value(recorded, tensors, kind)
        assert type(got) is type(want) and near(got, want, rtol, atol), f"{place}: {got!r} instead of {want!r}"
        return
    else:
        want = value(recorded, tensors, kind)
        if name == "device":
            got = str(got)
        assert type(got) is type(want) and got == want, f"{place}: {got!r} instead of {want!r}"
        return
    for index, (item, want) in enumerate(pairs):
        check(item, want, tensors, kind, rtol, atol, f"{place}[{index}]")


def run(load, case, tensors, kind):
    """Makes the calls of a case on a model, and compares the results. `load` returns the model."""
    import frazil

    rtol, atol = case.get("rtol", 1e-5), case.get("atol", 1e-5)
    calls = [[value(argument, tensors, kind) for argument in call["args"]] for call in case["calls"]]
    model = load()
    for index, (call, arguments) in enumerate(zip(case["calls"], calls)):
        method = call.get("method", case.get("method", "forward"))
        function = model if method == "forward" else getattr(model, method)
        if "raises" in call["result"]:
            try:
                got = function(*arguments)
            except frazil.Error as error:
                if call["result"].get("user"):
                    assert call["result"]["raises"] in str(error), f"call {index}: {error}"
                continue
            raise AssertionError(f"call {index}: {got!r} instead of an exception")
        # Calls without arrays return NumPy's.
        expected = kind if any(has_tensor(argument) for argument in call["args"]) else "numpy"
        try:
            got = function(*arguments)
        except TypeError as error:
            if "NumPy has no bfloat16" in str(error):
                raise Inexpressible(str(error)) from error
            raise
        check(got, call["result"], tensors, expected, rtol, atol, f"call {index}")
