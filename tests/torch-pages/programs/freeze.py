### parameter_and_linear
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.arange(6.).reshape(2, 3))
        self.fc = nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(self.scale.mm(x))
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> names(f.named_parameters())
#> names(f.named_modules())
#> "self" in f.code
#> f(torch.ones(3, 4))
#> m(torch.ones(3, 4))

### parameter_and_linear_code
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.arange(6.).reshape(2, 3))
    def forward(self, x):
        return self.scale.mm(x)
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.code
#> f.code_with_constants[0]
#> f.graph

### mutated_attribute_and_version
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = torch.tensor(10.)
        self.version = 1
    def forward(self, x):
        self.total += 1
        return x + self.total
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m, preserved_attrs=["version"])
#> f.version
#> f.version = 2
#> f.version
#> f(torch.tensor(1))
#> f(torch.tensor(1))
#> f.total
#> m.total
#> m.version

### not_a_script_module
class M(nn.Module):
    def forward(self, x):
        return x
#> m = M().eval()
#> torch.jit.freeze(m)

### training_mode
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = torch.jit.script(M())
#> m.training
#> torch.jit.freeze(m)
#> m.eval()
#> f = torch.jit.freeze(m)
#> f(torch.zeros(2))

### training_mode_after_train
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> m = torch.jit.script(M().eval())
#> m.train()
#> torch.jit.freeze(m)
#> m.train(False)
#> torch.jit.freeze(m)(torch.zeros(1))

### training_mode_of_a_submodule_only
class Sub(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, self.training)
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> has = count(f.graph, "aten::dropout")
#> has
#> f(torch.ones(3))

### training_mode_message_of_archives
class M(nn.Module):
    def forward(self, x):
        return x * 2
#< m = torch.jit.script(M().train())
#> m.training
#> torch.jit.freeze(m)

### clone_leaves_original
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.n = 3
    def forward(self, x):
        return x * self.w + self.n
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> same(f, m)
#> names(m.named_parameters())
#> m.n
#> m.n = 5
#> m(torch.ones(2))
#> f(torch.ones(2))

### submodules_inlined
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 2.))
    def forward(self, x):
        return x * self.w
class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = A()
        self.b = A()
    def forward(self, x):
        return self.b(self.a(x)) + 1
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = B()
    def forward(self, x):
        return self.inner(x)
#> m = torch.jit.script(M().eval())
#> names(m.named_modules())
#> f = torch.jit.freeze(m)
#> names(f.named_modules())
#> names(f.named_children())
#> count(f.graph, "prim::GetAttr")
#> count(f.graph, "prim::CallMethod")
#> f(torch.ones(2))

### buffers_inlined
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.tensor([1., 2.]))
        self.register_buffer("b", torch.tensor([3., 4.]), persistent=False)
    def forward(self, x):
        return x + self.a * self.b
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> names(f.named_buffers())
#> names(f.state_dict())
#> kinds(f.graph)
#> f(torch.zeros(2))

### scalars_inlined
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.i = 2
        self.x = 1.5
        self.flag = True
        self.name = "n"
    def forward(self, y):
        if self.flag and self.name == "n":
            return y * self.i + self.x
        return y
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> kinds(f.graph)
#> count(f.graph, "prim::If")
#> f(torch.ones(2))
#> f.i

### lists_and_dicts_inlined
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = [1, 2]
        self.d = {"a": 2}
        self.t = (1, "x")
    def forward(self, y):
        return y * self.l[1] + self.d["a"] + self.t[0]
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> count(f.graph, "prim::GetAttr")
#> f(torch.ones(2))

### tensors_in_lists
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = [torch.ones(2), torch.full((2,), 3.)]
    def forward(self, y):
        return y * self.l[1] + self.l[0]
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> count(f.graph, "prim::GetAttr")
#> f(torch.ones(2))

### none_attribute
class M(nn.Module):
    b: Optional[Tensor]
    def __init__(self):
        super().__init__()
        self.b = None
    def forward(self, y):
        b = self.b
        if b is not None:
            y = y + b
        return y * 2
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> kinds(f.graph)
#> f(torch.ones(2))

