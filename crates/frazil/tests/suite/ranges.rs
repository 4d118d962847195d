//! Libraries for ranges of sizes: at every size, they compute what the interpreter does.

use frazil::ir::DType;
use frazil::{
    CompileOptions, Engine, EngineKind, EngineOptions, Error, ErrorClass, FreezeOptions, InputSize, Loaded, Model,
    RangedInput, Session, SizeRange, Tensor, Value,
};
use frazil_recorded::random::Random;
use std::path::Path;
use std::process::Command;

/// A pre-norm encoder layer with a mask, and the mean of the tokens.
const ENCODER: &str = "
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

const MLP: &str = "
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(12, 40)
        self.two = nn.Linear(40, 5)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))
";

/// Convolutions with remainders of channels, depthwise ones, pooling and changes of layout.
const IMAGES: &str = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 20, 3, padding=1)
        self.deep = nn.Conv2d(20, 20, 3, padding=1, groups=20)
        self.next = nn.Conv2d(20, 33, 3, padding=1)
        self.flat = nn.Conv2d(33, 7, 1)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.stem(x)), 2)
        x = torch.relu(self.deep(x)) + x
        return self.flat(torch.relu(self.next(x)))
";

fn frozen(source: &str) -> Model {
    let model = Session::new().script("model.py".as_ref(), source, &[]).unwrap();
    let mut model = model.to_model("forward").unwrap();
    model.eval();
    model.freeze(&FreezeOptions::default()).unwrap()
}

