//! Strides of arguments that are not row-major, natively and in the interpreter: what methods read of them, and the strides of results.

#![cfg(feature = "codegen")]

use frazil::{Engine, EngineKind, EngineOptions, Model, Session, Tensor, Value};
use std::path::Path;

const SOURCE: &str = "
class Net(nn.Module):
    # Natively as a whole.
    def forward(self, x):
        return (x.is_contiguous(), x.clone(), torch.empty_like(x), x + 1, x.t().mul(2), x * torch.ones(x.size(1)), torch.relu(x)[1:].contiguous(), x.to(torch.float64),
                x.sum(0), x.reshape(-1), x.expand(2, -1, -1) + 1, x.new_zeros(2, 3).is_contiguous(), x.t().is_contiguous(), (x + 1).t().is_contiguous())

    @torch.jit.export
    def views(self, x):
        return x, x.t(), x[1:], x[:, 0], x.unsqueeze(0), x.t()[:, 1:].detach(), [x[0]]

    @torch.jit.export
    def flat(self, x):
        return x.view(-1)

    @torch.jit.export
    def write(self, x):
        if bool(x.sum() > 1e9):
            return x.t()
        x[:, 0] = 7.
        x.t()[0].add_(1)
        return x.t() + 1

    # These depend on where arguments are stored.
    @torch.jit.export
    def numbers(self, x):
        y = x.t()
        return x.stride(), y.stride(), x.stride(0), x.storage_offset(), y[1:].storage_offset()

    @torch.jit.export
    def restrided(self, x):
        return x.as_strided([2, 1], [2, 1]) + 1, x.as_strided([2, 1], [1, 2], 2) + 1
";

const METHODS: [&str; 6] = ["forward", "views", "flat", "write", "numbers", "restrided"];

fn model() -> Model {
    let loaded = Session::new().script(Path::new("net.py"), SOURCE, &[]).unwrap();
    let mut model = loaded.runnable().unwrap();
    model.eval();
    model
}

fn engine(model: &Model, kind: EngineKind) -> Engine {
    let options = EngineOptions::default()
        .kind(kind)
        .methods(METHODS.map(str::to_owned).to_vec());
    model.engine(&options).unwrap()
}

/// Matrices with the given strides, and their names.
fn arguments() -> Vec<(&'static str, Tensor)> {
    let elements: Vec<f32> = (0..48).map(|i| i as f32 - 20.5).collect();
    let memory = Tensor::from_f32(&elements, &[48]).unwrap();
    let layouts: [(&str, [i64; 2], [i64; 2], i64); 12] = [
        ("dense", [4, 6], [6, 1], 0),
        ("dense further on", [4, 6], [6, 1], 12),
        ("padded rows", [4, 3], [6, 1], 1),
        ("other padded rows", [4, 3], [7, 1], 0),
        ("transposed", [6, 4], [1, 6], 0),
        ("transposed with gaps", [3, 4], [1, 6], 2),
        ("every other", [2, 3], [12, 2], 0),
        ("column", [4, 1], [6, 1], 5),
        ("rows that are repeated", [4, 6], [0, 1], 6),
        ("columns that are repeated", [4, 3], [6, 0], 3),
        ("windows", [4, 3], [1, 1], 0),
        ("row of many columns", [1, 1], [9, 1], 4),
    ];
    let tensor = |(name, sizes, strides, offset): (_, [i64; 2], [i64; 2], i64)| {
        let window = memory.as_strided(&sizes, &strides, offset).unwrap();
        // Of its own storage, which methods write to.
        let copy = memory.deep_copy().unwrap();
        (name, copy.as_strided(&sizes, &strides, window.offset()).unwrap())
    };
    layouts.into_iter().map(tensor).collect()
}

/// What a caller can see of a value: for a tensor, also where in `own` it is stored, if it is.
fn shown(value: &Value, own: &Tensor) -> String {
    let all = |items: &[Value]| items.iter().map(|v| shown(v, own)).collect::<Vec<_>>().join("; ");
    match value {
        Value::Tensor(cell) => {
            let t = cell.get();
            let place = t.shares_storage(own).then(|| t.offset());
            let strides: Vec<_> = t.sizes().iter().zip(t.strides()).filter(|(n, _)| **n > 1).collect();
            format!("{:?} {strides:?} {place:?} {:?}", t.sizes(), t.to_f64_vec())
        }
        Value::Tuple(t) => format!("({})", all(&t.items)),
        Value::List(l) => format!("[{}]", all(&l.items())),
        other => format!("{other:?}"),
    }
}

/// What a call returns or raises, and the memory of the argument afterwards.
fn called(engine: &mut Engine, method: &str, x: &Tensor) -> String {
    let memory = x.storage().clone();
    let memory = Tensor::from_storage(memory, x.dtype(), &[48], &[1], 0).unwrap();
    let own = x.clone();
    let got = match engine.call(method, &[Value::from(x.clone())]) {
        // Elements of `empty_like` are anything.
        Ok(Value::Tuple(results)) if method == "forward" => {
            let empty = results.items[2].as_tensor().unwrap();
            let rest: Vec<Value> = results
                .items
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != 2)
                .map(|(_, v)| v.clone())
                .collect();
            format!(
                "{:?} {:?} {}",
                empty.sizes(),
                empty.strides(),
                shown(&Value::tuple(rest), &own)
            )
        }
        Ok(value) => shown(&value, &own),
        Err(error) => error.to_string().lines().last().unwrap_or_default().to_owned(),
    };
    format!("{got} {:?}", memory.to_f64_vec())
}