### list_mutated
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = [1, 2]
        self.k = [5]
    def forward(self, y: int):
        self.l.append(y)
        return len(self.l) + self.k[0]
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> count(f.graph, "prim::GetAttr")
#> f.l
#> f.k
#> f(1)
#> f(1)
#> f.l

### dict_mutated
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = {"a": 1}
    def forward(self, y: str):
        self.d[y] = len(self.d)
        return self.d
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.d
#> f("b")
#> f("c")
#> f.d

### int_counter
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.step = 2
    def forward(self, x):
        self.calls += self.step
        return x + self.calls
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f(torch.zeros(1))
#> f(torch.zeros(1))
#> f.calls
#> f.step
#> m.calls

### buffer_assigned
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("scale", torch.full((2,), 0.5))
    def forward(self, x):
        self.mean = self.mean * self.scale + x
        return self.mean
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(2))
#> f(torch.ones(2))
#> f.mean
#> names(f.named_buffers())
#> f.scale

### buffer_written_in_place
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(2))
        self.register_buffer("other", torch.ones(2))
    def forward(self, x):
        self.state.add_(x)
        return self.state + self.other
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> names(f.named_buffers())
#> f(torch.ones(2))
#> f(torch.ones(2))
#> f.state

### buffer_written_through_view
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(2, 2))
    def forward(self, x):
        self.state[0].add_(x)
        return self.state.sum()
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> names(f.named_buffers())
#> f(torch.ones(2))
#> f(torch.ones(2))

### alias_of_buffer_written
class M(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.zeros(2)
        self.a = t
        self.b = t
    def forward(self, x):
        self.a.add_(x)
        return self.b * 1
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(2))
#> f(torch.ones(2))

### mutated_only_in_other_method
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 1
    def forward(self, x):
        return x + self.n
    @torch.jit.export
    def bump(self):
        self.n += 1
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> methods(f)
#> f.n
#> f(torch.zeros(1))
#> g = torch.jit.freeze(m, preserved_attrs=["bump"])
#> methods(g)
#> g.bump()
#> g.n

### preserved_method
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 3.))
    def forward(self, x):
        return x * self.w
    @torch.jit.export
    def half_of(self, x):
        return x * self.w / 2
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> methods(f)
#> f.half_of(torch.ones(2))
#> g = torch.jit.freeze(m, preserved_attrs=["half_of"])
#> methods(g)
#> g.half_of(torch.ones(2))
#> g.half_of.code
#> names(g.named_parameters())

### preserved_method_modifies
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 1
        self.k = 4
    def forward(self, x):
        return x + self.k
    @torch.jit.export
    def bump(self, by: int):
        self.n += by
        return self.n
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["bump"])
#> f.bump(2)
#> f.bump(2)
#> f.n
#> f.k

### preserved_methods_two
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
    @torch.jit.export
    def a(self, x):
        return x + self.w
    @torch.jit.export
    def b(self, x):
        return x - self.w
    @torch.jit.export
    def c(self, x):
        return x
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["a", "b"])
#> methods(f)
#> f.a(torch.ones(2))
#> f.b(torch.ones(2))

### preserved_parameter
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.v = nn.Parameter(torch.full((2,), 2.))
    def forward(self, x):
        return x * self.w + self.v
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["w"])
#> names(f.named_parameters())
#> f(torch.ones(2))
#> f.w = torch.full((2,), 5.)
#> f(torch.ones(2))
#> names(f.state_dict())

### preserved_buffer
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(2))
    def forward(self, x):
        return x + self.b
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["b"])
#> f.b
#> names(f.named_buffers())
#> f(torch.ones(2))
#> count(f.graph, "prim::GetAttr")

### preserved_unused_attribute
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.note = "text"
        self.other = [1, 2]
    def forward(self, x):
        return x
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["note"])
#> f.note
#> f.other

