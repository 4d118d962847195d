### hook_always_call_after_an_error
class M(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            raise ValueError("too much")
        return x
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, output: args[0].add_(1), always_call=True)
#> x = torch.ones(1)
#> m(x)
#> x
#> y = torch.full((1,), -1.)
#> m(y)
#> y

### hook_without_always_call_after_an_error
class M(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            raise ValueError("too much")
        return x
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, output: args[0].add_(1))
#> x = torch.ones(1)
#> m(x)
#> x

### hook_always_call_with_kwargs
class M(nn.Module):
    def forward(self, x, k: int = 2):
        assert k > 0
        return x * k
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, kwargs, output: args[0].add_(kwargs["k"]), with_kwargs=True, always_call=True)
#> x = torch.ones(1)
#> m(x, k=-5)
#> x
#> m(torch.ones(1), k=3)

### hook_always_call_prepended
class M(nn.Module):
    def forward(self, x):
        assert x.sum() < 0
        return x
#> m = eager(M().eval())
#> a = m.register_forward_hook(lambda module, args, output: args[0].mul_(10), always_call=True)
#> b = m.register_forward_hook(lambda module, args, output: args[0].add_(1), always_call=True, prepend=True)
#> x = torch.ones(1)
#> m(x)
#> x
#> b.remove()
#> m(x)
#> x

### hook_always_call_of_pre_hooks
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.register_forward_pre_hook(lambda module, args: None, always_call=True)

### pre_hook_list
class M(nn.Module):
    def forward(self, x: List[Tensor]):
        return x[0] + len(x)
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args: [args[0][0], args[0][0]])
#> m([torch.ones(1)])

### pre_hook_empty_tuple
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args: ())
#> m(torch.ones(1))

### pre_hook_wrong_number
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args, kwargs: (args, kwargs, args), with_kwargs=True)
#> m(torch.ones(1))

### pre_hook_value_with_kwargs
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
#> m(torch.ones(1))

### pre_hook_list_with_kwargs
class M(nn.Module):
    def forward(self, x, k: int = 1):
        return x * k
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args, kwargs: ([args[0] + 1], kwargs), with_kwargs=True)
#> m(torch.ones(1), k=3)

### pre_hook_kwargs_none
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args, kwargs: (args, None), with_kwargs=True)
#> m(torch.ones(1))

### pre_hook_moves_arguments
class M(nn.Module):
    def forward(self, x, k: int = 1, s: float = 1.):
        return x * k + s
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args, kwargs: ((args[0], kwargs["k"]), {"s": 0.5}), with_kwargs=True)
#> m(torch.ones(1), k=3)
#> g = m.register_forward_hook(lambda module, args, kwargs, output: (args, kwargs, output), with_kwargs=True)
#> m(torch.ones(1), k=3)

### pre_hooks_mixed
class M(nn.Module):
    def forward(self, x, k: int = 1):
        return x * k
#> m = eager(M().eval())
#> a = m.register_forward_pre_hook(lambda module, args: args[0] + 1)
#> b = m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"k": kwargs["k"] + 1}), with_kwargs=True, prepend=True)
#> c = m.register_forward_pre_hook(lambda module, args: args[0] * 2, prepend=True)
#> m(torch.ones(1), k=3)
#> c.remove()
#> m(torch.ones(1), k=3)
#> a.remove()
#> m(torch.ones(1), k=3)

### hooks_use_the_module
class M(nn.Module):
    k: Final[int]
    def __init__(self):
        super().__init__()
        self.k = 3
        self.n = 5
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> a = m.register_forward_pre_hook(lambda module, args: args[0] * module.k)
#> b = m.register_forward_hook(lambda module, args, output: output + module.n)
#> m(torch.ones(1))

### hooks_stay_when_the_mode_changes
class M(nn.Module):
    def forward(self, x):
        if self.training:
            return x + 1
        return x
#> m = eager(M())
#> h = m.register_forward_hook(lambda module, args, output: output * 10)
#> m(torch.ones(1))
#> m.eval()
#> m(torch.ones(1))
#> h.remove()
#> m(torch.ones(1))

