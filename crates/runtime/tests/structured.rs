//! The evaluator's loop nests, fast paths included, against naive loops over the same data.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::eval::eval_structured;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, Number, UnaryOp};
use frazil_runtime::structured::{Access, Affine, Combine, Iteration, OutOfBounds, Structured, TensorId, TensorShape};

/// A deterministic tensor with small values of both signs.
fn tensor(sizes: &[i64], seed: i64) -> Tensor {
    let n = sizes.iter().product::<i64>();
    let value = |i: i64| (((i + seed) * 7919) % 23 - 11) as f32 / 8.0;
    Tensor::from_f32(&(0..n).map(value).collect::<Vec<_>>(), sizes).unwrap()
}

fn affine(coefficients: &[i64], offset: i64) -> Affine {
    Affine {
        coefficients: coefficients.into(),
        offset,
    }
}

fn access(tensor: u32, map: Vec<Affine>, out_of_bounds: OutOfBounds) -> Access {
    Access {
        tensor: TensorId::new(tensor as usize),
        map: map.into(),
        out_of_bounds,
    }
}

fn product(dtype: DType) -> Expr {
    let mut e = Expr::new();
    let (a, b) = (e.input(0, dtype), e.input(1, dtype));
    let (a, b) = (e.cast(a, DType::Float), e.cast(b, DType::Float));
    e.binary(BinaryOp::Mul, a, b);
    e
}

/// The value of `s` by its definition: one element at a time in f64. Bodies: a product of two inputs, or the one input.
fn naive(s: &Structured, tensors: &[Tensor]) -> Vec<f64> {
    let data: Vec<Vec<f64>> = tensors.iter().map(Tensor::to_f64_vec).collect();
    let parallel = s.parallel_rank();
    let read = |a: &Access, index: &[i64]| {
        let t = &tensors[a.tensor.index()];
        let mut at = 0;
        for (m, &size) in a.map.iter().zip(t.sizes()) {
            let c = m.at(index);
            if c < 0 || c >= size {
                return match a.out_of_bounds {
                    OutOfBounds::Value(n) => n.as_f64(),
                    OutOfBounds::Never => panic!("out of bounds"),
                };
            }
            at = at * size + c;
        }
        data[a.tensor.index()][at as usize]
    };
    let mut out = Vec::new();
    let total: i64 = s.domain[..parallel].iter().product();
    let folded: i64 = s.domain[parallel..].iter().product();
    for p in 0..total {
        let mut acc = match s.combine {
            Some(Combine::Max) => f64::NEG_INFINITY,
            _ => 0.0,
        };
        for r in 0..folded {
            let mut index = vec![0; s.domain.len()];
            let (mut p, mut r) = (p, r);
            for l in (0..parallel).rev() {
                index[l] = p % s.domain[l];
                p /= s.domain[l];
            }
            for l in (parallel..s.domain.len()).rev() {
                index[l] = r % s.domain[l];
                r /= s.domain[l];
            }
            let body: f64 = s.inputs.iter().map(|a| read(a, &index)).product();
            acc = if s.combine == Some(Combine::Max) {
                acc.max(body)
            } else {
                acc + body
            };
        }
        if let Some(bias) = s.finish_inputs.first() {
            let mut index = vec![0; s.domain.len()];
            let mut p = p;
            for l in (0..parallel).rev() {
                index[l] = p % s.domain[l];
                p /= s.domain[l];
            }
            acc += read(bias, &index);
        }
        out.push(acc);
    }
    out
}

fn check(s: &Structured, tensors: &[Tensor]) {
    let got = eval_structured(s, tensors).unwrap();
    assert_eq!(got.sizes(), s.output.sizes.as_slice());
    for (i, (a, b)) in got.to_f64_vec().iter().zip(naive(s, tensors)).enumerate() {
        assert!(
            (a - b).abs() <= 1e-4 * b.abs().max(1.0),
            "element {i}: {a} instead of {b}"
        );
    }
}

fn contraction(domain: &[i64], parallel: usize, inputs: Vec<Access>, dtype: DType) -> Structured {
    let kind = |l| {
        if l < parallel {
            Iteration::Parallel
        } else {
            Iteration::Reduction
        }
    };
    Structured {
        domain: domain.into(),
        iterations: (0..domain.len()).map(kind).collect(),
        inputs: inputs.into(),
        body: product(dtype),
        combine: Some(Combine::Add),
        accumulate: DType::Float,
        finish: None,
        finish_inputs: Default::default(),
        output: TensorShape {
            dtype: DType::Float,
            sizes: domain[..parallel].into(),
        },
    }
}

