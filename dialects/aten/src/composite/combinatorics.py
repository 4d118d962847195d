# Tensors put together from all combinations, and tables of places.

def cartesian_prod(tensors: List[Tensor]) -> Tensor:
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError("Expect a 1D vector, but got shape " + str(t.size()))
        if t.dtype != tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if len(tensors) == 1:
        out = tensors[0]
    else:
        columns: List[Tensor] = []
        for grid in torch.meshgrid(tensors):
            columns.append(grid.reshape([-1]))
        out = torch.stack(columns, 1)
    return out

def combinations(self: Tensor, r: int, with_replacement: bool) -> Tensor:
    if self.dim() != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " + str(self.size()))
    if r < 0:
        raise RuntimeError("Expect a non-negative number, but got " + str(r))
    if r == 0:
        out = torch.empty([0], dtype=self.dtype)
    else:
        n = self.size(0)
        places = torch.meshgrid([torch.arange(n)] * r)
        kept = torch.ones([n] * r, dtype=torch.bool)
        for i in range(r - 1):
            if with_replacement:
                kept = kept.logical_and(places[i] <= places[i + 1])
            else:
                kept = kept.logical_and(places[i] < places[i + 1])
        columns: List[Tensor] = []
        for place in places:
            columns.append(torch.index_select(self, 0, torch.masked_select(place, kept)))
        out = torch.stack(columns, 1)
    return out

def block_diag(tensors: List[Tensor]) -> Tensor:
    blocks: List[Tensor] = []
    columns = 0
    for t in tensors:
        if t.dim() > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions")
        block = torch.atleast_2d(t)
        blocks.append(block)
        columns += block.size(1)
    rows: List[Tensor] = []
    before = 0
    for block in blocks:
        n = block.size(0)
        after = columns - before - block.size(1)
        rows.append(torch.cat([block.new_zeros([n, before]), block, block.new_zeros([n, after])], 1))
        before += block.size(1)
    if len(rows) == 0:
        out = torch.empty([1, 0])
    else:
        out = torch.cat(rows, 0)
    return out

def tril_indices(row: int, col: int, offset: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    places = torch.nonzero(torch.tril(torch.ones([row, col]), offset)).t().contiguous()
    if dtype is not None:
        places = places.to(dtype)
    return places

def triu_indices(row: int, col: int, offset: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    places = torch.nonzero(torch.triu(torch.ones([row, col]), offset)).t().contiguous()
    if dtype is not None:
        places = places.to(dtype)
    return places

def vander(x: Tensor, N: Optional[int], increasing: bool) -> Tensor:
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.size(0)
    if N is not None:
        n = N
    base = x.unsqueeze(-1)
    if not torch.is_floating_point(x):
        if not torch.is_complex(x):
            base = base.to(torch.int64)
    # Each power is the one before times the base.
    ones = torch.ones_like(base).narrow(-1, 0, min(n, 1))
    out = torch.cat([ones, torch.cumprod(base.expand([x.size(0), max(n - 1, 0)]), -1)], -1)
    if not increasing:
        out = torch.flip(out, [1])
    return out

def linalg_vander(x: Tensor, N: Optional[int]) -> Tensor:
    base = torch.atleast_1d(x)
    n = base.size(-1)
    if N is not None:
        n = N
    if not torch.is_floating_point(x):
        if not torch.is_complex(x):
            base = base.to(torch.int64)
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    column = base.unsqueeze(-1)
    shape = base.size() + [n - 1]
    return torch.cat([torch.ones_like(column), torch.cumprod(column.expand(shape), -1)], -1)
