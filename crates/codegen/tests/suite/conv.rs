//! Convolutions against plain loops.
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
use frazil_ir::DType;
use frazil_planner::kernel::{Conv, ConvShape, Epilogue, EpilogueOperand, KernelSpec, Winograd};
use frazil_runtime::expr::{BinaryOp, Expr};

/// A convolution of plain tensors.
pub fn reference(s: &ConvShape, x: &[f32], w: &[f32]) -> Vec<f32> {
    let (ci, co) = (s.in_channels / s.groups, s.out_channels / s.groups);
    let mut out = Vec::new();
    for n in 0..s.batch {
        for o in 0..s.out_channels {
            for y in 0..s.output[0] {
                for x_out in 0..s.output[1] {
                    let mut sum = 0f64;
                    for i in 0..ci {
                        let c = o / co * ci + i;
                        for kh in 0..s.kernel[0] {
                            for kw in 0..s.kernel[1] {
                                let iy = y * s.stride[0] - s.padding[0] + kh * s.dilation[0];
                                let ix = x_out * s.stride[1] - s.padding[1] + kw * s.dilation[1];
                                if (0..s.input[0]).contains(&iy) && (0..s.input[1]).contains(&ix) {
                                    let xi = ((n * s.in_channels + c) * s.input[0] + iy) * s.input[1] + ix;
                                    let wi = ((o * ci + i) * s.kernel[0] + kh) * s.kernel[1] + kw;
                                    sum += f64::from(x[xi as usize]) * f64::from(w[wi as usize]);
                                }
                            }
                        }
                    }
                    out.push(sum as f32);
                }
            }
        }
    }
    out
}

/// channels in, out, groups, input size, kernel, stride, padding, dilation
fn shape(c: i64, o: i64, g: i64, hw: [i64; 2], k: [i64; 2], s: i64, p: i64, d: i64) -> ConvShape {
    let out = |i: usize| (hw[i] + 2 * p - d * (k[i] - 1) - 1) / s + 1;
    ConvShape {
        batch: 1,
        in_channels: c,
        out_channels: o,
        groups: g,
        input: hw,
        output: [out(0), out(1)],
        kernel: k,
        stride: [s, s],
        padding: [p, p],
        dilation: [d, d],
    }
}

fn check(s: ConvShape, plain: bool, epilogue: Epilogue) {
    let mut conv = Conv::new(s, plain, epilogue, options().target.machine);
    check_kernel(&conv, 1.0);
    if conv.winograd.take().is_some() {
        check_kernel(&conv, 1.0);
    }
}

fn check_kernel(conv: &Conv, tolerance: f32) {
    let s = conv.shape;
    let plain = conv.input_shape().is_none();
    let block = options().target.vector().lanes;
    let (ip, op) = (s.input[0] * s.input[1], s.output[0] * s.output[1]);
    let x = random(s.batch * s.in_channels * ip, 1);
    let w = random(s.out_channels * s.in_channels / s.groups * s.kernel[0] * s.kernel[1], 2);
    let input = if plain {
        x.clone()
    } else {
        to_blocked(&x, s.batch, s.in_channels, ip, block)
    };
    let mut weights = conv.pack_weights(&w);
    if let Some(transformation) = conv.transformation() {
        let transformed = vec![f32::NAN; transformation.transformed_bytes() / 4];
        weights = run(&KernelSpec::from(transformation), &[weights], transformed, 2);
    }
    let mut inputs = vec![input, weights];
    let out_shape = conv.output_shape();
    let mut want = reference(&s, &x, &w);
    for (i, kind) in conv.epilogue.operands.iter().enumerate() {
        match kind {
            EpilogueOperand::Channel => {
                let bias = random(out_shape.padded_channels(), 7);
                for (j, v) in want.iter_mut().enumerate() {
                    *v += bias[j / op as usize % s.out_channels as usize];
                }
                inputs.push(bias);
            }
            _ => {
                let residual = random(s.batch * s.out_channels * op, 8 + i as u64);
                for (v, r) in want.iter_mut().zip(&residual) {
                    *v = (*v + r).max(0.0);
                }
                inputs.push(to_blocked(&residual, s.batch, s.out_channels, op, block));
            }
        }
    }
    let scale = ((s.in_channels / s.groups * s.kernel[0] * s.kernel[1]) as f32)
        .sqrt()
        .max(1.0);
    for threads in [1, 2] {
        let output = vec![0.0; out_shape.elements() as usize];
        let got = run(&KernelSpec::from(conv.clone()), &inputs, output, threads);
        let got = to_plain(&got, s.batch, s.out_channels, op, block);
        assert_close(
            &got,
            &want,
            2e-6 * tolerance * scale,
            &format!("{s:?} plain {plain} {:?}", conv.winograd),
        );
    }
}

