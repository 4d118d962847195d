# Windows over images: columns and back, and pooling undone.

def col2im(self: Tensor, output_size: List[int], kernel_size: List[int], dilation: List[int], padding: List[int], stride: List[int]) -> Tensor:
    columns = self
    if self.dim() == 2:
        columns = self.unsqueeze(0)
    batch = columns.size(0)
    kh = kernel_size[0]
    kw = kernel_size[1]
    height = output_size[0] + 2 * padding[0]
    width = output_size[1] + 2 * padding[1]
    rows = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    cols = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    if columns.size(1) % (kh * kw) != 0:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=" + str(columns.size(1)))
    if columns.size(2) != rows * cols:
        raise RuntimeError("Given output_size=(" + str(output_size[0]) + ", " + str(output_size[1]) + "), kernel_size=(" + str(kh) + ", " + str(kw) + "), dilation=(" + str(dilation[0]) + ", " + str(dilation[1]) + "), padding=(" + str(padding[0]) + ", " + str(padding[1]) + "), stride=(" + str(stride[0]) + ", " + str(stride[1]) + "), expected size of input's dimension 2 to match the calculated number of sliding blocks " + str(rows) + " * " + str(cols) + " = " + str(rows * cols) + ", but got input.size(2)=" + str(columns.size(2)) + ".")
    channels = columns.size(1) // (kh * kw)
    columns = columns.reshape([batch, channels, kh, kw, rows, cols])
    out = torch.zeros([batch, channels, height, width], dtype=self.dtype)
    for i in range(kh):
        for j in range(kw):
            top = i * dilation[0]
            left = j * dilation[1]
            down = torch.slice(out, 2, top, top + (rows - 1) * stride[0] + 1, stride[0])
            torch.slice(down, 3, left, left + (cols - 1) * stride[1] + 1, stride[1]).add_(columns.select(2, i).select(2, j))
    out = out.narrow(2, padding[0], output_size[0]).narrow(3, padding[1], output_size[1]).contiguous()
    if self.dim() == 2:
        out = out.squeeze(0)
    return out

# The values at the places of the maxima, zero elsewhere, over the last `n` dimensions.
def helper_unpooled(self: Tensor, indices: Tensor, size: List[int]) -> Tensor:
    if indices.size() != self.size():
        raise RuntimeError("Expected shape of indices to be same as that of the input tensor")
    lead: List[int] = []
    for d in range(self.dim() - len(size)):
        lead.append(self.size(d))
    total = 1
    for s in size:
        total = total * s
    flat = torch.zeros(lead + [total], dtype=self.dtype)
    if self.numel() > 0:
        flat = torch.scatter(flat, -1, indices.reshape(lead + [-1]), self.reshape(lead + [-1]))
    return flat.reshape(lead + size)

def max_unpool2d(self: Tensor, indices: Tensor, output_size: List[int]) -> Tensor:
    if self.dim() != 3 and self.dim() != 4:
        raise RuntimeError("Input to max_unpooling2d should be a 3d or 4d Tensor, but got a tensor with " + str(self.dim()) + " dimensions.")
    if indices.dtype != torch.int64:
        raise RuntimeError("elements in indices should be type int64")
    return helper_unpooled(self, indices, output_size)

def max_unpool3d(self: Tensor, indices: Tensor, output_size: List[int], stride: List[int], padding: List[int]) -> Tensor:
    if self.dim() != 4 and self.dim() != 5:
        raise RuntimeError("Input to max_unpooling3d should be a 4d or 5d Tensor, but got a tensor with " + str(self.dim()) + " dimensions.")
    if min(stride) <= 0:
        raise RuntimeError("strides should be greater than zero, but got stride: " + str(stride))
    if indices.dtype != torch.int64:
        raise RuntimeError("elements in indices should be type int64")
    return helper_unpooled(self, indices, output_size)

# Starts of the windows of one dimension, as the random sample spreads them: [batch, channels, windows].
def helper_fractional_starts(samples: Tensor, input: int, output: int, kernel: int) -> Tensor:
    wide = samples
    if output > 1:
        alpha = float(input - kernel) / float(output - 1)
        steps = (torch.floor((torch.arange(output).to(samples.dtype) + wide.unsqueeze(-1)) * alpha) - torch.floor(wide.unsqueeze(-1) * alpha)).to(torch.int64)
    else:
        steps = torch.zeros_like(wide.unsqueeze(-1)).to(torch.int64)
    last = torch.full([output], 0, dtype=torch.int64)
    ends = torch.arange(output) == output - 1
    return torch.where(ends, last + (input - kernel), steps)