### hooks_of_a_module_inside
class Inner(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        return self.inner(x) + 1
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> m = eager(M().eval())
#> a = m.sub.inner.register_forward_pre_hook(lambda module, args, kwargs: (args, {"k": 10}), with_kwargs=True)
#> m.sub.inner(torch.ones(1))
#> m.sub.inner.forward(torch.ones(1))
#> m.sub.inner(torch.ones(1), k=5)
#> a.remove()
#> m.sub.inner(torch.ones(1), k=5)

### submodule_called_with_its_hooks
class Inner(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * 2
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x: Tensor) -> Tensor:
        return self.sub(x)
def before(self, args: Tuple[Tensor]) -> Tensor:
    return args[0] * 10
def before_too(self, args: Tuple[Tensor]) -> None:
    args[0].add_(1)
def after(self, args: Tuple[Tensor], output: Tensor) -> Tensor:
    return output + args[0]
#< e = M().eval()
#< e.sub.inner.register_forward_pre_hook(before)
#< e.sub.inner.register_forward_pre_hook(before_too)
#< e.sub.inner.register_forward_hook(after)
#< e.sub.register_forward_hook(after)
#< m = torch.jit.script(e)
#> m(torch.ones(1))
#> m.forward(torch.ones(1))
#> m.sub(torch.ones(1))
#> m.sub.forward(torch.ones(1))
#> m.sub.inner(torch.ones(1))
#> m.sub.inner.forward(torch.ones(1))
#> n = again(m)
#> n.sub.inner(torch.ones(1))

### submodule_called_with_hooks_of_other_signatures
class Sub(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        return x + n
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x: Tensor) -> Tensor:
        return self.sub(x, 3)
def before(self, args: Tuple[Tensor, int]) -> Tuple[Tensor, int]:
    return (args[0], args[1] * 10)
def after(self, args: Tuple[Tensor, int], output: Tensor) -> Tensor:
    return output * args[1]
#< e = M().eval()
#< e.sub.register_forward_pre_hook(before)
#< e.sub.register_forward_hook(after)
#< m = torch.jit.script(e)
#> m(torch.ones(1))
#> m.sub(torch.ones(1), 2)
#> m.sub.forward(torch.ones(1), 2)
#> m.sub(torch.ones(1))
#> m.sub("text", 2)
#> m.sub(x=torch.ones(1), n=2)

### submodule_hook_raises
class Sub(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x: Tensor) -> Tensor:
        return x
def before(self, args: Tuple[Tensor]) -> None:
    assert args[0].sum() < 0, "not negative"
#< e = M().eval()
#< e.sub.register_forward_pre_hook(before)
#< m = torch.jit.script(e)
#> m.sub(torch.ones(1))
#> m.sub.forward(torch.ones(1))
#> m.sub(torch.full((1,), -1.))

### submodule_called_without_hooks
class Sub(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k
    @torch.jit.export
    def other(self, x):
        return x - 1
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> m = torch.jit.script(M().eval())
#> m.sub(torch.ones(1))
#> m.sub(torch.ones(1), 5)
#> m.sub(torch.ones(1), k=7)
#> m.sub.other(torch.ones(1))
#> m.sub()
#> m.sub(torch.ones(1), z=3)
#> m.nothing(torch.ones(1))

### submodule_without_forward
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return x * self.sub.w
#> m = torch.jit.script(M().eval())
#> m(torch.ones(1))
#> m.sub.w
#> str(m)

### submodule_keeps_state
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        return x + self.n
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x: Tensor) -> Tensor:
        return self.sub(x) * 10
#> m = torch.jit.script(M().eval())
#> m(torch.zeros(1))
#> m.sub(torch.zeros(1))
#> m(torch.zeros(1))
#> m.sub.n

### constants_of_all_types
class M(nn.Module):
    i: Final[int]
    f: Final[float]
    b: Final[bool]
    s: Final[str]
    l: Final[List[int]]
    t: Final[Tuple[int, float]]
    o: Final[Optional[int]]
    def __init__(self):
        super().__init__()
        self.i = 2
        self.f = 2.5
        self.b = True
        self.s = "text"
        self.l = [1, 2]
        self.t = (1, 2.5)
        self.o = None
    def forward(self, x):
        return x * self.i
#> m = torch.jit.script(M().eval())
#> m.i
#> m.f
#> m.b
#> m.s
#> m.l
#> m.t
#> m.o
#> m.i = 3
#> m.f = 3.5
#> m.b = False
#> m.s = "other"
#> m.l = [3]
#> m.t = (2, 2.)
#> m.o = 1
#> m(torch.ones(1))
#> n = again(m)
#> n.s
#> n.l
#> n.i = 5

### constants_of_submodules
class Sub(nn.Module):
    __constants__ = ["k", "name"]
    def __init__(self, k: int):
        super().__init__()
        self.k = k
        self.name = "sub"
    def forward(self, x):
        return x * self.k
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Sub(2)
        self.b = Sub(3)
        self.bn = nn.BatchNorm1d(3)
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        return self.fc(self.bn(self.b(self.a(x))))
#> m = torch.jit.script(M().eval())
#> m.a.k
#> m.b.k
#> m.a.name
#> m.a.k = 4
#> m.b.name = "else"
#> m.bn.num_features
#> m.bn.eps
#> m.bn.momentum
#> m.bn.affine
#> m.bn.track_running_stats
#> m.fc.in_features
#> m.fc.out_features
#> m.fc.in_features = 2

### constants_of_layers
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2, padding=(1, 0), groups=3)
        self.pool = nn.MaxPool2d(2, padding=1)
        self.drop = nn.Dropout(0.25)
        self.norm = nn.LayerNorm([4], eps=1e-3)
        self.group = nn.GroupNorm(3, 6)
        self.act = nn.LeakyReLU(0.2)
        self.soft = nn.Softmax(dim=-1)
        self.flat = nn.Flatten(1, 2)
        self.emb = nn.Embedding(5, 3)
    def forward(self, x):
        return self.conv(x)
