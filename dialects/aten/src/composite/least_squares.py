# What is made of decompositions: least squares, polar factors, roots, products with reflections.

def helper_in_double(self: Tensor) -> Tensor:
    if torch.is_complex(self):
        out = self.to(torch.complex128)
    else:
        out = self.to(torch.float64)
    return out

def helper_batch(self: Tensor) -> List[int]:
    shape: List[int] = []
    for d in range(self.dim() - 2):
        shape.append(self.size(d))
    return shape

def helper_broadcast_batch(batch: List[int], sizes: List[int]) -> List[int]:
    shape: List[int] = []
    for d in range(len(batch)):
        if batch[d] != sizes[d] and batch[d] != 1 and sizes[d] != 1:
            raise RuntimeError("The size of tensor a (" + str(batch[d]) + ") must match the size of tensor b (" + str(sizes[d]) + ") at non-singleton dimension " + str(d))
        shape.append(sizes[d] if batch[d] == 1 else batch[d])
    return shape

# The solution of least norm; which of the other results there are depends on the method that is asked for.
def linalg_lstsq(self: Tensor, b: Tensor, rcond: Optional[float], driver: Optional[str]) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    if self.dim() < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if b.dim() < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if self.dtype != b.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype")
    if self.dim() < b.dim() or self.dim() > b.dim() + 1:
        raise RuntimeError("torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
    if not (torch.is_complex(self) or torch.is_floating_point(self)):
        raise RuntimeError("torch.linalg.lstsq: Expected a floating point or complex tensor as input")
    method = "gelsy"
    if driver is not None:
        method = driver
    if method != "gels" and method != "gelsy" and method != "gelsd" and method != "gelss":
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    m = self.size(-2)
    n = self.size(-1)
    # A right side of one dimension less is a batch of vectors only where it has the sizes of one.
    vectors = b.dim() == 1 or b.dim() == self.dim() - 1 and b.size() == self.size()[:-1]
    right = b
    if vectors:
        right = b.unsqueeze(-1)
    if right.dim() < 2 or right.size(-2) != m:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other's")
    tolerance = float(max(m, n)) * 1.1920928955078125e-07
    if self.dtype == torch.float64 or self.dtype == torch.complex128:
        tolerance = float(max(m, n)) * 2.220446049250313e-16
    if rcond is not None:
        tolerance = rcond
    batch = helper_batch(self)
    wide = helper_in_double(self)
    wanted = helper_in_double(right)
    solved = batch
    if right.dim() < self.dim():
        # As many leading sizes of the right side count as its batch as the left one has, though the rows be among them.
        solved = helper_broadcast_batch(batch, right.size())
        wanted = wanted.expand(solved + [m, right.size(-1)])
    if m == 0 or n == 0:
        values = torch.zeros(batch + [0], dtype=torch.float64)
        kept = values > 0
        solution = torch.zeros(solved + [n, right.size(-1)], dtype=wide.dtype)
    else:
        u, values, vh = torch.linalg_svd(wide, False)
        largest = values.narrow(-1, 0, 1)
        kept = values > largest * tolerance
        if method == "gels":
            kept = values > 0
        if method == "gelsy":
            # The first pivot counts whatever the tolerance.
            kept = torch.logical_or(kept, torch.logical_and(values == largest, largest > 0))
        inverse = torch.where(kept, 1.0 / values, torch.zeros_like(values))
        solution = torch.matmul(vh.mH, inverse.unsqueeze(-1) * torch.matmul(u.mH, wanted))
    if n == 0 or m == 0 or right.size(-1) == 0:
        rank = torch.zeros(batch, dtype=torch.int64)
    else:
        rank = kept.to(torch.int64).sum([-1])
    residuals = torch.zeros([0], dtype=torch.float64)
    if m > n and method != "gelsy":
        if method == "gels" or bool((rank == n).all()):
            rest = wanted - torch.matmul(wide, solution)
            residuals = torch.real(rest * torch.conj(rest)).sum([-2])
    # The solution lies in the rows that the right side lay in.
    rows = helper_batch(solution) + [max(m, n) - n, solution.size(-1)]
    out = torch.cat([solution, torch.zeros(rows, dtype=solution.dtype)], -2).to(self.dtype)
    out = out.mT.clone(memory_format=0).mT.narrow(-2, 0, n)
    if vectors:
        out = out.squeeze(-1)
        if residuals.numel() > 0:
            residuals = residuals.squeeze(-1).unsqueeze(-1)
    part = torch.real(torch.zeros([], dtype=self.dtype)).dtype
    if method == "gels":
        rank = torch.zeros([0], dtype=torch.int64)
    if method == "gels" or method == "gelsy":
        values = torch.zeros([0], dtype=torch.float64)
    return out, residuals.to(part), rank, values.to(part)

def linalg_polar(A: Tensor) -> Tuple[Tensor, Tensor]:
    if A.dim() < 2:
        raise RuntimeError("linalg.polar: The input tensor A must have at least 2 dimensions.")
    if A.size(-2) < A.size(-1):
        raise RuntimeError("linalg.polar: input must have at least as many rows as columns, but got " + str(A.size(-2)) + " by " + str(A.size(-1)) + " matrices")
    if not (torch.is_complex(A) or torch.is_floating_point(A)):
        raise RuntimeError("linalg.polar: Expected a floating point or complex tensor as input.")
    u, s, vh = torch.linalg_svd(helper_in_double(A), False)
    return torch.matmul(u, vh).to(A.dtype), torch.matmul(vh.mH * s.unsqueeze(-2), vh).to(A.dtype)

# Eigenvalues below zero count as zero.
def linalg_matrix_sqrth(self: Tensor) -> Tensor:
    if self.dim() < 2 or self.size(-1) != self.size(-2):
        raise RuntimeError("linalg.matrix_sqrth: A must be batches of square matrices")
    if not (torch.is_complex(self) or torch.is_floating_point(self)):
        raise RuntimeError("linalg.matrix_sqrth: Expected a floating point or complex tensor as input.")
    values, vectors = torch.linalg_eigh(helper_in_double(self))
    roots = torch.sqrt(torch.clamp(values, 0.0))
    return torch.matmul(vectors * roots.unsqueeze(-2), vectors.mH).to(self.dtype)

# The product of the reflections I - tau v vᴴ; v has a one on the diagonal and zeros above it.
def helper_reflections(input: Tensor, tau: Tensor) -> Tensor:
    m = input.size(-2)
    out = torch.eye(m, dtype=input.dtype).expand(helper_batch(input) + [m, m])
    below = torch.tril(input, -1) + torch.eye(m, input.size(-1), dtype=input.dtype)
    for i in range(tau.size(-1)):
        v = below.narrow(-1, i, 1)
        out = out - torch.matmul(torch.matmul(out, v), v.mH) * tau.narrow(-1, i, 1).unsqueeze(-1)
    return out

def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    m = input.size(-2)
    n = input.size(-1)
    if m < n or tau.size(-1) > n:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1], and that to tau.shape[-1]")
    return helper_reflections(input, tau).narrow(-1, 0, n).mT.clone(memory_format=0).mT

def ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> Tensor:
    if self.dim() < 2 or input3.dim() < 2:
        raise RuntimeError("torch.ormqr: input and other must have at least 2 dimensions.")
    side = input3.size(-1)
    if left:
        side = input3.size(-2)
    if self.size(-2) != side:
        raise RuntimeError("torch.ormqr: other's dimension must be equal to input.shape[-2]")
    if input2.size(-1) > side:
        raise RuntimeError("torch.ormqr: other's dimension must be greater than or equal to tau.shape[-1]")
    if self.dim() != input2.dim() + 1 or self.dim() != input3.dim():
        raise RuntimeError("torch.ormqr: Expected tau to have one dimension less than input, and other as many")
    if self.dtype != input2.dtype or self.dtype != input3.dtype:
        raise RuntimeError("torch.ormqr: Expected input, tau and other to have the same dtype")
    q = helper_reflections(helper_in_double(self), helper_in_double(input2))
    if transpose:
        q = q.mH
    other = helper_in_double(input3)
    if left:
        out = torch.matmul(q, other)
    else:
        out = torch.matmul(other, q)
    return out.to(self.dtype).mT.clone(memory_format=0).mT
