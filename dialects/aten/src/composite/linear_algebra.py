# Distances and products.

def helper_dtype_name(x: Tensor) -> str:
    name = "Long"
    if x.dtype == torch.int32:
        name = "Int"
    elif x.dtype == torch.int16:
        name = "Short"
    elif x.dtype == torch.int8:
        name = "Char"
    elif x.dtype == torch.uint8:
        name = "Byte"
    elif x.dtype == torch.bool:
        name = "Bool"
    return name

def pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    return torch.norm(x1 - x2 + eps, p, [-1], keepdim)

# Integers are taken as what the product is; floats of two widths keep theirs, and so do their norms.
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    if eps < 0.0:
        raise RuntimeError("eps must be non-negative, got: " + str(eps))
    a, b = torch.broadcast_tensors([x1, x2])
    common = (a * b).dtype
    if not (a.is_floating_point() or a.is_complex() or b.is_floating_point() or b.is_complex()):
        raise RuntimeError("expected common dtype to be floating point, yet common dtype is " + helper_dtype_name(x1))
    if not a.is_floating_point():
        a = a.to(common)
    if not b.is_floating_point():
        b = b.to(common)
    n1 = torch.clamp_min(torch.linalg_vector_norm(a, 2, [dim], True), eps)
    n2 = torch.clamp_min(torch.linalg_vector_norm(b, 2, [dim], True), eps)
    return ((a / n1) * (b / n2)).sum([dim])

def dist(self: Tensor, other: Tensor, p: number) -> Tensor:
    difference = self - other
    if not (difference.is_floating_point() or difference.is_complex()):
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got " + helper_dtype_name(difference) + " instead.")
    return torch.norm(difference, p)

# Of power zero it is how many differences there are, of which NaN is none.
def helper_distance(difference: Tensor, p: float) -> Tensor:
    if p == 0.0:
        out = torch.clamp(torch.ceil(torch.abs(difference)), max=1.0).sum([-1])
    else:
        out = torch.norm(difference, p, [-1], False)
    return out

def helper_cdist(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    if not p >= 0.0:
        raise RuntimeError("cdist only supports non-negative p values")
    if not x1.is_floating_point():
        raise RuntimeError("cdist only supports floating-point dtypes, X1 got: " + helper_dtype_name(x1))
    if not x2.is_floating_point():
        raise RuntimeError("cdist only supports floating-point dtypes, X2 got: " + helper_dtype_name(x2))
    if x1.size(-1) != x2.size(-1):
        raise RuntimeError("X1 and X2 must have the same number of columns. X1: " + str(x1.size(-1)) + " X2: " + str(x2.size(-1)))
    return helper_distance(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)

def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: Optional[int]) -> Tensor:
    return helper_cdist(x1, x2, p)

def _cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: Optional[int]) -> Tensor:
    return helper_cdist(x1, x2, p)

def helper_pdist(self: Tensor, p: float) -> Tensor:
    if self.dim() != 2:
        raise RuntimeError("pdist only supports 2D tensors, got: " + str(self.dim()) + "D")
    n = self.size(0)
    distances = helper_distance(self.unsqueeze(1) - self.unsqueeze(0), p)
    return torch.masked_select(distances, torch.triu(torch.ones([n, n], dtype=torch.bool), 1))

def pdist(self: Tensor, p: float) -> Tensor:
    return helper_pdist(self, p)

def _pdist_forward(self: Tensor, p: float) -> Tensor:
    return helper_pdist(self, p)

def vdot(self: Tensor, other: Tensor) -> Tensor:
    return torch.dot(torch.conj(self), other)

def linalg_vecdot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    # Of two vectors the dimension is not looked at.
    if x.dim() == 1 and y.dim() == 1:
        return torch.vdot(x, y)
    return (torch.conj(x) * y).sum([dim])

def helper_cross(self: Tensor, other: Tensor, dim: int) -> Tensor:
    if self.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if self.size(dim) != 3 or other.size(dim) != 3:
        raise RuntimeError("linalg.cross: inputs dimension " + str(dim) + " must have length 3. Got " + str(self.size(dim)) + " and " + str(other.size(dim)))
    if self.dtype != other.dtype:
        raise RuntimeError("linalg.cross: inputs must have the same dtype.")
    a, b = torch.broadcast_tensors([self, other])
    return torch.roll(a, [-1], [dim]) * torch.roll(b, [-2], [dim]) - torch.roll(a, [-2], [dim]) * torch.roll(b, [-1], [dim])

def linalg_cross(self: Tensor, other: Tensor, dim: int) -> Tensor:
    return helper_cross(self, other, dim)

def cross(self: Tensor, other: Tensor, dim: Optional[int]) -> Tensor:
    at = -1
    if dim is not None:
        at = dim
    else:
        for d in range(self.dim()):
            if at == -1 and self.size(d) == 3:
                at = d
        if at == -1:
            raise RuntimeError("no dimension of size 3 in input")
    return helper_cross(self, other, at)

