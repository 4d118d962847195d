### wrapper_of_module
class M(nn.Module):
    k: Final[int]
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.zeros(2))
        self.n = 3
        self.k = 4
    def forward(self, x):
        return x * self.w + self.b + self.n + self.k
    @torch.jit.export
    def other(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.w
#> m.b
#> m.n
#> m.k
#> m(torch.ones(2))
#> m.forward(torch.ones(2))
#> m.other(torch.ones(2))
#> methods(m)

### attribute_missing
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.nothing

### attribute_set
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 3
        self.s = "a"
        self.l = [1]
    def forward(self):
        return self.n, self.s, self.l
#> m = torch.jit.script(M().eval())
#> m.n = 5
#> m.s = "b"
#> m.l = [2, 3]
#> m()

### attribute_set_wrong_type
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 3
    def forward(self):
        return self.n
#> m = torch.jit.script(M().eval())
#> m.n = "text"

### attribute_set_parameter
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return self.w * x
#> m = torch.jit.script(M().eval())
#> m.w = torch.full((2,), 3.)
#> m(torch.ones(2))

### attribute_of_submodule_set
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 1
    def forward(self, x):
        return x + self.n
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> m = torch.jit.script(M().eval())
#> m.sub.n
#> m.sub.n = 10
#> m(torch.zeros(1))
#> m.sub(torch.zeros(1))

### add_module
class Sub(nn.Module):
    def forward(self, x):
        return x + 1
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> s = torch.jit.script(Sub().eval())
#> m.add_module("more", s)

### add_module_before_scripting
class Sub(nn.Module):
    def forward(self, x):
        return x + 1
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module("more", Sub())
        self.register_module("again", Sub())
    def forward(self, x):
        return self.again(self.more(x))
#> m = torch.jit.script(M().eval())
#> names(m.named_children())
#> m.more(torch.zeros(1))
#> m(torch.zeros(1))

### register_module
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> s = eager(M().eval())
#> m.register_module("more", s)

### apply
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
        return self.a(x) + self.b(x)
#> m = torch.jit.script(M().eval())
#> m.apply(lambda s: s.parameters(recurse=False))
#> m.apply(lambda s: s.train())
#> m.a.training

### apply_returns_self
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> same(m.apply(lambda s: None), m)

### apply_writes_weights
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.apply(lambda s: s.w.fill_(7.))
#> m.w

### buffers
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", torch.full((1,), 3.))
    def forward(self, x):
        return x + self.c
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(1))
        self.sub = Sub()
        self.register_buffer("b", torch.zeros(2))
    def forward(self, x):
        return self.sub(x) + self.a + self.b
#> m = torch.jit.script(M().eval())
#> m.buffers()
#> m.buffers(recurse=False)
#> names(m.named_buffers())
#> names(m.named_buffers(recurse=False))
#> m.named_buffers(prefix="p")
#> names(m.named_buffers("p", False))
#> shapes(m.named_buffers())

### buffers_none_registered
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", None)
        self.register_buffer("b", torch.ones(1))
    def forward(self, x):
        return x + self.b
#> m = torch.jit.script(M().eval())
#> names(m.named_buffers())
#> names(m.state_dict())
#> m.a

### buffers_duplicate
class M(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.ones(1)
        self.register_buffer("a", t)
        self.register_buffer("b", t)
    def forward(self, x):
        return x + self.a + self.b
#> m = torch.jit.script(M().eval())
#> names(m.named_buffers())
#> names(m.named_buffers(remove_duplicate=False))
#> names(m.state_dict())

### buffers_non_persistent
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(1), persistent=False)
    def forward(self, x):
        return x + self.a
#> m = torch.jit.script(M().eval())
#> names(m.named_buffers())
#> names(m.state_dict())

### buffers_of_batch_norm
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)).eval())
#> names(m.named_buffers())
#> dtypes(m.named_buffers())
#> shapes(m.named_buffers())

