//! Times whole vision models made of kernels by hand, with weights that mean nothing: what the kernels allow, before any graph is
//! lowered. Prints compile time and the latency of one inference. Arguments: a model's name, and `--threads=N`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "this is a program that prints figures"
)]

use frazil_codegen::{BackendOptions, compile};
use frazil_ir::DType;
use frazil_planner::kernel::{
    BlockedShape, Conv, ConvShape, Depthwise, Epilogue, EpilogueOperand, Gemm, KernelSpec, Pool, PoolKind,
};
use frazil_planner::plan::{Buffer, Plan, Port};
use frazil_runtime::expr::{BinaryOp, Expr};
use std::ffi::c_void;
use std::time::Instant;

/// A tensor on its way through the model.
#[derive(Clone, Copy)]
struct Value {
    buffer: Buffer,
    channels: i64,
    size: i64,
    plain: bool,
}

struct Net {
    plan: Plan,
    options: BackendOptions,
    next: u64,
}

fn relu(epilogue: &Epilogue) -> Epilogue {
    let mut e = Expr::new();
    let (x, zero) = (e.input(0, DType::Float), e.float(0.0, DType::Float));
    let y = e.binary(BinaryOp::Maximum, x, zero);
    epilogue.then(&e.finish(y), &[])
}

fn add(epilogue: &Epilogue) -> Epilogue {
    let mut e = Expr::new();
    let (x, r) = (e.input(0, DType::Float), e.input(1, DType::Float));
    let y = e.binary(BinaryOp::Add, x, r);
    epilogue.then(&e.finish(y), &[EpilogueOperand::Elementwise])
}

impl Net {
    fn lanes(&self) -> i64 {
        self.options.target.vector().lanes
    }