#> m = torch.jit.script(M().eval())
#> m.conv.stride
#> m.conv.padding
#> m.conv.dilation
#> m.conv.groups
#> m.conv.in_channels
#> m.conv.kernel_size
#> m.conv.padding_mode
#> m.conv.transposed
#> m.conv.output_padding
#> m.pool.kernel_size
#> m.pool.stride
#> m.pool.padding
#> m.pool.ceil_mode
#> m.drop.p
#> m.drop.inplace
#> m.norm.normalized_shape
#> m.norm.eps
#> m.group.num_groups
#> m.act.negative_slope
#> m.soft.dim
#> m.flat.start_dim
#> m.flat.end_dim
#> m.emb.num_embeddings
#> m.emb.embedding_dim
#> m.emb.padding_idx

### constants_of_classes
class M(nn.Module):
    k: Final[int] = 3
    s: Final = "text"
    def forward(self, x):
        return x * self.k
#> m = torch.jit.script(M().eval())
#> m.k
#> m.s
#> m(torch.ones(1))
#> m.k = 4
#> again(m).k

### constants_stay_in_frozen_modules
class M(nn.Module):
    k: Final[int]
    def __init__(self):
        super().__init__()
        self.k = 2
        self.n = 3
    def forward(self, x):
        return x * self.k + self.n
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f.k
#> f.n
#> f(torch.ones(1))

### attribute_that_is_missing
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.nothing

### text_of_containers
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
        self.d = nn.ModuleDict({"a": nn.Tanh(), "b": nn.Sequential(nn.ReLU())})
        self.empty = nn.Sequential()
    def forward(self, x):
        for layer in self.l:
            x = layer(x)
        return self.d["a"](x)
#> m = torch.jit.script(M().eval())
#> str(m)
#> str(m.l)
#> str(m.d)
#> str(m.d.b)
#> str(m.empty)
#> m.l.extra_repr()

### text_of_shared_modules
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()
        self.b = self.a
        self.net = nn.Sequential(self.a, self.a)
    def forward(self, x):
        return self.net(self.b(self.a(x)))
#> m = torch.jit.script(M().eval())
#> str(m)

### text_of_frozen_modules
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
    def forward(self, x):
        return self.a(x)
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> str(f)
#> str(again(m))

### text_of_deep_modules
#< m = torch.jit.script(nn.Sequential(nn.Sequential(nn.Sequential(nn.Sequential(nn.ReLU())))).eval())
#> str(m)

