### hooks_change_state
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
        self.v = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        return x * self.w + self.v
#> m = eager(M().eval())
#> h = m.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update({prefix + "more": torch.ones(2)}))
#> names(m.state_dict())
#> names(m.state_dict(prefix="p."))
#> h.remove()
#> names(m.state_dict())
#> h = m.register_state_dict_post_hook(lambda module, state, prefix, meta: state.clear())
#> m.state_dict()

### hooks_of_submodules_change_state
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = nn.Parameter(torch.zeros(1))
        self.a = Sub()
        self.b = Sub()
    def forward(self, x):
        return self.a(x) + self.b(x) + self.v
#> m = eager(M().eval())
#> seen_here = []
#> m.a.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen_here.append(prefix))
#> m.b.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen_here.append((prefix, keep_vars)))
#> m.register_state_dict_post_hook(lambda module, state, prefix, meta: seen_here.append(prefix + "end"))
#> m.b.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update({prefix + "w": torch.full((1,), 5.)}))
#> m.state_dict()
#> seen_here
#> m.b.state_dict()
#> m.b.state_dict(prefix="x.")
#> seen_here

### state_hooks_see_the_module
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
        self.n = 3
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> seen_here = []
#> m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen_here.append(module.n))
#> m.register_load_state_dict_post_hook(lambda module, keys: seen_here.append(module.n))
#> m.state_dict()
#> m.load_state_dict({"w": torch.zeros(1)})
#> seen_here

### load_pre_hook_renames
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> h = m.register_load_state_dict_pre_hook(lambda module, state, prefix, meta, strict, missing, unexpected, errors: state.update({"w": torch.full((1,), 9.)}))
#> m.load_state_dict({})
#> m.w
#> h.remove()
#> m.load_state_dict({})

### load_pre_hook_adds_errors
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> m.register_load_state_dict_pre_hook(lambda module, state, prefix, meta, strict, missing, unexpected, errors: errors.append("wrong version"))
#> m.load_state_dict({"w": torch.ones(1)})
#> m.load_state_dict({"w": torch.ones(1)}, strict=False)

### load_pre_hook_of_submodule
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Sub()
        self.b = Sub()
    def forward(self, x):
        return self.a(x) + self.b(x)
#> m = eager(M().eval())
#> seen_here = []
#> m.a.register_load_state_dict_pre_hook(lambda module, state, prefix, meta, strict, missing, unexpected, errors: seen_here.append((prefix, strict, names(state))))
#> m.b.register_load_state_dict_pre_hook(lambda module, state, prefix, meta, strict, missing, unexpected, errors: state.clear())
#> m.load_state_dict({"a.w": torch.zeros(1), "b.w": torch.zeros(1)})
#> m.load_state_dict({"a.w": torch.zeros(1), "b.w": torch.zeros(1)}, strict=False)
#> m.a.w
#> m.b.w

### load_post_hooks_of_submodules
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Sub()
        self.b = Sub()
    def forward(self, x):
        return self.a(x) + self.b(x)
#> m = eager(M().eval())
#> m.a.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
#> m.load_state_dict({})
#> m.load_state_dict({"b.w": torch.zeros(1)})
#> m.register_load_state_dict_post_hook(lambda module, keys: keys.unexpected_keys.clear())
#> m.load_state_dict({"b.w": torch.zeros(1), "c": torch.zeros(1)})
#> m.b.w

### order_of_keys
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
        self.register_buffer("c", torch.ones(1))
    def forward(self, x):
        return x * self.w + self.c
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", torch.ones(1))
        self.v = nn.Parameter(torch.ones(1))
        self.a = Sub()
    def forward(self, x):
        return self.a(x) + self.v + self.c
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({})
#> m.load_state_dict({"a.x": torch.ones(1), "z": torch.ones(1), "q.w": torch.ones(1), "a.w.x": torch.ones(1), "a.b.c": torch.ones(1), "v.x": torch.ones(1)})
#> m.load_state_dict({"a.w": torch.ones(2), "v": torch.ones(3), "z": torch.ones(1)})
#> m.a.load_state_dict({"w": torch.full((1,), 2.)})
#> m.a.load_state_dict({"w": torch.full((1,), 2.)}, strict=False)
#> m(torch.ones(1))

### assign
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.v = nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("b", torch.ones(2))
    def forward(self, x):
        return x * self.w * self.v + self.b
#> m = torch.jit.script(M().eval())
#> m.load_state_dict({"w": torch.full((2,), 3., dtype=torch.float64), "v": torch.ones(2), "b": torch.tensor([1, 2])}, assign=True)
#> dtypes(m.state_dict())
#> grads(m.named_parameters())
#> m(torch.ones(2))
#> m.load_state_dict({"w": torch.ones(3)}, strict=False, assign=True)
#> m.load_state_dict({"w": torch.tensor([1, 2])}, False, True)
#> m.load_state_dict({"w": torch.ones(2)}, False, True)
#> dtypes(m.state_dict())

### assign_is_not_shared
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
#> m.load_state_dict({"a.w": torch.full((2,), 2.)}, strict=False)
#> m(torch.ones(2))
#> m.load_state_dict({"a.w": torch.full((2,), 3.)}, strict=False, assign=True)
#> m(torch.ones(2))
#> names(m.named_parameters())

### destination_keeps_entries
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> d = OrderedDict()
#> d.update({"w": torch.zeros(3), "z": torch.zeros(1)})
#> m.state_dict(destination=d)
#> m.state_dict(destination=d, prefix="a.")
#> names(d)
#> d["w"]
#> m.state_dict(None, "b.", True)["b.w"].requires_grad

### keep_vars_of_submodules
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(1, 1)
        self.register_buffer("b", torch.ones(1))
    def forward(self, x):
        return self.fc(x) + self.b
#< m = torch.jit.script(M().eval())
#> m.state_dict(keep_vars=True)["fc.weight"].requires_grad
#> m.state_dict(keep_vars=True)["b"].requires_grad
#> m.fc.state_dict(prefix="p.", keep_vars=True)["p.bias"].requires_grad
#> m.fc.state_dict()["bias"].requires_grad

### state_is_a_dictionary
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
        self.register_buffer("b", torch.zeros(1))
    def forward(self, x):
        return x * self.w + self.b
#> m = torch.jit.script(M().eval())
#> d = m.state_dict()
#> d.keys()
#> d.get("w")
#> d.get("x")
#> d.pop("b")
#> m.load_state_dict(d)
#> d.update({"b": torch.full((1,), 4.)})
#> m.load_state_dict(d)
#> m(torch.ones(1))

### hooks_with_all_arguments
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> seen_here = []
#> a = m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen_here.append("first"))
#> b = m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen_here.append("second"))
#> m.state_dict()
#> a.remove()
#> m.state_dict()
#> b.remove()
#> m.state_dict()
#> seen_here
#> m.register_load_state_dict_pre_hook(lambda module, state, prefix, meta, strict, missing, unexpected, errors: missing.append("more"))
#> m.register_load_state_dict_pre_hook(lambda module, state, prefix, meta, strict, missing, unexpected, errors: unexpected.extend(["x", "y"]))
#> m.load_state_dict({"w": torch.ones(1)})
#> m.load_state_dict({"w": torch.ones(1)}, strict=False)
#> m.load_state_dict({"w": torch.ones(2)}, strict=False)

### post_hook_returns_something
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: 3)
#> m.state_dict()
#> m.register_state_dict_post_hook(lambda module, state, prefix, meta: state)
#> m.state_dict()
