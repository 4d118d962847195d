//! Loop nests of every form and dtype against plain loops.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::too_many_arguments,
    clippy::type_complexity,
    clippy::cloned_ref_to_slice_refs,
    reason = "tests may fail loudly, and their helpers name every size"
)]

use crate::common;
use common::{assert_close, options, random};
use frazil_codegen::{BackendOptions, compile};
use frazil_ir::DType;
use frazil_planner::kernel::{Guard, Indirect, Kept, KernelSpec, Local, Loops, Place, Read, Stage, Write};
use frazil_planner::plan::{Buffer, Plan, Port};
use frazil_planner::target::Target;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, Number, UnaryOp};
use frazil_runtime::structured::{Affine, Combine, Dims};

fn affine(coefficients: &[i64], offset: i64) -> Affine {
    Affine {
        coefficients: Dims::from_slice(coefficients),
        offset,
    }
}

/// A stage without reduction.
fn pointwise(inner: &[i64], inputs: Vec<Read>, body: Expr, output: Write) -> Stage {
    Stage::pointwise(Dims::from_slice(inner), inputs, body, output)
}

fn read(argument: u32, coefficients: &[i64], offset: i64) -> Read {
    Read::new(Place::Argument(argument), affine(coefficients, offset))
}

fn write(argument: u32, coefficients: &[i64]) -> Write {
    Write {
        place: Place::Argument(argument),
        index: affine(coefficients, 0),
    }
}

/// Runs with the bytes of all arguments but the last, which is `output_bytes` long.
fn run_bytes(spec: &Loops, inputs: &[Vec<u8>], output_bytes: usize, options: &BackendOptions) -> Vec<u8> {
    let port = |i: usize, bytes: usize| {
        let dtype = spec.arguments[i];
        Port {
            name: format!("a{i}"),
            dtype,
            shape: Dims::from_slice(&[(bytes / dtype.size()) as i64]),
        }
    };
    let mut plan = Plan {
        name: "test".into(),
        ..Plan::default()
    };
    plan.inputs = inputs.iter().enumerate().map(|(i, x)| port(i, x.len())).collect();
    plan.outputs = vec![port(inputs.len(), output_bytes)];
    let mut buffers: Vec<Buffer> = (0..inputs.len())
        .map(|i| Buffer::Input {
            index: i as u32,
            offset: 0,
        })
        .collect();
    buffers.push(Buffer::Output { index: 0, offset: 0 });
    plan.call(KernelSpec::from(spec.clone()), buffers);
    let mut executable = compile(&plan, options).unwrap_or_else(|e| panic!("{e}"));
    let mut output = vec![0xAAu8; output_bytes];
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    executable.run(&inputs, &mut [&mut output]).unwrap();
    output
}

fn bytes<T: bytemuck::NoUninit>(x: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(x).to_vec()
}

fn values<T: bytemuck::Pod>(x: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(x)
}

fn loops(outer: &[i64], arguments: &[DType], stages: Vec<Stage>) -> Loops {
    let lanes = options().target.vector().lanes;
    Loops {
        outer: Dims::from_slice(outer),
        arguments: arguments.to_vec(),
        locals: Vec::new(),
        stages,
        lanes,
    }
}

fn run_f32(spec: &Loops, inputs: &[Vec<f32>], n: usize) -> Vec<f32> {
    let inputs: Vec<_> = inputs.iter().map(|x| bytes(x)).collect();
    values(&run_bytes(
        spec,
        &inputs,
        n * 4,
        &BackendOptions {
            threads: 2,
            ..options()
        },
    ))
}

fn unary(op: UnaryOp, dtype: DType) -> Expr {
    let mut e = Expr::new();
    let x = e.input(0, dtype);
    let y = e.unary(op, x);
    e.finish(y)
}

fn binary(op: BinaryOp, dtype: DType) -> Expr {
    let mut e = Expr::new();
    let (a, b) = (e.input(0, dtype), e.input(1, dtype));
    let y = e.binary(op, a, b);
    e.finish(y)
}

const F: DType = DType::Float;

#[test]
fn broadcast_add_with_tails() {
    for n in [1, 5, 16, 37, 100] {
        let body = binary(BinaryOp::Add, F);
        let stage = pointwise(
            &[n],
            vec![read(0, &[n, 1], 0), read(1, &[1, 0], 0)],
            body,
            write(2, &[n, 1]),
        );
        let spec = loops(&[7], &[F, F, F], vec![stage]);
        let (a, b) = (random(7 * n, 1), random(7, 2));
        let want: Vec<f32> = a.iter().enumerate().map(|(i, x)| x + b[i / n as usize]).collect();
        assert_eq!(run_f32(&spec, &[a, b], (7 * n) as usize), want);
    }
}