### children
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()
        self.b = nn.Sequential(nn.Linear(1, 1), nn.Tanh())
    def forward(self, x):
        return self.b(self.a(x))
#< m = torch.jit.script(M().eval())
#> m.children()
#> names(m.named_children())
#> m.named_children()
#> names(m.b.named_children())

### children_duplicates
class M(nn.Module):
    def __init__(self):
        super().__init__()
        r = nn.ReLU()
        self.a = r
        self.b = r
    def forward(self, x):
        return self.b(self.a(x))
#> m = torch.jit.script(M().eval())
#> names(m.named_children())
#> names(m.named_modules())

### modules
#< m = torch.jit.script(nn.Sequential(nn.Sequential(nn.ReLU(), nn.Tanh()), nn.Sigmoid()).eval())
#> m.modules()
#> names(m.named_modules())
#> names(m.named_modules(prefix="net"))
#> m.named_modules()

### modules_duplicates
class M(nn.Module):
    def __init__(self):
        super().__init__()
        l = nn.Linear(2, 2)
        self.net = nn.Sequential(l, l)
    def forward(self, x):
        return self.net(x)
#< m = torch.jit.script(M().eval())
#> names(m.named_modules())
#> names(m.named_modules(remove_duplicate=False))
#> names(m.named_parameters())
#> names(m.state_dict())

### modules_prefix_and_memo
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()
    def forward(self, x):
        return self.a(x)
#> m = torch.jit.script(M().eval())
#> names(m.named_modules(None, "top"))

### parameters
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.fc = nn.Linear(2, 1)
        self.v = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        return self.fc(x * self.w) + self.v
#< m = torch.jit.script(M().eval())
#> m.parameters()
#> m.parameters(recurse=False)
#> m.parameters(False)
#> names(m.named_parameters())
#> names(m.named_parameters(recurse=False))
#> names(m.named_parameters(prefix="net"))
#> names(m.named_parameters("net", False))
#> shapes(m.named_parameters())
#> m.fc.named_parameters()

### parameters_duplicate
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(2))
        self.b = self.a
    def forward(self, x):
        return x * self.a * self.b
#> m = torch.jit.script(M().eval())
#> names(m.named_parameters())
#> names(m.named_parameters(remove_duplicate=False))
#> names(m.named_parameters("", True, False))

### parameters_none_registered
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter("w", None)
        self.register_parameter("v", nn.Parameter(torch.ones(1)))
    def forward(self, x):
        return x * self.v
#> m = torch.jit.script(M().eval())
#> names(m.named_parameters())
#> names(m.state_dict())
#> m.w

### parameters_in_order
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.z = nn.Parameter(torch.ones(1))
        self.register_buffer("y", torch.ones(1))
        self.a = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.z * self.y * self.a
#> m = torch.jit.script(M().eval())
#> names(m.named_parameters())
#> names(m.state_dict())

### get_parameter
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)
    def forward(self, x):
        return self.fc(x)
#> m = eager(M().eval())
#> m.get_parameter("fc.weight").shape

### get_buffer
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(1))
    def forward(self, x):
        return x + self.b
#> m = eager(M().eval())
#> m.get_buffer("b")

### get_submodule
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.ReLU())
    def forward(self, x):
        return self.net(x)
#> m = eager(M().eval())
#> m.get_submodule("net.0")

### get_buffer_missing
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.get_buffer("nothing")
#> m.get_parameter("nothing")
#> m.get_submodule("nothing")

### extra_repr
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()
    def forward(self, x):
        return self.a(x)
#> m = torch.jit.script(M().eval())
#> m.extra_repr()
#> m.original_name
#> str(m)

### repr_of_nested_modules
#< m = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Dropout(0.5))).eval())
#> str(m)
#> m.extra_repr()

### repr_of_traced_modules
#< m = torch.jit.trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval(), torch.ones(1, 2))
#> str(m)

