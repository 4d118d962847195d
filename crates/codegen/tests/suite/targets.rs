//! Targets: names that LLVM knows have machines, and kernels contain only instructions of their target.

#![cfg(target_arch = "x86_64")]

use crate::common::{assert_close, options, random, run_on};
use frazil_codegen::BackendOptions;
use frazil_codegen::compile::{Stage as Text, kernel_text};
use frazil_ir::DType;
use frazil_planner::kernel::{
    BlockedShape, Conv, ConvShape, Depthwise, Epilogue, Gemm, GemmB, KernelCode, KernelSpec, Loops, Place, Pool,
    PoolKind, Read, Stage, Write,
};
use frazil_planner::target::{InstructionSet, MACHINES, Machine, SSE2, Target};
use frazil_runtime::expr::{BinaryOp, Expr, UnaryOp};
use frazil_runtime::structured::{Affine, Dims};
use std::process::Command;

/// Functions of f32 whose kernels differ between instruction sets, or may.
const FUNCTIONS: [UnaryOp; 29] = [
    UnaryOp::Exp,
    UnaryOp::Exp2,
    UnaryOp::Expm1,
    UnaryOp::Log,
    UnaryOp::Log2,
    UnaryOp::Log10,
    UnaryOp::Log1p,
    UnaryOp::Sqrt,
    UnaryOp::Rsqrt,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Tan,
    UnaryOp::Asin,
    UnaryOp::Acos,
    UnaryOp::Atan,
    UnaryOp::Sinh,
    UnaryOp::Cosh,
    UnaryOp::Tanh,
    UnaryOp::Asinh,
    UnaryOp::Acosh,
    UnaryOp::Atanh,
    UnaryOp::Erf,
    UnaryOp::Erfc,
    UnaryOp::Floor,
    UnaryOp::Ceil,
    UnaryOp::Round,
    UnaryOp::Trunc,
    UnaryOp::Sign,
    UnaryOp::Abs,
];

/// Processors of LLVM without 64-bit instructions.
const OF_32_BITS: &str = "athlon athlon-4 athlon-mp athlon-tbird athlon-xp c3 c3-2 geode i386 i486 i586 i686 k6 k6-2 k6-3 lakemont pentium \
    pentium-m pentium-mmx pentium2 pentium3 pentium3m pentium4 pentium4m pentium_4 pentium_4_sse3 pentium_ii pentium_iii \
    pentium_iii_no_xmm_regs pentium_m pentium_mmx pentium_pro pentiumpro prescott winchip-c6 winchip2 yonah";

/// Processors with AVX-512, but not all instructions that kernels use, or with multiply-adds of 8 lanes, but not AVX2.
const PARTIAL: &str = "knl knm mic_avx512 bdver1 bdver2 bdver3";

/// An element-wise kernel of two inputs, for vectors of `lanes` lanes.
fn map(body: Expr, lanes: i64) -> KernelSpec {
    let at = || Affine {
        coefficients: Dims::from_slice(&[1]),
        offset: 0,
    };
    let output = Write {
        place: Place::Argument(2),
        index: at(),
    };
    let reads = (0..2).map(|i| Read::new(Place::Argument(i), at())).collect();
    KernelSpec::from(Loops {
        outer: Dims::new(),
        arguments: vec![DType::Float; 3],
        locals: Vec::new(),
        stages: vec![Stage::pointwise(Dims::from_slice(&[67]), reads, body, output)],
        lanes,
    })
}

fn unary(op: UnaryOp) -> Expr {
    let mut e = Expr::new();
    let x = e.input(0, DType::Float);
    let y = e.unary(op, x);
    e.finish(y)
}

fn binary(op: BinaryOp) -> Expr {
    let mut e = Expr::new();
    let (a, b) = (e.input(0, DType::Float), e.input(1, DType::Float));
    let y = e.binary(op, a, b);
    e.finish(y)
}

