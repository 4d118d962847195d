"""Padding."""

from torch import Tensor
import torch.nn.functional as F


class _Pad(Module):
    __constants__ = ["padding"]

    def _setup(self, sides, padding):
        self.padding = (padding,) * sides if isinstance(padding, int) else tuple(padding)


class _ConstantPad(_Pad):
    __constants__ = ["padding", "value"]

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)


class ConstantPad1d(_ConstantPad):
    def __init__(self, padding, value):
        super().__init__()
        self._setup(2, padding)
        self.value = value


class ConstantPad2d(_ConstantPad):
    def __init__(self, padding, value):
        super().__init__()
        self._setup(4, padding)
        self.value = value


class ConstantPad3d(_ConstantPad):
    def __init__(self, padding, value):
        super().__init__()
        self._setup(6, padding)
        self.value = value


class ZeroPad1d(ConstantPad1d):
    def __init__(self, padding):
        super().__init__(padding, 0.0)


class ZeroPad2d(ConstantPad2d):
    def __init__(self, padding):
        super().__init__(padding, 0.0)


class ZeroPad3d(ConstantPad3d):
    def __init__(self, padding):
        super().__init__(padding, 0.0)


class _ReflectionPad(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class ReflectionPad1d(_ReflectionPad):
    def __init__(self, padding):
        super().__init__()
        self._setup(2, padding)


class ReflectionPad2d(_ReflectionPad):
    def __init__(self, padding):
        super().__init__()
        self._setup(4, padding)


class ReflectionPad3d(_ReflectionPad):
    def __init__(self, padding):
        super().__init__()
        self._setup(6, padding)


class _ReplicationPad(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class ReplicationPad1d(_ReplicationPad):
    def __init__(self, padding):
        super().__init__()
        self._setup(2, padding)


class ReplicationPad2d(_ReplicationPad):
    def __init__(self, padding):
        super().__init__()
        self._setup(4, padding)


class ReplicationPad3d(_ReplicationPad):
    def __init__(self, padding):
        super().__init__()
        self._setup(6, padding)


class _CircularPad(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPad):
    def __init__(self, padding):
        super().__init__()
        self._setup(2, padding)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class CircularPad2d(_CircularPad):
    def __init__(self, padding):
        super().__init__()
        self._setup(4, padding)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 3 and input.dim() != 4:
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")


class CircularPad3d(_CircularPad):
    def __init__(self, padding):
        super().__init__()
        self._setup(6, padding)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4 and input.dim() != 5:
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")