### extra_state
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.get_extra_state()
#> m.set_extra_state({"a": 1})

### set_submodule
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ReLU()
    def forward(self, x):
        return self.a(x)
#> m = eager(M().eval())
#> m.set_submodule("a", m.a)

### share_memory
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.share_memory()

### register_buffer
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("running", torch.zeros(3))
    def forward(self, x):
        return x + self.running
#> m = torch.jit.script(M().eval())
#> m.running
#> names(m.state_dict())
#> names(m.named_parameters())

### register_buffer_later
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.register_buffer("more", torch.ones(2))
#> m.more
#> names(m.named_buffers())
#> names(m.state_dict())

### register_buffer_later_non_persistent
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.register_buffer("more", torch.ones(2), persistent=False)

### register_buffer_taken_name
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = eager(M().eval())
#> m.register_buffer("w", torch.zeros(2))

### register_buffer_none_later
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.register_buffer("more", None)

### register_parameter_later
class M(nn.Module):
    def forward(self, x):
        return x
#> m = eager(M().eval())
#> m.register_parameter("more", nn.Parameter(torch.ones(2)))
#> m.more
#> names(m.named_parameters())
#> names(m.state_dict())

### register_parameter_taken_name
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = [1]
    def forward(self, x):
        return x + self.b[0]
#> m = eager(M().eval())
#> m.register_parameter("b", nn.Parameter(torch.ones(2)))

### register_parameter_not_a_parameter
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter("w", torch.ones(2))
    def forward(self, x):
        return x * self.w
# f(torch.ones(2))

### requires_grad
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.ones(2))
    def forward(self, x):
        return x * self.w + self.b
#> m = eager(M().eval())
#> grads(m.named_parameters())
#> m.requires_grad_(False)
#> grads(m.named_parameters())
#> m.requires_grad_()
#> grads(m.named_parameters())
#> grads(m.named_buffers())

### requires_grad_of_submodule
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
        return self.a(x) + self.b(x)
#> m = eager(M().eval())
#> m.a.requires_grad_(False)
#> grads(m.named_parameters())

### zero_grad
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.zero_grad()
#> m.zero_grad(set_to_none=False)
#> m.w

### train_and_eval
class Sub(nn.Module):
    def forward(self, x):
        if self.training:
            return x + 1
        return x
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x), self.training
#> m = torch.jit.script(M())
#> m.training
#> m.sub.training
#> m(torch.zeros(1))
#> m.eval()
#> m.sub.training
#> m(torch.zeros(1))
#> m.train(True)
#> m(torch.zeros(1))
#> m.train(mode=False)
#> m.training

### train_returns_self
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M())
#> same(m.eval(), m)
#> same(m.train(), m)

### train_of_submodule_alone
class Sub(nn.Module):
    def forward(self, x):
        return self.training
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Sub()
        self.b = Sub()
    def forward(self, x):
        return self.a(x), self.b(x), self.training
#> m = torch.jit.script(M().eval())
#> m.a.train()
#> m(torch.zeros(1))

### train_wrong_mode
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.train("yes")

### eval_changes_dropout
#< m = torch.jit.script(nn.Sequential(nn.Dropout(1.0)).train())
#> m(torch.ones(3))
#> m.eval()
#> m(torch.ones(3))

### eval_changes_batch_norm
#< m = torch.jit.script(nn.Sequential(nn.BatchNorm1d(1)).train())
#> m(torch.tensor([[1.], [3.]]))
#> m.state_dict()
#> m.eval()
#> m(torch.tensor([[1.], [3.]]))

### compile_call
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = torch.jit.script(M().eval())
#> m(torch.zeros(2))

### call_with_keywords
class M(nn.Module):
    def forward(self, x, y: int = 2):
        return x * y
#> m = torch.jit.script(M().eval())
#> m(torch.ones(1), y=5)
#> m(x=torch.ones(1))
#> m(torch.ones(1), z=5)
#> m()
#> m(torch.ones(1), 1, 2)

