"""`torch.nn.functional`, as far as it is more than an operator of the same name and arguments."""


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.relu_(input)
    else:
        result = torch.relu(input)
    return result


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch._C._nn.relu6_(input)
    else:
        result = torch._C._nn.relu6(input)
    return result


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch._C._nn.elu_(input, alpha)
    else:
        result = torch._C._nn.elu(input, alpha)
    return result


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.selu_(input)
    else:
        result = torch.selu(input)
    return result


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.celu_(input, alpha)
    else:
        result = torch.celu(input, alpha)
    return result


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch._C._nn.leaky_relu_(input, negative_slope)
    else:
        result = torch._C._nn.leaky_relu(input, negative_slope)
    return result


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch._C._nn.silu_(input)
    else:
        result = torch._C._nn.silu(input)
    return result


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch._C._nn.mish_(input)
    else:
        result = torch._C._nn.mish(input)
    return result


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch._C._nn.hardswish_(input)
    else:
        result = torch._C._nn.hardswish(input)
    return result


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch._C._nn.hardsigmoid_(input)
    else:
        result = torch._C._nn.hardsigmoid(input)
    return result


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch._C._nn.hardtanh_(input, min_val, max_val)
    else:
        result = torch._C._nn.hardtanh(input, min_val, max_val)
    return result


def _threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.threshold_(input, threshold, value)
    else:
        result = torch.threshold(input, threshold, value)
    return result


def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    return input.tanh()



def glu(input: Tensor, dim: int = -1) -> Tensor:
    return torch._C._nn.glu(input, dim)