### preserved_list_empty
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 2
    def forward(self, x):
        return x * self.n
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=[])
#> f(torch.ones(2))
#> g = torch.jit.freeze(torch.jit.script(M().eval()), None)
#> g(torch.ones(2))

### preserved_forward_is_no_harm
class M(nn.Module):
    def forward(self, x):
        return x * 2
#> f = torch.jit.freeze(torch.jit.script(M().eval()), ["forward"])
#> methods(f)
#> f(torch.ones(2))

### preserved_unknown
class M(nn.Module):
    def forward(self, x):
        return x * 2
#> torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["nothing"])

### preserved_unknown_dotted
class Sub(nn.Module):
    def forward(self, x):
        return x
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x) * 2
#> torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["sub.nothing"])

### preserved_unknown_submodule
class M(nn.Module):
    def forward(self, x):
        return x * 2
#> torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["nowhere.w"])

### preserved_submodule_attribute
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.version = 7
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["sub.version"])
#> f.sub.version
#> f.sub.version = 8
#> f.sub.version
#> f(torch.ones(2))

### preserved_submodule_attribute_deep
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 3
    def forward(self, x):
        return x * self.k
class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = A()
        self.j = 1
    def forward(self, x):
        return self.a(x) + self.j
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = B()
        self.c = B()
    def forward(self, x):
        return self.b(x) + self.c(x)
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["b.a.k"])
#> f.b.a.k
#> f(torch.ones(1))
#> f.b.a.k = 10
#> f(torch.ones(1))

### preserved_submodule_parameter
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.b = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w + self.b
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["sub.w"])
#> f(torch.ones(2))

### preserved_submodule_method
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 2.))
    def forward(self, x):
        return x * self.w
    @torch.jit.export
    def twice(self, x):
        return x * self.w * 2
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> m = torch.jit.script(M().eval())
#> m.sub.twice(torch.ones(2))
#> f = torch.jit.freeze(m, preserved_attrs=["sub.twice"])

### preserved_whole_submodule
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 2.))
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.more = Sub()
    def forward(self, x):
        return self.more(self.sub(x))
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["sub"])
#> f(torch.ones(2))
#> f.sub(torch.ones(2))

### preserved_submodule_modified
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.k = 2
    def forward(self, x):
        self.n += self.k
        return x + self.n
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.quiet = nn.ReLU()
    def forward(self, x):
        return self.quiet(self.sub(x))
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.zeros(1))
#> f(torch.zeros(1))
#> f.sub.n
#> f.sub.k

### forward_missing
class M(nn.Module):
    @torch.jit.export
    def run(self, x):
        return x + 1
#> m = torch.jit.script(M().eval())
#> methods(m)
#> torch.jit.freeze(m)
#> f = torch.jit.freeze(m, preserved_attrs=["run"])
#> f.run(torch.ones(1))

### freeze_positional_arguments
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 2
        self.bn = nn.BatchNorm2d(2)
        self.conv = nn.Conv2d(2, 2, 1)
    def forward(self, x):
        return self.bn(self.conv(x)) * self.n
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m, ["n"], False)
#> f.n
#> count(f.graph, "aten::batch_norm")
#> g = torch.jit.freeze(m, ["n"], True)
#> count(g.graph, "aten::batch_norm")
#> f(torch.ones(1, 2, 2, 2))
#> g(torch.ones(1, 2, 2, 2))

### freeze_unknown_keyword
class M(nn.Module):
    def forward(self, x):
        return x
#> torch.jit.freeze(torch.jit.script(M().eval()), optimize=False)

### frozen_result_is_a_script_module
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f
#> f.original_name
#> f.graph
#> f.inlined_graph
#> f.code

### frozen_twice
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 2
    def forward(self, x):
        return x * self.n
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.training
#> torch.jit.freeze(f)

### frozen_has_no_training
class M(nn.Module):
    def forward(self, x):
        return x * 2
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.training
#> f.eval()
#> f.train()