### named_parameters_of_traced
#< m = torch.jit.trace(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval(), torch.ones(1, 2))
#> names(m.named_parameters())
#> names(m.named_buffers())
#> names(m.named_modules())
#> m.training

### length_and_iteration
#< m = torch.jit.script(nn.Sequential(nn.ReLU(), nn.Tanh()).eval())
#> names(m.named_children())
#> m(torch.zeros(1))

### method_code
class M(nn.Module):
    def forward(self, x):
        return self.more(x) * 2
    @torch.jit.export
    def more(self, x):
        return x + 1
#> m = torch.jit.script(M().eval())
#> m.code
#> m.more.code
#> m.more.graph

### code_with_constants
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 2))
    def forward(self, x):
        return x.mm(self.w)
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.code_with_constants[0]
#> f.code_with_constants[1].c0
#> f.code

### code_with_constants_of_submodule_method
class M(nn.Module):
    def forward(self, x):
        return x + torch.tensor([1., 2.])
#> m = torch.jit.script(M().eval())
#> m.code_with_constants[0]

### inlined_graph
class Sub(nn.Module):
    def forward(self, x):
        return x + 1
@torch.jit.script
def helper(x):
    return x * 2
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return helper(self.sub(x))
#> m = torch.jit.script(M().eval())
#> count(m.graph, "prim::CallMethod")
#> count(m.graph, "prim::CallFunction")
#> count(m.inlined_graph, "prim::CallMethod")
#> count(m.inlined_graph, "prim::CallFunction")
#> kinds(m.inlined_graph)
#> m.graph

### define
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 2
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> m.define("def g(self, x):\n    return x * self.n\n")
#> m.g(torch.ones(1))

### refused_on_script_modules
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.ones(2))
        self.sub = nn.ReLU()
    def forward(self, x):
        return self.sub(x * self.w + self.b)
#> m = torch.jit.script(M().eval())
#> m.get_parameter("w")
#> m.get_buffer("b")
#> m.get_submodule("sub")
#> m.set_submodule("sub", m.sub)
#> m.requires_grad_(False)
#> m.register_buffer("more", torch.ones(1))
#> m.register_buffer("more", torch.ones(1), persistent=False)
#> m.register_parameter("more", nn.Parameter(torch.ones(1)))
#> m.add_module("more", m.sub)
#> m.bfloat16()
#> m.to_empty(device="cpu")
#> m.cuda()
#> m.xpu()
#> m.ipu()

### get_parameter_paths
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.zeros(1))
        self.n = 3
    def forward(self, x):
        return x * self.w + self.b
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Sub()
    def forward(self, x):
        return self.a(x)
#> m = eager(M().eval())
#> m.get_parameter("a.w")
#> m.get_buffer("a.b")
#> m.get_submodule("a")
#> m.get_submodule("")
#> m.get_parameter("a.b")
#> m.get_buffer("a.w")
#> m.get_submodule("a.w")
#> m.get_parameter("a.nothing")
#> m.get_parameter("z.w")
#> m.get_buffer("a.n")

### get_submodule_nested
class C(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 1)
    def forward(self, x):
        return self.conv(x)
class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = C()
        self.linear = nn.Linear(2, 2)
    def forward(self, x):
        return self.linear(self.c(x))
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = B()
    def forward(self, x):
        return self.b(x)
#> m = eager(M().eval())
#> m.get_submodule("b.linear")
#> m.get_submodule("b.c.conv")
#> m.get_submodule("b.c.nothing")
#> names(m.named_modules())

### code_with_constants_of_two_tensors
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.arange(4.).reshape(2, 2))
        self.b = nn.Parameter(torch.full((2,), 7.))
    def forward(self, x):
        return x.mm(self.a) * self.b
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.code_with_constants[0]
#> f.code_with_constants[1].c0
#> f.code_with_constants[1].c1
