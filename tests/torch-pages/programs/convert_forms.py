### to_forms
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("i", torch.tensor([1]))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to(None, torch.float64)
#> dtypes(m.state_dict())
#> m.to(device=None, dtype=None)
#> dtypes(m.state_dict())
#> m.to(torch.float16, True)
#> m.to("cpu:0", torch.float32, True)
#> dtypes(m.state_dict())
#> m.to(tensor=torch.zeros(1, dtype=torch.float64))
#> m.to(torch.zeros(1, dtype=torch.bfloat16), non_blocking=True)
#> dtypes(m.state_dict())
#> m.to(non_blocking=True)
#> grads(m.named_parameters())

### to_copy_is_refused
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to(torch.float64, copy=True)
#> m.to("cpu", copy=True)
#> m.to(torch.float64, False, False)
#> m.w.dtype

### to_wrong_arguments
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to(torch.channels_last)
#> m.to(torch.float64, "cpu")
#> m.to(dtype="float64")
#> m.to(other=torch.ones(1))
#> m.to(torch.ones(1), torch.float64)
#> m.to([1])
#> m.to(memory_format="channels_last")
#> m.to("cpu", torch.float64, False, False, 1)
#> m.w.dtype

### to_device_strings
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to("float64")
#> m.to("cpu:x")
#> m.to("cpu:01")
#> m.to(":0")
#> m.to("")
#> m.to("gpu")
#> m.w.device

### to_memory_formats
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(24.).view(2, 3, 2, 2))
        self.one = nn.Parameter(torch.ones(2, 1, 2, 2))
        self.point = nn.Parameter(torch.ones(2, 3, 1, 1))
        self.m = nn.Parameter(torch.ones(2, 2))
        self.register_buffer("b", torch.arange(12).view(1, 3, 2, 2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to(memory_format=torch.channels_last)
#> m.w.stride()
#> m.one.stride()
#> m.point.stride()
#> m.m.stride()
#> m.b.stride()
#> m.w
#> m.half()
#> m.w.stride()
#> m.to(torch.float64, memory_format=torch.preserve_format)
#> m.w.stride()
#> again(m).w.stride()
#> m.to(memory_format=torch.contiguous_format)
#> m.w.stride()
#> m.point.stride()
#> m.to(torch.float32, memory_format=torch.channels_last)
#> m.w.stride()
#> m(torch.ones(1, 3, 2, 2))

### to_memory_format_of_volumes
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(48.).view(2, 3, 2, 2, 2))
        self.b = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return F.conv3d(x, self.w, self.b)
#> m = torch.jit.script(M().eval())
#> m.to(memory_format=torch.channels_last)
#> m.w.stride()
#> m.to(memory_format=torch.channels_last_3d)
#> m.w.stride()
#> m(torch.ones(1, 3, 2, 2, 2))

### to_memory_format_of_images
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 3, 2, 2))
    def forward(self, x):
        return F.conv2d(x, self.w)
#> m = torch.jit.script(M().eval())
#> m.to(memory_format=torch.channels_last_3d)
#> m.w.stride()

### to_meta_and_back
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.t = torch.ones(1)
    def forward(self, x):
        return x * self.w + self.t
#> m = eager(M().eval())
#> m.to("meta")
#> m.double()
#> m.to("cpu")
#> m.cpu()
#> m.to(device="meta")
#> m(torch.ones(2))
#> m.to_empty(device="cpu")
#> dtypes(m.state_dict())
#> grads(m.named_parameters())
#> m.t.dtype

### meta_is_assigned
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.ones(2))
    def forward(self, x):
        return x * self.w + self.b
#> m = torch.jit.script(M().eval())
#> m.to("meta")
#> m.load_state_dict({"w": torch.full((2,), 3.), "b": torch.ones(2)}, assign=True)
#> m(torch.ones(2))
#> grads(m.named_parameters())

### to_empty_of_own
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.v = nn.Parameter(torch.ones(3))
    def forward(self, x):
        return self.sub(x)
#> m = eager(M().eval())
#> m.to_empty(device="cpu", recurse=False)
#> m.sub.w
#> shapes(m.state_dict())
#> m.to_empty(device=None)
#> m.sub.to_empty(device="cpu")
#> m.to_empty("cpu")
#> m.to_empty(device="nowhere")

### type_names
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("i", torch.tensor([1]))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.type("torch.HalfTensor")
#> dtypes(m.state_dict())
#> m.type("torch.BFloat16Tensor")
#> m.type(dst_type=torch.float64)
#> dtypes(m.state_dict())
#> m.type("DoubleTensor")
#> m.type("torch.float64")
#> m.type("x")
#> m.type(torch.int32)
#> m.type("torch.LongTensor")
#> m.type(torch.DoubleTensor)
#> grads(m.named_parameters())
#> m.type("torch.ComplexDoubleTensor")
#> dtypes(m.state_dict())

### type_of_submodule
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.full((2,), 2.5))
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
#> m.a.type(torch.int64)
#> dtypes(m.state_dict())
#> m.b.type("torch.ByteTensor")
#> m(torch.ones(2))
#> m.a.float()
#> m.a.w.dtype
#> same(m.a.double(), m.a)
#> m.a.to(torch.int32)

