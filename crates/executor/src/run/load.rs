//! Loads packages into this process: links code and prepares weights.

use super::pools::Pools;
use super::profile::CallInfo;
use crate::error::LoadError;
use crate::link::{Code as MachineCode, LinkError, Linker};
use crate::memory::{Constants, Pages, release};
use crate::package::{Contents, Package, Weights};
use crate::program::{Buffer, Call, KernelId, Port, phase_name};
use frazil_rt::{BufferKind, BufferRef, KernelFn, Memory, Order, Runner, Step};
use frazil_tensor_ir::call::RuntimeCall;
use std::sync::Arc;

/// Options of loading and running.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Threads that a run uses, the caller's included.
    pub threads: usize,
    /// The threads' pools, which all code that is loaded with clones of these options shares.
    pub pools: Pools,
    /// The linker for objects that [`Image`](crate::link::Image) cannot load; without one, such objects are refused.
    pub linker: Option<Linker>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            threads: 1,
            pools: Pools::default(),
            linker: None,
        }
    }
}

/// The code and the constants, which instances share.
pub(super) struct Code {
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    pub(super) workspace_bytes: usize,
    pub(super) constants: Constants,
    /// The results of the preparation.
    pub(super) prepared: Constants,
    pub(super) most_buffers: usize,
    pub(super) steps: Vec<Step>,
    /// The call of the plan that each step belongs to.
    pub(super) call_of: Vec<usize>,
    /// Descriptions of the calls, for profiles.
    pub(super) infos: Vec<CallInfo>,
    /// Runtime calls between the steps, in order.
    pub(super) runtime_calls: Vec<RuntimeCallStep>,
    /// Messages of the exceptions; see [`Plan::checks`].
    pub(super) checks: Vec<String>,
    /// The buffers that `steps` point to.
    pub(super) buffers: Box<[BufferRef]>,
    /// The integers that calls pass to kernels.
    pub(super) numbers: Box<[i64]>,
    /// Constants of other functions that `steps` read.
    pub(super) shared: Vec<Constants>,
    /// The code that `steps` call.
    pub(super) _machine_code: Symbols,
}

/// A runtime call between steps.
pub(super) struct RuntimeCallStep {
    /// Runs once this many steps have run.
    pub(super) after: usize,
    /// Number of the call in the plan.
    pub(super) number: usize,
    pub(super) call: Arc<RuntimeCall>,
    /// The indices in [`Code::buffers`] of the call's buffers: inputs, then results.
    pub(super) buffers: std::ops::Range<usize>,
}

// SAFETY: the pointers in `steps` lead to `buffers` and to code, both immutable.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

/// A compiled function: its code and constants, in memory once for all instances. Clones share them.
#[derive(Clone)]
pub struct LoadedCode {
    pub(super) code: Arc<Code>,
    pub(super) pools: Pools,
    pub(super) threads: usize,
}

impl LoadedCode {
    /// Returns the number of bytes that only this function uses: its steps, and its constants if it takes others from earlier functions. An estimate.
    pub fn own_bytes(&self) -> usize {
        let code = &*self.code;
        let texts: usize = code.infos.iter().map(CallInfo::bytes_in_memory).sum();
        let tables = size_of_val(&*code.steps) + size_of_val(&*code.buffers) + size_of_val(&*code.numbers);
        let constants = match code.shared.is_empty() {
            // They are those that later functions take.
            true => 0,
            false => code.constants.len() + code.prepared.len(),
        };
        texts + tables + constants
    }

    /// Returns the constants, and the results of the preparation.
    pub fn constants(&self) -> (&Constants, &Constants) {
        (&self.code.constants, &self.code.prepared)
    }

