//! Times the layers of well-known vision models kernel by kernel, and prints a line each:
//! name, microseconds (best of many), GFLOP/s, compile milliseconds. `layers.py` beside this file does the same with PyTorch.
//!
//! Arguments: a substring of the layers to run, and `--threads=N`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "this is a program that prints figures"
)]

use frazil_codegen::{BackendOptions, compile};
use frazil_ir::DType;
use frazil_planner::kernel::{Conv, ConvShape, Depthwise, Epilogue, Gemm, KernelSpec};
use frazil_planner::plan::{Buffer, Plan, Port};
use std::ffi::c_void;
use std::time::Instant;

/// name, channels in and out, groups, height, kernel, stride, padding, plain input
type Layer = (&'static str, i64, i64, i64, i64, i64, i64, i64, bool);

const LAYERS: &[Layer] = &[
    ("resnet stem 3-64 7x7 s2 224", 3, 64, 1, 224, 7, 2, 3, true),
    ("resnet 64-64 3x3 56", 64, 64, 1, 56, 3, 1, 1, false),
    ("resnet 64-128 3x3 s2 56", 64, 128, 1, 56, 3, 2, 1, false),
    ("resnet 128-128 3x3 28", 128, 128, 1, 28, 3, 1, 1, false),
    ("resnet 128-256 3x3 s2 28", 128, 256, 1, 28, 3, 2, 1, false),
    ("resnet 256-256 3x3 14", 256, 256, 1, 14, 3, 1, 1, false),
    ("resnet 256-512 3x3 s2 14", 256, 512, 1, 14, 3, 2, 1, false),
    ("resnet 512-512 3x3 7", 512, 512, 1, 7, 3, 1, 1, false),
    ("resnet 64-128 1x1 s2 56", 64, 128, 1, 56, 1, 2, 0, false),
    ("resnet 128-256 1x1 s2 28", 128, 256, 1, 28, 1, 2, 0, false),
    ("resnet 256-512 1x1 s2 14", 256, 512, 1, 14, 1, 2, 0, false),
    ("resnet50 256-64 1x1 56", 256, 64, 1, 56, 1, 1, 0, false),
    ("resnet50 64-256 1x1 56", 64, 256, 1, 56, 1, 1, 0, false),
    ("resnet50 1024-256 1x1 14", 1024, 256, 1, 14, 1, 1, 0, false),
    ("resnet50 512-2048 1x1 7", 512, 2048, 1, 7, 1, 1, 0, false),
    ("mobilenet stem 3-32 3x3 s2 224", 3, 32, 1, 224, 3, 2, 1, true),
    ("mobilenet dw 32 3x3 112", 32, 32, 32, 112, 3, 1, 1, false),
    ("mobilenet 32-16 1x1 112", 32, 16, 1, 112, 1, 1, 0, false),
    ("mobilenet 16-96 1x1 112", 16, 96, 1, 112, 1, 1, 0, false),
    ("mobilenet dw 96 3x3 s2 112", 96, 96, 96, 112, 3, 2, 1, false),
    ("mobilenet 96-24 1x1 56", 96, 24, 1, 56, 1, 1, 0, false),
    ("mobilenet 24-144 1x1 56", 24, 144, 1, 56, 1, 1, 0, false),
    ("mobilenet dw 144 3x3 56", 144, 144, 144, 56, 3, 1, 1, false),
    ("mobilenet 144-24 1x1 56", 144, 24, 1, 56, 1, 1, 0, false),
    ("mobilenet dw 144 3x3 s2 56", 144, 144, 144, 56, 3, 2, 1, false),
    ("mobilenet 144-32 1x1 28", 144, 32, 1, 28, 1, 1, 0, false),
    ("mobilenet 32-192 1x1 28", 32, 192, 1, 28, 1, 1, 0, false),
    ("mobilenet dw 192 3x3 28", 192, 192, 192, 28, 3, 1, 1, false),
    ("mobilenet 192-32 1x1 28", 192, 32, 1, 28, 1, 1, 0, false),
    ("mobilenet 192-64 1x1 14", 192, 64, 1, 14, 1, 1, 0, false),
    ("mobilenet 64-384 1x1 14", 64, 384, 1, 14, 1, 1, 0, false),
    ("mobilenet dw 384 3x3 14", 384, 384, 384, 14, 3, 1, 1, false),
    ("mobilenet 384-64 1x1 14", 384, 64, 1, 14, 1, 1, 0, false),
    ("mobilenet 576-96 1x1 14", 576, 96, 1, 14, 1, 1, 0, false),
    ("mobilenet dw 576 3x3 s2 14", 576, 576, 576, 14, 3, 2, 1, false),
    ("mobilenet 576-160 1x1 7", 576, 160, 1, 7, 1, 1, 0, false),
    ("mobilenet 160-960 1x1 7", 160, 960, 1, 7, 1, 1, 0, false),
    ("mobilenet dw 960 3x3 7", 960, 960, 960, 7, 3, 1, 1, false),
    ("mobilenet 960-320 1x1 7", 960, 320, 1, 7, 1, 1, 0, false),
    ("mobilenet 320-1280 1x1 7", 320, 1280, 1, 7, 1, 1, 0, false),
    ("resnext 128-128/32 3x3 56", 128, 128, 32, 56, 3, 1, 1, false),
    ("resnext 256-256/32 3x3 s2 56", 256, 256, 32, 56, 3, 2, 1, false),
    ("resnext 256-256/32 3x3 28", 256, 256, 32, 28, 3, 1, 1, false),
    ("resnext 512-512/32 3x3 14", 512, 512, 32, 14, 3, 1, 1, false),
    ("resnext 1024-1024/32 3x3 7", 1024, 1024, 32, 7, 3, 1, 1, false),
    ("regnet 104-104/13 3x3 28", 104, 104, 13, 28, 3, 1, 1, false),
    ("regnet 168-168/7 3x3 28", 168, 168, 7, 28, 3, 1, 1, false),
    ("regnet 400-400/10 3x3 14", 400, 400, 10, 14, 3, 1, 1, false),
    ("shufflenet 240-60/3 1x1 28", 240, 60, 3, 28, 1, 1, 0, false),
    ("shufflenet 60-240/3 1x1 28", 60, 240, 3, 28, 1, 1, 0, false),
    ("shufflenet 384-96/8 1x1 28", 384, 96, 8, 28, 1, 1, 0, false),
    ("shufflenet 96-384/8 1x1 28", 96, 384, 8, 28, 1, 1, 0, false),
    ("squeezenet stem 3-64 3x3 s2 224", 3, 64, 1, 224, 3, 2, 0, true),
    ("squeezenet 64-16 1x1 55", 64, 16, 1, 55, 1, 1, 0, false),
    ("squeezenet 16-64 1x1 55", 16, 64, 1, 55, 1, 1, 0, false),
    ("squeezenet 16-64 3x3 55", 16, 64, 1, 55, 3, 1, 1, false),
    ("squeezenet 32-128 3x3 27", 32, 128, 1, 27, 3, 1, 1, false),
    ("squeezenet 32-128 1x1 27", 32, 128, 1, 27, 1, 1, 0, false),
    ("squeezenet 64-256 3x3 13", 64, 256, 1, 13, 3, 1, 1, false),
    ("squeezenet 512-1000 1x1 13", 512, 1000, 1, 13, 1, 1, 0, false),
    ("resnet fc 512-1000", 512, 1000, 0, 1, 1, 1, 0, false),
    ("mobilenet fc 1280-1000", 1280, 1000, 0, 1, 1, 1, 0, false),
];

/// name, rows, columns, depth
const PRODUCTS: &[(&str, i64, i64, i64)] = &[
    ("linear 128,768,768", 128, 768, 768),
    ("linear 128,3072,768", 128, 3072, 768),
    ("linear 128,768,3072", 128, 768, 3072),
    ("linear 197,768,768", 197, 768, 768),
    ("linear 197,3072,768", 197, 3072, 768),
    ("linear 512,512,512", 512, 512, 512),
    ("linear 1024,1024,1024", 1024, 1024, 1024),
    ("linear 8,768,768", 8, 768, 768),
    ("linear 1,768,768", 1, 768, 768),
    ("linear 1,4096,9216", 1, 4096, 9216),
];

fn products(wanted: &str, options: &BackendOptions) {
    for &(name, m, n, k) in PRODUCTS.iter().filter(|l| l.0.contains(wanted)) {
        let gemm = Gemm::linear(m, n, k, Epilogue::bias(), options.target.machine);
        let packed = gemm.pack_b(&vec![0.01; (n * k) as usize], 1, k);
        measure(
            name,
            KernelSpec::from(gemm),
            &packed,
            [m * k, m * n, n],
            m * n * k,
            options,
        );
    }
}

fn main() {
    let wanted = std::env::args()
        .skip(1)
        .find(|a| !a.starts_with("--"))
        .unwrap_or_default();
    let threads = std::env::args()
        .find_map(|a| a.strip_prefix("--threads=").and_then(|n| n.parse().ok()))
        .unwrap_or(1);
    let options = BackendOptions {
        threads,
        ..BackendOptions::default()
    };
    for layer in LAYERS.iter().filter(|l| l.0.contains(&wanted)) {
        let (name, c, o, groups, h, k, stride, pad, plain) = *layer;
        let machine = options.target.machine;
        let out = (h + 2 * pad - k) / stride + 1;
        let shape = ConvShape {
            batch: 1,
            in_channels: c,
            out_channels: o,
            groups: groups.max(1),
            input: [h, h],
            output: [out, out],
            kernel: [k, k],
            stride: [stride, stride],
            padding: [pad, pad],
            dilation: [1, 1],
        };
        let weights = vec![0.01f32; (o * c / groups.max(1) * k * k) as usize];
        let (spec, packed, inputs, outputs) = if groups == 0 {
            let gemm = Gemm::linear(1, o, c, Epilogue::bias(), machine);
            let packed = gemm.pack_b(&weights, 1, c);
            (KernelSpec::from(gemm), packed, c, o)
        } else if shape.is_depthwise() {
            let dw = Depthwise::new(shape, Epilogue::bias(), machine);
            let (i, o) = (dw.input_shape().elements(), dw.output_shape().elements());
            (KernelSpec::from(dw.clone()), dw.pack_weights(&weights), i, o)
        } else {
            let conv = Conv::new(shape, plain, Epilogue::bias(), machine);
            let i = conv.input_shape().map_or(c * h * h, |s| s.elements());
            let (packed, o) = (conv.pack_weights(&weights), conv.output_shape().elements());
            (KernelSpec::from(conv), packed, i, o)
        };
        measure(name, spec, &packed, [inputs, outputs, o + 64], shape.macs(), &options);
    }
    products(&wanted, &options);
}

/// Compiles `spec`, runs it for a while, and prints its line. `sizes`: elements of input, output and bias.
fn measure(name: &str, spec: KernelSpec, packed: &[f32], sizes: [i64; 3], macs: i64, options: &BackendOptions) {
    let [inputs, outputs, bias] = sizes;
    let port = |n: i64| Port {
        name: "x".into(),
        dtype: DType::Float,
        shape: [n].into_iter().collect(),
    };
    let mut plan = Plan {
        name: "bench".into(),
        ..Plan::default()
    };
    plan.inputs = vec![port(inputs)];
    plan.outputs = vec![port(outputs)];
    let transformation = spec.get::<Conv>().and_then(Conv::transformation);
    let packed = plan.weights(packed, transformation);
    let bias = plan.constant(&vec![0.5f32; bias as usize]);
    let buffers = [
        Buffer::Input { index: 0, offset: 0 },
        packed,
        bias,
        Buffer::Output { index: 0, offset: 0 },
    ];
    plan.workspace_bytes = spec.scratch_bytes();
    let scratch = (spec.scratch_bytes() > 0).then_some(Buffer::Workspace { offset: 0 });
    plan.call(spec, buffers.into_iter().chain(scratch));
    let start = Instant::now();
    let mut executable = compile(&plan, options).unwrap();
    let compile_ms = start.elapsed().as_secs_f64() * 1e3;
    let x = vec![[0.5f32; 16]; inputs as usize / 16 + 1];
    let mut y = vec![[0f32; 16]; outputs as usize / 16 + 1];
    let (x, y): ([*const c_void; 1], [*mut c_void; 1]) = ([x.as_ptr().cast()], [y.as_mut_ptr().cast()]);
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    let mut repeat = 1;
    while begin.elapsed().as_millis() < 150 {
        let t = Instant::now();
        for _ in 0..repeat {
            // SAFETY: both buffers are as large as their ports.
            unsafe { executable.run_unchecked(&x, &y) }.expect("no runtime call");
        }
        let per_run = t.elapsed().as_secs_f64() / f64::from(repeat);
        best = best.min(per_run);
        repeat = (5e-4 / per_run).clamp(1.0, 1000.0) as u32;
    }
    let gflops = 2.0 * macs as f64 / best / 1e9;
    println!(
        "{name:34} {:9.1} us {gflops:7.1} GF/s  compile {compile_ms:6.0} ms",
        best * 1e6
    );
}
