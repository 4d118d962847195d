//! Compiled libraries, used from C.

use frazil_codegen::BackendOptions;
use frazil_codegen::aot;
use frazil_codegen::backend::host_target;
use frazil_codegen::compile::Stage;
use frazil_ir::DType;
use frazil_planner::kernel::{Epilogue, Gemm, KernelSpec};
use frazil_planner::plan::{Buffer, Plan, Port};
use std::process::Command;

/// y = relu-free two-layer perceptron: 5 × 40 -> 512 -> 7, all weights 0.5, all biases 1. The first product has more than one task on every target.
fn plan() -> Plan {
    let machine = host_target().machine;
    let port = |name: &str, shape: &[i64]| Port {
        name: name.into(),
        dtype: DType::Float,
        shape: shape.iter().copied().collect(),
    };
    let mut plan = Plan {
        name: "two_layers".into(),
        ..Plan::default()
    };
    plan.inputs = vec![port("x", &[5, 40])];
    plan.outputs = vec![port("logits \"y\"", &[5, 7])];
    plan.workspace_bytes = 5 * 512 * 4;
    let (input, output) = (
        Buffer::Input { index: 0, offset: 0 },
        Buffer::Output { index: 0, offset: 0 },
    );
    let hidden = Buffer::Workspace { offset: 0 };
    for (from, to, n, k) in [(input, hidden, 512, 40), (hidden, output, 7, 512)] {
        let gemm = Gemm::linear(5, n, k, Epilogue::bias(), machine);
        let weights = plan.constant(&gemm.pack_b(&vec![0.5; (n * k) as usize], 1, k));
        let bias = plan.constant(&vec![1.0f32; n as usize]);
        plan.call(KernelSpec::from(gemm), [from, weights, bias, to]);
    }
    plan
}

const PROGRAM: &str = r#"
#include "two_layers.h"
#include <stdio.h>
#include <string.h>
static two_layers_instance *model;
static void serial(void *user, int64_t tasks, frazil_task task, void *argument) {
  /* A second run while this one is under way is refused, and disturbs nothing. */
  float in[5 * 40] = { 0 }, out[5 * 7];
  const void *inputs[] = { in };
  void *outputs[] = { out };
  if (two_layers_run(model, inputs, outputs) == FRAZIL_BUSY) ++*(int *)user;
  for (int64_t i = 0; i < tasks; i++) task(argument, i, i + 1);
}
static _Alignas(64) char workspace[1 << 16];
int main(void) {
  float x[5 * 40], y[5 * 7];
  for (int i = 0; i < 5 * 40; i++) x[i] = 1;
  const frazil_tensor_info *in = two_layers_input_info(0), *out = two_layers_output_info(0);
  if (two_layers_input_count() != 1 || two_layers_input_info(1) || in->bytes != sizeof x || in->shape[1] != 40) return 2;
  if (strcmp(out->name, "logits \"y\"") || out->dtype != FRAZIL_FLOAT32 || out->rank != 2) return 3;
  for (int kind = 0; kind < 4; kind++) {
    int calls = 0;
    frazil_options options = { sizeof options };
    if (kind == 1) options.threads = 2;
    if (kind == 2) options.parallel_for = serial, options.user = &calls;
    if (kind == 3) options.workspace = workspace;
    if (two_layers_create(kind ? &options : 0, &model)) return 4;
    memset(y, 0, sizeof y);
    const void *inputs[] = { x };
    void *outputs[] = { y };
    if (two_layers_run(model, inputs, outputs)) return 5;
    for (int i = 0; i < 5 * 7; i++) if (y[i] != (40 * 0.5f + 1) * 512 * 0.5f + 1) return 6;
    if ((kind == 2) != (calls > 0)) return 8;
    if (two_layers_run(model, inputs, outputs)) return 9;
    outputs[0] = 0;
    if (two_layers_run(model, inputs, outputs) != FRAZIL_NULL_POINTER) return 7;
    if (strcmp(two_layers_error(model), "output 0 (logits \"y\") is NULL")) return 10;
    two_layers_destroy(model);
  }
  puts(two_layers_status_message(FRAZIL_OUT_OF_MEMORY));
  return 0;
}
"#;

