### map_locations
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.t = torch.zeros(1)
    def forward(self, x):
        return x * self.w + self.t
#> m = torch.jit.script(M().eval())
#> torch.jit.save(m, "m.pt")
#> torch.jit.load("m.pt", map_location="cpu")(torch.ones(2))
#> a = torch.jit.load("m.pt", map_location=torch.device("cpu"))
#> a.w.device
#> b = torch.jit.load("m.pt", map_location=None)
#> b.w
#> c = torch.jit.load("m.pt", "cpu")
#> c.t.device
#> torch.jit.load("m.pt", map_location="cuda")
#> torch.jit.load("m.pt", map_location="cuda:1")
#> torch.jit.load("m.pt", map_location="nowhere")
#> torch.jit.load("m.pt", map_location=3)
#> n = torch.jit.load("m.pt", map_location="meta")
#> n.w.device
#> n.t.device
#> n.w.requires_grad
#> n.load_state_dict(m.state_dict(), assign=True)
#> n.w

### meta_is_looked_at
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 3))
        self.t = torch.zeros(1)
    def forward(self, x):
        return x * self.w + self.t
#> m = torch.jit.script(M().eval())
#> m.w.is_meta
#> m.to("meta")
#> m.w.device
#> m.w.dtype
#> m.w.shape
#> m.w.stride()
#> m.w.requires_grad
#> m.w.is_meta
#> m.t.device
#> m.half()
#> m.w.dtype
#> n = again(m)
#> n.w.device

### checkpoints
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.zeros(1))
    def forward(self, x):
        return x * self.w + self.b
#> m = torch.jit.script(M().eval())
#> torch.save({"w": torch.full((2,), 3.), "b": torch.ones(1)}, "state.pt")
#> m.load_state_dict(torch.load("state.pt"))
#> m(torch.ones(2))
#> torch.save(m.state_dict(), "again.pt")
#> n = torch.jit.script(M().eval())
#> n.load_state_dict(torch.load("again.pt", weights_only=True))
#> n(torch.ones(2))
#> m.save("m.pt")
#> k = torch.jit.load("m.pt")
#> k.state_dict()

### gradients_are_saved
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.v = nn.Parameter(torch.ones(2), requires_grad=False)
        self.fc = nn.Linear(1, 1)
        for p in self.fc.parameters():
            p.requires_grad = False
    def forward(self, x):
        return x * self.w * self.v
#< m = torch.jit.script(M().eval())
#> grads(m.named_parameters())
#> m.w.requires_grad_(False)
#> m.v.requires_grad_()
#> grads(again(m).named_parameters())
#> grads(again(again(m)).named_parameters())
#> m.state_dict(keep_vars=True)["v"].requires_grad

### dictionaries
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x):
        return x * self.w
#> m = torch.jit.script(M().eval())
#> m.load_state_dict(OrderedDict([("w", torch.full((2,), 2.))]))
#> m.w
#> m.load_state_dict(OrderedDict(w=torch.full((2,), 3.)))
#> m.w
#> m.load_state_dict(dict(m.state_dict()))
#> len(m.state_dict())
#> list(m.state_dict())
#> "w" in m.state_dict()
#> "v" in m.state_dict()
#> torch.equal(m.state_dict()["w"], m.w)
