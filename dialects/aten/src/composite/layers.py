# Layers and small rearrangements.

def prelu(self: Tensor, weight: Tensor) -> Tensor:
    if self.dtype != weight.dtype:
        raise RuntimeError("prelu: Type promoting not supported.")
    w = weight
    if weight.dim() > 1:
        raise RuntimeError("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = " + str(weight.dim()))
    if weight.numel() != 1:
        channels = 1
        if self.dim() > 1:
            channels = self.size(1)
        if weight.numel() != channels:
            raise RuntimeError("Mismatch of parameter numbers and input channel size. Found parameter numbers = " + str(weight.numel()) + " and channel size = " + str(channels) + ".")
        shape = [1] * self.dim()
        if self.dim() > 1:
            shape[1] = weight.numel()
        else:
            shape[0] = weight.numel()
        w = weight.reshape(shape)
    elif self.dim() != weight.dim():
        w = weight.reshape([])
    return torch.where(self > 0, self, self * w)

def glu(self: Tensor, dim: int) -> Tensor:
    if self.size(dim) % 2 != 0:
        at = dim
        if dim < 0:
            at += self.dim()
        raise RuntimeError("Halving dimension must be even, but dimension " + str(at) + " is size " + str(self.size(dim)))
    wide = self
    if self.dtype == torch.half or self.dtype == torch.bfloat16:
        wide = self.to(torch.float)
    a, b = torch.chunk(wide, 2, dim)
    return (a * torch.sigmoid(b)).to(self.dtype)

def allclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> bool:
    return bool(torch.all(torch.isclose(self, other, rtol, atol, equal_nan)))

def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    out = self.clone()
    out.select(dim, index).copy_(src)
    return out

def slice_scatter(self: Tensor, src: Tensor, dim: int, start: Optional[int], end: Optional[int], step: int) -> Tensor:
    out = self.clone()
    torch.slice(out, dim, start, end, step).copy_(src)
    return out

