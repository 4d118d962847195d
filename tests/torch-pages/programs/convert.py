### half
#< m = torch.jit.script(nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)).eval())
#> m.half()
#> dtypes(m.named_parameters())
#> dtypes(m.named_buffers())
#> same(m.half(), m)

### bfloat16
#> m = eager(nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)).eval())
#> m.bfloat16()
#> dtypes(m.state_dict())
#> m(torch.ones(1, 2, dtype=torch.bfloat16)).dtype

### double
#< m = torch.jit.script(nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)).eval())
#> m.double()
#> dtypes(m.state_dict())
#> m(torch.ones(1, 2, dtype=torch.float64))

### float
#< m = torch.jit.script(nn.Sequential(nn.Linear(2, 1)).double().eval())
#> dtypes(m.state_dict())
#> m.float()
#> dtypes(m.state_dict())
#> m(torch.ones(1, 2))

### in_place
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> n = m
#> m.double()
#> n.w.dtype
#> same(m.double(), m)
#> same(m.float(), m)
#> same(m.cpu(), m)
#> same(m.to(torch.float32), m)
#> same(m.type(torch.float64), m)

### integers_stay
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("i", torch.tensor([1, 2]))
        self.register_buffer("u", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("b", torch.tensor([True]))
        self.register_buffer("f", torch.ones(1))
    def forward(self, x):
        return x + self.i + self.f
#> m = torch.jit.script(M().eval())
#> m.half()
#> dtypes(m.named_buffers())
#> m.to(torch.float64)
#> dtypes(m.named_buffers())

### to_dtype
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to(torch.float64)
#> m.w.dtype
#> m.to(dtype=torch.float16)
#> m.w.dtype
#> m.to(torch.float32, non_blocking=True)
#> m.w.dtype

### to_integer_dtype
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to(torch.int32)
#> m.to(torch.bool)

### to_device
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to("cpu")
#> m.to(torch.device("cpu"))
#> m.to(device="cpu")
#> m.w.device

### to_device_and_dtype
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to("cpu", torch.float64)
#> m.w.dtype
#> m.to(device="cpu", dtype=torch.float16, non_blocking=False)
#> m.w.dtype

### to_tensor
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to(torch.zeros(1, dtype=torch.float64))
#> m.w.dtype
#> m.to(torch.zeros(1, dtype=torch.int64))

### to_memory_format
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 3, 2, 2))
        self.b = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return F.conv2d(x, self.w, self.b)
#> m = torch.jit.script(M().eval())
#> m.to(memory_format=torch.channels_last)
#> m.w.is_contiguous()
#> m.w.stride()
#> m.b.stride()
#> m(torch.ones(1, 3, 2, 2))

### to_complex
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to(torch.complex64)
#> m.w
#> m(torch.ones(2, dtype=torch.complex64))

### to_complex_then_real
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.double()
#> m.w.dtype

### to_without_arguments
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.to()

### to_unknown_device
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to("nowhere")

### to_meta
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to("meta")

### to_keeps_requires_grad
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.v = nn.Parameter(torch.ones(2), requires_grad=False)
    def forward(self, x):
        return x * self.w * self.v
#> m = torch.jit.script(M().eval())
#> m.to(torch.float64)
#> grads(m.named_parameters())

### to_of_a_submodule
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Sub()
        self.b = Sub()
    def forward(self, x):
        return self.a(x), self.b(x)
#> m = torch.jit.script(M().eval())
#> m.a.to(torch.float64)
#> dtypes(m.named_parameters())
#> m.b.half()
#> dtypes(m.named_parameters())

### plain_tensor_attribute_stays
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = torch.ones(1)
        self.l = [torch.ones(1)]
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w + self.t + self.l[0]
#> m = torch.jit.script(M().eval())
#> m.double()
#> m.t.dtype
#> m.w.dtype

### type_to
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("i", torch.tensor([1]))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.type(torch.float64)
#> dtypes(m.state_dict())
#> m.type(torch.float16)
#> dtypes(m.state_dict())

### type_to_integer
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.full((2,), 2.5))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.type(torch.int64)
#> m.w

### type_by_name
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.type("torch.DoubleTensor")
#> m.w.dtype

### cpu
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.cpu()
#> m.w.device
#> m(torch.ones(2))

### to_empty
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 3))
        self.register_buffer("b", torch.ones(1, dtype=torch.int64))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> m.to_empty(device="cpu")
#> shapes(m.state_dict())
#> dtypes(m.state_dict())

### to_empty_without_device
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.to_empty()

### half_runs
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, 2.]))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.half()
#> m(torch.ones(2, dtype=torch.float16))
#> m(torch.ones(2)).dtype

### half_rounds
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.1, 1000.3, 70000.]))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.half()
#> m.w
#> m.float()
#> m.w

### double_and_back
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.1, 0.2]))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.double()
#> m.w
#> m.float()
#> m.w

### converted_then_saved
#< m = torch.jit.script(nn.Sequential(nn.Linear(2, 1)).eval())
#> m.double()
#> n = again(m)
#> dtypes(n.state_dict())
#> n(torch.ones(1, 2, dtype=torch.float64))

### shared_parameters_stay_shared
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(1))
        self.b = self.a
    def forward(self, x):
        return x * self.a * self.b
#> m = torch.jit.script(M().eval())
#> m.double()
#> names(m.named_parameters())
#> dtypes(m.named_parameters())
