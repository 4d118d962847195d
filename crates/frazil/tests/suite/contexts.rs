//! Methods with `with` statements run natively: the methods of the contexts are part of the code.

#![cfg(feature = "codegen")]

use frazil::{CompileOptions, Engine, EngineKind, EngineOptions, InputSpec, Model, Session, Tensor, Value, ir::DType};
use std::path::Path;

const SOURCE: &str = "
@torch.jit.script
class Scope(object):
    def __init__(self, by: float):
        self.by = by
        self.depth = 0
    def __enter__(self):
        self.depth += 1
        return self.depth
    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.depth -= 1
        self.by = self.by * 2

class Net(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = torch.relu(x)
        return y * 2

    @torch.jit.export
    def scoped(self, x):
        scope = Scope(2.0)
        for i in range(3):
            with scope as level:
                x = x * scope.by + level
                if bool(x.sum() > 10.0):
                    with scope as inner:
                        x = x - inner
        return x, scope.by, scope.depth

    @torch.jit.export
    def checked(self, x):
        with torch.no_grad():
            if x.size(0) > 2:
                raise ValueError('too long')
            y = x + 1
        return y
model = Net().eval()
";

fn model() -> Model {
    let loaded = Session::new()
        .script(Path::new("net.py"), SOURCE, &[])
        .expect("it compiles");
    loaded.runnable().expect("it runs")
}

fn engine(kind: EngineKind) -> Engine {
    let methods = ["forward", "scoped", "checked"].map(str::to_owned).to_vec();
    let options = EngineOptions::default().methods(methods).kind(kind);
    model().engine(&options).expect("it can be run")
}

fn tensor(elements: &[f32]) -> Value {
    let tensor = Tensor::from_f32(elements, &[elements.len() as i64]);
    tensor.expect("as many elements").into()
}

#[test]
fn methods_with_contexts_run_natively() {
    let mut native = engine(EngineKind::Native);
    let mut interpreter = engine(EngineKind::Interpreter);
    for x in [&[1.0, -2.0], &[4.0, 2.0]] {
        for method in ["forward", "scoped", "checked"] {
            let [got, want] =
                [&mut native, &mut interpreter].map(|e| e.call(method, &[tensor(x)]).expect("it returns"));
            assert_eq!(got.equals(&want), Some(true), "{method}: {got:?} instead of {want:?}");
        }
    }
    let notes = native.notes();
    assert!(!notes.iter().any(|note| note.contains("interpreter")), "{notes:?}");
    let error = native.call("checked", &[tensor(&[1.0; 3])]).expect_err("it raises");
    assert!(error.to_string().contains("too long"), "{error}");
}

#[test]
fn methods_with_contexts_are_compiled_ahead_of_time() {
    let options = frazil::FreezeOptions::default();
    let frozen = model().freeze(&options).expect("it can be frozen");
    let shape = InputSpec::new(DType::Float, &[2]);
    let plan = frazil::Loaded::Model(frozen).plan("forward", &[shape], &CompileOptions::default());
    assert_eq!(plan.expect("it can be planned").kernel_count().0, 1);
}
