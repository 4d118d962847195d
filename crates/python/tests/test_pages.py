"""Names and arguments of PyTorch's pages on freezing and on ScriptModule, and their examples in other words."""

import inspect

import numpy as np
import pytest

import frazil

#: The names of ScriptModule's page with the names of their arguments, and those with defaults.
METHODS = """
add_module(name, module)
apply(fn)
bfloat16()
buffers(recurse=True)
children()
compile(*args, **kwargs)
cpu()
cuda(device=None)
define(src)
double()
eval()
extra_repr()
float()
forward_magic_method(method_name, *args, **kwargs)
get_buffer(target)
get_debug_state(*args, **kwargs)
get_extra_state()
get_parameter(target)
get_submodule(target)
graph_for(*args, **kwargs)
half()
ipu(device=None)
load_state_dict(state_dict, strict=True, assign=False)
modules(remove_duplicate=True)
mtia(device=None)
named_buffers(prefix='', recurse=True, remove_duplicate=True)
named_children()
named_modules(memo=None, prefix='', remove_duplicate=True)
named_parameters(prefix='', recurse=True, remove_duplicate=True)
parameters(recurse=True)
register_backward_hook(hook)
register_buffer(name, tensor, persistent=True)
register_forward_hook(hook, *, prepend=False, with_kwargs=False, always_call=False)
register_forward_pre_hook(hook, *, prepend=False, with_kwargs=False)
register_full_backward_hook(hook, prepend=False)
register_full_backward_pre_hook(hook, prepend=False)
register_load_state_dict_post_hook(hook)
register_load_state_dict_pre_hook(hook)
register_module(name, module)
register_parameter(name, param)
register_state_dict_post_hook(hook)
register_state_dict_pre_hook(hook)
requires_grad_(requires_grad=True)
save(f, _extra_files=None)
save_to_buffer(_extra_files=None)
set_extra_state(state)
set_submodule(target, module, strict=False)
share_memory()
state_dict(*args, destination=None, prefix='', keep_vars=False)
to(*args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None)
to_empty(*, device, recurse=True)
train(mode=True)
type(dst_type)
xpu(device=None)
zero_grad(set_to_none=True)
"""

PROPERTIES = ["code", "code_with_constants", "graph", "inlined_graph", "original_name"]

#: Names of `torch.jit` with their arguments.
FUNCTIONS = """
load(f, map_location=None, _extra_files=None, _restore_shapes=False, **options)
save(m, f, _extra_files=None)
freeze(mod, preserved_attrs=None, optimize_numerics=True)
run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None)
optimize_for_inference(mod, other_methods=None)
script(obj, name=None, **options)
enable_onednn_fusion(enabled)
onednn_fusion_enabled()
set_fusion_strategy(strategy)
strict_fusion()
"""

#: Calls of what cannot exist here.
UNAVAILABLE = [
    ("compile", ()),
    ("cuda", ()),
    ("forward_magic_method", ("__len__",)),
    ("get_debug_state", ()),
    ("get_extra_state", ()),
    ("ipu", ()),
    ("mtia", ()),
    ("register_backward_hook", (print,)),
    ("register_full_backward_hook", (print,)),
    ("register_full_backward_pre_hook", (print,)),
    ("set_extra_state", ({},)),
    ("xpu", ()),
]

#: Public names of `torch.jit.ScriptModule` that are not here, with the reason.
ABSENT = {"T_destination": "a name for type checkers"}


def lines(text):
    return [line for line in text.splitlines() if line]


def signature(function):
    text = str(inspect.signature(function))
    return function.__name__ + text.replace("(self, /, ", "(").replace("(self, /)", "()").replace("(self)", "()")


@pytest.mark.parametrize("expected", lines(METHODS))
def test_methods_have_pytorchs_arguments(expected):
    assert signature(getattr(frazil.ScriptModule, expected.split("(")[0])) == expected


@pytest.mark.parametrize("expected", lines(FUNCTIONS))
def test_functions_have_pytorchs_arguments(expected):
    assert signature(getattr(frazil, expected.split("(")[0])) == expected


def test_properties_are_there():
    model = identity()
    for name in PROPERTIES:
        assert getattr(frazil.ScriptModule, name) is not None
        assert getattr(model, name)
    assert frazil.ScriptModule.call_super_init is False and frazil.ScriptModule.dump_patches is False


def test_every_public_name_of_pytorchs_class_is_here():
    torch = pytest.importorskip("torch")
    theirs = {name for name in dir(torch.jit.ScriptModule) if not name.startswith("_")}
    # That one is an attribute of modules that have it.
    ours = set(dir(frazil.ScriptModule)) | {"forward"}
    assert theirs - ours == set(ABSENT)