    /// Links the code of `package`, which has been validated.
    pub(crate) fn new(package: Package, options: &RunOptions) -> Result<LoadedCode, LoadError> {
        let Package {
            contents,
            objects,
            linked,
            constants,
            weights,
            shared,
            runtime_calls: calls,
        } = package;
        let machine_code = Symbols::load(&objects, linked, options)?;
        let pool = options.pools.take(options.threads)?;
        release::before_running(contents.bytes_beside_ports(constants.len()));
        let prepared = match weights {
            Weights::Prepared(prepared) => prepared,
            Weights::Sources(sources) => prepare(&contents, sources, &machine_code, &pool.runner())?,
        };
        // Packed now, where they are not, and not in the first run.
        let _ = constants.bytes();
        let Linked {
            steps,
            call_of,
            runtime_calls,
            buffers,
            numbers,
        } = link(&contents, &contents.calls, &shared, &calls, &machine_code)?;
        let code = Code {
            inputs: contents.inputs,
            outputs: contents.outputs,
            workspace_bytes: contents.workspace_bytes,
            constants,
            prepared,
            most_buffers: most_buffers(&contents.calls),
            steps,
            call_of,
            infos: contents.infos,
            runtime_calls,
            checks: contents.checks,
            buffers,
            numbers,
            shared,
            _machine_code: machine_code,
        };
        Ok(LoadedCode {
            code: Arc::new(code),
            pools: options.pools.clone(),
            threads: options.threads,
        })
    }
}

impl Package {
    /// Links the code into this process, for instances to be made of it.
    ///
    /// # Errors
    /// As [`Package::load`].
    pub fn link(self, options: &RunOptions) -> Result<LoadedCode, LoadError> {
        self.validate()?;
        LoadedCode::new(self, options)
    }

    /// Returns the package with prepacked weights, which [`Package::load`] would otherwise compute in each process.
    ///
    /// # Errors
    /// As [`Package::load`].
    pub fn prepared(mut self, options: &RunOptions) -> Result<Package, LoadError> {
        self.validate()?;
        if let Weights::Sources(sources) = self.weights {
            let code = Symbols::load(&self.objects, self.linked.clone(), options)?;
            let prepared = {
                let threads = options.pools.take(options.threads)?;
                prepare(&self.contents, sources, &code, &threads.runner())?
            };
            self.weights = Weights::Prepared(prepared);
            self.contents.preparation.0.clear();
        }
        Ok(self)
    }
}

/// The code of a package, in memory.
pub(super) struct Symbols {
    own: MachineCode,
    /// The code of kernels that had been loaded before, by the kernel's number.
    linked: Vec<Option<Arc<MachineCode>>>,
}

impl Symbols {
    fn load(
        objects: &[Vec<u8>],
        linked: Vec<Option<Arc<MachineCode>>>,
        options: &RunOptions,
    ) -> Result<Symbols, LinkError> {
        let own = MachineCode::load(objects, options.linker)?;
        Ok(Symbols { own, linked })
    }

    /// Returns the address of `symbol`, which belongs to kernel number `kernel`.
    fn lookup(&self, kernel: KernelId, symbol: &str) -> Result<usize, LinkError> {
        match self.linked.get(kernel as usize) {
            Some(Some(code)) => code.lookup(symbol),
            _ => self.own.lookup(symbol),
        }
    }
}

/// Returns the location of `buffer`. The index of one in shared constants has been validated.
fn buffer_ref(buffer: Buffer, shared: &[Constants]) -> BufferRef {
    let (kind, index, offset) = match buffer {
        Buffer::Input { index, offset } => (BufferKind::Input, index, offset),
        Buffer::Output { index, offset } => (BufferKind::Output, index, offset),
        Buffer::Workspace { offset } => (BufferKind::Workspace, 0, offset),
        Buffer::Constant { offset } => (BufferKind::Constant, 0, offset),
        Buffer::Prepared { offset } => (BufferKind::Prepared, 0, offset),
        Buffer::Shared { index, offset } => {
            let start = shared[index as usize].bytes().as_ptr().expose_provenance();
            (BufferKind::Address, 0, start as u64 + offset)
        }
    };
    BufferRef { kind, index, offset }
}

/// Returns the maximum number of addresses that one call passes: those of its buffers, and the one of its integers.
fn most_buffers(calls: &[Call]) -> usize {
    calls.iter().map(|c| c.buffers.len() + 1).max().unwrap_or(0)
}

