//! Compiled functions as tables, and the loop that runs them.

use crate::pool::Pool;
use core::ffi::c_void;

/// A phase of a kernel: runs tasks `begin..end` on the buffers.
pub type KernelFn = unsafe extern "C" fn(buffers: *const *mut u8, begin: i64, end: i64);

/// A function that runs a range of tasks; `argument` is its context.
pub type TaskFn = unsafe extern "C" fn(argument: *mut c_void, begin: i64, end: i64);

/// The caller's parallel loop: calls `task(argument, begin, end)` on disjoint ranges that cover `0..tasks`, on any threads,
/// and returns when all have returned.
pub type ParallelFor = unsafe extern "C" fn(user: *mut c_void, tasks: i64, task: TaskFn, argument: *mut c_void);

/// The memory that a [`BufferRef`] points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BufferKind {
    /// The caller's input number `index`.
    Input = 0,
    /// The caller's output number `index`.
    Output = 1,
    /// The workspace.
    Workspace = 2,
    /// The constants.
    Constant = 3,
    /// Data that was computed when the code was loaded.
    Prepared = 4,
    /// The integers that calls pass to kernels.
    Numbers = 5,
    /// Constants that several functions of a process share: `offset` is the address. Libraries have none.
    Address = 6,
}

/// The location of a buffer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BufferRef {
    /// The kind of memory.
    pub kind: BufferKind,
    /// Index of the input or output.
    pub index: u32,
    /// Offset from its start, in bytes.
    pub offset: u64,
}

/// Number of kernel calls into which a step in reverse order is split on one thread. With enough calls, a run begins with the tasks that the previous run
/// executed last; with few, their overhead is negligible.
const TURNS: i64 = 8;

/// The order in which a thread runs the tasks of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Order {
    /// 1 if the last task runs first, else 0.
    pub backward: u32,
    /// 1 if the order is reversed in runs with an odd number, else 0.
    pub turns: u32,
}

impl Order {
    /// Returns whether the last task runs first in the run with this number.
    fn is_backward(self, run: u64) -> bool {
        (u64::from(self.backward) ^ (u64::from(self.turns) & run)) & 1 == 1
    }
}

/// One phase of one kernel call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Step {
    /// The function.
    pub kernel: KernelFn,
    /// Number of its tasks.
    pub tasks: i64,
    /// The order of its tasks.
    pub order: Order,
    /// The buffers of the kernel call.
    pub buffers: *const BufferRef,
    /// Number of its buffers.
    pub buffer_count: u64,
}

/// The memory of one run.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Memory {
    /// Address of each input.
    pub inputs: *const *const c_void,
    /// Address of each output.
    pub outputs: *const *mut c_void,
    /// The workspace.
    pub workspace: *mut u8,
    /// The constants.
    pub constants: *const u8,
    /// Data that was computed when the code was loaded. Only the steps that compute it write to it.
    pub prepared: *mut u8,
    /// Memory for the addresses of one step's buffers.
    pub addresses: *mut *mut u8,
    /// Number of the run. It increases by one with each run, at least modulo 2.
    pub run: u64,
    /// The integers that calls pass to kernels; may be null if there are none.
    pub numbers: *const i64,
}

/// The threads that run the tasks of a step.
pub enum Runner<'a> {
    /// The calling thread.
    Serial,
    /// The calling thread and a pool's.
    Pool(&'a Pool),
    /// The caller's parallel loop.
    Caller(ParallelFor, *mut c_void),
}

/// The argument of a [`TaskFn`].
struct Job {
    kernel: KernelFn,
    addresses: *const *mut u8,
}

/// Runs the tasks `begin..end` of the [`Job`] at `argument`.
unsafe extern "C" fn run_job(argument: *mut c_void, begin: i64, end: i64) {
    // SAFETY: `run` passes a live job, and waits for all tasks before it ends.
    unsafe {
        let job = &*argument.cast::<Job>();
        (job.kernel)(job.addresses, begin, end);
    }
}

/// Returns the address of `buffer`.
///
/// # Safety
/// `memory` has the memory that the buffer refers to, as for [`run`].
pub unsafe fn address(buffer: &BufferRef, memory: &Memory) -> *mut u8 {
    let (index, offset) = (buffer.index as usize, buffer.offset as usize);
    // SAFETY: by the contract of this function.
    unsafe {
        match buffer.kind {
            BufferKind::Input => (*memory.inputs.add(index)).cast_mut().cast::<u8>().add(offset),
            BufferKind::Output => (*memory.outputs.add(index)).cast::<u8>().add(offset),
            BufferKind::Workspace => memory.workspace.add(offset),
            BufferKind::Constant => memory.constants.cast_mut().add(offset),
            BufferKind::Prepared => memory.prepared.add(offset),
            BufferKind::Numbers => memory.numbers.cast_mut().cast::<u8>().add(offset),
            BufferKind::Address => core::ptr::with_exposed_provenance_mut(offset),
        }
    }
}

