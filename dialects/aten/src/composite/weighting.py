# Windows that weigh the samples of a signal. A periodic one is a symmetric one of one more sample, without the last. Each operation is rounded
# to the dtype, as in PyTorch (which gives other last digits of float16).

# 0, 1, ... of as many samples as the symmetric window has.
def helper_samples(name: str, window_length: int, periodic: bool, dtype: Optional[int]) -> Tensor:
    kind = torch.float32
    if dtype is not None:
        kind = dtype
    if window_length < 0:
        raise RuntimeError(name + " requires non-negative window_length, got window_length=" + str(window_length))
    length = window_length
    if periodic and window_length > 1:
        length += 1
    samples = torch.arange(length, dtype=kind)
    if not torch.is_floating_point(samples):
        raise RuntimeError(name + " expects floating point dtypes")
    return samples

def helper_bartlett(window_length: int, periodic: bool, dtype: Optional[int]) -> Tensor:
    x = helper_samples("bartlett_window", window_length, periodic, dtype)
    if window_length <= 1:
        return torch.ones_like(x)
    last = x.size(0) - 1
    x = x * (2.0 / float(last))
    rising = (last >> 1) + 1
    return torch.cat([x.narrow(0, 0, rising), x.narrow(0, rising, x.size(0) - rising) * -1 + 2], 0).narrow(0, 0, window_length)

def helper_blackman(window_length: int, periodic: bool, dtype: Optional[int]) -> Tensor:
    x = helper_samples("blackman_window", window_length, periodic, dtype)
    if window_length <= 1:
        return torch.ones_like(x)
    x = x * (3.141592653589793 / float(x.size(0) - 1))
    return (torch.cos(x * 4) * 0.08 - torch.cos(x * 2) * 0.5 + 0.42).narrow(0, 0, window_length)

def helper_hamming(name: str, window_length: int, periodic: bool, alpha: float, beta: float, dtype: Optional[int]) -> Tensor:
    x = helper_samples(name, window_length, periodic, dtype)
    if window_length <= 1:
        return torch.ones_like(x)
    x = x * (6.283185307179586 / float(x.size(0) - 1))
    return (torch.cos(x) * -beta + alpha).narrow(0, 0, window_length)

def helper_kaiser(window_length: int, periodic: bool, beta: float, dtype: Optional[int]) -> Tensor:
    x = helper_samples("kaiser_window", window_length, periodic, dtype)
    if window_length <= 1:
        return torch.ones_like(x)
    x = x * (2.0 / float(x.size(0) - 1)) - 1.0
    y = torch.clamp(1 - x * x, 0)
    return (torch.i0(torch.sqrt(y) * beta) / torch.i0(torch.full([], beta, dtype=x.dtype))).narrow(0, 0, window_length)

def bartlett_window(window_length: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_bartlett(window_length, True, dtype)

def bartlett_window__periodic(window_length: int, periodic: bool, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_bartlett(window_length, periodic, dtype)

def blackman_window(window_length: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_blackman(window_length, True, dtype)

def blackman_window__periodic(window_length: int, periodic: bool, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_blackman(window_length, periodic, dtype)

def hann_window(window_length: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_hamming("hann_window", window_length, True, 0.5, 0.5, dtype)

def hann_window__periodic(window_length: int, periodic: bool, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_hamming("hann_window", window_length, periodic, 0.5, 0.5, dtype)

def hamming_window(window_length: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_hamming("hamming_window", window_length, True, 0.54, 0.46, dtype)

def hamming_window__periodic(window_length: int, periodic: bool, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_hamming("hamming_window", window_length, periodic, 0.54, 0.46, dtype)

def hamming_window__periodic_alpha(window_length: int, periodic: bool, alpha: float, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_hamming("hamming_window", window_length, periodic, alpha, 0.46, dtype)

def hamming_window__periodic_alpha_beta(window_length: int, periodic: bool, alpha: float, beta: float, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_hamming("hamming_window", window_length, periodic, alpha, beta, dtype)

def kaiser_window(window_length: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_kaiser(window_length, True, 12.0, dtype)

def kaiser_window__periodic(window_length: int, periodic: bool, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_kaiser(window_length, periodic, 12.0, dtype)

def kaiser_window__beta(window_length: int, periodic: bool, beta: float, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_kaiser(window_length, periodic, beta, dtype)
