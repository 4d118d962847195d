//! Sources and graphs that together have each kind of node that the walker runs itself.

/// A case: its name and its source, or a graph as text. `C` in the source is replaced by a
/// condition, `N` by an integer from 0 to 3; once by such that are known when code is made, and once by such that are read from a tensor.
pub(super) const CASES: &[(&str, &str)] = &[
    (
        "branch",
        "
def f(x, n: int):
    if C:
        y = x + 1
        k = 1
    else:
        y = x * 2
        k = 2
    return y, k
",
    ),
    (
        "branch_in_branch",
        "
def f(x, n: int):
    y = x
    if C:
        if N > 1:
            y = y - 1
        else:
            y.mul_(3)
    return y, x
",
    ),
    (
        "counted_loop",
        "
def f(x, n: int):
    y = x
    for i in range(N):
        y = y * 2 + i
    return y
",
    ),
    (
        "loop_with_condition",
        "
def f(x, n: int):
    y = x
    i = 0
    while i < N and C:
        y = torch.cat([y, x])
        i += 1
    return y, i
",
    ),
    (
        "break_and_continue",
        "
def f(x, n: int):
    y = x
    for i in range(5):
        if i == N:
            continue
        if i > 3:
            break
        y = y + i
    return y
",
    ),
    (
        "early_return",
        "
def f(x, n: int):
    for i in range(3):
        if i == N:
            return x * i
    return x - 1
",
    ),
    (
        "raise",
        "
def f(x, n: int):
    if C:
        raise ValueError('no: ' + str(n))
    else:
        y = x + N
    return y
",
    ),
    (
        "raise_in_a_loop",
        "
def f(x, n: int):
    y = x * 2
    i = 0
    while i < 3:
        y = y + i
        for k in range(2):
            if i + k == N and C:
                raise RuntimeError('at ' + str(i) + str(k))
        i += 1
    return y
",
    ),
    (
        "return_from_nested_loops",
        "
def f(x, n: int):
    y = x
    for i in range(4):
        k = 0
        while k < 3:
            k += 1
            if k == 2 and C:
                continue
            if i + k > N + 2:
                return y, i, k
            y = y + k
        if i == 3:
            break
        y.mul_(2)
    return y, -1, x.numel()
",
    ),
    (
        "optional",
        "
def g(x: Optional[Tensor], y):
    if x is None:
        return y
    return x + y

def f(x, n: int):
    z = torch.jit.annotate(Optional[Tensor], None)
    if C:
        z = x * 2
    k = torch.jit.annotate(Optional[int], N)
    return g(z, x), torch.jit._unwrap_optional(k) + 1
",
    ),
    (
        "fork",
        "
def g(x, n: int):
    if n > 1:
        return x * n
    return x - 1

def f(x, n: int):
    a = torch.jit.fork(g, x, N)
    b = torch.jit.fork(g, x, 3)
    return torch.jit.wait(a) + torch.jit.wait(b)
",
    ),
    (
        "fork_in_a_branch",
        "
def g(x, n: int):
    y = x
    for i in range(n):
        y = y + i
    return y, n

def f(x, n: int):
    if C:
        a = torch.jit.fork(g, x, N)
    else:
        a = torch.jit.fork(g, x * 2, 2)
    for i in range(N):
        b = torch.jit.fork(g, x, i)
        if i > 1:
            x = torch.jit.wait(b)[0]
    return torch.jit.wait(a), x
",
    ),
    (
        "fork_that_raises",
        "
def g(x, c: bool):
    if c:
        raise ValueError('in a fork')
    return x

def f(x, n: int):
    a = torch.jit.fork(g, x, C)
    return torch.jit.wait(a) + 1
",
    ),
    (
        "tuples",
        "
def f(x, n: int):
    t = (x, N, C)
    a, b, c = t
    s = t[1:]
    return t[0] + 1, b, c, s[0], t[-1], (t, (a, t[1]))
",
    ),
    (
        "tuple_of_equal_types",
        "
def f(x, n: int):
    t = (x, x + 1, x + 2)
    return t[0], t[-1]
",
    ),
    (
        "lists",
        "
def f(x, n: int):
    l = [x, x * 2, x * 3]
    a, b, c = l
    l.append(a + c)
    l[0] = b
    k = [N, 2, 3]
    k.append(5)
    p, q, r, s = k
    return l[N], l, k[1:], p + s
",
    ),
    (
        "dictionaries",
        "
def f(x, n: int):
    d = {'a': x, 'b': x * 2}
    if C:
        d['c'] = x - 1
    k = {1: N, 2: 3}
    return d['b'], d, 'c' in d, k[1], [key for key in d]
",
    ),
    (
        "numbers_as_tensors",
        "
def f(x, n: int):
    t = torch.tensor(N)
    return t + x, torch.tensor([N, 2]), int(t)
",
    ),
    (
        "objects",
        "
class Pair:
    def __init__(self, x: Tensor, n: int):
        self.x = x
        self.n = n
    def sum(self, y):
        self.n += 1
        return self.x + y * self.n

def f(x, n: int):
    p = Pair(x, N)
    a = p.sum(x)
    if C:
        p.x = a
    return p.sum(x), p.n, p.x
",
    ),
    (
        "contexts",
        "
class Scope:
    def __init__(self):
        self.depth = 0
    def __enter__(self):
        self.depth += 1
        return self.depth
    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.depth -= 1

def f(x, n: int):
    scope = Scope()
    with scope as inner:
        y = x + inner + scope.depth
        if C:
            y = y * N
    return y, scope.depth
",
    ),
    (
        "raise_in_contexts",
        "
class Scope:
    def __init__(self, x: Tensor):
        self.x = x
    def __enter__(self):
        return self.x
    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.x.add_(1)

def f(x, n: int):
    with Scope(x) as y:
        for i in range(3):
            with Scope(y):
                y.mul_(2)
                if i == N:
                    raise ValueError('at ' + str(i))
    return x
",
    ),
    (
        "enumerations",
        "
class Color(Enum):
    RED = 1
    GREEN = 2

def f(x, n: int):
    c = Color.RED
    if C:
        c = Color.GREEN
    return x * c.value, c.name, c == Color.RED
",
    ),
    (
        "attributes",
        "
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
    def forward(self, x):
        return x * self.w

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.past = torch.zeros(3)
        self.calls = 0
    def forward(self, x, n: int):
        self.calls += 1
        if C:
            self.past = self.past + x
        return self.inner(x), self.past, self.calls + N
model = Net().eval()
",
    ),
    (
        "views_of_negatives",
        "
def f(x, n: int):
    t = torch._neg_view(x)
    y = t + 1
    t.add_(N)
    return y, t * 2, t[1:] - 1, x
",
    ),
    (
        "print",
        "
def f(x, n: int):
    print('so', n)
    return x
",
    ),
    (
        "containers.ir",
        "graph(%x : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %k : Tensor = prim::NumToTensor(%n)
  %y : Tensor = aten::mul(%x, %k)
  %t : (Tensor, int, Tensor) = prim::TupleConstruct(%x, %n, %y)
  %a : Tensor = prim::TupleIndex(%t, %zero)
  %s : (int, Tensor) = prim::TupleSlice[beg=1, end=3](%t)
  %i : int, %b : Tensor = prim::TupleUnpack(%s)
  %o : int = prim::unchecked_unwrap_optional(%i)
  %p : Tensor = prim::VarConcat(%a, %b, %x, %zero)
  %q : Tensor = prim::VarStack(%a, %b, %one)
  return (%p, %q, %o, %s)
",
    ),
    (
        "batched_products.ir",
        "graph(%x : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %row : Tensor = aten::unsqueeze(%x, %zero)
  %column : Tensor = aten::unsqueeze(%x, %one)
  %twice : Tensor = aten::mul(%column, %n)
  %sum : Tensor = prim::MMTreeReduce(%row, %row, %column, %twice)
  %p : Tensor, %q : Tensor = prim::MMBatchSide[side=0](%row, %column, %twice)
  %r : Tensor, %s : Tensor = prim::MMBatchSide[side=1](%column, %row, %row)
  return (%sum, %p, %q, %r, %s)
",
    ),
    (
        "isinstance_of_a_union",
        "
# Not known when the method is frozen.
def choose(c: bool, x, n: int) -> Union[int, Tensor, List[Tensor]]:
    if c:
        return x
    if n == 0:
        return [x * 2]
    return n

def union(v: Union[int, Tensor, List[Tensor]], x):
    if isinstance(v, int):
        return x + v
    if isinstance(v, torch.Tensor):
        return x * v
    return x - v[0]

def f(x, n: int):
    return union(choose(C, x, n), x)
",
    ),
    (
        "isinstance_of_an_interface",
        "
@torch.jit.interface
class Shape:
    def area(self, x: Tensor) -> Tensor:
        pass

class Square:
    def __init__(self, n: int):
        self.n = n
    def area(self, x: Tensor) -> Tensor:
        return x * self.n * self.n

class Other:
    def __init__(self, n: int):
        self.n = n

def is_shape(v: Any) -> bool:
    return isinstance(v, Shape)

def kind(v: Any) -> int:
    if torch.jit.isinstance(v, List[Shape]):
        return 1
    if torch.jit.isinstance(v, Optional[Shape]):
        return 2
    return 3

def f(x, n: int):
    a = Square(N)
    b = Other(N)
    k = torch.jit.annotate(Optional[Square], None)
    if C:
        k = a
    return a.area(x), is_shape(a), is_shape(b), is_shape(x), is_shape(k), kind(a), kind(b), kind(k)
",
    ),
    (
        "isinstance",
        "
class A:
    def __init__(self):
        self.n = 1

def kind(v: Any) -> int:
    if isinstance(v, torch.Tensor):
        return 1
    if isinstance(v, bool):
        return 2
    if isinstance(v, int):
        return 3
    if isinstance(v, float):
        return 4
    if isinstance(v, str):
        return 5
    if torch.jit.isinstance(v, List[int]):
        return 6
    if torch.jit.isinstance(v, List[Tensor]):
        return 7
    if torch.jit.isinstance(v, Dict[str, int]):
        return 8
    if torch.jit.isinstance(v, Tuple[int, Tensor]):
        return 9
    if torch.jit.isinstance(v, Optional[complex]):
        return 10
    if isinstance(v, A):
        return 11
    return 12

def union(v: Union[int, Tensor, List[Tensor]], x):
    if isinstance(v, int):
        return x + v
    if isinstance(v, torch.Tensor):
        return x * v
    return x - v[0]

def f(x, n: int):
    kinds = [kind(x), kind(C), kind(N), kind(0.5), kind('s'), kind([N]), kind([x]), kind({'a': N}), kind((N, x)), kind(None), kind(2j), kind(A()), kind([0.5])]
    return kinds, union(N, x), union(x, x), union([x, x], x)
",
    ),
];
