# Operators that exported and fused graphs hold besides what people call: safe variants, writes as functions, first derivatives.

# A row that is masked altogether gives zeros.
def _safe_softmax(self: Tensor, dim: int, dtype: Optional[int]) -> Tensor:
    out = torch.softmax(self, dim, dtype)
    masked = torch.eq(self, float("-inf"))
    if self.dim() == 0:
        none = masked
    else:
        none = torch.all(masked, dim, True)
    return torch.where(none, torch.zeros([], dtype=out.dtype), out)

def as_strided_scatter(self: Tensor, src: Tensor, size: List[int], stride: List[int], storage_offset: Optional[int]) -> Tensor:
    out = self.clone()
    torch.as_strided(out, size, stride, storage_offset).copy_(src)
    return out

def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    return grad_output * mask * scale

# Halves are rounded once, at the end; a gradient of floats may be asked for as halves.
def helper_wide(t: Tensor) -> Tensor:
    out = t
    if t.dtype == torch.half or t.dtype == torch.bfloat16:
        out = t.to(torch.float)
    return out

def helper_narrow(result: Tensor, grad_output: Tensor, input_dtype: int) -> Tensor:
    if grad_output.dtype == torch.float and input_dtype == torch.half:
        out = result.to(torch.half)
    else:
        out = result.to(grad_output.dtype)
    return out

def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: int) -> Tensor:
    if grad_output.numel() == 0:
        return torch.zeros_like(grad_output)
    out = helper_wide(output)
    weighted = helper_wide(grad_output) * out
    return helper_narrow(weighted - out * weighted.sum([dim], True), grad_output, input_dtype)

def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: int) -> Tensor:
    if grad_output.numel() == 0:
        return torch.zeros_like(grad_output)
    grad = helper_wide(grad_output)
    return helper_narrow(grad - torch.exp(helper_wide(output)) * grad.sum([dim], True), grad_output, input_dtype)

# Indices outside of the tensor are brought inside; what they would read is masked.
def helper_inside(self: Tensor, indices: List[Optional[Tensor]]) -> List[Optional[Tensor]]:
    out: List[Optional[Tensor]] = []
    for i in range(len(indices)):
        at = indices[i]
        if at is None:
            out.append(None)
        else:
            out.append(torch.clamp(at, -self.size(i), self.size(i) - 1))
    return out

def _unsafe_masked_index(self: Tensor, mask: Tensor, indices: List[Optional[Tensor]], fill: number) -> Tensor:
    inside = helper_inside(self, indices)
    return torch.index(self, inside).masked_fill(torch.logical_not(mask), fill)

def _unsafe_masked_index_put_accumulate(self: Tensor, mask: Tensor, indices: List[Optional[Tensor]], values: Tensor) -> Tensor:
    if self.numel() == 0:
        out = self.clone()
    else:
        inside = helper_inside(self, indices)
        out = torch.index_put(self, inside, values.masked_fill(torch.logical_not(mask), 0), True)
    return out

def _batch_norm_with_update(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor, running_var: Tensor, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    out, mean, inverse = torch.native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return out, mean, inverse, torch.zeros([0], dtype=torch.uint8)

def nonzero_static(self: Tensor, size: int, fill_value: int) -> Tensor:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be a non-negative integer")
    found = torch.nonzero(self)
    count = min(size, found.size(0))
    out = torch.full([size, self.dim()], fill_value, dtype=torch.int64)
    out.narrow(0, 0, count).copy_(found.narrow(0, 0, count))
    return out

def helper_product(sizes: List[int]) -> int:
    out = 1
    for s in sizes:
        out = out * s
    return out

# Each gradient goes to the place that its maximum came from, of `n` dimensions in one.
def helper_to_maxima(grad_output: Tensor, self: Tensor, indices: Tensor, n: int) -> Tensor:
    if grad_output.dtype != self.dtype:
        raise RuntimeError("expected the gradient to have the dtype of the input")
    if indices.dtype != torch.int64:
        raise RuntimeError("expected scalar type Long for the indices")
    if grad_output.size() != indices.size():
        raise RuntimeError("expected as many indices as gradients")
    if self.numel() == 0 or grad_output.numel() == 0:
        out = torch.zeros_like(self)
    else:
        lead: List[int] = []
        for d in range(self.dim() - n):
            lead.append(self.size(d))
        flat = torch.zeros(lead + [self.numel() // max(1, helper_product(lead))], dtype=self.dtype)
        out = flat.scatter_add(-1, indices.reshape(lead + [-1]), grad_output.reshape(lead + [-1])).reshape(self.size())
    return out

def max_pool2d_with_indices_backward(grad_output: Tensor, self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool, indices: Tensor) -> Tensor:
    return helper_to_maxima(grad_output, self, indices, 2)

def max_pool3d_with_indices_backward(grad_output: Tensor, self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool, indices: Tensor) -> Tensor:
    return helper_to_maxima(grad_output, self, indices, 3)

def adaptive_max_pool2d_backward(grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
    return helper_to_maxima(grad_output, self, indices, 2)

def adaptive_max_pool3d_backward(grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
    return helper_to_maxima(grad_output, self, indices, 3)

def fractional_max_pool2d_backward(grad_output: Tensor, self: Tensor, kernel_size: List[int], output_size: List[int], indices: Tensor) -> Tensor:
    return helper_to_maxima(grad_output, self, indices, 2)

def fractional_max_pool3d_backward(grad_output: Tensor, self: Tensor, kernel_size: List[int], output_size: List[int], indices: Tensor) -> Tensor:
    return helper_to_maxima(grad_output, self, indices, 3)
