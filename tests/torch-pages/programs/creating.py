### script_function
def f(x, y: float = 2.0):
    return x * y
#> g = torch.jit.script(f)
#> g(torch.ones(2))
#> g(torch.ones(2), 3.0)
#> g(x=torch.ones(2), y=0.5)
#> g.name
#> g.graph
#> g.code

### script_decorator
@torch.jit.script
def f(x: int, y: int):
    if x > y:
        return x
    return y
#> f(3, 4)
#> f(5, 4)
#> f.code

### script_function_keeps_source_semantics
@torch.jit.script
def helper(x: int) -> int:
    return x * 2
def f(x: int):
    return helper(x) + helper(x + 1)
# f(3)

### script_class
@torch.jit.script
class Box:
    def __init__(self, v: int):
        self.v = v
    def grow(self, by: int) -> int:
        self.v += by
        return self.v
def f(v: int):
    b = Box(v)
    b.grow(2)
    return b.grow(3)
# f(1)

### script_module_instance
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M())
#> m.training
#> m(torch.ones(2))
#> m.w

### script_module_copies_data
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 1
        self.l = [1, 2]
    def forward(self, x):
        return x + self.n + self.l[0]
e = M()
model = torch.jit.script(e)
e.n = 10
# f(torch.zeros(1))

### script_function_without_annotations
def f(x, n):
    return x + n
# f(torch.ones(2), torch.ones(1))

### script_refuses_ints_without_annotation
def f(n):
    return n + 1
# f(3)

### script_needs_types
def f(x: int):
    y = x
    y = "a"
    return y

### function_in_function_list
def f(x):
    y = [x, x + 1]
    return y[0] + y[1]
# f(torch.ones(1))

### fork_and_wait
def g(x, n: int):
    return x * n
def f(x):
    a = torch.jit.fork(g, x, 2)
    b = torch.jit.fork(g, x, 3)
    return torch.jit.wait(a) + torch.jit.wait(b)
# f(torch.ones(2))

### fork_keyword_arguments
def g(x, n: int = 5):
    return x * n
def f(x):
    return torch.jit.wait(torch.jit.fork(g, x=x, n=4))
# f(torch.ones(1))

### fork_default_arguments
def g(x, n: int = 5):
    return x * n
def f(x):
    return torch.jit.wait(torch.jit.fork(g, x))
# f(torch.ones(1))

### fork_list_of_futures
def g(n: int) -> int:
    return n * n
def f(n: int):
    futures: List[torch.jit.Future[int]] = []
    for i in range(n):
        futures.append(torch.jit.fork(g, i))
    total = 0
    for fut in futures:
        total += torch.jit.wait(fut)
    return total
# f(4)

### fork_of_submodule
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((1,), 3.))
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return torch.jit.wait(torch.jit.fork(self.sub, x)) + 1
# f(torch.ones(1))

### fork_of_method
class M(nn.Module):
    def forward(self, x):
        return torch.jit.wait(torch.jit.fork(self.other, x))
    def other(self, x):
        return x + 2
# f(torch.ones(1))

### fork_raises_when_waited
def g(n: int) -> int:
    if n > 2:
        raise ValueError("too large")
    return n
def f(n: int):
    fut = torch.jit.fork(g, n)
    return torch.jit.wait(fut)
# f(1)
# f(3)

### fork_nested
def h(x):
    return x + 1
def g(x):
    return torch.jit.wait(torch.jit.fork(h, x)) * 2
def f(x):
    return torch.jit.wait(torch.jit.fork(g, x))
# f(torch.ones(1))

### fork_returns_tuple
def g(x) -> Tuple[Tensor, int]:
    return x, 3
def f(x):
    t = torch.jit.wait(torch.jit.fork(g, x))
    return t[0] + t[1]
# f(torch.ones(1))

### wait_twice
def g(x):
    return x + 1
def f(x):
    fut = torch.jit.fork(g, x)
    return torch.jit.wait(fut) + torch.jit.wait(fut)
# f(torch.ones(1))

### wait_needs_a_future
def f(x):
    return torch.jit.wait(x)

### future_as_a_return_value
def g(x):
    return x + 1
