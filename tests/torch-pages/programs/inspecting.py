### code_of_a_loop
@torch.jit.script
def f(n: int):
    rv = torch.zeros(2, 3)
    for i in range(n):
        if i < 5:
            rv = rv - 1.0
        else:
            rv = rv + 1.0
    return rv
#> f.code
#> f.graph
#> f(7)

### code_of_forward
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return torch.relu(x * self.w)
#> m = torch.jit.script(M().eval())
#> m.code
#> m.graph

### code_of_a_method
class M(nn.Module):
    def forward(self, x):
        return x
    @torch.jit.export
    def foo(self, x, n: int):
        while n > 0:
            x = x + n
            n -= 1
        return x
#> m = torch.jit.script(M().eval())
#> m.foo.code
#> m.foo.graph
#> m.code

### code_of_a_submodule
class Sub(nn.Module):
    def forward(self, x):
        return x + 1
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> m = torch.jit.script(M().eval())
#> m.sub.code
#> m.code

### code_without_forward
class M(nn.Module):
    @torch.jit.export
    def run(self, x):
        return x + 1
#> m = torch.jit.script(M().eval())
#> m.run.code
#> m.code
#> m.graph

### code_of_traced
#< def f(x): return torch.tanh(x * 2) + 1
#< t = torch.jit.trace(f, torch.ones(2))
#> t.code
#> t.graph

### code_of_while
@torch.jit.script
def f(n: int) -> int:
    i = 0
    while i * i < n:
        i += 1
    return i
#> f.code
#> f(10)

### code_of_strings_and_lists
@torch.jit.script
def f(s: str, l: List[int]):
    d = {"a": l}
    return s + "x", d["a"][0], (l, s)
#> f.code
#> f("a", [1, 2])

### code_of_early_returns
@torch.jit.script
def f(x: int) -> int:
    if x > 3:
        return 1
    for i in range(x):
        if i == 2:
            break
        if i == 1:
            continue
    return 0
#> f.code
#> f(4)

### code_of_calls
@torch.jit.script
def g(x, n: int = 2):
    return x * n
@torch.jit.script
def f(x):
    return g(x) + g(x, 3)
#> f.code

### code_of_raise
@torch.jit.script
def f(x: int) -> int:
    if x < 0:
        raise ValueError("negative")
    assert x < 10, "large"
    return x
#> f.code
#> f(3)

### graph_of_zeros
def f():
    return torch.zeros(3, 4)
# f()

### graph_blocks_of_if
def f(x, flag: bool):
    if flag:
        y = x + 1
    else:
        y = x - 1
    return y
# f(torch.zeros(1), True)

### graph_blocks_of_loop
def f(x, n: int):
    for i in range(n):
        x = x * i
    return x
# f(torch.ones(1), 3)

### graph_nested_blocks
def f(x, n: int):
    for i in range(n):
        if i % 2 == 0:
            for j in range(i):
                x = x + j
        else:
            x = x - 1
    return x
# f(torch.ones(1), 4)

### graph_unique_names
def f(x):
    x = x + 1
    x = x * 2
    x = x - 3
    return x
# f(torch.ones(1))

### graph_types
def f(a: int, b: float, c: bool, d: str, e: List[int], g: Dict[str, Tensor], h: Optional[int], i: Tuple[int, Tensor]):
    return a, b, c, d, e, g, h, i

### graph_of_control_flow_by_data
def f(x):
    y = x[0]
    for i in range(x.size(0)):
        y = y * x[i]
    return y
# f(torch.full((2, 2), 3.))

### graph_schemas
def f(x):
    y = torch.add(x, x, alpha=2)
    z = torch.clamp(y, min=0.5)
    return torch.sum(z, dim=[0], keepdim=True)
# f(torch.ones(2, 2))

### graph_in_place
def f(x):
    x += 1
    x[0] = 5
    return x
# f(torch.zeros(2))

### graph_attributes
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 1
    def forward(self, x):
        self.n += 1
        return x + self.n
# f(torch.zeros(1))

### inlined_graph_of_modules
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
#> m = torch.jit.script(M().eval())
#> kinds(m.graph)
#> kinds(m.inlined_graph)

### str_of_graph
def f(x):
    return torch.relu(x)
#> g = torch.jit.script(f)
#> "aten::relu" in str(g.graph)
#> "aten::tanh" in str(g.graph)

### print_in_program
def f(x: int):
    print("value", x)
    return x
# f(2)

### error_names_the_line
def f(x: int):
    y = x + 1
    z = y.nothing()
    return z

### error_at_run_time_names_the_line
def f(x):
    y = x + 1
    return y.reshape(7)
# f(torch.ones(3))
