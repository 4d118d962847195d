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

const IMAGES: &str = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 7, stride=2, padding=3)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.first = nn.Conv2d(16, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 32, 3, padding=1)
        self.side = nn.Conv2d(16, 32, 1)
        self.depthwise = nn.Conv2d(32, 32, 3, stride=2, padding=1, groups=32)
        self.grouped = nn.Conv2d(32, 48, 3, padding=1, groups=4)
        self.point = nn.Conv2d(80, 20, 1)

    def forward(self, x):
        x = self.pool(torch.relu(self.stem(x)))
        y = torch.relu(self.first(x))
        x = torch.relu(self.second(y) + self.side(x))
        x = self.depthwise(x)
        x = torch.cat([x, torch.tanh(self.grouped(x))], 1)
        x = self.point(x)
        return x, nn.functional.avg_pool2d(x, 2, 1, 1), x.amax((2, 3))

net = Net()
";

const REDUCTIONS: &str = "
class Net(nn.Module):
    def forward(self, x):
        return x.mean((0, 2)), x.amax((0, 2)), x.sum((0, 2), dtype=torch.double), x.softmax(0).mean((0, 1)), (x * x).sum((1, 2))

net = Net()
";

/// Extents of a reduction: fewer than a vector, some vectors, and many vectors, with and without an incomplete one.
const EXTENTS: [i64; 18] = [100, 300, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 64, 65, 128, 200];

/// Batch, height and width of images, with repetitions, small ones, odd ones, and wide ones.
const IMAGE_SHAPES: [[i64; 3]; 16] = [
    [1, 64, 64],
    [2, 96, 64],
    [1, 33, 47],
    [3, 40, 120],
    [1, 64, 64],
    [2, 65, 63],
    [1, 16, 16],
    [1, 9, 31],
    [2, 128, 128],
    [1, 57, 225],
    [4, 32, 32],
    [1, 224, 96],
    [2, 31, 17],
    [1, 8, 8],
    [1, 97, 64],
    [3, 40, 120],
];

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

fn model(source: &str) -> Model {
    let loaded = Session::new().script(Path::new("net.py"), source, &[]).unwrap();
    let mut model = loaded.to_model("net").unwrap();
    model.eval();
    model
}

fn engine(model: &Model, static_shapes: usize, threads: usize) -> Engine {
    let options = EngineOptions::default().strict(true).threads(threads);
    let strategy = FusionStrategy { static_shapes };
    model.engine(&options.fusion_strategy(strategy)).unwrap()
}

fn input(shape: &[i64]) -> Value {
    let count: i64 = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 113 - 56) as f32 / 40.0).collect();
    Tensor::from_f32(&values, shape).unwrap().into()
}

fn results(engine: &mut Engine, shape: &[i64]) -> Vec<Vec<f64>> {
    let Value::Tuple(results) = engine.call("forward", &[input(shape)]).unwrap() else {
        panic!("a tuple")
    };
    let tensors = results.items.iter().map(|v| v.as_tensor().unwrap().to_f64_vec());
    tensors.collect()
}

/// Calls `model` with all `shapes`, with code that each has of its own and with code that they share.
fn shapes_share_code(model: &Model, shapes: &[Vec<i64>]) {
    for threads in [1, 2] {
        let mut own = engine(model, usize::MAX, threads);
        let expected: Vec<_> = shapes.iter().map(|shape| results(&mut own, shape)).collect();
        for static_shapes in [0, 1, 2] {
            let mut shared = engine(model, static_shapes, threads);
            for (shape, expected) in shapes.iter().zip(&expected) {
                let got = results(&mut shared, shape);
                assert!(got == *expected, "{shape:?}, {static_shapes} shapes of their own");
            }
        }
    }
}

/// Calls `model` with all `shapes`, in native code and in the interpreter.
fn shapes_agree_with_the_interpreter(model: &Model, shapes: &[Vec<i64>]) {
    let mut shared = engine(model, 1, 1);
    let options = EngineOptions::default().kind(EngineKind::Interpreter);
    let mut interpreter = model.engine(&options).unwrap();
    for shape in shapes.iter().rev() {
        let (got, expected) = (results(&mut shared, shape), results(&mut interpreter, shape));
        for (got, expected) in got.iter().flatten().zip(expected.iter().flatten()) {
            assert!((got - expected).abs() <= 2e-4, "{shape:?}: {got} instead of {expected}");
        }
    }
}

/// Shapes of inputs of the transformer's block.
fn sequences() -> Vec<Vec<i64>> {
    SHAPES.iter().map(|[batch, length]| vec![*batch, *length, 32]).collect()
}

/// Shapes of inputs of the convolutional net.
fn images() -> Vec<Vec<i64>> {
    let shapes = IMAGE_SHAPES.iter();
    shapes
        .map(|[batch, height, width]| vec![*batch, 3, *height, *width])
        .collect()
}

#[test]
fn shared_code_gives_the_bits_of_a_shapes_own_code() {
    shapes_share_code(&model(SOURCE), &sequences());
}

#[test]
fn shared_code_computes_what_the_interpreter_does() {
    shapes_agree_with_the_interpreter(&model(SOURCE), &sequences());
}

#[test]
fn shared_code_of_convolutions_gives_the_bits_of_a_shapes_own_code() {
    shapes_share_code(&model(IMAGES), &images());
}

#[test]
fn shared_code_of_convolutions_computes_what_the_interpreter_does() {
    shapes_agree_with_the_interpreter(&model(IMAGES), &images());
}

#[test]
fn shared_code_of_reductions_gives_the_bits_of_a_shapes_own_code() {
    let shapes: Vec<_> = EXTENTS.iter().map(|&extent| vec![3, 4, extent]).collect();
    shapes_share_code(&model(REDUCTIONS), &shapes);
}

#[test]
fn new_extents_of_reductions_compile_nothing() {
    let mut shared = engine(&model(REDUCTIONS), 2, 1);
    let mut compiled = Vec::new();
    for extent in EXTENTS {
        results(&mut shared, &[3, 4, extent]);
        compiled.push(shared.kernel_counts().compiled);
    }
    // The first two shapes have code of their own. The others share code, of which there are variants for rows of less than a vector.
    assert!(compiled[2] > compiled[1] && compiled[1] > compiled[0], "{compiled:?}");
    assert!(compiled[6..].iter().all(|n| *n == compiled[6]), "{compiled:?}");
}