#[test]
fn matmuls_of_every_layout() {
    let (b, m, n, k) = (3, 5, 7, 11);
    let index = |l| Affine::index(4, l);
    let s = contraction(
        &[b, m, n, k],
        3,
        vec![
            access(0, vec![index(0), index(1), index(3)], OutOfBounds::Never),
            access(1, vec![index(0), index(3), index(2)], OutOfBounds::Never),
        ],
        DType::Float,
    );
    let (x, y) = (tensor(&[b, m, k], 1), tensor(&[b, k, n], 2));
    check(&s, &[x.clone(), y.clone()]);
    // The same product from transposed storage, and with an operand that is expanded over the batch.
    let xt = tensor(&[b, k, m], 3).as_strided(&[b, m, k], &[k * m, 1, m], 0).unwrap();
    let shared = tensor(&[k, n], 4).expand(&[b, k, n]).unwrap();
    check(&s, &[xt, shared]);
    let half = Structured {
        body: product(DType::Half),
        ..s
    };
    check(
        &half,
        &[x.to_dtype(DType::Half).unwrap(), y.to_dtype(DType::Half).unwrap()],
    );
}

#[test]
fn convolutions_with_groups_strides_dilation_and_padding() {
    let (n, g, ci, h, w) = (2, 2, 4, 9, 8);
    let windows = [(1, 1, 0, 1), (1, 1, 1, 3), (2, 1, 3, 3), (2, 2, 2, 3), (3, 1, 0, 2)];
    // Few output channels a group are multiplied in place, more of them behind packing.
    let cases = [1, 3, 8].into_iter().flat_map(|co| windows.map(|window| (co, window)));
    for (co, (stride, dilation, padding, kernel)) in cases {
        let out = |size: i64| (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
        // n g co oh ow | ci kh kw
        let domain = [n, g, co, out(h), out(w), ci, kernel, kernel];
        let index = |l| Affine::index(8, l);
        let spatial = |o: usize, k: usize| {
            let mut c = [0; 8];
            c[o] = stride;
            c[k] = dilation;
            affine(&c, -padding)
        };
        let mut s = contraction(
            &domain,
            5,
            vec![
                access(
                    0,
                    vec![index(0), index(1), index(5), spatial(3, 6), spatial(4, 7)],
                    OutOfBounds::Value(Number::Float(0.0)),
                ),
                access(
                    1,
                    vec![index(1), index(2), index(5), index(6), index(7)],
                    OutOfBounds::Never,
                ),
            ],
            DType::Float,
        );
        let x = tensor(&[n, g, ci, h, w], 5);
        let weight = tensor(&[g, co, ci, kernel, kernel], 6);
        check(&s, &[x.clone(), weight.clone()]);
        let mut finish = Expr::new();
        let (acc, bias) = (finish.input(0, DType::Float), finish.input(1, DType::Float));
        finish.binary(BinaryOp::Add, acc, bias);
        s.finish = Some(finish);
        s.finish_inputs
            .push(access(2, vec![index(1), index(2)], OutOfBounds::Never));
        check(&s, &[x, weight, tensor(&[g, co], 7)]);
    }
}

#[test]
fn padded_maxima_and_sums_in_both_schedules() {
    for (c, size) in [(1, 40), (40, 9)] {
        let window = |o: usize, k: usize| {
            let mut m = [0; 5];
            m[o] = 2;
            m[k] = 1;
            affine(&m, -1)
        };
        let out = size / 2;
        let mut s = contraction(
            &[c, out, out, 3, 3],
            3,
            vec![access(
                0,
                vec![Affine::index(5, 0), window(1, 3), window(2, 4)],
                OutOfBounds::Value(Number::Float(f64::NEG_INFINITY)),
            )],
            DType::Float,
        );
        s.body = Expr::identity(DType::Float);
        s.combine = Some(Combine::Max);
        check(&s, &[tensor(&[c, size, size], 8)]);
    }
    for (rows, columns) in [(3, 1000), (1000, 3), (700, 200)] {
        for along_columns in [true, false] {
            let (p, r) = if along_columns {
                (rows, columns)
            } else {
                (columns, rows)
            };
            let (first, second) = if along_columns { (0, 1) } else { (1, 0) };
            let map = vec![Affine::index(2, first), Affine::index(2, second)];
            let mut s = contraction(&[p, r], 1, vec![access(0, map, OutOfBounds::Never)], DType::Float);
            s.body = Expr::identity(DType::Float);
            check(&s, &[tensor(&[rows, columns], 9)]);
        }
    }
}

#[test]
fn an_argmax_is_two_nests() {
    // max along the rows, then the least coordinate where it stands.
    let t = tensor(&[4, 50], 10);
    let map = vec![Affine::index(2, 0), Affine::index(2, 1)];
    let mut s = contraction(&[4, 50], 1, vec![access(0, map, OutOfBounds::Never)], DType::Float);
    s.body = Expr::identity(DType::Float);
    s.combine = Some(Combine::Max);
    let max = eval_structured(&s, std::slice::from_ref(&t)).unwrap();
    s.inputs.push(access(1, vec![Affine::index(2, 0)], OutOfBounds::Never));
    let mut body = Expr::new();
    let (x, m) = (body.input(0, DType::Float), body.input(1, DType::Float));
    let here = body.binary(BinaryOp::Eq, x, m);
    let at = body.push(ExprOp::Index(1), DType::Long);
    let none = body.int(i64::MAX, DType::Long);
    body.select(here, at, none);
    s.body = body;
    s.combine = Some(Combine::Min);
    s.accumulate = DType::Long;
    s.output.dtype = DType::Long;
    let got = eval_structured(&s, &[t.clone(), max]).unwrap();
    let rows = t.to_f64_vec();
    for (row, &at) in rows.chunks(50).zip(&got.to_i64_vec()) {
        let best = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(at, row.iter().position(|&x| x == best).unwrap() as i64);
    }
}

#[test]
fn pointwise_over_permuted_and_broadcast_operands() {
    let x = tensor(&[6, 5, 700], 11)
        .as_strided(&[5, 6, 700], &[700, 3500, 1], 0)
        .unwrap();
    let y = tensor(&[6, 1], 12);
    let index = |l| Affine::index(3, l);
    let s = Structured {
        domain: [5, 6, 700].as_slice().into(),
        iterations: [Iteration::Parallel; 3].into_iter().collect(),
        inputs: vec![
            access(0, vec![index(0), index(1), index(2)], OutOfBounds::Never),
            access(1, vec![index(1), Affine::constant(3, 0)], OutOfBounds::Never),
        ]
        .into(),
        body: product(DType::Float),
        combine: None,
        accumulate: DType::Float,
        finish: None,
        finish_inputs: Default::default(),
        output: TensorShape {
            dtype: DType::Float,
            sizes: [5, 6, 700].as_slice().into(),
        },
    };
    check(&s, &[x, y]);
}

#[test]
fn malformed_nests_are_errors() {
    let x = tensor(&[4], 13);
    let mut body = Expr::new();
    let a = body.input(0, DType::Float);
    body.unary(UnaryOp::Neg, a);
    let good = Structured {
        domain: [4].as_slice().into(),
        iterations: [Iteration::Parallel].into_iter().collect(),
        inputs: vec![access(0, vec![Affine::index(1, 0)], OutOfBounds::Never)].into(),
        body,
        combine: None,
        accumulate: DType::Float,
        finish: None,
        finish_inputs: Default::default(),
        output: TensorShape {
            dtype: DType::Float,
            sizes: [4].as_slice().into(),
        },
    };
    assert!(eval_structured(&good, std::slice::from_ref(&x)).is_ok());
    let mut leaves = good.clone();
    leaves.inputs[0].map[0].offset = 1;
    assert!(eval_structured(&leaves, std::slice::from_ref(&x)).is_err());
    let mut wrong_dtype = good.clone();
    wrong_dtype.body = Expr::identity(DType::Long);
    assert!(eval_structured(&wrong_dtype, std::slice::from_ref(&x)).is_err());
    let mut missing = good.clone();
    missing.inputs[0].tensor = TensorId::new(7);
    assert!(eval_structured(&missing, std::slice::from_ref(&x)).is_err());
    let mut no_combine = good;
    no_combine.iterations[0] = Iteration::Reduction;
    assert!(eval_structured(&no_combine, &[x]).is_err());
}
