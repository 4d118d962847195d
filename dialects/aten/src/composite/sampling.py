# Sampling images at places that a grid names. interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic; padding_mode: 0 zeros, 1 border, 2 reflection.

# From [-1, 1] to element numbers.
def helper_unnormalized(c: Tensor, size: int, align_corners: bool) -> Tensor:
    if align_corners:
        out = (c + 1) / 2 * (size - 1)
    else:
        out = ((c + 1) * size - 1) / 2
    return out

# Places outside of an image brought inside as the padding mode says; NaN is the first row or column.
def helper_padded2(c: Tensor, size: int, padding_mode: int, align_corners: bool) -> Tensor:
    out = c
    if padding_mode == 2:
        low = 0.5
        twice = 2.0 * float(size)
        if align_corners:
            low = 0.0
            twice = 2.0 * float(size - 1)
        away = torch.abs(c + low)
        extra = away - torch.trunc(away / twice) * twice
        out = torch.minimum(extra, torch.rsub(extra, twice)) - low
    if padding_mode != 0:
        out = torch.where(out == out, torch.clamp(out, 0, size - 1), torch.zeros_like(out))
    return out

# The same of a volume, where NaN is the last one.
def helper_padded3(c: Tensor, size: int, padding_mode: int, align_corners: bool) -> Tensor:
    out = c
    if padding_mode == 2:
        low = -0.5
        span = float(size)
        if align_corners:
            low = 0.0
            span = float(size - 1)
        if span == 0.0:
            out = torch.zeros_like(c)
        else:
            away = torch.abs(c - low)
            extra = torch.fmod(away, span)
            flips = torch.floor(away / span)
            out = torch.where(torch.fmod(flips, 2) == 0, extra + low, torch.rsub(extra, span) + low)
    if padding_mode != 0:
        out = torch.where(out == out, torch.clamp(out, 0, size - 1), torch.full_like(out, size - 1))
    return out

# The elements of input [batch, channels, area] at row-major places, zero where not inside.
def helper_fetched(input: Tensor, place: Tensor, inside: Tensor) -> Tensor:
    batch = input.size(0)
    channels = input.size(1)
    rows = torch.where(inside, place, torch.zeros_like(place)).reshape([batch, 1, -1]).expand([batch, channels, -1])
    shape = [batch, channels]
    for d in range(1, place.dim()):
        shape.append(place.size(d))
    values = torch.gather(input, 2, rows).reshape(shape)
    return torch.where(inside.unsqueeze(1), values, torch.zeros_like(values))

def helper_at2(flat: Tensor, height: int, width: int, y: Tensor, x: Tensor) -> Tensor:
    inside = (y >= 0).logical_and(y < height).logical_and(x >= 0).logical_and(x < width)
    safe_y = torch.where(inside, y, torch.zeros_like(y)).to(torch.int64)
    safe_x = torch.where(inside, x, torch.zeros_like(x)).to(torch.int64)
    return helper_fetched(flat, safe_y * width + safe_x, inside)

# Keys' cubic weights with a = -3/4 of the four elements around, for the fraction t.
def helper_cubic(t: Tensor) -> List[Tensor]:
    a = -0.75
    far = t + 1
    back = torch.rsub(t, 1)
    back_far = torch.rsub(t, 2)
    return [((far * a - 5 * a) * far + 8 * a) * far - 4 * a,
            ((t * (a + 2) - (a + 3)) * t) * t + 1,
            ((back * (a + 2) - (a + 3)) * back) * back + 1,
            ((back_far * a - 5 * a) * back_far + 8 * a) * back_far - 4 * a]

