//! Libraries for ranges of sizes: at every size, they compute what the interpreter does.

mod check;

use check::{ENCODER, built, compare_some, frozen, inputs, range};
use frazil::{CompileOptions, Error, ErrorClass, Loaded, SizeRange};
use std::process::Command;

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

/// Compares the library of `source` with the interpreter at all sizes in `ranges`, in random order.
fn compare(source: &str, shapes: &[&[&str]], ranges: &[SizeRange]) {
    compare_some(source, shapes, ranges, usize::MAX);
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
