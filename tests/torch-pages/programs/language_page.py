### statically_typed
def f(x: int):
    y = 1.5
    y = x
    return y

### tensor_methods
def f(x):
    return x.abs().sum(dim=0).unsqueeze(0).expand(2, -1).t().contiguous().view(-1).sort()[0]
# f(torch.tensor([[1., -2.], [3., 4.]]))

### tensor_methods_more
def f(x):
    return x.clamp(0., 2.), x.argmax(1), x.cumsum(0), x.flip([0]), x.masked_fill(x > 2, -1.), x.norm(), x.std(), x.topk(1)[0]
# f(torch.tensor([[1., -2.], [3., 4.]]))

### tensor_properties
def f(x):
    return x.shape, x.dtype, x.device, x.ndim, x.is_sparse, x.requires_grad, x.T, x.numel(), x.layout
# f(torch.ones(2, 3))

### torch_functions
def f(x):
    return torch.cat([x, x]), torch.stack([x, x]), torch.where(x > 0, x, -x), torch.einsum("ij,kj->ik", x, x), torch.linspace(0., 1., 3), torch.arange(3)
# f(torch.tensor([[1., -2.]]))

### functional
def f(x):
    return F.relu(x), F.gelu(x), F.softmax(x, dim=1), F.layer_norm(x, [2]), F.pad(x, [1, 1]), F.normalize(x), F.one_hot(torch.tensor([0, 2]), 3)
# f(torch.tensor([[1., -2.], [3., 4.]]))

### functional_losses
def f(x, y):
    return F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.binary_cross_entropy_with_logits(x, y), F.cosine_similarity(x, y)
# f(torch.tensor([[1., -2.], [3., 4.]]), torch.ones(2, 2))

### functional_convolutions
def f(x, w):
    return F.conv1d(x, w), F.max_pool1d(x, 2), F.avg_pool1d(x, 2), F.interpolate(x, scale_factor=2.0), F.unfold(x.unsqueeze(0), [1, 2])
# f(torch.arange(6.).reshape(1, 1, 6), torch.ones(1, 1, 2))

### modules_of_nn
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.ReLU(), nn.Hardtanh(), nn.LeakyReLU(0.1), nn.Softplus(), nn.Flatten(), nn.LayerNorm(4, elementwise_affine=False))
    def forward(self, x):
        return self.net(x)
# f(torch.arange(4.).reshape(1, 2, 2))

### modules_of_nn_pooling
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.MaxPool2d(2)
        self.b = nn.AdaptiveAvgPool2d(1)
        self.c = nn.Upsample(scale_factor=2.0)
        self.d = nn.ZeroPad2d(1)
    def forward(self, x):
        return self.a(x), self.b(x), self.c(x), self.d(x)
# f(torch.arange(4.).reshape(1, 1, 2, 2))

### math_module
def f(x: float):
    return math.sqrt(x), math.exp(x), math.log(x), math.sin(x), math.floor(x), math.ceil(x), math.pow(x, 2.0), math.pi, math.inf, math.isnan(x), math.atan2(x, 1.0), math.factorial(4), math.gcd(12, 18), math.fabs(-x)
# f(2.25)

### math_module_more
def f(x: float, n: int):
    return math.fmod(x, 2.0), math.copysign(1.0, -x), math.degrees(x), math.log1p(x), math.erf(x), math.gamma(x), math.modf(x), math.frexp(x), math.ldexp(x, n)
# f(4.5, 2)

### other_modules_are_refused
import random
def f(x: float):
    return x + random.random()

### os_module_is_refused
import os
def f(x: str):
    return os.path.join(x, x)

### builtins_numbers
def f(x: int, y: float):
    return abs(-x), min(x, 3), max(y, 2.5), round(y), pow(x, 2), divmod(x, 2), int(y), float(x), bool(x), hex(x), bin(x), oct(x)
# f(5, 2.5)

### builtins_containers
def f(l: List[int], d: Dict[str, int]):
    return len(l), sum(l), sorted(l), list(d.keys()), any([True, False]), all([True, False]), [i + v for i, v in enumerate(l)], [a * b for a, b in zip(l, l)], list(range(3))
# f([3, 1, 2], {"a": 1})

### builtins_strings
def f(s: str):
    return ord(s[0]), chr(98), str(3), s.upper(), s.split("b"), "-".join(["x", "y"]), s.replace("a", "z"), "{} {}".format(s, 1), s.startswith("a"), s.find("c"), f"{s}!", s[1:]
# f("abc")

### builtins_types
def f(x: Any):
    return isinstance(x, int), isinstance(x, (str, float)), hasattr(x, "a") if False else False
# f(1)

### builtins_refused
def f(x: int):
    return eval("x")

### builtins_open_refused
def f(x: str):
    return open(x)

### python_comprehensions
def f(l: List[int]):
    return [x * 2 for x in l], {x: x * x for x in l}
# f([1, 2, 3])

### python_slices
def f(l: List[int], t: Tuple[int, int, int]):
    return l[1:], l[:-1], l[::2], t[1:], l[-1]
# f([1, 2, 3, 4], (5, 6, 7))

### python_unpacking
def f(t: Tuple[int, int]):
    a, b = t
    (c, d), e = t, 3
    return a + b + c + d + e
# f((1, 2))

