### conv_bn
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)).eval())
#> o = torch.jit.optimize_for_inference(m)
#> "batch_norm" in str(o.graph)
#> o(torch.ones(1, 2, 2, 2))

### freezes_by_itself
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 2.))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> o = torch.jit.optimize_for_inference(m)
#> names(o.named_parameters())
#> count(o.graph, "prim::GetAttr")
#> o(torch.ones(2))
#> names(m.named_parameters())

### of_a_frozen_module
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((2,), 2.))
    def forward(self, x):
        return x * self.w
#> f = torch.jit.freeze(torch.jit.script(M().eval()))
#> o = torch.jit.optimize_for_inference(f)
#> o(torch.ones(2))
#> same(o, f)

### sets_eval_mode
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = nn.Dropout(0.5)
    def forward(self, x):
        return self.d(x)
#> m = torch.jit.script(M())
#> m.training
#> o = torch.jit.optimize_for_inference(m)
#> m.training
#> o(torch.ones(3))
#> count(o.graph, "aten::dropout")

### other_methods
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
#> o = torch.jit.optimize_for_inference(m, other_methods=["other"])
#> methods(o)
#> count(o.other.graph, "aten::batch_norm")
#> o.other(torch.ones(1, 2, 2, 2))

### other_methods_left_out
class M(nn.Module):
    def forward(self, x):
        return x + 1
    @torch.jit.export
    def other(self, x):
        return x + 2
#> o = torch.jit.optimize_for_inference(torch.jit.script(M().eval()))
#> methods(o)
#> o.other(torch.ones(1))

### other_methods_unknown
class M(nn.Module):
    def forward(self, x):
        return x + 1
#> torch.jit.optimize_for_inference(torch.jit.script(M().eval()), ["nothing"])

### not_a_script_module
class M(nn.Module):
    def forward(self, x):
        return x
#> torch.jit.optimize_for_inference(M())

### state_is_kept
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
    def forward(self, x):
        self.n += 1
        return x + self.n
#> o = torch.jit.optimize_for_inference(torch.jit.script(M().eval()))
#> o(torch.zeros(1))
#> o(torch.zeros(1))

### vision_block
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)).eval())
#< x = torch.randn(1, 3, 8, 8)
#> o = torch.jit.optimize_for_inference(m)
#> o(x)
#> m(x)

### conv_relu
#< m = torch.jit.script(nn.Sequential(nn.Conv2d(2, 3, 1), nn.ReLU()).eval())
#> o = torch.jit.optimize_for_inference(m)
#> o(torch.ones(1, 2, 2, 2))

### conv_add_relu
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(2, 2, 1)
    def forward(self, x):
        return F.relu(self.a(x) + x)
#< m = torch.jit.script(M().eval())
#> o = torch.jit.optimize_for_inference(m)
#> o(torch.ones(1, 2, 2, 2))

### linear_chain
#< m = torch.jit.script(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2), nn.Softmax(dim=-1)).eval())
#< x = torch.randn(3, 4)
#> o = torch.jit.optimize_for_inference(m)
#> o(x)

### traced
#< m = torch.jit.trace(nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.Sigmoid()).eval(), torch.ones(1, 2, 2, 2))
#> o = torch.jit.optimize_for_inference(m)
#> o(torch.ones(1, 2, 2, 2))
#> count(o.graph, "aten::batch_norm")

### runs_frozen_like_eager
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5, 3)
        self.fc = nn.Linear(3, 2)
    def forward(self, i):
        return self.fc(self.emb(i)).mean(0)
#< m = torch.jit.script(M().eval())
#> o = torch.jit.optimize_for_inference(m)
#> o(torch.tensor([0, 4, 2]))
