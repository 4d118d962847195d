//! The functions of vectors against those of f64: over all of f32, at their ends, and in full and partial vectors.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::type_complexity,
    clippy::cloned_ref_to_slice_refs,
    clippy::print_stdout,
    reason = "tests may fail loudly, their tables name functions, and what was measured is worth seeing"
)]

use crate::common;
use common::{options, run_on};
use frazil_codegen::BackendOptions;
use frazil_ir::DType;
use frazil_planner::kernel::{KernelSpec, Loops, Place, Read, Stage, Write};
use frazil_planner::target::Target;
use frazil_runtime::expr::{BinaryOp, Expr, UnaryOp};
use frazil_runtime::structured::{Affine, Dims};

/// The host's vectors, and narrower ones where the host has them.
fn targets() -> Vec<BackendOptions> {
    let mut all = vec![options()];
    if options().target.vector().lanes > 8 {
        all.push(BackendOptions {
            target: Target::new("x86-64-v3", ""),
            ..options()
        });
    }
    all
}

/// What native code for `options` makes of `body`, element by element.
fn map(body: &Expr, inputs: &[Vec<f32>], options: &BackendOptions) -> Vec<f32> {
    let n = inputs[0].len();
    let at = || Affine {
        coefficients: Dims::from_slice(&[1]),
        offset: 0,
    };
    let reads = (0..inputs.len()).map(|i| Read::new(Place::Argument(i as u32), at()));
    let output = Write {
        place: Place::Argument(inputs.len() as u32),
        index: at(),
    };
    let stage = Stage {
        accumulate: DType::Float,
        ..Stage::pointwise(Dims::from_slice(&[n as i64]), reads.collect(), body.clone(), output)
    };
    let spec = Loops {
        outer: Dims::new(),
        arguments: vec![DType::Float; inputs.len() + 1],
        locals: Vec::new(),
        stages: vec![stage],
        lanes: options.target.vector().lanes,
    };
    run_on(&KernelSpec::from(spec), inputs, vec![0.5; n], options.clone())
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

/// Floats of every exponent and sign, NaN, and the boundaries between the ranges of piecewise functions.
fn everywhere(step: usize) -> Vec<f32> {
    let mut x: Vec<f32> = (0..=u32::MAX).step_by(step).map(f32::from_bits).collect();
    x.extend(ENDS);
    x.extend(ENDS.map(|v| -v));
    // Near multiples of π/2, where the sine and its kin are small.
    x.extend((0..2000).map(|n| (f64::from(n * n) * std::f64::consts::FRAC_PI_2) as f32));
    x.extend((0..4000).map(|n| (n - 2000) as f32 * 0.006));
    x.extend((-20..21).map(|n| 2f32.powi(n)));
    x.extend((-37..39).map(|n| format!("1e{n}").parse::<f32>().unwrap()));
    x
}

const ENDS: [f32; 46] = [
    0.0,
    1.0,
    2.0,
    0.5,
    0.25,
    3.0,
    1e-40,
    1e-45,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::INFINITY,
    f32::NAN,
    f32::EPSILON,
    1.0 - f32::EPSILON,
    1.0 + f32::EPSILON,
    0.062_5,
    std::f32::consts::FRAC_1_SQRT_2,
    std::f32::consts::SQRT_2,
    2.5,
    3.9,
    9.2,
    10.05,
    10.2,
    17.0,
    18.0,
    88.5,
    88.9,
    89.3,
    89.5,
    87.5,
    103.0,
    104.1,
    126.5,
    127.5,
    128.0,
    149.0,
    151.0,
    1024.0,
    32_768.0,
    32_770.0,
    65_536.0,
    // The multiple of π/2 that is nearest to a number of f32, and others that are near.
    16_367_173.0 * 4_722_366_500_000_000_000_000.0,
    4.171_098_4e8,
    1e20,
    3e30,
    1.605_303_9e9,
];

/// How many units in the last place of `want`, rounded to f32, `got` is away from it; 0 for the same NaN, infinity or zero.
fn distance(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if got.is_nan() || rounded.is_nan() || rounded.is_infinite() || got.is_infinite() {
        let same = got == rounded || got.is_nan() && rounded.is_nan();
        // The largest number stands next to infinity.
        let next = got.abs() == f32::MAX && rounded.is_infinite() || rounded.abs() == f32::MAX && got.is_infinite();
        return if same {
            0.0
        } else if next {
            1.0
        } else {
            f64::INFINITY
        };
    }
    if rounded == 0.0 && got == 0.0 {
        return if rounded.is_sign_negative() == got.is_sign_negative() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let exponent = want.abs().log2().floor().max(-126.0);
    (f64::from(got) - want).abs() / (exponent - 23.0).exp2()
}

/// The error function by its series, and by the continued fraction of its complement; and the complement.
fn erf(x: f64) -> (f64, f64) {
    let a = x.abs();
    if a == 0.0 {
        return (x, 1.0);
    }
    if a < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..100 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        let erf = sum * std::f64::consts::FRAC_2_SQRT_PI;
        return (erf, 1.0 - erf);
    }
    let fraction = (1..200).rev().fold(0.0, |f, k| f64::from(k) / 2.0 / (a + f));
    let rest = if a > 30.0 {
        0.0
    } else {
        (-a * a).exp() / std::f64::consts::PI.sqrt() / (a + fraction)
    };
    (x.signum() * (1.0 - rest), if x < 0.0 { 2.0 - rest } else { rest })
}

#[test]
fn functions_of_one_number() {
    let cases: [(UnaryOp, fn(f64) -> f64, f64); 21] = [
        (UnaryOp::Exp, f64::exp, 1.5),
        (UnaryOp::Exp2, f64::exp2, 1.5),
        (UnaryOp::Expm1, f64::exp_m1, 2.0),
        (UnaryOp::Log, f64::ln, 1.5),
        (UnaryOp::Log2, f64::log2, 2.5),
        (UnaryOp::Log10, f64::log10, 1.5),
        (UnaryOp::Log1p, f64::ln_1p, 2.0),
        (UnaryOp::Sin, f64::sin, 2.0),
        (UnaryOp::Cos, f64::cos, 2.0),
        (UnaryOp::Tan, f64::tan, 2.5),
        (UnaryOp::Asin, f64::asin, 2.0),
        (UnaryOp::Acos, f64::acos, 2.0),
        (UnaryOp::Atan, f64::atan, 2.0),
        (UnaryOp::Sinh, f64::sinh, 2.0),
        (UnaryOp::Cosh, f64::cosh, 2.0),
        (UnaryOp::Tanh, f64::tanh, 4.0),
        (UnaryOp::Asinh, f64::asinh, 1.0),
        (UnaryOp::Acosh, f64::acosh, 1.0),
        (UnaryOp::Atanh, f64::atanh, 1.0),
        (UnaryOp::Erf, |x| erf(x).0, 3.0),
        (UnaryOp::Erfc, |x| erf(x).1, 1.0),
    ];
    let x = everywhere(40_009);
    for options in targets() {
        for (op, f, most) in cases {
            let got = map(&unary(op), &[x.clone()], &options);
            worst(
                &format!("{op:?}"),
                &got,
                |i| (f(f64::from(x[i])), format!("{:e}", x[i])),
                most,
            );
        }
    }
}

/// Fails with the worst place if it is more than `most` units away; `want` gives what should be there and says where that is.
fn worst(name: &str, got: &[f32], want: impl Fn(usize) -> (f64, String), most: f64) {
    let distances = got.iter().enumerate().map(|(i, &g)| (distance(g, want(i).0), i));
    let (far, i) = distances.fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a });
    let (should, place) = want(i);
    println!("{name}: {far:.2} units at {place}");
    assert!(
        far <= most,
        "{name}({place}) = {:e}, should be {should:e}: {far} units, {most} are allowed",
        got[i]
    );
}

