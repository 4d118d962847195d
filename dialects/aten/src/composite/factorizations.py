# What is made of triangular factors: solutions, inverses, and the operators that were there before torch.linalg.

def linalg_lu(A: Tensor, pivot: bool) -> Tuple[Tensor, Tensor, Tensor]:
    lu, pivots, info = torch.linalg_lu_factor_ex(A, pivot=pivot)
    p, l, u = torch.lu_unpack(lu, pivots)
    return p, l, u

def linalg_lu_factor(A: Tensor, pivot: bool) -> Tuple[Tensor, Tensor]:
    lu, pivots, info = torch.linalg_lu_factor_ex(A, pivot=pivot, check_errors=True)
    return lu, pivots

def _lu_with_info(self: Tensor, pivot: bool, check_errors: bool) -> Tuple[Tensor, Tensor, Tensor]:
    lu, pivots, info = torch.linalg_lu_factor_ex(self, pivot=pivot, check_errors=check_errors)
    return lu, pivots, info

# The matrix is P L U; its adjoint is Uᴴ Lᴴ Pᵀ.
def helper_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    if LU.size(-1) != LU.size(-2):
        raise RuntimeError("linalg.lu_solve: LU must be batches of square matrices")
    p, l, u = torch.lu_unpack(LU, pivots)
    if left and not adjoint:
        x = torch.matmul(p.mT, B)
        x = torch.linalg_solve_triangular(l, x, upper=False, left=True, unitriangular=True)
        x = torch.linalg_solve_triangular(u, x, upper=True, left=True, unitriangular=False)
    elif left:
        x = torch.linalg_solve_triangular(u.mH, B, upper=False, left=True, unitriangular=False)
        x = torch.linalg_solve_triangular(l.mH, x, upper=True, left=True, unitriangular=True)
        x = torch.matmul(p, x)
    elif not adjoint:
        x = torch.linalg_solve_triangular(u, B, upper=True, left=False, unitriangular=False)
        x = torch.linalg_solve_triangular(l, x, upper=False, left=False, unitriangular=True)
        x = torch.matmul(x, p.mT)
    else:
        x = torch.matmul(B, p)
        x = torch.linalg_solve_triangular(l.mH, x, upper=True, left=False, unitriangular=True)
        x = torch.linalg_solve_triangular(u.mH, x, upper=False, left=False, unitriangular=False)
    return x.mT.clone(memory_format=0).mT

def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    return helper_lu_solve(LU, pivots, B, left, adjoint)

def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    return helper_lu_solve(LU_data, LU_pivots, self, True, False)

def triangular_solve(self: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool) -> Tuple[Tensor, Tensor]:
    a = A
    above = upper
    if transpose:
        a = A.mT
        above = not upper
    x = torch.linalg_solve_triangular(a, self, upper=above, left=True, unitriangular=unitriangular)
    shape: List[int] = []
    for d in range(x.dim() - 2):
        shape.append(x.size(d))
    shape.append(A.size(-2))
    shape.append(A.size(-1))
    return x.mT.clone(memory_format=0).mT, A.expand(shape).mT.clone(memory_format=0).mT

def helper_cholesky_solve(B: Tensor, factor: Tensor, upper: bool) -> Tensor:
    l = factor
    if upper:
        l = factor.mH
    x = torch.linalg_solve_triangular(l, B, upper=False, left=True, unitriangular=False)
    x = torch.linalg_solve_triangular(l.mH, x, upper=True, left=True, unitriangular=False)
    return x.mT.clone(memory_format=0).mT

def cholesky_solve(self: Tensor, input2: Tensor, upper: bool) -> Tensor:
    if self.dim() < 2 or input2.dim() < 2:
        raise RuntimeError("cholesky_solve: both arguments should have at least 2 dimensions")
    return helper_cholesky_solve(self, input2, upper)

