//! In-place forms of views change the variable itself, and no view that was made of it before.

use frazil::{Engine, EngineKind, EngineOptions, Session, Tensor, Value};
use std::path::Path;

const SOURCE: &str = "
class Net(nn.Module):
    def forward(self, x):
        y = x + 1
        row = y[0]
        y.t_()
        y[0].mul_(10)
        y.unsqueeze_(0)
        return y, row, y.stride()

    @torch.jit.export
    def of_constants(self, x):
        y = torch.ones(2, 3)
        row = y[0]
        y.transpose_(0, 1)
        y.add_(x)
        return y, row
";

fn engine(kind: EngineKind, is_strict: bool) -> Engine {
    let loaded = Session::new().script(Path::new("net.py"), SOURCE, &[]).unwrap();
    let mut model = loaded.runnable().unwrap();
    model.eval();
    let methods = ["forward", "of_constants"].map(str::to_owned).to_vec();
    let options = EngineOptions::default().kind(kind).strict(is_strict).methods(methods);
    model.engine(&options).unwrap()
}

fn call(engine: &mut Engine, method: &str, sizes: &[i64]) -> Vec<Value> {
    let x = Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], sizes).unwrap();
    engine.call(method, &[x.into()]).unwrap().items().unwrap()
}

fn elements(value: &Value) -> Vec<f64> {
    value.as_tensor().unwrap().to_f64_vec()
}

fn check(engine: &mut Engine) {
    let results = call(engine, "forward", &[2, 3]);
    assert_eq!(results[0].as_tensor().unwrap().sizes(), [1, 3, 2]);
    assert_eq!(elements(&results[0]), [20.0, 50.0, 3.0, 6.0, 4.0, 7.0]);
    assert_eq!(elements(&results[1]), [20.0, 3.0, 4.0]);
    let strides: Vec<i64> = results[2].items().unwrap().iter().filter_map(Value::as_int).collect();
    assert_eq!(strides, [3, 1, 3]);
}

#[test]
fn interpreted_views_change_in_place() {
    let mut engine = engine(EngineKind::Interpreter, false);
    check(&mut engine);
    let results = call(&mut engine, "of_constants", &[3, 2]);
    assert_eq!(elements(&results[0]), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(elements(&results[1]), [2.0, 4.0, 6.0]);
}

#[cfg(feature = "codegen")]
#[test]
fn native_views_change_in_place() {
    check(&mut engine(EngineKind::Native, true));
    // Which elements a view of known ones has is forgotten: the interpreter may run this.
    let results = call(&mut engine(EngineKind::Native, false), "of_constants", &[3, 2]);
    assert_eq!(elements(&results[0]), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(elements(&results[1]), [2.0, 4.0, 6.0]);
}