/// Names that LLVM 22 has for x86 processors; none if its compiler is not installed.
fn names_of_llvm() -> Vec<String> {
    let prefix = std::env::var("LLVM_SYS_221_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".to_owned());
    let help = Command::new(format!("{prefix}/bin/llc"))
        .args(["-march=x86-64", "-mcpu=help", "/dev/null", "-o", "/dev/null"])
        .output();
    let Ok(help) = help else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&help.stderr).into_owned();
    // Processors come before features; a line is `  name - description`.
    let processors = text.split("Available features").next().unwrap_or_default();
    let lines = processors.lines().filter(|l| l.contains(" - Select the "));
    lines
        .filter_map(|l| l.split_whitespace().next().map(str::to_owned))
        .collect()
}

/// Whether LLVM compiles multiply-adds of `lanes` lanes for `cpu` to `register`s.
fn has_vectors(cpu: &str, lanes: i64, register: &str) -> bool {
    let shape = Gemm {
        lanes,
        ..Gemm::linear(2, 2 * lanes, 16, Epilogue::none(), &SSE2)
    };
    let spec = KernelSpec::from(shape);
    let text = kernel_text(
        "k",
        &KernelCode::constant(spec.clone()),
        &[],
        &BackendOptions::new(Target::new(cpu, "")),
        Text::Assembly,
    )
    .unwrap();
    // Those of FMA or FMA4.
    text.lines().any(|l| l.contains("vfmadd") && l.contains(register))
}

#[test]
fn processors_that_llvm_knows_have_machines_of_their_vector_unit() {
    let names = names_of_llvm();
    let (mut wide, mut narrow) = (0, 0);
    for name in names.iter().filter(|n| !OF_32_BITS.split_whitespace().any(|o| o == *n)) {
        let target = Target::new(name, "");
        assert!(target.is_known(), "LLVM's processor {name} belongs to no machine");
        let found = if has_vectors(name, 16, "%zmm") {
            InstructionSet::Avx512
        } else if has_vectors(name, 8, "%ymm") {
            InstructionSet::Avx2
        } else {
            InstructionSet::Portable
        };
        wide += i32::from(found == InstructionSet::Avx512);
        narrow += i32::from(found == InstructionSet::Avx2);
        if !PARTIAL.split_whitespace().any(|p| p == name) {
            assert_eq!(target.vector().instructions, found, "{name}: {}", target.machine.name);
        }
    }
    assert!(
        names.is_empty() || (wide > 10 && narrow > 20),
        "{wide} and {narrow} of {}",
        names.len()
    );
}

/// Kernels of all families, made for `machine`'s vectors but with the functions' loops for `lanes` lanes.
fn kernels(machine: &Machine, lanes: i64) -> Vec<KernelSpec> {
    let mut all: Vec<KernelSpec> = FUNCTIONS.map(|op| map(unary(op), lanes)).to_vec();
    let of_two = [BinaryOp::Maximum, BinaryOp::Minimum, BinaryOp::Pow, BinaryOp::Remainder];
    all.extend(of_two.map(|op| map(binary(op), lanes)));
    let activation = |op| Epilogue::bias().then(&unary(op), &[]);
    for op in [UnaryOp::Erf, UnaryOp::Tanh, UnaryOp::Exp] {
        all.push(KernelSpec::from(Gemm::linear(13, 100, 70, activation(op), machine)));
    }
    all.push(KernelSpec::from(Gemm {
        b: GemmB::Strided {
            k_stride: 1,
            n_stride: 70,
        },
        ..Gemm::linear(40, 100, 70, Epilogue::none(), machine)
    }));
    for groups in [1, 4, 64] {
        let shape = ConvShape {
            batch: 1,
            in_channels: 64,
            out_channels: 64,
            groups,
            input: [20, 20],
            output: [20, 20],
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1, 1],
            dilation: [1, 1],
        };
        all.push(match groups {
            64 => KernelSpec::from(Depthwise::new(shape, activation(UnaryOp::Tanh), machine)),
            _ => KernelSpec::from(Conv::new(shape, false, activation(UnaryOp::Exp), machine)),
        });
    }
    let images = |size| BlockedShape::dense(1, 64, size, size, machine.vector.lanes);
    all.push(KernelSpec::from(Pool {
        kind: PoolKind::Max,
        input: images(20),
        output: images(10),
        kernel: [2, 2],
        stride: [2, 2],
        padding: [0, 0],
        dilation: [1, 1],
        epilogue: Epilogue::none(),
    }));
    all
}

