# What operators did before their meaning changed, in terms of what they do now. Each function is named after its operator and the
# last format version in which the operator meant this. All arguments can be given by position: that is how saved code calls a function.

def div_tensor_3(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        result = self.true_divide(other)
    else:
        result = self.divide(other, rounding_mode="trunc")
    return result

def div_scalar_3(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        result = self.true_divide(other)
    else:
        result = self.divide(other, rounding_mode="trunc")
    return result

def div__tensor_3(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        result = self.true_divide_(other)
    else:
        result = self.divide_(other, rounding_mode="trunc")
    return result

def div__scalar_3(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        result = self.true_divide_(other)
    else:
        result = self.divide_(other, rounding_mode="trunc")
    return result

def full_4(size: List[int], fill_value: number, dtype: Optional[int] = None, layout: Optional[int] = None, device: Optional[Device] = None, pin_memory: Optional[bool] = None) -> Tensor:
    if dtype is None:
        fill_value = float(fill_value)
    return torch.full(size, fill_value, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)

def linspace_7(start: number, end: number, steps: Optional[int] = None, dtype: Optional[int] = None, layout: Optional[int] = None, device: Optional[Device] = None, pin_memory: Optional[bool] = None) -> Tensor:
    if steps is None:
        result = torch.linspace(start, end, 100, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    else:
        result = torch.linspace(start, end, steps, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    return result

def logspace_8(start: number, end: number, steps: Optional[int] = None, base: float = 10.0, dtype: Optional[int] = None, layout: Optional[int] = None, device: Optional[Device] = None, pin_memory: Optional[bool] = None) -> Tensor:
    if steps is None:
        result = torch.logspace(start, end, 100, base, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    else:
        result = torch.logspace(start, end, steps, base, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    return result

# `out` has a default because it comes after arguments that have one; code always gives it.

def linspace_out_7(start: number, end: number, steps: Optional[int] = None, out: Optional[Tensor] = None) -> Tensor:
    out = torch.jit._unwrap_optional(out)
    if steps is None:
        result = torch.linspace(start, end, 100, out=out)
    else:
        result = torch.linspace(start, end, steps, out=out)
    return result

def logspace_out_8(start: number, end: number, steps: Optional[int] = None, base: float = 10.0, out: Optional[Tensor] = None) -> Tensor:
    out = torch.jit._unwrap_optional(out)
    if steps is None:
        result = torch.logspace(start, end, 100, base, out=out)
    else:
        result = torch.logspace(start, end, steps, base, out=out)
    return result
