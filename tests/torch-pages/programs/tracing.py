### trace_function
#< def f(x, y): return 2 * x + y
#< t = torch.jit.trace(f, (torch.ones(3), torch.ones(3)))
#> t(torch.ones(3), torch.zeros(3))
#> t(torch.ones(5), torch.zeros(5))
#> t.graph
#> t.code

### trace_module
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        return torch.relu(self.fc(x))
#< m = torch.jit.trace(M().eval(), torch.ones(1, 3))
#> m(torch.ones(2, 3))
#> names(m.named_parameters())
#> m.code
#> count(m.inlined_graph, "aten::linear")

### trace_module_method
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 3.))
    def forward(self, x):
        return x * self.w
    def weighted(self, x):
        return x + self.w
#< m = torch.jit.trace_module(M().eval(), {"forward": torch.ones(2), "weighted": torch.ones(2)})
#> m(torch.ones(2))
#> m.weighted(torch.ones(2))
#> methods(m)
#> names(m.named_parameters())

### trace_module_one_method
class M(nn.Module):
    def forward(self, x):
        return x
    def weighted(self, x):
        return x + 1
#< m = torch.jit.trace_module(M().eval(), {"weighted": torch.ones(2)})
#> methods(m)
#> m.weighted(torch.ones(2))

### branch_is_lost
#< def f(x):
#<     if x.sum() > 0:
#<         return x * 2
#<     return x - 1
#< t = torch.jit.trace(f, torch.ones(2))
#> t(torch.ones(2))
#> t(-1 * torch.ones(2))
#> kinds(t.graph)

### loop_is_unrolled
#< def f(x):
#<     y = x[0]
#<     for i in range(x.size(0)):
#<         y = y * x[i]
#<     return y
#< t = torch.jit.trace(f, torch.full((3, 2), 2.))
#> t(torch.full((3, 2), 2.))
#> t(torch.full((5, 2), 2.))
#> kinds(t.graph)

### loop_is_kept_by_scripting
def f(x):
    y = x[0]
    for i in range(x.size(0)):
        y = y * x[i]
    return y
#> s = torch.jit.script(f)
#> s(torch.full((3, 2), 2.))
#> s(torch.full((5, 2), 2.))
#> count(s.graph, "prim::Loop")
#> s.graph

### write_to_a_slice
#< def f(x):
#<     x[0] = torch.zeros(x.size(1))
#<     return x
#< t = torch.jit.trace(f, torch.ones(3, 4))
#> t(torch.ones(2, 3))
#> kinds(t.graph)

### built_out_of_place
#< def f(x): return torch.cat((torch.zeros(1, x.size(1)), x[1:2]), dim=0)
#< t = torch.jit.trace(f, torch.ones(3, 4))
#> t(torch.ones(3, 2))
#> kinds(t.graph)

### shapes_are_recorded
#< def f(x): return x.reshape(x.shape[1], x.shape[0])
#< t = torch.jit.trace(f, torch.ones(2, 3))
#> t(torch.arange(8.).reshape(2, 4))

### python_numbers_are_constants
#< def f(x): return x * int(x.sum())
#< t = torch.jit.trace(f, torch.ones(2))
#> t(torch.ones(4))

### in_place_operators
#< def f(x):
#<     y = x + 1
#<     y.relu_()
#<     y.add_(x)
#<     return y
#< t = torch.jit.trace(f, torch.ones(2))
#> t(torch.tensor([-5., 1.]))
#> kinds(t.graph)

### tuple_and_dict_outputs
#< def f(x): return x + 1, (x * 2, x)
#< t = torch.jit.trace(f, torch.ones(2))
#> t(torch.zeros(2))

### list_output_not_strict
#< def f(x): return [x, x + 1]
#< t = torch.jit.trace(f, torch.ones(2), strict=False)
#> t(torch.zeros(2))

### dict_output_not_strict
#< def f(x): return {"a": x, "b": x + 1}
#< t = torch.jit.trace(f, torch.ones(2), strict=False)
#> t(torch.zeros(2))