def _softmax_dim(ndim: int) -> int:
    return 0 if ndim == 0 or ndim == 1 or ndim == 3 else 1


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim(input.dim())
    if dtype is None:
        result = input.softmax(dim)
    else:
        result = input.softmax(dim, dtype=dtype)
    return result


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim(input.dim())
    if dtype is None:
        result = input.log_softmax(dim)
    else:
        result = input.log_softmax(dim, dtype=dtype)
    return result


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim(input.dim())
    if dtype is None:
        result = (-input).softmax(dim)
    else:
        result = (-input).softmax(dim, dtype=dtype)
    return result


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if inplace:
        result = torch.dropout_(input, p, training)
    else:
        result = torch.dropout(input, p, training)
    return result


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.feature_dropout_(input, p, training)
    else:
        result = torch.feature_dropout(input, p, training)
    return result


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return dropout1d(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return dropout1d(input, p, training, inplace)





def _check_values_per_channel(size: List[int]) -> None:
    values = size[0]
    for extent in size[2:]:
        values *= extent
    if values == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(
    input: Tensor,
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if training:
        _check_values_per_channel(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(
    input: Tensor,
    running_mean: Optional[Tensor] = None,
    running_var: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if use_input_stats:
        size = input.size()
        values = 1
        for extent in size[2:]:
            values *= extent
        if values == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def layer_norm(
    input: Tensor,
    normalized_shape: List[int],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, True)


def group_norm(
    input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5
) -> Tensor:
    size = input.size()
    if len(size) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(size)}")
    _check_values_per_channel([size[0] * size[1] // num_groups, num_groups] + size[2:])
    return torch.group_norm(input, num_groups, weight, bias, eps, True)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    denominator = torch.linalg_vector_norm(input, p, [dim], True).clamp_min(eps).expand_as(input)
    return input / denominator


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    index = -1
    if padding_idx is not None:
        index = padding_idx
        if padding_idx < 0:
            index = weight.size(0) + padding_idx
    if max_norm is not None:
        torch.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    return torch.embedding(weight, input, index, scale_grad_by_freq, sparse)


@torch.jit._overload
def interpolate(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    ...


@torch.jit._overload
def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    ...


@torch.jit._overload
def interpolate(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    ...


@torch.jit._overload
def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    ...


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    corners = False
    if mode == "nearest" or mode == "area" or mode == "nearest-exact":
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    elif align_corners is not None:
        corners = align_corners
    rank = input.dim() - 2
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    recompute = mode == "area"
    if recompute_scale_factor is not None and recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        recompute = True
    sizes = torch.jit.annotate(Optional[List[int]], None)
    if size is not None:
        if isinstance(size, int):
            sizes = [size for _ in range(rank)]
        else:
            if len(size) != rank:
                raise ValueError(f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of {input.shape[2:]} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format.")
            sizes = size
    scales = torch.jit.annotate(Optional[List[float]], None)
    if scale_factor is not None:
        if isinstance(scale_factor, float):
            factors = [scale_factor for _ in range(rank)]
        else:
            if len(scale_factor) != rank:
                raise ValueError(f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of {input.shape[2:]} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.")
            factors = scale_factor
        if recompute:
            sizes = [int(math.floor(float(input.size(i + 2)) * factors[i])) for i in range(rank)]
        else:
            scales = factors
    if antialias and not ((mode == "bilinear" or mode == "bicubic" or mode == "lanczos") and rank == 2):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "area":
        assert sizes is not None
        if rank == 1:
            return torch.adaptive_avg_pool1d(input, sizes)
        if rank == 2:
            return torch._C._nn.adaptive_avg_pool2d(input, sizes)
        if rank == 3:
            return torch._C._nn.adaptive_avg_pool3d(input, sizes)
    if mode == "nearest" and rank == 1:
        result = torch._C._nn.upsample_nearest1d(input, sizes, scales)
    elif mode == "nearest" and rank == 2:
        result = torch._C._nn.upsample_nearest2d(input, sizes, scales)
    elif mode == "nearest" and rank == 3:
        result = torch._C._nn.upsample_nearest3d(input, sizes, scales)
    elif mode == "nearest-exact" and rank == 1:
        result = torch._C._nn._upsample_nearest_exact1d(input, sizes, scales)
    elif mode == "nearest-exact" and rank == 2:
        result = torch._C._nn._upsample_nearest_exact2d(input, sizes, scales)
    elif mode == "nearest-exact" and rank == 3:
        result = torch._C._nn._upsample_nearest_exact3d(input, sizes, scales)
    elif mode == "bilinear" and rank == 2 and antialias:
        result = torch._C._nn._upsample_bilinear2d_aa(input, sizes, corners, scales)
    elif mode == "bicubic" and rank == 2 and antialias:
        result = torch._C._nn._upsample_bicubic2d_aa(input, sizes, corners, scales)
    elif mode == "lanczos" and rank == 2:
        if corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        result = torch._C._nn._upsample_lanczos2d_aa(input, sizes, corners, scales)
    elif mode == "linear" and rank == 1:
        result = torch._C._nn.upsample_linear1d(input, sizes, corners, scales)
    elif mode == "bilinear" and rank == 2:
        result = torch._C._nn.upsample_bilinear2d(input, sizes, corners, scales)
    elif mode == "trilinear" and rank == 3:
        result = torch._C._nn.upsample_trilinear3d(input, sizes, corners, scales)
    elif mode == "bicubic" and rank == 2:
        result = torch._C._nn.upsample_bicubic2d(input, sizes, corners, scales)
    else:
        raise NotImplementedError(f"interpolation of {input.dim()} dimensions with mode {mode}")
    return result


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


def fold(
    input: Tensor,
    output_size: BroadcastingList2[int],
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch._C._nn.col2im(
        input, output_size, kernel_size, dilation, padding, stride
    )


def unfold(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch._C._nn.im2col(input, kernel_size, dilation, padding, stride)


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


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Optional[int] = None, ceil_mode: bool = False
) -> Tensor:
    step = kernel_size if stride is None else stride
    powers = torch.avg_pool1d(input.pow(norm_type), [kernel_size], [step], [0], ceil_mode)
    return (torch.sign(powers) * relu(torch.abs(powers))).mul(kernel_size).pow(1.0 / norm_type)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,
    ceil_mode: bool = False,
) -> Tensor:
    step = kernel_size if stride is None else stride
    powers = torch._C._nn.avg_pool2d(input.pow(norm_type), kernel_size, step, [0, 0], ceil_mode)
    return (torch.sign(powers) * relu(torch.abs(powers))).mul(kernel_size[0] * kernel_size[1]).pow(1.0 / norm_type)


def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return torch._C._nn.pad(input, pad, mode, value)


def rrelu(
    input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False
) -> Tensor:
    if inplace:
        result = torch.rrelu_(input, lower, upper, training)
    else:
        result = torch.rrelu(input, lower, upper, training)
    return result


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    noise = -torch.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if hard:
        index = soft.max(dim, keepdim=True)[1]
        one = torch.zeros_like(logits).scatter_(dim, index, 1.0)
        result = one - soft.detach() + soft
    else:
        result = soft
    return result


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.alpha_dropout_(input, p, training)
    else:
        result = torch.alpha_dropout(input, p, training)
    return result


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.feature_alpha_dropout_(input, p, training)
    else:
        result = torch.feature_alpha_dropout(input, p, training)
    return result


def rms_norm(
    input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None
) -> Tensor:
    return torch.rms_norm(input, normalized_shape, weight, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    rank = input.dim()
    if rank < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {rank} dimensions)")
    squares = input.mul(input)
    if rank == 3:
        windows = pad(squares.unsqueeze(1), [0, 0, size // 2, (size - 1) // 2])
        means = torch._C._nn.avg_pool2d(windows, [size, 1], [1]).squeeze(1)
    else:
        sizes = input.size()
        windows = pad(squares.view(sizes[0], 1, sizes[1], sizes[2], -1), [0, 0, 0, 0, size // 2, (size - 1) // 2])
        means = torch._C._nn.avg_pool3d(windows, [size, 1, 1], [1]).squeeze(1).view(sizes)
    return input / means.mul(alpha).add(k).pow(beta)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.affine_grid_generator(theta, size, corners)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None
) -> Tensor:
    if mode == "bilinear":
        interpolation = 0
    elif mode == "nearest":
        interpolation = 1
    elif mode == "bicubic":
        interpolation = 2
    else:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode == "zeros":
        outside = 0
    elif padding_mode == "border":
        outside = 1
    elif padding_mode == "reflection":
        outside = 2
    else:
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.grid_sampler(input, grid, interpolation, outside, corners)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Optional[Tensor] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False,
    padding_idx: Optional[int] = None,
) -> Tensor:
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None")
        starts = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    else:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        starts = offsets
    if mode == "sum":
        code = 0
    elif mode == "mean":
        code = 1
    elif mode == "max":
        code = 2
    else:
        raise ValueError("mode has to be one of sum, mean or max")
    if max_norm is not None:
        torch.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    result, _, _, _ = torch.embedding_bag(
        weight, input, starts, scale_grad_by_freq, code, sparse, per_sample_weights, include_last_offset, padding_idx
    )
    return result
