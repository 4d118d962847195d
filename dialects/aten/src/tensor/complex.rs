//! Complex numbers and their parts.
//!
//! Programs support real tensors only, for which most of these operators are the identity. The kernels here implement complex ones for the interpreter. `conj`
//! and `imag` of a conjugate are views with conjugate and negative bits ([`frazil_runtime::marks`]); a write through them changes the original.

use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::Tensor;
use frazil_runtime::args::Args;
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::call::{laid_out_as, run_as_program};
use frazil_runtime::element::ComplexDoubleElement;
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::layout::broadcast;
use frazil_runtime::marks::Marks;
use frazil_runtime::op::Form::{Pointwise, View};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::promote::{complex_of, compute_dtype, promote_types, real_of};
use frazil_runtime::structured::Program;
use num_complex::Complex64;

/// Entries of operators on complex tensors. Operators whose programs do not support complex tensors run kernels for them.
pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::real",
        Entry::program(View, itself)
            .eager(|c| on_complex(c, itself, |t| part_of(t, 0, t.marks().negative)))
            .returns_self(),
    ),
    (
        "aten::conj",
        Entry::program(View, itself)
            .eager(|c| on_complex(c, itself, |t| Ok(conjugated(t))))
            .returns_self(),
    ),
    (
        "aten::_conj",
        Entry::program(View, itself).eager(|c| on_complex(c, itself, |t| Ok(conjugated(t)))),
    ),
    (
        "aten::resolve_conj",
        Entry::program(View, itself)
            .eager(|c| resolved(c, |marks| marks.conjugate))
            .returns_self(),
    ),
    (
        "aten::resolve_neg",
        Entry::program(View, itself)
            .eager(|c| resolved(c, |marks| marks.negative))
            .returns_self(),
    ),
    (
        "aten::conj_physical",
        Entry::program(Pointwise, itself).eager(|c| on_complex(c, itself, |t| mapped(t, |z| z.conj()))),
    ),
    (
        "aten::_conj_physical",
        Entry::program(Pointwise, |a| {
            let x = real(a)?;
            let mut p = ProgramBuilder::new(a);
            let out = p.map(&[x.id], x.dtype(), |_, x| x[0])?;
            p.finish(&[out])
        })
        .eager(|c| one(mapped(&c.tensor(0)?, |z| z.conj())?)),
    ),
    (
        "aten::mH",
        Entry::program(View, transposed)
            .eager(|c| on_complex(c, transposed, conjugate_transposed))
            .returns_self()
            .aliases(&[("aten::adjoint", AliasUse::Compiled)]),
    ),
    (
        "aten::matrix_H",
        Entry::program(View, |a| {
            let rank = a.tensor("self")?.rank();
            if rank != 2 && rank != 0 {
                return Err(OpError::raised(format!(
                    "tensor.H is only supported on matrices (2-D tensors). Got {rank}-D tensor."
                )));
            }
            transposed(a)
        })
        .eager(|c| on_complex(c, transposed, conjugate_transposed))
        .returns_self(),
    ),
    (
        "aten::angle",
        Entry::program(Pointwise, angle)
            .eager(|c| {
                let angles = |t: &Tensor| -> Result<Tensor, OpError> {
                    let wide = mapped(t, |z| Complex64::new(z.arg(), 0.0))?;
                    Ok(wide.to_dtype(real_of(t.dtype()))?)
                };
                on_complex(c, angle, angles)
            })
            .layout(ResultLayout::Elementwise),
    ),
    (
        "aten::isreal",
        Entry::program(Pointwise, is_real).eager(|c| {
            let without_imaginary = |t: &Tensor| -> Result<Tensor, OpError> {
                let imaginary = mapped(t, |z| Complex64::new(f64::from(u8::from(z.im == 0.0)), 0.0))?;
                Ok(imaginary.to_dtype(DType::Bool)?)
            };
            on_complex(c, is_real, without_imaginary)
        }),
    ),
    (
        "aten::conj_physical_",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            if t.dtype().is_complex() {
                t.copy_(&mapped(&t, |z| z.conj())?)?;
            }
            one(c.arg(0).clone())
        }),
    ),
    ("aten::imag", Entry::kernel(imaginary)),
    (
        "aten::_neg_view",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            // PyTorch raises this when it reads the elements; here the view is refused.
            if t.dtype() == DType::Bool && t.numel() > 0 {
                return Err(OpError::raised("\"neg_cpu\" not implemented for 'Bool'"));
            }
            one(t.with_marks(t.marks().negated()))
        }),
    ),
    ("aten::is_conj", Entry::kernel(|c| one(c.tensor(0)?.marks().conjugate))),
    ("aten::is_neg", Entry::kernel(|c| one(c.tensor(0)?.marks().negative))),
    (
        "aten::view_as_real",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            if !t.dtype().is_complex() {
                return Err(OpError::raised("view_as_real is only supported for complex tensors"));
            }
            if t.marks().conjugate {
                return Err(OpError::raised(
                    "view_as_real has no view of a conjugate: resolve_conj gives a copy that has one",
                ));
            }
            let (sizes, strides) = (t.sizes().iter().copied(), t.strides().iter().map(|s| 2 * s));
            let (sizes, strides): (Vec<i64>, Vec<i64>) = (sizes.chain([2]).collect(), strides.chain([1]).collect());
            let view = t.reinterpret(real_of(t.dtype()), &sizes, &strides, 2 * t.offset())?;
            one(view.with_marks(t.marks()))
        }),
    ),
    ("aten::view_as_complex", Entry::kernel(view_as_complex)),
    ("aten::complex", Entry::kernel(|c| joined(c, Complex64::new))),
    ("aten::polar", Entry::kernel(|c| joined(c, Complex64::from_polar))),
];