def cholesky_inverse(self: Tensor, upper: bool) -> Tensor:
    if self.dim() < 2 or self.size(-1) != self.size(-2):
        raise RuntimeError("cholesky_inverse: A must be batches of square matrices")
    one = torch.eye(self.size(-1), dtype=self.dtype).expand(self.size())
    if torch.is_complex(self):
        # The diagonal of the factor's inverse counts as real, but for its last element, which is scaled.
        inverse = torch.linalg_solve_triangular(self, one, upper=upper, left=True, unitriangular=False)
        diagonal = torch.diagonal(inverse, 0, -2, -1)
        inverse = inverse - torch.diag_embed(diagonal - torch.real(diagonal))
        out = inverse.mH @ inverse
        if upper:
            out = inverse @ inverse.mH
        if self.size(-1) > 0:
            last = diagonal.narrow(-1, self.size(-1) - 1, 1)
            torch.diagonal(out, 0, -2, -1).narrow(-1, self.size(-1) - 1, 1).copy_(last * torch.real(last))
        return out.mT.clone(memory_format=0).mT
    return helper_cholesky_solve(one, self, upper)

def svd(self: Tensor, some: bool, compute_uv: bool) -> Tuple[Tensor, Tensor, Tensor]:
    u, s, vh = torch.linalg_svd(self, not some)
    v = vh.mH
    if not compute_uv:
        rows: List[int] = []
        for d in range(self.dim() - 2):
            rows.append(self.size(d))
        columns = rows + [self.size(-1), self.size(-1)]
        u = torch.zeros(rows + [self.size(-2), self.size(-2)], dtype=self.dtype)
        v = torch.zeros(columns, dtype=self.dtype)
    return u, s, v

# Zeros for matrices without elements.
def helper_nothing(self: Tensor) -> Tensor:
    shape: List[int] = []
    for d in range(self.dim() - 2):
        shape.append(self.size(d))
    return torch.zeros(shape, dtype=torch.real(self).dtype)

def helper_cond(self: Tensor, p: float) -> Tensor:
    if p == 2.0 or p == -2.0:
        s = torch.linalg_svdvals(self)
        if p == 2.0:
            out = s.select(-1, 0) / s.select(-1, -1)
        else:
            out = s.select(-1, -1) / s.select(-1, 0)
    else:
        inverse, info = torch.linalg_inv_ex(self)
        out = torch.linalg_norm(self, p, [-2, -1]) * torch.linalg_norm(inverse, p, [-2, -1])
        out = out.masked_fill(info != 0, float("inf"))
    return out

def linalg_cond(self: Tensor, p: Optional[number]) -> Tensor:
    if self.numel() == 0:
        return helper_nothing(self)
    kind = 2.0
    if p is not None:
        kind = float(p)
    return helper_cond(self, kind)

def linalg_cond__p_str(self: Tensor, p: str) -> Tensor:
    if self.numel() == 0:
        return helper_nothing(self)
    inverse, info = torch.linalg_inv_ex(self)
    out = torch.linalg_matrix_norm(self, p) * torch.linalg_matrix_norm(inverse, p)
    return out.masked_fill(info != 0, float("inf"))

def linalg_tensorinv(self: Tensor, ind: int) -> Tensor:
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    rows: List[int] = []
    columns: List[int] = []
    height = 1
    width = 1
    for d in range(self.dim()):
        if d < ind:
            rows.append(self.size(d))
            height = height * self.size(d)
        else:
            columns.append(self.size(d))
            width = width * self.size(d)
    if height != width:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got " + str(width) + " != " + str(height))
    return torch.linalg_inv(self.reshape([height, width])).reshape(columns + rows)

def linalg_tensorsolve(self: Tensor, other: Tensor, dims: Optional[List[int]]) -> Tensor:
    a = self
    if dims is not None:
        to: List[int] = []
        for i in range(len(dims)):
            to.append(self.dim() - len(dims) + i)
        a = torch.movedim(self, dims, to)
    shape: List[int] = []
    width = 1
    for d in range(other.dim(), a.dim()):
        shape.append(a.size(d))
        width = width * a.size(d)
    if width != other.numel():
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got " + str(width) + " != " + str(other.numel()))
    return torch.linalg_solve(a.reshape([width, width]), other.reshape([width])).reshape(shape)