#[test]
fn special_values() {
    let two = |op, a: [f32; 4], b: [f32; 4]| {
        let stage = pointwise(
            &[4],
            vec![read(0, &[1], 0), read(1, &[1], 0)],
            binary(op, F),
            write(2, &[1]),
        );
        run_f32(&loops(&[], &[F, F, F], vec![stage]), &[a.to_vec(), b.to_vec()], 4)
    };
    let (a, b) = ([f32::NAN, 1.0, 2.0, -1.0], [0.0, f32::NAN, 1.0, 5.0]);
    let max = two(BinaryOp::Maximum, a, b);
    assert!(max[0].is_nan() && max[1].is_nan() && max[2..] == [2.0, 5.0]);
    let min = two(BinaryOp::Minimum, a, b);
    assert!(min[0].is_nan() && min[1].is_nan() && min[2..] == [1.0, -1.0]);
    let relu = {
        let mut e = Expr::new();
        let (x, zero) = (e.input(0, F), e.float(0.0, F));
        let y = e.binary(BinaryOp::Maximum, x, zero);
        loops(
            &[],
            &[F, F],
            vec![pointwise(&[4], vec![read(0, &[1], 0)], e.finish(y), write(1, &[1]))],
        )
    };
    let y = run_f32(&relu, &[a.to_vec()], 4);
    assert!(y[0].is_nan() && y[1..] == [1.0, 2.0, 0.0]);
}

