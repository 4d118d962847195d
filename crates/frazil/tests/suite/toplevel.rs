//! Top-level statements run once, in order; unsupported ones are refused by name where they are needed. Results are recorded in
//! tests/fixtures/language/toplevel.py.

use std::path::Path;

use frazil::{Engine, EngineKind, EngineOptions, Error, Loaded, Session, Value};

fn load(text: &str) -> Result<Loaded, Error> {
    Session::new().load_bytes(Path::new("model.py"), text.as_bytes().to_vec())
}

fn refusal(text: &str) -> String {
    match load(text) {
        Ok(_) => panic!("this loads:\n{text}"),
        Err(error) => error.to_string(),
    }
}

fn engines(text: &str) -> Vec<Engine> {
    let model = match load(text).unwrap_or_else(|e| panic!("{e}\n{text}")) {
        Loaded::Model(model) => model,
        Loaded::Graphs(graphs) => graphs.to_model(),
    };
    let engine = |kind| {
        let options = EngineOptions::default().kind(kind);
        model.engine(&options).unwrap()
    };
    vec![engine(EngineKind::Interpreter), engine(EngineKind::Native)]
}

/// Returns the result of `method` of the text for an integer, from both engines.
fn called(text: &str, method: &str, argument: i64) -> String {
    let results: Vec<String> = engines(text)
        .iter_mut()
        .map(|engine| format!("{:?}", engine.call(method, &[Value::Int(argument)]).unwrap()))
        .collect();
    assert_eq!(results[0], results[1], "{text}");
    results[0].clone()
}

const NET: &str = "
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n: int = 1):
        super().__init__()
        self.n = n
        self.w = nn.Parameter(torch.ones(2))
    def forward(self, x: int):
        return x + self.n
";

#[test]
fn what_cannot_be_run_is_refused_by_name_where_the_model_needs_it() {
    for (line, expected) in [
        ("model = torchvision.models.resnet18()", "torchvision"),
        (
            "import torchvision\nmodel = torchvision.models.resnet18()",
            "`torchvision.models.resnet18`",
        ),
        (
            "from torchvision.models import resnet18\nnet = resnet18()",
            "`torchvision.models.resnet18`",
        ),
        (
            "model = Net()\nmodel.load_state_dict(torch.load('w.pt'))",
            "`torch.load`",
        ),
        ("model = Net(int(open('n').read()))", "TextIOWrapper"),
        ("model = Net()\nmodel.n = unknown.value", "unknown"),
        ("model = torch.jit.load('a.pt')", "`torch.jit.load`"),
        ("net = Net()\ntraced = torch.jit.trace(net, 1)", "`torch.jit.trace`"),
        (
            "model = Net()\nopt = torch.optim.SGD(model.parameters(), lr=0.1)",
            "`torch.optim.SGD`",
        ),
        (
            "model = Net()\nfor p in model.parameters():\n    p.data = frob(p)",
            "frob",
        ),
        ("model = Net()\nif frob():\n    model.n = 3", "frob"),
        ("def change(m):\n    m.n = frob()\nmodel = Net()\nchange(model)", "frob"),
        ("model = Net()\ndef change():\n    model.n = frob()\nchange()", "frob"),
        (
            "model = Net()\ntry:\n    import apex\n    model.n = 3\nexcept ImportError:\n    pass",
            "import",
        ),
        ("model = Net()\nNet.forward = frob", "frob"),
    ] {
        let text = format!("{NET}\n{line}\n");
        let error = refusal(&text);
        assert!(error.contains(expected), "{line}: {error}");
        assert!(
            error.contains("model.py:1") || error.contains("model.py:2"),
            "{line}: {error}"
        );
    }
}

#[test]
fn a_file_without_classes_of_its_own_is_not_taken_for_another() {
    let error = refusal("import torchvision\nmodel = torchvision.models.resnet18()\n");
    assert!(error.contains("`torchvision.models.resnet18`"), "{error}");
    let error = refusal("import timm\nmodel = timm.create_model('a')\n\ndef f(x: int):\n    return x\n");
    assert!(error.contains("`timm.create_model`"), "{error}");
}