/// Returns inputs of float32 with sizes such as `["B", "16"]`.
fn inputs(shapes: &[&[&str]]) -> Vec<RangedInput> {
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

fn range(name: &str, low: i64, high: i64) -> SizeRange {
    let name = name.to_owned();
    SizeRange { name, low, high }
}

/// Writes the library of `model` to `folder`, and compiles `program` with it. Returns its path.
fn built(model: &Model, shapes: &[&[&str]], ranges: &[SizeRange], folder: &Path, program: &str) -> std::path::PathBuf {
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

/// Appends the case of the inputs `tensors` to `out`, in the format of `ranges.c`.
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

/// Compares the library of `source` with the interpreter at all sizes in `ranges`, in random order.
fn compare(source: &str, shapes: &[&[&str]], ranges: &[SizeRange]) {
    compare_some(source, shapes, ranges, usize::MAX);
}

/// Compares the library of `source` with the interpreter at `most` sizes in `ranges`, in random order.
fn compare_some(source: &str, shapes: &[&[&str]], ranges: &[SizeRange], most: usize) {
    /// Number of sizes in a run of the library's program. All their inputs and results are in memory.
    const SIZES: usize = 64;
    let model = frozen(source);
    let folder = tempfile::tempdir().unwrap();
    let program = built(&model, shapes, ranges, folder.path(), include_str!("ranges.c"));
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

#[test]
fn batches_of_a_perceptron() {
    compare(MLP, &[&["B", "12"]], &[range("B", 0, 70)]);
}

#[test]
fn batches_and_lengths_of_an_encoder() {
    let shapes: [&[&str]; 2] = [&["B", "N", "16"], &["B", "N"]];
    compare(ENCODER, &shapes, &[range("B", 1, 3), range("N", 1, 40)]);
}

/// Batches of 1 to 8 and lengths of 1 to 512.
fn many_batches_and_lengths() -> [SizeRange; 2] {
    [range("B", 1, 8), range("N", 1, 512)]
}

#[test]
#[ignore = "4,096 sizes take minutes"]
fn all_batches_and_lengths_of_a_small_encoder() {
    let source = ENCODER.replace("Layer(16, 2)", "Layer(32, 2)");
    compare(&source, &[&["B", "N", "32"], &["B", "N"]], &many_batches_and_lengths());
}

#[test]
#[ignore = "the interpreter takes minutes"]
fn a_thousand_batches_and_lengths_of_an_encoder() {
    let source = ENCODER.replace("Layer(16, 2)", "Layer(256, 4)");
    compare_some(
        &source,
        &[&["B", "N", "256"], &["B", "N"]],
        &many_batches_and_lengths(),
        1000,
    );
}

/// Sizes in the shape of the result that are no size of an input, and constants that depend on a size.
/// Kernels on images take 0 and 1 as arguments, so one code serves a batch of one image and others.
#[test]
fn batches_and_sides_of_images() {
    compare(IMAGES, &[&["B", "3", "H", "8"]], &[range("B", 1, 3), range("H", 2, 14)]);
}

#[test]
fn results_have_computed_sizes() {
    let source = "
class Both(nn.Module):
    def forward(self, x, y):
        positions = torch.arange(x.shape[0], dtype=torch.float32)
        x = x + positions.unsqueeze(1)
        return torch.cat([x.reshape(-1), y], 0)[::2]
";
    compare(source, &[&["B", "6"], &["N"]], &[range("B", 0, 5), range("N", 0, 9)]);
}

const MISTAKES: &str = r#"
#include "libmodel.h"
#include <stdio.h>
#include <string.h>
static model_instance *model;
static int refused(frazil_status status, frazil_status expected, const char *message) {
  if (status == expected && !strcmp(model_error(model), message)) return 0;
  printf("%d, not %d: %s\n", status, expected, model_error(model));
  return 1;
}
int main(void) {
  static float x[4 * 9 * 16], mask[4 * 9], y[4 * 9 * 16];
  if (MODEL_MIN_B != 1 || MODEL_MAX_B != 3 || MODEL_INDEX_N != 1 || MODEL_MAX_N != 8 || MODEL_SIZE_COUNT != 2) return 1;
  if (model_create(0, &model)) return 2;
  if (model_input_info(0)->shape[1] != -1 || model_input_info(0)->shape[2] != 16) return 3;
  if (model_input_info(0)->bytes != 3 * 8 * 16 * 4 || model_output_info(0)->shape[0] != -1) return 4;
  const int64_t three[] = { 2, 8, 16 }, two[] = { 2, 8 }, long_one[] = { 2, 9, 16 }, long_mask[] = { 2, 9 }, none[] = { 2, 0, 16 }, no_mask[] = { 2, 0 };
  const int64_t other[] = { 3, 8 }, sizes[] = { 2, 8 }, too_many[] = { 4, 8 };
  const frazil_tensor in[] = { { x, FRAZIL_FLOAT32, 3, three }, { mask, FRAZIL_FLOAT32, 2, two } }, out = { y, FRAZIL_FLOAT32, 3, three };
  int failed = refused(model_run_tensors(model, in, 2, &out, 1), FRAZIL_OK, "");
  frazil_tensor bad[] = { in[0], in[1] };
  bad[0].shape = long_one, bad[1].shape = long_mask;
  failed += refused(model_run_tensors(model, bad, 2, &out, 1), FRAZIL_WRONG_SIZE, "the size N is 9: 1 to 8 are supported");
  bad[0].shape = none, bad[1].shape = no_mask;
  failed += refused(model_run_tensors(model, bad, 2, &out, 1), FRAZIL_WRONG_SIZE, "the size N is 0: 1 to 8 are supported");
  bad[0] = in[0], bad[1].shape = other;
  failed += refused(model_run_tensors(model, bad, 2, &out, 1), FRAZIL_WRONG_SIZE, "input 1 (mask) has size 3 in dimension 0: 2 is expected");
  bad[1] = in[1], bad[0].rank = 2;
  failed += refused(model_run_tensors(model, bad, 2, &out, 1), FRAZIL_WRONG_RANK, "input 0 (x) has 2 dimensions: 3 are expected");
  failed += refused(model_run_tensors(model, in, 1, &out, 1), FRAZIL_WRONG_COUNT, "there are 1 inputs: 2 are expected");
  failed += refused(model_run_tensors(model, 0, 2, &out, 1), FRAZIL_NULL_POINTER, "the array of inputs is NULL");
  bad[0] = in[0], bad[1].shape = 0;
  failed += refused(model_run_tensors(model, bad, 2, &out, 1), FRAZIL_NULL_POINTER, "the shape of input 1 (mask) is NULL");
  frazil_tensor bad_out = out;
  bad_out.shape = long_one;
  failed += refused(model_run_tensors(model, in, 2, &bad_out, 1), FRAZIL_WRONG_SIZE, "output 0 (output0) has size 9 in dimension 1: 8 is expected");
  bad_out = out, bad_out.data = x + 2 * 8 * 16 - 1;
  failed += refused(model_run_tensors(model, in, 2, &bad_out, 1), FRAZIL_OVERLAP, "output 0 (output0) overlaps input 0 (x)");
  const void *inputs[] = { x, mask };
  void *outputs[] = { y };
  failed += refused(model_run(model, sizes, inputs, outputs), FRAZIL_OK, "");
  failed += refused(model_run(model, 0, inputs, outputs), FRAZIL_NULL_POINTER, "the array of sizes is NULL");
  failed += refused(model_run(model, too_many, inputs, outputs), FRAZIL_WRONG_SIZE, "the size B is 4: 1 to 3 are supported");
  int64_t shape[3];
  if (model_output_sizes(sizes, 0, shape) || shape[0] != 2 || shape[1] != 8 || shape[2] != 16) return 5;
  if (model_output_sizes(too_many, 0, shape) != FRAZIL_WRONG_SIZE || model_output_sizes(sizes, 1, shape) != FRAZIL_WRONG_COUNT) return 6;
  if (model_output_sizes(0, 0, shape) != FRAZIL_NULL_POINTER || model_output_sizes(sizes, 0, 0) != FRAZIL_NULL_POINTER) return 7;
  model_destroy(model);
  return failed ? 8 : 0;
}
"#;

#[test]
fn each_mistake_has_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let shapes: [&[&str]; 2] = [&["B", "N", "16"], &["B", "N"]];
    let ranges = [range("B", 1, 3), range("N", 1, 8)];
    let program = built(&frozen(ENCODER), &shapes, &ranges, folder.path(), MISTAKES);
    let output = Command::new(program).current_dir(folder.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{:?}: {printed}", output.status);
}

/// Returns the error of planning `source` for ranges.
fn refusal(source: &str, shapes: &[&[&str]], ranges: &[SizeRange]) -> Error {
    let options = CompileOptions::default();
    let planned = Loaded::Model(frozen(source)).plan_ranges("forward", &inputs(shapes), ranges, &options);
    planned.err().expect("it is refused")
}

#[test]
fn refusals_name_the_sizes() {
    let module = |body: &str| format!("class F(nn.Module):\n    def forward(self, x):\n{body}");
    let refused = |body: &str, expected: &str, class: ErrorClass| {
        let error = refusal(&module(body), &[&["N", "2"]], &[range("N", 1, 4)]);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.class(), class);
    };
    refused(
        "        return x if x.shape[0] < 3 else x.sum()\n",
        "output0 is a 2-d tensor of float32 and a 0-d tensor of float32, for N=1 and N=3: only sizes may change",
        ErrorClass::Unsupported,
    );
    refused(
        "        return x if x.shape[0] < 2 else x.to(torch.int64)\n",
        "a 2-d tensor of float32 and a 2-d tensor of int64, for N=1 and N=2",
        ErrorClass::Unsupported,
    );
    refused(
        "        return torch.unbind(x, 0)\n",
        "the number of outputs is 1 and 2, for N=1 and N=2",
        ErrorClass::Unsupported,
    );
    refused(
        "        assert x.shape[0] != 3, 'three'\n        return x\n",
        "for N=3: the program raises an exception on these shapes",
        ErrorClass::Raised,
    );
    refused("        return x.nonzero()\n", "for N=1: ", ErrorClass::Unsupported);
}

#[test]
fn names_and_ranges_belong_together() {
    let error = |shapes: &[&[&str]], ranges: &[SizeRange]| {
        let error = refusal(MLP, shapes, ranges);
        assert_eq!(error.class(), ErrorClass::Input);
        error.to_string()
    };
    let b = || range("B", 1, 2);
    assert!(error(&[&["B", "12"]], &[]).contains("the size B has no range"));
    assert!(error(&[&["B", "12"]], &[b(), range("N", 1, 2)]).contains("no input has the size N"));
    assert!(error(&[&["B", "12"]], &[b(), b()]).contains("B has two ranges"));
    assert!(error(&[&["B", "12"]], &[range("B", 1, 1 << 40)]).contains("at most 65536 are supported"));
}