### preserved_training_attribute
class M(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, self.training)
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m, preserved_attrs=["training"])
#> f.training
#> f(torch.ones(2))

### frozen_saved_and_loaded
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.w = nn.Parameter(torch.full((2,), 4.))
    def forward(self, x):
        self.n += 1
        return x * self.w + self.n
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(2))
#> g = again(f)
#> g.n
#> g(torch.ones(2))
#> names(g.named_parameters())

### frozen_archive_of_pytorch
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        self.n += 1
        return F.relu(self.fc(x)) + self.n
#< f = torch.jit.freeze(torch.jit.script(M().eval()))
#> names(f.named_parameters())
#> f.n
#> f(torch.ones(1, 3))
#> f(torch.ones(1, 3))
#> f.n

### frozen_to_dtype_is_baked
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 4.))
    def forward(self, x):
        return x * self.w
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.to(torch.float64)
#> f(torch.ones(2))
#> f(torch.ones(2, dtype=torch.float64)).dtype
#> f.half()
#> f(torch.ones(2)).dtype

### unfrozen_to_dtype_then_frozen
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 4.))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.to(torch.float64)
#> f = torch.jit.freeze(m)
#> f(torch.ones(2, dtype=torch.float64)).dtype

### map_location_cpu
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 4.))
    def forward(self, x):
        return x * self.w
#< m = torch.jit.freeze(torch.jit.script(M().eval()))
#> m(torch.ones(2))
#> m(torch.ones(2)).device

### device_is_baked
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2))
    def forward(self, x):
        if self.w.device == torch.device("cpu"):
            return x + 1
        return x - 1
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> count(f.graph, "prim::If")
#> f(torch.ones(2))

### dtype_is_baked
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2))
    def forward(self, x):
        if self.w.dtype == torch.float32:
            return x + 1
        return x - 1
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> count(f.graph, "prim::If")
#> f(torch.ones(2))

### shape_is_baked
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2, 3))
    def forward(self, x):
        if self.w.size(1) == 3:
            return x + self.w.dim()
        return x - 1
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> kinds(f.graph)
#> f(torch.ones(2))

### branches_on_attributes_go
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = True
        self.a = nn.Linear(2, 4)
        self.b = nn.Linear(2, 3)
    def forward(self, x):
        if self.wide:
            return self.a(x)
        return self.b(x)
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> count(f.graph, "aten::linear")
#> count(f.graph, "prim::If")
#> f(torch.ones(1, 2))

### loop_over_constant
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 3
        self.w = nn.Parameter(torch.full((1,), 2.))
    def forward(self, x):
        for i in range(self.n):
            x = x * self.w
        return x
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(1))
#> count(f.graph, "prim::GetAttr")

### module_list
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> names(f.named_modules())
#> count(f.graph, "aten::linear")
#> f(torch.ones(1, 2))

### sequential
#< m = torch.jit.script(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(4, 2))

### traced_module_frozen
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.register_buffer("b", torch.ones(2))
    def forward(self, x):
        return torch.tanh(self.fc(x)) + self.b
#< m = torch.jit.trace(M().eval(), torch.ones(1, 3))
#> m.training
#> f = torch.jit.freeze(m)
#> names(f.named_parameters())
#> kinds(f.graph)
#> f(torch.ones(2, 3))

### traced_function_has_no_freeze
#< f = torch.jit.trace(lambda x: x + 1, torch.ones(2))
#> f(torch.ones(3))
#> f.graph

### function_is_no_module
def f(x):
    return x + 1
#> g = torch.jit.script(f)
#> torch.jit.freeze(g)

### shared_submodule
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
    def forward(self, x):
        self.n += 1
        return x + self.n
class M(nn.Module):
    def __init__(self):
        super().__init__()
        s = Sub()
        self.a = s
        self.b = s
    def forward(self, x):
        return self.a(x) + self.b(x)
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.zeros(1))
#> f(torch.zeros(1))

### same_parameter_twice
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(2))
        self.b = self.a
    def forward(self, x):
        return self.a * x + self.b
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.full((2,), 3.))
#> names(f.named_parameters())