#[test]
fn what_the_model_does_not_need_does_not_matter() {
    for line in [
        "import numpy as np\nimport requests\nmean = np.zeros(3)\nmodel = Net(3)",
        "transform = transforms.Compose([1])\nmodel = Net(3)\nprint(model)\nprint(open('a').read())",
        "parser = argparse.ArgumentParser()\nargs = parser.parse_args()\nmodel = Net(3)",
        "model = Net(3)\nif __name__ == '__main__':\n    model = Net(int(open('n').read()))",
        "model = Net(3)\ny = model(torch.ones(2))",
        "model = Net(3)\nlogger = logging.getLogger(__name__)\ntorch.manual_seed(0)\ntorch.save(model.state_dict(), 'w.pt')",
        "model = Net(3)\ntorch.backends.cudnn.benchmark = True\nos.environ['A'] = 'b'",
        "try:\n    import apex\n    HAS = True\nexcept ImportError:\n    HAS = False\nmodel = Net(3)",
        "def read(path):\n    with open(path) as f:\n        return f.read()\nmodel = Net(3)",
        "from .other import Base\nclass Other(Base):\n    pass\nmodel = Net(3)",
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nmodel = Net(3).to(device)",
    ] {
        let text = format!("{NET}\n{line}\n");
        assert_eq!(called(&text, "forward", 1), "4", "{line}");
    }
}

#[test]
fn the_model_is_the_one_of_that_name_or_the_only_one() {
    let wrapper = "class Wrap(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n        self.module = inner\n    def forward(self, x: int):\n        return self.module(x) * 10\n";
    for (line, expected) in [
        ("a = Net(2)", "3"),
        ("a = Net(2)\nmodel = Net(3)", "4"),
        ("model = Net(3)\na = Net(2)\ncriterion = nn.MSELoss()", "4"),
        ("a = Net(2)\nb = Net(3)\ndel b", "3"),
        ("a = Net(2)\nb = Net(3)\na.b = b", "3"),
        ("a = Net(2)\nb = a", "3"),
        ("net = Net(2)\nfor m in net.modules():\n    m.n = 7", "8"),
        (
            "inner = Net(2)\nclass Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.inner = inner\n    def forward(self, x: int):\n        return self.inner(x) * 10",
            "30",
        ),
        ("def make(n):\n    return Net(n)\nnet = make(6)", "7"),
        ("models = [Net(2), Net(3)]\nmodel = models[0]", "3"),
        ("models = {'a': Net(2), 'b': Net(3)}\nnet = models['b']", "4"),
        ("net, k = Net(2), 5", "3"),
        ("model, other = Net(2), Net(3)", "3"),
        ("net = None or Net(5)", "6"),
        ("for net in [Net(5)]:\n    pass", "6"),
        ("def set_it():\n    global net\n    net = Net(5)\nset_it()", "6"),
        ("ACTS = {'relu': nn.ReLU()}", "2"),
        ("a = Net(2)\nmodel = torch.jit.script(a).eval()\na.n = 8", "3"),
        ("a = Net(2)\nscripted = torch.jit.script(a)", "3"),
        (
            "class Own(Net):\n    @property\n    def items(self):\n        return self.all\n    @items.setter\n    def items(self, v):\n        self.n = 3\nmodel = Own(2)\nmodel.all = [1]\nmodel.items += [2]",
            "4",
        ),
        (
            "class Mixin:\n    def extra(self, x: int):\n        return x * 7\nclass Own(Mixin, nn.Module):\n    def forward(self, x: int):\n        return self.extra(x)",
            "7",
        ),
        (
            "def f(self, x: Tuple[int], y: int):\n    return y * 9\nmodel = Net(2)\nh = model.register_forward_hook(f)\nh.remove()",
            "3",
        ),
    ] {
        let text = format!("{NET}\n{line}\n");
        assert_eq!(called(&text, "forward", 1), expected, "{line}");
    }
    let text = format!("{NET}\n{wrapper}wrapper = Wrap(Net(3))\nmodel = wrapper.module\n");
    assert_eq!(called(&text, "forward", 1), "4");
    for (line, expected) in [
        ("a = Net(2)\nb = Net(3)", "`a` and `b`"),
        ("net = Net(2)\ncriterion = nn.MSELoss()", "`net` and `criterion`"),
        ("criterion = nn.MSELoss()", "`criterion` and an object of `Net`"),
        ("a = Net(2)\nfor m in [Net(5)]:\n    m.n = 7", "`a` and `m`"),
        ("models = [Net(2), Net(3)]", "`models`"),
    ] {
        let error = refusal(&format!("{NET}\n{line}\n"));
        assert!(
            error.contains(expected) && error.contains("call the one that is meant `model`"),
            "{line}: {error}"
        );
    }
}

