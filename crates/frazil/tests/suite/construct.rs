//! Constructors and top-level statements that need Python are refused by name. The results of others are recorded in
//! tests/fixtures/language/construct.py.

use std::path::Path;

use frazil::Session;

const HEAD: &str = "
import math, sys, os
from enum import Enum
import torch
from torch import nn

class Mode(Enum):
    A = 1
    B = 2

def frob(x=1):
    return x

class Base(nn.Module):
    pass

class Net(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.seq = nn.Sequential(nn.ReLU(), nn.Tanh())
        self.n = n
    def forward(self, x: int):
        return x + self.n
";

/// Returns the error message for a text.
fn refusal(text: &str) -> String {
    match Session::new().load_bytes(Path::new("model.py"), text.as_bytes().to_vec()) {
        Ok(_) => panic!("this loads:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Each expression is computed and used in a constructor, and the error contains the reason why that is impossible.
#[test]
fn what_only_python_knows_is_refused_by_name() {
    for (expression, expected) in [
        // Attributes.
        ("sys.platform == 'linux'", "this comparison"),
        ("1 if os.name else 2", "whether this function is true"),
        (
            "1 if torch.backends.cudnn.benchmark else 2",
            "whether this function is true",
        ),
        ("torch.version.cuda is None", "this comparison"),
        ("f'{torch.__version__}'", "the text of this value"),
        ("self.nothing", "'M' object has no attribute 'nothing'"),
        ("self.seq.nothing", "has no attribute 'nothing'"),
        ("self.fc.weight.nothing", "the attribute `nothing`"),
        ("self.fc.type", "the attribute `type`"),
        ("hasattr(self.fc, 'padding_mode')", "the attribute `padding_mode`"),
        ("getattr(self, '_buffers', None)", "the attribute `_buffers`"),
        ("'abc'.title()", "the attribute `title`"),
        ("Mode.A == 1", "this comparison"),
        ("f'{Mode.A}'", "the text of this value"),
        ("Mode(2)", "no module"),
        // Truth, equality, text.
        ("1 if torch.ones(2) else 2", "whether this Tensor is true"),
        ("[torch.ones(2)] == [torch.ones(2)]", "this comparison"),
        ("self.fc.to == self.fc.to", "this comparison"),
        ("1000 is int('1000')", "this comparison"),
        ("str(self.fc)", "`str`"),
        ("f'{torch.ones(1)}'", "the text of this value"),
        ("f'{1.5:g}'", "the text of this value"),
        ("'{a.b}'.format(a=1)", "the method `format`"),
        ("'%5.1q' % 1", "this operator"),
        ("sum([0.1] * 10)", "`sum`"),
        ("int(1e30)", "`int`"),
        ("math.sqrt(-1.0)", "`math.sqrt`"),
        ("10 ** 30", "this operator"),
        // Arguments.
        ("torch.zeros(2, device='cuda')", "`torch.zeros`"),
        ("torch.zeros(2, names=['a'])", "the argument `names`"),
        ("torch.arange(0, 10, 2, 5)", "argument 4"),
        ("int('10', 2)", "argument 2 of this call of `int`"),
        ("round(1.25, 1)", "`round`"),
        ("sorted([2, 1], key=abs)", "the argument `key`"),
        ("'abc'.startswith('b', 1)", "argument 2 of the method `startswith`"),
        ("self.state_dict(prefix='a.')", "the argument `prefix`"),
        (
            "self.load_state_dict(self.state_dict(), assign=True)",
            "the argument `assign`",
        ),
        ("self.fc.weight.add_(1, alpha=2)", "the argument `alpha`"),
        (
            "nn.init.uniform_(self.fc.weight, generator=frob)",
            "`torch.nn.init.uniform_`",
        ),
        ("nn.ReLU(inplace=True, other=1)", "has no argument 'other'"),
        (
            "nn.ReLU(True, inplace=False)",
            "got multiple values for argument 'inplace'",
        ),
        ("nn.ReLU(True, False)", "given too many arguments"),
        ("nn.Tanh(3)", "takes no arguments"),
        (
            "nn.Parameter(torch.tensor([1]))",
            "Only Tensors of floating point and complex dtype can require gradients",
        ),
        ("torch.Tensor(self.fc.weight.shape)", "`torch.Tensor`"),
        // Iterators, containers.
        ("[list(p) for p in [self.parameters()] * 2]", "`list`"),
        ("len(self.fc)", "`len`"),
        ("len(self.parameters())", "`len`"),
        ("[m for m in self.fc]", "going through a object"),
        ("self.seq[5]", "index out of range"),
        ("self.seq['a']", "this subscript"),
        // Tensors.
        ("torch.tensor([1]) // 0", "this operator"),
        ("torch.tensor([True]) - torch.tensor([True])", "this operator"),
        ("torch.tensor([2 ** 53 - 1]) + 1", "this operator"),
        ("self.fc.weight.t().view(4)", "the method `view`"),
    ] {
        let text = format!(
            "{HEAD}\nclass M(Net):\n    def __init__(self):\n        super().__init__()\n        assert [{expression}] is not None\nmodel = M()\n"
        );
        let error = refusal(&text);
        assert!(error.contains(expected), "{expression}: {error}");
        assert!(error.contains("model.py:"), "{expression}: {error}");
    }
}

#[test]
fn statements_that_only_python_knows_are_refused_by_name() {
    for (statements, expected) in [
        ("self.fc.weight[0] += torch.ones(3)", "in place"),
        ("k = torch.tensor([1])\n        k *= 1.5", "in place"),
        ("self.seq[0] = 3", "a int in this container"),
        ("self.register_buffer('n', torch.ones(1))", "already exists"),
        ("self.register_buffer('forward', torch.ones(1))", "already exists"),
        ("self.add_module('n', nn.ReLU())", "already exists"),
        ("self.fc = 3", "cannot assign 'int' as child module 'fc'"),
        (
            "self.fc.weight = torch.zeros(2)",
            "cannot assign 'torch.FloatTensor' as parameter 'weight'",
        ),
        ("super(Base, self).__init__()", "`super()` here"),
        ("if self.fc.to == 3:\n            pass", "this comparison"),
    ] {
        let text = format!(
            "{HEAD}\nclass M(Net):\n    def __init__(self):\n        super().__init__()\n        {statements}\nmodel = M()\n"
        );
        let error = refusal(&text);
        assert!(error.contains(expected), "{statements}: {error}");
    }
}

#[test]
fn classes_that_change_what_objects_do_are_refused_by_name() {
    let init = "    def __init__(self):\n        super().__init__()\n";
    for (class, expected) in [
        (
            format!("class M(Net):\n{init}    def __setattr__(self, a, b):\n        pass\n"),
            "`__setattr__`",
        ),
        (
            format!("class M(Net):\n{init}    def __getattr__(self, a):\n        return 1\n"),
            "`__getattr__`",
        ),
        (
            format!(
                "class M(Net):\n{init}        self.k = 1 if self else 2\n    def __len__(self):\n        return 0\n"
            ),
            "whether this object is true",
        ),
        (
            format!(
                "class M(nn.Sequential):\n{init}        self.k = len(self)\n    def __len__(self):\n        return 7\n"
            ),
            "`len`",
        ),
        (
            format!(
                "class M(nn.ModuleList):\n{init}        self.k = self[0]\n    def __getitem__(self, i):\n        return 7\n"
            ),
            "this subscript",
        ),
        (format!("class M(Net, Unknown):\n{init}"), "undefined value Unknown"),
        (
            format!(
                "class M(Net):\n{init}        self.k = self.g\n    if True:\n        def g(self):\n            return 1\n"
            ),
            "what this statement gives `g`",
        ),
        (
            "class M(Net):\n    def __init__(self):\n        self.fc = nn.ReLU()\n".to_owned(),
            "before Module.__init__() call",
        ),
        (
            format!("class M(Net):\n    K = 3\n    L = [K for _ in range(2)]\n{init}        self.k = self.L\n"),
            "undefined value K",
        ),
    ] {
        let error = refusal(&format!("{HEAD}\n{class}model = M()\n"));
        assert!(error.contains(expected), "{class}: {error}");
    }
}

#[test]
fn defaults_of_functions_that_are_defined_in_a_loop_are_refused() {
    let text = format!(
        "{HEAD}\nfs = []\nfor i in range(3):\n    def g(x=i):\n        return x\n    fs.append(g)\nmodel = Net(fs[0]())\n"
    );
    let error = refusal(&text);
    assert!(error.contains("defined several times"), "{error}");
}

/// A value that only Python can compute is an error where it is used, unless it may be a module or part of the module's state, or computing it may have
/// effects.
#[test]
fn what_only_python_knows_may_be_assigned() {
    let text = |assigned: &str, used: &str| {
        format!(
            "{HEAD}\nclass M(Net):\n    def __init__(self):\n        super().__init__()\n        self.value = {assigned}\n    def forward(self, x: int):\n        return {used}\nmodel = M()\n"
        )
    };
    for expression in ["os.name == 'a'", "math.sqrt(-1.0)", "'abc'.title()", "1.5 .hex()"] {
        let loaded = Session::new().load_bytes(Path::new("model.py"), text(expression, "x").into_bytes());
        assert!(loaded.is_ok(), "{expression}: {:?}", loaded.err());
        let error = refusal(&text(expression, "self.value"));
        assert!(error.contains("has no attribute 'value'"), "{expression}: {error}");
    }
    for expression in [
        "nn.Parameter(torch.zeros(2, device='cuda'))",
        "torch.load('weights.pt')",
        "torch.hub.load('a', 'b')",
        "__import__('copy').copy(self.fc)",
        "frob(self).to_something()",
        "self.fc.weight.add_(1, alpha=2)",
    ] {
        let error = refusal(&text(expression, "x"));
        assert!(error.contains("model.py:"), "{expression}: {error}");
    }
}
