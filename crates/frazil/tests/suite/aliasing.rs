//! Native methods that return their arguments, or views of them, return the same tensors, as in PyTorch; NamedTuples keep their type.

#![cfg(feature = "codegen")]

use frazil::ir::TypeKind;
use frazil::{Engine, EngineOptions, Model, Session, Tensor, Value};
use std::path::Path;

const SOURCE: &str = "
from typing import NamedTuple

class Pair(NamedTuple):
    first: Tensor
    count: int

class Net(nn.Module):
    def forward(self, x, y):
        return x, y * 2, x.t(), x[1:], torch.relu(x).t()

    @torch.jit.export
    def identity(self, x):
        return x

    @torch.jit.export
    def pair(self, x, n: int):
        return Pair(x + 1, n)
";

fn model() -> Model {
    let loaded = Session::new().script(Path::new("net.py"), SOURCE, &[]).unwrap();
    let mut model = loaded.runnable().unwrap();
    model.eval();
    model
}

fn engine(model: &Model, cache_dir: Option<&Path>) -> Engine {
    let methods = ["forward", "identity", "pair"].map(str::to_owned).to_vec();
    let options = EngineOptions::default().methods(methods).strict(true);
    let options = options.cache_dir(cache_dir.map(Path::to_owned));
    model.engine(&options).unwrap()
}

fn matrix() -> Tensor {
    Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap()
}

fn check(engine: &mut Engine) {
    let x = Value::from(matrix());
    let Value::Tuple(results) = engine.call("forward", &[x.clone(), matrix().into()]).unwrap() else {
        panic!("a tuple")
    };
    let tensor = |i: usize| results.items[i].as_tensor().unwrap();
    let own = x.as_tensor().unwrap();
    assert!(results.items[0].is(&x));
    assert!(!tensor(1).shares_storage(&own) && !tensor(4).shares_storage(&own));
    assert!(tensor(2).shares_storage(&own) && tensor(3).shares_storage(&own));
    assert_eq!((tensor(2).sizes(), tensor(2).strides()), (&[3, 2][..], &[1, 3][..]));
    assert_eq!(tensor(3).to_f64_vec(), [4.0, 5.0, 6.0]);
    assert_eq!(tensor(4).to_f64_vec(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert!(engine.call("identity", std::slice::from_ref(&x)).unwrap().is(&x));
    // So do those of an argument that is not row-major.
    let turned = Value::from(matrix().as_strided(&[3, 2], &[1, 3], 0).unwrap());
    let Value::Tuple(results) = engine.call("forward", &[turned.clone(), matrix().into()]).unwrap() else {
        panic!("a tuple")
    };
    assert!(results.items[0].is(&turned));
    let own = turned.as_tensor().unwrap();
    assert!((2..4).all(|i| results.items[i].as_tensor().unwrap().shares_storage(&own)));
    assert_eq!(
        results.items[2].as_tensor().unwrap().to_f64_vec(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    assert_eq!(results.items[3].as_tensor().unwrap().to_f64_vec(), [2.0, 5.0, 3.0, 6.0]);
    let Value::Tuple(pair) = engine.call("pair", &[x, Value::Int(3)]).unwrap() else {
        panic!("a tuple")
    };
    let ctx = engine.model().unwrap().session().ctx().clone();
    let ty = pair.ty.map(|ty| ctx.type_kind(ty));
    assert!(matches!(ty, Some(TypeKind::NamedTuple(name, ..)) if ctx.name(name).ends_with("Pair")));
    assert_eq!(pair.items[1].as_int(), Some(3));
}

#[test]
fn results_that_are_arguments() {
    check(&mut engine(&model(), None));
}

#[test]
fn results_that_are_arguments_of_kept_code() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("net.pt");
    model().save(&archive, &frazil::SaveOptions::default()).unwrap();
    // No code is stored for a file that was written within the last tick of the clock: it could be written again
    // without a visible change.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let cache = folder.path().join("cache");
    for _ in 0..2 {
        check(&mut engine(&Session::new().load(&archive).unwrap(), Some(&cache)));
    }
    let model = Session::new().load(&archive).unwrap();
    let mut warm = engine(&model, Some(&cache));
    check(&mut warm);
    let notes = warm.notes();
    assert!(notes.iter().any(|note| note.contains("found")), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("compiled in")), "{notes:?}");
}
