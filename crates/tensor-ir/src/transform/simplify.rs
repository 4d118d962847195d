//! Simplification: views become part of the reads that go through them, copies of whole tensors are removed, and equal reads of a nest become one.

use crate::affine::{as_loop, can_leave, compose, is_identity, linear, range, reach, stays_within};
use crate::graph::{TensorGraph, TensorOp};
use crate::ir::TensorIr;
use crate::pattern::{Class, classify};
use crate::transform::fold_constants::fold;
use crate::transform::rewriter::{Rewriter, Transformation};
use frazil_ir::TensorData;
use frazil_pass_manager::{AnyPass, PassInfo};
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp};
use frazil_runtime::structured::{
    Access, Affine, Combine, Iteration, OutOfBounds, Structured, TensorId, TensorShape, ViewKind, ViewMap,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// The declaration of the pass.
pub static INFO: PassInfo<TensorIr> = PassInfo {
    name: "simplify",
    summary: "Makes views part of the reads that go through them, removes copies and loops of extent 1, and folds constants.",
    before: "func @f(%0: float32[2, 3]) {
  %1 = view float32[3, 2] %0[d1, d0]
  %2 = nest float32[3, 2] for d0 < 3, d1 < 2 {
    x0 = %1[d0, d1]
    v0: float32 = x0
    v1: float32 = exp v0
  }
  return %2
}
",
    after: "func @f(%0: float32[2, 3]) {
  %2 = nest float32[3, 2] for d0 < 3, d1 < 2 {
    x0 = %0[d1, d0]
    v0: float32 = x0
    v1: float32 = exp v0
  }
  return %2
}
",
    options: &[],
    build: |_| AnyPass::graph(Transformation(simplify)),
};

/// Runs all simplifications once over the graph, operands first.
pub fn simplify(graph: &mut Rewriter<'_>) {
    for id in graph.live_ids() {
        if !graph.is_live(id) {
            continue;
        }
        simplify_node(graph, id);
        drop_unit_loops(graph, id);
        fold(graph, id);
    }
}

/// Gives a nest the sizes of the reshape that is its only user, if the reshape only removes dimensions of extent 1.
fn drop_unit_loops(graph: &mut Rewriter<'_>, id: TensorId) {
    let TensorOp::View(v) = graph.op(id) else { return };
    let (base, kind) = (v.tensor, &v.kind);
    let Some(s) = graph.as_nest(base) else { return };
    if *kind == ViewKind::Reshape
        && graph.use_count(base) == 1
        && v.output.sizes.len() < s.output.sizes.len()
        && let Some(mut reshaped) = with_unit_loops(s, &v.output.sizes)
    {
        reshaped.output = v.output.clone();
        let origins = graph.node(base).origins.clone();
        let Some(graph) = graph.rewrite("unit loops removed") else {
            return;
        };
        let own = graph.node(id).origins.iter().cloned();
        let origins = origins.into_iter().chain(own).collect();
        graph.set_op(id, TensorOp::Nest(Box::new(reshaped)));
        graph.set_origins(id, origins);
    }
}

/// Returns the nest with result sizes `sizes`, if they differ from its own only in extents of 1.
pub fn with_unit_loops(s: &Structured, sizes: &[i64]) -> Option<Structured> {
    let parallel = s.parallel_rank();
    let (old, reduction) = s.domain.split_at(parallel);
    let kept: Vec<usize> = (0..parallel).filter(|&l| old[l] != 1).collect();
    let new: Vec<usize> = (0..sizes.len()).filter(|&l| sizes[l] != 1).collect();
    let same = kept.len() == new.len() && kept.iter().zip(&new).all(|(&o, &n)| old[o] == sizes[n]);
    let uses_index = |e: &Expr| e.nodes().iter().any(|n| matches!(n.op, ExprOp::Index(_)));
    if !same || uses_index(&s.body) || s.finish.as_ref().is_some_and(uses_index) {
        return None;
    }
    let rank = sizes.len() + reduction.len();
    let renumber = |map: &Affine| {
        let mut out = Affine::constant(rank, map.offset);
        for (&o, &n) in kept.iter().zip(&new) {
            out.coefficients[n] = map.coefficients[o];
        }
        let tail = &map.coefficients[parallel..];
        out.coefficients[sizes.len()..].copy_from_slice(tail);
        out
    };
    let mut out = s.clone();
    out.domain = sizes.iter().chain(reduction).copied().collect();
    out.iterations = (0..rank)
        .map(|l| match l < sizes.len() {
            true => Iteration::Parallel,
            false => Iteration::Reduction,
        })
        .collect();
    for access in out.inputs.iter_mut().chain(&mut out.finish_inputs) {
        access.map = access.map.iter().map(renumber).collect();
    }
    Some(out)
}