### text_of_traced_modules_with_functions
class Sub(nn.Module):
    def forward(self, x):
        return x + 1
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.drop = nn.Dropout()
    def forward(self, x):
        return self.drop(self.sub(x))
#< m = torch.jit.trace(M().eval(), torch.ones(2))
#> str(m)
#> str(m.sub)
#> m.sub.original_name

### named_members_of_parts
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
        self.register_buffer("b", torch.zeros(1))
        self.act = nn.ReLU()
    def forward(self, x):
        return self.act(x * self.w + self.b)
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = Sub()
        self.two = Sub()
    def forward(self, x):
        return self.two(self.one(x))
#> m = torch.jit.script(M().eval())
#> names(m.one.named_parameters(prefix="p"))
#> names(m.one.named_buffers("p"))
#> names(m.one.named_modules(prefix="p"))
#> names(m.one.named_children())
#> names(m.named_parameters("a.b"))
#> names(m.named_parameters("p", recurse=False))
#> names(m.named_buffers(recurse=True, prefix=""))
#> names(m.named_modules(None))
#> names(m.named_modules(memo=None, prefix="q", remove_duplicate=True))
#> m.named_parameters(alien=3)
#> m.named_children(prefix="p")

### named_members_of_shared_modules
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
        self.register_buffer("b", torch.zeros(1))
    def forward(self, x):
        return x * self.w + self.b
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = Sub()
        self.two = self.one
        self.v = self.one.w
    def forward(self, x):
        return self.two(self.one(x))
#> m = eager(M().eval())
#> names(m.named_parameters())
#> names(m.named_parameters(remove_duplicate=False))
#> names(m.named_buffers())
#> names(m.named_buffers("p", True, False))
#> names(m.named_modules())
#> names(m.named_modules(remove_duplicate=False))
#> names(m.named_children())
#> names(m.state_dict())

### buffers_that_are_none
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", None)
        self.register_buffer("b", torch.ones(1))
        self.register_parameter("p", None)
    def forward(self, x):
        if self.a is not None:
            return x + 1
        return x
#> m = torch.jit.script(M().eval())
#> m.a
#> m.p
#> names(m.named_buffers())
#> names(m.named_parameters())
#> names(m.state_dict())
#> m.a = None
#> m.a = torch.ones(1)
#> m(torch.ones(1))
#> n = again(m)
#> n.a
#> n.p
#> names(n.named_buffers())

### buffer_none_then_a_tensor
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.register_buffer("b", None)
#> m.b
#> names(m.named_buffers())
#> names(m.state_dict())
#> m.b = torch.ones(2)
#> m.b
#> names(m.named_buffers())
#> names(m.state_dict())
#> m.b = None
#> m.b
#> names(m.state_dict())
#> m.register_buffer("b", torch.zeros(1))
#> m.b
#> m.register_buffer("b", None)
#> m.b
#> m(torch.ones(1))

### parameter_none_then_a_tensor
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.register_parameter("p", None)
#> m.p
#> names(m.named_parameters())
#> m.register_parameter("p", nn.Parameter(torch.ones(2)))
#> m.p
#> names(m.named_parameters())

### names_of_registered_things
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 3
        self.sub = nn.ReLU()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.register_buffer("", torch.ones(1))
#> m.register_buffer("a.b", torch.ones(1))
#> m.register_buffer("n", torch.ones(1))
#> m.register_buffer("sub", torch.ones(1))
#> m.register_buffer("forward", torch.ones(1))
#> m.register_buffer("w", torch.ones(1))
#> m.register_parameter("", None)
#> m.register_parameter("a.b", None)
#> m.register_parameter("n", None)
#> m.register_parameter("sub", None)
#> m.add_module("", m.sub)
#> m.add_module("a.b", m.sub)
#> m.add_module("n", m.sub)
#> m.add_module("w", m.sub)
#> m.add_module("forward", m.sub)
#> m.register_module("a.b", m.sub)
#> names(m.named_modules())
#> names(m.named_parameters())

### modules_under_more_names
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.seq = nn.Sequential(nn.ReLU())
    def forward(self, x):
        return self.seq(x)
