//! Einstein summation: one letter per dimension; products are summed over the letters that the result does not have.

use frazil_ir::DType;
use frazil_runtime::args::Args;
use frazil_runtime::build::{Accumulation, ProgramBuilder};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::Form::Contraction;
use frazil_runtime::op::OpError;
use frazil_runtime::promote::{compute_dtype, promote_types};
use frazil_runtime::structured::{
    Access, Affine, Combine, Dims, Iteration, OutOfBounds, Program, Structured, TensorId, TensorShape,
};
use frazil_runtime::sym::Formula;

pub(super) const ENTRIES: &[Row] = &[("aten::einsum", Entry::program(Contraction, einsum))];

/// A label of a dimension: a letter of the equation, or a dimension of the ellipsis, counted from the back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Letter(char),
    Ellipsis(usize),
}

/// An operand of the equation, with one label per dimension.
struct Operand {
    tensor: TensorId,
    labels: Vec<Label>,
}

fn einsum(args: &Args<'_>) -> Result<Program, OpError> {
    let equation = args
        .opt_str("equation")?
        .ok_or_else(|| OpError::raised("einsum(): an equation is needed"))?;
    let tensors = args.tensors("tensors")?;
    let equation: String = equation.chars().filter(|c| *c != ' ').collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != tensors.len() {
        return Err(OpError::raised(format!(
            "einsum(): {} operands were provided, but the equation has {}",
            tensors.len(),
            terms.len()
        )));
    }
    let mut p = ProgramBuilder::new(args);
    let mut operands = Vec::new();
    for (term, t) in terms.iter().zip(&tensors) {
        let labels = labels_of(term, Some(t.rank()))?;
        operands.push(Operand { tensor: t.id, labels });
    }
    let extents = extents(&p, &operands)?;
    let output = match right {
        Some(right) => explicit_output(right, &extents)?,
        None => implicit_output(left, &extents),
    };
    // From the left, two at a time; a letter is summed away with the last operand that has it.
    let mut operands = operands.into_iter();
    let first = operands
        .next()
        .ok_or_else(|| OpError::raised("einsum(): must provide at least one operand"))?;
    let rest: Vec<Operand> = operands.collect();
    let mut current = first;
    for (i, next) in rest.iter().enumerate() {
        let later = &rest[i + 1..];
        let needed = |l: &Label| output.contains(l) || later.iter().any(|o| o.labels.contains(l));
        let mut kept: Vec<Label> = Vec::new();
        if later.is_empty() {
            kept.clone_from(&output);
        } else {
            let both = current.labels.iter().chain(&next.labels).filter(|l| needed(l));
            for &l in both {
                if !kept.contains(&l) {
                    kept.push(l);
                }
            }
        }
        current = multiplied(&mut p, &current, next, kept, &extents)?;
    }
    let out = if rest.is_empty() {
        summed(&mut p, &current, &output, &extents)?
    } else {
        current.tensor
    };
    p.finish(&[out])
}

/// Returns the labels of one term of the equation. An ellipsis stands for the remaining dimensions of `rank`.
fn labels_of(term: &str, rank: Option<usize>) -> Result<Vec<Label>, OpError> {
    let wrong = |c: char| {
        OpError::raised(format!(
            "einsum(): invalid subscript given in the equation string, subscripts must be in [a-zA-Z], found {c:?}"
        ))
    };
    let letters = |s: &str| -> Result<Vec<Label>, OpError> {
        let each = |c: char| {
            if c.is_ascii_alphabetic() {
                Ok(Label::Letter(c))
            } else {
                Err(wrong(c))
            }
        };
        s.chars().map(each).collect()
    };
    let Some((before, after)) = term.split_once("...") else {
        let labels = letters(term)?;
        return match rank {
            Some(rank) if rank != labels.len() => Err(OpError::raised(format!(
                "einsum(): the number of subscripts in the equation ({}) does not match the number of dimensions ({rank}) for an operand",
                labels.len()
            ))),
            _ => Ok(labels),
        };
    };
    let (before, after) = (letters(before)?, letters(after)?);
    let hidden = rank.unwrap_or(0).checked_sub(before.len() + after.len());
    let hidden = hidden.filter(|_| rank.is_some()).ok_or_else(|| {
        OpError::raised(
            "einsum(): the number of subscripts in the equation is more than the number of dimensions for an operand",
        )
    })?;
    let ellipsis = (0..hidden).rev().map(Label::Ellipsis);
    Ok(before.into_iter().chain(ellipsis).chain(after).collect())
}

