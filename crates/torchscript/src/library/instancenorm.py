"""Normalisation by instance."""

from torch import Tensor
import torch.nn.functional as F
from torch.nn.modules.batchnorm import _Norm


class _InstanceNorm(_Norm):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        dims = self._spatial_dims()
        if input.dim() != dims + 1 and input.dim() != dims + 2:
            raise ValueError(f"expected {dims + 1}D or {dims + 2}D input (got {input.dim()}D input)")
        at = input.dim() - dims - 1
        if input.size(at) != self.num_features and self.affine:
            raise ValueError(f"expected input's size at dim={at} to match num_features ({self.num_features}), but got: {input.size(at)}.")
        if at == 0:
            result = self._normalised(input.unsqueeze(0)).squeeze(0)
        else:
            result = self._normalised(input)
        return result

    def _normalised(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    def _spatial_dims(self) -> int:
        return 1


class InstanceNorm2d(_InstanceNorm):
    def _spatial_dims(self) -> int:
        return 2


class InstanceNorm3d(_InstanceNorm):
    def _spatial_dims(self) -> int:
        return 3


class LazyInstanceNorm1d(Module):
    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None
    ):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.instancenorm.LazyInstanceNorm1d' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input


class LazyInstanceNorm2d(Module):
    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None
    ):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.instancenorm.LazyInstanceNorm2d' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input


class LazyInstanceNorm3d(Module):
    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None
    ):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.instancenorm.LazyInstanceNorm3d' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input