### python_conditionals
def f(x: int):
    y = 1 if x > 2 else 0
    z = x > 0 and x < 10 or x == 20
    return y, z, not z, 0 < x < 5
# f(3)

### python_string_formatting
def f(x: int, y: float):
    return "%d" % x, "{:.2f}".format(y) if False else "{}".format(y), f"{x}+{y}"
# f(3, 1.5)

### generators_refused
def f(x: int):
    yield x

### lambda_refused
def f(x: int):
    g = lambda y: y + 1
    return g(x)

### star_arguments_refused
def f(*x: int):
    return x

### default_values
def f(x: int = 3, y: str = "a", z: Optional[int] = None, t: bool = True):
    return x, y, z, t
# f()
# f(1, "b", 2, False)

### sequential_input_type
class A(nn.Module):
    def forward(self, x: List[Tensor]):
        return x[0] + x[1]
model = nn.Sequential(A(), nn.ReLU())

### sequential_input_type_redeclared
class A(nn.Module):
    def forward(self, x: List[Tensor]):
        return x[0] + x[1]
class S(nn.Sequential):
    def forward(self, x: List[Tensor]):
        for module in self:
            y = module(x)
        return y
model = S(A())
# f([torch.ones(1), torch.ones(1)])

### sequential_subclass_in_loop
class A(nn.Module):
    def forward(self, x: Tuple[Tensor, int]) -> Tuple[Tensor, int]:
        return x[0] + x[1], x[1] + 1
class S(nn.Sequential):
    def forward(self, x: Tuple[Tensor, int]) -> Tuple[Tensor, int]:
        for module in self:
            x = module(x)
        return x
model = S(A(), A())
# f((torch.zeros(1), 1))

### recursive_compilation
def helper(x):
    return deeper(x) + 1
def deeper(x):
    return x * 2
class Sub(nn.Module):
    def forward(self, x):
        return helper(x)
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
# f(torch.ones(1))

### recursive_compilation_of_classes
class Pair:
    def __init__(self, a: int, b: int):
        self.a = a
        self.b = b
    def total(self) -> int:
        return self.a + self.b
def f(x: int):
    return Pair(x, 2).total()
# f(3)

### compiled_in_the_order_of_use
class M(nn.Module):
    def forward(self, x):
        return self.b(x) + self.a(x)
    def a(self, x):
        return x * 2
    def b(self, x):
        return self.a(x) + 1
# f(torch.ones(1))

### two_convolutions
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 2, 3)
        self.b = nn.Conv2d(2, 1, 3)
    def forward(self, x):
        x = F.relu(self.a(x))
        return F.relu(self.b(x))
#< m = torch.jit.script(M())
#> m(torch.ones(1, 1, 5, 5))
#> names(m.named_parameters())
#> m.code

### classes_are_records
@torch.jit.script
class Point:
    def __init__(self, x: float, y: float):
        self.x = x
        self.y = y
    def norm(self) -> float:
        return math.sqrt(self.x * self.x + self.y * self.y)
    def moved(self, by: float) -> float:
        self.x += by
        return self.norm()
def f(x: float):
    p = Point(x, 4.0)
    return p.norm(), p.moved(1.0), p.x
# f(3.0)

### classes_ignored_method
@torch.jit.script
class Point:
    def __init__(self, x: int):
        self.x = x
    @torch.jit.ignore
    def python(self):
        return 3
    def value(self) -> int:
        return self.x
def f(x: int):
    return Point(x).value()
# f(3)

### classes_magic_methods
@torch.jit.script
class V:
    def __init__(self, x: int):
        self.x = x
    def __add__(self, other: "V") -> int:
        return self.x + other.x
    def __len__(self) -> int:
        return self.x
    def __getitem__(self, i: int) -> int:
        return self.x * i
    def __contains__(self, i: int) -> bool:
        return self.x == i
def f(x: int):
    v = V(x)
    return v + v, len(v), v[3], 2 in v
# f(2)

### classes_in_lists
@torch.jit.script
class Item:
    def __init__(self, v: int):
        self.v = v
def f(n: int):
    l: List[Item] = []
    for i in range(n):
        l.append(Item(i))
    total = 0
    for item in l:
        total += item.v
    return total
# f(4)

### classes_attribute_outside_init
@torch.jit.script
class Item:
    def __init__(self, v: int):
        self.v = v
    def later(self):
        self.w = 3
def f(n: int):
    return Item(n).v

### classes_refuse_inheritance
class Base:
    def __init__(self, v: int):
        self.v = v
class Derived(Base):
    def more(self) -> int:
        return self.v
def f(n: int):
    return Derived(n).more()

### named_tuple
class P(NamedTuple):
    x: Tensor
    n: int
def f(t):
    p = P(t, 2)
    return p.x * p.n, p[1], len(p)
# f(torch.ones(1))

### debugging_without_jit
@torch.jit.script
def f(x):
    for i in range(4):
        x = x + x
    return x
#> f(torch.ones(2))

### training_model_runs_in_eval
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = nn.Dropout(0.9)
    def forward(self, x):
        return self.d(x)
#> m = torch.jit.script(M())
#> m.eval()
#> m(torch.ones(3))

### comprehension_conditions_refused
def f(l: List[int]):
    return [x * 2 for x in l if x > 1]

### string_repetition_refused
def f(s: str):
    return s * 2
