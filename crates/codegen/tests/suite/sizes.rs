//! Code with sizes as arguments: one code serves kernels of many sizes, with the same bits as code for one.

use crate::common;
use common::{options, random, run_on, run_with};
use frazil_codegen::BackendOptions;
use frazil_codegen::cache::ObjectCache;
use frazil_planner::kernel::{Epilogue, Gemm, GemmB, GemmBatch, GemmTile, KernelCode, KernelSpec};
use frazil_planner::target::{Machine, Target};

/// The code that serves all of `kernels`.
fn common_code(kernels: &[KernelSpec]) -> KernelCode {
    let (first, rest) = kernels.split_first().expect("kernels");
    let first = KernelCode::constant(first.clone());
    rest.iter()
        .try_fold(first, |code, kernel| code.serving(kernel))
        .expect("only numbers differ")
}

/// The processors whose vectors are tested.
fn targets() -> [Target; 2] {
    [options().target, Target::new("x86-64-v3", "")]
}

/// Runs each of `gemms` with code of its own and with the code that serves all of them.
fn gemms_share_code(target: &Target, gemms: &[Gemm]) {
    let options = BackendOptions {
        cache: Some(ObjectCache::default()),
        threads: 2,
        ..BackendOptions::new(target.clone())
    };
    let kernels: Vec<KernelSpec> = gemms.iter().cloned().map(KernelSpec::from).collect();
    let code = common_code(&kernels);
    assert!(code.argument_count() > 0);
    for (gemm, kernel) in gemms.iter().zip(&kernels) {
        let batch = |of: &dyn Fn(&GemmBatch) -> i64| gemm.batch.iter().map(|b| (b.extent - 1) * of(b)).sum::<i64>();
        let a = batch(&|b| b.a) + (gemm.m - 1) * gemm.a_row_stride + gemm.k * gemm.a_col_stride.max(1);
        let b = match gemm.b {
            GemmB::Packed => gemm.packed_elements() as i64,
            GemmB::Strided { k_stride, n_stride } => {
                batch(&|b| b.b) + (gemm.k - 1) * k_stride + (gemm.n - 1) * n_stride + 1
            }
        };
        let c = batch(&|b| b.c) + (gemm.m - 1) * gemm.c_row_stride + gemm.n;
        let mut inputs = vec![random(a, 1), random(b, 2)];
        if !gemm.epilogue.operands.is_empty() {
            inputs.push(random(gemm.n, 3));
        }
        let output = || vec![7.0; c as usize];
        let own = run_on(kernel, &inputs, output(), options.clone());
        let shared = run_with(&code, kernel, &inputs, output(), options.clone());
        let same = own.iter().zip(&shared).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{} {kernel:?}", target.cpu);
    }
}

/// A blocking that is no function of the sizes but `n`.
fn tile(gemm: &Gemm, machine: &Machine) -> GemmTile {
    let large = GemmTile::choose(1, [4096, gemm.n.max(256), 4096], machine);
    GemmTile {
        m_task: large.rows * 4,
        n_task: large.vectors * machine.vector.lanes * 2,
        k_block: gemm.k.min(128),
        ..large
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn rows_of_a_linear_layer() {
    for target in targets() {
        let machine = target.machine;
        let of = |m: i64| {
            let mut gemm = Gemm::linear(m, 100, 300, Epilogue::bias(), machine);
            gemm.tile = tile(&gemm, machine);
            gemm
        };
        let gemms: Vec<Gemm> = (1..30).chain([53, 127, 128, 200]).map(of).collect();
        gemms_share_code(&target, &gemms);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn attention_of_any_length() {
    for target in targets() {
        let machine = target.machine;
        let batch = |length: i64, a: i64, b: i64, c: i64| {
            vec![
                GemmBatch {
                    extent: 1 + length % 2,
                    a: 3 * a,
                    b: 3 * b,
                    c: 3 * c,
                },
                GemmBatch { extent: 3, a, b, c },
            ]
        };
        let scores = |length: i64| {
            let mut gemm = Gemm::linear(length, length, 20, Epilogue::none(), machine);
            gemm.batch = batch(length, length * 20, length * 20, length * length);
            gemm.b = GemmB::Strided {
                k_stride: 1,
                n_stride: 20,
            };
            gemm.tile = tile(&Gemm { n: 256, ..gemm.clone() }, machine);
            gemm
        };
        let values = |length: i64| {
            let mut gemm = Gemm::linear(length, 20, length, Epilogue::none(), machine);
            gemm.batch = batch(length, length * length, length * 20, length * 20);
            gemm.b = GemmB::Strided {
                k_stride: 20,
                n_stride: 1,
            };
            gemm.tile = tile(&Gemm { n: 256, ..gemm.clone() }, machine);
            gemm
        };
        let lengths = [1, 2, 3, 7, 8, 16, 17, 31, 64, 100, 127, 128, 129, 255, 256, 300];
        gemms_share_code(&target, &lengths.map(scores));
        gemms_share_code(&target, &lengths.map(values));
    }
}