#[test]
fn three_by_three() {
    for (c, o, hw) in [
        (16, 32, 14),
        (64, 64, 28),
        (32, 48, 7),
        (128, 64, 13),
        (24, 40, 9),
        (5, 3, 6),
        (16, 16, 1),
    ] {
        for stride in [1, 2] {
            check(shape(c, o, 1, [hw, hw], [3, 3], stride, 1, 1), false, Epilogue::bias());
        }
    }
}

#[test]
fn pointwise() {
    for (c, o, hw) in [(64, 32, 14), (32, 64, 7), (16, 1000, 13), (24, 144, 5), (512, 16, 3)] {
        for stride in [1, 2] {
            check(shape(c, o, 1, [hw, hw], [1, 1], stride, 0, 1), false, Epilogue::bias());
        }
    }
}

/// Images whose pixels are no whole number of register tiles, nor of rows of them.
#[test]
fn pixels_of_small_images_are_shared_by_threads() {
    let machine = options().target.machine;
    for (c, o, hw) in [
        (384, 64, [14, 14]),
        (512, 48, [13, 13]),
        (64, 96, [17, 19]),
        (40, 20, [1, 211]),
    ] {
        let s = shape(c, o, 1, hw, [1, 1], 1, 0, 1);
        let conv = Conv::new(s, false, Epilogue::bias(), machine);
        assert!(conv.tasks() >= 4, "{} tasks for {s:?}", conv.tasks());
        check_kernel(&conv, 1.0);
        check(ConvShape { batch: 2, ..s }, false, Epilogue::none());
    }
    check(shape(3, 64, 1, [13, 13], [1, 1], 1, 0, 1), true, Epilogue::bias());
}

#[test]
fn stems_on_plain_images() {
    check(shape(3, 64, 1, [64, 64], [7, 7], 2, 3, 1), true, Epilogue::bias());
    check(shape(3, 32, 1, [33, 35], [3, 3], 2, 1, 1), true, Epilogue::bias());
    check(shape(3, 64, 1, [40, 40], [3, 3], 2, 0, 1), true, Epilogue::bias());
    check(shape(1, 20, 1, [28, 28], [5, 5], 1, 0, 1), true, Epilogue::none());
    check(shape(4, 16, 2, [9, 9], [3, 3], 1, 1, 1), true, Epilogue::none());
}

#[test]
fn odd_windows() {
    check(shape(16, 16, 1, [20, 20], [3, 3], 1, 2, 2), false, Epilogue::none());
    check(shape(16, 16, 1, [40, 40], [3, 3], 1, 12, 12), false, Epilogue::none());
    check(shape(16, 32, 1, [17, 9], [1, 7], 1, 3, 1), false, Epilogue::none());
    check(shape(16, 32, 1, [1, 50], [1, 9], 2, 0, 1), false, Epilogue::none());
    check(shape(32, 32, 1, [12, 12], [5, 5], 3, 2, 1), false, Epilogue::none());
    check(shape(16, 16, 1, [3, 3], [7, 7], 1, 3, 1), false, Epilogue::none());
}

