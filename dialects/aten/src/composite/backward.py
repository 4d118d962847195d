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

# Of equal bins over a range the last one has both its edges.
def helper_histogram(self: Tensor, edges: Tensor, weight: Optional[Tensor], density: bool) -> Tensor:
    bins = edges.size(0) - 1
    x = self.reshape([-1])
    inside = torch.logical_and(x >= edges[0], x <= edges[bins])
    if weight is not None:
        w = weight.reshape([-1])
    else:
        w = torch.ones([x.size(0)], dtype=self.dtype)
    place = torch.clamp(torch.searchsorted(edges, x, right=True) - 1, 0, bins - 1)
    out = torch.zeros([bins], dtype=self.dtype).index_add(0, place, torch.where(inside, w, torch.zeros([], dtype=self.dtype)))
    if density:
        out = out / out.sum() / torch.diff(edges)
    return out

def histogram__bins_tensor(self: Tensor, bins: Tensor, weight: Optional[Tensor], density: bool) -> Tuple[Tensor, Tensor]:
    return helper_histogram(self, bins, weight, density), bins.clone()

def histogram__bin_ct(self: Tensor, bins: int, range: Optional[List[float]], weight: Optional[Tensor], density: bool) -> Tuple[Tensor, Tensor]:
    low = 0.0
    high = 1.0
    if range is not None:
        low = range[0]
        high = range[1]
    elif self.numel() > 0:
        low = float(self.min())
        high = float(self.max())
    if low == high:
        low = low - 0.5
        high = high + 0.5
    edges = torch.linspace(low, high, bins + 1, dtype=self.dtype)
    return helper_histogram(self, edges, weight, density), edges
