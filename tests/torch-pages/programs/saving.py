### save_and_load
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.n = 3
        self.s = "text"
    def forward(self, x):
        return x * self.w + self.n
#> m = torch.jit.script(M().eval())
#> n = again(m)
#> n(torch.ones(2))
#> n.n
#> n.s
#> names(n.named_parameters())
#> n.training
#> n.code
#> n.original_name

### save_training_mode
class M(nn.Module):
    def forward(self, x):
        return self.training
#> m = torch.jit.script(M())
#> n = again(m)
#> n.training
#> n(torch.ones(1))
#> m.eval()
#> again(m).training

### save_function
def f(x, n: int = 2):
    return x * n
#> g = torch.jit.script(f)
#> h = again(g)
#> h(torch.ones(2))
#> h(torch.ones(2), 5)

### extra_files_come_back
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> extra_files(m, {"note.txt": "hello", "meta.json": "{}"}, ["note.txt", "meta.json"])
#> extra_files(m, {"note.txt": "hello"}, ["note.txt"])

### extra_files_missing
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> extra_files(m, {}, ["nothing.txt"])

### extra_files_in_folders
class M(nn.Module):
    def forward(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> extra_files(m, {"a/b.txt": "deep", "empty": ""}, ["a/b.txt", "empty"])

### state_is_saved
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.register_buffer("b", torch.zeros(1))
    def forward(self, x):
        self.n += 1
        self.b += 1
        return x + self.n + self.b
#> m = torch.jit.script(M().eval())
#> m(torch.zeros(1))
#> n = again(m)
#> n.n
#> n.b
#> n(torch.zeros(1))
#> m(torch.zeros(1))

### methods_are_saved
class M(nn.Module):
    def forward(self, x):
        return x
    @torch.jit.export
    def other(self, x, y: int = 3):
        return x + y
    def never(self, x):
        return x
#> m = torch.jit.script(M().eval())
#> n = again(m)
#> methods(n)
#> n.other(torch.zeros(1))
#> n.other(torch.zeros(1), y=1)

### ignored_is_not_exported
class M(nn.Module):
    def forward(self, x):
        return self.python(x)
    @torch.jit.ignore
    def python(self, x):
        return x + 1
#> m = torch.jit.script(M().eval())
#> again(m)

### unused_is_exported
class M(nn.Module):
    def forward(self, x, flag: bool = False):
        if flag:
            return self.python(x)
        return x * 2
    @torch.jit.unused
    def python(self, x):
        return x + 1
#> m = torch.jit.script(M().eval())
#> n = again(m)
#> n(torch.ones(1))
#> n(torch.ones(1), True)

### shared_storage_is_kept
class M(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.zeros(4)
        self.a = t[:2]
        self.b = t
    def forward(self, x):
        self.a.add_(x)
        return self.b
#> m = torch.jit.script(M().eval())
#> n = again(m)
#> n(torch.ones(2))

### non_persistent_buffer_is_saved
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(2), persistent=False)
    def forward(self, x):
        return x + self.a
#> m = torch.jit.script(M().eval())
#> n = again(m)
#> n(torch.zeros(2))
#> names(n.named_buffers())
#> names(n.state_dict())

### traced_is_saved
#< m = torch.jit.trace(nn.Sequential(nn.Linear(2, 2), nn.Tanh()).eval(), torch.ones(1, 2))
#> n = again(m)
#> n(torch.ones(3, 2))
#> n.code

### final_is_saved_in_code
class M(nn.Module):
    k: Final[int]
    def __init__(self):
        super().__init__()
        self.k = 7
    def forward(self, x):
        return x + self.k
#> m = torch.jit.script(M().eval())
#> m.code
#> n = again(m)
#> n(torch.zeros(1))
#> m.k

### containers_are_saved
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = [1, 2]
        self.d = {"a": torch.ones(1)}
        self.t = (1, "x", 2.5)
        self.nested = {"a": [1, 2], "b": [3]}
    def forward(self):
        return self.l, self.d, self.t, self.nested
#> m = torch.jit.script(M().eval())
#> n = again(m)
#> n()

### dtypes_are_saved
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.tensor([1, 2], dtype=torch.int8)
        self.b = torch.tensor([True, False])
        self.c = torch.tensor([1 + 2j])
        self.h = torch.tensor([0.5], dtype=torch.float16)
        self.g = torch.tensor([0.5], dtype=torch.bfloat16)
        self.e = torch.zeros(0, 3)
        self.s = torch.tensor(4)
    def forward(self):
        return self.a, self.b, self.c, self.h, self.g, self.e, self.s
#< m = torch.jit.script(M().eval())
#> m()
#> n = again(m)
#> n()

### saved_twice
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> n = again(again(m))
#> n(torch.ones(2))
#> n.code

### classes_are_saved
@torch.jit.script
class Counter:
    def __init__(self, n: int):
        self.n = n
    def bump(self) -> int:
        self.n += 1
        return self.n
class M(nn.Module):
    def forward(self, n: int):
        c = Counter(n)
        c.bump()
        return c.bump()
#> m = torch.jit.script(M().eval())
#> n = again(m)
#> n(3)

### enums_are_saved
class Color(Enum):
    RED = 1
    BLUE = 2
class M(nn.Module):
    def forward(self, n: int) -> int:
        c = Color.RED
        if n > 0:
            c = Color.BLUE
        return c.value
#> m = torch.jit.script(M().eval())
#> n = again(m)
#> n(1)
#> n(0)

### named_tuples_are_saved
class P(NamedTuple):
    x: int
    y: Tensor
class M(nn.Module):
    def forward(self, t):
        p = P(2, t)
        return p.x, p.y
#> m = torch.jit.script(M().eval())
#> n = again(m)
#> n(torch.ones(1))

### map_location
#< m = torch.jit.script(nn.Sequential(nn.Linear(2, 1)).eval())
#> m(torch.ones(1, 2))
#> n = again(m)
#> n.to("cpu")
#> n(torch.ones(1, 2))
