# Distances and products.

def pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    return torch.norm(x1 - x2 + eps, p, [-1], keepdim)

def cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    product = (x1 * x2).sum([dim])
    n1 = torch.clamp_min(torch.sqrt((x1 * x1).sum([dim])), eps)
    n2 = torch.clamp_min(torch.sqrt((x2 * x2).sum([dim])), eps)
    return product / (n1 * n2)

def dist(self: Tensor, other: Tensor, p: number) -> Tensor:
    return torch.norm(self - other, p)

def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: Optional[int]) -> Tensor:
    return torch.norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, [-1], False)

def linalg_vecdot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    return (x * y).sum([dim])

def linalg_cross(self: Tensor, other: Tensor, dim: int) -> Tensor:
    a, b = torch.broadcast_tensors([self, other])
    return torch.roll(a, [-1], [dim]) * torch.roll(b, [-2], [dim]) - torch.roll(a, [-2], [dim]) * torch.roll(b, [-1], [dim])

def diff(self: Tensor, n: int, dim: int, prepend: Optional[Tensor], append: Optional[Tensor]) -> Tensor:
    x = self
    if prepend is not None:
        x = torch.cat([prepend, x], dim)
    if append is not None:
        x = torch.cat([x, append], dim)
    for i in range(min(n, x.size(dim))):
        size = x.size(dim)
        later = x.narrow(dim, 1, size - 1)
        sooner = x.narrow(dim, 0, size - 1)
        if x.dtype == torch.bool:
            x = torch.logical_xor(later, sooner)
        else:
            x = later - sooner
    return x

def trapezoid__x(y: Tensor, x: Tensor, dim: int) -> Tensor:
    step = torch.diff(x, 1, -1)
    if x.dim() == 1:
        shape = [1] * y.dim()
        shape[dim] = step.size(0)
        step = step.reshape(shape)
    else:
        step = torch.diff(x, 1, dim)
    size = y.size(dim)
    return ((y.narrow(dim, 0, size - 1) + y.narrow(dim, 1, size - 1)) * step).sum([dim]) / 2.0

def trapezoid__dx(y: Tensor, dx: number, dim: int) -> Tensor:
    size = y.size(dim)
    return (y.sum([dim]) - (y.select(dim, 0) + y.select(dim, size - 1)) * 0.5) * dx

def trapz__x(y: Tensor, x: Tensor, dim: int) -> Tensor:
    return torch.trapezoid(y, x, dim=dim)

def trapz__dx(y: Tensor, dx: float, dim: int) -> Tensor:
    return torch.trapezoid(y, dx=dx, dim=dim)

def tensordot(self: Tensor, other: Tensor, dims_self: List[int], dims_other: List[int]) -> Tensor:
    a = self
    b = other
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