def helper_grid2(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    if input.dim() != 4 or grid.dim() != 4 or input.size(0) != grid.size(0) or grid.size(3) != 2:
        raise RuntimeError("grid_sampler(): expected 4D input and grid with same batch size and a grid of pairs, but got input with sizes " + str(input.size()) + " and grid with sizes " + str(grid.size()))
    if input.dtype != grid.dtype:
        raise RuntimeError("grid_sampler(): expected input and grid to have same dtype")
    height = input.size(2)
    width = input.size(3)
    if height == 0 or width == 0:
        raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes " + str(input.size()))
    # Everything in the input's dtype: which element is meant depends on rounding.
    flat = input.reshape([input.size(0), input.size(1), height * width])
    x = helper_unnormalized(grid.select(3, 0), width, align_corners)
    y = helper_unnormalized(grid.select(3, 1), height, align_corners)
    if interpolation_mode == 2:
        left = torch.floor(x)
        top = torch.floor(y)
        x_weights = helper_cubic(x - left)
        y_weights = helper_cubic(y - top)
        out = torch.zeros([input.size(0), input.size(1), grid.size(1), grid.size(2)], dtype=input.dtype)
        for i in range(4):
            row = torch.zeros_like(out)
            at_y = helper_padded2(top + (i - 1), height, padding_mode, align_corners)
            for j in range(4):
                at_x = helper_padded2(left + (j - 1), width, padding_mode, align_corners)
                row = row + helper_at2(flat, height, width, at_y, at_x) * x_weights[j].unsqueeze(1)
            out = out + row * y_weights[i].unsqueeze(1)
    else:
        x = helper_padded2(x, width, padding_mode, align_corners)
        y = helper_padded2(y, height, padding_mode, align_corners)
        if interpolation_mode == 1:
            out = helper_at2(flat, height, width, torch.round(y), torch.round(x))
        else:
            left = torch.floor(x)
            top = torch.floor(y)
            right_part = (x - left).unsqueeze(1)
            left_part = (left + 1 - x).unsqueeze(1)
            low_part = (y - top).unsqueeze(1)
            top_part = (top + 1 - y).unsqueeze(1)
            out = helper_at2(flat, height, width, top, left) * (left_part * top_part)
            out = out + helper_at2(flat, height, width, top, left + 1) * (right_part * top_part)
            out = out + helper_at2(flat, height, width, top + 1, left) * (left_part * low_part)
            out = out + helper_at2(flat, height, width, top + 1, left + 1) * (right_part * low_part)
    return out.contiguous()

def helper_at3(flat: Tensor, depth: int, height: int, width: int, z: Tensor, y: Tensor, x: Tensor) -> Tensor:
    inside = (y >= 0).logical_and(y < height).logical_and(x >= 0).logical_and(x < width).logical_and(z >= 0).logical_and(z < depth)
    zero = torch.zeros_like(y)
    safe_z = torch.where(inside, z, zero).to(torch.int64)
    safe_y = torch.where(inside, y, zero).to(torch.int64)
    safe_x = torch.where(inside, x, zero).to(torch.int64)
    return helper_fetched(flat, (safe_z * height + safe_y) * width + safe_x, inside)

def helper_grid3(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    if input.dim() != 5 or grid.dim() != 5 or input.size(0) != grid.size(0) or grid.size(4) != 3:
        raise RuntimeError("grid_sampler(): expected 5D input and grid with same batch size and a grid of triples, but got input with sizes " + str(input.size()) + " and grid with sizes " + str(grid.size()))
    if input.dtype != grid.dtype:
        raise RuntimeError("grid_sampler(): expected input and grid to have same dtype")
    depth = input.size(2)
    height = input.size(3)
    width = input.size(4)
    # Everything in the input's dtype: which element is meant depends on rounding.
    flat = input.reshape([input.size(0), input.size(1), depth * height * width])
    x = helper_unnormalized(grid.select(4, 0), width, align_corners)
    y = helper_unnormalized(grid.select(4, 1), height, align_corners)
    z = helper_unnormalized(grid.select(4, 2), depth, align_corners)
    if interpolation_mode != 2:
        x = helper_padded3(x, width, padding_mode, align_corners)
        y = helper_padded3(y, height, padding_mode, align_corners)
        z = helper_padded3(z, depth, padding_mode, align_corners)
    if interpolation_mode == 2:
        left = torch.floor(x)
        top = torch.floor(y)
        front = torch.floor(z)
        x_weights = helper_cubic(x - left)
        y_weights = helper_cubic(y - top)
        z_weights = helper_cubic(z - front)
        out = torch.zeros([input.size(0), input.size(1), grid.size(1), grid.size(2), grid.size(3)], dtype=input.dtype)
        for k in range(4):
            plane = torch.zeros_like(out)
            at_z = helper_padded3(front + (k - 1), depth, padding_mode, align_corners)
            for i in range(4):
                row = torch.zeros_like(out)
                at_y = helper_padded3(top + (i - 1), height, padding_mode, align_corners)
                for j in range(4):
                    at_x = helper_padded3(left + (j - 1), width, padding_mode, align_corners)
                    row = row + helper_at3(flat, depth, height, width, at_z, at_y, at_x) * x_weights[j].unsqueeze(1)
                plane = plane + row * y_weights[i].unsqueeze(1)
            out = out + plane * z_weights[k].unsqueeze(1)
    elif interpolation_mode == 1:
        out = helper_at3(flat, depth, height, width, torch.round(z), torch.round(y), torch.round(x))
    else:
        left = torch.floor(x)
        top = torch.floor(y)
        front = torch.floor(z)
        out = torch.zeros([input.size(0), input.size(1), grid.size(1), grid.size(2), grid.size(3)], dtype=input.dtype)
        for k in range(2):
            for i in range(2):
                for j in range(2):
                    at_x = left + j
                    at_y = top + i
                    at_z = front + k
                    weight = torch.rsub(torch.abs(x - at_x), 1) * torch.rsub(torch.abs(y - at_y), 1) * torch.rsub(torch.abs(z - at_z), 1)
                    # A place that is NaN or infinite has no weight, and no element.
                    weight = torch.where(weight == weight, weight, torch.zeros_like(weight))
                    out = out + helper_at3(flat, depth, height, width, at_z, at_y, at_x) * weight.unsqueeze(1)
    return out

def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    return helper_grid2(input, grid, interpolation_mode, padding_mode, align_corners)

def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    return helper_grid3(input, grid, interpolation_mode, padding_mode, align_corners)

def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    if input.dim() == 5:
        out = torch.grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners)
    else:
        out = torch.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)
    return out