def diagonal_scatter(self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    out = self.clone()
    torch.diagonal(out, offset, dim1, dim2).copy_(src)
    return out

def diag(self: Tensor, diagonal: int) -> Tensor:
    if self.dim() == 1:
        out = torch.diag_embed(self, diagonal)
    elif self.dim() != 2:
        raise RuntimeError("diag(): Supports 1D or 2D tensors. Got " + str(self.dim()) + "D")
    else:
        out = torch.diagonal(self, diagonal).clone()
    return out

def diagflat(self: Tensor, offset: int) -> Tensor:
    return torch.diag_embed(self.reshape([-1]), offset)

def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    return self.narrow(dim, start, length).clone()

# No views by their signatures: what is marked as a conjugate or a negative is copied first.
def unsafe_chunk(self: Tensor, chunks: int, dim: int) -> List[Tensor]:
    return torch.chunk(self.resolve_conj().resolve_neg(), chunks, dim)

def unsafe_split__Tensor(self: Tensor, split_size: int, dim: int) -> List[Tensor]:
    return torch.split(self.resolve_conj().resolve_neg(), split_size, dim)

def unsafe_split_with_sizes(self: Tensor, split_sizes: List[int], dim: int) -> List[Tensor]:
    return torch.split_with_sizes(self.resolve_conj().resolve_neg(), split_sizes, dim)

def pad_sequence(sequences: List[Tensor], batch_first: bool, padding_value: float, padding_side: str) -> Tensor:
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    if padding_side != "left" and padding_side != "right":
        raise RuntimeError("Expected padding_side to be one of left or right, but got " + padding_side + ".")
    longest = 0
    for sequence in sequences:
        longest = max(longest, sequence.size(0))
    out = torch.full([len(sequences), longest] + sequences[0].size()[1:], padding_value, dtype=sequences[0].dtype)
    for i in range(len(sequences)):
        length = sequences[i].size(0)
        start = 0
        if padding_side == "left":
            start = longest - length
        out.select(0, i).narrow(0, start, length).copy_(sequences[i])
    if not batch_first:
        out = out.transpose(0, 1).contiguous()
    return out

def helper_strided(size: List[int], stride: List[int], dtype: int) -> Tensor:
    if len(size) != len(stride):
        raise RuntimeError("dimensionality of sizes (" + str(len(size)) + ") must match dimensionality of strides (" + str(len(stride)) + ")")
    # The dimensions from the innermost on, as far as the elements lie without gaps.
    inner: List[int] = []
    expected = 1
    for _ in range(len(size)):
        chosen = -1
        for d in range(len(size)):
            if chosen < 0 and d not in inner and stride[d] == expected and size[d] > 0:
                chosen = d
        if chosen >= 0:
            inner.append(chosen)
            expected *= size[chosen]
    if len(inner) == len(size):
        shape: List[int] = []
        places = [0] * len(size)
        for i in range(len(inner)):
            d = inner[len(inner) - 1 - i]
            shape.append(size[d])
            places[d] = i
        out = torch.empty(shape, dtype=dtype).permute(places)
    else:
        last = 1
        for d in range(len(size)):
            if stride[d] < 0:
                raise RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: " + str(stride))
            last += (size[d] - 1) * stride[d]
        out = torch.as_strided(torch.empty([max(0, last)], dtype=dtype), size, stride, 0)
    return out

def empty_strided(size: List[int], stride: List[int], dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    kind = torch.float32
    if dtype is not None:
        kind = dtype
    return helper_strided(size, stride, kind)

def new_empty_strided(self: Tensor, size: List[int], stride: List[int], dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    kind = self.dtype
    if dtype is not None:
        kind = dtype
    return helper_strided(size, stride, kind)

# The dimensions lie in the order that physical_layout names, the outermost first.
def empty_permuted(size: List[int], physical_layout: List[int], dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    if len(size) != len(physical_layout):
        raise RuntimeError("Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = " + str(len(size)) + " is not equal to len(physical_layout) = " + str(len(physical_layout)))
    kind = torch.float32
    if dtype is not None:
        kind = dtype
    shape: List[int] = []
    places = [-1] * len(size)
    for i in range(len(physical_layout)):
        d = physical_layout[i]
        if d < 0 or d >= len(size):
            raise RuntimeError("Dimension out of range (expected to be between 0 and " + str(len(size) - 1) + ", but got " + str(d) + ")")
        if places[d] >= 0:
            raise RuntimeError("Duplicate dim not allowed")
        shape.append(size[d])
        places[d] = i
    return torch.empty(shape, dtype=kind).permute(places)

# The elements whose indices are all equal. With wrap the diagonal of a tall matrix begins anew below its end, after a row that is left out.
def fill_diagonal_(self: Tensor, fill_value: number, wrap: bool) -> Tensor:
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    rows = torch.arange(self.size(0))
    if wrap and self.dim() == 2:
        rows = torch.remainder(rows, self.size(1) + 1)
    rows = rows.reshape([-1] + [1] * (self.dim() - 1))
    chosen = rows >= 0
    for d in range(1, self.dim()):
        if self.dim() > 2 and self.size(d) != self.size(0):
            raise RuntimeError("all dimensions of input must be of equal length")
        shape = [1] * self.dim()
        shape[d] = self.size(d)
        chosen = torch.logical_and(chosen, rows == torch.arange(self.size(d)).reshape(shape))
    return self.copy_(torch.where(chosen, torch.full([], fill_value, dtype=self.dtype), self))

# Time, batch, channels.
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    return torch.conv1d(self.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias, [1], [pad]).permute([2, 0, 1])

def narrow__Tensor(self: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    if start.dim() != 0 or torch.is_floating_point(start) or torch.is_complex(start) or start.dtype == torch.bool:
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return self.narrow(dim, int(start), length)

def tensor_split__tensor_indices_or_sections(self: Tensor, tensor_indices_or_sections: Tensor, dim: int) -> List[Tensor]:
    if tensor_indices_or_sections.dim() > 1:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with " + str(tensor_indices_or_sections.dim()) + " dims")
    if tensor_indices_or_sections.dim() == 0:
        out = torch.tensor_split(self, int(tensor_indices_or_sections), dim)
    else:
        places: List[int] = []
        for i in range(tensor_indices_or_sections.size(0)):
            places.append(int(tensor_indices_or_sections.select(0, i)))
        out = torch.tensor_split(self, places, dim)
    return out

def square(self: Tensor) -> Tensor:
    return torch.pow(self, 2)

def helper_whole_exponents(self: Tensor, other: Tensor) -> bool:
    return torch.is_floating_point(self) and not torch.is_floating_point(other) and not torch.is_complex(other)

# Whole exponents only move the point, so that zero stays zero; others are those of a power.
def ldexp__Tensor(self: Tensor, other: Tensor) -> Tensor:
    if helper_whole_exponents(self, other):
        if other.dtype == torch.bool:
            raise RuntimeError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
        # In three steps, none of which overflows or vanishes where the result does not.
        exponent = other.to(torch.int).clamp(-2200, 2200).to(torch.float64)
        third = torch.trunc(exponent / 3.0)
        step = torch.pow(2.0, third)
        out = (self.to(torch.float64) * step * step * torch.pow(2.0, exponent - third * 2.0)).to(self.dtype)
    else:
        exponent = other
        if other.dim() == 0:
            # A number takes part in the dtype as one.
            exponent = other.to(torch.result_type(self, other))
        out = self * torch.pow(2.0, exponent)
    return out

def ldexp_(self: Tensor, other: Tensor) -> Tensor:
    if helper_whole_exponents(self, other):
        out = self.copy_(torch.ldexp(self, other))
    else:
        out = self.mul_(torch.pow(2.0, other))
    return out

def linspace__Tensor_Tensor(start: Tensor, end: Tensor, steps: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.linspace(start.item(), end.item(), steps, dtype=dtype)

def linspace__Tensor_Scalar(start: Tensor, end: number, steps: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.linspace(start.item(), end, steps, dtype=dtype)

def linspace__Scalar_Tensor(start: number, end: Tensor, steps: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.linspace(start, end.item(), steps, dtype=dtype)

def logspace__Tensor_Tensor(start: Tensor, end: Tensor, steps: int, base: float, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.logspace(start.item(), end.item(), steps, base, dtype=dtype)

def logspace__Tensor_Scalar(start: Tensor, end: number, steps: int, base: float, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.logspace(start.item(), end, steps, base, dtype=dtype)

def logspace__Scalar_Tensor(start: number, end: Tensor, steps: int, base: float, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.logspace(start, end.item(), steps, base, dtype=dtype)

# [time, batch, channels] with weights [kernel, channels in, channels out]
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    if self.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if self.size(2) != weight.size(1):
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.size(2) != bias.size(0):
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    out = torch.conv1d(self.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias, [1], [pad])
    return out.permute([2, 0, 1]).contiguous()
