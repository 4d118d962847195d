"""Convolutions."""

import math
import torch
from torch import Tensor
import torch.nn.functional as F


def _tuple(value, count):
    return (value,) * count if isinstance(value, int) else tuple(value)


class _Conv(Module):
    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    _reversed_padding_repeated_twice: List[int]

    def _setup(
        self,
        dims,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
        transposed=False,
        output_padding=0,
    ):
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError("padding_mode must be zeros, reflect, replicate or circular, but got {}".format(padding_mode))
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _tuple(kernel_size, dims)
        self.stride = _tuple(stride, dims)
        self.dilation = _tuple(dilation, dims)
        self.padding = padding if isinstance(padding, str) else _tuple(padding, dims)
        self.transposed = transposed
        self.output_padding = _tuple(output_padding, dims)
        self.groups = groups
        self.padding_mode = padding_mode
        margins = []
        for at in reversed(range(dims)):
            if padding == "valid":
                margins += [0, 0]
            elif padding == "same":
                total = self.dilation[at] * (self.kernel_size[at] - 1)
                margins += [total // 2, total - total // 2]
            else:
                margins += [self.padding[at], self.padding[at]]
        self._reversed_padding_repeated_twice = margins
        if transposed:
            sizes = (in_channels, out_channels // groups) + self.kernel_size
        else:
            sizes = (out_channels, in_channels // groups) + self.kernel_size
        fan_in = 1
        for size in sizes[1:]:
            fan_in *= size
        bound = 1 / math.sqrt(fan_in)
        self.weight = torch.nn.Parameter(torch.empty(sizes, dtype=dtype).uniform_(-bound, bound))
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(out_channels, dtype=dtype).uniform_(-bound, bound))
        else:
            self.register_parameter("bias", None)


class _ConvTranspose(_Conv):
    def _setup_transposed(
        self,
        dims,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError("Only zeros padding mode is supported for transposed convolutions")
        self._setup(
            dims,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
            True,
            output_padding,
        )

    def _output_padding(self, input: Tensor, output_size: Optional[List[int]]) -> List[int]:
        """What is to be added at one end so that the result has the sizes that are asked for."""
        stride = [n for n in self.stride]
        padding = [n for n in self.padding]
        dilation = [n for n in self.dilation]
        kernel_size = [n for n in self.kernel_size]
        result = [n for n in self.output_padding]
        if output_size is not None:
            dims = len(kernel_size)
            wanted = output_size[-dims:]
            for i in range(dims):
                span = dilation[i] * (kernel_size[i] - 1) + 1
                least = (input.size(i - dims) - 1) * stride[i] - 2 * padding[i] + span
                if wanted[i] < least or wanted[i] > least + stride[i] - 1:
                    raise ValueError(f"requested an output size of {output_size}, which is out of range")
                result[i] = wanted[i] - least
        return result


class Conv1d(_Conv):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self._setup(1, *args, **kwargs)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return torch.conv1d(input, self.weight, self.bias, self.stride, (0,), self.dilation, self.groups)
        return torch.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_Conv):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self._setup(2, *args, **kwargs)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return torch.conv2d(input, self.weight, self.bias, self.stride, (0, 0), self.dilation, self.groups)
        return torch.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_Conv):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self._setup(3, *args, **kwargs)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return torch.conv3d(input, self.weight, self.bias, self.stride, (0, 0, 0), self.dilation, self.groups)
        return torch.conv3d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class ConvTranspose1d(_ConvTranspose):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self._setup_transposed(1, *args, **kwargs)

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return torch.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose2d(_ConvTranspose):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self._setup_transposed(2, *args, **kwargs)

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return torch.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose3d(_ConvTranspose):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self._setup_transposed(3, *args, **kwargs)

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return torch.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )
