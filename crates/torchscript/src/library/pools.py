"""The pooling functions of `torch.nn.functional`."""


def _unpool_output_size(
    input: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], output_size: Optional[List[int]]
) -> List[int]:
    rank = len(kernel_size)
    sizes = input.size()
    result = torch.jit.annotate(List[int], [])
    for d in range(rank):
        result.append((sizes[d - rank] - 1) * stride[d] + kernel_size[d] - 2 * padding[d])
    if output_size is not None:
        wanted = output_size
        if len(wanted) == rank + 2:
            wanted = wanted[2:]
        if len(wanted) != rank:
            raise ValueError(f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of '{len(wanted)}'")
        for d in range(rank):
            least = result[d] - stride[d]
            most = result[d] + stride[d]
            if not (least < wanted[d] < most):
                raise ValueError(f'invalid output_size "{wanted}" (dim {d} must be between {least} and {most})')
        result = wanted
    for d in range(rank):
        if result[d] < 0:
            raise ValueError(f"max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size[{d}]={result[d]}")
    return result


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    output_size: Optional[BroadcastingList1[int]] = None,
) -> Tensor:
    steps = kernel_size
    if stride is not None:
        steps = stride
    sizes = _unpool_output_size(input, kernel_size, steps, padding, output_size)
    return torch._C._nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), sizes + [1]).squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    output_size: Optional[BroadcastingList2[int]] = None,
) -> Tensor:
    steps = kernel_size
    if stride is not None:
        steps = stride
    sizes = _unpool_output_size(input, kernel_size, steps, padding, output_size)
    return torch._C._nn.max_unpool2d(input, indices, sizes)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    output_size: Optional[BroadcastingList3[int]] = None,
) -> Tensor:
    steps = kernel_size
    if stride is not None:
        steps = stride
    sizes = _unpool_output_size(input, kernel_size, steps, padding, output_size)
    return torch._C._nn.max_unpool3d(input, indices, sizes, steps, padding)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool1d(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


max_pool1d = choose("return_indices", 6, max_pool1d_with_indices, _max_pool1d)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch._C._nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool2d(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


max_pool2d = choose("return_indices", 6, max_pool2d_with_indices, _max_pool2d)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch._C._nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool3d(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    if stride is None:
        stride = torch.jit.annotate(List[int], [])
    return torch.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


max_pool3d = choose("return_indices", 6, max_pool3d_with_indices, _max_pool3d)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool1d(input, output_size)


def _adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool1d(input, output_size)[0]


adaptive_max_pool1d = choose("return_indices", 2, adaptive_max_pool1d_with_indices, _adaptive_max_pool1d)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch._C._nn.adaptive_max_pool2d(input, output_size)


def _adaptive_max_pool2d(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tensor:
    return torch._C._nn.adaptive_max_pool2d(input, output_size)[0]


adaptive_max_pool2d = choose("return_indices", 2, adaptive_max_pool2d_with_indices, _adaptive_max_pool2d)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch._C._nn.adaptive_max_pool3d(input, output_size)


def _adaptive_max_pool3d(input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False) -> Tensor:
    return torch._C._nn.adaptive_max_pool3d(input, output_size)[0]


adaptive_max_pool3d = choose("return_indices", 2, adaptive_max_pool3d_with_indices, _adaptive_max_pool3d)


def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor:
    return torch._C._nn.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor:
    return torch._C._nn.adaptive_avg_pool3d(input, output_size)


def _root_of_sums(means: Tensor, norm_type: float, count: int) -> Tensor:
    """From means over windows of `count` powers to norms."""
    return (torch.sign(means) * torch.relu(torch.abs(means))).mul(count).pow(1.0 / norm_type)


def _check_norm(norm_type: float) -> None:
    if norm_type == 0:
        raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")


def lp_pool1d(
    input: Tensor,
    norm_type: Union[int, float],
    kernel_size: int,
    stride: Optional[BroadcastingList1[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    norm = float(norm_type)
    _check_norm(norm)
    size = [kernel_size]
    step = size if stride is None else stride
    if norm == math.inf:
        result = torch.max_pool1d(input.abs(), size, step, [0], [1], ceil_mode)
    elif norm == -math.inf:
        result = -torch.max_pool1d(-input.abs(), size, step, [0], [1], ceil_mode)
    else:
        means = torch.avg_pool1d(input.pow(norm), size, step, [0], ceil_mode)
        result = _root_of_sums(means, norm, kernel_size)
    return result


def lp_pool2d(
    input: Tensor,
    norm_type: Union[int, float],
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    norm = float(norm_type)
    _check_norm(norm)
    step = kernel_size if stride is None else stride
    if norm == math.inf:
        result = torch.max_pool2d(input.abs(), kernel_size, step, [0, 0], [1, 1], ceil_mode)
    elif norm == -math.inf:
        result = -torch.max_pool2d(-input.abs(), kernel_size, step, [0, 0], [1, 1], ceil_mode)
    else:
        means = torch._C._nn.avg_pool2d(input.pow(norm), kernel_size, step, [0, 0], ceil_mode)
        result = _root_of_sums(means, norm, kernel_size[0] * kernel_size[1])
    return result


def lp_pool3d(
    input: Tensor,
    norm_type: Union[int, float],
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    norm = float(norm_type)
    _check_norm(norm)
    step = kernel_size if stride is None else stride
    if norm == math.inf:
        result = torch.max_pool3d(input.abs(), kernel_size, step, [0, 0, 0], [1, 1, 1], ceil_mode)
    elif norm == -math.inf:
        result = -torch.max_pool3d(-input.abs(), kernel_size, step, [0, 0, 0], [1, 1, 1], ceil_mode)
    else:
        means = torch._C._nn.avg_pool3d(input.pow(norm), kernel_size, step, [0, 0, 0], ceil_mode)
        result = _root_of_sums(means, norm, kernel_size[0] * kernel_size[1] * kernel_size[2])
    return result


def _share_of_sizes(input: Tensor, ratios: List[float]) -> List[int]:
    rank = len(ratios)
    return [int(input.size(i - rank) * ratios[i]) for i in range(rank)]


def _samples(input: Tensor, given: Optional[Tensor], rank: int) -> Tensor:
    """Where the windows of fractional pooling start: a number between 0 and 1 for each image, channel and dimension."""
    if given is None:
        batch = 1 if input.dim() == rank + 1 else input.size(0)
        result = torch.rand([batch, input.size(-rank - 1), rank], dtype=input.dtype, device=input.device)
    else:
        result = given
    return result


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    output_size: Optional[BroadcastingList2[int]] = None,
    output_ratio: Optional[BroadcastingList2[float]] = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    if output_size is not None:
        sizes = output_size
    elif output_ratio is not None:
        sizes = _share_of_sizes(input, output_ratio)
    else:
        raise ValueError("fractional_max_pool2d requires specifying either an output_size or an output_ratio")
    return torch._C._nn.fractional_max_pool2d(input, kernel_size, sizes, _samples(input, _random_samples, 2))


def _fractional_max_pool2d(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    output_size: Optional[BroadcastingList2[int]] = None,
    output_ratio: Optional[BroadcastingList2[float]] = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tensor:
    return fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )[0]


fractional_max_pool2d = choose("return_indices", 4, fractional_max_pool2d_with_indices, _fractional_max_pool2d)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    output_size: Optional[BroadcastingList3[int]] = None,
    output_ratio: Optional[BroadcastingList3[float]] = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    if output_size is not None:
        sizes = output_size
    elif output_ratio is not None:
        sizes = _share_of_sizes(input, output_ratio)
    else:
        raise ValueError("fractional_max_pool3d requires specifying either an output_size or an output_ratio")
    return torch._C._nn.fractional_max_pool3d(input, kernel_size, sizes, _samples(input, _random_samples, 3))


def _fractional_max_pool3d(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    output_size: Optional[BroadcastingList3[int]] = None,
    output_ratio: Optional[BroadcastingList3[float]] = None,
    return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tensor:
    return fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )[0]


fractional_max_pool3d = choose("return_indices", 4, fractional_max_pool3d_with_indices, _fractional_max_pool3d)