#[test]
fn only_targets_with_avx512_get_its_intrinsics() {
    let emitted = |cpu: &str, features: &str, lanes: Option<i64>| {
        let target = Target::new(cpu, features);
        let specs = kernels(target.machine, lanes.unwrap_or(target.vector().lanes));
        let texts = specs.iter().map(|spec| {
            (
                spec,
                kernel_text(
                    "k",
                    &KernelCode::constant(spec.clone()),
                    &[],
                    &BackendOptions::new(target.clone()),
                    Text::Mlir,
                )
                .unwrap(),
            )
        });
        let found = texts.filter(|(_, text)| text.contains("avx512"));
        found.map(|(spec, _)| format!("{cpu}: {spec:?}")).collect::<Vec<_>>()
    };
    for (cpu, features) in [
        ("x86-64", ""),
        ("x86-64-v2", ""),
        ("x86-64-v3", ""),
        ("znver3", ""),
        ("znver4", "+avx2,+fma,-avx512f"),
        ("sapphirerapids", "+avx2,+fma,+avx512f"),
    ] {
        // Vectors of 16 lanes are not a sign of AVX-512: on other targets they are several registers.
        for lanes in [None, Some(16)] {
            assert_eq!(emitted(cpu, features, lanes), Vec::<String>::new());
        }
    }
    for cpu in ["x86-64-v4", "znver4", "sapphirerapids"] {
        assert!(emitted(cpu, "", None).len() >= 5, "{cpu}");
    }
}

/// Zen 4 is slower with prefetches of matmuls' weights, and its kernels have none of those.
#[test]
fn prefetches_are_those_of_the_machine() {
    let prefetches = |cpu: &str| {
        let target = Target::new(cpu, "");
        let spec = KernelSpec::from(Gemm::linear(8, 256, 384, Epilogue::none(), target.machine));
        let text = kernel_text(
            "k",
            &KernelCode::constant(spec.clone()),
            &[],
            &BackendOptions::new(target.clone()),
            Text::Mlir,
        )
        .unwrap();
        text.matches("llvm.intr.prefetch").count() + text.matches("memref.prefetch").count()
    };
    assert!(prefetches("sapphirerapids") > 0);
    assert_eq!(prefetches("znver4"), 0);
}

/// Kernels with the parameters of any machine of this processor's vector unit compute the same, up to the order of additions.
#[test]
fn parameters_of_a_machine_change_results_by_rounding_only() {
    let own = options();
    let shape = ConvShape {
        batch: 1,
        in_channels: 48,
        out_channels: 64,
        groups: 1,
        input: [23, 23],
        output: [23, 23],
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1],
        dilation: [1, 1],
    };
    let pointwise = ConvShape {
        kernel: [1, 1],
        padding: [0, 0],
        ..shape
    };
    let compute = |machine: &'static Machine| {
        let target = Target {
            machine,
            ..own.target.clone()
        };
        let options = BackendOptions {
            target,
            threads: 2,
            ..own.clone()
        };
        let mut results = Vec::new();
        for [m, n, k] in [[3, 200, 500], [37, 200, 500], [130, 100, 800]] {
            let gemm = Gemm::linear(m, n, k, Epilogue::none(), machine);
            let b = gemm.pack_b(&random(n * k, 2), 1, k);
            let output = vec![0.0; (m * n) as usize];
            results.extend(run_on(
                &KernelSpec::from(gemm),
                &[random(m * k, 1), b],
                output,
                options.clone(),
            ));
        }
        for shape in [shape, pointwise] {
            let conv = Conv {
                winograd: None,
                ..Conv::new(shape, false, Epilogue::none(), machine)
            };
            let taps = shape.kernel[0] * shape.kernel[1];
            let weights = conv.pack_weights(&random(shape.in_channels * shape.out_channels * taps, 3));
            let elements = |s: BlockedShape| s.elements();
            let input = random(conv.input_shape().map_or(0, elements), 4);
            let output = vec![0.0; conv.output_shape().elements() as usize];
            results.extend(run_on(
                &KernelSpec::from(conv),
                &[input, weights],
                output,
                options.clone(),
            ));
        }
        results
    };
    let expected = compute(own.target.machine);
    for machine in MACHINES.into_iter().filter(|m| m.vector == own.target.vector()) {
        assert_close(&compute(machine), &expected, 1e-4, machine.name);
    }
}
