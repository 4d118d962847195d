# Fourier transforms of windows of a signal, and orders of frequencies.

def fft_fftshift(self: Tensor, dim: Optional[List[int]]) -> Tensor:
    dims: List[int] = []
    if dim is not None:
        dims = dim
    else:
        for d in range(self.dim()):
            dims.append(d)
    shifts: List[int] = []
    for d in dims:
        shifts.append(self.size(d) // 2)
    out = self
    if len(dims) > 0:
        out = torch.roll(self, shifts, dims)
    return out

def fft_ifftshift(self: Tensor, dim: Optional[List[int]]) -> Tensor:
    dims: List[int] = []
    if dim is not None:
        dims = dim
    else:
        for d in range(self.dim()):
            dims.append(d)
    shifts: List[int] = []
    for d in dims:
        shifts.append((self.size(d) + 1) // 2)
    out = self
    if len(dims) > 0:
        out = torch.roll(self, shifts, dims)
    return out

def helper_frequencies(n: int, d: float, dtype: Optional[int], half: bool) -> Tensor:
    kind = 6
    if dtype is not None:
        kind = dtype
    if half:
        # Halved towards zero, as C++ does.
        numbers = torch.arange(int(n / 2) + 1, dtype=kind)
    else:
        numbers = torch.cat([torch.arange((n + 1) // 2, dtype=kind), torch.arange(-(n // 2), 0, dtype=kind)], 0)
    return numbers * (1.0 / (float(n) * d))

def fft_fftfreq(n: int, d: float, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_frequencies(n, d, dtype, False)

def fft_rfftfreq(n: int, d: float, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return helper_frequencies(n, d, dtype, True)

# The window, ones by default, with zeros on both sides up to n_fft elements.
def helper_window(window: Optional[Tensor], n_fft: int, win_length: Optional[int], dtype: int) -> Tensor:
    length = n_fft
    if win_length is not None:
        length = win_length
    if length <= 0 or length > n_fft:
        raise RuntimeError("stft: expected 0 < win_length <= n_fft, but got win_length=" + str(length))
    out = torch.ones([length], dtype=dtype)
    if window is not None:
        if window.dim() != 1 or window.size(0) != length:
            raise RuntimeError("stft: expected a 1D window tensor of size equal to win_length=" + str(length) + ", but got window with size " + str(window.size()))
        out = window
    if length < n_fft:
        left = (n_fft - length) // 2
        out = torch.constant_pad_nd(out, [left, n_fft - length - left])
    return out

def helper_stft(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], normalized: bool, onesided: Optional[bool], return_complex: Optional[bool]) -> Tensor:
    hop = n_fft // 4
    if hop_length is not None:
        hop = hop_length
    if hop <= 0:
        raise RuntimeError("stft: expected hop_length > 0, but got hop_length=" + str(hop))
    x = self
    if self.dim() == 1:
        x = self.unsqueeze(0)
    if x.dim() != 2:
        raise RuntimeError("stft: expected a 1D or 2D tensor")
    if n_fft <= 0 or n_fft > x.size(1):
        raise RuntimeError("stft: expected 0 < n_fft <= " + str(x.size(1)) + ", but got n_fft=" + str(n_fft))
    real = not torch.is_complex(x)
    weights = helper_window(window, n_fft, win_length, x.dtype)
    if torch.is_complex(weights):
        real = False
    norm = "backward"
    if normalized:
        norm = "ortho"
    frames = x.unfold(-1, n_fft, hop) * weights
    half = real
    if onesided is not None:
        half = onesided
    if half:
        out = torch.fft_rfft(frames, None, -1, norm)
    else:
        out = torch.fft_fft(frames, None, -1, norm)
    out = out.transpose(1, 2)
    if self.dim() == 1:
        out = out.squeeze(0)
    as_complex = not real
    if return_complex is not None:
        as_complex = return_complex
    elif real:
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs")
    if not as_complex:
        out = torch.view_as_real(out)
    return out

def stft(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], normalized: bool, onesided: Optional[bool], return_complex: Optional[bool], align_to_window: Optional[bool]) -> Tensor:
    return helper_stft(self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)

def stft__center(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], center: bool, pad_mode: str, normalized: bool, onesided: Optional[bool], return_complex: Optional[bool], align_to_window: Optional[bool]) -> Tensor:
    x = self
    if center:
        pad = n_fft // 2
        x = self.unsqueeze(0)
        if self.dim() == 1:
            x = x.unsqueeze(0)
        x = torch.pad(x, [pad, pad], pad_mode).squeeze(0)
        if self.dim() == 1:
            x = x.squeeze(0)
    return helper_stft(x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)

# Frames put side by side where they were taken from, what overlaps added up; divided by the sum of the squared windows.
def istft(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], center: bool, normalized: bool, onesided: Optional[bool], length: Optional[int], return_complex: bool) -> Tensor:
    hop = n_fft // 4
    if hop_length is not None:
        hop = hop_length
    x = self
    if self.dim() == 2:
        x = self.unsqueeze(0)
    if not torch.is_complex(x) or x.dim() != 3 or hop <= 0:
        raise RuntimeError("istft requires a complex-valued input tensor of 2 or 3 dimensions, matching the output from stft with return_complex=True.")
    half = x.size(1) != n_fft
    if onesided is not None:
        half = onesided
    norm = "backward"
    if normalized:
        norm = "ortho"
    frames = x.transpose(1, 2)
    kind = torch.real(x).dtype
    weights = helper_window(window, n_fft, win_length, kind)
    if return_complex:
        parts = torch.fft_ifft(frames, None, -1, norm)
    else:
        # Of both sides the first alone is looked at, whatever the other holds.
        if not half:
            frames = frames.narrow(-1, 0, n_fft // 2 + 1)
        parts = torch.fft_irfft(frames, n_fft, -1, norm)
    parts = parts * weights
    count = parts.size(1)
    total = n_fft + hop * (count - 1)
    out = torch.zeros([parts.size(0), total], dtype=parts.dtype)
    envelope = torch.zeros([total], dtype=weights.dtype)
    for i in range(count):
        out.narrow(1, i * hop, n_fft).add_(parts.select(1, i))
        envelope.narrow(0, i * hop, n_fft).add_(weights * weights)
    start = 0
    end = total
    if center:
        start = n_fft // 2
        end = total - n_fft // 2
    if length is not None:
        end = start + length
    kept = min(end, total)
    out = out.narrow(1, start, kept - start)
    envelope = envelope.narrow(0, start, kept - start)
    if bool(torch.any(torch.abs(envelope) < 1e-11)):
        raise RuntimeError("istft: window overlap add min: 1")
    out = out / envelope
    if end > total:
        out = torch.constant_pad_nd(out, [0, end - total])
    if self.dim() == 2:
        out = out.squeeze(0)
    return out
