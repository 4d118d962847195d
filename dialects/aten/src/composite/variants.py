# Operators that do what others do, with other arguments or with further results: older names, casts, kernels of one backend.

def _cast_Byte(self: Tensor, non_blocking: bool) -> Tensor:
    return self.to(torch.uint8)

def _cast_Char(self: Tensor, non_blocking: bool) -> Tensor:
    return self.to(torch.int8)

def _cast_Double(self: Tensor, non_blocking: bool) -> Tensor:
    return self.to(torch.float64)

def _cast_Float(self: Tensor, non_blocking: bool) -> Tensor:
    return self.to(torch.float32)

def _cast_Half(self: Tensor, non_blocking: bool) -> Tensor:
    return self.to(torch.float16)

def _cast_Int(self: Tensor, non_blocking: bool) -> Tensor:
    return self.to(torch.int32)

def _cast_Long(self: Tensor, non_blocking: bool) -> Tensor:
    return self.to(torch.int64)

def _cast_Short(self: Tensor, non_blocking: bool) -> Tensor:
    return self.to(torch.int16)

def _lazy_clone(self: Tensor) -> Tensor:
    return self.clone()

def _reshape_alias(self: Tensor, size: List[int], stride: List[int]) -> Tensor:
    return torch.as_strided(self, size, stride)

def _dim_arange(like: Tensor, dim: int) -> Tensor:
    return torch.arange(like.size(dim))

def helper_range(start: number, end: number, step: number, dtype: Optional[int]) -> Tensor:
    kind = torch.float32
    if dtype is not None:
        kind = dtype
    if kind == torch.bool:
        raise RuntimeError("\"range_cpu\" not implemented for 'Bool'")
    first = float(start)
    last = float(end)
    by = float(step)
    if by == 0.0:
        raise RuntimeError("step must be nonzero")
    if (last - first) / by < 0.0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if kind <= torch.int64:
        # PyTorch converts the bounds and the step first. It divides by a step between -1 and 1.
        if int(by) == 0:
            raise RuntimeError("step must be nonzero")
        count = (int(last) - int(first)) // int(by) + 1
        return (torch.arange(count) * int(by) + int(first)).to(kind)
    return (torch.arange(int((last - first) / by) + 1, dtype=torch.float64) * by + first).to(kind)

def range(start: number, end: number, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_range(start, end, 1, dtype)

def range__step(start: number, end: number, step: number, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_range(start, end, step, dtype)

def flatten_dense_tensors(tensors: List[Tensor]) -> Tensor:
    flat: List[Tensor] = []
    for t in tensors:
        flat.append(t.reshape([-1]))
    return torch.cat(flat, 0)

def unflatten_dense_tensors(flat: Tensor, tensors: List[Tensor]) -> List[Tensor]:
    out: List[Tensor] = []
    start = 0
    for t in tensors:
        out.append(flat.narrow(0, start, t.numel()).view(t.size()))
        start += t.numel()
    return out

def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    return tensor.fill_(val)

def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return tensor.zero_()

def embedding_renorm(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    out = self.clone()
    return torch.embedding_renorm_(out, indices, max_norm, norm_type)

def _is_all_true(self: Tensor) -> Tensor:
    if self.dtype != torch.bool:
        raise RuntimeError("_is_all_true expects a tensor of truth values")
    return torch.all(self)

def _is_any_true(self: Tensor) -> Tensor:
    if self.dtype != torch.bool:
        raise RuntimeError("_is_any_true expects a tensor of truth values")
    return torch.any(self)

def _unique(self: Tensor, sorted: bool, return_inverse: bool) -> Tuple[Tensor, Tensor]:
    out, inverse, _ = torch._unique2(self, sorted, return_inverse, False)
    return out, inverse

def unique_dim_consecutive(self: Tensor, dim: int, return_inverse: bool, return_counts: bool) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.unique_consecutive(self, return_inverse, return_counts, dim)

# Convolutions.

def slow_conv3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int]) -> Tensor:
    return torch.conv3d(self, weight, bias, stride, padding)

def slow_conv3d_forward(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int]) -> Tensor:
    return torch.conv3d(self, weight, bias, stride, padding)

