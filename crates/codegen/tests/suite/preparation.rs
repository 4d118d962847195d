//! Weights that are transformed when code is loaded: in this process, from a file, and in a library.

use crate::common;

use common::{assert_close, options, random, run, to_blocked};
use frazil_codegen::{BackendOptions, aot, package};
use frazil_executor::Package;
use frazil_ir::DType;
use frazil_planner::kernel::{Conv, ConvShape, Epilogue, KernelSpec, Winograd};
use frazil_planner::plan::{Buffer, Plan, Port};
use std::process::Command;

pub(crate) const SIZE: i64 = 9;

fn convolution(channels: i64, winograd: bool) -> Conv {
    let shape = ConvShape {
        batch: 1,
        in_channels: channels,
        out_channels: channels,
        groups: 1,
        input: [SIZE; 2],
        output: [SIZE; 2],
        kernel: [3; 2],
        stride: [1; 2],
        padding: [1; 2],
        dilation: [1; 2],
    };
    let mut conv = Conv::new(shape, false, Epilogue::none(), options().target.machine);
    conv.winograd = winograd.then_some(Winograd {
        outputs: 2,
        columns: 6,
        vectors: 1,
    });
    conv
}

/// Two convolutions with weights of their own, one after the other.
pub(crate) fn plan(channels: i64, weights: &[Vec<f32>; 2], winograd: bool) -> Plan {
    let conv = convolution(channels, winograd);
    let elements = conv.output_shape().elements();
    let port = |name: &str| Port {
        name: name.into(),
        dtype: DType::Float,
        shape: [elements].into_iter().collect(),
    };
    let mut plan = Plan {
        name: "convolutions".into(),
        inputs: vec![port("x")],
        outputs: vec![port("y")],
        workspace_bytes: elements as usize * 4,
        ..Plan::default()
    };
    let places = [
        Buffer::Input { index: 0, offset: 0 },
        Buffer::Workspace { offset: 0 },
        Buffer::Output { index: 0, offset: 0 },
    ];
    for (w, place) in weights.iter().zip(places.windows(2)) {
        let w = plan.weights(&conv.pack_weights(w), conv.transformation());
        plan.call(KernelSpec::from(conv.clone()), [place[0], w, place[1]]);
    }
    plan
}

#[test]
fn instances_and_files_share_what_is_prepared() {
    let lanes = options().target.vector().lanes;
    let channels = 2 * lanes;
    let weights = [1, 2].map(|seed| random(channels * channels * 9, seed));
    let x = to_blocked(&random(channels * SIZE * SIZE, 3), 1, channels, SIZE * SIZE, lanes);
    let direct = convolution(channels, false);
    let layer = |x: Vec<f32>, w: &[f32]| {
        let zeros = vec![0.0; x.len()];
        run(
            &KernelSpec::from(direct.clone()),
            &[x, direct.pack_weights(w)],
            zeros,
            1,
        )
    };
    let want = layer(layer(x.clone(), &weights[0]), &weights[1]);

    let plan = plan(channels, &weights, true);
    let (stored, prepared) = (plan.preparation.sources.bytes().len(), plan.preparation.bytes);
    assert_eq!(stored as i64, 2 * channels * channels * 9 * 4);
    assert_eq!(prepared * 9, stored * 16);
    let check = |code: &mut frazil_executor::Executable, what: &str| {
        let mut y = vec![0f32; x.len()];
        code.run(&[bytemuck::cast_slice(&x)], &mut [bytemuck::cast_slice_mut(&mut y)])
            .unwrap();
        assert_close(&y, &want, 1e-4, what);
    };
    let directory = tempfile::tempdir().unwrap();
    const FILE: &str = "0123456789abcdef.method";
    let folder = frazil_syntax::CacheFolder::new(directory.path(), u64::MAX);
    let path = directory.path().join(FILE);
    for threads in [1, 2] {
        let options = BackendOptions { threads, ..options() };
        let package = package(&plan, &options).unwrap();
        let write = |package: &Package| {
            let written = folder.write(FILE, |file, secret| {
                package.write(secret, "key", serde_json::Value::Null, file)
            });
            written.unwrap()
        };
        assert!(!write(&package));
        let mut code = package.clone().load(&options.run_options()).unwrap();
        check(&mut code, "in memory");
        let package = package.prepared(&options.run_options()).unwrap();
        assert!(write(&package));
        check(&mut package.load(&options.run_options()).unwrap(), "prepared");
        let mut other = code.instance().unwrap();
        drop(code);
        check(&mut other, "another instance");
        for time in ["once", "twice"] {
            let (package, _) = Package::read(&folder, FILE, "key").unwrap();
            check(&mut package.load(&options.run_options()).unwrap(), time);
        }
        // It holds what is prepared, and not what that is computed from.
        let whole = std::fs::read(&path).unwrap();
        assert!(whole.len() > prepared && whole.len() < prepared + stored);
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(Package::read(&folder, FILE, "key").is_none());
    }
}

/// All weights are 1: a result counts the inputs in its window.
const PROGRAM: &str = r#"
#include "convolutions.h"
static float x[SIZE * SIZE * CHANNELS], y[SIZE * SIZE * CHANNELS];
static int run(convolutions_instance *model) {
  const void *inputs[] = { x };
  void *outputs[] = { y };
  for (int i = 0; i < SIZE * SIZE * CHANNELS; i++) x[i] = 1, y[i] = 0;
  if (convolutions_run(model, inputs, outputs)) return 1;
  const int middle = (SIZE / 2 * SIZE + SIZE / 2) * CHANNELS;
  return y[middle] != 9.0f * CHANNELS * 9 * CHANNELS || y[0] != 1.0f * CHANNELS * CHANNELS * (4 + 6 + 6 + 9);
}
int main(void) {
  frazil_options options = { sizeof options };
  options.threads = 2;
  for (int round = 0; round < 2; round++) {
    convolutions_instance *first, *second;
    if (convolutions_create(0, &first) || run(first)) return 2;
    if (convolutions_create(&options, &second) || run(second)) return 3;
    convolutions_destroy(first);
    if (run(second)) return 4;
    convolutions_destroy(second);
  }
  return 0;
}
"#;

#[test]
fn libraries_prepare_for_the_first_instance() {
    let channels = options().target.vector().lanes;
    let ones = vec![1.0; (channels * channels * 9) as usize];
    // The first result of the second convolution sums the corner's, two edges' and an inner one of the first.
    let plan = plan(channels, &[ones.clone(), ones], true);
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("convolutions.so");
    aot::write_library(&plan, &options(), &library).unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(directory.path().join("main.c"), PROGRAM).unwrap();
    let status = Command::new("cc")
        .current_dir(directory.path())
        .args(["-Wall", "-Werror", "-o", "main", "main.c", "./convolutions.so"])
        .args([format!("-DSIZE={SIZE}"), format!("-DCHANNELS={channels}")])
        .status()
        .unwrap();
    assert!(status.success());
    let output = Command::new("./main").current_dir(directory.path()).output().unwrap();
    assert!(output.status.success(), "exit status {:?}", output.status);
}