### tuple_inputs
#< def f(p, x): return p[0] * p[1] + x
#< t = torch.jit.trace(f, ((torch.ones(2), torch.ones(2)), torch.ones(2)))
#> t((torch.full((2,), 2.), torch.full((2,), 3.)), torch.ones(2))

### dict_inputs
#< def f(d): return d["a"] + d["b"]
#< t = torch.jit.trace(f, ({"a": torch.ones(2), "b": torch.ones(2)},))
#> t({"a": torch.full((2,), 2.), "b": torch.full((2,), 3.)})

### keyword_inputs
class M(nn.Module):
    def forward(self, x, y):
        return x - y
#< m = torch.jit.trace(M().eval(), example_kwarg_inputs={"x": torch.ones(2), "y": torch.zeros(2)})
#> m(torch.ones(2), torch.full((2,), 5.))
#> m(y=torch.ones(2), x=torch.zeros(2))

### training_mode_traced
class M(nn.Module):
    def forward(self, x):
        return F.dropout(x, 1.0, self.training)
#< m = torch.jit.trace(M().train(), torch.ones(2), check_trace=False)
#> m.training
#> m(torch.ones(2))
#> m.eval()
#> m(torch.ones(2))

### eval_mode_traced
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = nn.Dropout(0.5)
        self.bn = nn.BatchNorm1d(2)
    def forward(self, x):
        return self.bn(self.d(x))
#< m = torch.jit.trace(M().eval(), torch.ones(1, 2))
#> m(torch.ones(2, 2))
#> f = torch.jit.freeze(m)
#> kinds(f.graph)

### buffers_are_written
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(1))
    def forward(self, x):
        self.n.add_(1)
        return x + self.n
#< m = torch.jit.trace(M().eval(), torch.ones(1), check_trace=False)
#> m(torch.zeros(1))
#> m(torch.zeros(1))
#> m.n

### shared_submodule
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
    def forward(self, x):
        return self.fc(self.fc(x))
#< m = torch.jit.trace(M().eval(), torch.ones(1, 2))
#> m(torch.ones(1, 2))
#> m.code

### traced_calls_scripted
#< @torch.jit.script
#< def larger(x, y):
#<     if bool(x.max() > y.max()):
#<         r = x
#<     else:
#<         r = y
#<     return r
#< def f(x, y, z): return larger(x, y) + z
#< t = torch.jit.trace(f, (torch.ones(2), torch.zeros(2), torch.zeros(2)))
#> t(torch.ones(2), torch.zeros(2), torch.zeros(2))
#> t(torch.zeros(2), torch.full((2,), 5.), torch.ones(2))
#> count(t.graph, "prim::CallFunction")
#> t.code

### traced_module_calls_scripted_function
#< @torch.jit.script
#< def clip(x, n: int):
#<     for i in range(n):
#<         if bool(x.sum() > 10):
#<             x = x / 2
#<     return x
#< class M(nn.Module):
#<     def __init__(self):
#<         super().__init__()
#<         self.w = nn.Parameter(torch.full((2,), 4.))
#<     def forward(self, x):
#<         return clip(x * self.w, 3)
#< m = torch.jit.trace(M().eval(), torch.ones(2))
#> m(torch.ones(2))
#> m(torch.full((2,), 20.))

### scripted_calls_traced
#< def g(x, y): return 2 * x + y
#< traced = torch.jit.trace(g, (torch.ones(3), torch.ones(3)))
#< def f(x): return traced(x, x)
#< s = torch.jit.script(f)
#> s(torch.ones(3))
#> s.code
#> count(s.graph, "prim::CallFunction")

### scripted_loop_around_traced
#< def g(x): return torch.tanh(x) * 2
#< traced = torch.jit.trace(g, torch.ones(3))
#< def f(x, n: int):
#<     for i in range(n):
#<         x = traced(x)
#<     return x
#< s = torch.jit.script(f)
#> s(torch.ones(2), 0)
#> s(torch.ones(2), 3)

