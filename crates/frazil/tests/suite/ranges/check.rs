//! Compares libraries for ranges of sizes with the interpreter.

use frazil::ir::DType;
use frazil::{
    CompileOptions, Engine, EngineKind, EngineOptions, FreezeOptions, InputSize, Loaded, Model, RangedInput, Session,
    SizeRange, Tensor, Value,
};
use frazil_recorded::random::Random;
use std::path::Path;
use std::process::Command;

/// A pre-norm encoder layer with a mask, and the mean of the tokens.
pub const ENCODER: &str = "
class Layer(nn.Module):
    def __init__(self, d: int, heads: int):
        super().__init__()
        self.n1 = nn.LayerNorm(d)
        self.n2 = nn.LayerNorm(d)
        self.q = nn.Linear(d, 3 * d)
        self.o = nn.Linear(d, d)
        self.u = nn.Linear(d, 4 * d)
        self.w = nn.Linear(4 * d, d)
        self.heads = heads

    def forward(self, x, mask):
        b, n, c = x.shape
        h = self.heads
        q, k, v = self.q(self.n1(x)).view(b, n, 3, h, c // h).permute(2, 0, 3, 1, 4).unbind(0)
        a = torch.softmax(q @ k.transpose(-2, -1) * 0.5 + mask.view(b, 1, 1, n), -1)
        x = x + self.o((a @ v).transpose(1, 2).reshape(b, n, c))
        return x + self.w(torch.nn.functional.gelu(self.u(self.n2(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = Layer(16, 2)
        self.two = Layer(16, 2)

    def forward(self, x, mask):
        return self.two(self.one(x, mask), mask)
";

pub fn frozen(source: &str) -> Model {
    let model = Session::new().script("model.py".as_ref(), source, &[]).unwrap();
    let mut model = model.to_model("forward").unwrap();
    model.eval();
    model.freeze(&FreezeOptions::default()).unwrap()
}

/// Returns inputs of float32 with sizes such as `["B", "16"]`.
pub fn inputs(shapes: &[&[&str]]) -> Vec<RangedInput> {
    let size = |text: &&str| {
        text.parse()
            .map_or_else(|_| InputSize::Named((*text).into()), InputSize::Fixed)
    };
    let input = |sizes: &&[&str]| RangedInput {
        dtype: DType::Float,
        sizes: sizes.iter().map(size).collect(),
    };
    shapes.iter().map(input).collect()
}

pub fn range(name: &str, low: i64, high: i64) -> SizeRange {
    let name = name.to_owned();
    SizeRange { name, low, high }
}

/// Writes the library of `model` to `folder`, and compiles `program` with it. Returns its path.
pub fn built(
    model: &Model,
    shapes: &[&[&str]],
    ranges: &[SizeRange],
    folder: &Path,
    program: &str,
) -> std::path::PathBuf {
    let options = CompileOptions::default();
    let loaded = Loaded::Model(model.clone());
    let library = loaded.plan_ranges("forward", &inputs(shapes), ranges, &options.name("model".to_owned()));
    let library = library.unwrap_or_else(|e| panic!("{e}"));
    library
        .write(&folder.join("libmodel.so"))
        .unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(folder.join("main.c"), program).unwrap();
    let output = Command::new("cc")
        .current_dir(folder)
        .args(["-Wall", "-Werror", "-o", "main", "main.c", "./libmodel.so"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.join("main")
}

/// Appends the case of the inputs `tensors` to `out`, in the format of `check.c`.
fn write_case(out: &mut Vec<u8>, sizes: &[i64], tensors: &[Tensor]) {
    sizes.iter().for_each(|size| out.extend(size.to_le_bytes()));
    for tensor in tensors {
        let bytes = tensor.to_bytes().unwrap();
        let header = [tensor.sizes().len() as i64]
            .into_iter()
            .chain(tensor.sizes().iter().copied());
        header
            .chain([bytes.len() as i64])
            .for_each(|n| out.extend(n.to_le_bytes()));
        out.extend(bytes);
    }
}

/// Takes the next output from `results`.
fn read_result(results: &mut &[u8]) -> (Vec<i64>, Vec<f32>) {
    let mut number = || {
        let (number, rest) = results.split_first_chunk::<8>().unwrap();
        *results = rest;
        i64::from_le_bytes(*number)
    };
    let rank = number();
    let shape: Vec<i64> = (0..rank).map(|_| number()).collect();
    let count = shape.iter().product::<i64>() as usize;
    let (bytes, rest) = results.split_at(count * 4);
    *results = rest;
    let elements = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
    (shape, elements.collect())
}

/// Compares the library of `source` with the interpreter at `most` sizes in `ranges`, in random order.
pub fn compare_some(source: &str, shapes: &[&[&str]], ranges: &[SizeRange], most: usize) {
    /// Number of sizes in a run of the library's program. All their inputs and results are in memory.
    const SIZES: usize = 64;
    let model = frozen(source);
    let folder = tempfile::tempdir().unwrap();
    let program = built(&model, shapes, ranges, folder.path(), include_str!("check.c"));
    let mut engine = model
        .engine(&EngineOptions::default().kind(EngineKind::Interpreter))
        .unwrap();
    let mut random = Random::new(1);
    let mut all: Vec<Vec<i64>> = vec![Vec::new()];
    for range in ranges {
        let with = |sizes: &Vec<i64>, size| sizes.iter().copied().chain([size]).collect();
        let more = all
            .iter()
            .flat_map(|sizes| (range.low..=range.high).map(move |size| with(sizes, size)));
        all = more.collect();
    }
    for i in (1..all.len()).rev() {
        all.swap(i, random.below(i as u64 + 1) as usize);
    }
    all.truncate(most);
    for some in all.chunks(SIZES) {
        let (mut cases, mut expected) = (Vec::new(), Vec::new());
        for sizes in some {
            let tensors: Vec<Tensor> = shapes
                .iter()
                .map(|shape| random.tensor(DType::Float, &of(shape, ranges, sizes), false))
                .collect();
            write_case(&mut cases, sizes, &tensors);
            expected.push(call(&mut engine, &tensors));
        }
        let results = run(&program, folder.path(), &cases);
        compare_results(&results, some, &expected);
    }
}

/// Runs `program` on `cases`. Returns the results that it has written.
fn run(program: &Path, folder: &Path, cases: &[u8]) -> Vec<u8> {
    let file = |name: &str| folder.join(name);
    std::fs::write(file("cases"), cases).unwrap();
    let output = Command::new(program)
        .current_dir(folder)
        .args([file("cases"), file("results")])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{:?}: {}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    std::fs::read(file("results")).unwrap()
}

/// Compares the outputs in `results` with the expected shapes and elements at the sizes `all`.
fn compare_results(mut results: &[u8], all: &[Vec<i64>], expected: &[(Vec<i64>, Vec<f32>)]) {
    for (sizes, (shape, elements)) in all.iter().zip(expected) {
        let found = read_result(&mut results);
        assert_eq!(found.0, *shape, "{sizes:?}");
        let largest = elements.iter().fold(1.0f32, |most, x| most.max(x.abs()));
        for (i, (one, other)) in found.1.iter().zip(elements).enumerate() {
            assert!(
                (one - other).abs() <= 1e-5 * largest,
                "{sizes:?}: {one}, not {other}, in element {i}"
            );
        }
    }
    assert!(results.is_empty());
}

/// Returns the sizes of an input for the sizes of the ranges.
fn of(shape: &[&str], ranges: &[SizeRange], sizes: &[i64]) -> Vec<i64> {
    let size = |text: &&str| match ranges.iter().position(|range| range.name == **text) {
        Some(i) => sizes[i],
        None => text.parse().unwrap(),
    };
    shape.iter().map(size).collect()
}

/// Returns the sizes and the elements of the result.
fn call(engine: &mut Engine, tensors: &[Tensor]) -> (Vec<i64>, Vec<f32>) {
    let arguments: Vec<Value> = tensors.iter().cloned().map(Value::from).collect();
    let result = engine.call("forward", &arguments).unwrap();
    let result = result.as_tensor().unwrap();
    let elements = result.to_f64_vec().into_iter().map(|x| x as f32);
    (result.sizes().to_vec(), elements.collect())
}
