//! Counts vector registers that LLVM spills in the kernels whose speed depends on having none.

#![cfg(target_arch = "x86_64")]

use frazil_codegen::BackendOptions;
use frazil_codegen::compile::{Stage, kernel_text};
use frazil_ir::DType;
use frazil_planner::kernel::{
    Conv, ConvShape, Depthwise, Epilogue, Gemm, GemmB, GemmTile, KernelCode, KernelSpec, StridedOutput,
};
use frazil_planner::target::Target;
use frazil_runtime::expr::{Expr, UnaryOp};

/// Instructions that move a whole vector register to or from the stack, and the multiply-adds beside them.
fn spills(code: &KernelCode, target: &Target) -> (usize, usize) {
    let text = kernel_text("k", code, &[], &BackendOptions::new(target.clone()), Stage::Assembly).unwrap();
    let register = if target.vector().lanes == 16 { "%zmm" } else { "%ymm" };
    let vector = || text.lines().filter(|l| l.contains(register));
    let moves = vector().filter(|l| l.contains("(%rsp)") && l.trim_start().starts_with("vmov"));
    (moves.count(), vector().filter(|l| l.contains("vfm")).count())
}

fn conv(c: i64, o: i64, hw: i64, k: i64, stride: i64, pad: i64) -> ConvShape {
    let out = (hw + 2 * pad - k) / stride + 1;
    ConvShape {
        batch: 1,
        in_channels: c,
        out_channels: o,
        groups: 1,
        input: [hw, hw],
        output: [out, out],
        kernel: [k, k],
        stride: [stride, stride],
        padding: [pad, pad],
        dilation: [1, 1],
    }
}

/// A bias, and a function of more instructions than there are registers beside a tile.
fn activation(op: UnaryOp) -> Epilogue {
    let mut e = Expr::new();
    let x = e.input(0, DType::Float);
    let y = e.unary(op, x);
    Epilogue::bias().then(&e.finish(y), &[])
}

#[test]
fn hot_kernels_do_not_spill() {
    for cpu in ["x86-64-v4", "x86-64-v3"] {
        let target = Target::new(cpu, "");
        let machine = target.machine;
        let mut specs = vec![
            KernelSpec::from(Gemm::linear(128, 768, 768, Epilogue::bias(), machine)),
            KernelSpec::from(Gemm::linear(8, 512, 512, Epilogue::bias(), machine)),
            KernelSpec::from(Gemm::linear(197, 1536, 384, activation(UnaryOp::Erf), machine)),
            KernelSpec::from(Gemm {
                b: GemmB::Strided {
                    k_stride: 1,
                    n_stride: 192,
                },
                ..Gemm::linear(128, 128, 64, Epilogue::none(), machine)
            }),
        ];
        let costly = Conv::new(conv(32, 192, 28, 1, 1, 0), false, activation(UnaryOp::Tanh), machine);
        specs.push(KernelSpec::from(costly));
        let output = StridedOutput {
            image: [64, 64],
            step: [2, 2],
        };
        let phase = Conv::with_output(conv(64, 32, 32, 1, 1, 0), output, false, Epilogue::bias(), machine);
        specs.push(KernelSpec::from(phase));
        for (shape, plain) in [
            (conv(3, 64, 224, 7, 2, 3), true),
            (conv(64, 64, 56, 3, 1, 1), false),
            (conv(64, 128, 56, 3, 2, 1), false),
            (conv(512, 512, 7, 3, 1, 1), false),
            (conv(256, 64, 56, 1, 1, 0), false),
            (conv(96, 24, 56, 1, 1, 0), false),
        ] {
            let spec = Conv::new(shape, plain, Epilogue::bias(), machine);
            specs.push(KernelSpec::from(Conv {
                winograd: None,
                ..spec.clone()
            }));
            if spec.winograd.is_some() {
                specs.push(KernelSpec::from(spec));
            }
        }
        for groups in [24, 12, 4] {
            let grouped = ConvShape {
                groups,
                ..conv(96, 96, 56, 3, 1, 1)
            };
            specs.push(KernelSpec::from(Conv::new(grouped, false, Epilogue::bias(), machine)));
        }
        let depthwise = ConvShape {
            groups: 96,
            ..conv(96, 96, 56, 3, 1, 1)
        };
        specs.push(KernelSpec::from(Depthwise::new(depthwise, Epilogue::bias(), machine)));
        for spec in specs {
            let (moves, fmas) = spills(&KernelCode::constant(spec.clone()), &target);
            assert!(fmas > 0, "{cpu}: no multiply-adds in {spec:?}");
            // The accumulators of a costly epilogue wait in memory, once each.
            let share = if spec.epilogue().is_some_and(Epilogue::is_costly) {
                4
            } else {
                8
            };
            assert!(
                moves * share <= fmas,
                "{cpu}: {moves} spills beside {fmas} multiply-adds in {spec:?}"
            );
        }
    }
}

