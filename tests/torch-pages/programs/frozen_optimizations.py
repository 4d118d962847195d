### conv_bn
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3, eps=0.01)).eval())
#> f = torch.jit.freeze(m, optimize_numerics=False)
#> "batch_norm" in str(f.graph)
#> g = torch.jit.freeze(m)
#> "batch_norm" in str(g.graph)
#> kinds(g.graph)
#> f(torch.ones(1, 2, 3, 3))
#> g(torch.ones(1, 2, 3, 3))

### conv_bn_later
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)).eval())
#> f = torch.jit.freeze(m, optimize_numerics=False)
#> torch.jit.run_frozen_optimizations(f)
#> "batch_norm" in str(f.graph)
#> f(torch.ones(1, 2, 3, 3))

### conv_bn_later_without_numerics
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)).eval())
#> f = torch.jit.freeze(m, optimize_numerics=False)
#> torch.jit.run_frozen_optimizations(f, optimize_numerics=False)
#> "batch_norm" in str(f.graph)

### conv1d_bn
#< m = torch.jit.script(nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3)).eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 4))

### conv3d_bn
#< m = torch.jit.script(nn.Sequential(nn.Conv3d(1, 2, 1), nn.BatchNorm3d(2)).eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 1, 2, 2, 2))

### conv_bn_without_bias
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 1, bias=False), nn.BatchNorm2d(3)).eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_bn_not_affine
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3, affine=False)).eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_bn_without_running_stats
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3, track_running_stats=False)).eval())
#> f = torch.jit.freeze(m)
#> count(f.graph, "aten::batch_norm")
#> f(torch.arange(8.).reshape(1, 2, 2, 2))

### conv_bn_used_twice
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 1)
        self.bn = nn.BatchNorm2d(2)
    def forward(self, x):
        y = self.conv(x)
        return self.bn(y) + y
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> count(f.graph, "aten::batch_norm")
#> f(torch.ones(1, 2, 2, 2))

### conv_bn_relu_chain
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2), nn.ReLU()).eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_transpose_bn
#< m = torch.jit.script(nn.Sequential(nn.ConvTranspose2d(2, 3, 2), nn.BatchNorm2d(3)).eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(1, 2, 2, 2))
#> count(f.graph, "aten::batch_norm")

### conv_add_scalar
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
    def forward(self, x):
        return self.conv(x) + 2.5
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_add_tensor
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.k = nn.Parameter(torch.arange(3.).reshape(1, 3, 1, 1))
    def forward(self, x):
        return self.conv(x) + self.k
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_add_tensor_three_dimensions
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.k = nn.Parameter(torch.arange(3.).reshape(3, 1, 1))
    def forward(self, x):
        return self.conv(x) + self.k
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> count(f.graph, "aten::add")
#> f(torch.ones(1, 2, 2, 2))

### conv_add_tensor_wrong_shape
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.k = nn.Parameter(torch.arange(4.).reshape(1, 1, 2, 2))
    def forward(self, x):
        return self.conv(x) + self.k
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> count(f.graph, "aten::add")
#> f(torch.ones(1, 2, 2, 2))

### conv_sub_scalar
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
    def forward(self, x):
        return self.conv(x) - 1.5
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_sub_tensor
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1, bias=False)
        self.k = nn.Parameter(torch.arange(3.).reshape(1, 3, 1, 1))
    def forward(self, x):
        return self.conv(x) - self.k
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_mul_scalar
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
    def forward(self, x):
        return self.conv(x) * 3.
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_mul_tensor
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.k = nn.Parameter(torch.arange(3.).reshape(1, 3, 1, 1))
    def forward(self, x):
        return self.conv(x) * self.k
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_div_scalar
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
    def forward(self, x):
        return self.conv(x) / 4.
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_div_tensor
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.k = nn.Parameter(torch.tensor([1., 2., 4.]).reshape(1, 3, 1, 1))
    def forward(self, x):
        return self.conv(x) / self.k
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_mul_then_add_tensors
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1, bias=False)
        self.k = nn.Parameter(torch.arange(3.).reshape(1, 3, 1, 1))
        self.b = nn.Parameter(torch.ones(1, 3, 1, 1))
    def forward(self, x):
        return self.conv(x) * self.k + self.b
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_frozen_batch_norm
class FrozenNorm(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.register_buffer("weight", torch.full((n,), 2.))
        self.register_buffer("bias", torch.ones(n))
        self.register_buffer("mean", torch.full((n,), 0.5))
        self.register_buffer("var", torch.full((n,), 4.))
    def forward(self, x: Tensor) -> Tensor:
        w = self.weight.reshape(1, -1, 1, 1)
        b = self.bias.reshape(1, -1, 1, 1)
        v = self.var.reshape(1, -1, 1, 1)
        m = self.mean.reshape(1, -1, 1, 1)
        scale = w * (v + 1e-5).rsqrt()
        return x * scale + (b - m * scale)
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 1, bias=False), FrozenNorm(3)).eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_add_dynamic
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
    def forward(self, x, y):
        return self.conv(x) + y
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> count(f.graph, "aten::add")
#> f(torch.ones(1, 2, 2, 2), torch.ones(1))

### conv_mul_and_bn
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.bn = nn.BatchNorm2d(3)
    def forward(self, x):
        return self.bn(self.conv(x) * 2.) - 1.
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> g = torch.jit.freeze(m, optimize_numerics=False)
#> count(g.graph, "aten::mul")
#> count(g.graph, "aten::sub")
#> f(torch.ones(1, 2, 2, 2))
#> g(torch.ones(1, 2, 2, 2))

### conv_add_without_numerics
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
    def forward(self, x):
        return (self.conv(x) + 1.) / 2.
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m, optimize_numerics=False)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2))