#> m = eager(M().eval())
#> m.add_module("more", m.seq)
#> m.register_module("again_", m.a)
#> names(m.named_modules())
#> names(m.named_modules(remove_duplicate=False))
#> names(m.named_children())
#> m(torch.ones(2))

### module_of_the_same_class_inside
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 2
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.k
#> m = eager(M().eval())
#> s = eager(M().eval())
#> m.add_module("more", s)
#> u = eager(M().eval())
#> m.more.add_module("most", u)
#> names(m.named_modules())
#> names(m.named_parameters())
#> m(torch.ones(1))
#> m.more(torch.ones(1))

### set_submodule_of_another_class
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()
        self.seq = nn.Sequential(nn.ReLU(), nn.Identity())
    def forward(self, x):
        return self.seq(self.a(x))
#> m = eager(M().eval())
#> m(torch.full((1,), -2.))
#> t = eager(nn.Identity())
#> m.set_submodule("a", t)
#> u = eager(nn.Identity())
#> m.set_submodule("seq.0", u)
#> m(torch.full((1,), -2.))
#> n = eager(nn.LeakyReLU(0.5))
#> m.set_submodule("seq.1", n)
#> m(torch.full((1,), -2.))
#> names(m.named_modules())

### set_submodule_of_one_of_two
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()
    def forward(self, x):
        return self.act(x)
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = Sub()
        self.two = Sub()
    def forward(self, x):
        return self.one(x), self.two(x)
#> m = eager(M().eval())
#> t = eager(nn.Identity())
#> m.set_submodule("two.act", t)
#> m(torch.full((1,), -2.))
#> u = eager(nn.Identity())
#> m.set_submodule("one.more", u)
#> names(m.named_modules())

### set_submodule_errors
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()
        self.n = 3
        self.register_buffer("b", torch.ones(1))
    def forward(self, x):
        return self.a(x)
#> m = eager(M().eval())
#> m.set_submodule("", m.a)
#> m.set_submodule("none.a", m.a)
#> m.set_submodule("b.a", m.a)
#> m.set_submodule("n.a", m.a)
#> m.set_submodule("n", m.a)
#> m.set_submodule("b", m.a)
#> m.set_submodule("new", m.a, strict=True)
#> m.set_submodule("new", m.a, True)
#> m.set_submodule("new", m.a, strict=False)
#> m.set_submodule("a", m.a, strict=True)
#> names(m.named_modules())

### get_members_errors
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(1, 1)
        self.n = 3
        self.register_buffer("b", torch.ones(1))
    def forward(self, x):
        return self.a(x)
#> m = eager(M().eval())
#> m.get_submodule("nothing")
#> m.get_submodule("n")
#> m.get_submodule("b")
#> m.get_submodule("a.weight")
#> m.get_submodule("a.nothing.more")
#> m.get_parameter("b")
#> m.get_parameter("a")
#> m.get_parameter("nothing")
#> m.get_parameter("nothing.weight")
#> m.get_buffer("a.weight")
#> m.get_buffer("n")
#> m.get_buffer("n.b")

### onednn_fusion_is_switched
def f(x):
    return torch.relu(x + 1)
#> g = torch.jit.script(f)
#> torch.jit.enable_onednn_fusion(True)
#> torch.jit.onednn_fusion_enabled()
#> g(torch.tensor([-3., 1.]))
#> torch.jit.enable_onednn_fusion(False)
#> torch.jit.onednn_fusion_enabled()
#> g(torch.tensor([-3., 1.]))

### old_style_module_with_parts
class Sub(torch.jit.ScriptModule):
    __constants__ = ["n"]
    def __init__(self, n: int):
        super().__init__()
        self.n = n
        self.b = torch.jit.Attribute(0.5, float)
    @torch.jit.script_method
    def forward(self, x):
        return x * self.n + self.b