#[test]
fn a_c_program_runs_the_library() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("two_layers.so");
    let header = aot::write_library(&plan(), &BackendOptions::default(), &library).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(header, directory.path().join("two_layers.h"));
    std::fs::write(directory.path().join("main.c"), PROGRAM).unwrap();
    let status = Command::new("cc")
        .current_dir(directory.path())
        .args(["-Wall", "-Werror", "-o", "main", "main.c", "./two_layers.so"])
        .status()
        .unwrap();
    assert!(status.success());
    let output = Command::new("./main").current_dir(directory.path()).output().unwrap();
    assert!(output.status.success(), "exit status {:?}", output.status);
    assert!(String::from_utf8_lossy(&output.stdout).contains("memory"));
    // The interface and nothing else is visible, and only the C library is needed.
    let symbols = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(&library)
        .output()
        .unwrap();
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    assert!(symbols.lines().all(|l| l.contains(" two_layers_")), "{symbols}");
    let needed = Command::new("readelf").args(["-d"]).arg(&library).output().unwrap();
    let needed = String::from_utf8_lossy(&needed.stdout).into_owned();
    for line in needed.lines().filter(|l| l.contains("NEEDED")) {
        assert!(line.contains("[libc.so") || line.contains("[libm.so"), "{line}");
    }
}

/// Each mistake of the caller has a status and a message of its own.
const MISTAKES: &str = r#"
#include "two_layers.h"
#include <stdio.h>
#include <string.h>
static two_layers_instance *model;
static int refused(frazil_status status, frazil_status expected, const char *message) {
  if (status == expected && !strcmp(two_layers_error(model), message)) return 0;
  printf("%d, not %d: %s\n", status, expected, two_layers_error(model));
  return 1;
}
int main(void) {
  frazil_options options = { sizeof options, 0, FRAZIL_ABI_VERSION + 1 };
  if (two_layers_create(&options, &model) != FRAZIL_WRONG_VERSION || model) return 1;
  options.version = FRAZIL_ABI_VERSION, options.size--;
  if (two_layers_create(&options, &model) != FRAZIL_WRONG_VERSION) return 2;
  options.size++, options.threads = -1;
  if (two_layers_create(&options, &model) != FRAZIL_INVALID_ARGUMENT) return 3;
  options.threads = 1, options.workspace = (char *)0 + 8;
  if (two_layers_create(&options, &model) != FRAZIL_UNALIGNED) return 4;
  if (two_layers_create(0, 0) != FRAZIL_NULL_POINTER || two_layers_run(0, 0, 0) != FRAZIL_NULL_POINTER) return 5;
  options.workspace = 0;
  if (two_layers_create(&options, &model) || two_layers_abi_version() != FRAZIL_ABI_VERSION || two_layers_header() != TWO_LAYERS_HEADER) return 6;
  if (two_layers_input_index("x") || two_layers_output_index("x") != -1 || two_layers_input_index(0) != -1) return 7;

  /* At an odd address: any will do. */
  static char memory[5 * 40 * 4 + 1];
  float y[5 * 7], ones[5 * 40];
  for (int i = 0; i < 5 * 40; i++) ones[i] = 1;
  memcpy(memory + 1, ones, sizeof ones);
  const int64_t shape[] = { 5, 40 }, other[] = { 5, 41 }, out_shape[] = { 5, 7 };
  const frazil_tensor in = { memory + 1, FRAZIL_FLOAT32, 2, shape }, out = { y, FRAZIL_FLOAT32, 2, out_shape };
  if (two_layers_run_tensors(model, &in, 1, &out, 1) || *two_layers_error(model)) return 8;
  for (int i = 0; i < 5 * 7; i++) if (y[i] != (40 * 0.5f + 1) * 512 * 0.5f + 1) return 9;

  frazil_tensor bad = in;
  int failed = refused(two_layers_run(model, 0, 0), FRAZIL_NULL_POINTER, "the array of inputs is NULL");
  failed += refused(two_layers_run_tensors(model, 0, 1, &out, 1), FRAZIL_NULL_POINTER, "the array of inputs is NULL");
  failed += refused(two_layers_run_tensors(model, &in, 2, &out, 1), FRAZIL_WRONG_COUNT, "there are 2 inputs: 1 are expected");
  failed += refused(two_layers_run_tensors(model, &in, 1, &out, 0), FRAZIL_WRONG_COUNT, "there are 0 outputs: 1 are expected");
  bad.dtype = FRAZIL_INT32;
  failed += refused(two_layers_run_tensors(model, &bad, 1, &out, 1), FRAZIL_WRONG_DTYPE, "input 0 (x) has elements of int32: float32 is expected");
  bad = in, bad.rank = 3;
  failed += refused(two_layers_run_tensors(model, &bad, 1, &out, 1), FRAZIL_WRONG_RANK, "input 0 (x) has 3 dimensions: 2 are expected");
  bad = in, bad.shape = other;
  failed += refused(two_layers_run_tensors(model, &bad, 1, &out, 1), FRAZIL_WRONG_SIZE, "input 0 (x) has size 41 in dimension 1: 40 is expected");
  bad = in, bad.shape = 0;
  failed += refused(two_layers_run_tensors(model, &bad, 1, &out, 1), FRAZIL_NULL_POINTER, "the shape of input 0 (x) is NULL");
  bad = in, bad.data = 0;
  failed += refused(two_layers_run_tensors(model, &bad, 1, &out, 1), FRAZIL_NULL_POINTER, "the data of input 0 (x) is NULL");
  bad = out, bad.data = memory + 5;
  failed += refused(two_layers_run_tensors(model, &in, 1, &bad, 1), FRAZIL_OVERLAP, "output 0 (logits \"y\") overlaps input 0 (x)");
  two_layers_destroy(model);

  /* No two statuses have one message. */
  for (int i = 0; i <= FRAZIL_OVERLAP + 1; i++)
    for (int j = 0; j < i; j++)
      if (!strcmp(two_layers_status_message(i), two_layers_status_message(j))) return 10;
  return failed ? 11 : 0;
}
"#;