/// Code that takes the sizes of images as arguments has the inner loops of code for one size.
#[test]
fn code_for_images_of_any_size_does_not_spill() {
    for cpu in ["x86-64-v4", "x86-64-v3"] {
        let target = Target::new(cpu, "");
        let machine = target.machine;
        let grouped = |groups: i64, side: i64| ConvShape {
            groups,
            ..conv(96, 96, side, 3, 1, 1)
        };
        let kernel = |shape: ConvShape| match shape.is_depthwise() {
            true => KernelSpec::from(Depthwise::new(shape, Epilogue::bias(), machine).for_any_size(machine)),
            false => {
                let plain = shape.in_channels < machine.vector.lanes;
                KernelSpec::from(Conv::new(shape, plain, Epilogue::bias(), machine).for_any_size(machine))
            }
        };
        // Not groups of few channels: where a row may be one tile, the code of that tile spills, which the code for one size does not.
        let shapes: [&dyn Fn(i64) -> ConvShape; 7] = [
            &|side| conv(3, 64, side, 7, 2, 3),
            &|side| conv(64, 64, side, 3, 1, 1),
            &|side| conv(64, 128, side, 3, 2, 1),
            &|side| conv(256, 64, side, 1, 1, 0),
            &|side| conv(256, 64, side, 1, 2, 0),
            &|side| grouped(4, side),
            &|side| grouped(96, side),
        ];
        for shape in shapes {
            // Not all sizes have tiles of one width.
            let mut others = (6..13).map(|n| kernel(shape(16 * n)));
            let one = kernel(shape(224));
            let code = others.find_map(|other| KernelCode::constant(one.clone()).serving(&other));
            let code = code.unwrap_or_else(|| panic!("{cpu}: no size shares code with {one:?}"));
            let (moves, fmas) = spills(&code, &target);
            assert!(
                moves * 8 <= fmas,
                "{cpu}: {moves} spills beside {fmas} multiply-adds in {one:?}"
            );
        }
    }
}

/// Code that takes all sizes of matmuls as arguments does not spill the sums, whatever the processor's scheduling model.
#[test]
fn matmuls_of_any_size_do_not_spill() {
    for cpu in ["x86-64-v4", "x86-64-v3", "sapphirerapids", "znver5"] {
        let target = Target::new(cpu, "");
        let machine = target.machine;
        for [n, k] in [[768, 256], [256, 1024], [10, 512]] {
            let mut linear = Gemm::linear(100, n, k, Epilogue::bias(), machine);
            linear.tile = GemmTile::for_any_size(1, [100, n, k], true, machine);
            let tile = linear.tile;
            let code = KernelCode::with_all_arguments(KernelSpec::from(linear));
            let (moves, fmas) = spills(&code, &target);
            assert!(
                moves * 8 <= fmas,
                "{cpu}: {moves} spills beside {fmas} multiply-adds with {tile:?}"
            );
        }
    }
}