class M(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.one = Sub(2)
        self.two = Sub(3)
        self.register_buffer("c", torch.ones(1))
    @torch.jit.script_method
    def forward(self, x):
        return self.two(self.one(x)) + self.c
#> m = M()
#> m(torch.ones(1))
#> m.one.n
#> m.two.n
#> m.one.b
#> m.one(torch.ones(1))
#> m.two.n = 5
#> names(m.named_modules())
#> names(m.named_buffers())

### hooks_of_all_modules
class Sub(nn.Module):
    def forward(self, x):
        return x + 1
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x) * 2
#> m = torch.jit.script(M().eval())
#> a = torch.nn.modules.module.register_module_forward_hook(lambda module, args, output: output * 10)
#> m(torch.ones(1))
#> m.sub(torch.ones(1))
#> m.forward(torch.ones(1))
#> b = torch.nn.modules.module.register_module_forward_pre_hook(lambda module, args: args[0] + 1)
#> m(torch.ones(1))
#> m.sub(torch.ones(1))
#> c = torch.nn.modules.module.register_module_forward_hook(lambda module, args, kwargs, output: (module.original_name, args, kwargs, output), with_kwargs=True)
#> m(torch.ones(1))
#> m.sub(torch.ones(1))
#> c.remove()
#> a.remove()
#> m(torch.ones(1))
#> b.remove()
#> m(torch.ones(1))

### hooks_of_all_modules_run_first
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> a = m.register_forward_hook(lambda module, args, output: output + 1)
#> b = m.register_forward_pre_hook(lambda module, args: args[0] + 5)
#> c = torch.nn.modules.module.register_module_forward_hook(lambda module, args, output: output * 10)
#> d = torch.nn.modules.module.register_module_forward_pre_hook(lambda module, args: args[0] * 3)
#> m(torch.ones(1))
#> c.remove()
#> m(torch.ones(1))
#> d.remove()
#> m(torch.ones(1))

### hooks_of_all_modules_after_an_error
class M(nn.Module):
    def forward(self, x):
        assert x.sum() < 0
        return x
#> m = torch.jit.script(M().eval())
#> a = torch.nn.modules.module.register_module_forward_hook(lambda module, args, output: args[0].add_(1), always_call=True)
#> x = torch.ones(1)
#> m(x)
#> x
#> a.remove()
#> m(x)
#> x

### hooks_of_frozen_modules
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = nn.ReLU()
    def forward(self, x):
        return self.sub(x) + 1
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> a = torch.nn.modules.module.register_module_forward_hook(lambda module, args, output: output * 10)
#> f(torch.ones(1))
#> f.forward(torch.ones(1))

### layers_of_other_sizes
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    def forward(self, x):
        return self.net(x)
#> m = eager(M().eval())
#> w = eager(nn.Linear(3, 5))
#> m.set_submodule("net.2", w)
#> m.net(torch.ones(4, 2)).shape
#> m(torch.ones(4, 2)).shape
#> m.net.get_submodule("2").out_features
#> m.net.get_submodule("0").out_features
#> c = eager(nn.Linear(5, 1, bias=False))
#> m.net.add_module("3", c)
#> names(m.named_modules())
#> names(m.named_parameters())

### registered_in_submodules
class Sub(nn.Module):
    def forward(self, x):
        return x
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = Sub()
        self.two = Sub()
    def forward(self, x):
        return self.two(self.one(x))
#> m = eager(M().eval())
#> m.one.register_buffer("b", torch.ones(1))
#> m.two.register_parameter("p", nn.Parameter(torch.zeros(1)))
#> m.one.register_buffer("none", None)
#> names(m.named_buffers())
#> names(m.named_parameters())
#> m.two.register_buffer("a.b", None)
#> m.one.b
#> m.two.b
#> m(torch.ones(1))
#> m.one(torch.ones(1))

### old_style_attributes_are_read
class M(torch.jit.ScriptModule):
    __constants__ = ["k", "names"]
    def __init__(self):
        super().__init__()
        self.k = 2
        self.names = ("a", "b")
        self.w = nn.Parameter(torch.ones(2))
        self.d = torch.jit.Attribute({"a": 1}, Dict[str, int])
    @torch.jit.script_method
    def forward(self, x):
        return x * self.k + self.d["a"]
    @torch.jit.script_method
    def other(self, x: int):
        return x + self.k
#> m = M()
#> m.k
#> m.names
#> m.d
#> m.k = 3
#> m.d = {"b": 2}
#> m.d
#> m.other(3)
#> m.forward(torch.ones(2))
#> methods(m)