/// Simplifies one tensor, whose operands are simplified already.
fn simplify_node(graph: &mut Rewriter<'_>, id: TensorId) {
    match graph.op(id) {
        TensorOp::Input(_)
        | TensorOp::Constant(_)
        | TensorOp::Gather(_)
        | TensorOp::Call(_)
        | TensorOp::CallResult { .. } => {}
        TensorOp::View(v) => {
            let base = v.tensor;
            let v = through_reshapes(graph, v.clone());
            let constant = graph.as_constant(v.tensor).and_then(|c| view_of_constant(c, &v));
            // A constant has its elements for the representatives only.
            if let Some(constant) = constant.filter(|_| graph.extents(id).is_none()) {
                if let Some(graph) = graph.rewrite("views folded") {
                    graph.set_op(id, TensorOp::Constant(Arc::new(constant)));
                }
            } else if is_noop(graph, &v) && graph.has_same_extents(id, v.tensor) {
                if let Some(graph) = graph.rewrite("copies removed") {
                    graph.replace_uses(id, v.tensor);
                }
            } else if v.tensor != base
                && let Some(graph) = graph.rewrite("views composed")
            {
                graph.set_op(id, TensorOp::View(v));
            }
        }
        TensorOp::Nest(before) => {
            let mut s = before.clone();
            drop_single_term(&mut s);
            finish_into_body(&mut s);
            resolve_keeping_windows(graph, &mut s);
            merge_equal_reads(&mut s);
            let source = copied_whole(graph, &s).filter(|&source| graph.has_same_extents(id, source));
            match source {
                Some(source) => {
                    if let Some(graph) = graph.rewrite("copies removed") {
                        graph.replace_uses(id, source);
                    }
                }
                None if graph.as_nest(id) == Some(&*s) => {}
                None => {
                    if let Some(graph) = graph.rewrite("nests simplified") {
                        graph.set_op(id, TensorOp::Nest(s));
                    }
                }
            }
        }
    }
}

/// Replaces a sum of a single product by the product, plus the zero that sums start with.
fn drop_single_term(s: &mut Structured) {
    let parallel = s.parallel_rank();
    let products = s
        .body
        .nodes()
        .last()
        .is_some_and(|n| matches!(n.op, ExprOp::Binary(BinaryOp::Mul, ..)));
    let uses_index = s.body.nodes().iter().any(|n| matches!(n.op, ExprOp::Index(_)));
    if s.combine != Some(Combine::Add) || !products || uses_index || s.domain[parallel..].iter().any(|&n| n != 1) {
        return;
    }
    let dtype = s
        .body
        .dtype()
        .filter(|d| d.is_floating_point() && !s.is_outer_product());
    if let Some(dtype) = dtype {
        let mut body = s.body.clone();
        let product = body.nodes().len() as u32 - 1;
        let zero = body.float(0.0, dtype);
        let sum = body.binary(BinaryOp::Add, product, zero);
        s.body = body.finish(sum);
    }
    s.combine = None;
    s.domain.truncate(parallel);
    s.iterations.truncate(parallel);
    for access in s.inputs.iter_mut().chain(&mut s.finish_inputs) {
        access
            .map
            .iter_mut()
            .for_each(|map| map.coefficients.truncate(parallel));
    }
}

/// Resolves as many views as possible. If that makes a convolution or a sliding window unrecognisable, resolves only as many as keep it, since a copy of
/// the view costs less.
fn resolve_keeping_windows(graph: &TensorGraph, s: &mut Structured) {
    let slides = |s: &Structured| match classify(graph, s) {
        Class::Conv(_) => true,
        Class::Pool(p) => p.slides(),
        _ => false,
    };
    if s.combine.is_none() {
        return resolve_all(graph, s);
    }
    let viewed = s.clone();
    let views = resolve_up_to(graph, s, usize::MAX);
    if views == 0 || slides(s) {
        return;
    }
    let partly = (0..views.min(MAX_VIEWS)).rev().map(|limit| {
        let mut partly = viewed.clone();
        resolve_up_to(graph, &mut partly, limit);
        partly
    });
    if let Some(best) = partly.into_iter().find(slides) {
        *s = best;
    }
}

