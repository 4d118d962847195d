"""Models, operators and language cases, with the arguments and results that PyTorch recorded."""

import json

import pytest

import frazil
from frazil._frazil import has_native_engine
import recorded
from conftest import FIXTURES, corpus

try:
    import torch
except ImportError:
    torch = None

KINDS = ["numpy"] if torch is None else ["numpy", "torch"]


def folders(root):
    """Folders of cases below a folder."""
    return sorted(path for path in root.iterdir() if path.is_dir()) if root else []


def model_folders():
    found = folders(FIXTURES / "models")
    if corpus():
        found += folders(corpus() / "models")
    return [pytest.param(folder, id=folder.name) for folder in found]


def operator_folders():
    """All language cases; of the operators those that differ in the kinds of values, since one kernel is like another from here."""
    found = folders(FIXTURES / "operators")
    if corpus():
        found += [f for f in folders(corpus() / "ops") if f.name.startswith(("lang_", "x_"))]
    return [pytest.param(folder, id=folder.name) for folder in found]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("folder", model_folders())
def test_a_model_gives_what_pytorch_recorded(folder, kind):
    case = json.loads((folder / "case.json").read_text())
    tensors = recorded.Tensors(folder / "tensors.safetensors")
    recorded.run(lambda: frazil.load(folder / "model.pt"), case, tensors, kind)


@pytest.mark.parametrize("folder", model_folders())
def test_a_frozen_model_gives_what_pytorch_recorded(folder):
    case = json.loads((folder / "case.json").read_text())
    tensors = recorded.Tensors(folder / "tensors.safetensors")
    preserved = case.get("preserve", [])
    recorded.run(lambda: frazil.freeze(frazil.load(folder / "model.pt"), preserved), case, tensors, "numpy")


# Native code says that results of these operators are row-major, where PyTorch's follow the layout of their operands (docs/differences.md).
ROW_MAJOR_NATIVELY = {
    "max_pool2d_with_indices_backward",
    "nn.functional.adaptive_max_pool2d",
    "nn.functional.max_unpool2d",
    "nn.functional.max_unpool2d.grad",
}
# The methods of the cases in which that shows.
LAYOUTS = ("channels_last",)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("folder", operator_folders())
def test_operators_and_programs_give_what_pytorch_recorded(folder, kind):
    tensors = recorded.Tensors(folder / "tensors.safetensors")
    failures, inexpressible = [], 0
    cases = json.loads((folder / "cases.json").read_text())
    for case in cases:
        try:
            recorded.run(lambda: frazil.load(folder / case["model"]), case, tensors, kind)
        except recorded.Inexpressible:
            inexpressible += 1
        except Exception as error:
            is_layout = folder.name in ROW_MAJOR_NATIVELY and case.get("method") in LAYOUTS
            if not (has_native_engine and is_layout):
                failures.append(f"{case.get('id', case.get('name'))}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)
    assert inexpressible == 0 or kind == "numpy"


def test_there_are_cases():
    assert len(model_folders()) >= 10
    assert len(operator_folders()) >= 100