### deep_submodule
#< m = torch.jit.script(nn.Sequential(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)), nn.Linear(1, 1)).eval())
#> m.apply(lambda s: s.half())
#> dtypes(m.state_dict())

### shared_parameter_of_submodule
class Sub(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        w = nn.Parameter(torch.ones(2))
        self.a = Sub(w)
        self.b = Sub(w)
    def forward(self, x):
        return self.a(x), self.b(x)
#> m = torch.jit.script(M().eval())
#> m.a.double()
#> m.b.w.dtype
#> names(m.named_parameters())

### buffer_is_another_tensor
class M(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.ones(2)
        self.register_buffer("b", t)
        self.t = t
    def forward(self, x):
        return x + self.b + self.t
#> m = torch.jit.script(M().eval())
#> m.double()
#> m.b.dtype
#> m.t.dtype

### converted_requires_grad
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.v = nn.Parameter(torch.ones(2), requires_grad=False)
        self.i = nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False)
    def forward(self, x):
        return x * self.w * self.v + self.i
#> m = torch.jit.script(M().eval())
#> m.half()
#> grads(m.named_parameters())
#> m.double()
#> m.w.requires_grad
#> n = again(m)
#> grads(n.named_parameters())
#> m.type(torch.float64)
#> dtypes(m.named_parameters())
#> grads(m.named_parameters())

### requires_grad_of_a_tensor
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.v = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w + self.v
#> m = torch.jit.script(M().eval())
#> m.w.requires_grad_(False)
#> grads(m.named_parameters())
#> m.v.requires_grad = False
#> m.w.requires_grad = True
#> grads(m.named_parameters())
#> grads(again(m).named_parameters())
#> m.w = torch.zeros(2)
#> m.v = nn.Parameter(torch.zeros(2))
#> grads(m.named_parameters())

### requires_grad_wrong
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.i = nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False)
    def forward(self, x):
        return x + self.i
#> m = eager(M().eval())
#> m.requires_grad_(True)
#> m.requires_grad_(False)
#> m.requires_grad_("yes")
#> same(m.requires_grad_(requires_grad=False), m)

### float_and_cpu_take_nothing
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.half(1)
#> m.cpu(1)
#> m.type()
#> m.zero_grad(1, 2)
#> m.zero_grad(False)
#> m.share_memory()
#> m.w

### submodule_modes
class Sub(nn.Module):
    def forward(self, x):
        if self.training:
            return x + 1
        return x
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(Sub(), Sub())
        self.b = Sub()
    def forward(self, x):
        return self.a(x), self.b(x)
#> m = torch.jit.script(M().eval())
#> m.a.train()
#> m(torch.zeros(1))
#> m.a.eval()
#> m.b.train(True)
#> m(torch.zeros(1))
#> same(m.b.eval(), m.b)
#> m.training
#> m.apply(lambda s: s.train())
#> m.b.apply(lambda s: s.eval())
#> m(torch.zeros(1))

### apply_converts
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
        self.b = nn.Sequential(Sub())
    def forward(self, x):
        return self.b(self.a(x))
#> m = torch.jit.script(M().eval())
#> m.apply(lambda s: s.double())
#> dtypes(m.named_parameters())
#> m.b.apply(lambda s: s.to(torch.float16))
#> dtypes(m.named_parameters())

### parts_of_parts
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(1, 1)
        self.bn = nn.BatchNorm1d(1)
    def forward(self, x):
        return self.bn(self.fc(x))
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Inner()
        self.b = nn.Linear(1, 1)
    def forward(self, x):
        return self.b(self.a(x))
#> m = torch.jit.script(M().eval())
#> m.a.half()
#> dtypes(m.state_dict())
#> m.a.bn.float()
#> dtypes(m.state_dict())
#> next(m.parameters()).dtype
#> next(m.b.parameters()).requires_grad
#> list(m.parameters())[1].dtype
#> m.b.weight.requires_grad_(False).dtype
#> grads(m.named_parameters())
#> m.a.fc.bias.requires_grad = False
#> grads(m.named_parameters())
#> m.a.train()
#> m.a.bn.training
#> m.training
#> m.a.load_state_dict({"fc.weight": torch.ones(1, 1)}, strict=False)
#> m.a.state_dict(prefix="p.")["p.fc.weight"]

### frozen_has_nothing_to_convert
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f.half()
#> f.to(torch.float64)
#> f.state_dict()
#> f(torch.ones(2)).dtype
#> f.load_state_dict({})
#> f.load_state_dict({"w": torch.ones(2)})

### loaded_with_other_types
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("i", torch.tensor([1, 2]))
    def forward(self, x):
        return x * self.w + self.i
#> m = torch.jit.script(M().eval())
#> m.half()
#> m.load_state_dict({"w": torch.tensor([0.1, 1000.3]), "i": torch.tensor([2.7, -1.5])})
#> m.w
#> m.i
#> m.double()
#> m.load_state_dict({"w": torch.tensor([1, 2], dtype=torch.uint8), "i": torch.tensor([True, False])})
#> m.w
#> m.i
#> m.to(torch.complex64)
#> m.load_state_dict({"w": torch.tensor([1 + 2j, 3.])}, strict=False)
#> m.w
