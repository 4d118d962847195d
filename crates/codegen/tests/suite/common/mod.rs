//! Runs one kernel on given buffers, and compares.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail loudly")]

use frazil_codegen::{BackendOptions, package_with};
use frazil_ir::DType;
use frazil_planner::kernel::{KernelCode, KernelSpec};
use frazil_planner::plan::{Buffer, Plan, Port};
use frazil_planner::target::Target;

/// The processor that is tested: that of this machine, or one that valgrind knows.
pub fn options() -> BackendOptions {
    match is_under_valgrind() {
        true => BackendOptions {
            target: Target::new("x86-64-v3", ""),
            ..BackendOptions::default()
        },
        false => BackendOptions::default(),
    }
}

/// Whether programs that use compiled libraries run under valgrind.
pub fn is_under_valgrind() -> bool {
    std::env::var_os("FRAZIL_VALGRIND").is_some()
}

/// Numbers between -1 and 1 that look random.
pub fn random(n: i64, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// Runs `spec` on `inputs` and gives its last buffer, which starts as `output`.
pub fn run(spec: &KernelSpec, inputs: &[Vec<f32>], output: Vec<f32>, threads: usize) -> Vec<f32> {
    run_on(spec, inputs, output, BackendOptions { threads, ..options() })
}

pub fn run_on(spec: &KernelSpec, inputs: &[Vec<f32>], output: Vec<f32>, options: BackendOptions) -> Vec<f32> {
    run_with(&KernelCode::constant(spec.clone()), spec, inputs, output, options)
}

/// As [`run_on`], with `code` as the kernel's code.
pub fn run_with(
    code: &KernelCode,
    spec: &KernelSpec,
    inputs: &[Vec<f32>],
    mut output: Vec<f32>,
    options: BackendOptions,
) -> Vec<f32> {
    let port = |name: String, n: usize| Port {
        name,
        dtype: DType::Float,
        shape: [n as i64].into_iter().collect(),
    };
    let mut plan = Plan {
        name: "test".into(),
        ..Plan::default()
    };
    plan.inputs = inputs
        .iter()
        .enumerate()
        .map(|(i, x)| port(format!("in{i}"), x.len()))
        .collect();
    plan.outputs = vec![port("out".into(), output.len())];
    plan.workspace_bytes = spec.scratch_bytes();
    let mut buffers: Vec<Buffer> = (0..inputs.len())
        .map(|i| Buffer::Input {
            index: i as u32,
            offset: 0,
        })
        .collect();
    buffers.push(Buffer::Output { index: 0, offset: 0 });
    if spec.scratch_bytes() > 0 {
        buffers.push(Buffer::Workspace { offset: 0 });
    }
    plan.call(spec.clone(), buffers);
    let package = package_with(&plan, std::slice::from_ref(code), &options).unwrap_or_else(|e| panic!("{e}"));
    let mut executable = package.load(&options.run_options()).unwrap_or_else(|e| panic!("{e}"));
    let bytes: Vec<&[u8]> = inputs.iter().map(|x| bytemuck::cast_slice(x)).collect();
    executable
        .run(&bytes, &mut [bytemuck::cast_slice_mut(&mut output)])
        .unwrap();
    output
}

/// Panics where `got` is further from `want` than `tolerance` of the magnitude of `want`, or of 1.
pub fn assert_close(got: &[f32], want: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let close = (g - w).abs() <= tolerance * w.abs().max(1.0) || g == w || (g.is_nan() && w.is_nan());
        assert!(close, "{what}: element {i} is {g}, should be {w}");
    }
}

/// Converts NCHW to blocked layout. Padding lanes are NaN, so that a kernel that reads them has wrong results.
pub fn to_blocked(x: &[f32], n: i64, c: i64, pixels: i64, block: i64) -> Vec<f32> {
    let blocks = (c + block - 1) / block;
    let mut out = vec![f32::NAN; (n * blocks * pixels * block) as usize];
    for i in 0..n {
        for ch in 0..c {
            for p in 0..pixels {
                out[(((i * blocks + ch / block) * pixels + p) * block + ch % block) as usize] =
                    x[((i * c + ch) * pixels + p) as usize];
            }
        }
    }
    out
}

/// Blocked layout to NCHW.
pub fn to_plain(x: &[f32], n: i64, c: i64, pixels: i64, block: i64) -> Vec<f32> {
    let blocks = (c + block - 1) / block;
    let mut out = vec![0.0; (n * c * pixels) as usize];
    for i in 0..n {
        for ch in 0..c {
            for p in 0..pixels {
                out[((i * c + ch) * pixels + p) as usize] =
                    x[(((i * blocks + ch / block) * pixels + p) * block + ch % block) as usize];
            }
        }
    }
    out
}