/// Maximum number of nested views that are resolved one by one.
const MAX_VIEWS: usize = 4;

/// [`resolve`]s every read of the nest.
pub fn resolve_all(graph: &TensorGraph, s: &mut Structured) {
    let _ = resolve_up_to(graph, s, usize::MAX);
}

/// [`resolve`]s every read of the nest. Returns the largest number of views that became part of one read.
fn resolve_up_to(graph: &TensorGraph, s: &mut Structured, limit: usize) -> usize {
    let mut views = 0;
    let Structured {
        inputs,
        finish_inputs,
        domain,
        ..
    } = s;
    for access in inputs.iter_mut().chain(finish_inputs) {
        views = views.max(resolve(graph, access, domain, limit));
    }
    views
}

/// Rewrites `access` to read the tensor behind at most `limit` views, as long as its coordinates stay affine. Returns the number of these views.
fn resolve(graph: &TensorGraph, access: &mut Access, domain: &[i64], limit: usize) -> usize {
    let mut passed = 0;
    loop {
        if !can_leave(access, &graph.shape(access.tensor).sizes, domain) {
            access.out_of_bounds = OutOfBounds::Never;
        }
        let TensorOp::View(v) = graph.op(access.tensor) else {
            return passed;
        };
        if passed == limit {
            return passed;
        }
        let base = &graph.shape(v.tensor).sizes;
        let map = match &v.kind {
            ViewKind::Affine(map) => through_affine(map, access, &v.output.sizes, base, domain),
            ViewKind::Reshape => through_reshape(access, &v.output.sizes, base, domain),
        };
        let Some(map) = map.filter(|map| reach(map, base, domain).is_some()) else {
            return passed;
        };
        passed += 1;
        (access.tensor, access.map) = (v.tensor, map);
    }
}

type AccessMap = SmallVec<[Affine; 6]>;

fn through_affine(map: &[Affine], access: &Access, sizes: &[i64], base: &[i64], domain: &[i64]) -> Option<AccessMap> {
    if access.out_of_bounds != OutOfBounds::Never {
        // A coordinate outside of the view has to be outside of the base too, in a dimension of its own.
        for (d, (coordinate, &size)) in access.map.iter().zip(sizes).enumerate() {
            let same = || {
                map.iter()
                    .zip(base)
                    .any(|(m, &extent)| as_loop(m) == Some(d) && extent == size)
            };
            if !stays_within(coordinate, domain, size) && !same() {
                return None;
            }
        }
    }
    map.iter().map(|m| compose(m, &access.map, domain.len())).collect()
}

/// Returns the coordinates in a tensor of sizes `base` of the element that `access` reads in the reshape of this tensor to `sizes`.
fn through_reshape(access: &Access, sizes: &[i64], base: &[i64], domain: &[i64]) -> Option<AccessMap> {
    if base.iter().chain(sizes).any(|&n| n <= 0) {
        return None;
    }
    let rank = domain.len();
    let leaves = |d: usize| !stays_within(&access.map[d], domain, sizes[d]);
    let may_leave = access.out_of_bounds != OutOfBounds::Never;
    let mut out: AccessMap = base.iter().map(|_| Affine::constant(rank, 0)).collect();
    let (mut i, mut j) = (0, 0);
    loop {
        // The next range of dimensions with equal products, on both sides; dimensions of extent 1 belong to none.
        while j < sizes.len() && sizes[j] == 1 {
            if may_leave && leaves(j) {
                return None;
            }
            j += 1;
        }
        while i < base.len() && base[i] == 1 {
            i += 1;
        }
        if i == base.len() || j == sizes.len() {
            return (i == base.len() && j == sizes.len()).then_some(out);
        }
        let (from_i, from_j) = (i, j);
        let (mut p, mut q) = (base[i], sizes[j]);
        (i, j) = (i + 1, j + 1);
        while p != q {
            if p < q {
                p = p.checked_mul(*base.get(i)?)?;
                i += 1;
            } else {
                q = q.checked_mul(*sizes.get(j)?)?;
                j += 1;
            }
        }
        let single = i - from_i == 1 && j - from_j == 1;
        if may_leave && !single && (from_j..j).any(leaves) {
            return None;
        }
        let number = linear(&access.map[from_j..j], &sizes[from_j..j], rank);
        split(number, &base[from_i..i], domain, &mut out[from_i..i])?;
    }
}