### interface_attribute
@torch.jit.interface
class Unit(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 2.))
    def forward(self, x: Tensor) -> Tensor:
        return x * self.w
class M(nn.Module):
    unit: Unit
    def __init__(self):
        super().__init__()
        self.unit = A()
    def forward(self, x: Tensor) -> Tensor:
        return self.unit.forward(x)
#< m = torch.jit.script(M().eval())
#> m(torch.ones(2))
#> f = torch.jit.freeze(m)
#> f(torch.ones(2))

### class_object_attribute
@torch.jit.script
class Pair:
    def __init__(self, a: int, b: int):
        self.a = a
        self.b = b
    def sum(self) -> int:
        return self.a + self.b
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair(1, 2)
    def forward(self, x):
        return x + self.pair.sum()
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f(torch.zeros(1))

### enum_attribute
class Color(Enum):
    RED = 1
    BLUE = 2
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.color = Color.BLUE
    def forward(self, x):
        if self.color == Color.BLUE:
            return x + 1
        return x
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> count(f.graph, "prim::If")
#> f(torch.zeros(1))

### named_tuple_attribute
class P(NamedTuple):
    x: int
    y: int
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = P(2, 3)
    def forward(self, x):
        return x * self.p[0] + self.p[1]
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(1))
#> count(f.graph, "prim::GetAttr")

### returned_constant
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x, self.w
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.zeros(1))

### requires_grad_of_weights
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return (x * self.w).requires_grad
#> m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(2))

### constants_folded
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.full((2,), 2.))
        self.b = nn.Parameter(torch.full((2,), 3.))
    def forward(self, x):
        return x + self.a * self.b + torch.sqrt(self.a)
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> kinds(f.graph)
#> f(torch.zeros(2))

### transposed_weight_folded
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(6.).reshape(2, 3))
    def forward(self, x):
        return x.mm(self.w.t())
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> kinds(f.graph)
#> f(torch.ones(1, 3))

### weights_concatenated
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(1, 2))
        self.b = nn.Parameter(torch.zeros(1, 2))
    def forward(self, x):
        return x * torch.cat([self.a, self.b])
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> kinds(f.graph)
#> f(torch.full((2, 2), 3.))

### dead_code_goes
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        unused = x * self.w
        return x + 1
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> kinds(f.graph)

### prints_and_asserts_stay
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 2
    def forward(self, x):
        assert x.dim() == self.n, "two dimensions"
        return x
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.zeros(1, 1))
#> f(torch.zeros(1))

### raises_in_frozen
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 3
    def forward(self, x: int):
        if x > self.limit:
            raise ValueError("too large")
        return x
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(3)
#> f(4)

### call_of_scripted_function
@torch.jit.script
def helper(x, n: int):
    for i in range(n):
        x = x + 1
    return x
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 2
    def forward(self, x):
        return helper(x, self.n)
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> count(f.graph, "prim::CallFunction")
#> f(torch.zeros(1))

### fork_in_frozen
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 2.))
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        y = torch.jit.fork(self.sub, x)
        z = x + 1
        return torch.jit.wait(y) + z
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(2))

### alias_db_shows_mutation
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(2)
        self.other = torch.ones(2)
    def forward(self, x):
        self.state.add_(x)
        return self.state * self.other
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.state
#> f.other
#> count(f.graph, "prim::GetAttr")
#> count(f.graph, "aten::add_")

### alias_db_shows_escape
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(2)
    def forward(self, x):
        y = self.state.view(2, 1)
        y.mul_(2)
        return y + x
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.state
#> f(torch.ones(2, 1))

### module_without_attributes
class M(nn.Module):
    def forward(self, x, y):
        return torch.max(x, y)
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> kinds(f.graph)
#> f(torch.tensor([1., 5.]), torch.tensor([3., 2.]))