# Places of the elements of one dimension in [-1, 1].
def helper_base(theta: Tensor, size: int, align_corners: bool) -> Tensor:
    if size <= 1:
        out = torch.zeros([size], dtype=theta.dtype)
    else:
        out = torch.linspace(-1, 1, size, dtype=theta.dtype)
        if not align_corners:
            out = out * (size - 1) / size
    return out

def affine_grid_generator(theta: Tensor, size: List[int], align_corners: bool) -> Tensor:
    if len(size) == 4:
        x = helper_base(theta, size[3], align_corners).reshape([1, -1]).expand([size[2], size[3]])
        y = helper_base(theta, size[2], align_corners).reshape([-1, 1]).expand([size[2], size[3]])
        base = torch.stack([x, y, torch.ones_like(x)], -1).reshape([-1, 3])
        out = torch.matmul(base, theta.transpose(1, 2)).reshape([size[0], size[2], size[3], 2])
    elif len(size) == 5:
        shape = [size[2], size[3], size[4]]
        x = helper_base(theta, size[4], align_corners).reshape([1, 1, -1]).expand(shape)
        y = helper_base(theta, size[3], align_corners).reshape([1, -1, 1]).expand(shape)
        z = helper_base(theta, size[2], align_corners).reshape([-1, 1, 1]).expand(shape)
        base = torch.stack([x, y, z, torch.ones_like(x)], -1).reshape([-1, 4])
        out = torch.matmul(base, theta.transpose(1, 2)).reshape([size[0], size[2], size[3], size[4], 3])
    else:
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    return out