def start(x) -> torch.jit.Future[Tensor]:
    return torch.jit.fork(g, x)
def f(x):
    return torch.jit.wait(start(x))
# f(torch.ones(1))

### isinstance_list
def f(x: Any):
    if torch.jit.isinstance(x, List[int]):
        return len(x)
    return -1
# f([1, 2])
# f(["a"])
# f(3)

### isinstance_list_of_tensors
def f(x: Any):
    if torch.jit.isinstance(x, List[Tensor]):
        return x[0] + 1
    return torch.zeros(1)
# f([torch.ones(1)])
# f([1])

### isinstance_dict
def f(x: Any):
    if torch.jit.isinstance(x, Dict[str, int]):
        return x["a"]
    return -1
# f({"a": 4})
# f({"a": "b"})

### isinstance_tuple
def f(x: Any):
    if torch.jit.isinstance(x, Tuple[int, str]):
        return x[1]
    return "no"
# f((1, "yes"))
# f((1, 2))

### isinstance_optional
def f(x: Any):
    if torch.jit.isinstance(x, Optional[int]):
        if x is None:
            return -1
        return x
    return -2
# f(None)
# f(4)
# f("a")

### isinstance_of_several
def f(x: Any):
    if torch.jit.isinstance(x, (List[int], List[str])):
        return 1
    return 0
# f([1])
# f(["a"])
# f([1.5])

### isinstance_nested
def f(x: Any):
    if torch.jit.isinstance(x, Dict[str, List[int]]):
        return x["k"][0]
    return -1
# f({"k": [7]})

### isinstance_plain
def f(x: Union[int, str]):
    if isinstance(x, int):
        return x + 1
    return len(x)
# f(1)
# f("abc")

### annotate_list
def f():
    x = torch.jit.annotate(List[int], [])
    x.append(2)
    return x
# f()

### annotate_dict
def f():
    x = torch.jit.annotate(Dict[str, Tensor], {})
    x["a"] = torch.ones(1)
    return x
# f()

### annotate_optional
def f(flag: bool):
    x = torch.jit.annotate(Optional[int], None)
    if flag:
        x = 3
    return x
# f(True)
# f(False)

### annotate_wrong_value
def f():
    return torch.jit.annotate(List[int], ["a"])

### annotate_in_constructor
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.names = torch.jit.annotate(List[str], [])
        self.limit = torch.jit.annotate(Optional[int], None)
    def forward(self, s: str):
        self.names.append(s)
        return self.names
# f("a")

### attribute_wrapper
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = torch.jit.Attribute({}, Dict[str, int])
        self.n = torch.jit.Attribute(20, int)
    def forward(self, k: str):
        self.d[k] = self.n
        return self.d
# f("a")

### attribute_wrapper_value_and_type
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.o = torch.jit.Attribute(None, Optional[int])
    def forward(self):
        return self.o
# f()

### attribute_wrapper_float
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.jit.Attribute(0.1, float)
    def forward(self, y: float):
        return self.x + y
# f(1.0)

### ignore_method_raises_here
class M(nn.Module):
    def forward(self, x, flag: bool):
        if flag:
            return self.python(x)
        return x
    @torch.jit.ignore
    def python(self, x):
        return x
# f(torch.ones(1), False)

### ignore_function_unused
@torch.jit.ignore
def python(x):
    import os
    return x
def f(x):
    return x + 1
# f(torch.ones(1))

### ignore_with_types
class M(nn.Module):
    def forward(self, x: int):
        if x > 5:
            return self.python(x)
        return x
    @torch.jit.ignore
    def python(self, x: int) -> int:
        return x
# f(1)

### ignore_drop
class M(nn.Module):
    def forward(self, x, flag: bool = False):
        if flag:
            return self.python(x)
        return x
    @torch.jit.ignore(drop=True)
    def python(self, x):
        return x
# f(torch.ones(1))
# f(torch.ones(1), True)

### ignore_drop_false
class M(nn.Module):
    def forward(self, x, flag: bool = False):
        if flag:
            return self.python(x)
        return x
    @torch.jit.ignore(drop=False)
    def python(self, x):
        return x
# f(torch.ones(1))