/// Each of `a` with each of `b`.
fn pairs(a: &[f32], b: &[f32]) -> [Vec<f32>; 2] {
    let all = a.iter().flat_map(|&x| b.iter().map(move |&y| (x, y)));
    let (x, y): (Vec<f32>, Vec<f32>) = all.unzip();
    [x, y]
}

#[test]
fn functions_of_two_numbers() {
    let cases: [(BinaryOp, fn(f64, f64) -> f64, f64); 4] = [
        (BinaryOp::Pow, f64::powf, 1.0),
        (BinaryOp::Atan2, f64::atan2, 2.0),
        (BinaryOp::Hypot, f64::hypot, 1.5),
        (BinaryOp::Fmod, |x, y| x % y, 0.0),
    ];
    let some = everywhere(9_000_011);
    let some = &some[..some.len() - 6000];
    let near: Vec<f32> = (0..500).map(|n| 0.004 + n as f32 * 0.013).collect();
    let exponents: Vec<f32> = (-300..300).map(|n| n as f32 * 0.25).collect();
    let [mut x, mut y] = pairs(some, some);
    for (a, b) in [(&near, &exponents), (&exponents, &near)] {
        let [p, q] = pairs(a, b);
        x.extend(p);
        y.extend(q);
    }
    for options in targets() {
        for (op, f, most) in cases {
            let got = map(&binary(op), &[x.clone(), y.clone()], &options);
            let want = |i: usize| (f(x[i].into(), y[i].into()), format!("{:e}, {:e}", x[i], y[i]));
            worst(&format!("{op:?}"), &got, want, most);
        }
    }
}

