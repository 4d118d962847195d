//! Remaining attributes and methods.

use super::Case;

pub const CASES: &[Case] = &[
    Case {
        name: "weights and settings anywhere in the tree are folded",
        source: "
class Scale(nn.Module):
    def __init__(self, by: float):
        super().__init__()
        self.by = by
        self.offset = torch.tensor([1.0, -1.0])
    def forward(self, x):
        return x * self.by + self.offset
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Scale(2.0)
        self.second = Scale(3.0)
        self.unused = torch.zeros(5)
    def forward(self, x):
        return self.second(self.first(x))
model = Net().eval()
",
        preserve: &[],
        attributes: &[],
        methods: &["forward"],
    },
    Case {
        name: "what a method assigns or writes to stays, deep down too",
        source: "
class Seen(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(2)
        self.step = 2
    def forward(self, x):
        self.total.add_(x * self.step)
        return self.total.clone()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.seen = Seen()
        self.weight = torch.ones(2)
    def forward(self, x):
        self.calls += 1
        return self.seen(x) * self.weight + self.calls
model = Net().eval()
",
        preserve: &[],
        attributes: &["calls", "seen.total"],
        methods: &["forward"],
    },
    Case {
        name: "writes under a condition that folds never happen",
        source: "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.ones(2)
    def forward(self, x):
        if self.training:
            self.mean.mul_(0.5)
        return x - self.mean
model = Net().eval()
",
        preserve: &[],
        attributes: &[],
        methods: &["forward"],
    },
    Case {
        name: "methods that are not preserved do not matter",
        source: "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.ones(2)
    def forward(self, x):
        return x + self.bias
    @torch.jit.export
    def spoil(self, x):
        self.bias.zero_()
        return x
model = Net().eval()
",
        preserve: &[],
        attributes: &[],
        methods: &["forward"],
    },
    Case {
        name: "methods that are preserved do",
        source: "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.ones(2)
        self.scale = 2.0
    def forward(self, x):
        return x * self.scale + self.bias
    @torch.jit.export
    def spoil(self, x):
        self.bias.mul_(2)
        return x
    @torch.jit.export
    def peek(self, x):
        return self.bias * x
model = Net().eval()
",
        preserve: &["spoil", "peek"],
        attributes: &["bias"],
        methods: &["forward", "peek", "spoil"],
    },
    Case {
        name: "without a forward any method may be called",
        source: "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.tensor([2.0, 3.0])
        self.count = 0
    @torch.jit.export
    def encode(self, x):
        self.count += 1
        return x * self.weight
    @torch.jit.export
    def decode(self, x):
        return x / self.weight + self.count
model = Net().eval()
",
        preserve: &[],
        attributes: &["count"],
        methods: &["decode", "encode"],
    },
    Case {
        name: "without a forward, those that are asked for",
        source: "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.tensor([2.0, 3.0])
        self.count = 0
    @torch.jit.export
    def encode(self, x):
        self.count += 1
        return x * self.weight
    @torch.jit.export
    def decode(self, x):
        return x / self.weight + self.count
model = Net().eval()
",
        preserve: &["decode"],
        attributes: &[],
        methods: &["decode"],
    },
    Case {
        name: "containers of tensors are folded if they are not written",
        source: "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = {'a': torch.ones(2), 'b': torch.zeros(2)}
        self.stack = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]
        self.pair = (torch.tensor([5.0, 6.0]), 2)
        self.names = ['p', 'q']
    def forward(self, x):
        return x * self.table['a'] + self.stack[1] + self.pair[0] * self.pair[1] + len(self.names)
model = Net().eval()
",
        preserve: &[],
        attributes: &[],
        methods: &["forward"],
    },
    Case {
        name: "containers are kept when they, or what is in them, are written",
        source: "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.grows = [torch.ones(2)]
        self.inside = [torch.ones(2)]
        self.tuple = (torch.ones(2), 1)
        self.calls = {'n': 0}
        self.fixed = [torch.ones(2)]
    def forward(self, x):
        self.grows.append(x)
        self.inside[0].add_(x)
        self.tuple[0].sub_(x)
        self.calls['n'] = self.calls['n'] + 1
        return self.inside[0] + self.tuple[0] * len(self.grows) + self.calls['n'] + self.fixed[0]
model = Net().eval()
",
        preserve: &[],
        attributes: &["calls", "grows", "inside", "tuple"],
        methods: &["forward"],
    },
    Case {
        name: "a tensor in two attributes stays in both when one is written",
        source: "
class Part(nn.Module):
    def __init__(self, t: Tensor):
        super().__init__()
        self.mine = t
    def forward(self, x):
        return x + self.mine
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.ones(2)
        self.state = t
        self.part = Part(t)
        self.apart = Part(torch.ones(2))
    def forward(self, x):
        self.state.add_(x)
        return self.part(x)
model = Net().eval()
",
        preserve: &[],
        attributes: &["part.mine", "state"],
        methods: &["forward"],
    },
    Case {
        name: "helper functions see constants",
        source: "
def blend(x, w, by: float):
    return x * by + w
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.ones(2)
        self.by = 0.25
    def forward(self, x):
        return blend(x, self.weight, self.by)
model = Net().eval()
",
        preserve: &[],
        attributes: &[],
        methods: &["forward"],
    },
];