#[test]
fn each_mistake_has_a_message() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("two_layers.so");
    aot::write_library(&plan(), &BackendOptions::default(), &library).unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(directory.path().join("main.c"), MISTAKES).unwrap();
    let status = Command::new("cc")
        .current_dir(directory.path())
        .args(["-Wall", "-Werror", "-o", "main", "main.c", "./two_layers.so"])
        .status()
        .unwrap();
    assert!(status.success());
    let output = Command::new("./main").current_dir(directory.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "exit status {:?}: {printed}", output.status);
}

/// A device takes the library, and no header is put beside it.
#[test]
fn a_device_gets_no_header() {
    let device = std::path::Path::new("/dev/null");
    aot::write_library(&plan(), &BackendOptions::default(), device).unwrap_or_else(|e| panic!("{e}"));
    assert!(!device.with_extension("h").exists());
}

/// Two models in one program, each a static library of its own: only their interfaces may be seen, or their insides would clash.
#[test]
fn static_libraries_share_a_program() {
    let directory = tempfile::tempdir().unwrap();
    let mut second = plan();
    second.name = "second".into();
    for plan in [plan(), second] {
        let library = directory.path().join(format!("lib{}.a", plan.name));
        aot::write_library(&plan, &BackendOptions::default(), &library).unwrap_or_else(|e| panic!("{e}"));
    }
    let both = format!(
        "#include \"libsecond.h\"\n{}",
        PROGRAM
            .replace("\"two_layers.h\"", "\"libtwo_layers.h\"")
            .replace("return 0;", "second_instance *other; return second_create(0, &other);")
    );
    std::fs::write(directory.path().join("main.c"), both).unwrap();
    let output = Command::new("cc")
        .current_dir(directory.path())
        .args([
            "-Wall",
            "-Werror",
            "-o",
            "main",
            "main.c",
            "-L.",
            "-ltwo_layers",
            "-lsecond",
            "-lm",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new("./main").current_dir(directory.path()).output().unwrap();
    assert!(output.status.success(), "exit status {:?}", output.status);
}

#[test]
fn every_stage_has_text() {
    let (plan, options) = (plan(), BackendOptions::default());
    assert!(aot::kernels_text(&plan).contains("gemm"));
    assert!(
        aot::stage_text(&plan, &options, Stage::Mlir)
            .unwrap()
            .contains("scf.for")
    );
    assert!(
        aot::stage_text(&plan, &options, Stage::Llvm)
            .unwrap()
            .contains("define void @two_layers_kernel_0")
    );
    assert!(
        aot::stage_text(&plan, &options, Stage::Assembly)
            .unwrap()
            .contains("two_layers_kernel_1:")
    );
    let object = aot::object(&plan, &options).unwrap();
    assert_eq!(&object[..4], b"\x7fELF");
}

#[test]
fn names_are_checked() {
    let mut plan = plan();
    plan.name = "2 layers".into();
    let library = std::env::temp_dir().join("never-written.so");
    assert!(matches!(
        aot::write_library(&plan, &BackendOptions::default(), &library),
        Err(aot::EmitFileError::Name(_))
    ));
    assert!(!library.exists());
}