def helper_chain(tensors: List[Tensor]) -> Tensor:
    out = tensors[0]
    for i in range(1, len(tensors)):
        out = torch.matmul(out, tensors[i])
    return out

def linalg_multi_dot(tensors: List[Tensor]) -> Tensor:
    if len(tensors) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    return helper_chain(tensors)

def chain_matmul(matrices: List[Tensor]) -> Tensor:
    out = helper_chain(matrices)
    if len(matrices) == 1:
        out = out.clone()
    return out

def helper_matrix_power(self: Tensor, n: int) -> Tensor:
    if self.dim() < 2 or self.size(-1) != self.size(-2):
        raise RuntimeError("linalg.matrix_power: A must be batches of square matrices")
    base = self
    exponent = n
    if n < 0:
        base = torch.linalg_inv(self)
        exponent = -n
    out = torch.eye(self.size(-1), dtype=self.dtype).expand(self.size()).clone()
    first = True
    while exponent > 0:
        if exponent % 2 == 1:
            if first:
                out = base
                first = False
            else:
                out = torch.matmul(out, base)
        exponent = exponent // 2
        if exponent > 0:
            base = torch.matmul(base, base)
    return out.clone()

def linalg_matrix_power(self: Tensor, n: int) -> Tensor:
    return helper_matrix_power(self, n)

def tensordot(self: Tensor, other: Tensor, dims_self: List[int], dims_other: List[int]) -> Tensor:
    a = self
    b = other
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    # A contracted dimension of extent 1 broadcasts: the other one is summed.
    for i in range(len(dims_self)):
        n = a.size(dims_self[i])
        m = b.size(dims_other[i])
        if n == 1 and m != 1:
            b = b.sum([dims_other[i]], True, dtype=b.dtype)
        elif m == 1 and n != 1:
            a = a.sum([dims_self[i]], True, dtype=a.dtype)
        elif n != m:
            raise RuntimeError("contracted dimensions need to match, but first has size " + str(n) + " in dim " + str(dims_self[i]) + " and second has size " + str(m) + " in dim " + str(dims_other[i]))
    left: List[int] = []
    sizes: List[int] = []
    rows = 1
    depth = 1
    contracted: List[int] = []
    for d in dims_self:
        if d < 0:
            contracted.append(d + a.dim())
        else:
            contracted.append(d)
    for d in range(a.dim()):
        if d not in contracted:
            left.append(d)
            sizes.append(a.size(d))
            rows = rows * a.size(d)
    for d in contracted:
        depth = depth * a.size(d)
    contracted_b: List[int] = []
    for d in dims_other:
        if d < 0:
            contracted_b.append(d + b.dim())
        else:
            contracted_b.append(d)
    right: List[int] = []
    columns = 1
    for d in range(b.dim()):
        if d not in contracted_b:
            right.append(d)
            sizes.append(b.size(d))
            columns = columns * b.size(d)
    x = a.permute(left + contracted).reshape([rows, depth])
    y = b.permute(contracted_b + right).reshape([depth, columns])
    return torch.mm(x, y).reshape(sizes)

def kron(self: Tensor, other: Tensor) -> Tensor:
    rank = max(self.dim(), other.dim())
    a_shape: List[int] = []
    b_shape: List[int] = []
    out: List[int] = []
    for d in range(rank):
        at = d - (rank - self.dim())
        bt = d - (rank - other.dim())
        n = 1
        m = 1
        if at >= 0:
            n = self.size(at)
        if bt >= 0:
            m = other.size(bt)
        a_shape.append(n)
        a_shape.append(1)
        b_shape.append(1)
        b_shape.append(m)
        out.append(n * m)
    return (self.reshape(a_shape) * other.reshape(b_shape)).reshape(out)

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    left = torch.matmul(input1.unsqueeze(-2).unsqueeze(-2), weight).squeeze(-2)
    out = torch.matmul(left, input2.unsqueeze(-1)).squeeze(-1)
    if bias is not None:
        out = out + bias
    return out

def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: number, alpha: number) -> Tensor:
    if batch1.dim() != 3 or batch2.dim() != 3 or batch1.size(0) != batch2.size(0):
        raise RuntimeError("batch1 and batch2 must be 3D tensors of the same number of batches")
    if self.dtype != batch2.dtype:
        raise RuntimeError("self and mat2 must have the same dtype")
    if batch1.size(0) == 0:
        out = self.expand([batch1.size(1), batch2.size(2)]) * beta
    else:
        out = torch.addmm(self, batch1.select(0, 0), batch2.select(0, 0), beta=beta, alpha=alpha)
    # Rounded after each batch.
    for i in range(1, batch1.size(0)):
        out = torch.addmm(out, batch1.select(0, i), batch2.select(0, i), beta=1, alpha=alpha)
    return out

# Unlike other in-place operators it gives self the sizes of the result.
def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, beta: number, alpha: number) -> Tensor:
    out = torch.addbmm(self, batch1, batch2, beta=beta, alpha=alpha).to(self.dtype)
    return self.resize_(out.size()).copy_(out)

