//! Memory planning of the workspace: the offset of each buffer, so that buffers with disjoint lifetimes share memory.

use crate::plan::{Buffer, align_up};
use crate::schedule::{Home, Schedule};
use tracing::debug;

/// The addresses of a schedule's buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Place of each buffer of the schedule.
    pub places: Vec<Buffer>,
    /// Size of the workspace in bytes.
    pub workspace_bytes: usize,
}

/// Buffers that use the same memory throughout, because a kernel overwrites the first with the second.
#[derive(Clone, Copy, Debug)]
struct Group {
    bytes: usize,
    first: usize,
    last: usize,
}

/// Places the buffers of `schedule`. A buffer is live from the first to the last step that uses it. Large buffers are placed first; each gets the smallest
/// sufficient gap between the placed buffers that are live at the same time. The result of a kernel is placed over an operand that is not used afterwards, if
/// the kernel allows that.
pub fn place(schedule: &Schedule) -> Placement {
    let (group_of, groups) = group(schedule);
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&g| (std::cmp::Reverse(groups[g].bytes), groups[g].first));
    let mut offsets = vec![0usize; groups.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut peak = 0;
    for g in order {
        let Group { bytes, first, last } = groups[g];
        let mut taken: Vec<(usize, usize)> = placed
            .iter()
            .filter(|&&o| groups[o].first <= last && first <= groups[o].last)
            .map(|&o| (offsets[o], offsets[o] + align_up(groups[o].bytes)))
            .collect();
        taken.sort_unstable();
        offsets[g] = best_gap(&taken, align_up(bytes));
        peak = peak.max(offsets[g] + align_up(bytes));
        placed.push(g);
    }
    debug!(buffers = groups.len(), peak, "workspace planned");
    let places = schedule.buffers.iter().enumerate().map(|(b, home)| match *home {
        Home::Input(index) => Buffer::Input { index, offset: 0 },
        Home::Output(index) => Buffer::Output { index, offset: 0 },
        Home::Constant(offset) => Buffer::Constant { offset },
        Home::Prepared(offset) => Buffer::Prepared { offset },
        Home::Shared { index, offset } => Buffer::Shared { index, offset },
        Home::Workspace { .. } => Buffer::Workspace {
            offset: group_of[b].map_or(0, |g| offsets[g] as u64),
        },
    });
    Placement {
        places: places.collect(),
        workspace_bytes: peak,
    }
}

/// Returns the start of the smallest gap of at least `bytes` between the sorted ranges `taken`; the end of the last range if there is none.
fn best_gap(taken: &[(usize, usize)], bytes: usize) -> usize {
    let mut best: Option<(usize, usize)> = None;
    let mut free_from = 0;
    for &(start, end) in taken {
        if start > free_from && start - free_from >= bytes {
            let gap = (start - free_from, free_from);
            best = Some(best.map_or(gap, |b| b.min(gap)));
        }
        free_from = free_from.max(end);
    }
    best.map_or(free_from, |(_, at)| at)
}

/// Returns the group of each workspace buffer that some step uses, and the groups.
fn group(schedule: &Schedule) -> (Vec<Option<usize>>, Vec<Group>) {
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; schedule.buffers.len()];
    for (i, step) in schedule.steps.iter().enumerate() {
        for slice in &step.buffers {
            let life = lives[slice.buffer as usize].get_or_insert((i, i));
            life.1 = i;
        }
    }
    let bytes = |b: usize| match schedule.buffers[b] {
        Home::Workspace { bytes } => Some(bytes),
        _ => None,
    };
    let mut group_of: Vec<Option<usize>> = vec![None; schedule.buffers.len()];
    let mut groups: Vec<Group> = Vec::new();
    for (i, step) in schedule.steps.iter().enumerate() {
        for slice in &step.buffers {
            let b = slice.buffer as usize;
            let (Some(bytes), Some((first, last))) = (bytes(b), lives[b]) else {
                continue;
            };
            if group_of[b].is_some() {
                continue;
            }
            // Joins the group of an operand that this very step is the last to read.
            let joined = step.buffers.iter().enumerate().find_map(|(operand, s)| {
                let o = s.buffer as usize;
                let g = group_of[o]?;
                let alone = step.buffers.iter().filter(|t| t.buffer == s.buffer).count() == 1;
                let written = step.buffers.get(step.output) == Some(slice);
                let fits = first == i && groups[g].last == i && groups[g].bytes == bytes;
                let whole = s.offset == 0 && slice.offset == 0;
                (o != b && alone && written && fits && whole && step.spec.may_alias_output(operand)).then_some(g)
            });
            match joined {
                Some(g) => {
                    groups[g].last = last;
                    group_of[b] = Some(g);
                }
                None => {
                    group_of[b] = Some(groups.len());
                    groups.push(Group { bytes, first, last });
                }
            }
        }
    }
    (group_of, groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{BlockedShape, KernelSpec, Reorder, ReorderDirection};
    use crate::schedule::Step;

    #[test]
    fn gaps_are_used_best_fit() {
        assert_eq!(best_gap(&[(0, 64), (256, 320), (384, 512)], 64), 320);
        assert_eq!(best_gap(&[(0, 64), (256, 320)], 128), 64);
        assert_eq!(best_gap(&[(64, 128)], 128), 128);
        assert_eq!(best_gap(&[], 128), 0);
    }

    #[test]
    fn a_chain_needs_two_buffers() {
        let spec = KernelSpec::from(Reorder {
            direction: ReorderDirection::ToBlocked,
            blocked: BlockedShape::dense(1, 16, 4, 4, 16),
        });
        let mut s = Schedule::default();
        let mut previous = s.buffer(Home::Input(0));
        for _ in 0..5 {
            let next = s.workspace(1024);
            s.steps.push(Step {
                spec: spec.clone(),
                buffers: vec![previous, next],
                output: 1,
                origins: Vec::new(),
            });
            previous = next;
        }
        let p = place(&s);
        assert_eq!(p.workspace_bytes, 2048);
        for step in &s.steps {
            assert_ne!(
                p.places[step.buffers[0].buffer as usize],
                p.places[step.buffers[1].buffer as usize]
            );
        }
    }
}