#[test]
fn engines_agree_on_strides() {
    let model = model();
    let mut native = engine(&model, EngineKind::Native);
    let mut interpreter = engine(&model, EngineKind::Interpreter);
    for method in METHODS {
        for ((name, x), (_, again)) in arguments().into_iter().zip(arguments()) {
            let (got, want) = (
                called(&mut native, method, &x),
                called(&mut interpreter, method, &again),
            );
            assert_eq!(got, want, "{method} of {name}");
        }
    }
    let notes = native.notes().join("\n");
    let interpreted = |method: &str| notes.contains(&format!("{method}: runs in the interpreter"));
    let all = METHODS.map(|method| (method, interpreted(method)));
    // `write` where the argument overlaps itself.
    let expected = METHODS.map(|method| (method, ["write", "numbers", "restrided"].contains(&method)));
    assert_eq!(all, expected, "{notes}");
}

/// Strides that PyTorch gives the results.
#[test]
fn results_have_the_strides_of_pytorch() {
    let model = model();
    for kind in [EngineKind::Native, EngineKind::Interpreter] {
        let mut engine = engine(&model, kind);
        for (name, x) in arguments() {
            let Value::Tuple(results) = engine.call("forward", &[x.clone().into()]).unwrap() else {
                panic!("a tuple")
            };
            let strides = |i: usize| results.items[i].as_tensor().unwrap().strides().to_vec();
            let is = |i: usize| results.items[i].as_bool().unwrap();
            // x.is_contiguous(), and the strides of x.clone(), x + 1, x.t() * 2.
            let (contiguous, clone, sum, turned) = match name {
                "dense" | "dense further on" => (true, vec![6, 1], vec![6, 1], vec![1, 6]),
                "padded rows" | "other padded rows" => (false, vec![3, 1], vec![3, 1], vec![1, 3]),
                "transposed" => (false, vec![1, 6], vec![1, 6], vec![6, 1]),
                "transposed with gaps" => (false, vec![1, 3], vec![1, 3], vec![3, 1]),
                "every other" => (false, vec![3, 1], vec![3, 1], vec![1, 3]),
                _ => continue,
            };
            assert_eq!(
                (is(0), strides(1), strides(3), strides(4)),
                (contiguous, clone.clone(), sum, turned),
                "{kind:?}, {name}"
            );
            assert_eq!((strides(2), is(12)), (clone, name == "transposed"), "{kind:?}, {name}");
        }
        let x = &arguments()[2].1;
        let Value::Tuple(numbers) = engine.call("numbers", &[x.clone().into()]).unwrap() else {
            panic!("a tuple")
        };
        let shown: Vec<String> = numbers.items.iter().map(|v| shown(v, x)).collect();
        assert_eq!(shown[2..], ["6", "1", "2"], "{kind:?}");
    }
}

/// Code for one column serves columns of matrices of any width, and its views are views of them.
#[test]
fn strides_that_are_treated_alike_share_their_code() {
    let model = model();
    let mut native = engine(&model, EngineKind::Native);
    let mut notes = Vec::new();
    for width in [5, 7, 11] {
        let elements: Vec<f32> = (0..4 * width).map(|i| i as f32).collect();
        let matrix = Tensor::from_f32(&elements, &[4, width]).unwrap();
        let x = matrix.as_strided(&[4, 1], &[width, 1], width - 1).unwrap();
        let Value::Tuple(results) = native.call("views", &[x.into()]).unwrap() else {
            panic!("a tuple")
        };
        let rest = results.items[2].as_tensor().unwrap();
        assert!(rest.shares_storage(&matrix));
        assert_eq!((rest.strides(), rest.offset()), (&[width, 1][..], 2 * width - 1));
        notes.push(native.notes().len());
    }
    assert!(notes.iter().all(|n| *n == notes[0]), "{:?}", native.notes());
}

/// Kernels store results in the order of their strides; nothing is transposed afterwards.
#[test]
fn results_in_another_order_take_no_further_kernel() {
    let source = "
class Net(nn.Module):
    def forward(self, x):
        return x.t() + 1

    @torch.jit.export
    def turned(self, x):
        return torch.relu(x + 1).t()

    @torch.jit.export
    def product(self, x):
        return (x @ x.t()).t()
";
    let loaded = Session::new().script(Path::new("net.py"), source, &[]).unwrap();
    let mut model = loaded.runnable().unwrap();
    model.eval();
    let methods = ["forward", "turned", "product"];
    let options = EngineOptions::default()
        .methods(methods.map(str::to_owned).to_vec())
        .strict(true);
    let mut engine = model.engine(&options).unwrap();
    let x = Tensor::from_f32(&[1.0, -2.0, 3.0, -4.0, 5.0, -6.0], &[2, 3]).unwrap();
    let strides = [[1, 3], [1, 3], [1, 2]];
    let elements = [
        vec![2.0, -3.0, -1.0, 6.0, 4.0, -5.0],
        vec![2.0, 0.0, 0.0, 6.0, 4.0, 0.0],
        vec![14.0, -32.0, -32.0, 77.0],
    ];
    for ((method, strides), elements) in methods.iter().zip(strides).zip(elements) {
        let result = engine.call(method, &[x.clone().into()]).unwrap().as_tensor().unwrap();
        assert_eq!(
            (result.strides(), result.to_f64_vec()),
            (&strides[..], elements),
            "{method}"
        );
    }
    let notes = engine.notes();
    let single = |method: &&str| {
        notes
            .iter()
            .any(|note| note.starts_with(&format!("{method}: 1 kernel calls")))
    };
    assert!(methods.iter().all(single), "{notes:?}");
}