/// Returns the extent of each label, in order of appearance. Dimensions of extent 1 broadcast.
fn extents(p: &ProgramBuilder, operands: &[Operand]) -> Result<Vec<(Label, i64)>, OpError> {
    let mut extents: Vec<(Label, i64)> = Vec::new();
    for o in operands {
        for (&label, &size) in o.labels.iter().zip(&p.sizes(o.tensor)) {
            match extents.iter_mut().find(|(l, _)| *l == label) {
                None => extents.push((label, size)),
                Some((_, known)) if *known == 1 => *known = size,
                Some((_, known)) if size == 1 || *known == size => {}
                Some((_, known)) => {
                    return Err(OpError::raised(format!(
                        "einsum(): a subscript has size {size} for an operand which does not broadcast with previously seen size {known}"
                    )));
                }
            }
        }
    }
    Ok(extents)
}

fn ellipsis(extents: &[(Label, i64)]) -> Vec<Label> {
    let depth = extents.iter().filter(|(l, _)| matches!(l, Label::Ellipsis(_))).count();
    (0..depth).rev().map(Label::Ellipsis).collect()
}

fn explicit_output(right: &str, extents: &[(Label, i64)]) -> Result<Vec<Label>, OpError> {
    let hidden = ellipsis(extents);
    let rank = right
        .contains("...")
        .then(|| right.replace("...", "").len() + hidden.len());
    let labels = labels_of(right, rank)?;
    for (i, l) in labels.iter().enumerate() {
        if labels[..i].contains(l) || !extents.iter().any(|(known, _)| known == l) {
            return Err(OpError::raised(
                "einsum(): output subscripts have to appear once in the output and in an operand",
            ));
        }
    }
    Ok(labels)
}

/// Returns the labels of the result of an equation without arrow: the ellipsis, then the letters that occur once, in
/// alphabetical order.
fn implicit_output(left: &str, extents: &[(Label, i64)]) -> Vec<Label> {
    let mut once: Vec<char> = left.chars().filter(char::is_ascii_alphabetic).collect();
    once.retain(|c| left.matches(*c).count() == 1);
    once.sort_unstable();
    ellipsis(extents)
        .into_iter()
        .chain(once.into_iter().map(Label::Letter))
        .collect()
}

/// Returns the access to the operand `o` in loops over `loops`. Equal labels of the operand select its diagonal.
fn access(p: &ProgramBuilder, o: &Operand, loops: &[Label]) -> Access {
    let place = |(label, &size): (&Label, &i64)| match loops.iter().position(|l| l == label) {
        Some(at) if size != 1 => Affine::index(loops.len(), at),
        _ => Affine::constant(loops.len(), 0),
    };
    Access {
        tensor: o.tensor,
        map: o.labels.iter().zip(&p.sizes(o.tensor)).map(place).collect(),
        out_of_bounds: OutOfBounds::Never,
    }
}

