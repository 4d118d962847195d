//! Rows: folds and pointwise nests that share their outermost loops run as stages of one kernel, a row of intermediate
//! results at a time in scratch memory. Softmax and the normalisations are such.

use crate::layout::Layouts;
use frazil_runtime::structured::{Access, Affine, Structured, TensorId};
use frazil_tensor_ir::affine::{as_loop, range};
use frazil_tensor_ir::graph::{TensorGraph, accesses};
use frazil_tensor_ir::pattern::Class;
use std::collections::HashMap;

/// Most scratch memory of a kernel's task, in bytes.
const MAX_LOCAL_BYTES: i64 = 32 << 10;
/// Rows below which there are too few tasks for several threads, unless the whole result is small.
const MIN_TASKS: i64 = 4;
/// Elements of a small result.
const SMALL: i64 = 1 << 14;

/// Nests that run as one kernel. All but the last are read by the others only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup {
    /// The nests in order.
    pub members: Vec<TensorId>,
    /// Number of leading loops that they share.
    pub outer: usize,
}

/// Finds the row groups among the plain nests of `graph`, by their last member.
pub fn find(graph: &TensorGraph, layouts: &Layouts) -> HashMap<TensorId, RowGroup> {
    let users = users(graph);
    let mut taken: Vec<bool> = vec![false; graph.len()];
    let mut groups = HashMap::new();
    for last in graph.live_ids().into_iter().rev() {
        if taken[last.index()] || !may_join(graph, layouts, last) {
            continue;
        }
        let mut members = vec![last];
        while let Some(next) = next_member(graph, layouts, &users, &taken, &members) {
            members.push(next);
            members.sort_unstable();
        }
        if members.len() > 1
            && let Some(outer) = shared_loops(graph, &members)
        {
            members.iter().for_each(|&m| taken[m.index()] = true);
            groups.insert(last, RowGroup { members, outer });
        }
    }
    groups
}

/// The live readers of each tensor; an output has a reader that is no tensor.
fn users(graph: &TensorGraph) -> Vec<Vec<Option<TensorId>>> {
    let mut users = vec![Vec::new(); graph.len()];
    for id in graph.live_ids() {
        for operand in graph.operands(id) {
            users[operand.index()].push(Some(id));
        }
    }
    for &id in graph.outputs() {
        users[id.index()].push(None);
    }
    users
}

fn may_join(graph: &TensorGraph, layouts: &Layouts, id: TensorId) -> bool {
    let plain = !layouts.blocked.contains_key(&id) && !layouts.inside.contains_key(&id);
    let class = matches!(
        layouts.classes.get(&id),
        Some(Class::Pointwise | Class::General | Class::Pool(_))
    );
    plain && class && graph.as_nest(id).is_some_and(|s| s.parallel_rank() > 0)
}

/// A producer that only the members read and that leaves them common loops.
fn next_member(
    graph: &TensorGraph,
    layouts: &Layouts,
    users: &[Vec<Option<TensorId>>],
    taken: &[bool],
    members: &[TensorId],
) -> Option<TensorId> {
    let producers = members.iter().rev().flat_map(|&m| graph.operands(m).into_iter().rev());
    producers.into_iter().find(|&p| {
        let inner = || users[p.index()].iter().all(|u| u.is_some_and(|u| members.contains(&u)));
        let with = || {
            let mut all = members.to_vec();
            all.push(p);
            all.sort_unstable();
            shared_loops(graph, &all).is_some()
        };
        !members.contains(&p) && !taken[p.index()] && may_join(graph, layouts, p) && inner() && with()
    })
}

/// How many leading loops all members share: equal extents, and each reads the others' results at its own indices. `None`
/// when there are too few, or the rows do not fit the scratch memory.
fn shared_loops(graph: &TensorGraph, members: &[TensorId]) -> Option<usize> {
    let nests: Vec<&Structured> = members.iter().filter_map(|&m| graph.as_nest(m)).collect();
    let (last, _) = nests.split_last()?;
    let mut outer = last.parallel_rank();
    for s in &nests {
        // Rows are dimensions of the results.
        if s.domain[..s.parallel_rank()] != s.output.sizes[..] {
            return None;
        }
        let same = s.domain.iter().zip(&last.domain).take_while(|(a, b)| a == b).count();
        outer = outer.min(same).min(s.parallel_rank());
        for access in accesses(s).filter(|a| members.contains(&a.tensor)) {
            outer = outer.min(identity_prefix(access, &s.domain));
        }
    }
    let locals: i64 = nests[..nests.len() - 1]
        .iter()
        .map(|s| s.domain[outer..s.parallel_rank()].iter().product::<i64>() * s.output.dtype.size() as i64)
        .sum();
    let tasks: i64 = last.domain[..outer].iter().product();
    let enough = tasks >= MIN_TASKS || last.output.numel() <= SMALL;
    (enough && locals <= MAX_LOCAL_BYTES).then_some(outer)
}

/// How many leading coordinates are the loops of the same number; loops of extent 1 stand at 0 anyway.
fn identity_prefix(access: &Access, domain: &[i64]) -> usize {
    let same = |(i, m): &(usize, &Affine)| {
        as_loop(m) == Some(*i) || (domain.get(*i) == Some(&1) && range(m, domain) == (0, 0))
    };
    access.map.iter().enumerate().take_while(same).count()
}
