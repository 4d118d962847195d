//! Functions, bare graphs and modules in training mode run with every engine; explicit freezing may refuse them.

use frazil::{CallError, Engine, EngineKind, EngineOptions, FreezeOptions, Loaded, Model, Session, Tensor, Value};
use std::path::Path;

fn load(name: &str, text: &str) -> Loaded {
    let loaded = Session::new().load_bytes(Path::new(name), text.as_bytes().to_vec());
    loaded.expect("it compiles")
}

/// Returns the engines of this build.
fn kinds() -> impl Iterator<Item = EngineKind> {
    let kinds = [EngineKind::Interpreter, EngineKind::Native];
    kinds.into_iter().take(if cfg!(feature = "codegen") { 2 } else { 1 })
}

fn engine(model: &Model, kind: EngineKind, eval: bool) -> Engine {
    let options = EngineOptions::default()
        .kind(kind)
        .eval(eval)
        .methods(vec!["forward".to_owned(), "norm.forward".to_owned()]);
    model.engine(&options).expect("it can be run")
}

fn column(data: &[f32]) -> Value {
    Tensor::from_f32(data, &[data.len() as i64, 1])
        .expect("a column")
        .into()
}

fn elements(result: Result<Value, CallError>) -> Vec<f64> {
    let value = result.expect("it runs");
    value.as_tensor().expect("it gives a tensor").to_f64_vec()
}

const NET: &str = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(1, eps=1e-12, affine=False)
    def forward(self, x):
        return self.norm(x)
model = Net()
";

#[test]
fn training_modules_run_and_keep_their_state() {
    let mut model = load("net.py", NET).runnable().expect("a module");
    model.train(true);
    let error = model.freeze(&FreezeOptions::default()).err().map(|e| e.to_string());
    assert_eq!(
        error.as_deref(),
        Some(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    );
    for kind in kinds() {
        let mut training = engine(&model, kind, false);
        for _ in 0..2 {
            assert_eq!(elements(training.call("forward", &[column(&[1.0, 3.0])])), [-1.0, 1.0]);
        }
        assert_eq!(
            elements(training.call("norm.forward", &[column(&[1.0, 3.0])])),
            [-1.0, 1.0]
        );
        let after = training.snapshot().expect("the state");
        let batches = after.root().get_buffer("norm.num_batches_tracked").expect("a buffer");
        assert_eq!(batches.to_i64_vec(), [3]);
        // The running statistics, which are initially 0 and 1.
        let mut evaluating = engine(&model, kind, true);
        assert_eq!(elements(evaluating.call("forward", &[column(&[1.0, 3.0])])), [1.0, 3.0]);
        assert_eq!(elements(evaluating.call("norm.forward", &[column(&[2.0])])), [2.0]);
        assert!(model.root().is_training(), "the model itself stays as it is");
    }
}

#[test]
fn a_saved_function_runs_although_it_cannot_be_frozen() {
    let function = load("f.py", "def f(x, n: int = 2):\n    return x * n\n");
    let archive = function
        .to_model("f")
        .and_then(|m| m.save_bytes(&frazil::SaveOptions::default()));
    let archive = archive.expect("it can be written");
    let model = Session::new()
        .load_bytes(Path::new("f.pt"), archive)
        .and_then(|l| l.runnable());
    let model = model.expect("it can be read");
    assert!(model.freeze(&FreezeOptions::default()).is_err());
    for kind in kinds() {
        let mut engine = engine_of(&model, kind);
        assert_eq!(elements(engine.call("forward", &[column(&[1.0, 3.0])])), [2.0, 6.0]);
        assert_eq!(elements(engine.call_module(&[column(&[1.0]), Value::Int(5)])), [5.0]);
    }
}

fn engine_of(model: &Model, kind: EngineKind) -> Engine {
    let options = EngineOptions::default().kind(kind);
    model.engine(&options).expect("it can be run")
}

#[test]
fn bare_graphs_run_as_forward() {
    let one = "graph(%x : Tensor, %n : int):\n  %y : Tensor = aten::mul(%x, %n)\n  return (%y)\n";
    let two = "graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y, %x)\n";
    // PyTorch's text of a frozen module: the object is an input, and unused.
    let frozen = "graph(%self : __torch__.Net, %x.1 : Tensor):\n  %y : Tensor = aten::neg(%x.1)\n  return (%y)\n";
    for kind in kinds() {
        let run = |text: &str, args: &[Value]| {
            let model = load("g.ir", text).runnable().expect("it can be run");
            engine_of(&model, kind).call_module(args)
        };
        assert_eq!(elements(run(one, &[column(&[1.0, 2.0]), Value::Int(3)])), [3.0, 6.0]);
        assert_eq!(elements(run(frozen, &[column(&[1.0, 2.0])])), [-1.0, -2.0]);
        let pair = run(two, &[column(&[1.0])])
            .expect("it runs")
            .items()
            .unwrap_or_default();
        assert_eq!(pair.len(), 2);
        let missing = run(one, &[column(&[1.0])])
            .expect_err("an argument is missing")
            .to_string();
        assert!(missing.contains("missing value for argument 'n'"), "{missing}");
    }
}

/// PyTorch's messages; a method's own object is counted.
#[test]
fn keyword_only_arguments_are_not_positional() {
    let text = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x, *, n: int):\n        return x * n\n\n\nmodel = M()\n";
    let model = load("model.py", text).runnable().expect("it can be run");
    for kind in kinds() {
        let mut engine = engine_of(&model, kind);
        let (x, n) = (column(&[1.0, 2.0]), Value::Int(3));
        let named = engine.call_with("forward", std::slice::from_ref(&x), &[("n", n.clone())]);
        assert_eq!(elements(named), [3.0, 6.0]);
        let positional = engine.call_with("forward", &[x.clone(), n.clone()], &[]);
        let refused = positional.expect_err("`n` is keyword-only").to_string();
        let expected = "forward() takes 2 positional argument(s) but 3 was/were given.  Declaration: forward(";
        assert!(refused.contains(expected), "{refused}");
        let unknown = engine.call_with("forward", std::slice::from_ref(&x), &[("m", n)]);
        let refused = unknown.expect_err("`n` is missing").to_string();
        assert!(
            refused.contains("forward() is missing value for argument 'n'"),
            "{refused}"
        );
    }
}

#[test]
fn a_bare_graph_that_uses_its_object_is_refused() {
    let text =
        "graph(%self : __torch__.Net, %x : Tensor):\n  %w : Tensor = prim::GetAttr[name=\"w\"](%self)\n  return (%w)\n";
    let refused = load("g.ir", text)
        .runnable()
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    assert!(refused.contains("uses an object of class __torch__.Net"), "{refused}");
}
