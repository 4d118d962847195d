# Norms of vectors and matrices, and normalisations that give their statistics.

# What is left of dimensions a and b: ones, which were the last two.
def helper_with_dims(self: Tensor, a: int, b: int) -> Tensor:
    return torch.movedim(self.unsqueeze(-1).unsqueeze(-1), [-2, -1], [a, b])

def helper_matrix_norm(self: Tensor, ord: float, dim: List[int], keepdim: bool) -> Tensor:
    if len(dim) != 2:
        raise RuntimeError("linalg.matrix_norm: dim must be a 2-tuple. Got " + str(dim))
    a = dim[0]
    b = dim[1]
    if a < 0:
        a += self.dim()
    if b < 0:
        b += self.dim()
    if a == b:
        raise RuntimeError("linalg.matrix_norm: dims must be different. Got (" + str(dim[0]) + ", " + str(dim[1]) + ")")
    largest = ord > 0.0
    size = abs(ord)
    if size == 2.0:
        values = torch.linalg_svdvals(torch.movedim(self, [a, b], [-2, -1]))
        if largest and values.size(-1) == 0:
            out = values.sum([-1])
        elif largest:
            out = torch.amax(values, [-1])
        else:
            out = torch.amin(values, [-1])
    elif size == 1.0 or size == float("inf"):
        if size == 1.0:
            summed = a
            chosen = b
        else:
            summed = b
            chosen = a
        sums = torch.abs(self).sum([summed], True)
        if largest and sums.size(chosen) == 0:
            out = sums.sum([chosen], True)
        elif largest:
            out = torch.amax(sums, [chosen], True)
        else:
            out = torch.amin(sums, [chosen], True)
        if not keepdim:
            out = out.squeeze([a, b])
    else:
        raise RuntimeError("linalg.matrix_norm: Order " + str(ord) + " not supported.")
    if keepdim and size == 2.0:
        out = helper_with_dims(out, a, b)
    return out

def helper_named_norm(self: Tensor, ord: str, dim: List[int], keepdim: bool) -> Tensor:
    if len(dim) != 2:
        raise RuntimeError("linalg.matrix_norm: dim must be a 2-tuple. Got " + str(dim))
    if ord == "fro":
        out = torch.linalg_vector_norm(self, 2, dim, keepdim)
    elif ord == "nuc":
        a = dim[0]
        b = dim[1]
        if a < 0:
            a += self.dim()
        if b < 0:
            b += self.dim()
        out = torch.linalg_svdvals(torch.movedim(self, [a, b], [-2, -1])).sum([-1])
        if keepdim:
            out = helper_with_dims(out, a, b)
    else:
        raise RuntimeError("linalg.matrix_norm: Order " + ord + " not supported.")
    return out

def helper_as_dtype(self: Tensor, dtype: Optional[int]) -> Tensor:
    out = self
    if dtype is not None:
        out = self.to(dtype)
    return out

def linalg_matrix_norm(self: Tensor, ord: number, dim: List[int], keepdim: bool, dtype: Optional[int]) -> Tensor:
    return helper_matrix_norm(helper_as_dtype(self, dtype), float(ord), dim, keepdim)

def linalg_matrix_norm__str_ord(self: Tensor, ord: str, dim: List[int], keepdim: bool, dtype: Optional[int]) -> Tensor:
    return helper_named_norm(helper_as_dtype(self, dtype), ord, dim, keepdim)

def linalg_norm(self: Tensor, ord: Optional[number], dim: Optional[List[int]], keepdim: bool, dtype: Optional[int]) -> Tensor:
    x = helper_as_dtype(self, dtype)
    matrix = False
    dims: List[int] = [-2, -1]
    if ord is not None:
        if dim is not None:
            matrix = len(dim) == 2
            dims = dim
        else:
            if self.dim() != 1 and self.dim() != 2:
                raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " + str(self.dim()) + "D.")
            matrix = self.dim() == 2
    if matrix:
        order = 2.0
        if ord is not None:
            order = float(ord)
        out = helper_matrix_norm(x, order, dims, keepdim)
    else:
        order = 2.0
        if ord is not None:
            order = float(ord)
        out = torch.linalg_vector_norm(x, order, dim, keepdim)
    return out