#[test]
fn whole_results_are_exact() {
    for options in targets() {
        let (powers, exponents): (Vec<f32>, Vec<f32>) = (-37..=38)
            .map(|n| (format!("1e{n}").parse::<f32>().unwrap(), n as f32))
            .unzip();
        let got = map(&unary(UnaryOp::Log10), &[powers], &options);
        assert_eq!(got, exponents);
        let (powers, exponents): (Vec<f32>, Vec<f32>) = (-149..=127).map(|n| (2f64.powi(n) as f32, n as f32)).unzip();
        assert_eq!(map(&unary(UnaryOp::Log2), &[powers.clone()], &options), exponents);
        let twos = vec![2.0; exponents.len()];
        assert_eq!(map(&binary(BinaryOp::Pow), &[twos, exponents], &options), powers);
        let whole: Vec<f32> = (-200..200).map(|n| n as f32).collect();
        let cubes: Vec<f32> = whole.iter().map(|x| x * x * x).collect();
        assert_eq!(
            map(&binary(BinaryOp::Pow), &[whole.clone(), vec![3.0; 400]], &options),
            cubes
        );
        let roots: Vec<f32> = whole.iter().map(|x| x.abs()).collect();
        let squares: Vec<f32> = whole.iter().map(|x| x * x).collect();
        assert_eq!(map(&binary(BinaryOp::Pow), &[squares, vec![0.5; 400]], &options), roots);
    }
}

/// A lane's result is the same beside numbers that take the long way.
#[test]
fn neighbours_do_not_matter() {
    let x: Vec<f32> = (0..64).map(|n| n as f32 * 0.37 + 0.1).collect();
    let mut mixed = x.clone();
    for i in (0..64).step_by(5) {
        mixed[i] = [1e10, -1e-40, f32::INFINITY, -3.0][i % 4];
    }
    let ops = [
        UnaryOp::Sin,
        UnaryOp::Cos,
        UnaryOp::Tan,
        UnaryOp::Log,
        UnaryOp::Log10,
        UnaryOp::Log1p,
    ];
    for options in targets() {
        for op in ops {
            let (alone, beside) = (
                map(&unary(op), &[x.clone()], &options),
                map(&unary(op), &[mixed.clone()], &options),
            );
            for i in (0..64).filter(|i| i % 5 != 0) {
                assert_eq!(alone[i].to_bits(), beside[i].to_bits(), "{op:?}({})", x[i]);
            }
        }
        let two = vec![2.5; 64];
        for op in [BinaryOp::Pow, BinaryOp::Fmod, BinaryOp::Hypot] {
            let alone = map(&binary(op), &[x.clone(), two.clone()], &options);
            let beside = map(&binary(op), &[mixed.clone(), two.clone()], &options);
            for i in (0..64).filter(|i| i % 5 != 0) {
                assert_eq!(alone[i].to_bits(), beside[i].to_bits(), "{op:?}({})", x[i]);
            }
        }
    }
}
