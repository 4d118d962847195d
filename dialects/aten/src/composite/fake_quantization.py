# Rounding to the numbers that a quantised tensor could hold, which models trained for quantisation do.

def helper_check_range(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")

def helper_quantized(self: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    return torch.round(self * torch.reciprocal(scale)) + zero_point

def helper_rounded(quantized: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int) -> Tensor:
    return (torch.clamp(quantized, quant_min, quant_max) - zero_point) * scale

def helper_in_range(quantized: Tensor, quant_min: int, quant_max: int) -> Tensor:
    return torch.logical_and(quantized >= quant_min, quantized <= quant_max)

def helper_per_tensor(self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int) -> Tuple[Tensor, Tensor]:
    helper_check_range(quant_min, quant_max)
    x = self.to(torch.float)
    quantized = helper_quantized(x, scale, zero_point)
    return helper_rounded(quantized, scale, zero_point, quant_min, quant_max).to(self.dtype), helper_in_range(quantized, quant_min, quant_max)

def helper_per_channel(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int) -> Tuple[Tensor, Tensor]:
    if scale.dim() != 1 or zero_point.dim() != 1 or scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to be 1-D tensors of the same size")
    if axis < 0 or axis >= self.dim():
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if scale.numel() != self.size(axis):
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    shape = [1] * self.dim()
    shape[axis] = scale.numel()
    return helper_per_tensor(self, scale.to(torch.float).reshape(shape), zero_point.to(torch.float).reshape(shape), quant_min, quant_max)

def fake_quantize_per_tensor_affine(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Tensor:
    if zero_point < quant_min or zero_point > quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    out, _ = helper_per_tensor(self, torch.full([], scale, dtype=torch.float), torch.full([], float(zero_point), dtype=torch.float), quant_min, quant_max)
    return out

def fake_quantize_per_tensor_affine__tensor_qparams(self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int) -> Tensor:
    out, _ = helper_per_tensor(self, scale.to(torch.float), zero_point.to(torch.float), quant_min, quant_max)
    return out

def fake_quantize_per_tensor_affine_cachemask(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Tuple[Tensor, Tensor]:
    if zero_point < quant_min or zero_point > quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return helper_per_tensor(self, torch.full([], scale, dtype=torch.float), torch.full([], float(zero_point), dtype=torch.float), quant_min, quant_max)

def fake_quantize_per_channel_affine(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int) -> Tensor:
    out, _ = helper_per_channel(self, scale, zero_point, axis, quant_min, quant_max)
    return out

def fake_quantize_per_channel_affine_cachemask(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int) -> Tuple[Tensor, Tensor]:
    return helper_per_channel(self, scale, zero_point, axis, quant_min, quant_max)
