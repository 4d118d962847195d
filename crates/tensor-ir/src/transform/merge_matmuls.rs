//! Matmuls with one weight, whose left operands are equally spaced parts of one tensor, become one matmul, which reads the weight once. Such matmuls
//! come from loops over a sequence whose steps multiply parts of the input.

use crate::extent::Extent;
use crate::graph::{TensorGraph, TensorOp};
use crate::ir::TensorIr;
use crate::pattern::{Class, classify};
use crate::transform::materialize_views::materialize_views;
use crate::transform::rewriter::{Rewriter, Transformation};
use crate::transform::simplify::resolve_all;
use frazil_pass_manager::{AnyPass, PassInfo};
use frazil_runtime::expr::{Expr, ExprOp};
use frazil_runtime::structured::{Affine, Iteration, Structured, TensorId, ViewKind, ViewMap};

/// The declaration of the pass.
pub static INFO: PassInfo<TensorIr> = PassInfo {
    name: "merge-matmuls",
    summary: "Makes matmuls of equally spaced parts of one tensor with one constant weight a single matmul.",
    before: "func @f(%0: float32[2, 1, 3]) {
  %1 = constant float32[3, 2] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
  %2 = nest float32[1, 2] for d0 < 1, d1 < 2 reduce d2 < 3 {
    x0 = %0[0, d0, d2]
    x1 = %1[d2, d1]
    v0: float32 = x0
    v1: float32 = x1
    v2: float32 = mul v0, v1
    combine add float32
  }
  %3 = nest float32[1, 2] for d0 < 1, d1 < 2 reduce d2 < 3 {
    x0 = %0[1, d0, d2]
    x1 = %1[d2, d1]
    v0: float32 = x0
    v1: float32 = x1
    v2: float32 = mul v0, v1
    combine add float32
  }
  %4 = nest float32[1, 2] for d0 < 1, d1 < 2 {
    x0 = %2[d0, d1]
    x1 = %3[d0, d1]
    v0: float32 = x0
    v1: float32 = x1
    v2: float32 = add v0, v1
  }
  return %4
}
",
    after: "func @f(%0: float32[2, 1, 3]) {
  %1 = constant float32[3, 2] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
  %2 = nest float32[2, 1, 2] for d0 < 2, d1 < 1, d2 < 2 reduce d3 < 3 {
    x0 = %0[d0, d1, d3]
    x1 = %1[d3, d2]
    v0: float32 = x0
    v1: float32 = x1
    v2: float32 = mul v0, v1
    combine add float32
  }
  %4 = nest float32[1, 2] for d0 < 1, d1 < 2 {
    x0 = %2[0, d0, d1]
    x1 = %2[1, d0, d1]
    v0: float32 = x0
    v1: float32 = x1
    v2: float32 = add v0, v1
  }
  return %4
}
",
    options: &[],
    build: |_| AnyPass::graph(Transformation(merge_matmuls)),
};

/// Minimum number of rows for which a matmul is not merged: a larger matmul would not be faster.
const MANY_ROWS: i64 = 32;

/// Matmuls that differ only in the positions from which they read their left operand.
struct Group {
    /// The nest, with the offsets of its read of the left operand cleared.
    nest: Structured,
    /// The index of the read of the left operand.
    read: usize,
    /// Each matmul, with the offsets of its read of the left operand.
    members: Vec<(TensorId, Vec<i64>)>,
}

/// Merges all such matmuls of the graph.
pub fn merge_matmuls(graph: &mut Rewriter<'_>) {
    let mut groups: Vec<Group> = Vec::new();
    for id in graph.live_ids() {
        let Some((nest, read, offsets)) = candidate(graph, id) else {
            continue;
        };
        let fits = |g: &&mut Group| {
            let first = g.members.first();
            g.read == read && g.nest == nest && first.is_some_and(|(first, _)| graph.has_same_extents(*first, id))
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.members.push((id, offsets)),
            None => groups.push(Group {
                nest,
                read,
                members: vec![(id, offsets)],
            }),
        }
    }
    let mut merged = false;
    for group in groups {
        merged |= merge(graph, &group).is_some();
    }
    if merged {
        for id in graph.live_ids() {
            if let TensorOp::Nest(before) = graph.op(id).clone() {
                let mut s = before.clone();
                resolve_all(graph, &mut s);
                if s != before
                    && let Some(graph) = graph.rewrite("nests simplified")
                {
                    graph.set_op(id, TensorOp::Nest(s));
                }
            }
        }
        materialize_views(graph);
    }
}

