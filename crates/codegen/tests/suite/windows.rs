//! Depthwise convolution, pooling and layout changes against plain loops.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::too_many_arguments,
    clippy::type_complexity,
    clippy::cloned_ref_to_slice_refs,
    reason = "tests may fail loudly, and their helpers name every size"
)]

use crate::common;
use common::{assert_close, options, random, run, to_blocked, to_plain};
use frazil_planner::kernel::{
    BlockedShape, ConvShape, CopyChannels, Depthwise, Epilogue, KernelSpec, Pool, PoolKind, Reorder, ReorderDirection,
};

fn depthwise(c: i64, hw: [i64; 2], k: i64, stride: i64, pad: i64, dilation: i64) {
    let out = |i: usize| (hw[i] + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
    let s = ConvShape {
        batch: 2,
        in_channels: c,
        out_channels: c,
        groups: c,
        input: hw,
        output: [out(0), out(1)],
        kernel: [k, k],
        stride: [stride, stride],
        padding: [pad, pad],
        dilation: [dilation, dilation],
    };
    let block = options().target.vector().lanes;
    let spec = Depthwise::new(s, Epilogue::bias(), options().target.machine);
    let (ip, op) = (hw[0] * hw[1], s.output[0] * s.output[1]);
    let (x, w, bias) = (
        random(2 * c * ip, 1),
        random(c * k * k, 2),
        random(spec.output_shape().padded_channels(), 3),
    );
    let mut want = Vec::new();
    for n in 0..2 {
        for ch in 0..c {
            for y in 0..s.output[0] {
                for x_out in 0..s.output[1] {
                    let mut sum = bias[ch as usize];
                    for kh in 0..k {
                        for kw in 0..k {
                            let (iy, ix) = (y * stride - pad + kh * dilation, x_out * stride - pad + kw * dilation);
                            if (0..hw[0]).contains(&iy) && (0..hw[1]).contains(&ix) {
                                sum += x[((n * c + ch) * ip + iy * hw[1] + ix) as usize]
                                    * w[((ch * k + kh) * k + kw) as usize];
                            }
                        }
                    }
                    want.push(sum);
                }
            }
        }
    }
    let inputs = [to_blocked(&x, 2, c, ip, block), spec.pack_weights(&w), bias];
    for threads in [1, 2] {
        let output = vec![0.0; spec.output_shape().elements() as usize];
        let got = run(&KernelSpec::from(spec.clone()), &inputs, output, threads);
        assert_close(&to_plain(&got, 2, c, op, block), &want, 1e-5, &format!("{s:?}"));
    }
}

#[test]
fn depthwise_windows() {
    depthwise(32, [28, 28], 3, 1, 1, 1);
    depthwise(24, [15, 9], 3, 2, 1, 1);
    depthwise(16, [7, 7], 3, 1, 1, 1);
    depthwise(40, [14, 14], 5, 1, 2, 1);
    depthwise(16, [30, 30], 5, 2, 2, 1);
    depthwise(16, [20, 60], 3, 1, 6, 6);
    depthwise(16, [2, 2], 3, 1, 1, 1);
}

fn pool(kind: PoolKind, c: i64, hw: [i64; 2], k: i64, stride: i64, pad: i64, dilation: i64, ceil: bool) {
    let block = options().target.vector().lanes;
    let out = |i: usize| {
        let span = hw[i] + 2 * pad - dilation * (k - 1) - 1;
        let mut n = (span + if ceil { stride - 1 } else { 0 }) / stride + 1;
        // The last window must start inside the input or the padding before it.
        if ceil && (n - 1) * stride >= hw[i] + pad {
            n -= 1;
        }
        n
    };
    let output = BlockedShape::dense(2, c, out(0), out(1), block);
    let spec = Pool {
        kind,
        input: BlockedShape::dense(2, c, hw[0], hw[1], block),
        output,
        kernel: [k, k],
        stride: [stride, stride],
        padding: [pad, pad],
        dilation: [dilation, dilation],
        epilogue: Epilogue::none(),
    };
    let ip = hw[0] * hw[1];
    let x = random(2 * c * ip, 1);
    let mut want = Vec::new();
    for plane in x.chunks(ip as usize) {
        for y in 0..output.height {
            for x_out in 0..output.width {
                let (mut max, mut sum, mut inside, mut padded) = (f32::NEG_INFINITY, 0.0, 0, 0);
                for kh in 0..k {
                    for kw in 0..k {
                        let (iy, ix) = (y * stride - pad + kh * dilation, x_out * stride - pad + kw * dilation);
                        padded += i32::from(iy < hw[0] + pad && ix < hw[1] + pad);
                        if (0..hw[0]).contains(&iy) && (0..hw[1]).contains(&ix) {
                            let v = plane[(iy * hw[1] + ix) as usize];
                            max = max.max(v);
                            sum += v;
                            inside += 1;
                        }
                    }
                }
                want.push(match kind {
                    PoolKind::Max => max,
                    PoolKind::Average { divisor: Some(d), .. } => sum / d as f32,
                    PoolKind::Average {
                        count_include_pad: true,
                        ..
                    } => sum / padded as f32,
                    PoolKind::Average { .. } => sum / inside as f32,
                });
            }
        }
    }
    let inputs = [to_blocked(&x, 2, c, ip, block)];
    let got = run(
        &KernelSpec::from(spec.clone()),
        &inputs,
        vec![0.0; output.elements() as usize],
        2,
    );
    let got = to_plain(&got, 2, c, output.height * output.width, block);
    assert_close(&got, &want, 1e-5, &format!("{spec:?}"));
}

#[test]
fn pools() {
    let average = |count_include_pad| PoolKind::Average {
        count_include_pad,
        divisor: None,
    };
    for kind in [
        PoolKind::Max,
        average(true),
        average(false),
        PoolKind::Average {
            count_include_pad: true,
            divisor: Some(7),
        },
    ] {
        pool(kind, 32, [28, 28], 3, 2, 1, 1, false);
        pool(kind, 20, [55, 13], 3, 2, 0, 1, false);
        pool(kind, 16, [13, 13], 3, 2, 1, 1, true);
        pool(kind, 16, [14, 14], 2, 2, 0, 1, true);
        pool(kind, 24, [7, 7], 7, 1, 0, 1, false);
        pool(kind, 16, [20, 20], 20, 1, 0, 1, false);
    }
    pool(PoolKind::Max, 16, [20, 20], 3, 1, 1, 2, false);
}

#[test]
fn reorders() {
    let block = options().target.vector().lanes;
    for (c, h, w) in [(3, 5, 7), (16, 4, 4), (37, 3, 3), (64, 1, 1)] {
        let blocked = BlockedShape::dense(2, c, h, w, block);
        let x = random(2 * c * h * w, 1);
        let there = Reorder {
            direction: ReorderDirection::ToBlocked,
            blocked,
        };
        let got = run(
            &KernelSpec::from(there),
            &[x.clone()],
            vec![9.0; blocked.elements() as usize],
            2,
        );
        let mut want = to_blocked(&x, 2, c, h * w, block);
        want.iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = 0.0);
        assert_eq!(got, want);
        let back = Reorder {
            direction: ReorderDirection::ToPlain,
            blocked,
        };
        let got = run(&KernelSpec::from(back), &[got], vec![9.0; x.len()], 2);
        assert_eq!(got, x);
    }
}

#[test]
fn channel_copies() {
    let block = options().target.vector().lanes;
    let (input, output) = (
        BlockedShape::dense(2, 20, 3, 3, block),
        BlockedShape::dense(2, 50, 3, 3, block),
    );
    let x = random(2 * 20 * 9, 1);
    let spec = CopyChannels {
        input,
        output,
        from: 3,
        to: 29,
        count: 15,
    };
    let inputs = [to_blocked(&x, 2, 20, 9, block)];
    let got = run(
        &KernelSpec::from(spec),
        &inputs,
        vec![5.0; output.elements() as usize],
        2,
    );
    let got = to_plain(&got, 2, 50, 9, block);
    for n in 0..2 {
        for c in 0..50 {
            for p in 0..9 {
                let copied = (29..44).contains(&c);
                let want = if copied {
                    x[((n * 20 + c - 26) * 9 + p) as usize]
                } else {
                    5.0
                };
                assert_eq!(got[((n * 50 + c) * 9 + p) as usize], want);
            }
        }
    }
}
