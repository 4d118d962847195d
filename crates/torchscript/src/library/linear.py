"""Linear maps."""

import math
import torch
from torch import Tensor
import torch.nn.functional as F


class Identity(Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    __constants__ = ["in_features", "out_features"]

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in_features) if in_features > 0 else 0.0
        self.weight = torch.nn.Parameter(torch.empty(out_features, in_features, dtype=dtype).uniform_(-bound, bound))
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(out_features, dtype=dtype).uniform_(-bound, bound))
        else:
            self.register_parameter("bias", None)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)


class Bilinear(Module):
    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in1_features)
        weight = torch.empty(out_features, in1_features, in2_features, dtype=dtype)
        self.weight = torch.nn.Parameter(weight.uniform_(-bound, bound))
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(out_features, dtype=dtype).uniform_(-bound, bound))
        else:
            self.register_parameter("bias", None)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return torch.bilinear(input1, input2, self.weight, self.bias)


class LazyLinear(Module):
    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.linear.LazyLinear' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input