def logdet(self: Tensor) -> Tensor:
    sign, size = torch.linalg_slogdet(self)
    if torch.is_complex(self):
        out = torch.log(sign) + size
    else:
        out = torch.where(sign == -1, torch.full_like(size, float("nan")), size)
    return out

# What counts as zero among singular values s: at most atol, or rtol times the largest.
def helper_limit(self: Tensor, s: Tensor, atol: Optional[Tensor], rtol: Optional[Tensor]) -> Tensor:
    epsilon = 1.1920928955078125e-07
    if s.dtype == torch.float64:
        epsilon = 2.220446049250313e-16
    usual = torch.full([], epsilon * float(max(self.size(-1), self.size(-2))), dtype=s.dtype)
    absolute = torch.zeros([], dtype=s.dtype)
    relative = usual
    if atol is not None:
        absolute = atol.to(s.dtype)
        relative = torch.where(atol > 0, torch.zeros_like(usual), usual)
    if rtol is not None:
        relative = rtol.to(s.dtype)
    return torch.maximum(absolute.unsqueeze(-1), relative.unsqueeze(-1) * torch.amax(s, [-1], True))

def helper_given(value: Optional[float], self: Tensor) -> Optional[Tensor]:
    out: Optional[Tensor] = None
    if value is not None:
        out = torch.tensor(value, dtype=torch.float64)
    return out

# The matrix that the lower triangle of a Hermitian one says, whose diagonal is real.
def helper_whole(self: Tensor, hermitian: bool) -> Tensor:
    out = self
    if hermitian:
        below = torch.tril(self, -1)
        out = below + torch.adjoint(below) + torch.diag_embed(torch.real(torch.diagonal(self, 0, -2, -1)))
    return out

def helper_pinv(self: Tensor, atol: Optional[Tensor], rtol: Optional[Tensor]) -> Tensor:
    if self.numel() == 0:
        # What has no elements counts as row-major, so that `contiguous` would keep the strides.
        out = self.mT.clone(memory_format=0)
    else:
        u, s, vh = torch.linalg_svd(self, False)
        inverse = torch.where(s > helper_limit(self, s, atol, rtol), torch.reciprocal(s), torch.zeros_like(s)).to(self.dtype)
        out = torch.matmul(torch.adjoint(vh) * inverse.unsqueeze(-2), torch.adjoint(u))
    return out

# Matrices without elements are not asked to be square.
def helper_pinv_of(self: Tensor, hermitian: bool, atol: Optional[Tensor], rtol: Optional[Tensor]) -> Tensor:
    return helper_pinv(helper_whole(self, hermitian and self.numel() > 0), atol, rtol)

def linalg_pinv(self: Tensor, rcond: float, hermitian: bool) -> Tensor:
    return helper_pinv_of(self, hermitian, helper_given(0.0, self), helper_given(rcond, self))

def linalg_pinv__rcond_tensor(self: Tensor, rcond: Tensor, hermitian: bool) -> Tensor:
    return helper_pinv_of(self, hermitian, helper_given(0.0, self), rcond)

def linalg_pinv__atol_rtol_float(self: Tensor, atol: Optional[float], rtol: Optional[float], hermitian: bool) -> Tensor:
    return helper_pinv_of(self, hermitian, helper_given(atol, self), helper_given(rtol, self))

def linalg_pinv__atol_rtol_tensor(self: Tensor, atol: Optional[Tensor], rtol: Optional[Tensor], hermitian: bool) -> Tensor:
    return helper_pinv_of(self, hermitian, atol, rtol)

def pinverse(self: Tensor, rcond: float) -> Tensor:
    return helper_pinv(self, helper_given(0.0, self), helper_given(rcond, self))

def helper_rank(self: Tensor, atol: Optional[Tensor], rtol: Optional[Tensor]) -> Tensor:
    if self.numel() == 0:
        shape: List[int] = []
        for d in range(self.dim() - 2):
            shape.append(self.size(d))
        out = torch.zeros(shape, dtype=torch.int64)
    else:
        s = torch.linalg_svdvals(self)
        out = (s > helper_limit(self, s, atol, rtol)).sum([-1])
    return out

def linalg_matrix_rank(self: Tensor, tol: float, hermitian: bool) -> Tensor:
    return helper_rank(helper_whole(self, hermitian), helper_given(tol, self), helper_given(0.0, self))

def linalg_matrix_rank__tol_tensor(input: Tensor, tol: Tensor, hermitian: bool) -> Tensor:
    return helper_rank(helper_whole(input, hermitian), tol, helper_given(0.0, input))

def linalg_matrix_rank__atol_rtol_tensor(input: Tensor, atol: Optional[Tensor], rtol: Optional[Tensor], hermitian: bool) -> Tensor:
    return helper_rank(helper_whole(input, hermitian), atol, rtol)

def linalg_matrix_rank__atol_rtol_float(self: Tensor, atol: Optional[float], rtol: Optional[float], hermitian: bool) -> Tensor:
    return helper_rank(helper_whole(self, hermitian), helper_given(atol, self), helper_given(rtol, self))
