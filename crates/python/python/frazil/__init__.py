"""Load, freeze, optimise, compile and run TorchScript models, without PyTorch.

>>> import frazil, numpy
>>> model = frazil.script("def f(x, scale: float = 2.0): return x * scale")
>>> model.f(numpy.ones(3, dtype="float32"))
array([2., 2., 2.], dtype=float32)

A program that uses ``torch.jit`` to run models changes its import: ``load``, ``save``, ``freeze``, ``optimize_for_inference`` and
``run_frozen_optimizations`` have the names and arguments of ``torch.jit``.
"""

from frazil._frazil import (
    Block,
    Graph,
    Node,
    Object,
    RemovableHandle,
    ScriptMethod,
    ScriptModule,
    Use,
    Value,
    __version__,
    enable_onednn_fusion,
    freeze,
    load,
    onednn_fusion_enabled,
    optimize_for_inference,
    passes,
    run_frozen_optimizations,
    run_passes,
    save,
    script,
    set_fusion_strategy,
    strict_fusion,
)
from frazil.errors import ArgumentError, Error, InputError, LimitError, RaisedError, UnsupportedError
from frazil.module import IncompatibleKeys

__all__ = [
    "ArgumentError",
    "Block",
    "Error",
    "Graph",
    "IncompatibleKeys",
    "InputError",
    "LimitError",
    "Node",
    "Object",
    "RaisedError",
    "RemovableHandle",
    "ScriptMethod",
    "ScriptModule",
    "UnsupportedError",
    "Use",
    "Value",
    "__version__",
    "enable_onednn_fusion",
    "freeze",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "passes",
    "run_frozen_optimizations",
    "run_passes",
    "save",
    "script",
    "set_fusion_strategy",
    "strict_fusion",
]
