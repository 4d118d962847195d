"""Freezing, optimising frozen models, and what stays of their attributes."""

import numpy as np
import pytest

import frazil

SOURCE = """
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.version = 3
        self.factor = 2.0
    def forward(self, x):
        return x * self.factor

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.conv = nn.Conv2d(2, 3, 1)
        self.bn = nn.BatchNorm2d(3)
        self.version = 1
        self.calls = torch.zeros(1)
        self.weight = nn.Parameter(torch.ones(1))
    def forward(self, x):
        self.calls += 1
        return self.sub(self.bn(self.conv(x))) + self.calls * self.weight
    @torch.jit.export
    def other(self, x):
        return x + self.version
"""

IMAGE = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)


@pytest.fixture
def net():
    return frazil.script(SOURCE, name="Net").eval()


def test_parameters_become_constants(net):
    frozen = frazil.freeze(net)
    assert list(frozen.named_parameters()) == [] and not hasattr(frozen, "weight") and not hasattr(frozen, "other")
    assert hasattr(net, "weight"), "the model stays as it is"
    assert np.allclose(frozen(IMAGE), net(IMAGE), atol=1e-5)
    assert "batch_norm" not in str(frozen.graph) and "def forward" in frozen.code


def test_preserved_attributes(net):
    frozen = frazil.freeze(net, ["version", "other", "sub.version"])
    assert frozen.version == 1 and frozen.sub.version == 3
    frozen.version = 10
    assert frozen.version == 10 and frozen.other(np.zeros(1)).tolist() == [10.0]
    assert frozen.calls.tolist() == [0.0], "an attribute that calls change stays"
    frozen(IMAGE)
    assert frozen.calls.tolist() == [1.0]
    frozen.calls = np.full(1, 5, np.float32)
    frozen(IMAGE)
    assert frozen.calls.tolist() == [6.0] and net.calls.tolist() == [0.0]
    frozen.sub.version = 4
    assert frozen.sub.version == 4


def test_names_of_arguments(net):
    assert frazil.freeze(mod=net, preserved_attrs=None, optimize_numerics=True).original_name
    frozen = frazil.freeze(net, optimize_numerics=False)
    assert "batch_norm" in str(frozen.graph)
    assert frazil.run_frozen_optimizations(mod=frozen, optimize_numerics=True, preserved_methods=None) is None
    assert "batch_norm" not in str(frozen.graph)
    assert np.allclose(frozen(IMAGE), net(IMAGE), atol=1e-5)
    best = frazil.optimize_for_inference(mod=net, other_methods=["other"])
    assert best.other(np.zeros(1)).tolist() == [1.0]
    assert np.allclose(frazil.optimize_for_inference(frazil.freeze(net))(IMAGE)[0, 0, 0, 0] * 0, 0)


def test_what_cannot_be_frozen(net):
    with pytest.raises(frazil.Error, match="eval"):
        frazil.freeze(frazil.script(SOURCE, name="Net").train())
    with pytest.raises((AttributeError, frazil.Error), match="missing"):
        frazil.freeze(net, ["missing"])
    with pytest.raises(TypeError, match="`mod`: expected a ScriptModule, not 3"):
        frazil.freeze(3)
    with pytest.raises(TypeError, match="`preserved_attrs`: expected a list of str, not 'version'"):
        frazil.freeze(net, "version")
    with pytest.raises(TypeError, match="`preserved_attrs`: expected a list of str, not \\[1\\]"):
        frazil.freeze(net, [1])
    with pytest.raises(TypeError, match="`other_methods`"):
        frazil.optimize_for_inference(net, "other")
    with pytest.raises(AttributeError, match="no method `missing`"):
        frazil.run_frozen_optimizations(frazil.freeze(net), preserved_methods=["missing"])
    with pytest.raises(TypeError, match="submodule"):
        frazil.freeze(net.sub)


def test_frozen_models_are_saved(net, tmp_path):
    net.bn.running_mean = np.array([1, 2, 3], np.float32)
    frozen = frazil.freeze(net, ["version"])
    frozen(IMAGE)
    frozen.save(tmp_path / "frozen.pt")
    again = frazil.load(tmp_path / "frozen.pt")
    assert again.version == 1 and again.calls.tolist() == [1.0]
    assert np.allclose(again(IMAGE), frozen(IMAGE))


def test_switches_of_fusers():
    for enabled in (True, False):
        frazil.enable_onednn_fusion(enabled)
        assert frazil.onednn_fusion_enabled() is enabled
