//! Row-wise fusion: reductions and pointwise nests with common outermost loops run as stages of one kernel, which keeps
//! one row of intermediate results at a time in scratch memory. Examples are softmax and the normalisations.

use crate::layout::Layouts;
use frazil_runtime::structured::{Access, Affine, Structured, TensorId};
use frazil_tensor_ir::affine::{as_loop, range};
use frazil_tensor_ir::graph::{TensorGraph, accesses};
use frazil_tensor_ir::pattern::Class;
use rustc_hash::FxHashMap;

/// Maximum scratch memory of a task, in bytes.
const MAX_LOCAL_BYTES: i64 = 32 << 10;
/// Minimum number of rows: with fewer, there are too few tasks for several threads. It does not apply to small results.
const MIN_TASKS: i64 = 4;
/// Maximum number of elements of a small result.
const SMALL: i64 = 1 << 14;

/// Nests that run as one kernel. The results of all but the last are read only by the other members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup {
    /// The nests in order.
    pub members: Vec<TensorId>,
    /// Number of leading loops that they share.
    pub outer: usize,
}

/// Finds the row groups among the plain nests of `graph`, by their last member.
pub fn find(graph: &TensorGraph, layouts: &Layouts) -> FxHashMap<TensorId, RowGroup> {
    let users = users(graph);
    let mut taken: Vec<bool> = vec![false; graph.len()];
    let mut groups = FxHashMap::default();
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

/// Returns the live readers of each tensor. `None` stands for the reader of an output.
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

/// Returns a producer whose result only the members read, and with which the members still have common loops.
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

/// Returns the number of leading loops that all members have in common: with equal extents, and each member reads the
/// others' results at its own indices. Returns `None` if there are too few tasks, or the rows do not fit the scratch
/// memory.
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

/// Returns the number of leading coordinates that are equal to the loop with the same index. For loops of extent 1,
/// coordinate 0 is equal.
fn identity_prefix(access: &Access, domain: &[i64]) -> usize {
    let same = |(i, m): &(usize, &Affine)| {
        as_loop(m) == Some(*i) || (domain.get(*i) == Some(&1) && range(m, domain) == (0, 0))
    };
    access.map.iter().enumerate().take_while(same).count()
}