    /// Buffers are reused in a ring of eight, which keeps as much in the cache as a planner would.
    fn fresh(&mut self, bytes: usize) -> Buffer {
        let slot = self.next % 8;
        self.next += 1;
        let _ = bytes;
        Buffer::Workspace {
            offset: slot * (8 << 20),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a layer has that many sizes")]
    fn conv(
        &mut self,
        x: Value,
        out: i64,
        k: i64,
        stride: i64,
        pad: i64,
        groups: i64,
        act: bool,
        residual: Option<Value>,
        into: Option<Buffer>,
    ) -> Value {
        let size = (x.size + 2 * pad - k) / stride + 1;
        let shape = ConvShape {
            batch: 1,
            in_channels: x.channels,
            out_channels: out,
            groups,
            input: [x.size; 2],
            output: [size; 2],
            kernel: [k; 2],
            stride: [stride; 2],
            padding: [pad; 2],
            dilation: [1; 2],
        };
        let mut epilogue = Epilogue::bias();
        if residual.is_some() {
            epilogue = add(&epilogue);
        }
        if act {
            epilogue = relu(&epilogue);
        }
        let weights = vec![0.001; (out * x.channels / groups * k * k) as usize];
        let (spec, packed, transformation, bytes) = if shape.is_depthwise() {
            let spec = Depthwise::new(shape, epilogue, self.options.target.machine);
            let packed = spec.pack_weights(&weights);
            let bytes = spec.output_shape().bytes();
            (KernelSpec::from(spec), packed, None, bytes)
        } else {
            let spec = Conv::new(shape, x.plain, epilogue, self.options.target.machine);
            let packed = spec.pack_weights(&weights);
            let bytes = spec.output_shape().bytes();
            let transformation = spec.transformation();
            (KernelSpec::from(spec), packed, transformation, bytes)
        };
        let weights = self.plan.weights(&packed, transformation);
        let bias = self.plan.constant(&vec![0.1f32; out as usize + 64]);
        let buffer = into.unwrap_or_else(|| self.fresh(bytes));
        let buffers = [x.buffer, weights, bias]
            .into_iter()
            .chain(residual.map(|r| r.buffer))
            .chain([buffer]);
        self.plan.call(spec, buffers);
        Value {
            buffer,
            channels: out,
            size,
            plain: false,
        }
    }

    fn pool(&mut self, x: Value, kind: PoolKind, k: i64, stride: i64, pad: i64, ceil: bool) -> Value {
        let span = x.size + 2 * pad - k;
        let size = if ceil {
            (span + stride - 1) / stride
        } else {
            span / stride
        } + 1;
        let shape = |s: i64| BlockedShape::dense(1, x.channels, s, s, self.lanes());
        let spec = Pool {
            kind,
            input: shape(x.size),
            output: shape(size),
            kernel: [k; 2],
            stride: [stride; 2],
            padding: [pad; 2],
            dilation: [1; 2],
            epilogue: Epilogue::none(),
        };
        let buffer = self.fresh(spec.output.bytes());
        self.plan.call(KernelSpec::from(spec), [x.buffer, buffer]);
        Value { buffer, size, ..x }
    }

    fn global_average(&mut self, x: Value) -> Value {
        let average = PoolKind::Average {
            count_include_pad: false,
            divisor: None,
        };
        self.pool(x, average, x.size, 1, 0, false)
    }

    fn linear(&mut self, x: Value, out: i64) {
        let gemm = Gemm::linear(1, out, x.channels, Epilogue::bias(), self.options.target.machine);
        let weights = gemm.pack_b(&vec![0.001; (out * x.channels) as usize], 1, x.channels);
        let weights = self.plan.constant(&weights);
        let bias = self.plan.constant(&vec![0.1f32; out as usize]);
        self.plan.call(
            KernelSpec::from(gemm),
            [x.buffer, weights, bias, Buffer::Output { index: 0, offset: 0 }],
        );
    }
}

fn image() -> Value {
    Value {
        buffer: Buffer::Input { index: 0, offset: 0 },
        channels: 3,
        size: 224,
        plain: true,
    }
}

fn resnet18(n: &mut Net) {
    let x = n.conv(image(), 64, 7, 2, 3, 1, true, None, None);
    let mut x = n.pool(x, PoolKind::Max, 3, 2, 1, false);
    for (channels, stride) in [(64, 1), (128, 2), (256, 2), (512, 2)] {
        for block in 0..2 {
            let stride = if block == 0 { stride } else { 1 };
            let y = n.conv(x, channels, 3, stride, 1, 1, true, None, None);
            let same = stride == 1 && x.channels == channels;
            let residual = if same {
                x
            } else {
                n.conv(x, channels, 1, stride, 0, 1, false, None, None)
            };
            x = n.conv(y, channels, 3, 1, 1, 1, true, Some(residual), None);
        }
    }
    let x = n.global_average(x);
    n.linear(x, 1000);
}

fn mobilenet_v2(n: &mut Net) {
    let mut x = n.conv(image(), 32, 3, 2, 1, 1, true, None, None);
    for (t, c, count, s) in [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ] {
        for i in 0..count {
            let stride = if i == 0 { s } else { 1 };
            let hidden = x.channels * t;
            let y = if t == 1 {
                x
            } else {
                n.conv(x, hidden, 1, 1, 0, 1, true, None, None)
            };
            let y = n.conv(y, hidden, 3, stride, 1, hidden, true, None, None);
            let residual = (stride == 1 && x.channels == c).then_some(x);
            x = n.conv(y, c, 1, 1, 0, 1, false, residual, None);
        }
    }
    let x = n.conv(x, 1280, 1, 1, 0, 1, true, None, None);
    let x = n.global_average(x);
    n.linear(x, 1000);
}

fn squeezenet1_1(n: &mut Net) {
    let x = n.conv(image(), 64, 3, 2, 0, 1, true, None, None);
    let mut x = n.pool(x, PoolKind::Max, 3, 2, 0, true);
    for (i, (squeeze, expand)) in [
        (16, 64),
        (16, 64),
        (32, 128),
        (32, 128),
        (48, 192),
        (48, 192),
        (64, 256),
        (64, 256),
    ]
    .into_iter()
    .enumerate()
    {
        if i == 2 || i == 4 {
            x = n.pool(x, PoolKind::Max, 3, 2, 0, true);
        }
        let s = n.conv(x, squeeze, 1, 1, 0, 1, true, None, None);
        let whole = n.fresh(0);
        let Buffer::Workspace { offset } = whole else { return };
        let half = BlockedShape::dense(1, expand, s.size, s.size, n.lanes()).bytes() as u64;
        n.conv(s, expand, 1, 1, 0, 1, true, None, Some(whole));
        n.conv(
            s,
            expand,
            3,
            1,
            1,
            1,
            true,
            None,
            Some(Buffer::Workspace { offset: offset + half }),
        );
        x = Value {
            buffer: whole,
            channels: 2 * expand,
            size: s.size,
            plain: false,
        };
    }
    let x = n.conv(x, 1000, 1, 1, 0, 1, true, None, None);
    let average = PoolKind::Average {
        count_include_pad: false,
        divisor: None,
    };
    let shape = |s: i64| BlockedShape::dense(1, 1000, s, s, n.lanes());
    let spec = Pool {
        kind: average,
        input: shape(x.size),
        output: shape(1),
        kernel: [x.size; 2],
        stride: [1; 2],
        padding: [0; 2],
        dilation: [1; 2],
        epilogue: Epilogue::none(),
    };
    n.plan.call(
        KernelSpec::from(spec),
        [x.buffer, Buffer::Output { index: 0, offset: 0 }],
    );
}

/// A network's name and what builds it.
type Model = (&'static str, fn(&mut Net));

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = arguments
        .iter()
        .find(|a| !a.starts_with("--"))
        .cloned()
        .unwrap_or_default();
    let threads = arguments
        .iter()
        .find_map(|a| a.strip_prefix("--threads=").and_then(|n| n.parse().ok()))
        .unwrap_or(1);
    let models: [Model; 3] = [
        ("resnet18", resnet18),
        ("mobilenet_v2", mobilenet_v2),
        ("squeezenet1_1", squeezenet1_1),
    ];
    for (name, build) in models.into_iter().filter(|m| m.0.contains(&wanted)) {
        let options = BackendOptions {
            threads,
            ..BackendOptions::default()
        };
        let mut net = Net {
            plan: Plan::default(),
            options,
            next: 0,
        };
        let port = |name: &str, n: i64| Port {
            name: name.into(),
            dtype: DType::Float,
            shape: [n].into_iter().collect(),
        };
        net.plan.name = name.into();
        net.plan.inputs = vec![port("image", 3 * 224 * 224)];
        net.plan.outputs = vec![port("logits", 1024)];
        net.plan.workspace_bytes = 64 << 20;
        let start = Instant::now();
        build(&mut net);
        let pack_ms = start.elapsed().as_secs_f64() * 1e3;
        let start = Instant::now();
        let mut executable = compile(&net.plan, &net.options).unwrap();
        let compile_ms = start.elapsed().as_secs_f64() * 1e3;
        let (x, mut y) = (vec![0.5f32; 3 * 224 * 224], vec![0f32; 1024]);
        let (x, y): ([*const c_void; 1], [*mut c_void; 1]) = ([x.as_ptr().cast()], [y.as_mut_ptr().cast()]);
        let mut times = Vec::new();
        let begin = Instant::now();
        while begin.elapsed().as_millis() < 2000 {
            let t = Instant::now();
            // SAFETY: both buffers are as large as their ports.
            unsafe { executable.run_unchecked(&x, &y) }.expect("no runtime call");
            times.push(t.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!(
            "{name:14} threads {threads}  min {:7.3} ms  median {:7.3} ms  {} kernels, {} calls, compile {compile_ms:.0} ms, pack {pack_ms:.0} ms, constants {:.1} MB",
            times[0],
            times[times.len() / 2],
            net.plan.kernels.len(),
            net.plan.calls.len(),
            net.plan.constants.bytes().len() as f64 / 1e6,
        );
    }
}