/// Writes to `out` the coordinates, in dimensions of `sizes`, of the element with row-major index `number`; `None` if they are not affine.
fn split(mut number: Affine, sizes: &[i64], domain: &[i64], out: &mut [Affine]) -> Option<()> {
    for d in (1..sizes.len()).rev() {
        let size = sizes[d];
        let mut inner = Affine::constant(domain.len(), number.offset.rem_euclid(size));
        let mut outer = Affine::constant(domain.len(), number.offset.div_euclid(size));
        for (l, &c) in number.coefficients.iter().enumerate() {
            if c % size == 0 {
                outer.coefficients[l] = c / size;
            } else {
                inner.coefficients[l] = c;
            }
        }
        let (low, high) = range(&inner, domain);
        if low < 0 || high >= size {
            return None;
        }
        out[d] = inner;
        number = outer;
    }
    out[0] = number;
    Some(())
}

/// Composes a reshape of a reshape into a reshape of the original tensor. Other views are returned unchanged.
fn through_reshapes(graph: &TensorGraph, mut v: ViewMap) -> ViewMap {
    while v.kind == ViewKind::Reshape {
        match graph.op(v.tensor) {
            TensorOp::View(inner) if inner.kind == ViewKind::Reshape => v.tensor = inner.tensor,
            _ => break,
        }
    }
    v
}

fn is_noop(graph: &TensorGraph, v: &ViewMap) -> bool {
    let base = graph.shape(v.tensor);
    *base == v.output
        && match &v.kind {
            ViewKind::Reshape => true,
            ViewKind::Affine(map) => map
                .iter()
                .enumerate()
                .all(|(d, m)| as_loop(m) == Some(d) || (base.sizes[d] == 1 && m.offset == 0)),
        }
}

/// Returns the view of a constant as a constant over the same storage, if strides can express it.
fn view_of_constant(c: &TensorData, v: &ViewMap) -> Option<TensorData> {
    let sizes: frazil_ir::Shape = v.output.sizes.iter().copied().collect();
    match &v.kind {
        ViewKind::Reshape if c.is_contiguous() => {
            let strides = frazil_ir::contiguous_strides(&sizes);
            TensorData::new(c.dtype, sizes, strides, c.offset, c.storage.clone()).ok()
        }
        ViewKind::Reshape => TensorData::contiguous(c.dtype, &sizes, c.to_bytes().into_owned()).ok(),
        ViewKind::Affine(map) => {
            let by_dimension = Affine {
                coefficients: c.strides.iter().copied().collect(),
                offset: c.offset,
            };
            let at = compose(&by_dimension, map, sizes.len())?;
            let strides: frazil_ir::Shape = at.coefficients.iter().copied().collect();
            TensorData::new(c.dtype, sizes, strides, at.offset, c.storage.clone()).ok()
        }
    }
}

/// Appends the epilogue of a nest without a reduction to its body.
fn finish_into_body(s: &mut Structured) {
    if s.combine.is_some() {
        return;
    }
    let Some(finish) = s.finish.take() else { return };
    let inputs = s.inputs.len() as u32;
    let mut body = s.body.clone();
    if body.dtype().is_some_and(|d| d != s.accumulate) {
        body = converted(&body, s.accumulate);
    }
    s.body = finish.substitute(0, &body, |i| i, |i| i - 1 + inputs);
    let more = std::mem::take(&mut s.finish_inputs);
    s.inputs.extend(more);
}