### scripted_module_holds_traced
#< class M(nn.Module):
#<     def __init__(self):
#<         super().__init__()
#<         self.means = nn.Parameter(torch.tensor([1., 2., 3.]).resize_(1, 3, 1, 1))
#<         self.net = torch.jit.trace(nn.Sequential(nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2), nn.ReLU()).eval(), torch.ones(1, 3, 2, 2))
#<     def forward(self, x):
#<         return self.net(x - self.means)
#< m = torch.jit.script(M().eval())
#> m(torch.ones(1, 3, 2, 2))
#> names(m.named_parameters())
#> names(m.named_modules())
#> f = torch.jit.freeze(m)
#> count(f.graph, "aten::batch_norm")
#> f(torch.ones(1, 3, 2, 2))

### traced_module_holds_scripted
#< class Gate(nn.Module):
#<     def forward(self, x):
#<         if bool(x.sum() > 0):
#<             return x
#<         return -x
#< class M(nn.Module):
#<     def __init__(self):
#<         super().__init__()
#<         self.gate = torch.jit.script(Gate())
#<     def forward(self, x):
#<         return self.gate(x) + 1
#< m = torch.jit.trace(M().eval(), torch.ones(2))
#> m(torch.ones(2))
#> m(torch.full((2,), -3.))

### script_if_tracing_alone
@torch.jit.script_if_tracing
def f(x):
    if bool(x.sum() > 0):
        return x * 2
    return x
#> f(torch.ones(2))

### script_if_tracing_in_trace
#< @torch.jit.script_if_tracing
#< def g(x, n: int):
#<     for i in range(n):
#<         if bool(x.sum() < 0):
#<             x = x + 10
#<     return x
#< def f(x): return g(x, 2) * 2
#< t = torch.jit.trace(f, torch.ones(2))
#> t(torch.ones(2))
#> t(torch.full((2,), -1.))

### device_is_in_trace
#< def f(x): return torch.zeros(2, device=x.device) + x
#< t = torch.jit.trace(f, torch.ones(2))
#> t(torch.ones(2))
#> t.code

### random_in_trace
#< def f(x): return torch.rand(2, 3).shape[0] + x
#< t = torch.jit.trace(f, torch.ones(2), check_trace=False)
#> t(torch.ones(2))

### indices_and_slices
#< def f(x): return x[1:, ::2] + x[0, 1] * x[..., -1:].sum()
#< t = torch.jit.trace(f, torch.ones(3, 4))
#> t(torch.arange(12.).reshape(3, 4))

### expand_and_view
#< def f(x): return x.unsqueeze(0).expand(2, *x.shape).reshape(-1)
#< t = torch.jit.trace(f, torch.ones(2, 2))
#> t(torch.arange(6.).reshape(3, 2))

### module_call_order
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.b = nn.Linear(3, 2)
    def forward(self, x):
        return self.b(torch.sigmoid(self.a(x)))
#< m = torch.jit.trace(M().eval(), torch.ones(1, 2))
#> m.code
#> m.a.code
#> m(torch.ones(1, 2))

### tensor_constants
#< def f(x): return x + torch.tensor([1., 2.])
#< t = torch.jit.trace(f, torch.ones(2))
#> t(torch.zeros(2))
#> t.code

### half_traced
#< m = torch.jit.trace(nn.Sequential(nn.Linear(2, 2)).double().eval(), torch.ones(1, 2, dtype=torch.float64))
#> m(torch.ones(1, 2, dtype=torch.float64))
#> m.float()
#> m(torch.ones(1, 2))

### traced_twice
#< def f(x): return x * 3
#< t = torch.jit.trace(torch.jit.trace(f, torch.ones(2)), torch.ones(3))
#> t(torch.ones(4))

### cpu_before_saving
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)
    def forward(self, x):
        return self.fc(x) + torch.ones(1, device=x.device)
#< m = torch.jit.trace(M().eval().cpu(), torch.ones(1, 2).cpu())
#> m(torch.ones(1, 2))
#> m.code
