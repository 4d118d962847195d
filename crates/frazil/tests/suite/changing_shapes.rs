//! Methods called with always other shapes: code that shapes share gives the same bits as code of a shape's own, whatever ran before.

#![cfg(feature = "codegen")]

use frazil::{Engine, EngineKind, EngineOptions, FusionStrategy, Model, Session, Tensor, Value};
use std::path::Path;

const SOURCE: &str = "
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.query = nn.Linear(32, 32)
        self.key = nn.Linear(32, 32)
        self.value = nn.Linear(32, 32)
        self.up = nn.Linear(32, 80)
        self.down = nn.Linear(80, 32)

    def forward(self, x):
        b, n, c = x.shape
        h = self.norm(x)
        q = self.query(h).view(b, n, 4, 8).transpose(1, 2)
        k = self.key(h).view(b, n, 4, 8).transpose(1, 2)
        v = self.value(h).view(b, n, 4, 8).transpose(1, 2)
        scores = torch.softmax(q @ k.transpose(-2, -1) / 3.0, -1)
        x = x + (scores @ v).transpose(1, 2).reshape(b, n, c)
        x = x + self.down(torch.nn.functional.gelu(self.up(x)))
        return x, x.mean(1), torch.cat([x, x[:, :1]], 1).amax(1)

net = Block()
";

/// Batch and length, with repetitions, ones, and sizes around those of vectors and tiles.
const SHAPES: [[i64; 2]; 20] = [
    [2, 5],
    [2, 9],
    [3, 16],
    [1, 17],
    [4, 1],
    [1, 1],
    [2, 31],
    [2, 64],
    [5, 33],
    [2, 5],
    [3, 100],
    [1, 128],
    [1, 129],
    [7, 3],
    [2, 2],
    [6, 15],
    [2, 47],
    [2, 48],
    [2, 49],
    [3, 16],
];

fn model() -> Model {
    let loaded = Session::new().script(Path::new("net.py"), SOURCE, &[]).unwrap();
    let mut model = loaded.to_model("net").unwrap();
    model.eval();
    model
}

fn engine(model: &Model, static_shapes: usize, threads: usize) -> Engine {
    let options = EngineOptions::default().strict(true).threads(threads);
    let strategy = FusionStrategy { static_shapes };
    model.engine(&options.fusion_strategy(strategy)).unwrap()
}

fn input([batch, length]: [i64; 2]) -> Value {
    let count = batch * length * 32;
    let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 113 - 56) as f32 / 40.0).collect();
    Tensor::from_f32(&values, &[batch, length, 32]).unwrap().into()
}

fn results(engine: &mut Engine, shape: [i64; 2]) -> Vec<Vec<f64>> {
    let Value::Tuple(results) = engine.call("forward", &[input(shape)]).unwrap() else {
        panic!("a tuple")
    };
    let tensors = results.items.iter().map(|v| v.as_tensor().unwrap().to_f64_vec());
    tensors.collect()
}

#[test]
fn shared_code_gives_the_bits_of_a_shapes_own_code() {
    let model = model();
    for threads in [1, 2] {
        let mut own = engine(&model, usize::MAX, threads);
        let expected: Vec<_> = SHAPES.iter().map(|&shape| results(&mut own, shape)).collect();
        for static_shapes in [0, 1, 2] {
            let mut shared = engine(&model, static_shapes, threads);
            for (shape, expected) in SHAPES.iter().zip(&expected) {
                let got = results(&mut shared, *shape);
                assert!(got == *expected, "{shape:?}, {static_shapes} shapes of their own");
            }
        }
    }
}

#[test]
fn shared_code_computes_what_the_interpreter_does() {
    let model = model();
    let mut shared = engine(&model, 1, 1);
    let options = EngineOptions::default().kind(EngineKind::Interpreter);
    let mut interpreter = model.engine(&options).unwrap();
    for shape in SHAPES.into_iter().rev() {
        let (got, expected) = (results(&mut shared, shape), results(&mut interpreter, shape));
        for (got, expected) in got.iter().flatten().zip(expected.iter().flatten()) {
            assert!((got - expected).abs() <= 2e-4, "{shape:?}: {got} instead of {expected}");
        }
    }
}