fn real(args: &Args<'_>) -> Result<frazil_runtime::args::TensorArg, OpError> {
    let x = args.tensor("self")?;
    if x.dtype().is_complex() {
        return Err(OpError::Unsupported("complex numbers in programs".into()));
    }
    Ok(x)
}

fn itself(args: &Args<'_>) -> Result<Program, OpError> {
    let x = real(args)?;
    ProgramBuilder::new(args).finish(&[x.id])
}

fn transposed(args: &Args<'_>) -> Result<Program, OpError> {
    real(args)?;
    super::views::last_two(args)
}

fn on_complex(
    call: &Call<'_>,
    program: frazil_runtime::op::ProgramFn,
    complex: impl Fn(&Tensor) -> Result<Tensor, OpError>,
) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    if t.dtype().is_complex() {
        one(complex(&t)?)
    } else {
        run_as_program(call, program)
    }
}

/// Computes the angle of real numbers: π for negative ones, 0 for others.
fn angle(args: &Args<'_>) -> Result<Program, OpError> {
    let x = real(args)?;
    let dtype = if x.dtype().is_floating_point() {
        x.dtype()
    } else {
        DType::Float
    };
    let compute = compute_dtype(dtype);
    let mut p = ProgramBuilder::new(args);
    let out = p.map(&[x.id], dtype, |_, x| {
        let x = x[0].cast(compute);
        let angle = x.lt(0.0).select(x.constant(std::f64::consts::PI), 0.0);
        x.is_nan().select(x, angle)
    })?;
    p.finish(&[out])
}

fn is_real(args: &Args<'_>) -> Result<Program, OpError> {
    let x = real(args)?;
    let mut p = ProgramBuilder::new(args);
    let out = p.fill(DType::Bool, x.sizes(), true.into())?;
    p.finish(&[out])
}

/// Returns a complex tensor with `f` applied to each element, with the same dtype and strides.
pub(super) fn mapped(t: &Tensor, f: impl Fn(Complex64) -> Complex64) -> Result<Tensor, OpError> {
    let numbers: Vec<Complex64> = t.to_dtype(DType::ComplexDouble)?.to_vec();
    let numbers: Vec<Complex64> = numbers.into_iter().map(f).collect();
    let out = Tensor::from_elements::<ComplexDoubleElement>(&numbers, t.sizes())?.to_dtype(t.dtype())?;
    Ok(laid_out_as(&out, std::slice::from_ref(t))?)
}