#[test]
fn groups() {
    check(shape(64, 64, 2, [10, 10], [3, 3], 1, 1, 1), false, Epilogue::bias());
    check(shape(32, 64, 8, [10, 10], [3, 3], 1, 1, 1), false, Epilogue::bias());
    check(shape(128, 128, 32, [7, 7], [3, 3], 2, 1, 1), false, Epilogue::bias());
    check(shape(30, 60, 3, [6, 6], [1, 1], 1, 0, 1), false, Epilogue::bias());
    check(shape(24, 24, 24, [6, 6], [3, 3], 1, 1, 1), false, Epilogue::bias());
    for (c, o, g) in [
        (16, 32, 16),
        (40, 40, 5),
        (16, 64, 8),
        (24, 8, 8),
        (72, 72, 3),
        (15, 21, 3),
        (85, 165, 5),
        (160, 40, 2),
        (34, 96, 2),
    ] {
        check(shape(c, o, g, [9, 21], [3, 3], 1, 1, 1), false, Epilogue::bias());
        check(shape(c, o, g, [5, 7], [1, 1], 1, 0, 1), false, Epilogue::bias());
        // More tiles at the border than are emitted one by one.
        check(shape(c, o, g, [5, 40], [1, 17], 1, 8, 1), false, Epilogue::none());
    }
    check(shape(6, 12, 3, [9, 9], [3, 3], 1, 1, 1), true, Epilogue::none());
}

#[test]
fn groups_do_not_meet() {
    let block = options().target.vector().lanes;
    for (c, o, g) in [
        (16, 32, 16),
        (16, 16, 4),
        (40, 40, 5),
        (72, 72, 3),
        (15, 21, 3),
        (160, 40, 2),
        (16, 32, 2),
    ] {
        let s = shape(c, o, g, [6, 11], [3, 3], 1, 1, 1);
        let conv = Conv::new(s, false, Epilogue::none(), options().target.machine);
        let mut x = random(c * 66, 1);
        let w = random(o * c / g * 9, 2);
        // The second group's last channel.
        x[(2 * c / g * 66 - 30) as usize] = f32::NAN;
        x[(2 * c / g * 66 - 1) as usize] = f32::INFINITY;
        let inputs = [to_blocked(&x, 1, c, 66, block), conv.pack_weights(&w)];
        let output = vec![0.0; conv.output_shape().elements() as usize];
        let got = run(&KernelSpec::from(conv), &inputs, output, 1);
        let got = to_plain(&got, 1, o, 66, block);
        let want = reference(&s, &x, &w);
        assert!(want.iter().any(|v| v.is_nan()) && want.iter().any(|v| v.is_infinite()));
        assert_close(&got, &want, 1e-4, &format!("{s:?}"));
    }
}

#[test]
fn residual_and_batch() {
    let mut e = Expr::new();
    let (sum, residual, zero) = (
        e.input(0, DType::Float),
        e.input(1, DType::Float),
        e.float(0.0, DType::Float),
    );
    let sum = e.binary(BinaryOp::Add, sum, residual);
    let relu = e.binary(BinaryOp::Maximum, sum, zero);
    let epilogue = Epilogue::bias().then(&e.finish(relu), &[EpilogueOperand::Elementwise]);
    let mut s = shape(128, 64, 1, [14, 14], [3, 3], 1, 1, 1);
    s.batch = 3;
    check(s, false, epilogue);
}

#[test]
fn winograd() {
    for (c, o, h, w, pad) in [
        (16, 16, 12, 12, 1),
        (40, 48, 15, 9, 1),
        (64, 32, 9, 30, 0),
        (32, 64, 2, 3, 1),
        (19, 35, 11, 11, 2),
    ] {
        for outputs in [2, 4] {
            let mut s = shape(c, o, 1, [h, w], [3, 3], 1, pad, 1);
            s.batch = 2;
            let mut conv = Conv::new(s, false, Epilogue::bias(), options().target.machine);
            conv.winograd = Some(Winograd {
                outputs,
                columns: 9,
                vectors: 1,
            });
            for parts in 1..=3 {
                conv.channel_parts = parts;
                check_kernel(&conv, if outputs == 2 { 1.0 } else { 20.0 });
            }
        }
    }
}