### default_arguments_stay
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 2
    def forward(self, x, y: int = 3, *, z: float):
        return x * self.n + y + z
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(1), z=0.5)
#> f(torch.ones(1), 1, z=1.)
#> f(x=torch.ones(1), z=1.)
#> f(torch.ones(1))

### tuple_outputs
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return (x + self.w, [x, self.w * 2], {"k": x})
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(2))

### optional_argument
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x, mask: Optional[Tensor] = None):
        y = x + self.w
        if mask is not None:
            y = y * mask
        return y
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(2))
#> f(torch.ones(2), torch.tensor([0., 1.]))
#> count(f.graph, "prim::If")

### hook_in_script
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 2
    def forward(self, x: Tensor) -> Tensor:
        return x * self.n
def hook(self, input: Tuple[Tensor], output: Tensor):
    return output + self.n
#< e = M().eval()
#< e.register_forward_hook(hook)
#< m = torch.jit.script(e)
#> m(torch.ones(1))

### attribute_of_device_type
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = torch.device("cpu")
    def forward(self, x):
        return torch.zeros(2, device=self.d) + x
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(2))
#> count(f.graph, "prim::GetAttr")

### assigned_then_read
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.zeros(1)
    def forward(self, x):
        old = self.last
        self.last = x
        return old
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(torch.ones(1))
#> f(torch.full((1,), 2.))
#> f.last

### conditional_mutation
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
    def forward(self, x: int):
        if x > 0:
            self.n = x
        return self.n
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f(0)
#> f(4)
#> f(0)

### get_submodule_of_frozen
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
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> f.sub
#> f.get_submodule("sub")

### preserved_attribute_of_a_list_element
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 3
    def forward(self, x):
        return x * self.k
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([A(), A()])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["layers.0.k"])
#> f(torch.ones(1))

### preserved_and_modified_together
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.k = 2
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, x):
        self.n += 1
        return x * self.w + self.n * self.k
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["k"])
#> f(torch.zeros(1))
#> f.k = 10
#> f(torch.zeros(1))
#> f.n

### frozen_and_original_do_not_share_numbers
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
    def forward(self, x):
        self.n += 1
        return x + self.n
#> m = torch.jit.script(M().eval())
#> m(torch.zeros(1))
#> f = torch.jit.freeze(m)
#> f(torch.zeros(1))
#> f.n
#> m.n

### recurrent_layer
#< class Net(nn.Module):
#<     def __init__(self):
#<         super().__init__()
#<         self.rnn = nn.LSTM(3, 2, batch_first=True)
#<     def forward(self, x):
#<         y, _ = self.rnn(x)
#<         return y
#< m = torch.jit.script(Net().eval())
#> f = torch.jit.freeze(m)
#> names(f.named_parameters())
#> f(torch.ones(1, 2, 3))

### attention_layer
#< class Net(nn.Module):
#<     def __init__(self):
#<         super().__init__()
#<         self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
#<     def forward(self, x):
#<         return self.attention(x, x, x)[0]
#< m = torch.jit.script(Net().eval())
#> f = torch.jit.freeze(m)
#> names(f.named_parameters())
#> f(torch.ones(1, 3, 4))

### residual_block
#< class Block(nn.Module):
#<     def __init__(self):
#<         super().__init__()
#<         self.a = nn.Conv2d(2, 2, 3, padding=1, bias=False)
#<         self.n = nn.BatchNorm2d(2)
#<         self.b = nn.Conv2d(2, 2, 3, padding=1, bias=False)
#<         self.o = nn.BatchNorm2d(2)
#<     def forward(self, x):
#<         return F.relu(self.o(self.b(F.relu(self.n(self.a(x))))) + x)
#< m = torch.jit.script(Block().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 4, 4))

### kept_submodules_are_listed
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.n = 3
    def forward(self, x):
        return x * self.w
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x):
        return self.sub(x)
#> f = torch.jit.freeze(torch.jit.script(M().eval()), preserved_attrs=["sub.w"])
#> f.sub.w
#> names(f.named_modules())
#> names(f.named_parameters())
#> names(f.state_dict())
