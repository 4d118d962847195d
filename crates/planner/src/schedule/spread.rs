//! Work partitioning: kernels are divided among the threads of a run. Blockings are chosen for one thread or a few, with no more tasks than memory traffic
//! permits. If many threads would have no task, the tasks are made smaller.
//!
//! Only the sizes of tasks change, not the order in which the terms of a sum are added. So results are the same for any number of threads.

use crate::schedule::Schedule;
use crate::target::Machine;

/// Partitions the kernels of `schedule` for `threads` threads.
pub(crate) fn spread(schedule: &mut Schedule, threads: usize, machine: &Machine) {
    let threads = i64::try_from(threads).unwrap_or(i64::MAX);
    if threads < 2 {
        return;
    }
    for step in &mut schedule.steps {
        if let Some(spec) = step.spec.partitioned(threads, machine) {
            step.spec = spec;
        }
    }
}
