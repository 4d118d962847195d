### forward_hook
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, output: output * 10)
#> m(torch.ones(2))
#> m.forward(torch.ones(2))
#> h.remove()
#> m(torch.ones(2))

### forward_hook_returns_none
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, output: None)
#> m(torch.ones(2))

### forward_hook_sees_arguments
class M(nn.Module):
    def forward(self, x, y):
        return x + y
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, output: (args, output))
#> m(torch.ones(1), torch.zeros(1))

### forward_hook_without_keywords
class M(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, output: (args, output))
#> m(torch.ones(1), k=5)

### forward_hooks_in_order
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> a = m.register_forward_hook(lambda module, args, output: output + 1)
#> b = m.register_forward_hook(lambda module, args, output: output * 10)
#> m(torch.ones(1))

### forward_hook_prepend
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> a = m.register_forward_hook(lambda module, args, output: output + 1)
#> b = m.register_forward_hook(lambda module, args, output: output * 10, prepend=True)
#> m(torch.ones(1))

### forward_hook_prepend_false
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> a = m.register_forward_hook(lambda module, args, output: output + 1, prepend=False)
#> b = m.register_forward_hook(lambda module, args, output: output * 10, prepend=False)
#> m(torch.ones(1))

### forward_hook_with_kwargs
class M(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, kwargs, output: (args, kwargs, output), with_kwargs=True)
#> m(torch.ones(1), k=5)

### forward_hook_with_kwargs_none
class M(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, kwargs, output: None, with_kwargs=True)
#> m(torch.ones(1), k=5)

### forward_hook_writes_input
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = eager(M().eval())
#> x = torch.ones(2)
#> h = m.register_forward_hook(lambda module, args, output: (args[0].zero_(), output))
#> m(x)

### pre_hook_value
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args: args[0] * 10)
#> m(torch.ones(2))
#> h.remove()
#> m(torch.ones(2))

### pre_hook_tuple
class M(nn.Module):
    def forward(self, x, y):
        return x - y
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args: (args[1], args[0]))
#> m(torch.ones(1), torch.zeros(1))

### pre_hook_none
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args: None)
#> m(torch.ones(2))

### pre_hooks_in_order
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> a = m.register_forward_pre_hook(lambda module, args: args[0] + 1)
#> b = m.register_forward_pre_hook(lambda module, args: args[0] * 10)
#> m(torch.ones(1))

### pre_hook_prepend
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> a = m.register_forward_pre_hook(lambda module, args: args[0] + 1)
#> b = m.register_forward_pre_hook(lambda module, args: args[0] * 10, prepend=True)
#> m(torch.ones(1))

### pre_hook_with_kwargs
class M(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"k": 7}), with_kwargs=True)
#> m(torch.ones(1), k=5)

### pre_hook_with_kwargs_none
class M(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args, kwargs: None, with_kwargs=True)
#> m(torch.ones(1), k=5)

### pre_hook_with_kwargs_wrong_result
class M(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
#> m(torch.ones(1), k=5)

### pre_hook_without_keywords
class M(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k
#> m = eager(M().eval())
#> h = m.register_forward_pre_hook(lambda module, args: args[0] * 100)
#> m(torch.ones(1), k=5)

### hooks_of_submodules
class Sub(nn.Module):
    def forward(self, x):
        return x + 1
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> m = eager(M().eval())
#> h = m.sub.register_forward_hook(lambda module, args, output: output * 10)
#> m.sub(torch.ones(1))
#> m(torch.ones(1))

### pre_and_forward_hooks
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = eager(M().eval())
#> a = m.register_forward_pre_hook(lambda module, args: args[0] * 2)
#> b = m.register_forward_hook(lambda module, args, output: (args[0], output))
#> m(torch.ones(1))

### scripted_hooks
class Sub(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.k = 3
    def forward(self, x: Tensor) -> Tensor:
        return self.sub(x)
def before(self, args: Tuple[Tensor]) -> Tuple[Tensor]:
    return (args[0] * 2,)
def after(self, args: Tuple[Tensor], output: Tensor):
    return output - 0.5
#< e = M().eval()
#< e.register_forward_hook(after)
#< e.sub.register_forward_pre_hook(before)
#< m = torch.jit.script(e)
#> m(torch.ones(1))
#> m.sub(torch.ones(1))
#> n = again(m)
#> n(torch.ones(1))
#> f = torch.jit.freeze(m)
#> m.forward(torch.ones(1))

### handle_removed_twice
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> h = m.register_forward_hook(lambda module, args, output: output + 1)
#> h.remove()
#> h.remove()
#> m(torch.zeros(1))

### refused_on_script_modules
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = torch.jit.script(M().eval())
#> m.register_forward_hook(lambda module, args, output: output * 10)
#> m.register_forward_pre_hook(lambda module, args: args)
#> m.register_full_backward_hook(lambda module, a, b: None)
#> m.register_full_backward_pre_hook(lambda module, a: None)
#> m.register_backward_hook(lambda module, a, b: None)
#> m(torch.ones(1))