def thnn_conv2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int]) -> Tensor:
    return torch.conv2d(self, weight, bias, stride, padding)

def _slow_conv2d_forward(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int]) -> Tensor:
    return torch.conv2d(self, weight, bias, stride, padding)

def _nnpack_spatial_convolution(input: Tensor, weight: Tensor, bias: Optional[Tensor], padding: List[int], stride: List[int]) -> Tensor:
    return torch.conv2d(input, weight, bias, stride, padding)

def slow_conv_dilated2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int]) -> Tensor:
    return torch.conv2d(self, weight, bias, stride, padding, dilation)

def slow_conv_dilated3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int]) -> Tensor:
    return torch.conv3d(self, weight, bias, stride, padding, dilation)

def slow_conv_transpose2d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int], output_padding: List[int], dilation: List[int]) -> Tensor:
    return torch.conv_transpose2d(self, weight, bias, stride, padding, output_padding, 1, dilation)

def slow_conv_transpose3d(self: Tensor, weight: Tensor, kernel_size: List[int], bias: Optional[Tensor], stride: List[int], padding: List[int], output_padding: List[int], dilation: List[int]) -> Tensor:
    return torch.conv_transpose3d(self, weight, bias, stride, padding, output_padding, 1, dilation)

# Normalisations that give what training keeps.

def _native_batch_norm_legit_no_training(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor, running_var: Tensor, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    out, mean, invstd = torch.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return out, mean, invstd

def _batch_norm_no_update(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    out, mean, invstd = torch.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return out, mean, invstd, torch.empty([0], dtype=torch.uint8)

def _batch_norm_impl_index(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor, int]:
    out, mean, invstd = torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return out, mean, invstd, torch.empty([0], dtype=torch.uint8), 0

def _fused_rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], eps: Optional[float]) -> Tuple[Tensor, Tensor]:
    wide = input
    small = 1.1920928955078125e-07
    if input.dtype == torch.half or input.dtype == torch.bfloat16:
        wide = input.to(torch.float)
    elif input.dtype == torch.float64:
        small = 2.220446049250313e-16
    if eps is not None:
        small = eps
    dims: List[int] = []
    for d in range(len(normalized_shape)):
        dims.append(-1 - d)
    rstd = torch.rsqrt((wide * wide).mean(dims, True) + small)
    return torch.rms_norm(input, normalized_shape, weight, eps), rstd

# Products.

def _addmm_activation(self: Tensor, mat1: Tensor, mat2: Tensor, beta: number, alpha: number, use_gelu: bool) -> Tensor:
    out = torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    if use_gelu:
        out = torch.gelu(out)
    else:
        out = torch.relu(out)
    return out

def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    if self.dtype != torch.int8 or mat2.dtype != torch.int8:
        raise RuntimeError("_int_mm: expected self and mat2 to be int8 matrices")
    return torch.mm(self.to(torch.int32), mat2.to(torch.int32))

def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    if mat2.dtype != torch.int8:
        raise RuntimeError("_weight_int8pack_mm : expect B to be int8 tensor.")
    return (torch.mm(self.to(torch.float), mat2.to(torch.float).t()) * scales.to(torch.float)).to(self.dtype)

def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    return torch.cdist(x1, x2, 2.0, None)