/// Returns the operation with operand `i` replaced by `ids[i]`.
pub fn remap(op: ExprOp, ids: &[u32]) -> ExprOp {
    let at = |i: u32| ids[i as usize];
    match op {
        ExprOp::Unary(o, a) => ExprOp::Unary(o, at(a)),
        ExprOp::Binary(o, a, b) => ExprOp::Binary(o, at(a), at(b)),
        ExprOp::Fma(a, b, c) => ExprOp::Fma(at(a), at(b), at(c)),
        ExprOp::Select(a, b, c) => ExprOp::Select(at(a), at(b), at(c)),
        ExprOp::Cast(a) => ExprOp::Cast(at(a)),
        leaf @ (ExprOp::Input(_) | ExprOp::Const(_) | ExprOp::Index(_)) => leaf,
    }
}

/// Returns `body` with its result converted to `dtype`.
pub fn converted(body: &Expr, dtype: frazil_ir::DType) -> Expr {
    match body.dtype() {
        Some(d) if d != dtype => {
            let mut outer = Expr::new();
            let x = outer.input(0, d);
            let y = outer.cast(x, dtype);
            outer.finish(y).substitute(0, body, |i| i, |i| i)
        }
        _ => body.clone(),
    }
}

/// Merges equal reads of the nest, and removes unused ones.
pub fn merge_equal_reads(s: &mut Structured) {
    if let Some(merged) = merged(&s.inputs, &s.body, 0) {
        (s.inputs, s.body) = merged;
    }
    if let Some(finish) = &s.finish
        && let Some((inputs, finish)) = merged(&s.finish_inputs, finish, 1)
    {
        (s.finish_inputs, s.finish) = (inputs, Some(finish));
    }
}

/// Returns the used reads without duplicates, and `expr` with its inputs renumbered for them. `reads[0]` is input `first` of the expression; inputs before it
/// are unchanged. Returns `None` if all reads are used and differ.
fn merged<A: smallvec::Array<Item = Access>>(reads: &[Access], expr: &Expr, first: u32) -> Option<(SmallVec<A>, Expr)> {
    let used = |i: usize| expr.nodes().iter().any(|n| n.op == ExprOp::Input(i as u32 + first));
    let is_first = |i: usize| !reads[..i].contains(&reads[i]);
    if (0..reads.len()).all(|i| used(i) && is_first(i)) {
        return None;
    }
    let mut kept: SmallVec<A> = SmallVec::new();
    let mut renumbered = vec![0; reads.len()];
    for (i, read) in reads.iter().enumerate().filter(|&(i, _)| used(i)) {
        let at = kept.iter().position(|k| k == read).unwrap_or_else(|| {
            kept.push(read.clone());
            kept.len() - 1
        });
        renumbered[i] = at as u32 + first;
    }
    // Substituting an input that does not occur only renumbers the others.
    let absent = reads.len() as u32 + first;
    let rename = |i: u32| match i.checked_sub(first) {
        Some(i) => renumbered.get(i as usize).copied().unwrap_or(0),
        None => i,
    };
    Some((kept, expr.substitute(absent, &Expr::new(), |i| i, rename)))
}

/// Returns the tensor that the nest copies as a whole, if it does nothing else.
fn copied_whole(graph: &TensorGraph, s: &Structured) -> Option<TensorId> {
    let [access] = s.inputs.as_slice() else { return None };
    let [node] = s.body.nodes() else { return None };
    let same = s.combine.is_none()
        && node.op == ExprOp::Input(0)
        && *graph.shape(access.tensor) == s.output
        && !can_leave(access, &s.output.sizes, &s.domain)
        && is_identity(access, &s.output.sizes, &s.domain);
    same.then_some(access.tensor)
}

/// Returns the nest that copies tensor `id`, of shape `from`, and converts it to `to`'s dtype.
pub fn conversion(id: TensorId, from: &TensorShape, to: TensorShape) -> Structured {
    let rank = from.sizes.len();
    Structured {
        domain: from.sizes.clone(),
        iterations: smallvec::smallvec![Iteration::Parallel; rank],
        inputs: smallvec::smallvec![Access {
            tensor: id,
            map: (0..rank).map(|l| Affine::index(rank, l)).collect(),
            out_of_bounds: OutOfBounds::Never,
        }],
        body: converted(&Expr::identity(from.dtype), to.dtype),
        combine: None,
        accumulate: to.dtype,
        finish: None,
        finish_inputs: SmallVec::new(),
        output: to,
    }
}