# The samples of each image begin with the last dimension in two, with the first in three.
def helper_fractional(self: Tensor, kernel_size: List[int], output_size: List[int], random_samples: Tensor) -> Tuple[Tensor, Tensor]:
    n = len(output_size)
    x = self
    if self.dim() == n + 1:
        x = self.unsqueeze(0)
    if x.dim() != n + 2:
        raise RuntimeError("fractional_max_pool" + str(n) + "d(): Expected " + str(n + 1) + "D or " + str(n + 2) + "D tensor, but got: " + str(self.size()))
    lead = [x.size(0), x.size(1)]
    samples = random_samples.reshape(lead + [n])
    # [batch, channels, outputs of each dimension, kernel of each dimension]
    places = torch.zeros(lead + [1] * (2 * n), dtype=torch.int64)
    window = 1
    for i in range(n):
        size = x.size(2 + i)
        if output_size[i] + kernel_size[i] - 1 > size - (n - 2):
            name = "width"
            if i == n - 2:
                name = "height"
            elif i == n - 3:
                name = "time"
            suffix = "d(): pool "
            if n == 3:
                suffix = "d_out(): pool "
            raise RuntimeError("fractional_max_pool" + str(n) + suffix + name + " " + str(kernel_size[i]) + " too large relative to input " + name + " " + str(size))
        sample = i
        if n == 2:
            sample = 1 - i
        starts = helper_fractional_starts(samples.select(-1, sample), size, output_size[i], kernel_size[i])
        own = starts.unsqueeze(-1) + torch.arange(kernel_size[i])
        wide = lead + [1] * (2 * n)
        wide[2 + i] = output_size[i]
        wide[2 + n + i] = kernel_size[i]
        places = places * size + own.reshape(wide)
        window = window * kernel_size[i]
    flat = places.reshape(lead + [-1])
    shape = lead + output_size + [window]
    values = torch.gather(x.reshape(lead + [-1]), -1, flat).reshape(shape)
    out, at = torch.max(values, -1, False)
    if values.is_floating_point():
        # Of several NaN the last.
        last = values.size(-1) - 1 - torch.argmax(values.isnan().to(torch.int64).flip([-1]), -1)
        at = torch.where(out.isnan(), last, at)
    indices = torch.gather(flat.reshape(shape), -1, at.unsqueeze(-1)).squeeze(-1)
    if self.dim() == n + 1:
        out = out.squeeze(0)
        indices = indices.squeeze(0)
    return out, indices

def fractional_max_pool2d(self: Tensor, kernel_size: List[int], output_size: List[int], random_samples: Tensor) -> Tuple[Tensor, Tensor]:
    out, indices = helper_fractional(self, kernel_size, output_size, random_samples)
    return out, indices

def fractional_max_pool3d(self: Tensor, kernel_size: List[int], output_size: List[int], random_samples: Tensor) -> Tuple[Tensor, Tensor]:
    out, indices = helper_fractional(self, kernel_size, output_size, random_samples)
    return out, indices

# The elements of each window from floor(o * size / out) to ceil((o + 1) * size / out), [out, longest]; the last one again where a window is shorter.
def helper_adaptive_places(size: int, out: int) -> Tensor:
    numbers = torch.arange(out)
    starts = torch.floor_divide(numbers * size, max(out, 1))
    ends = torch.floor_divide((numbers + 1) * size + out - 1, max(out, 1))
    longest = 1
    for o in range(out):
        longest = max(longest, ((o + 1) * size + out - 1) // out - (o * size) // out)
    return torch.minimum(starts.unsqueeze(1) + torch.arange(longest), (ends - 1).unsqueeze(1))

def helper_adaptive_max(self: Tensor, output_size: List[int]) -> Tuple[Tensor, Tensor]:
    n = len(output_size)
    lead = self.dim() - n
    if lead != 1 and lead != 2:
        raise RuntimeError("adaptive_max_pool" + str(n) + "d(): Expected " + str(n + 1) + "D or " + str(n + 2) + "D tensor, but got: " + str(self.size()))
    # Places in an image, [outputs of each dimension, window of each dimension].
    places = torch.zeros([1] * (2 * n), dtype=torch.int64)
    window = 1
    shape: List[int] = []
    for d in range(lead):
        shape.append(self.size(d))
    image = 1
    for i in range(n):
        image = image * self.size(lead + i)
    flat = self.reshape(shape + [image])
    for i in range(n):
        size = self.size(lead + i)
        if size == 0:
            raise RuntimeError("adaptive_max_pool" + str(n) + "d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes " + str(self.size()))
        own = helper_adaptive_places(size, output_size[i])
        wide = [1] * (2 * n)
        wide[i] = own.size(0)
        wide[n + i] = own.size(1)
        places = places * size + own.reshape(wide)
        window = window * own.size(1)
        shape.append(output_size[i])
    places = places.reshape(output_size + [window])
    values = torch.index_select(flat, -1, places.reshape([-1])).reshape(shape + [window])
    out, at = torch.max(values, -1, False)
    if values.is_floating_point():
        # Of several NaN the last.
        last = values.size(-1) - 1 - torch.argmax(values.isnan().to(torch.int64).flip([-1]), -1)
        at = torch.where(out.isnan(), last, at)
    indices = torch.gather(places.expand(shape + [window]), -1, at.unsqueeze(-1)).squeeze(-1)
    return out, indices

def adaptive_max_pool1d(self: Tensor, output_size: List[int]) -> Tuple[Tensor, Tensor]:
    out, indices = helper_adaptive_max(self, output_size)
    return out, indices

def adaptive_max_pool2d(self: Tensor, output_size: List[int]) -> Tuple[Tensor, Tensor]:
    out, indices = helper_adaptive_max(self, output_size)
    return out, indices

def adaptive_max_pool3d(self: Tensor, output_size: List[int]) -> Tuple[Tensor, Tensor]:
    out, indices = helper_adaptive_max(self, output_size)
    return out, indices
