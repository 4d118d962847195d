//! Results and attributes that share memory in PyTorch share it natively, and those that do not are apart. The expected values are PyTorch's.

#![cfg(feature = "codegen")]

use frazil::{Engine, EngineOptions, Model, Session, Tensor, Value};
use std::path::Path;

const SOURCE: &str = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = torch.zeros(3)
        self.d = torch.zeros(2)
        self.e = torch.zeros(3)

    def forward(self, x, y):
        if bool(x.sum() > 100.0):
            return x, y, x
        a = x.contiguous()
        x.add_(1)
        b = x.clone()
        x.copy_(y)
        y.copy_(b)
        return a, x, y

    @torch.jit.export
    def keep(self, x):
        y = x * 2
        self.c = y
        self.d = y[1:]
        self.e = y
        return y, self.d, self.e

    @torch.jit.export
    def put(self, x):
        self.c.add_(x)
        self.d.mul_(2)
        return self.c, self.d, self.e

    @torch.jit.export
    def parts(self, x):
        q, k, v = (x * 3).chunk(3, -1)
        z = torch.zeros(4)
        w = x.t() + 1
        return q, k, v, q.t(), z, z[1:], w, w[1:], w

    @torch.jit.export
    def apart(self, x):
        return x.copysign(-0.0), x.copysign(0.0), torch.where(x > 5.0, 0.0, -0.0)

model = Net().eval()
";

fn engine_of(model: &Model, methods: &[&str], options: EngineOptions) -> Engine {
    let methods = methods.iter().map(|&method| method.to_owned()).collect();
    model.engine(&options.methods(methods)).expect("it compiles")
}

fn model(source: &str) -> Model {
    let loaded = Session::new()
        .script(Path::new("net.py"), source, &[])
        .expect("it compiles");
    let mut model = loaded.runnable().expect("it runs");
    model.eval();
    model
}

fn engine() -> Engine {
    let methods = ["forward", "keep", "put", "parts", "apart"];
    engine_of(&model(SOURCE), &methods, EngineOptions::default().strict(true))
}

fn tensor(elements: &[f32], sizes: &[i64]) -> Tensor {
    Tensor::from_f32(elements, sizes).expect("as many elements")
}

fn call(engine: &mut Engine, method: &str, arguments: &[Value]) -> Vec<Value> {
    let result = engine.call(method, arguments).expect("it returns");
    result.items().expect("a tuple")
}

fn elements(value: &Value) -> Vec<f64> {
    value.as_tensor().expect("a tensor").to_f64_vec()
}

fn fill(value: &Value, number: f32) {
    let tensor = value.as_tensor().expect("a tensor");
    let count = tensor.sizes().iter().product::<i64>();
    let filled = Tensor::from_f32(&vec![number; count as usize], tensor.sizes()).expect("as many elements");
    tensor.copy_(&filled).expect("the same sizes");
}

#[test]
fn copies_of_arguments_are_apart() {
    let mut engine = engine();
    let x = tensor(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3]);
    let x = Value::from(x.as_strided(&[3, 2], &[1, 3], 0).expect("it fits"));
    let y = Value::from(tensor(&[1.0; 6], &[3, 2]));
    let results = call(&mut engine, "forward", &[x.clone(), y.clone()]);
    assert_eq!(elements(&results[0]), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert!(results[1].is(&x) && results[2].is(&y));
    assert_eq!(elements(&x), [1.0; 6]);
    assert_eq!(elements(&y), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
}

#[test]
fn attributes_share_memory_from_call_to_call() {
    let mut engine = engine();
    let ones = Value::from(tensor(&[1.0; 3], &[3]));
    let results = call(&mut engine, "keep", std::slice::from_ref(&ones));
    assert!(results[0].is(&results[2]));
    fill(&results[1], 5.0);
    assert_eq!(elements(&results[0]), [2.0, 5.0, 5.0]);
    let results = call(&mut engine, "put", &[ones]);
    assert_eq!(elements(&results[0]), [3.0, 12.0, 12.0]);
    assert_eq!(elements(&results[1]), [12.0, 12.0]);
    assert!(results[0].is(&results[2]));
}

fn check_parts(engine: &mut Engine) {
    let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let results = call(engine, "parts", &[tensor(&x, &[2, 6]).into()]);
    let storage = |i: usize| results[i].as_tensor().expect("a tensor");
    assert!([1, 2, 3].iter().all(|&i| storage(i).shares_storage(&storage(0))));
    assert_eq!((storage(1).strides(), storage(1).offset()), (&[6, 1][..], 2));
    assert_eq!(elements(&results[1]), [6.0, 9.0, 24.0, 27.0]);
    fill(&results[0], -1.0);
    assert_eq!(elements(&results[3]), [-1.0; 4]);
    assert_eq!(elements(&results[2]), [12.0, 15.0, 30.0, 33.0]);
    fill(&results[5], 7.0);
    assert_eq!(elements(&results[4]), [0.0, 7.0, 7.0, 7.0]);
    assert!(results[6].is(&results[8]) && storage(7).shares_storage(&storage(6)));
    assert_eq!(storage(6).strides(), [1, 6]);
    assert_eq!(
        elements(&results[7]),
        [2.0, 8.0, 3.0, 9.0, 4.0, 10.0, 5.0, 11.0, 6.0, 12.0]
    );
}

#[test]
fn parts_of_a_tensor_share_its_memory() {
    check_parts(&mut engine());
}

#[test]
fn parts_of_kept_code_share_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("net.pt");
    let options = frazil::SaveOptions::default();
    model(SOURCE).save(&archive, &options).expect("it is saved");
    // No code is stored for a file that was written within the last tick of the clock.
    std::thread::sleep(std::time::Duration::from_millis(100));
    for round in 0..2 {
        let model = Session::new().load(&archive).expect("it is read");
        let options = EngineOptions::default().strict(true);
        let options = options.cache_dir(Some(folder.path().join("cache")));
        let mut engine = engine_of(&model, &["parts"], options);
        check_parts(&mut engine);
        let notes = engine.notes();
        assert!(
            round == 0 || notes.iter().any(|note| note.contains("found")),
            "{notes:?}"
        );
    }
}

#[test]
fn subgraphs_that_the_interpreter_calls_return_what_they_are_given() {
    let source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.zeros(2)

    def forward(self, x):
        y = (x * x).clone()
        self.a = y
        z = torch._neg_view(y)
        return [y, torch.log1p(torch.abs(z)), y[1:]]

    @torch.jit.export
    def change(self):
        self.a.mul_(0.5)

model = Net().eval()
";
    let mut engine = engine_of(&model(source), &["forward", "change"], EngineOptions::default());
    let results = call(&mut engine, "forward", &[tensor(&[2.0, 4.0], &[2]).into()]);
    let notes = engine.notes();
    assert!(notes.iter().any(|note| note.starts_with("part at")), "{notes:?}");
    engine.call("change", &[]).expect("it returns");
    assert_eq!(elements(&results[0]), [2.0, 8.0]);
    assert_eq!(elements(&results[2]), [8.0]);
}

#[test]
fn zeros_of_both_signs_are_two_constants() {
    let mut engine = engine();
    let results = call(&mut engine, "apart", &[tensor(&[1.0, 9.0], &[2]).into()]);
    assert_eq!(elements(&results[0]), [-1.0, -9.0]);
    assert_eq!(elements(&results[1]), [1.0, 9.0]);
    let signs: Vec<bool> = elements(&results[2]).iter().map(|x| x.is_sign_negative()).collect();
    assert_eq!(signs, [true, false]);
}