/// The steps of calls, in the representation of the runtime.
struct Linked {
    steps: Vec<Step>,
    /// See [`Code`] for the fields of the same names.
    call_of: Vec<usize>,
    runtime_calls: Vec<RuntimeCallStep>,
    buffers: Box<[BufferRef]>,
    numbers: Box<[i64]>,
}

/// Returns `calls` as steps that run the code in `machine_code`.
fn link(
    contents: &Contents,
    calls: &[Call],
    shared: &[Constants],
    runtime_calls: &[Arc<RuntimeCall>],
    machine_code: &Symbols,
) -> Result<Linked, LoadError> {
    let numbers: Box<[i64]> = contents.kernels.iter().flat_map(|k| &k.numbers).copied().collect();
    // The numbers of a kernel follow the buffers of its calls.
    let starts = contents.kernels.iter().scan(0, |next, kernel| {
        let first = *next;
        *next += kernel.numbers.len();
        Some(first)
    });
    let starts: Vec<usize> = starts.collect();
    let with_numbers = |call: &Call| {
        let kernel = call.kernel as usize;
        let start = (!contents.kernels[kernel].numbers.is_empty()).then(|| BufferRef {
            kind: BufferKind::Numbers,
            index: 0,
            offset: (starts[kernel] * size_of::<i64>()) as u64,
        });
        let buffers = call.buffers.iter().map(|b| buffer_ref(*b, shared));
        buffers.chain(start).collect::<Vec<BufferRef>>()
    };
    let tables: Vec<Vec<BufferRef>> = calls.iter().map(with_numbers).collect();
    let buffers: Box<[BufferRef]> = tables.iter().flatten().copied().collect();
    let (mut steps, mut call_steps, mut call_of) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = 0;
    for (number, call) in calls.iter().enumerate() {
        let kernel = &contents.kernels[call.kernel as usize];
        let count = tables[number].len();
        if let Some(runtime_call) = kernel.runtime_call {
            call_steps.push(RuntimeCallStep {
                after: steps.len(),
                number,
                call: runtime_calls[runtime_call as usize].clone(),
                buffers: first..first + call.buffers.len(),
            });
        }
        for (phase, &tasks) in kernel.phases.iter().enumerate() {
            let address = machine_code.lookup(call.kernel, &phase_name(&kernel.symbol, phase))?;
            // SAFETY: the emitter gives every phase this signature.
            let kernel = unsafe { std::mem::transmute::<usize, KernelFn>(address) };
            let table = buffers[first..].as_ptr();
            call_of.push(number);
            steps.push(Step {
                kernel,
                tasks,
                order: Order {
                    backward: call.order.backward.into(),
                    turns: call.order.turns.into(),
                },
                buffers: table,
                buffer_count: count as u64,
            });
        }
        first += count;
    }
    Ok(Linked {
        steps,
        call_of,
        runtime_calls: call_steps,
        buffers,
        numbers,
    })
}

/// Runs the preparation; `sources` are not needed any more afterwards.
fn prepare(
    contents: &Contents,
    sources: Constants,
    machine_code: &Symbols,
    runner: &Runner<'_>,
) -> Result<Constants, LoadError> {
    let (calls, bytes) = &contents.preparation;
    let mut prepared = Pages::new(*bytes)?;
    let linked = link(contents, calls, &[], &[], machine_code)?;
    let mut addresses = vec![0usize; most_buffers(calls)];
    let memory = Memory {
        inputs: std::ptr::null(),
        outputs: std::ptr::null(),
        workspace: std::ptr::null_mut(),
        constants: sources.bytes().as_ptr(),
        prepared: prepared.bytes_mut().as_mut_ptr(),
        addresses: addresses.as_mut_ptr().cast(),
        run: 0,
        numbers: linked.numbers.as_ptr(),
    };
    // SAFETY: validation has made sure that only the sources and what is prepared are mentioned; both have the sizes and the alignment that
    // the plan asks for.
    unsafe { frazil_rt::run(&linked.steps, &memory, runner) };
    Ok(Constants::of(prepared, *bytes))
}