def linalg_norm__ord_str(self: Tensor, ord: str, dim: Optional[List[int]], keepdim: bool, dtype: Optional[int]) -> Tensor:
    dims = [-2, -1]
    if dim is not None:
        dims = dim
    elif self.dim() != 2:
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " + str(self.dim()) + "D.")
    return helper_named_norm(helper_as_dtype(self, dtype), ord, dims, keepdim)

def norm_except_dim(v: Tensor, pow: int, dim: int) -> Tensor:
    if dim == -1:
        out = torch.norm(v, pow)
    elif dim > 0 and dim == v.dim() - 1:
        out = torch.norm(v.reshape([-1, v.size(dim)]), pow, [0], False).reshape([1] * dim + [v.size(dim)])
    else:
        first = v.transpose(0, dim)
        out = torch.norm(first.reshape([first.size(0), -1]), pow, [1], False).reshape([first.size(0)] + [1] * (v.dim() - 1)).transpose(0, dim)
    return out

def frobenius_norm__dim(self: Tensor, dim: List[int], keepdim: bool) -> Tensor:
    if len(dim) > 2:
        raise RuntimeError("Expected at most 2 dimensions, but got " + str(len(dim)) + " dimensions instead.")
    return torch.linalg_vector_norm(self, 2, dim, keepdim)

def nuclear_norm(self: Tensor, keepdim: bool) -> Tensor:
    return torch.linalg_matrix_norm(self, "nuc", [-2, -1], keepdim)

def nuclear_norm__dim(self: Tensor, dim: List[int], keepdim: bool) -> Tensor:
    return torch.linalg_matrix_norm(self, "nuc", dim, keepdim)

def renorm(self: Tensor, p: number, dim: int, maxnorm: number) -> Tensor:
    if float(p) <= 0.0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not float(maxnorm) >= 0.0:
        raise RuntimeError("renorm: expected maxnorm to be >= 0 but got " + str(maxnorm))
    if self.dim() < 2:
        raise RuntimeError("renorm: input needs at least 2 dimensions, got " + str(self.dim()) + " dimensions")
    at = dim
    if dim < 0:
        at = dim + self.dim()
    dims: List[int] = []
    for d in range(self.dim()):
        if d != at:
            dims.append(d)
    if self.dtype == torch.half or self.dtype == torch.bfloat16:
        norm = torch.linalg_vector_norm(self, p, dims, True, dtype=torch.float)
    else:
        norm = torch.linalg_vector_norm(self, p, dims, True)
    factor = torch.where(norm > maxnorm, torch.reciprocal(norm + 1e-7) * maxnorm, torch.ones_like(norm))
    return (self * factor).to(self.dtype).contiguous()

# In training the batch's own mean and 1 / standard deviation; otherwise two empty tensors.
def helper_saved_statistics(input: Tensor, weight: Optional[Tensor], training: bool, eps: float) -> Tuple[Tensor, Tensor]:
    kept = input.dtype
    if weight is not None:
        kept = weight.dtype
    wide = input.dtype
    if wide == torch.half or wide == torch.bfloat16:
        wide = torch.float
    mean = torch.empty([0], dtype=kept)
    invstd = torch.empty([0], dtype=kept)
    if training:
        dims: List[int] = [0]
        for d in range(2, input.dim()):
            dims.append(d)
        x = input.to(wide)
        mean = x.mean(dims).to(kept)
        invstd = torch.rsqrt(torch.var(x, dims, correction=0) + eps).to(kept)
    return mean, invstd

def native_batch_norm(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    mean, invstd = helper_saved_statistics(input, weight, training, eps)
    out = torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)
    return out, mean, invstd

def _native_batch_norm_legit(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Tensor, running_var: Tensor, training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    mean, invstd = helper_saved_statistics(input, weight, training, eps)
    out = torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)
    return out, mean, invstd

def _native_batch_norm_legit__no_stats(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    mean, invstd = helper_saved_statistics(input, weight, training, eps)
    out = torch.batch_norm(input, weight, bias, None, None, training, momentum, eps, False)
    return out, mean, invstd

def native_group_norm(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], N: int, C: int, HxW: int, group: int, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    out = torch.group_norm(input, group, weight, bias, eps, False)
    wide = input.dtype
    if weight is not None:
        if weight.dtype != input.dtype:
            wide = weight.dtype
    rows = input.reshape([N, group, C // group * HxW]).to(torch.double)
    mean = rows.mean([-1])
    rstd = torch.rsqrt(torch.var(rows, [-1], correction=0) + eps)
    return out, mean.to(wide), rstd.to(wide)