fn multiplied(
    p: &mut ProgramBuilder,
    a: &Operand,
    b: &Operand,
    kept: Vec<Label>,
    extents: &[(Label, i64)],
) -> Result<Operand, OpError> {
    let mut loops = kept.clone();
    for &l in a.labels.iter().chain(&b.labels) {
        if !loops.contains(&l) {
            loops.push(l);
        }
    }
    let extent = |l: &Label| extents.iter().find(|(known, _)| known == l).map_or(1, |e| e.1);
    // A label that only later operands have gets extent 1, and is broadcast by them.
    let own = |l: &Label| {
        if a.labels.contains(l) || b.labels.contains(l) {
            extent(l)
        } else {
            1
        }
    };
    let domain: Dims = loops.iter().map(own).collect();
    // A label of one operand alone is summed before the product, as by `sum`, which converts integers to Long. Labels of both operands are summed by a matmul,
    // which keeps the dtype.
    let has = |o: &Operand, l: &Label| {
        let mut own = o.labels.iter().zip(p.sizes(o.tensor));
        own.any(|(label, size)| label == l && size != 1)
    };
    let contracted = &loops[kept.len()..];
    let summed = |o: &Operand, other: &Operand| {
        let dtype = p.dtype(o.tensor);
        let alone = contracted.iter().any(|l| has(o, l) && !has(other, l));
        let whole = !dtype.is_floating_point() && !dtype.is_complex();
        if alone && whole { DType::Long } else { dtype }
    };
    let (left, right) = (summed(a, b), summed(b, a));
    let is_product = contracted.iter().any(|l| has(a, l) && has(b, l));
    // PyTorch's products of nothing do not compare dtypes: their result is an empty tensor, or zeros, like the second operand.
    let is_empty = |o: &Operand| p.sizes(o.tensor).contains(&0);
    let dtype = match is_product {
        true if is_empty(a) || is_empty(b) => right,
        true if left == DType::Bool => return Err(OpError::raised("\"bmm\" not implemented for 'Bool'")),
        true if left != right => {
            return Err(OpError::raised(format!(
                "expected scalar type {} but found {}",
                left.type_name(),
                right.type_name()
            )));
        }
        true => left,
        false => promote_types(left, right),
    };
    let mut operands = [access(p, a, &loops), access(p, b, &loops)];
    if kept.len() != loops.len() {
        for operand in &mut operands {
            operand.tensor = p.cast(operand.tensor, dtype)?;
        }
    }
    let tensor = if kept.len() == loops.len() {
        outer(p, domain, operands)
    } else {
        p.contract(&domain, kept.len(), operands, (compute_dtype(dtype), dtype), None)
    };
    Ok(Operand { tensor, labels: kept })
}

/// Multiplies two operands that have no label to be summed over.
fn outer(p: &mut ProgramBuilder, domain: Dims, operands: [Access; 2]) -> TensorId {
    let (left, right) = (p.dtype(operands[0].tensor), p.dtype(operands[1].tensor));
    let dtype = promote_types(left, right);
    let compute = compute_dtype(dtype);
    p.compute(Structured {
        iterations: smallvec::smallvec![Iteration::Parallel; domain.len()],
        inputs: operands.into_iter().collect(),
        body: Formula::build(dtype, |f| {
            f.input(0, left).cast(compute) * f.input(1, right).cast(compute)
        }),
        combine: None,
        accumulate: dtype,
        finish: None,
        finish_inputs: Default::default(),
        output: TensorShape {
            dtype,
            sizes: domain.clone(),
        },
        domain,
    })
}

/// Evaluates a term with a single operand: diagonals, sums and transpositions.
fn summed(
    p: &mut ProgramBuilder,
    o: &Operand,
    output: &[Label],
    extents: &[(Label, i64)],
) -> Result<TensorId, OpError> {
    // Diagonals and order first, as a view; then the sum over what is not wanted.
    let mut order = output.to_vec();
    for &l in &o.labels {
        if !order.contains(&l) {
            order.push(l);
        }
    }
    let extent = |l: &Label| extents.iter().find(|(known, _)| known == l).map_or(1, |e| e.1);
    let sizes: Dims = order.iter().map(extent).collect();
    let map = access(p, o, &order).map.into_vec();
    let view = p.view(o.tensor, &sizes, map);
    if order.len() == output.len() {
        return Ok(view);
    }
    // As `sum`, which makes Long of integers.
    let dtype = match p.dtype(view) {
        d if d.is_floating_point() || d.is_complex() => d,
        _ => DType::Long,
    };
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate: compute_dtype(dtype),
        output: dtype,
    };
    let dims: Vec<usize> = (output.len()..order.len()).collect();
    p.reduce(
        &[view],
        &dims,
        false,
        accumulation,
        |_, x| x[0].cast(compute_dtype(dtype)),
        None,
    )
}
