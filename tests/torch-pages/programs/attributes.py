### inferred_types
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.i = 2
        self.f = 2.5
        self.b = True
        self.s = "x"
        self.t = torch.ones(1)
        self.l = [1, 2]
        self.d = {"a": 1.5}
        self.p = (1, "a")
    def forward(self):
        return self.i, self.f, self.b, self.s, self.t, self.l, self.d, self.p
# f()

### int_attribute_without_annotation
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = 2
    def forward(self):
        return self.x
# f()

### parameter
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(3.))
    def forward(self, x):
        return x * self.w
# f(torch.ones(3))

### buffer
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.arange(3.))
    def forward(self, x):
        self.b = self.b + 1
        return x * self.b
# f(torch.ones(3))
# f(torch.ones(3))

### buffer_is_a_tensor_attribute
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.zeros(1))
        self.a = torch.zeros(1)
    def forward(self):
        return self.a + self.b
#> m = torch.jit.script(M().eval())
#> names(m.named_buffers())
#> m.a
#> m.b

### final_annotation
class M(nn.Module):
    k: Final[int]
    def __init__(self):
        super().__init__()
        self.k = 2
    def forward(self, x):
        return x * self.k
#> m = torch.jit.script(M().eval())
#> m.k
#> count(m.graph, "prim::GetAttr")
#> m.code
#> m(torch.ones(1))

### final_with_class_value
class M(nn.Module):
    k: Final[int] = 3
    def forward(self, x):
        return x * self.k
# f(torch.ones(1))

### final_without_type
class M(nn.Module):
    k: Final = 3
    def forward(self, x):
        return x * self.k
# f(torch.ones(1))

### final_cannot_be_assigned
class M(nn.Module):
    k: Final[int]
    def __init__(self):
        super().__init__()
        self.k = 2
    def forward(self, x):
        self.k = 3
        return x * self.k

### final_list
class M(nn.Module):
    k: Final[List[int]]
    def __init__(self):
        super().__init__()
        self.k = [1, 2]
    def forward(self, x):
        return x * self.k[1]
# f(torch.ones(1))

### final_string_and_bool
class M(nn.Module):
    name: Final[str]
    flag: Final[bool]
    def __init__(self):
        super().__init__()
        self.name = "abc"
        self.flag = False
    def forward(self, x):
        if self.flag:
            return x
        return x + len(self.name)
# f(torch.ones(1))

### final_tuple_and_float
class M(nn.Module):
    t: Final[Tuple[int, float]]
    def __init__(self):
        super().__init__()
        self.t = (2, 0.5)
    def forward(self, x):
        return x * self.t[0] + self.t[1]
# f(torch.ones(1))

### final_none
class M(nn.Module):
    o: Final[Optional[int]]
    def __init__(self):
        super().__init__()
        self.o = None
    def forward(self, x):
        if self.o is None:
            return x
        return x + 1
# f(torch.ones(1))

### constants_list
class M(nn.Module):
    __constants__ = ["k"]
    def __init__(self):
        super().__init__()
        self.k = 2
    def forward(self, x):
        return x * self.k
#> m = torch.jit.script(M().eval())
#> m.k
#> count(m.graph, "prim::GetAttr")
#> m(torch.ones(1))

### constants_of_class_value
class M(nn.Module):
    __constants__ = ["k"]
    k = 5
    def forward(self, x):
        return x * self.k
# f(torch.ones(1))

### constants_in_loop_bound
class M(nn.Module):
    __constants__ = ["n"]
    def __init__(self):
        super().__init__()
        self.n = 3
    def forward(self, x):
        for i in range(self.n):
            x = x * 2
        return x
# f(torch.ones(1))

### constants_remove_branches
class M(nn.Module):
    flag: Final[bool]
    def __init__(self, flag: bool):
        super().__init__()
        self.flag = flag
        if flag:
            self.a = nn.ReLU()
    def forward(self, x):
        if self.flag:
            return self.a(x)
        return x
model = nn.Sequential(M(True), M(False))
# f(torch.tensor([-1., 2.]))

### not_constant_is_copied
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 2
    def forward(self, x):
        return x * self.k
#> m = torch.jit.script(M().eval())
#> count(m.graph, "prim::GetAttr")
#> m.k = 3
#> m(torch.ones(1))

### final_cannot_be_set
class M(nn.Module):
    k: Final[int]
    def __init__(self):
        super().__init__()
        self.k = 2
    def forward(self, x):
        return x * self.k
#> m = torch.jit.script(M().eval())
#> m(torch.ones(1))
#> m.k = 3

### class_level_attribute_is_unknown
class M(nn.Module):
    k = 5
    def forward(self, x):
        return x * self.k
# f(torch.ones(1))

### empty_list_without_annotation
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = []
    def forward(self, x):
        return x
# f(torch.ones(1))

### empty_list_without_annotation_used
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = []
    def forward(self, x):
        self.l.append(x)
        return len(self.l)

