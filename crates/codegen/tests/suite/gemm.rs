//! Matmuls against plain loops.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::too_many_arguments,
    clippy::type_complexity,
    clippy::cloned_ref_to_slice_refs,
    reason = "tests may fail loudly, and their helpers name every size"
)]

use crate::common;
use common::{assert_close, options, random, run, run_on};
use frazil_ir::DType;
use frazil_planner::kernel::{Epilogue, EpilogueOperand, Gemm, GemmB, GemmBatch, GemmTile, KernelSpec};
use frazil_runtime::expr::{BinaryOp, Expr};

fn reference(gemm: &Gemm, a: &[f32], b: impl Fn(i64, i64, i64) -> f32) -> Vec<f32> {
    let batch = gemm.batch.first().copied();
    let count = gemm.batch_count();
    let size = batch.map_or(0, |s| s.c * (s.extent - 1)) + gemm.c_row_stride * gemm.m;
    let mut c = vec![0.0; size as usize];
    for p in 0..count {
        let s = batch.unwrap_or(GemmBatch {
            extent: 1,
            a: 0,
            b: 0,
            c: 0,
        });
        for m in 0..gemm.m {
            for n in 0..gemm.n {
                let mut sum = 0f64;
                for k in 0..gemm.k {
                    let x = a[(p * s.a + m * gemm.a_row_stride + k * gemm.a_col_stride) as usize];
                    sum += f64::from(x) * f64::from(b(p, k, n));
                }
                c[(p * s.c + m * gemm.c_row_stride + n) as usize] = sum as f32;
            }
        }
    }
    c
}

#[test]
fn linear_of_any_size() {
    for (m, n, k) in [
        (1, 1, 1),
        (1, 1000, 512),
        (3, 17, 33),
        (8, 64, 100),
        (128, 96, 768),
        (197, 100, 500),
        (50, 300, 1),
        (64, 512, 900),
    ] {
        let gemm = Gemm::linear(m, n, k, Epilogue::bias(), options().target.machine);
        let (a, w, bias) = (random(m * k, 1), random(n * k, 2), random(n, 3));
        let want = reference(&gemm, &a, |_, k2, n2| w[(n2 * k + k2) as usize]);
        let want: Vec<f32> = want.iter().enumerate().map(|(i, x)| x + bias[i % n as usize]).collect();
        let inputs = [a, gemm.pack_b(&w, 1, k), bias];
        for threads in [1, 2] {
            let got = run(
                &KernelSpec::from(gemm.clone()),
                &inputs,
                vec![f32::NAN; (m * n) as usize],
                threads,
            );
            assert_close(&got, &want, 2e-5, &format!("{m}x{n}x{k}"));
        }
    }
}

#[test]
fn every_epilogue_operand() {
    let (m, n, k) = (21, 37, 700);
    let mut e = Expr::new();
    let inputs: Vec<u32> = (0..5).map(|i| e.input(i, DType::Float)).collect();
    let mut sum = e.binary(BinaryOp::Mul, inputs[0], inputs[1]);
    for &i in &inputs[2..] {
        sum = e.binary(BinaryOp::Add, sum, i);
    }
    use EpilogueOperand::{Channel, Elementwise, Row, Scalar};
    let epilogue = Epilogue {
        expr: e.finish(sum),
        operands: vec![Scalar, Channel, Row, Elementwise],
    };
    let gemm = Gemm::linear(m, n, k, epilogue, options().target.machine);
    let (a, w) = (random(m * k, 1), random(n * k, 2));
    let (channel, row, full) = (random(n, 3), random(m, 4), random(m * n, 5));
    let mut want = reference(&gemm, &a, |_, k2, n2| w[(k2 * n + n2) as usize]);
    for (i, x) in want.iter_mut().enumerate() {
        *x = *x * 0.5 + channel[i % n as usize] + row[i / n as usize] + full[i];
    }
    let inputs = [a, gemm.pack_b(&w, n, 1), vec![0.5], channel, row, full];
    let got = run(&KernelSpec::from(gemm), &inputs, vec![0.0; (m * n) as usize], 2);
    assert_close(&got, &want, 2e-5, "epilogue");
}

#[test]
fn strided_operands_and_batches() {
    let machine = options().target.machine;
    for (m, n, k, k_stride, n_stride) in [
        (30, 64, 40, 64, 1),
        (49, 49, 32, 1, 32),
        (30, 70, 500, 700, 1),
        (128, 33, 64, 1, 64),
        (5, 5, 5, 7, 1),
    ] {
        let b_size = (k - 1) * k_stride + (n - 1) * n_stride + 1;
        let gemm = Gemm {
            m,
            n,
            k,
            batch: vec![GemmBatch {
                extent: 3,
                a: m * k,
                b: b_size,
                c: m * n,
            }],
            a_row_stride: 1,
            a_col_stride: m,
            b: GemmB::Strided { k_stride, n_stride },
            c_row_stride: n,
            lanes: machine.vector.lanes,
            tile: GemmTile::choose(1, [m, n, k], machine),
            epilogue: Epilogue::none(),
        };
        let (a, b) = (random(3 * m * k, 1), random(3 * b_size, 2));
        let want = reference(&gemm, &a, |p, k, n| {
            b[(p * b_size + k * k_stride + n * n_stride) as usize]
        });
        let got = run(
            &KernelSpec::from(gemm),
            &[a, b],
            vec![f32::NAN; (3 * m * n) as usize],
            2,
        );
        assert_close(&got, &want, 2e-5, &format!("{m}x{n}x{k} strides {k_stride} {n_stride}"));
    }
}

#[test]
fn other_targets() {
    use frazil_planner::target::Target;
    for cpu in ["x86-64", "x86-64-v3"] {
        let mut options = options();
        options.target = Target::new(cpu, "");
        let (m, n, k) = (23, 45, 67);
        let gemm = Gemm::linear(m, n, k, Epilogue::none(), options.target.machine);
        let (a, w) = (random(m * k, 1), random(n * k, 2));
        let want = reference(&gemm, &a, |_, k2, n2| w[(n2 * k + k2) as usize]);
        let packed = gemm.pack_b(&w, 1, k);
        let got = run_on(
            &KernelSpec::from(gemm),
            &[a, packed],
            vec![0.0; (m * n) as usize],
            options,
        );
        assert_close(&got, &want, 2e-5, cpu);
    }
}
