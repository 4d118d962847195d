### keys_and_values
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((2,), 2.))
        self.bias = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))
    def forward(self, x):
        return x * self.weight + self.bias + self.mean
#> m = torch.jit.script(M().eval())
#> m.state_dict()
#> names(m.state_dict())
#> m.state_dict().keys()

### prefix
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> names(m.state_dict(prefix="net."))
#> names(m.state_dict(prefix="net"))

### prefix_of_submodules
#< m = torch.jit.script(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)).eval())
#> names(m.state_dict(prefix="a.b."))

### keep_vars
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.state_dict()["w"].requires_grad
#> m.state_dict(keep_vars=True)["w"].requires_grad
#> m.state_dict(keep_vars=False)["w"].requires_grad

### destination
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> d = OrderedDict()
#> r = m.state_dict(destination=d)
#> names(d)
#> same(r, d)

### destination_positional
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> names(m.state_dict(OrderedDict(), "p."))

### references_are_shared
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> d = m.state_dict()
#> d["w"].fill_(4.)
#> m.w
#> m(torch.ones(2))

### none_entries_left_out
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", None)
        self.register_parameter("p", None)
        self.register_buffer("b", torch.ones(1))
    def forward(self, x):
        return x + self.b
#> m = torch.jit.script(M().eval())
#> names(m.state_dict())

### plain_tensor_attribute
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = torch.ones(1)
        self.register_buffer("b", torch.zeros(1))
    def forward(self, x):
        return x + self.t + self.b
#> m = torch.jit.script(M().eval())
#> names(m.state_dict())
#> names(m.named_buffers())

### attributes_are_no_state
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 1
        self.l = [1.5]
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w + self.n
#> m = torch.jit.script(M().eval())
#> names(m.state_dict())

### running_averages
#< m = torch.jit.script(nn.Sequential(nn.BatchNorm2d(2)).eval())
#> m.state_dict()

### nested_order
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1, 1)
        self.w = nn.Parameter(torch.ones(1))
        self.second = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
        self.register_buffer("b", torch.ones(1))
    def forward(self, x):
        return self.second(self.first(x)) * self.w + self.b
#< m = torch.jit.script(M().eval())
#> names(m.state_dict())
#> names(m.second.state_dict())

### load_strict
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.zeros(2))
    def forward(self, x):
        return x * self.w + self.b
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"w": torch.full((2,), 3.), "b": torch.ones(2)})
#> m(torch.ones(2))

### load_missing_key
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.zeros(2))
    def forward(self, x):
        return x * self.w + self.b
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"w": torch.full((2,), 3.)})
#> m.load_state_dict({"w": torch.full((2,), 3.)}, strict=False)
#> m(torch.ones(2))

### load_unexpected_key
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"w": torch.full((2,), 3.), "x": torch.ones(1), "y": torch.ones(1)})
#> m.load_state_dict({"w": torch.full((2,), 3.), "x": torch.ones(1)}, False)
#> m.w

### load_size_mismatch
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"w": torch.ones(3)})
#> m.load_state_dict({"w": torch.ones(3)}, strict=False)

### load_several_problems
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.v = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w * self.v
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"w": torch.ones(3), "z": torch.ones(1)})

### load_other_dtype
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"w": torch.tensor([2, 3])})
#> m.w

### load_returns_keys
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> r = m.load_state_dict({"a": torch.ones(1)}, strict=False)
#> r.missing_keys
#> r.unexpected_keys

### load_into_submodules
#< m = torch.jit.script(nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1)).eval())
#> m.load_state_dict({"0.weight": torch.full((1, 1), 2.), "0.bias": torch.ones(1), "1.weight": torch.full((1, 1), 3.), "1.bias": torch.zeros(1)})
#> m(torch.ones(1, 1))

### load_own_state
#< m = torch.jit.script(nn.Sequential(nn.Linear(2, 1)).eval())
#> before = m(torch.ones(1, 2))
#> m.load_state_dict(m.state_dict())
#> m(torch.ones(1, 2))

### load_for_buffer_that_is_none
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", None)
        self.register_buffer("c", torch.ones(1))
    def forward(self, x):
        return x + self.c
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"b": torch.ones(1), "c": torch.ones(1)})

### load_for_parameter_that_is_none
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter("p", None)
        self.register_buffer("c", torch.ones(1))
    def forward(self, x):
        return x + self.c
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"p": torch.ones(1), "c": torch.ones(1)})

### load_between_modules
class M(nn.Module):
    def __init__(self, k: float):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), k))
    def forward(self, x):
        return x * self.w
#< a = torch.jit.script(M(2.).eval())
#< b = torch.jit.script(M(5.).eval())
#> a.load_state_dict(b.state_dict())
#> a(torch.ones(2))
#> b(torch.ones(2))

### load_scalar_as_one_element
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.tensor(1.))
    def forward(self, x):
        return x * self.s
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"s": torch.tensor([4.])})
#> m.s

### load_not_a_dictionary
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.load_state_dict([1])

### load_empty
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({})
#> m.state_dict()

### state_after_calls
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(1))
    def forward(self, x):
        self.n += 1
        return x + self.n
#> m = torch.jit.script(M().eval())
#> m(torch.zeros(1))
#> m(torch.zeros(1))
#> m.state_dict()

### state_dict_pre_hook
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: None)
#> names(m.state_dict())

### state_dict_post_hook
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> m.register_state_dict_post_hook(lambda module, state, prefix, meta: None)
#> names(m.state_dict())

### load_state_dict_post_hook_clears
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
#> m.load_state_dict({})

### load_state_dict_post_hook_adds
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> m.register_load_state_dict_post_hook(lambda module, keys: keys.unexpected_keys.append("more"))
#> m.load_state_dict({"w": torch.ones(1)})
#> m.load_state_dict({"w": torch.ones(1)}, strict=False)

### load_state_dict_post_hook_removed
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> h = m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
#> h.remove()
#> m.load_state_dict({})

### hooks_refused_on_script_modules
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: None)
#> m.register_state_dict_post_hook(lambda module, state, prefix, meta: None)
#> m.register_load_state_dict_pre_hook(lambda *a: None)
#> m.register_load_state_dict_post_hook(lambda module, keys: None)

### state_dict_pre_hook_sees_arguments
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> seen_by_hook = []
#> m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen_by_hook.append((prefix, keep_vars)))
#> names(m.state_dict(prefix="p.", keep_vars=True))
#> seen_by_hook
