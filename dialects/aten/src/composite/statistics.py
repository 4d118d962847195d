# Quantiles, covariances, differences and integrals.

def helper_quantile(self: Tensor, q: Tensor, dim: Optional[int], keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    if self.numel() == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.dim() > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if not torch.is_floating_point(self):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if self.dtype != q.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if dim is None:
        x = self.reshape([-1])
    else:
        x = torch.movedim(self, [dim], [-1])
        if self.dim() == 0:
            x = self.reshape([1])
    ordered, _ = torch.sort(x, -1)
    missing = torch.isnan(ordered)
    if ignore_nan:
        ranks = torch.clamp_min(q * (torch.logical_not(missing).sum([-1], True) - 1), 0)
    else:
        last = ordered.size(-1) - 1
        ranks = torch.masked_fill(q * last + torch.zeros_like(ordered.narrow(-1, 0, 1)), torch.any(missing, -1, True), last)
    if interpolation == "lower":
        ranks = torch.floor(ranks)
    elif interpolation == "higher":
        ranks = torch.ceil(ranks)
    elif interpolation == "nearest":
        ranks = torch.round(ranks)
    elif interpolation != "linear" and interpolation != "midpoint":
        raise RuntimeError("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got " + interpolation)
    below = ranks.to(torch.int64)
    out = torch.gather(ordered, -1, below)
    if interpolation == "linear" or interpolation == "midpoint":
        if interpolation == "midpoint":
            weight = torch.full_like(ranks, 0.5)
        else:
            weight = ranks - below
        out = torch.lerp(out, torch.gather(ordered, -1, torch.ceil(ranks).to(torch.int64)), weight)
    # The quantiles come first where there are several.
    out = torch.movedim(out, [-1], [0])
    if keepdim:
        if dim is None:
            out = out.reshape([out.size(0)] + [1] * self.dim())
        elif self.dim() > 0:
            at = dim
            if dim < 0:
                at = dim + self.dim()
            out = out.unsqueeze(at + 1)
    if q.dim() == 0:
        out = out.squeeze(0)
    return out

def quantile(self: Tensor, q: Tensor, dim: Optional[int], keepdim: bool, interpolation: str) -> Tensor:
    return helper_quantile(self, q, dim, keepdim, interpolation, False)

def quantile__scalar(self: Tensor, q: float, dim: Optional[int], keepdim: bool, interpolation: str) -> Tensor:
    if q < 0.0 or q > 1.0:
        raise RuntimeError("quantile() q must be in the range [0, 1] but got " + str(q))
    return helper_quantile(self, torch.tensor(q, dtype=self.dtype), dim, keepdim, interpolation, False)

def nanquantile(self: Tensor, q: Tensor, dim: Optional[int], keepdim: bool, interpolation: str) -> Tensor:
    return helper_quantile(self, q, dim, keepdim, interpolation, True)

def nanquantile__scalar(self: Tensor, q: float, dim: Optional[int], keepdim: bool, interpolation: str) -> Tensor:
    if q < 0.0 or q > 1.0:
        raise RuntimeError("quantile() q must be in the range [0, 1] but got " + str(q))
    return helper_quantile(self, torch.tensor(q, dtype=self.dtype), dim, keepdim, interpolation, True)

def helper_covariance(self: Tensor, correction: int, fweights: Optional[Tensor], aweights: Optional[Tensor]) -> Tensor:
    if self.dim() > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with " + str(self.dim()) + " dimensions")
    if self.dtype == torch.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = self
    if self.dim() < 2:
        x = self.reshape([1, -1])
    weighted = x
    total = torch.tensor(x.size(1))
    scale: Optional[Tensor] = None
    if fweights is not None:
        if torch.is_floating_point(fweights) or fweights.dim() > 1 or fweights.numel() != x.size(1):
            raise RuntimeError("cov(): expected fweights to be integers, one for each observation")
        if bool(torch.any(fweights < 0)):
            raise RuntimeError("cov(): fweights cannot be negative")
        scale = fweights
    if aweights is not None:
        if not torch.is_floating_point(aweights) or aweights.dim() > 1 or aweights.numel() != x.size(1):
            raise RuntimeError("cov(): expected aweights to be floating point numbers, one for each observation")
        if bool(torch.any(aweights < 0)):
            raise RuntimeError("cov(): aweights cannot be negative")
        if scale is not None:
            scale = scale * aweights
        else:
            scale = aweights
    if scale is not None:
        total = scale.sum()
        weighted = x * scale
        if x.size(1) > 0:
            if bool(total == 0):
                raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = weighted.sum([1]) / total
    divisor = total - correction
    if scale is not None:
        if aweights is not None:
            if correction != 0:
                divisor = total - correction * (scale * aweights).sum() / total
    centred = x - mean.unsqueeze(1)
    right = centred
    if scale is not None:
        right = centred * scale
    product = torch.mm(centred, right.t().conj())
    return torch.div(product, torch.clamp_min(divisor, 0)).squeeze()

def cov(self: Tensor, correction: int, fweights: Optional[Tensor], aweights: Optional[Tensor]) -> Tensor:
    return helper_covariance(self, correction, fweights, aweights)

def corrcoef(self: Tensor) -> Tensor:
    c = helper_covariance(self, 1, None, None)
    if c.dim() == 0:
        out = c / c
    else:
        spread = torch.sqrt(torch.real(torch.diagonal(c)))
        out = c / spread.reshape([-1, 1]) / spread.reshape([1, -1])
        if torch.is_complex(out):
            out = torch.complex(torch.clamp(torch.real(out), -1, 1), torch.clamp(torch.imag(out), -1, 1))
        else:
            out = torch.clamp(out, -1, 1)
    return out

def diff(self: Tensor, n: int, dim: int, prepend: Optional[Tensor], append: Optional[Tensor]) -> Tensor:
    if self.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError("order must be non-negative but got " + str(n))
    if n == 0:
        # Not even the dimension is looked at.
        return torch.clone(self)
    x = self
    if prepend is not None:
        x = torch.cat([prepend, x], dim)
    if append is not None:
        x = torch.cat([x, append], dim)
    for i in range(min(n, x.size(dim))):
        size = x.size(dim)
        if size == 0:
            raise RuntimeError("start (1) + length (-1) exceeds dimension size (0).")
        later = x.narrow(dim, 1, size - 1)
        sooner = x.narrow(dim, 0, size - 1)
        if x.dtype == torch.bool:
            x = torch.logical_xor(later, sooner)
        else:
            x = later - sooner
    return x

# Sums of neighbours along dim.
def helper_neighbours(y: Tensor, dim: int) -> Tensor:
    size = y.size(dim)
    if size == 0:
        return y
    return y.narrow(dim, 0, size - 1) + y.narrow(dim, 1, size - 1)

# The steps between places x, in a shape that broadcasts with the neighbours of y. Places of more dimensions than y are counted
# along y's dimension all the same.
def helper_steps(y: Tensor, x: Tensor, dim: int) -> Tensor:
    if y.dtype == torch.bool or x.dtype == torch.bool:
        raise RuntimeError("trapezoid: received a bool input for `x` or `y`, but bool is not supported")
    at = dim
    if dim < 0:
        at = dim + y.dim()
    places = x
    if x.dim() == 1:
        if x.size(0) != y.size(dim):
            raise RuntimeError("trapezoid: There must be one `x` value for each sample point")
        shape = [1] * y.dim()
        shape[dim] = x.size(0)
        places = x.reshape(shape)
    while places.dim() < y.dim():
        places = places.unsqueeze(0)
    size = places.size(at)
    step = places
    if size != 0:
        step = places.narrow(at, 1, size - 1) - places.narrow(at, 0, size - 1)
    return step

def trapezoid__x(y: Tensor, x: Tensor, dim: int) -> Tensor:
    if y.size(dim) == 0:
        return y.sum([dim], dtype=y.dtype)
    # Counted from the front: x may have more dimensions than y.
    at = dim
    if dim < 0:
        at = dim + y.dim()
    return (helper_steps(y, x, at) * helper_neighbours(y, at)).sum([at]) / 2.0

def trapezoid__dx(y: Tensor, dx: number, dim: int) -> Tensor:
    size = y.size(dim)
    if size == 0:
        return y.sum([dim], dtype=y.dtype)
    if y.dtype == torch.bool:
        raise RuntimeError("trapezoid: received a bool input for `y`, but bool is not supported")
    return (y.sum([dim]) - (y.select(dim, 0) + y.select(dim, size - 1)) * 0.5) * dx

def trapz__x(y: Tensor, x: Tensor, dim: int) -> Tensor:
    return torch.trapezoid(y, x, dim=dim)

def trapz__dx(y: Tensor, dx: float, dim: int) -> Tensor:
    return torch.trapezoid(y, dx=dx, dim=dim)

def cumulative_trapezoid__x(y: Tensor, x: Tensor, dim: int) -> Tensor:
    at = dim
    if dim < 0:
        at = dim + y.dim()
    return (helper_steps(y, x, at) * helper_neighbours(y, at)).cumsum(at) / 2.0

def cumulative_trapezoid__dx(y: Tensor, dx: number, dim: int) -> Tensor:
    return (helper_neighbours(y, dim) * (float(dx) / 2.0)).cumsum(dim)

def nanmean(self: Tensor, dim: Optional[List[int]], keepdim: bool, dtype: Optional[int]) -> Tensor:
    count = torch.logical_not(torch.isnan(self)).sum(dim, keepdim)
    return torch.nansum(self, dim, keepdim, dtype=dtype) / count

def sum_to_size(self: Tensor, size: List[int]) -> Tensor:
    lead = self.dim() - len(size)
    if lead < 0:
        raise RuntimeError("size {" + str(size) + "} is not expandable to size {" + str(self.size()) + "}.")
    folded: List[int] = []
    for d in range(self.dim()):
        if d < lead:
            folded.append(d)
        elif size[d - lead] != self.size(d):
            if size[d - lead] != 1:
                raise RuntimeError("size {" + str(size) + "} is not expandable to size {" + str(self.size()) + "}.")
            folded.append(d)
    out = self
    if len(size) == 0:
        out = torch.sum(self)
    elif len(folded) > 0:
        out = torch.sum(self, folded, True)
    # A tensor of this size is itself the result.
    if lead > 0:
        out = out.reshape(size)
    return out

def mvlgamma(self: Tensor, p: int) -> Tensor:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if self.dtype == torch.bool:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    x = self
    if not torch.is_floating_point(self):
        x = self.to(torch.float)
    steps = torch.arange(1 - p, 1).to(x.dtype) * 0.5
    return torch.lgamma(x.unsqueeze(-1) + steps).sum([-1]) + float(p * (p - 1)) * 0.28618247146235