/// Runs `steps` in sequence.
///
/// # Safety
/// `memory` has all inputs and outputs that the steps refer to, each of its declared size; workspace, constants and
/// `addresses` have the sizes in the plan; workspace and constants are aligned to 64 bytes; the workspace and the outputs are
/// not accessed otherwise meanwhile.
pub unsafe fn run(steps: &[Step], memory: &Memory, runner: &Runner<'_>) {
    let _run = match runner {
        Runner::Pool(pool) => Some(pool.begin_run()),
        _ => None,
    };
    for step in steps {
        for i in 0..step.buffer_count as usize {
            // SAFETY: the step's table has `buffer_count` entries, and the memory is as the caller guarantees.
            unsafe {
                *memory.addresses.add(i) = address(&*step.buffers.add(i), memory);
            }
        }
        let backward = step.order.is_backward(memory.run);
        // SAFETY: the buffers are resolved as the kernel requires; tasks of a step are independent.
        unsafe {
            match runner {
                _ if step.tasks <= 1 => (step.kernel)(memory.addresses, 0, step.tasks),
                Runner::Serial if backward => {
                    let mut end = step.tasks;
                    while end > 0 {
                        let begin = (end - (step.tasks / TURNS).max(1)).max(0);
                        (step.kernel)(memory.addresses, begin, end);
                        end = begin;
                    }
                }
                Runner::Serial => (step.kernel)(memory.addresses, 0, step.tasks),
                Runner::Pool(pool) => {
                    let mut job = Job {
                        kernel: step.kernel,
                        addresses: memory.addresses,
                    };
                    pool.parallel_for(step.tasks, backward, run_job, (&raw mut job).cast());
                }
                Runner::Caller(parallel_for, user) => {
                    let mut job = Job {
                        kernel: step.kernel,
                        addresses: memory.addresses,
                    };
                    parallel_for(*user, step.tasks, run_job, (&raw mut job).cast());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends the tasks' numbers to the list in the first buffer, whose first element is its length.
    unsafe extern "C" fn note(buffers: *const *mut u8, begin: i64, end: i64) {
        // SAFETY: the test passes a list of five numbers, of which the first counts the others.
        let list = unsafe { &mut *(*buffers).cast::<[i64; 5]>() };
        for task in begin..end {
            list[0] += 1;
            list[list[0] as usize] = task;
        }
    }

    #[test]
    fn the_order_of_tasks_is_as_asked_and_turns_with_the_run() {
        let buffer = BufferRef {
            kind: BufferKind::Workspace,
            index: 0,
            offset: 0,
        };
        let tasks = |backward: u32, turns: u32, run: u64| {
            let step = Step {
                kernel: note,
                tasks: 4,
                order: Order { backward, turns },
                buffers: &raw const buffer,
                buffer_count: 1,
            };
            let (mut list, mut addresses) = ([0i64; 5], [core::ptr::null_mut(); 1]);
            let memory = Memory {
                inputs: core::ptr::null(),
                outputs: core::ptr::null(),
                workspace: list.as_mut_ptr().cast(),
                constants: core::ptr::null(),
                prepared: core::ptr::null_mut(),
                addresses: addresses.as_mut_ptr(),
                run,
                numbers: core::ptr::null(),
            };
            // SAFETY: the step refers to one buffer, the workspace, of the size that its kernel requires.
            unsafe { super::run(&[step], &memory, &Runner::Serial) };
            [list[1], list[2], list[3], list[4]]
        };
        let (up, down) = ([0, 1, 2, 3], [3, 2, 1, 0]);
        assert_eq!([0, 1].map(|run| tasks(0, 0, run)), [up, up]);
        assert_eq!([0, 1].map(|run| tasks(1, 0, run)), [down, down]);
        assert_eq!([0, 1, 2].map(|run| tasks(0, 1, run)), [up, down, up]);
        assert_eq!([0, 1, u64::MAX].map(|run| tasks(1, 1, run)), [down, up, up]);
    }
}