#[test]
fn integers_and_conversions() {
    let a: Vec<i64> = vec![
        7,
        -7,
        7,
        -7,
        i64::MIN,
        5,
        0,
        3,
        100,
        -100,
        9,
        1 << 40,
        -3,
        2,
        6,
        -6,
        11,
        12,
        13,
    ];
    let b: Vec<i64> = vec![2, 2, -2, -2, -1, 0, 4, 3, 7, 7, -4, 3, -5, 10, 4, 4, 1, -1, 64];
    let n = a.len();
    let floor = |a: i64, b: i64| {
        if b == 0 {
            0
        } else {
            (a.wrapping_div(b)) - i64::from(a.wrapping_rem(b) != 0 && (a < 0) != (b < 0))
        }
    };
    let cases: [(BinaryOp, &dyn Fn(i64, i64) -> i64); 8] = [
        (BinaryOp::Add, &i64::wrapping_add),
        (BinaryOp::Mul, &i64::wrapping_mul),
        (BinaryOp::DivTrunc, &|a, b| if b == 0 { 0 } else { a.wrapping_div(b) }),
        (BinaryOp::DivFloor, &floor),
        (BinaryOp::Remainder, &|a, b| {
            if b == 0 {
                0
            } else {
                a.wrapping_sub(floor(a, b).wrapping_mul(b))
            }
        }),
        (BinaryOp::Maximum, &i64::max),
        (BinaryOp::Xor, &|a, b| a ^ b),
        (BinaryOp::Pow, &|a, b| match (a, b) {
            (1, ..0) => 1,
            (-1, ..0) => {
                if b % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            (_, ..0) => 0,
            _ => (0..b).fold(1i64, |p, _| p.wrapping_mul(a)),
        }),
    ];
    const L: DType = DType::Long;
    for (op, f) in cases {
        let stage = pointwise(
            &[n as i64],
            vec![read(0, &[1], 0), read(1, &[1], 0)],
            binary(op, L),
            write(2, &[1]),
        );
        let got: Vec<i64> = values(&run_bytes(
            &loops(&[], &[L, L, L], vec![stage]),
            &[bytes(&a), bytes(&b)],
            n * 8,
            &options(),
        ));
        let b = &b;
        let want: Vec<i64> = a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect();
        // 2^64 and more: shifting out everything is not what this checks.
        assert_eq!(got[..n - 1], want[..n - 1], "{op:?}");
    }
    for (from, to) in [
        (DType::Float, DType::Half),
        (DType::Float, DType::BFloat16),
        (F, DType::Byte),
        (F, DType::Bool),
        (F, DType::Double),
        (F, L),
    ] {
        let x: Vec<f32> = vec![
            0.0, 1.0, 1.5, 200.7, 65504.0, 1e-8, 3.25, 100.0, 0.1, 17.0, 2.0, 255.0, 33.3, 44.4, 5.0, 6.0, 7.5,
        ];
        let n = x.len();
        let mut e = Expr::new();
        let v = e.input(0, from);
        let y = e.cast(v, to);
        let there = loops(
            &[],
            &[from, to],
            vec![pointwise(
                &[n as i64],
                vec![read(0, &[1], 0)],
                e.finish(y),
                write(1, &[1]),
            )],
        );
        let stored = run_bytes(&there, &[bytes(&x)], n * to.size(), &options());
        let mut e = Expr::new();
        let v = e.input(0, to);
        let y = e.cast(v, from);
        let back = loops(
            &[],
            &[to, from],
            vec![pointwise(
                &[n as i64],
                vec![read(0, &[1], 0)],
                e.finish(y),
                write(1, &[1]),
            )],
        );
        let got: Vec<f32> = values(&run_bytes(&back, &[stored], n * 4, &options()));
        let want: Vec<f32> = x
            .iter()
            .map(|x| match to {
                DType::Half => half::f16::from_f32(*x).to_f32(),
                DType::BFloat16 => half::bf16::from_f32(*x).to_f32(),
                DType::Bool => f32::from(u8::from(*x != 0.0)),
                DType::Byte => f32::from(*x as i64 as u8),
                DType::Long => *x as i64 as f32,
                _ => *x,
            })
            .collect();
        assert_eq!(got, want, "{to:?}");
    }
}

/// The reduction of a [rows, n] matrix along one of its dimensions.
fn reduction(rows: i64, n: i64, along_columns: bool, combine: Combine) -> Loops {
    let (outer, inner, reduce, index, out): (&[i64], &[i64], i64, [i64; 2], [i64; 2]) = match along_columns {
        true => (&[rows], &[], n, [n, 1], [1, 0]),
        false => (&[], &[n], rows, [1, n], [1, 0]),
    };
    let stage = Stage {
        reduction: Dims::from_slice(&[reduce]),
        combine: Some(combine),
        ..pointwise(inner, vec![read(0, &index, 0)], Expr::identity(F), write(1, &out))
    };
    loops(outer, &[F, F], vec![stage])
}

#[test]
fn reductions() {
    for (rows, n) in [(3, 1), (5, 7), (4, 16), (6, 50), (3, 200)] {
        let x = random(rows * n, 1);
        let row = |r: i64| x[(r * n) as usize..((r + 1) * n) as usize].iter().copied();
        let column = |c: i64| (0..rows).map(move |r| (r * n + c) as usize);
        for (combine, start, f) in [
            (Combine::Add, 0.0, (|a, b| a + b) as fn(f32, f32) -> f32),
            (Combine::Max, f32::NEG_INFINITY, f32::max),
            (Combine::Min, f32::INFINITY, f32::min),
            (Combine::Mul, 1.0, |a, b| a * b),
        ] {
            let want: Vec<f32> = (0..rows).map(|r| row(r).fold(start, f)).collect();
            let got = run_f32(&reduction(rows, n, true, combine), &[x.clone()], rows as usize);
            assert_close(&got, &want, 1e-5, &format!("{combine:?} of rows of {n}"));
            let want: Vec<f32> = (0..n).map(|c| column(c).map(|i| x[i]).fold(start, f)).collect();
            let got = run_f32(&reduction(rows, n, false, combine), &[x.clone()], n as usize);
            assert_close(&got, &want, 1e-5, &format!("{combine:?} of columns of {rows}"));
        }
    }
}

#[test]
fn softmax_rows_with_scratch() {
    let (rows, n) = (5i64, 43i64);
    let local = |i: u32, c: &[i64]| Read::new(Place::Local(i), affine(c, 0));
    let scalar = |i: u32, c: &[i64]| Write {
        place: Place::Local(i),
        index: affine(c, 0),
    };
    let reduce = |input: Read, combine, out: u32| Stage {
        reduction: Dims::from_slice(&[n]),
        combine: Some(combine),
        ..pointwise(&[], vec![input], Expr::identity(F), scalar(out, &[0, 0]))
    };
    let mut e = Expr::new();
    let (x, max) = (e.input(0, F), e.input(1, F));
    let d = e.binary(BinaryOp::Sub, x, max);
    let y = e.unary(UnaryOp::Exp, d);
    let exp = pointwise(
        &[n],
        vec![read(0, &[n, 1], 0), local(1, &[0, 0])],
        e.finish(y),
        scalar(0, &[0, 1]),
    );
    let divide = pointwise(
        &[n],
        vec![local(0, &[0, 1]), local(2, &[0, 0])],
        binary(BinaryOp::Div, F),
        write(1, &[n, 1]),
    );
    let max = reduce(read(0, &[n, 1], 0), Combine::Max, 1);
    let sum = reduce(local(0, &[0, 1]), Combine::Add, 2);
    // The same, where the sum makes the row that it goes over.
    let both = Stage {
        inputs: exp.inputs.clone(),
        kept: Some(Kept {
            body: exp.body.clone(),
            output: exp.output.clone(),
        }),
        ..sum.clone()
    };
    let x: Vec<f32> = random(rows * n, 1).iter().map(|v| v * 10.0).collect();
    let want: Vec<f32> = x
        .chunks(n as usize)
        .flat_map(|row| {
            let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = row.iter().map(|v| (v - max).exp()).sum();
            row.iter().map(move |v| (v - max).exp() / sum).collect::<Vec<_>>()
        })
        .collect();
    for stages in [vec![max.clone(), exp, sum, divide.clone()], vec![max, both, divide]] {
        let mut spec = loops(&[rows], &[F, F], stages);
        spec.locals = vec![
            Local { dtype: F, elements: n },
            Local { dtype: F, elements: 1 },
            Local { dtype: F, elements: 1 },
        ];
        let got = run_f32(&spec, &[x.clone()], (rows * n) as usize);
        assert_close(&got, &want, 1e-6, "softmax");
    }
}

#[test]
fn guards_pad() {
    // A [4, 20] matrix in the middle of a [8, 30] one.
    let guarded = Read {
        guards: vec![
            Guard {
                index: affine(&[1, 0], -2),
                extent: 4,
            },
            Guard {
                index: affine(&[0, 1], -5),
                extent: 20,
            },
        ],
        fill: Number::Float(-3.0),
        ..read(0, &[20, 1], -2 * 20 - 5)
    };
    for outer in [true, false] {
        let (o, i): (&[i64], &[i64]) = if outer { (&[8], &[30]) } else { (&[], &[8, 30]) };
        let spec = loops(
            o,
            &[F, F],
            vec![pointwise(
                i,
                vec![guarded.clone()],
                Expr::identity(F),
                write(1, &[30, 1]),
            )],
        );
        let x = random(80, 1);
        let got = run_f32(&spec, &[x.clone()], 240);
        for r in 0..8 {
            for c in 0..30 {
                let inside = (2..6).contains(&r) && (5..25).contains(&c);
                let want = if inside { x[(r - 2) * 20 + c - 5] } else { -3.0 };
                assert_eq!(got[r * 30 + c], want);
            }
        }
    }
}

#[test]
fn embedding_rows() {
    let gather = Read {
        indirect: vec![Indirect {
            input: 0,
            stride: 19,
            extent: 10,
        }],
        ..read(1, &[0, 1], 0)
    };
    let mut e = Expr::new();
    let y = e.input(1, F);
    let body = e.finish(y);
    let spec = loops(
        &[4],
        &[DType::Long, F, F],
        vec![pointwise(
            &[19],
            vec![read(0, &[1, 0], 0), gather],
            body,
            write(2, &[19, 1]),
        )],
    );
    let table = random(190, 1);
    let got: Vec<f32> = values(&run_bytes(
        &spec,
        &[bytes(&[3i64, 0, 9, -1]), bytes(&table)],
        4 * 19 * 4,
        &options(),
    ));
    let want: Vec<f32> = [3, 0, 9, 9]
        .iter()
        .flat_map(|r| table[r * 19..(r + 1) * 19].to_vec())
        .collect();
    assert_eq!(got, want);
}

#[test]
fn transposes_and_indices() {
    let spec = loops(
        &[],
        &[F, F],
        vec![pointwise(
            &[9, 33],
            vec![read(0, &[1, 9], 0)],
            Expr::identity(F),
            write(1, &[33, 1]),
        )],
    );
    let x = random(9 * 33, 1);
    let got = run_f32(&spec, &[x.clone()], 9 * 33);
    assert!((0..9).all(|i| (0..33).all(|j| got[i * 33 + j] == x[j * 9 + i])));

    // arange along columns, as i64, and the upper triangle as bool.
    let mut e = Expr::new();
    let (i, j) = (
        e.push(ExprOp::Index(0), DType::Long),
        e.push(ExprOp::Index(1), DType::Long),
    );
    let y = e.binary(BinaryOp::Ge, j, i);
    let mut stage = pointwise(&[21], vec![], e.finish(y), write(0, &[21, 1]));
    stage.indices = vec![affine(&[1, 0], 0), affine(&[0, 1], 0)];
    let got = run_bytes(&loops(&[21], &[DType::Bool], vec![stage]), &[], 21 * 21, &options());
    assert!((0..21).all(|i| (0..21).all(|j| got[i * 21 + j] == u8::from(j >= i))));
}

#[test]
fn other_targets() {
    for cpu in ["x86-64", "x86-64-v3"] {
        let target = Target::new(cpu, "");
        let mut spec = loops(
            &[3],
            &[F, F],
            vec![pointwise(
                &[21],
                vec![read(0, &[21, 1], 0)],
                unary(UnaryOp::Tanh, F),
                write(1, &[21, 1]),
            )],
        );
        spec.lanes = target.vector().lanes;
        let x = random(63, 1);
        let got: Vec<f32> = values(&run_bytes(
            &spec,
            &[bytes(&x)],
            63 * 4,
            &BackendOptions {
                target,
                threads: 1,
                ..BackendOptions::default()
            },
        ));
        let want: Vec<f32> = x.iter().map(|v| v.tanh()).collect();
        assert_close(&got, &want, 1e-6, cpu);
    }
}