### buffers_not_persistent
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(1))
    def forward(self, x):
        return x + self.a
#> m = eager(M().eval())
#> m.register_buffer("c", torch.ones(2), persistent=False)
#> names(m.state_dict())

### buffers_not_persistent_scripted
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(1))
        self.register_buffer("b", torch.zeros(1), persistent=False)
    def forward(self, x):
        return x + self.a + self.b
#< m = torch.jit.script(M().eval())
#> names(m.named_buffers())
#> names(m.state_dict())
#> m.b

### constants_of_other_types
class M(nn.Module):
    n: Final[Tuple[Tuple[int, int], str]]
    ll: Final[List[List[int]]]
    def __init__(self):
        super().__init__()
        self.n = ((1, 2), "a")
        self.ll = [[1], [2, 3]]
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.n
#> m.ll
#> m.n = ((2, 2), "b")
#> m.ll = [[2]]

### modules_are_assigned
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()
        self.b = nn.ReLU()
        self.c = nn.Tanh()
    def forward(self, x):
        return self.c(self.b(self.a(x)))
#> m = torch.jit.script(M().eval())
#> m.a = m.b
#> m.a = 3
#> m(torch.zeros(1))

### containers_are_called
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.ReLU(), nn.Hardtanh(0., 2.))
        self.l = nn.ModuleList([nn.ReLU()])
    def forward(self, x):
        return self.net(self.l[0](x))
#> m = torch.jit.script(M().eval())
#> m.net(torch.full((1,), 5.))
#> m.net.forward(torch.full((1,), 5.))
#> m.l(torch.ones(1))
#> names(m.net.named_children())
#> names(m.l.named_modules(prefix="l"))

### methods_of_submodules_with_hooks
class Sub(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1
    @torch.jit.export
    def other(self, x: Tensor) -> Tensor:
        return self.forward(x) * 2
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x: Tensor) -> Tensor:
        return self.sub(x) + self.sub.other(x)
def before(self, args: Tuple[Tensor]) -> Tensor:
    return args[0] * 10
#< e = M().eval()
#< e.sub.register_forward_pre_hook(before)
#< m = torch.jit.script(e)
#> m(torch.ones(1))
#> m.sub(torch.ones(1))
#> m.sub.other(torch.ones(1))
#> m.sub.forward(torch.ones(1))
#> methods(m.sub)
#> m.sub.before
#> f = torch.jit.freeze(m, ["sub"])
#> f(torch.ones(1))

### hooks_with_defaults_and_kwargs
class Sub(nn.Module):
    def forward(self, x: Tensor, n: int = 3) -> Tensor:
        return x * n
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x: Tensor) -> Tensor:
        return self.sub(x, 2)
def after(self, args: Tuple[Tensor, int], output: Tensor) -> Tensor:
    return output + args[1]
#< e = M().eval()
#< e.sub.register_forward_hook(after)
#< m = torch.jit.script(e)
#> m(torch.ones(1))
#> m.sub(torch.ones(1), 5)
#> m.sub(torch.ones(1))
#> m.sub(torch.ones(1), n=5)

### hooks_around_scripted_hooks
class M(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1
def before(self, args: Tuple[Tensor]) -> Tensor:
    return args[0] * 10
def after(self, args: Tuple[Tensor], output: Tensor) -> Tensor:
    return output - args[0]
#< e = M().eval()
#< e.register_forward_pre_hook(before)
#< e.register_forward_hook(after)
#< m = torch.jit.script(e)
#> m(torch.ones(1))
#> a = torch.nn.modules.module.register_module_forward_pre_hook(lambda module, args: args[0] + 2)
#> m(torch.ones(1))
#> b = torch.nn.modules.module.register_module_forward_hook(lambda module, args, output: (args[0], output))
#> m(torch.ones(1))

### constants_of_recurrent_layers
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.LSTM(2, 3)
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> str(m)
#> m.a.hidden_size

### modules_that_are_missing
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = None
        self.b = nn.ReLU()
    def forward(self, x):
        return self.b(x)
#> m = torch.jit.script(M().eval())
#> m.a
#> str(m)
#> names(m.named_children())