#[test]
fn a_refused_statement_may_have_made_the_module() {
    for (line, expected) in [
        ("net = (lambda: Net(5))()", "expression"),
        ("MODELS = {'a': lambda: Net(7)}\nnet = MODELS['a']()", "expression"),
        ("net = Net(5) if frob() else Net(6)", "frob"),
        ("with open('n') as f:\n    net = Net(int(f.read()))", "context"),
        ("if frob():\n    net = Net(5)", "frob"),
        ("for n in frob():\n    net = Net(n)", "frob"),
        (
            "def make():\n    global net\n    net = Net(int(frob()))\nmake()",
            "frob",
        ),
        ("from mylib import *\nnet = build_net(9)", "build_net"),
        (
            "from contextlib import nullcontext\nwith nullcontext(Net(5)) as net:\n    pass",
            "context",
        ),
        ("globals()['net'] = Net(5)", "globals"),
        ("if (net := Net(5)) is None:\n    pass", "expression"),
        ("net, *rest = [Net(5), 1]", "assignment"),
        ("import copy\nnet = copy.copy(Net(5))", "copy.copy"),
        ("class Own(pl.LightningModule):\n    pass", "pl"),
        (
            "import pytorch_lightning as pl\nclass Own(pl.LightningModule):\n    pass\nnet = Own()",
            "pytorch_lightning.LightningModule",
        ),
        (
            "from timm.models import ResNet\nclass Own(ResNet):\n    pass",
            "timm.models.ResNet",
        ),
        (
            "def deco(c):\n    return c\n@deco\nclass Own(nn.Module):\n    pass",
            "decorator",
        ),
        ("if frob():\n    class Own(nn.Module):\n        pass", "frob"),
        (
            "try:\n    from mylib import Base\nexcept ImportError:\n    Base = nn.Module\nclass Own(Base):\n    pass",
            "import",
        ),
        (
            "class Mixin(nn.Module):\n    pass\nclass Own(nn.Module, Mixin):\n    pass",
            "have no order",
        ),
        (
            "from mylib import Mixin\nclass Own(nn.Module, Mixin):\n    pass",
            "mylib.Mixin",
        ),
        ("torch.set_default_dtype(torch.float64)", "set_default_dtype"),
        (
            "frozen = torch.jit.freeze(torch.jit.script(Net(2)).eval())",
            "torch.jit.freeze",
        ),
    ] {
        let error = refusal(&format!("{NET}\n{line}\n"));
        assert!(error.contains(expected), "{line}: {error}");
    }
    // A file that contains nothing else.
    let error = refusal("import torch\nfrom torch import nn\nnet = (lambda: nn.Linear(2, 2))()\n");
    assert!(error.contains("expression"), "{error}");
    // Statements that cannot make a module are ignored.
    for line in [
        "parser = argparse.ArgumentParser()\nargs = parser.parse_args()\nnet = Net(3)",
        "mean = np.zeros(3)\nnet = Net(3)\nimport numpy as np\nstd = np.ones(3)",
        "net = Net(3)\nloss = F.mse_loss(net(torch.ones(2)), torch.ones(2))\ny = net(1)",
    ] {
        let text = format!("{NET}\nimport argparse\nimport numpy as np\n{line}\n");
        assert_eq!(called(&text, "forward", 1), "4", "{line}");
    }
}

#[test]
fn a_refused_statement_taints_all_that_it_reaches() {
    for (line, expected) in [
        ("load = model.load_state_dict\nload(torch.load('w.pt'))", "torch.load"),
        ("def go(m=model):\n    m.n = frob()\ngo()", "frob"),
        (
            "class T:\n    def run(self):\n        model.n = frob()\ntrainer = T()\ntrainer.run()",
            "frob",
        ),
        (
            "class T:\n    @staticmethod\n    def run():\n        model.n = frob()\nT.run()",
            "frob",
        ),
        ("def go():\n    model.n = frob()\nINIT = {'a': go}\nINIT['a']()", "frob"),
        ("def go():\n    model.n = frob()\nmylib.later(go)", "mylib"),
        ("exec('model.n = 5')", "exec"),
        ("globals()['model'].n = 5", "globals"),
        (
            "model.names = ['a']\nnames = model.names\nnames += map(str, [1])",
            "this operator",
        ),
        ("print(mylib.train(model))", "mylib"),
        ("print(model.n, frob(model))", "frob"),
        ("model.b = nn.BatchNorm1d(2)\ny = model(1)", "calling"),
        ("part = model.w[0:1]\nmylib.fill(part)", "mylib"),
        ("it = iter([1, 2])\nmylib.take(it)\nmodel.n = next(it)", "mylib"),
        (
            "class Own(Net):\n    @property\n    def bump(self):\n        self.n = 9\n        return 1\nmodel = Own()\ny = torch.special.i0(1) + model.bump",
            "torch.special.i0",
        ),
        (
            "names = [[1]]\nnames.copy()[0] += [2]\nmodel.n = len(names[0])",
            "in place",
        ),
    ] {
        let error = refusal(&format!("{NET}\nfrom typing import Tuple\nmodel = Net()\n{line}\n"));
        assert!(error.contains(expected), "{line}: {error}");
    }
    // Calls without effects on the model, and calls of functions that never received it.
    for line in [
        "y = model(1)",
        "print(model(1), f'{frob:.2f}')",
        "import wandb\nwandb.init(project='a')",
        "model.b = nn.BatchNorm1d(2)\nmodel.eval()\ny = model(1)",
        "import logging\nlogger = logging.getLogger(__name__)\nlogger.info('parameters: %d', sum(p.numel() for p in model.parameters()))",
        "with torch.no_grad():\n    y = model(1)",
    ] {
        let text = format!("{NET}\nmodel = Net(3)\n{line}\n");
        assert_eq!(called(&text, "forward", 1), "4", "{line}");
    }
}

