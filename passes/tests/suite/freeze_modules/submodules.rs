//! Remaining submodules, their classes, and other objects.

use super::Case;

pub const CASES: &[Case] = &[
    Case {
        name: "instances of one class keep what any of them needs",
        source: "
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = torch.zeros(2)
        self.right = torch.ones(2)
        self.unused = 3
    @torch.jit.export
    def push_left(self, x):
        self.left.add_(x)
        return self.left + self.right
    @torch.jit.export
    def push_right(self, x):
        self.right.sub_(x)
        return self.left * self.right
    def forward(self, x):
        return x
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Pair()
        self.b = Pair()
    def forward(self, x):
        return self.a.push_left(x) - self.b.push_right(x)
model = Net().eval()
",
        preserve: &[],
        attributes: &["a.left", "a.right", "b.left", "b.right"],
        methods: &["forward"],
    },
    Case {
        name: "a preserved submodule is kept whole, and with it others of its class that are left",
        source: "
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(2)
        self.spare = 7
    def forward(self, x):
        self.state.add_(x)
        return self.state + 1
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = Cell()
        self.other = Cell()
    def forward(self, x):
        return self.other(x) + self.kept(x)
model = Net().eval()
",
        preserve: &["kept"],
        attributes: &[
            "kept.spare",
            "kept.state",
            "kept.training",
            "other.spare",
            "other.state",
            "other.training",
        ],
        methods: &["forward", "kept.forward", "other.forward"],
    },
    Case {
        name: "of a submodule that nothing uses only the preserved attribute and method are left",
        source: "
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.version = 4
        self.other = 5
        self.bias = torch.ones(2)
    def forward(self, x):
        return x * self.other
    @torch.jit.export
    def shift(self, x):
        return x + self.bias
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
    def forward(self, x):
        return x + 1
model = Net().eval()
",
        preserve: &["part.version", "part.shift"],
        attributes: &["part.version"],
        methods: &["forward", "part.shift"],
    },
    Case {
        name: "a preserved method of a submodule keeps what it writes to, for the others to see",
        source: "
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(2)
        self.rate = 0.5
    def forward(self, x):
        return x + self.state
    @torch.jit.export
    def learn(self, x):
        self.state.add_(x * self.rate)
        return self.state.clone()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.twin = Part()
    def forward(self, x):
        return self.part(x) + self.twin(x)
    @torch.jit.export
    def learn(self, x):
        return self.part.learn(x)
model = Net().eval()
",
        preserve: &["part.learn", "learn"],
        attributes: &["part.state"],
        methods: &["forward", "learn", "part.learn"],
    },
    Case {
        name: "a submodule in two attributes is one",
        source: "
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(2)
        self.level = 1
    def forward(self, x):
        self.level += 1
        return x + self.state
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = Part()
        self.two = self.one
    def forward(self, x):
        y = self.one(x)
        return y * self.two.level
model = Net().eval()
",
        preserve: &[],
        attributes: &["one.level", "two.level"],
        methods: &["forward"],
    },
    Case {
        name: "what a fork reads is folded, what it writes is kept",
        source: "
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.ones(2)
        self.state = torch.zeros(2)
    def forward(self, x):
        self.state.add_(x)
        return self.state * self.weight
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.bias = torch.ones(2)
    def forward(self, x):
        future = torch.jit.fork(self.part, x)
        return torch.jit.wait(future) + self.bias
model = Net().eval()
",
        preserve: &[],
        attributes: &["part.state"],
        methods: &["forward"],
    },
    Case {
        name: "an interface is its class, another one in each instance",
        source: "
@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass
class Add(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = torch.ones(2)
    def forward(self, x: Tensor) -> Tensor:
        return x + self.by
class Count(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = torch.zeros(2)
    def forward(self, x: Tensor) -> Tensor:
        self.n.add_(1)
        return x * self.n
class Wrap(nn.Module):
    step: Step
    def __init__(self, step):
        super().__init__()
        self.step = step
    def forward(self, x: Tensor) -> Tensor:
        return self.step.forward(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Wrap(Add())
        self.b = Wrap(Count())
    def forward(self, x):
        return self.a(x) + self.b(x)
model = Net().eval()
",
        preserve: &[],
        attributes: &["b.step.n"],
        methods: &["forward"],
    },
];