### empty_dict_without_annotation_used
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = {}
    def forward(self, x):
        self.d["a"] = x
        return len(self.d)

### empty_dict_annotated
class M(nn.Module):
    d: Dict[str, int]
    def __init__(self):
        super().__init__()
        self.d = {}
        self.n = 20
    def forward(self, k: str):
        self.d[k] = self.n
        return self.d
# f("a")
# f("b")

### empty_list_annotated
class M(nn.Module):
    l: List[Tensor]
    def __init__(self):
        super().__init__()
        self.l = []
    def forward(self, x):
        self.l.append(x)
        return self.l
# f(torch.ones(1))
# f(torch.zeros(1))

### empty_containers_annotated_in_init
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l: List[int] = []
        self.d: Dict[int, str] = {}
    def forward(self, n: int):
        self.l.append(n)
        self.d[n] = str(n)
        return self.l, self.d
# f(3)

### optional_attribute_annotated
class M(nn.Module):
    o: Optional[int]
    def __init__(self):
        super().__init__()
        self.o = None
    def forward(self, n: int):
        old = self.o
        self.o = n
        return old
# f(3)
# f(4)

### union_attribute
class M(nn.Module):
    u: Union[int, str]
    def __init__(self):
        super().__init__()
        self.u = 3
    def forward(self):
        u = self.u
        if isinstance(u, int):
            return u + 1
        return -1
# f()

### annotation_differs_from_value
class M(nn.Module):
    n: str
    def __init__(self):
        super().__init__()
        self.n = 3
    def forward(self):
        return self.n

### not_convertible_unused
class Thing:
    pass
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.thing = object()
        self.f = lambda x: x
    def forward(self, x):
        return x + 1
# f(torch.ones(1))

### not_convertible_used
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.thing = object()
    def forward(self, x):
        return self.thing

### mixed_list_unused
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = [1, "a"]
    def forward(self, x):
        return x
# f(torch.ones(1))

### mixed_list_used
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = [1, "a"]
    def forward(self, x):
        return self.l

### nested_containers
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = {"a": [1, 2], "b": [3]}
        self.l = [("x", 1), ("y", 2)]
    def forward(self):
        return self.d["a"][1], self.l[1]
# f()

### function_attribute
def double(x):
    return x * 2
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = double
    def forward(self, x):
        return self.act(x)
# f(torch.ones(1))

### functional_attribute
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = F.relu
    def forward(self, x):
        return self.act(x)
# f(torch.tensor([-1., 1.]))

### missing_attribute
class M(nn.Module):
    def forward(self, x):
        return x + self.nothing

### attribute_of_submodule
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 4
    def forward(self, x):
        return x
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        self.sub.k += 1
        return x + self.sub.k
# f(torch.zeros(1))
# f(torch.zeros(1))

### attribute_wrong_assignment
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 4
    def forward(self, x):
        self.k = x
        return x

### assigned_only_in_forward
class M(nn.Module):
    def forward(self, x):
        self.y = x
        return x

### old_style_module
class M(torch.jit.ScriptModule):
    __constants__ = ["k"]
    def __init__(self):
        super().__init__()
        self.k = 2
        self.w = nn.Parameter(torch.full((2,), 3.))
    @torch.jit.script_method
    def forward(self, x):
        return x * self.k + self.w
#> m = M()
#> m(torch.ones(2))
#> m.k
#> names(m.named_parameters())
#> methods(m)

### old_style_attributes
class M(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.d = torch.jit.Attribute({}, Dict[str, int])
        self.n = torch.jit.Attribute(20, int)
    @torch.jit.script_method
    def forward(self, k: str):
        self.d[k] = self.n
        return self.d
#> m = M()
#> m("a")
#> m.n
#> m.d

### old_style_two_methods
class M(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.n = 4
    @torch.jit.script_method
    def forward(self, x):
        return self.other(x) + 1
    @torch.jit.script_method
    def other(self, x):
        return x * 2
#> m = M()
#> m(torch.ones(1))
#> m.other(torch.ones(1))

### variables_python_hints
def f(flag: bool):
    d: Dict[str, int] = {}
    d["hi"] = 2
    b: Optional[int] = None
    if flag:
        b = 2
    return d, b
# f(True)
# f(False)

### variables_default_container_type
def f():
    l = []
    l.append(torch.ones(1))
    return l
# f()

### variables_default_dict_type
def f():
    d = {}
    d["a"] = torch.ones(1)
    return d
# f()

### variables_wrong_element
def f():
    l = []
    l.append(1)
    return l

### variables_optional_without_annotation
def f(flag: bool):
    b = None
    if flag:
        b = 2
    return b
# f(True)
# f(False)

### parameters_are_tensors_by_default
def f(x, y):
    return x + y
# f(torch.ones(1), torch.ones(1))

### type_comments
def f(x, n):
    # type: (Tensor, int) -> Tensor
    return x * n
# f(torch.ones(1), 3)

### none_is_no_tensor
def f(x, y):
    return x + y
# f(torch.ones(1), None)