### conv_integer_operand
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1)
    def forward(self, x):
        return self.conv(x) * 2 + 1
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 1, 2, 2))

### linear_bn
#< m = torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(4, 3))

### dropout_removed
#< m = torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 3))

### dropout_removed_without_numerics
#< m = torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).eval())
#> f = torch.jit.freeze(m, optimize_numerics=False)
#> kinds(f.graph)

### dropout_functional
class M(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.3, self.training) + 1
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> kinds(f.graph)
#> f(torch.ones(3))

### dropout_two_dimensions
#< m = torch.jit.script(nn.Sequential(nn.Dropout2d(0.5), nn.ReLU()).eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(1, 2, 2, 2))

### dropout_alpha
#< m = torch.jit.script(nn.Sequential(nn.AlphaDropout(0.5), nn.ReLU()).eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(4))

### dropout_in_training_stays
class M(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.0, True)
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> count(f.graph, "aten::dropout")
#> f(torch.ones(3))

### pretranspose_linear
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        return self.fc(x)
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(2, 3))
#> f(torch.ones(3))
#> f(torch.ones(2, 2, 3))

### pretranspose_linear_without_bias
#< m = torch.jit.script(nn.Sequential(nn.Linear(3, 2, bias=False)).eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(2, 3))

### concat_linear
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)
        self.b = nn.Linear(3, 4)
    def forward(self, x):
        return self.a(x), self.b(x)
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(2, 3))

### concat_linear_three
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
        self.k = nn.Linear(4, 4)
        self.v = nn.Linear(4, 4)
    def forward(self, x):
        return self.q(x) * self.k(x) + self.v(x)
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(2, 4))

### concat_linear_other_inputs
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)
        self.b = nn.Linear(3, 2)
    def forward(self, x, y):
        return self.a(x) + self.b(y)
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 3), torch.zeros(1, 3))

### concat_linear_one_bias
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)
        self.b = nn.Linear(3, 2, bias=False)
    def forward(self, x):
        return self.a(x) - self.b(x)
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(1, 3))

### concat_linear_same_weights
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)
    def forward(self, x):
        return self.a(x) + self.a(x)
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(1, 3))

### concat_linear_and_bn
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)
        self.b = nn.Linear(3, 2)
        self.bn = nn.BatchNorm1d(2)
    def forward(self, x):
        return self.bn(self.a(x)), self.b(x)
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> f(torch.ones(2, 3))

### preserved_method_is_optimized
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.bn = nn.BatchNorm2d(3)
    def forward(self, x):
        return self.bn(self.conv(x))
    @torch.jit.export
    def other(self, x):
        return self.bn(self.conv(x + 1))
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m, preserved_attrs=["other"])
#> count(f.graph, "aten::batch_norm")
#> count(f.other.graph, "aten::batch_norm")
#> f.other(torch.zeros(1, 2, 2, 2))
#> g = torch.jit.freeze(m, preserved_attrs=["other"], optimize_numerics=False)
#> count(g.other.graph, "aten::batch_norm")

### run_frozen_optimizations_of_methods
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.bn = nn.BatchNorm2d(3)
    def forward(self, x):
        return self.conv(x)
    @torch.jit.export
    def other(self, x):
        return self.bn(self.conv(x))
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m, preserved_attrs=["other"], optimize_numerics=False)
#> torch.jit.run_frozen_optimizations(f)
#> count(f.other.graph, "aten::batch_norm")
#> torch.jit.run_frozen_optimizations(f, preserved_methods=["other"])
#> count(f.other.graph, "aten::batch_norm")
#> f.other(torch.ones(1, 2, 2, 2))

### run_frozen_optimizations_returns_none
class M(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, False)
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> torch.jit.run_frozen_optimizations(f)
#> kinds(f.graph)

### preserved_weight_is_not_folded
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.bn = nn.BatchNorm2d(3)
    def forward(self, x):
        return self.bn(self.conv(x))
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m, preserved_attrs=["conv.weight"])
#> count(f.graph, "aten::batch_norm")
#> f(torch.ones(1, 2, 2, 2))

### numerics_close
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 4, 3, padding=1)
        self.n = nn.BatchNorm2d(4, eps=1e-3)
        self.b = nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.o = nn.BatchNorm2d(4)
    def forward(self, x):
        return self.o(self.b(F.relu(self.n(self.a(x)))) * 2. + 1.)
#< m = torch.jit.script(M().eval())
#< x = torch.randn(1, 3, 4, 4)
#> f = torch.jit.freeze(m)
#> m(x)
#> f(x)

### conv_bn_in_branch
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 1)
        self.bn = nn.BatchNorm2d(3)
    def forward(self, x, flag: bool):
        if flag:
            return self.bn(self.conv(x))
        return self.conv(x)
#< m = torch.jit.script(M().eval())
#> f = torch.jit.freeze(m)
#> count(f.graph, "aten::batch_norm")
#> f(torch.ones(1, 2, 2, 2), True)
#> f(torch.ones(1, 2, 2, 2), False)

### bn_alone
#< m = torch.jit.script(nn.Sequential(nn.BatchNorm2d(2), nn.Conv2d(2, 3, 1)).eval())
#> f = torch.jit.freeze(m)
#> count(f.graph, "aten::batch_norm")
#> f(torch.ones(1, 2, 2, 2))

### traced_conv_bn
#< m = torch.jit.trace(nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.ReLU()).eval(), torch.ones(1, 2, 3, 3))
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 3, 3))

### double_conv_bn
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)).double().eval())
#> f = torch.jit.freeze(m)
#> kinds(f.graph)
#> f(torch.ones(1, 2, 2, 2, dtype=torch.float64))