def test_arguments_are_those_of_the_installed_pytorch():
    torch = pytest.importorskip("torch")
    for line in lines(METHODS):
        name = line.split("(")[0]
        theirs = getattr(torch.nn.Module, name, None)
        if theirs is None or name in ("to", "compile", "forward_magic_method"):
            continue
        theirs = [p.name for p in inspect.signature(theirs).parameters.values() if p.name != "self"]
        ours = [p.name for p in inspect.signature(getattr(frazil.ScriptModule, name)).parameters.values() if p.name != "self"]
        assert ours == theirs, name
    for line in lines(FUNCTIONS):
        name = line.split("(")[0]
        theirs = inspect.signature(getattr(torch.jit, name)).parameters
        ours = inspect.signature(getattr(frazil, name)).parameters
        if name not in ("script", "strict_fusion", "save"):
            assert [p for p in ours if p != "options"] == list(theirs), name


def identity():
    return frazil.script("class Identity(nn.Module):\n    def forward(self, x):\n        return x\n")


@pytest.mark.parametrize("name, arguments", UNAVAILABLE)
def test_what_cannot_exist_says_why(name, arguments):
    with pytest.raises(frazil.UnsupportedError, match=f"`{name}` has no counterpart here: ..."):
        getattr(identity(), name)(*arguments)


def test_functions_that_cannot_exist_say_why():
    with pytest.raises(frazil.UnsupportedError, match="`set_fusion_strategy` has no counterpart here: "):
        frazil.set_fusion_strategy([("STATIC", 2)])
    with pytest.raises(frazil.UnsupportedError, match="`strict_fusion` has no counterpart here: "):
        frazil.strict_fusion()


# The examples, in other words.

BLOCK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2)
        self.norm = nn.BatchNorm2d(8, eps=0.001)
    def forward(self, image):
        return self.norm(self.conv(image))
"""


def test_a_frozen_module_has_no_parameters():
    source = """
class Product(nn.Module):
    def __init__(self):
        super().__init__()
        self.matrix = nn.Parameter(torch.ones(2, 3))
        self.project = nn.Linear(2, 3)
    def forward(self, x):
        return self.project(self.matrix.mm(x))
"""
    module = frazil.script(source).eval()
    frozen = frazil.freeze(module)
    assert len(list(module.named_parameters())) == 3 and len(list(frozen.named_parameters())) == 0
    assert "def forward" in frozen.code and "matrix" not in frozen.code
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert np.allclose(frozen(x), module(x), atol=1e-5)


def test_attributes_that_are_changed_or_preserved_stay():
    source = """
class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = torch.tensor(10.0)
        self.release = 1
    def forward(self, x):
        self.offset += 1
        return x + self.offset
"""
    frozen = frazil.freeze(frazil.script(source).eval(), preserved_attrs=["release"])
    assert frozen.release == 1
    frozen.release = 2
    assert frozen.release == 2
    assert frozen(np.array(1)) == 12 and frozen(np.array(1)) == 13
    assert "offset" in frozen.dump_alias_db() or frozen.dump_alias_db() == ""


def test_batch_norms_are_folded():
    module = frazil.script(BLOCK).eval()
    frozen = frazil.freeze(module, optimize_numerics=False)
    assert "batch_norm" in str(frozen.graph)
    frazil.run_frozen_optimizations(frozen)
    assert "batch_norm" not in str(frozen.graph)
    best = frazil.optimize_for_inference(frazil.script(BLOCK).eval())
    assert "batch_norm" not in str(best.graph)


def test_conversions_of_a_layer():
    linear = frazil.script("class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(2, 2)\n    def forward(self, x):\n        return self.fc(x)\n").fc
    assert linear.weight.dtype == np.float32
    assert linear.to("double") is linear or linear.weight.dtype == np.float64
    assert linear.weight.dtype == np.float64
    linear.to("cpu", dtype="half", non_blocking=True)
    assert linear.weight.dtype == np.float16
    assert linear.to("complex128").weight.dtype == np.complex128
    assert linear(np.ones((3, 2), np.complex128)).dtype == np.complex128


def test_walking_through_modules():
    source = """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        shared = nn.Linear(2, 2)
        self.body = nn.Sequential(shared, shared)
    def forward(self, x):
        return self.body(x)
"""
    pair = frazil.script(source)
    assert [name for name, _ in pair.body.named_children()][:1] == ["0"]
    assert [name for name, _ in pair.body.named_modules()] == ["", "0"], "a module under two names is listed once"

    def ones(module):
        if module.original_name == "Linear":
            module.weight = np.ones((2, 2), np.float32)

    pair.apply(ones)
    assert (pair.get_submodule("body.0").weight == 1).all()
    assert [p.shape for p in pair.parameters()] == [(2, 2), (2,)]
    assert list(pair.state_dict()) == ["body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias"]