def _scaled_dot_product_attention_math(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool, dropout_mask: Optional[Tensor], scale: Optional[float], enable_gqa: bool) -> Tuple[Tensor, Tensor]:
    k = key
    v = value
    if enable_gqa:
        k = torch.repeat_interleave(key, query.size(-3) // key.size(-3), -3)
        v = torch.repeat_interleave(value, query.size(-3) // value.size(-3), -3)
    factor = 1.0 / float(query.size(-1)) ** 0.5
    if scale is not None:
        factor = scale
    root = abs(factor) ** 0.5
    q = query * root
    if factor < 0.0:
        q = query * -root
    scores = torch.matmul(q, k.transpose(-2, -1) * root)
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
        seen = torch.tril(torch.ones([query.size(-2), key.size(-2)], dtype=torch.bool))
        scores = scores.masked_fill(torch.logical_not(seen), float("-inf"))
    if attn_mask is not None:
        # Truth values count as numbers here.
        scores = scores + attn_mask
    weights = torch._safe_softmax(scores, -1)
    if dropout_p > 0.0:
        if dropout_mask is not None:
            weights = weights.masked_fill(torch.logical_not(dropout_mask), 0.0)
            v = v * (1.0 / (1.0 - dropout_p))
        else:
            weights = torch.dropout(weights, dropout_p, True)
    return torch.matmul(weights, v), weights

# Biased projections of queries, keys and values, by heads.
def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> Tuple[Tensor, Tensor, Tensor]:
    width = qkv.size(2) // 3 // num_heads
    rows = (qkv + qkv_bias).reshape([qkv.size(0), qkv.size(1), 3, num_heads, width]).permute([2, 0, 3, 1, 4])
    return rows.select(0, 0).contiguous() * (1.0 / float(width) ** 0.5), rows.select(0, 1).contiguous(), rows.select(0, 2).contiguous()

# Losses with what their gradients need.

def nll_loss2d(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tensor:
    return torch.nll_loss_nd(self, target, weight, reduction, ignore_index)

def helper_total_weight(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tensor:
    total = torch.zeros([], dtype=self.dtype)
    if reduction != 0:
        kept = target != ignore_index
        if weight is not None:
            safe = torch.where(kept, target, torch.zeros_like(target))
            total = (torch.index_select(weight, 0, safe.reshape([-1])).reshape(safe.size()) * kept.to(weight.dtype)).sum()
        else:
            total = kept.to(self.dtype).sum()
    return total

def nll_loss_forward(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tuple[Tensor, Tensor]:
    return torch.nll_loss_nd(self, target, weight, reduction, ignore_index), helper_total_weight(self, target, weight, reduction, ignore_index)

def nll_loss2d_forward(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tuple[Tensor, Tensor]:
    return torch.nll_loss_nd(self, target, weight, reduction, ignore_index), helper_total_weight(self, target, weight, reduction, ignore_index)

def log_sigmoid_forward(self: Tensor) -> Tuple[Tensor, Tensor]:
    x = self.contiguous()
    return torch.log_sigmoid(x), torch.exp(-torch.abs(x))

# Attention weights, where the mask says what is left out.
def _masked_softmax(self: Tensor, mask: Tensor, dim: Optional[int], mask_type: Optional[int]) -> Tensor:
    if mask.dtype != torch.bool:
        raise RuntimeError("Mask should be a boolean tensor")
    along = self.dim() - 1
    if dim is not None:
        along = dim
    m = mask
    if mask_type is not None and self.dim() == 4:
        if mask_type == 0 and mask.dim() == 2:
            m = mask.reshape([1, 1, mask.size(0), mask.size(1)])
        elif mask_type == 1 and mask.dim() == 2:
            m = mask.reshape([mask.size(0), 1, 1, mask.size(1)])
    return torch.softmax(self.masked_fill(m, float("-inf")), along)

# Numbers and lists.

def _tensor_to_list(self: Tensor) -> List[int]:
    flat = self.reshape([-1])
    out: List[int] = []
    for i in range(flat.size(0)):
        out.append(int(flat.select(0, i)))
    return out

def _list_to_tensor(self: List[int]) -> Tensor:
    return torch.tensor(self)

def _to_cpu(tensors: List[Tensor]) -> List[Tensor]:
    return tensors

def _pad_circular(self: Tensor, pad: List[int]) -> Tensor:
    return torch.pad(self, pad, "circular", None)

def _pad_enum(self: Tensor, pad: List[int], mode: int, value: Optional[float]) -> Tensor:
    name = "constant"
    if mode == 1:
        name = "reflect"
    elif mode == 2:
        name = "replicate"
    elif mode == 3:
        name = "circular"
    return torch.pad(self, pad, name, value)