/// Returns the conjugate of `t` as a view.
fn conjugated(t: &Tensor) -> Tensor {
    t.with_marks(t.marks().conjugated())
}

/// Returns the tensor itself if `marked` returns false for its conjugate and negative bits, otherwise a copy without these bits.
fn resolved(call: &Call<'_>, marked: fn(Marks) -> bool) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    if marked(t.marks()) {
        one(t.resolved()?)
    } else {
        one(call.arg(0).clone())
    }
}

/// Returns a view of the real (0) or imaginary (1) parts of `t`, negated if `negative`.
fn part_of(t: &Tensor, which: i64, negative: bool) -> Result<Tensor, OpError> {
    let strides: Vec<i64> = t.strides().iter().map(|s| 2 * s).collect();
    let part = t.reinterpret(real_of(t.dtype()), t.sizes(), &strides, 2 * t.offset() + which)?;
    Ok(part.with_marks(Marks {
        conjugate: false,
        negative,
    }))
}

fn imaginary(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    if !t.dtype().is_complex() {
        return Err(OpError::raised(
            "imag is not implemented for tensors with non-complex dtypes.",
        ));
    }
    one(part_of(&t, 1, t.marks().negative != t.marks().conjugate)?)
}

fn conjugate_transposed(t: &Tensor) -> Result<Tensor, OpError> {
    let (mut sizes, mut strides) = (t.sizes().to_vec(), t.strides().to_vec());
    let rank = t.dim();
    if rank == 0 {
        return Ok(conjugated(t));
    }
    if rank < 2 {
        return Err(OpError::raised(
            "tensor.mH is only supported on matrices or batches of matrices.",
        ));
    }
    sizes.swap(rank - 1, rank - 2);
    strides.swap(rank - 1, rank - 2);
    Ok(conjugated(&t.as_strided(&sizes, &strides, t.offset())?))
}

/// Implements `view_as_complex`: pairs along the last dimension become complex numbers, in the same memory.
fn view_as_complex(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    if !matches!(t.dtype(), DType::Half | DType::Float | DType::Double) {
        return Err(OpError::raised(format!(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
            t.dtype().type_name()
        )));
    }
    let ([sizes @ .., 2], [strides @ .., 1]) = (t.sizes(), t.strides()) else {
        return Err(OpError::raised(
            "Tensor must have a last dimension of size 2 and stride 1",
        ));
    };
    if t.offset() % 2 != 0 || strides.iter().any(|s| s % 2 != 0) {
        return Err(OpError::raised("Tensor must have strides and an offset divisible by 2"));
    }
    let strides: Vec<i64> = strides.iter().map(|s| s / 2).collect();
    let view = t.reinterpret(complex_of(t.dtype()), sizes, &strides, t.offset() / 2)?;
    one(view.with_marks(t.marks()))
}

/// Returns complex numbers that `join` computes from the elements of two real tensors, which broadcast.
fn joined(call: &Call<'_>, join: fn(f64, f64) -> Complex64) -> Result<Results, OpError> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    let dtype = promote_types(a.dtype(), b.dtype());
    if a.dtype() != b.dtype() || !matches!(dtype, DType::Half | DType::Float | DType::Double) {
        return Err(OpError::raised(
            "Expected both inputs to be Half, Float or Double tensors of one dtype",
        ));
    }
    let sizes =
        broadcast(a.sizes(), b.sizes()).ok_or_else(|| frazil_runtime::build::broadcast_error(a.sizes(), b.sizes()))?;
    let (x, y) = (a.expand(&sizes)?.to_f64_vec(), b.expand(&sizes)?.to_f64_vec());
    let numbers: Vec<Complex64> = x.into_iter().zip(y).map(|(x, y)| join(x, y)).collect();
    let out = Tensor::from_elements::<ComplexDoubleElement>(&numbers, &sizes)?.to_dtype(complex_of(dtype))?;
    one(laid_out_as(&out, &[a, b])?)
}