#[test]
fn what_is_compiled_is_what_was_there_then() {
    let text = "import torch\ndef g(x: int):\n    return x + 1\n@torch.jit.script\ndef f(x: int):\n    return g(x)\ndef g(x: int):\n    return x + 2\n";
    let error = refusal(text);
    assert!(
        error.contains("`g` is defined again behind `torch.jit.script`"),
        "{error}"
    );
    // Only the tensors are shared; a cast makes new elements for a parameter.
    let probe = NET.replace(
        "return x + self.n",
        "return x + self.n + (100 if self.w.dtype == torch.float64 else 0)",
    );
    for (line, expected) in [("a.double()", "103"), ("model.double()", "103"), ("a.n = 5", "3")] {
        let text = format!("{probe}\na = Net(2)\nmodel = torch.jit.script(a)\n{line}\nmodel.save('a.pt')\n");
        assert_eq!(called(&text, "forward", 1), expected, "{line}");
    }
}

#[test]
fn what_python_would_raise_ends_the_file() {
    for (line, expected) in [
        ("raise RuntimeError('not here')\nmodel = Net(3)", "not here"),
        ("assert 1 > 2, 'too small'\nmodel = Net(3)", "too small"),
        ("import sys\nsys.exit(1)\nmodel = Net(3)", "`sys.exit`"),
        (
            "model = Net(3)\nmodel.load_state_dict({'v': torch.ones(2)})",
            "Unexpected key(s) in state_dict: \"v\". \n\tMissing key(s) in state_dict: \"w\". ",
        ),
        (
            "model = Net(3)\nmodel.load_state_dict({'w': torch.ones(3)})",
            "size mismatch for w: copying a param with shape torch.Size([3]) from checkpoint, the shape in current model is torch.Size([2]).",
        ),
    ] {
        let error = refusal(&format!("{NET}\n{line}\n"));
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn functions_that_do_not_compile_fail_where_they_are_needed() {
    let text = "def helper(path):\n    with open(path) as f:\n        return f.read()\n\ndef user(x: int):\n    return helper('a')\n\ndef f(x: int):\n    return x + 1\n";
    assert_eq!(called(text, "f", 1), "2");
    let loaded = load(text).unwrap();
    for name in ["helper", "user"] {
        let error = loaded.graph(name).unwrap_err().to_string();
        assert!(
            error.contains(&format!("`{name}` does not compile: ")) && error.contains("open"),
            "{error}"
        );
    }
    let error = engines(text)[0].call("user", &[Value::Int(1)]).unwrap_err().to_string();
    assert!(error.contains("open"), "{error}");
    // All members of the module, and definitions that a decorator compiles.
    assert!(refusal("def f(x: int):\n    return frob(x)\n").contains("frob"));
    let scripted = "@torch.jit.script\ndef g(x: int):\n    return frob(x)\n\ndef f(x: int):\n    return x\n";
    assert!(refusal(scripted).contains("frob"));
}

#[test]
fn running_a_file_is_bounded() {
    for (line, expected) in [
        ("while True:\n    pass", "steps"),
        ("x = [1]\nwhile True:\n    x = x + x", "bytes"),
        ("x = 'a'\nwhile True:\n    x = x + x", "bytes"),
        ("x = [1]\nwhile True:\n    x.extend(x)", "bytes"),
    ] {
        let error = refusal(&format!("{NET}\n{line}\nmodel = Net(3)\n"));
        assert!(
            error.contains(expected) && error.contains("running the text"),
            "{line}: {error}"
        );
    }
    // Lists that contain each other are walked once.
    let nested = "x = [1]\nfor i in range(64):\n    x = [x, x]\n";
    for line in [
        "same = x == x\ny = torch.tensor(x)\nmodel = Net(3)",
        "model = Net(3)\nmodel.x = x",
    ] {
        assert_eq!(called(&format!("{NET}\n{nested}{line}\n"), "forward", 1), "4", "{line}");
    }
}
