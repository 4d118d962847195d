"""The functions of `torch.nn.functional` that resample images."""


@torch.jit._overload
def interpolate(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    ...


@torch.jit._overload
def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    ...


@torch.jit._overload
def interpolate(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    ...


@torch.jit._overload
def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    ...


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    corners = False
    if mode == "nearest" or mode == "area" or mode == "nearest-exact":
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    elif align_corners is not None:
        corners = align_corners
    rank = input.dim() - 2
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    recompute = mode == "area"
    if recompute_scale_factor is not None and recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        recompute = True
    sizes = torch.jit.annotate(Optional[List[int]], None)
    if size is not None:
        if isinstance(size, int):
            sizes = [size for _ in range(rank)]
        else:
            if len(size) != rank:
                raise ValueError(f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of {input.shape[2:]} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format.")
            sizes = size
    scales = torch.jit.annotate(Optional[List[float]], None)
    if scale_factor is not None:
        if isinstance(scale_factor, float):
            factors = [scale_factor for _ in range(rank)]
        else:
            if len(scale_factor) != rank:
                raise ValueError(f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of {input.shape[2:]} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.")
            factors = scale_factor
        if recompute:
            sizes = [int(math.floor(float(input.size(i + 2)) * factors[i])) for i in range(rank)]
        else:
            scales = factors
    if antialias and not ((mode == "bilinear" or mode == "bicubic" or mode == "lanczos") and rank == 2):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "area":
        assert sizes is not None
        if rank == 1:
            return torch.adaptive_avg_pool1d(input, sizes)
        if rank == 2:
            return torch._C._nn.adaptive_avg_pool2d(input, sizes)
        if rank == 3:
            return torch._C._nn.adaptive_avg_pool3d(input, sizes)
    if mode == "nearest" and rank == 1:
        result = torch._C._nn.upsample_nearest1d(input, sizes, scales)
    elif mode == "nearest" and rank == 2:
        result = torch._C._nn.upsample_nearest2d(input, sizes, scales)
    elif mode == "nearest" and rank == 3:
        result = torch._C._nn.upsample_nearest3d(input, sizes, scales)
    elif mode == "nearest-exact" and rank == 1:
        result = torch._C._nn._upsample_nearest_exact1d(input, sizes, scales)
    elif mode == "nearest-exact" and rank == 2:
        result = torch._C._nn._upsample_nearest_exact2d(input, sizes, scales)
    elif mode == "nearest-exact" and rank == 3:
        result = torch._C._nn._upsample_nearest_exact3d(input, sizes, scales)
    elif mode == "bilinear" and rank == 2 and antialias:
        result = torch._C._nn._upsample_bilinear2d_aa(input, sizes, corners, scales)
    elif mode == "bicubic" and rank == 2 and antialias:
        result = torch._C._nn._upsample_bicubic2d_aa(input, sizes, corners, scales)
    elif mode == "lanczos" and rank == 2:
        if corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        result = torch._C._nn._upsample_lanczos2d_aa(input, sizes, corners, scales)
    elif mode == "linear" and rank == 1:
        result = torch._C._nn.upsample_linear1d(input, sizes, corners, scales)
    elif mode == "bilinear" and rank == 2:
        result = torch._C._nn.upsample_bilinear2d(input, sizes, corners, scales)
    elif mode == "trilinear" and rank == 3:
        result = torch._C._nn.upsample_trilinear3d(input, sizes, corners, scales)
    elif mode == "bicubic" and rank == 2:
        result = torch._C._nn.upsample_bicubic2d(input, sizes, corners, scales)
    elif rank >= 1 and rank <= 3 and (mode == "linear" or mode == "bilinear" or mode == "trilinear"):
        wanted = 3 if mode == "linear" else 4 if mode == "bilinear" else 5
        raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {wanted}D input")
    else:
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})")
    return result


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) != 4 and len(size) != 5:
        raise NotImplementedError(f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}.")
    rank = len(size) - 2
    if theta.dim() != 3 or theta.size(-2) != rank or theta.size(-1) != rank + 1:
        raise ValueError(f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {size}. Got {theta.shape}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.affine_grid_generator(theta, size, corners)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None
) -> Tensor:
    if mode == "bilinear":
        interpolation = 0
    elif mode == "nearest":
        interpolation = 1
    elif mode == "bicubic":
        interpolation = 2
    else:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode == "zeros":
        outside = 0
    elif padding_mode == "border":
        outside = 1
    elif padding_mode == "reflection":
        outside = 2
    else:
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.grid_sampler(input, grid, interpolation, outside, corners)


@torch.jit._overload
def upsample(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
) -> Tensor:
    ...


@torch.jit._overload
def upsample(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
) -> Tensor:
    ...


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


@torch.jit._overload
def upsample_nearest(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[float] = None,
) -> Tensor:
    ...


@torch.jit._overload
def upsample_nearest(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[float] = None,
) -> Tensor:
    ...


def upsample_nearest(input, size=None, scale_factor=None):
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="nearest")


@torch.jit._overload
def upsample_bilinear(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[float] = None,
) -> Tensor:
    ...


@torch.jit._overload
def upsample_bilinear(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[float] = None,
) -> Tensor:
    ...


@torch.jit._overload
def upsample_bilinear(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[List[float]] = None,
) -> Tensor:
    ...


@torch.jit._overload
def upsample_bilinear(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[List[float]] = None,
) -> Tensor:
    ...


def upsample_bilinear(input, size=None, scale_factor=None):
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