### unused_method
class M(nn.Module):
    def forward(self, x, flag: bool = False):
        if flag:
            return self.python(x)
        return x
    @torch.jit.unused
    def python(self, x):
        import pdb
        return x
# f(torch.ones(1))
# f(torch.ones(1), True)

### unused_function
@torch.jit.unused
def python(x: int) -> int:
    import pdb
    return x
def f(x: int):
    if x > 3:
        return python(x)
    return x
# f(1)
# f(5)

### unused_property
class M(nn.Module):
    @torch.jit.unused
    @property
    def p(self):
        import os
        return 3
    def forward(self, x):
        return x + 1
# f(torch.ones(1))

### interface
@torch.jit.interface
class Shape:
    def area(self) -> float:
        pass
@torch.jit.script
class Square:
    def __init__(self, a: float):
        self.a = a
    def area(self) -> float:
        return self.a * self.a
def measure(s: Shape) -> float:
    return s.area()
def f(a: float):
    return measure(Square(a))
# f(3.0)

### interface_not_implemented
@torch.jit.interface
class Shape:
    def area(self) -> float:
        pass
@torch.jit.script
class Dot:
    def __init__(self):
        self.a = 1
def measure(s: Shape) -> float:
    return s.area()
def f():
    return measure(Dot())

### strict_fusion_with
def f(x):
    with torch.jit.strict_fusion():
        y = x * 2 + 1
    return y
# f(torch.ones(2))

### strict_fusion_around_return
def f(x, y):
    with torch.jit.strict_fusion():
        return x + y + x
# f(torch.ones(2), torch.ones(2))

### record_function
def f(x):
    with torch.autograd.profiler.record_function("part"):
        y = x + 1
    return y
# f(torch.ones(2))

### no_grad
def f(x):
    with torch.no_grad():
        y = x + 1
    return y
# f(torch.ones(2))

### script_if_tracing
@torch.jit.script_if_tracing
def g(x, n: int):
    for i in range(n):
        x = x + i
    return x
def f(x):
    return g(x, 3)
# f(torch.ones(1))

### is_scripting
def f(x):
    if torch.jit.is_scripting():
        return x + 1
    return x - 1
# f(torch.zeros(1))

### is_tracing
def f(x):
    if torch.jit.is_tracing():
        return x + 1
    return x - 1
# f(torch.zeros(1))

### onednn_fusion_switch
def f(x):
    return torch.relu(x + 1)
#> g = torch.jit.script(f)
#> torch.jit.onednn_fusion_enabled()
#> g(torch.tensor([-3., 1.]))

### script_function_is_an_object
@torch.jit.script
def f(x: int) -> int:
    return x + 1
#> f.name
#> f.qualified_name
#> f.inlined_graph
#> f(1)
#> f("a")
#> f()
#> f(1, 2)

### overloads
@torch.jit._overload
def twice(x: int) -> int: ...
@torch.jit._overload
def twice(x: str) -> str: ...
def twice(x):
    return x + x
def f():
    return twice(2), twice("a")
# f()

### exports_and_lazy_compilation
class M(nn.Module):
    def implicit(self, x):
        return x + 99
    def forward(self, x):
        return x + 10
    @torch.jit.export
    def another(self, x):
        return self.implicit(x)
    def never(self, x):
        return x - 20
#> m = torch.jit.script(M())
#> methods(m)
#> m(torch.zeros(1))
#> m.another(torch.zeros(1))
#> m.implicit(torch.zeros(1))

### export_on_function
@torch.jit.export
def f(x: int):
    return x + 2
# f(1)

### export_forward_changes_nothing
class M(nn.Module):
    @torch.jit.export
    def forward(self, x):
        return x + 10
#> m = torch.jit.script(M())
#> methods(m)
#> m(torch.zeros(1))

### never_compiled_method_may_be_wrong
class M(nn.Module):
    def forward(self, x):
        return x
    def wrong(self, x):
        import os
        lambda y: y
        return os.path.join(x)
# f(torch.ones(1))

### compiled_method_is_wrong
class M(nn.Module):
    def forward(self, x):
        return self.wrong(x)
    def wrong(self, x):
        import os
        return x
