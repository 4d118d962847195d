# Differences of neighbours over the distances between them.

def helper_gradient_dims(self: Tensor, dim: Optional[int]) -> List[int]:
    dims: List[int] = []
    if dim is None:
        for d in range(self.dim()):
            dims.append(d)
    else:
        dims.append(dim)
    return dims

def helper_gradient_checked(self: Tensor, given: int, dims: List[int], edge_order: int) -> List[int]:
    if self.dtype == torch.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if given != len(dims):
        raise RuntimeError("torch.gradient expected one spacing for each of " + str(len(dims)) + " dimensions, but got " + str(given))
    if edge_order != 1 and edge_order != 2:
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    rank = self.dim()
    out: List[int] = []
    for d in dims:
        if d < -rank or d >= rank:
            raise IndexError("Dimension out of range, got " + str(d))
        direction = d % rank
        if direction in out:
            raise RuntimeError("dim " + str(direction) + " appears multiple times in the list of dims")
        if self.size(direction) < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
        out.append(direction)
    return out

# One distance for each dimension.
def helper_gradient_even(self: Tensor, spacing: List[float], dims: List[int], edge_order: int) -> List[Tensor]:
    results: List[Tensor] = []
    for i in range(len(dims)):
        d = dims[i]
        n = self.size(d)
        step = spacing[i]
        inner = (self.narrow(d, 2, max(n - 2, 0)) - self.narrow(d, 0, max(n - 2, 0))) / step / 2
        if edge_order == 1:
            first = (self.narrow(d, 1, 1) - self.narrow(d, 0, 1)) / step
            last = (self.narrow(d, n - 1, 1) - self.narrow(d, n - 2, 1)) / step
        else:
            first = (-1.5 * self.narrow(d, 0, 1) + 2 * self.narrow(d, 1, 1) - 0.5 * self.narrow(d, 2, 1)) / step
            last = (0.5 * self.narrow(d, n - 3, 1) - 2 * self.narrow(d, n - 2, 1) + 1.5 * self.narrow(d, n - 1, 1)) / step
        results.append(torch.cat([first, inner, last], d))
    return results

# Coordinates for each dimension, by polynomials through three neighbours.
def helper_gradient_uneven(self: Tensor, coordinates: List[Tensor], dims: List[int], edge_order: int) -> List[Tensor]:
    results: List[Tensor] = []
    for i in range(len(dims)):
        if coordinates[i].dim() != 1:
            raise RuntimeError("torch.gradient expected each element of spacing to have one dimension, but got an element with " + str(coordinates[i].dim()) + " dimensions!")
        d = dims[i]
        n = self.size(d)
        shape = [1] * self.dim()
        shape[d] = -1
        steps = torch.diff(coordinates[i])
        count = steps.size(0)
        h = steps.narrow(0, 0, max(count - 1, 0))
        k = steps.narrow(0, 1, max(count - 1, 0))
        a = (-k / (h * (h + k))).reshape(shape)
        b = ((k - h) / (h * k)).reshape(shape)
        c = (h / (k * (h + k))).reshape(shape)
        inner = a * self.narrow(d, 0, max(n - 2, 0)) + b * self.narrow(d, 1, max(n - 2, 0)) + c * self.narrow(d, 2, max(n - 2, 0))
        p = steps[0]
        s = steps[-1]
        if edge_order == 1:
            first = (self.narrow(d, 1, 1) - self.narrow(d, 0, 1)) / p
            last = (self.narrow(d, n - 1, 1) - self.narrow(d, n - 2, 1)) / s
        else:
            q = steps[1]
            r = steps[-2]
            first = -(2.0 * p + q) / (p * (p + q)) * self.narrow(d, 0, 1) + (p + q) / (p * q) * self.narrow(d, 1, 1) + -p / (q * (p + q)) * self.narrow(d, 2, 1)
            last = s / (r * (s + r)) * self.narrow(d, n - 3, 1) + -(s + r) / (s * r) * self.narrow(d, n - 2, 1) + (2 * s + r) / (s * (s + r)) * self.narrow(d, n - 1, 1)
        results.append(torch.cat([first, inner, last], d))
    return results

def helper_gradient_floats(spacing: List[number]) -> List[float]:
    out: List[float] = []
    for s in spacing:
        out.append(float(s))
    return out

def gradient__scalarint(self: Tensor, spacing: Optional[number], dim: Optional[int], edge_order: int) -> List[Tensor]:
    dims = helper_gradient_checked(self, len(helper_gradient_dims(self, dim)), helper_gradient_dims(self, dim), edge_order)
    step = 1.0
    if spacing is not None:
        step = float(spacing)
    return helper_gradient_even(self, [step] * len(dims), dims, edge_order)

def gradient__scalararray(self: Tensor, spacing: number, dim: List[int], edge_order: int) -> List[Tensor]:
    dims = helper_gradient_checked(self, len(dim), dim, edge_order)
    return helper_gradient_even(self, [float(spacing)] * len(dims), dims, edge_order)

def gradient__array(self: Tensor, dim: List[int], edge_order: int) -> List[Tensor]:
    dims = helper_gradient_checked(self, len(dim), dim, edge_order)
    return helper_gradient_even(self, [1.0] * len(dims), dims, edge_order)

def gradient__scalarrayint(self: Tensor, spacing: List[number], dim: Optional[int], edge_order: int) -> List[Tensor]:
    dims = helper_gradient_checked(self, len(spacing), helper_gradient_dims(self, dim), edge_order)
    return helper_gradient_even(self, helper_gradient_floats(spacing), dims, edge_order)

def gradient__scalarrayarray(self: Tensor, spacing: List[number], dim: List[int], edge_order: int) -> List[Tensor]:
    dims = helper_gradient_checked(self, len(spacing), dim, edge_order)
    return helper_gradient_even(self, helper_gradient_floats(spacing), dims, edge_order)

def gradient__tensorarrayint(self: Tensor, spacing: List[Tensor], dim: Optional[int], edge_order: int) -> List[Tensor]:
    dims = helper_gradient_checked(self, len(spacing), helper_gradient_dims(self, dim), edge_order)
    return helper_gradient_uneven(self, spacing, dims, edge_order)

def gradient__tensorarray(self: Tensor, spacing: List[Tensor], dim: List[int], edge_order: int) -> List[Tensor]:
    dims = helper_gradient_checked(self, len(spacing), dim, edge_order)
    return helper_gradient_uneven(self, spacing, dims, edge_order)
