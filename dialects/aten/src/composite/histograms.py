# Counts of what falls between edges.

# The edges of `bins` equal bins over the range of dimension `d`, or over what its column holds.
def helper_equal_edges(column: Tensor, bins: int, range: Optional[List[float]], d: int) -> Tensor:
    low = 0.0
    high = 1.0
    if range is not None:
        low = range[2 * d]
        high = range[2 * d + 1]
    elif column.numel() > 0:
        low = float(column.min())
        high = float(column.max())
    if low == high:
        low = low - 0.5
        high = high + 0.5
    return torch.linspace(low, high, bins + 1, dtype=column.dtype)

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
    edges = helper_equal_edges(self.reshape([-1]), bins, range, 0)
    return helper_histogram(self, edges, weight, density), edges

# Counts in boxes: the last dimension of `self` are the coordinates.
def helper_boxes(self: Tensor, edges: List[Tensor], weight: Optional[Tensor], density: bool) -> Tensor:
    if self.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions, but got " + str(self.dim()))
    count = self.size(-1)
    if len(edges) != count:
        raise RuntimeError("torch.histogramdd: expected " + str(count) + " sequences of bin edges for a " + str(count) + "-dimensional histogram but got " + str(len(edges)))
    x = self.reshape([-1, count])
    if weight is not None:
        w = weight.reshape([-1])
    else:
        w = torch.ones([x.size(0)], dtype=self.dtype)
    place = torch.zeros([x.size(0)], dtype=torch.int64)
    inside = torch.ones([x.size(0)], dtype=torch.bool)
    total = 1
    shape: List[int] = []
    for d in range(count):
        bins = edges[d].size(0) - 1
        column = x.select(1, d).contiguous()
        inside = torch.logical_and(inside, torch.logical_and(column >= edges[d][0], column <= edges[d][bins]))
        place = place * bins + torch.clamp(torch.searchsorted(edges[d], column, right=True) - 1, 0, bins - 1)
        total = total * bins
        shape.append(bins)
    zero = torch.zeros([], dtype=self.dtype)
    out = torch.zeros([total], dtype=self.dtype).index_add(0, place, torch.where(inside, w, zero)).reshape(shape)
    if density:
        out = out / out.sum()
        for d in range(count):
            across = [1] * count
            across[d] = -1
            out = out / torch.diff(edges[d]).reshape(across)
    return out

def helper_all_edges(self: Tensor, bins: List[int], limits: Optional[List[float]]) -> List[Tensor]:
    out: List[Tensor] = []
    x = self.reshape([-1, self.size(-1)])
    for d in range(len(bins)):
        out.append(helper_equal_edges(x.select(1, d), bins[d], limits, d))
    return out

def histogramdd(self: Tensor, bins: List[int], range: Optional[List[float]], weight: Optional[Tensor], density: bool) -> Tuple[Tensor, List[Tensor]]:
    edges = helper_all_edges(self, bins, range)
    return helper_boxes(self, edges, weight, density), edges

def histogramdd__int_bins(self: Tensor, bins: int, range: Optional[List[float]], weight: Optional[Tensor], density: bool) -> Tuple[Tensor, List[Tensor]]:
    edges = helper_all_edges(self, [bins] * self.size(-1), range)
    return helper_boxes(self, edges, weight, density), edges

def histogramdd__TensorList_bins(self: Tensor, bins: List[Tensor], range: Optional[List[float]], weight: Optional[Tensor], density: bool) -> Tuple[Tensor, List[Tensor]]:
    edges: List[Tensor] = []
    for b in bins:
        edges.append(b.clone())
    return helper_boxes(self, edges, weight, density), edges
