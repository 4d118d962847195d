"""Functions of `torch` that are Python around operators."""


def _return_output(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tensor:
    if dim is None:
        values, inverse, counts = torch._unique2(input, sorted, False, False)
    else:
        values, inverse, counts = torch.unique_dim(input, dim, sorted, False, False)
    return values


def _return_inverse(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    if dim is None:
        values, inverse, counts = torch._unique2(input, sorted, True, False)
    else:
        values, inverse, counts = torch.unique_dim(input, dim, sorted, True, False)
    return values, inverse


def _return_counts(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    if dim is None:
        values, inverse, counts = torch._unique2(input, sorted, False, True)
    else:
        values, inverse, counts = torch.unique_dim(input, dim, sorted, False, True)
    return values, counts


def _unique_impl(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    if dim is None:
        values, inverse, counts = torch._unique2(input, sorted, return_inverse, return_counts)
    else:
        values, inverse, counts = torch.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return values, inverse, counts


_unique_inverse_false = choose("return_counts", 3, _return_counts, _return_output)
_unique_inverse_true = choose("return_counts", 3, _unique_impl, _return_inverse)
unique = choose("return_inverse", 2, _unique_inverse_true, _unique_inverse_false)


def _consecutive_return_output(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tensor:
    values, inverse, counts = torch._VF.unique_consecutive(input, return_inverse, return_counts, dim)
    return values


def _consecutive_return_inverse(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = torch._VF.unique_consecutive(input, return_inverse, return_counts, dim)
    return values, inverse


def _consecutive_return_counts(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    values, inverse, counts = torch._VF.unique_consecutive(input, return_inverse, return_counts, dim)
    return values, counts


def _unique_consecutive_impl(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    values, inverse, counts = torch._VF.unique_consecutive(input, return_inverse, return_counts, dim)
    return values, inverse, counts


_consecutive_inverse_false = choose("return_counts", 2, _consecutive_return_counts, _consecutive_return_output)
_consecutive_inverse_true = choose("return_counts", 2, _unique_consecutive_impl, _consecutive_return_inverse)
unique_consecutive = choose("return_inverse", 1, _consecutive_inverse_true, _consecutive_inverse_false)


@torch.jit._overload
def tensordot(a: Tensor, b: Tensor, dims: int, out: Optional[Tensor] = None) -> Tensor:
    ...


@torch.jit._overload
def tensordot(a: Tensor, b: Tensor, dims: Tuple[List[int], List[int]], out: Optional[Tensor] = None) -> Tensor:
    ...


@torch.jit._overload
def tensordot(a: Tensor, b: Tensor, dims: List[List[int]], out: Optional[Tensor] = None) -> Tensor:
    ...


@torch.jit._overload
def tensordot(a: Tensor, b: Tensor, dims: Tensor, out: Optional[Tensor] = None) -> Tensor:
    ...


def tensordot(a, b, dims=2, out=None):
    left: List[int] = []
    right: List[int] = []
    if isinstance(dims, int):
        left = [i for i in range(-dims, 0)]
        right = [i for i in range(dims)]
    elif isinstance(dims, Tuple[List[int], List[int]]):
        left, right = dims
    elif isinstance(dims, Tensor):
        if dims.numel() > 1:
            pairs: List[List[int]] = dims.tolist()
            left, right = pairs[0], pairs[1]
        else:
            count = int(dims.item())
            left = [i for i in range(-count, 0)]
            right = [i for i in range(count)]
    else:
        left, right = dims[0], dims[1]
    return torch._VF.tensordot(a, b, left, right)


def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    if compute_mode == "use_mm_for_euclid_dist_if_necessary":
        result = torch._VF.cdist(x1, x2, p, None)
    elif compute_mode == "use_mm_for_euclid_dist":
        result = torch._VF.cdist(x1, x2, p, 1)
    elif compute_mode == "donot_use_mm_for_euclid_dist":
        result = torch._VF.cdist(x1, x2, p, 2)
    else:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return result


@torch.jit._overload
def norm(input: Tensor, p: str = "fro", dim: Optional[List[int]] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    ...


@torch.jit._overload
def norm(input: Tensor, p: Optional[number] = None, dim: Optional[List[int]] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    ...


@torch.jit._overload
def norm(input: Tensor, p: Optional[number] = None, dim: Optional[int] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    ...


@torch.jit._overload
def norm(input: Tensor, p: str = "fro", dim: Optional[int] = None, keepdim: bool = False, out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    ...


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    dims: Optional[List[int]] = None
    if isinstance(dim, int):
        dims = [dim]
    elif isinstance(dim, List[int]):
        dims = dim
    if isinstance(p, str):
        if p == "fro":
            result = torch.linalg_vector_norm(input, 2, dims, keepdim, dtype=dtype)
        elif p == "nuc":
            if dims is None:
                result = torch.linalg_matrix_norm(input, "nuc", [-2, -1], keepdim, dtype=dtype)
            else:
                result = torch.linalg_matrix_norm(input, "nuc", dims, keepdim, dtype=dtype)
        else:
            raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    else:
        order = 2.0
        if p is not None:
            order = float(p)
        result = torch.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype)
    return result


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: Optional[int] = None,
    win_length: Optional[int] = None,
    window: Optional[Tensor] = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Optional[bool] = None,
    return_complex: Optional[bool] = None,
    align_to_window: Optional[bool] = None,
) -> Tensor:
    if center:
        rank = input.dim()
        extended = [1 for _ in range(3 - rank)] + input.size()
        half = n_fft // 2
        input = torch.pad(input.view(extended), [half, half], pad_mode)
        input = input.view(input.size()[-rank:])
    return torch._VF.stft(
        input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window
    )
