//! Modules that cannot be frozen.

/// Sources that are refused, the preserved names, and PyTorch's messages.
pub const REFUSED: &[(&str, &[&str], &str)] = &[
    (
        "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return x
model = Net().train()
",
        &[],
        "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.",
    ),
    (
        "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = 1
    def forward(self, x):
        return x
model = Net().eval()
",
        &["weight.nothing"],
        "Unknown name: weight.nothing",
    ),
    (
        "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.ones(2)
        self.table = {'t': t}
        self.t = t
    def forward(self, x):
        self.table['t'].add_(x)
        return self.t + x
model = Net().eval()
",
        &[],
        "module contains attributes values that overlaps",
    ),
    (
        "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return self
model = Net().eval()
",
        &[],
        "attempted to freeze a module that return itself",
    ),
    (
        r#"frazil module 1
root object<0>

module __torch__.Add {
  attribute by : float
  method forward = __torch__.Add.forward
}

module __torch__.Steps {
  attribute one : __torch__.Add
  attribute two : __torch__.Add
}

module __torch__.Net {
  attribute training : bool
  attribute steps : __torch__.Steps
  method forward = __torch__.Net.forward
}

function __torch__.Add.forward(self : __torch__.Add, x : Tensor) -> (Tensor) as __torch__.Add.forward
graph(%self : __torch__.Add, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %by : float = prim::GetAttr[name="by"](%self)
  %y : Tensor = aten::add(%x, %by, %one)
  return (%y)

function __torch__.Net.forward(self : __torch__.Net, x : Tensor, key : str) -> (Tensor) as __torch__.Net.forward
graph(%self : __torch__.Net, %x : Tensor, %key : str):
  %steps : __torch__.Steps = prim::GetAttr[name="steps"](%self)
  %step : __torch__.Add = prim::ModuleContainerIndex(%steps, %key)
  %y : Tensor = prim::CallMethod[name="forward"](%step, %x)
  return (%y)

object<0> = __torch__.Net {
  training = False
  steps = object<1>
}

object<1> = __torch__.Steps {
  one = object<2>
  two = object<3>
}

object<2> = __torch__.Add {
  by = 1.
}

object<3> = __torch__.Add {
  by = 2.
}
"#,
        &[],
        "Freezing modules containing prim::ModuleContainerIndex is not supported",
    ),
    (
        "
@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass
class Add(nn.Module):
    def __init__(self, by: float):
        super().__init__()
        self.by = by
    def forward(self, x: Tensor) -> Tensor:
        return x + self.by
class Net(nn.Module):
    now: Step
    def __init__(self):
        super().__init__()
        self.now = Add(1.0)
        self.next = Add(2.0)
    def forward(self, x):
        self.now = self.next
        return self.now.forward(x)
model = Net().eval()
",
        &[],
        "Freezing does not support SetAttr on an interface type. SetAttr is attempted on 'now'",
    ),
];