/// Returns the nest of a matmul of few rows with a constant, with the offsets of its read of the left operand cleared; the index of that read; and
/// the offsets.
fn candidate(graph: &TensorGraph, id: TensorId) -> Option<(Structured, usize, Vec<i64>)> {
    let s = graph.as_nest(id)?;
    let uses_index = |e: &Expr| e.nodes().iter().any(|n| matches!(n.op, ExprOp::Index(_)));
    s.combine?;
    let Class::Gemm(g) = classify(graph, s) else {
        return None;
    };
    let few = g.m < MANY_ROWS && g.batch.is_empty();
    if !few || graph.as_constant(g.b.tensor).is_none() || s.finish.as_ref().is_some_and(uses_index) {
        return None;
    }
    let read = s.inputs.iter().position(|a| a.tensor == g.a.tensor)?;
    let mut nest = s.clone();
    let offsets = nest.inputs[read].map.iter_mut().map(|m| std::mem::take(&mut m.offset));
    let offsets = offsets.collect();
    Some((nest, read, offsets))
}

/// Makes the first matmul of the group compute all of them, and the others views of its result.
fn merge(graph: &mut Rewriter<'_>, group: &Group) -> Option<()> {
    let mut members = group.members.clone();
    let first_id = members.first()?.0;
    members.sort_by(|a, b| a.1.cmp(&b.1));
    let [(_, start), (_, second), ..] = members.as_slice() else {
        return None;
    };
    let step: Vec<i64> = second.iter().zip(start).map(|(b, a)| b - a).collect();
    let spaced = |i: usize, offsets: &[i64]| {
        let expected = start.iter().zip(&step).map(|(a, s)| a + s * i as i64);
        offsets.iter().copied().eq(expected)
    };
    if !members.iter().enumerate().all(|(i, m)| spaced(i, &m.1)) || has_other_readers(graph, first_id) {
        return None;
    }
    let mut all = group.nest.clone();
    let count = members.len() as i64;
    let maps = all
        .inputs
        .iter_mut()
        .chain(&mut all.finish_inputs)
        .flat_map(|a| &mut a.map);
    maps.for_each(|m| m.coefficients.insert(0, 0));
    let slice = &mut all.inputs[group.read].map;
    for ((map, &offset), &step) in slice.iter_mut().zip(start).zip(&step) {
        (map.offset, map.coefficients[0]) = (offset, step);
    }
    all.domain.insert(0, count);
    all.iterations.insert(0, Iteration::Parallel);
    all.output.sizes.insert(0, count);
    if !matches!(classify(graph, &all), Class::Gemm(_)) {
        return None;
    }
    let shape = graph.shape(first_id).clone();
    let first_part = members.iter().position(|(id, _)| *id == first_id)?;
    let extents = graph.extents(first_id).map(|extents| {
        let first = Extent::from(count);
        std::iter::once(first).chain(extents.iter().cloned()).collect()
    });
    let graph = graph.rewrite("matmuls merged")?;
    // Readers of the first matmul's result have to read a part of it before its shape changes.
    read_part(graph, first_id, first_part as i64);
    graph.set_shape_and_op(first_id, all.output.clone(), TensorOp::Nest(Box::new(all)));
    graph.set_extents(first_id, extents);
    for (i, &(id, _)) in members.iter().enumerate() {
        if id == first_id {
            continue;
        }
        let rank = shape.sizes.len();
        let part = Affine::constant(rank, i as i64);
        let inner = (0..rank).map(|l| Affine::index(rank, l));
        let view = ViewMap {
            tensor: first_id,
            kind: ViewKind::Affine(std::iter::once(part).chain(inner).collect()),
            output: shape.clone(),
        };
        graph.set_op(id, TensorOp::View(view));
    }
    Some(())
}

/// Returns whether anything but a nest reads `id`.
fn has_other_readers(graph: &TensorGraph, id: TensorId) -> bool {
    graph.is_output(id) || graph.users(id).iter().any(|&user| graph.as_nest(user).is_none())
}

/// Makes every nest that reads `id` read part `part` of it, selected along a new first dimension.
fn read_part(graph: &mut TensorGraph, id: TensorId, part: i64) {
    for reader in graph.users(id).to_vec() {
        let TensorOp::Nest(mut nest) = graph.op(reader).clone() else {
            continue;
        };
        let rank = nest.domain.len();
        let accesses = nest.inputs.iter_mut().chain(&mut nest.finish_inputs);
        for access in accesses.filter(|access| access.tensor == id) {
            access.map.insert(0, Affine::constant(rank, part));
        }
        graph.set_op(reader, TensorOp::Nest(nest));
    }
}
