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
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"padding_mode must be one of {{'zeros', 'replicate', 'reflect', 'circular'}}, but got padding_mode='{padding_mode}'")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string '{padding}', should be one of {{'same', 'valid'}}")
            if padding == "same" and any([step != 1 for step in _tuple(stride, dims)]):
                raise ValueError("padding='same' is not supported for strided convolutions")
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
            raise ValueError(f'Only "zeros" padding mode is supported for ConvTranspose{dims}d')
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
            wanted = output_size
            if input.dim() == dims + 2 and len(wanted) == dims + 2:
                wanted = wanted[2:]
            if len(wanted) != dims:
                raise ValueError(f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {dims + 2} elements (got {len(output_size)})")
            least = torch.jit.annotate(List[int], [])
            most = torch.jit.annotate(List[int], [])
            for i in range(dims):
                span = dilation[i] * (kernel_size[i] - 1) + 1
                least.append((input.size(i - dims) - 1) * stride[i] - 2 * padding[i] + span)
                most.append(least[i] + stride[i] - 1)
            for i in range(dims):
                if wanted[i] < least[i] or wanted[i] > most[i]:
                    raise ValueError(f"requested an output size of {wanted}, but valid sizes range from {least} to {most} (for an input of {input.size()[2:]})")
                result[i] = wanted[i] - least[i]
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


class LazyConv1d(Module):
    def __init__(self, out_channels, kernel_size, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.conv.LazyConv1d' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input


class LazyConv2d(Module):
    def __init__(self, out_channels, kernel_size, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.conv.LazyConv2d' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input


class LazyConv3d(Module):
    def __init__(self, out_channels, kernel_size, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.conv.LazyConv3d' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input


class LazyConvTranspose1d(Module):
    def __init__(self, out_channels, kernel_size, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.conv.LazyConvTranspose1d' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input


class LazyConvTranspose2d(Module):
    def __init__(self, out_channels, kernel_size, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.conv.LazyConvTranspose2d' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input


class LazyConvTranspose3d(Module):
    def __init__(self, out_channels, kernel_size, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        torch.jit._unscriptable("'torch.nn.modules.conv.LazyConvTranspose3d' has uninitialized parameters weight. Did you forget to run a forward pass?")
        return input
