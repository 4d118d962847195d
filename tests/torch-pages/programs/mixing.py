### traced_function_in_source
def g(x, y):
    return 3 * x - y
traced = torch.jit.trace(g, (torch.ones(2), torch.ones(2)))
def f(x):
    return traced(x, x)
# f(torch.ones(2))
# f(torch.arange(4.))

### traced_function_in_a_loop
def step(x):
    return torch.sigmoid(x) + 1
traced = torch.jit.trace(step, torch.ones(2))
def f(x, n: int):
    while n > 0:
        x = traced(x)
        n -= 1
    return x
# f(torch.zeros(2), 0)
# f(torch.zeros(2), 2)

### traced_function_in_a_branch
def plus(x):
    return x + 1
def minus(x):
    return x - 1
a = torch.jit.trace(plus, torch.ones(1))
b = torch.jit.trace(minus, torch.ones(1))
def f(x, up: bool):
    if up:
        return a(x)
    return b(x)
# f(torch.zeros(1), True)
# f(torch.zeros(1), False)

### traced_function_loses_its_branch
def g(x):
    if x.sum() > 0:
        return x * 2
    return x * 3
traced = torch.jit.trace(g, torch.ones(2))
def f(x):
    return traced(x)
# f(torch.ones(2))
# f(-1 * torch.ones(2))

### scripted_function_in_a_trace
@torch.jit.script
def smaller(x, y):
    if bool(x.min() < y.min()):
        r = x
    else:
        r = y
    return r
def g(x, y, z):
    return smaller(x, y) * z
traced = torch.jit.trace(g, (torch.ones(2), torch.zeros(2), torch.ones(2)))
def f(x, y, z):
    return traced(x, y, z)
# f(torch.ones(2), torch.zeros(2), torch.ones(2))
# f(torch.ones(2), torch.full((2,), 5.), torch.full((2,), 2.))

### scripted_loop_in_a_trace
@torch.jit.script
def halve(x):
    while bool(x.max() > 1.0):
        x = x / 2
    return x
def g(x):
    return halve(x) + 1
traced = torch.jit.trace(g, torch.full((2,), 4.))
def f(x):
    return traced(x)
# f(torch.full((2,), 4.))
# f(torch.full((2,), 64.))
# f(torch.full((2,), 0.5))

### traced_module_in_a_scripted_module
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2., 3.]))
    def forward(self, x):
        return x * self.scale
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.means = nn.Parameter(torch.tensor([1., 2.]).resize_(1, 2))
        self.net = torch.jit.trace(Net(), torch.ones(1, 2))
    def forward(self, x):
        return self.net(x - self.means)
# f(torch.ones(1, 2))
# f(torch.zeros(3, 2))

### traced_sequential_in_a_scripted_module
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = torch.jit.trace(nn.Sequential(nn.ReLU(), nn.Tanh()), torch.ones(2))
    def forward(self, x, n: int):
        for i in range(n):
            x = self.act(x) + 1
        return x
# f(torch.tensor([-1., 1.]), 2)

### scripted_module_in_a_traced_module
class Gate(nn.Module):
    def forward(self, x):
        if bool(x.sum() > 0):
            return x
        return -x
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.jit.script(Gate())
    def forward(self, x):
        return self.gate(x) + 1
model = torch.jit.trace(Outer(), torch.ones(2))
# f(torch.ones(2))
# f(torch.full((2,), -3.))

### script_if_tracing_in_a_trace
@torch.jit.script_if_tracing
def clip(x, n: int):
    for i in range(n):
        if bool(x.sum() > 4):
            x = x - 1
    return x
def g(x):
    return clip(x, 3) * 2
traced = torch.jit.trace(g, torch.ones(2))
def f(x):
    return traced(x)
# f(torch.ones(2))
# f(torch.full((2,), 9.))

### traced_out_of_place_rows
def g(x):
    return torch.cat((torch.zeros(1, x.size(1)), x[1:]), dim=0)
traced = torch.jit.trace(g, torch.ones(3, 2))
def f(x):
    return traced(x)
# f(torch.ones(4, 3))

### traced_method_through_the_module
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 5.))
    def forward(self, x):
        return self.w * x
model = torch.jit.trace(Net(), torch.ones(2))
# f(torch.full((2,), 2.))
