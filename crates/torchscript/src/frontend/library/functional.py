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


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
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


def logsigmoid(input: Tensor) -> Tensor:
    return torch._C._nn.log_sigmoid(input)


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


def max_pool1d(
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


def max_pool2d(
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


def max_pool3d(
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


def _reduction(reduction: str) -> int:
    if reduction == "none":
        code = 0
    elif reduction == "mean":
        code = 1
    elif reduction == "sum":
        code = 2
    else:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return code


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    a, b = torch.broadcast_tensors([input, target])
    return torch._C._nn.mse_loss(a, b, _reduction(reduction))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    a, b = torch.broadcast_tensors([input, target])
    return torch._C._nn.l1_loss(a, b, _reduction(reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    a, b = torch.broadcast_tensors([input, target])
    if beta == 0.0:
        result = torch._C._nn.l1_loss(a, b, _reduction(reduction))
    else:
        result = torch._C._nn.smooth_l1_loss(a, b, _reduction(reduction), beta)
    return result


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    return torch._C._nn.cross_entropy_loss(
        input, target, weight, _reduction(reduction), ignore_index, label_smoothing
    )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.nll_loss_nd(input, target, weight, _reduction(reduction), ignore_index)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    if weight is not None:
        weight = weight.expand(torch.broadcast_tensors([target, weight])[0].size())
    return torch._C._nn.binary_cross_entropy(input, target, weight, _reduction(reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    pos_weight: Optional[Tensor] = None,
) -> Tensor:
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _reduction(reduction))


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    if reduction == "batchmean":
        result = torch.kl_div(input, target, 2, log_target=log_target)
        if input.dim() != 0:
            result = result / input.size(0)
    else:
        result = torch.kl_div(input, target, _reduction(reduction), log_target=log_target)
    return result


def interpolate(
    input: Tensor,
    size: Optional[BroadcastingList1[int]] = None,
    scale_factor: Optional[BroadcastingList1[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    rank = input.dim() - 2
    sizes = torch.jit.annotate(Optional[List[int]], None)
    if size is not None:
        sizes = [size[0] for _ in range(rank)] if len(size) == 1 else size
    scales = torch.jit.annotate(Optional[List[float]], None)
    if scale_factor is not None:
        factors = [scale_factor[0] for _ in range(rank)] if len(scale_factor) == 1 else scale_factor
        if recompute_scale_factor is not None and recompute_scale_factor:
            sizes = [int(math.floor(float(input.size(i + 2)) * factors[i])) for i in range(rank)]
        else:
            scales = factors
    corners = False
    if align_corners is not None:
        corners = align_corners
    if mode == "nearest" and rank == 1:
        result = torch._C._nn.upsample_nearest1d(input, sizes, scales)
    elif mode == "nearest" and rank == 2:
        result = torch._C._nn.upsample_nearest2d(input, sizes, scales)
    elif mode == "nearest" and rank == 3:
        result = torch._C._nn.upsample_nearest3d(input, sizes, scales)
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


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    return torch._C._nn.one_hot(tensor, num_classes)
