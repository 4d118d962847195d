//! Plans to compiled functions in this process.

use crate::cache::ObjectCache;
use crate::native::jit::Jit;
use crate::native::{CompileError, own_pages};
#[cfg(feature = "llvm")]
use crate::native::{compile_kernel, host_target};
use crate::output::{self, NewBytes};
use crate::package::{Contents, Package, Weights};
use crate::pages::Pages;
#[cfg(feature = "llvm")]
use crate::plan::Plan;
use crate::plan::{Buffer, Call, Constants, Port};
use crate::pools::{Pools, Taken};
#[cfg(feature = "llvm")]
use crate::profile::{self, Profile};
use crate::profile::{CallInfo, Clock};
use crate::target::Target;
#[cfg(feature = "llvm")]
use frazil_limits::Budget;
use frazil_rt::{BufferKind, BufferRef, KernelFn, Memory, Order, Runner, Step};
use frazil_runtime::memory::OutOfMemory;
use frazil_runtime::storage::AlignedBytes;
use frazil_runtime::structured::TensorShape;
#[cfg(feature = "llvm")]
use frazil_runtime::threads::parallel;
use frazil_tensor_ir::call::RuntimeCall;
#[cfg(feature = "llvm")]
use rayon::prelude::*;
use std::ffi::c_void;
use std::sync::Arc;
#[cfg(feature = "llvm")]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "llvm")]
use std::time::Duration;
use std::time::Instant;

/// How to compile.
#[derive(Clone, Debug)]
pub struct BackendOptions {
    /// The processor; the host's by default.
    pub target: Target,
    /// Threads that a run uses, the caller's included.
    pub threads: usize,
    /// Where objects of kernels are kept from one process to the next.
    pub cache: Option<ObjectCache>,
    /// The threads' pools, which all code that is compiled with clones of these options shares.
    pub pools: Pools,
}

#[cfg(feature = "llvm")]
impl Default for BackendOptions {
    fn default() -> Self {
        BackendOptions {
            target: host_target(),
            threads: 1,
            cache: None,
            pools: Pools::default(),
        }
    }
}

/// Name of kernel number `i` of the function `name` in objects and texts.
pub fn kernel_name(name: &str, i: usize) -> String {
    format!("{name}_kernel_{i}")
}

/// The function name of phase `phase` of kernel `name`.
pub fn phase_name(name: &str, phase: usize) -> String {
    if phase == 0 {
        name.to_owned()
    } else {
        format!("{name}_{phase}")
    }
}

/// Compiles every kernel of `plan` that has code, in parallel, or takes it from `cache`; one object file a kernel, in order.
#[cfg(feature = "llvm")]
pub fn compile_objects(
    plan: &Plan,
    target: &Target,
    cache: Option<&ObjectCache>,
) -> Result<Vec<Vec<u8>>, CompileError> {
    let compiled = AtomicBool::new(false);
    let kernels = plan.kernels.par_iter().enumerate();
    let kernels = kernels.filter(|(_, spec)| !spec.phases().is_empty());
    let budget = Budget::current();
    let objects = kernels.map(|(i, spec)| {
        let _entered = budget.as_ref().map(Budget::enter);
        frazil_limits::check()?;
        let name = kernel_name(&plan.name, i);
        if let Some(object) = cache.and_then(|c| c.get(&name, spec, target)) {
            return Ok(object);
        }
        let object = compile_kernel(&name, spec, target)?;
        compiled.store(true, Ordering::Relaxed);
        if let Some(cache) = cache {
            cache.put(&name, spec, target, &object);
        }
        Ok(object)
    });
    let objects = parallel(|| objects.collect());
    if compiled.into_inner() {
        // Constants are packed next.
        own_pages::after_compiling(plan.constants.len() + plan.preparation.bytes + plan.workspace_bytes);
    }
    objects
}

/// Compiles `plan` for this process.
///
/// # Errors
/// When a kernel cannot be compiled, the plan contradicts itself, or the system refuses memory or threads.
#[cfg(feature = "llvm")]
pub fn compile(plan: &Plan, options: &BackendOptions) -> Result<Executable, CompileError> {
    Package::new(plan, options)?.load(options)
}

fn buffer_ref(buffer: Buffer) -> BufferRef {
    let (kind, index, offset) = match buffer {
        Buffer::Input { index, offset } => (BufferKind::Input, index, offset),
        Buffer::Output { index, offset } => (BufferKind::Output, index, offset),
        Buffer::Workspace { offset } => (BufferKind::Workspace, 0, offset),
        Buffer::Constant { offset } => (BufferKind::Constant, 0, offset),
        Buffer::Prepared { offset } => (BufferKind::Prepared, 0, offset),
    };
    BufferRef { kind, index, offset }
}

/// What instances share: the code and the constants.
struct Code {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    workspace_bytes: usize,
    constants: Constants,
    /// What the preparation has written.
    prepared: Constants,
    most_buffers: usize,
    steps: Vec<Step>,
    /// The call of the plan that each step belongs to.
    call_of: Vec<usize>,
    /// What is told of each call.
    infos: Vec<CallInfo>,
    target: Target,
    /// Calls of the host program between the steps, in order.
    hosts: Vec<HostStep>,
    /// Exceptions; see [`Plan::checks`].
    checks: Vec<String>,
    /// What `steps` point to.
    buffers: Box<[BufferRef]>,
    /// What `steps` call.
    _jit: Jit,
}

/// A kernel of the host program.
struct HostStep {
    /// Runs once this many steps have run.
    after: usize,
    /// Number of the call in the plan.
    number: usize,
    call: Arc<RuntimeCall>,
    /// Its buffers: inputs, then results.
    buffers: std::ops::Range<usize>,
}

// SAFETY: the pointers in `steps` lead to `buffers` and to code, both immutable.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

/// A compiled function: its code and constants, in memory once for all instances. Clones share them.
#[derive(Clone)]
pub struct LoadedCode {
    code: Arc<Code>,
    pools: Pools,
    threads: usize,
}

/// An instance of a compiled function, with a workspace of its own. One run at a time; [`Executable::instance`] makes more.
pub struct Executable {
    loaded: LoadedCode,
    workspace: Pages,
    addresses: Vec<usize>,
    /// Runs so far.
    runs: u64,
}

/// Why a run gave no results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// As many inputs or outputs are passed as there are not.
    #[error("{given} {what}s were given; the function has {expected}")]
    Count {
        /// "input" or "output".
        what: &'static str,
        /// How many it has.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// The program raises an exception.
    #[error("{0}")]
    Raised(String),
    /// The file that the code was loaded from has been changed by another process.
    #[error(
        "the file in the cache directory that holds the code has changed while it was in use; load the model again"
    )]
    Changed,
    /// An input is a tensor of another dtype or shape than the function was compiled for.
    #[error("input {name} is a tensor of {given}; the function was compiled for {expected}")]
    Input {
        /// Its name.
        name: String,
        /// The dtype and sizes that it should have.
        expected: String,
        /// Those that it has.
        given: String,
    },
    /// One has the wrong size.
    #[error("{what} {name} has {given} bytes; it should have {expected}")]
    Size {
        /// "input" or "output".
        what: &'static str,
        /// Its name.
        name: String,
        /// Its size.
        expected: usize,
        /// The size given.
        given: usize,
    },
}

impl LoadedCode {
    /// Links `package`, which has been validated.
    pub(crate) fn new(package: Package, options: &BackendOptions) -> Result<LoadedCode, CompileError> {
        let Package {
            contents,
            objects,
            constants,
            weights,
            hosts: host_calls,
        } = package;
        let jit = Jit::new(&objects.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let pool = options.pools.take(options.threads)?;
        own_pages::before_running(contents.bytes_beside_ports(&constants));
        let prepared = match weights {
            Weights::Prepared(prepared) => prepared,
            Weights::Sources(sources) => prepare(&contents, sources, &jit, &pool.runner())?,
        };
        // Packed now, where they are not, and not in the first run.
        let _ = constants.bytes();
        let Linked {
            steps,
            call_of,
            hosts,
            buffers,
        } = link(&contents, &contents.calls, &host_calls, &jit)?;
        let code = Code {
            inputs: contents.inputs,
            outputs: contents.outputs,
            workspace_bytes: contents.workspace_bytes,
            constants,
            prepared,
            most_buffers: contents.calls.iter().map(|c| c.buffers.len()).max().unwrap_or(0),
            steps,
            call_of,
            infos: contents.infos,
            target: options.target.clone(),
            hosts,
            checks: contents.checks,
            buffers,
            _jit: jit,
        };
        Ok(LoadedCode {
            code: Arc::new(code),
            pools: options.pools.clone(),
            threads: options.threads,
        })
    }

    /// An instance with a new workspace, which may run while others do.
    ///
    /// # Errors
    /// When the system refuses memory.
    pub fn instance(&self) -> Result<Executable, CompileError> {
        Ok(Executable {
            workspace: Pages::new(self.code.workspace_bytes)?,
            addresses: vec![0; self.code.most_buffers],
            runs: 0,
            loaded: self.clone(),
        })
    }
}

impl Executable {
    /// Another instance of the same code, which may run at the same time.
    ///
    /// # Errors
    /// As [`LoadedCode::instance`].
    pub fn instance(&self) -> Result<Executable, CompileError> {
        self.loaded.instance()
    }

    /// What a run is given.
    pub fn inputs(&self) -> &[Port] {
        &self.loaded.code.inputs
    }

    /// What a run gives.
    pub fn outputs(&self) -> &[Port] {
        &self.loaded.code.outputs
    }

    /// The outputs without those of checks.
    pub fn results(&self) -> &[Port] {
        let count = self
            .loaded
            .code
            .outputs
            .len()
            .saturating_sub(self.loaded.code.checks.len());
        self.loaded.code.outputs.get(..count).unwrap_or_default()
    }

    /// Runs the function. Every input and output is dense and row-major, in its port's dtype and shape; any alignment will do.
    ///
    /// # Errors
    /// When inputs or outputs do not fit the ports, and when the program raises an exception.
    pub fn run(&mut self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), RunError> {
        self.run_timed(inputs, outputs, None)
    }

    /// Runs the function as [`Executable::run`] does, and gives its outputs in new memory.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn call(&mut self, inputs: &[&[u8]]) -> Result<Vec<AlignedBytes>, RunError> {
        check("input", &self.loaded.code.inputs, inputs.iter().map(|b| b.len()))?;
        // The host program wants slices of bytes to write to, which have to have contents.
        let contents = match self.loaded.code.hosts.is_empty() {
            true => output::Contents::Undefined,
            false => output::Contents::Zero,
        };
        let ports = self.loaded.code.outputs.iter();
        let mut new: Vec<NewBytes> = ports
            .map(|port| NewBytes::new(port.bytes(), contents).map_err(out_of_memory))
            .collect::<Result<_, _>>()?;
        let inputs: Vec<*const c_void> = inputs.iter().map(|b| b.as_ptr().cast()).collect();
        let addresses: Vec<*mut c_void> = new.iter_mut().map(NewBytes::address).collect();
        // SAFETY: the inputs' sizes are checked, the outputs have theirs, and the kernels of a plan write every element of every output.
        let outputs: Vec<AlignedBytes> = unsafe {
            self.run_steps(&inputs, &addresses, None)?;
            new.into_iter().map(|bytes| bytes.written()).collect()
        };
        self.check_raised(outputs.iter().map(AlignedBytes::as_slice))?;
        Ok(outputs)
    }

    /// Raises the exception of the first check that asks for it; the checks' outputs are the last ones.
    fn check_raised<'a>(&self, outputs: impl ExactSizeIterator<Item = &'a [u8]>) -> Result<(), RunError> {
        let checks = &self.loaded.code.checks;
        let results = outputs.len().saturating_sub(checks.len());
        let truths = outputs.skip(results).map(|b| b.first().is_some_and(|&x| x != 0));
        match checks.iter().zip(truths).find(|(_, raised)| *raised) {
            Some((message, _)) => Err(RunError::Raised(message.clone())),
            None => Ok(()),
        }
    }

    /// Runs the function again and again for `time`, and tells where the time goes.
    ///
    /// # Errors
    /// As [`Executable::run`].
    #[cfg(feature = "llvm")]
    pub fn profile(
        &mut self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        time: Duration,
    ) -> Result<Profile, RunError> {
        let mut clock = Clock::new(self.loaded.code.infos.len());
        // Caches and pages are warm afterwards.
        self.run(inputs, outputs)?;
        let start = Instant::now();
        while clock.runs < 3 || start.elapsed() < time {
            clock.start();
            self.run_timed(inputs, outputs, Some(&mut clock))?;
        }
        let peak = profile::peak(&self.loaded.code.target, self.loaded.threads);
        Ok(Profile::new(&self.loaded.code.infos, &clock, peak))
    }

    /// Runs the function, and tells `clock` each call's time.
    fn run_timed(
        &mut self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        clock: Option<&mut Clock>,
    ) -> Result<(), RunError> {
        check("input", &self.loaded.code.inputs, inputs.iter().map(|b| b.len()))?;
        check("output", &self.loaded.code.outputs, outputs.iter().map(|b| b.len()))?;
        let inputs: Vec<*const c_void> = inputs.iter().map(|b| b.as_ptr().cast()).collect();
        let addresses: Vec<*mut c_void> = outputs.iter_mut().map(|b| b.as_mut_ptr().cast()).collect();
        // SAFETY: sizes are checked.
        unsafe { self.run_steps(&inputs, &addresses, clock)? };
        self.check_raised(outputs.iter().map(|b| &**b))
    }

    /// [`Executable::run`] on bare addresses, without looking at what the checks gave.
    ///
    /// # Safety
    /// There are as many addresses as ports, each of as many bytes as its port says, and outputs overlap nothing.
    pub unsafe fn run_unchecked(&mut self, inputs: &[*const c_void], outputs: &[*mut c_void]) -> Result<(), RunError> {
        // SAFETY: by the caller.
        unsafe { self.run_steps(inputs, outputs, None) }
    }

    /// # Safety
    /// As [`Executable::run_unchecked`].
    unsafe fn run_steps(
        &mut self,
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
        mut clock: Option<&mut Clock>,
    ) -> Result<(), RunError> {
        let memory = Memory {
            inputs: inputs.as_ptr(),
            outputs: outputs.as_ptr(),
            workspace: self.workspace.bytes_mut().as_mut_ptr().cast(),
            constants: self.loaded.code.constants.bytes().as_ptr(),
            // Runs only read it.
            prepared: self.loaded.code.prepared.bytes().as_ptr().cast_mut(),
            addresses: self.addresses.as_mut_ptr().cast(),
            run: self.runs,
        };
        if self.runs == 0 {
            // Weights and workspace come into memory now.
            own_pages::before_running(
                self.loaded.code.constants.len() + self.loaded.code.prepared.len() + self.loaded.code.workspace_bytes,
            );
        }
        self.runs = self.runs.wrapping_add(1);
        let threads = self.loaded.pools.take(self.loaded.threads).ok();
        // Where there is no memory for a pool, the caller does all.
        let runner = threads.as_ref().map_or(Runner::Serial, Taken::runner);
        let code = &self.loaded.code;
        let stretch = |from: usize, to: usize, clock: &mut Option<&mut Clock>| match clock {
            // SAFETY: by the caller for inputs and outputs; the rest has the sizes and alignment that the plan asks for.
            None => unsafe { frazil_rt::run(&code.steps[from..to], &memory, &runner) },
            Some(clock) => {
                for i in from..to {
                    let start = Instant::now();
                    // SAFETY: as above.
                    unsafe { frazil_rt::run(&code.steps[i..=i], &memory, &runner) };
                    clock.add(code.call_of[i], start);
                }
            }
        };
        let mut done = 0;
        for host in &code.hosts {
            stretch(done, host.after, &mut clock);
            done = host.after;
            let start = Instant::now();
            // SAFETY: as above.
            unsafe { run_host(&host.call, &code.buffers[host.buffers.clone()], &memory)? };
            if let Some(clock) = &mut clock {
                clock.add(host.number, start);
            }
        }
        stretch(done, code.steps.len(), &mut clock);
        match code.constants.is_unchanged() && code.prepared.is_unchanged() {
            true => Ok(()),
            false => Err(RunError::Changed),
        }
    }
}

/// Calls as the runtime wants them.
struct Linked {
    steps: Vec<Step>,
    /// See [`Code`] for these.
    call_of: Vec<usize>,
    hosts: Vec<HostStep>,
    buffers: Box<[BufferRef]>,
}

/// `calls` with the code in `jit`.
fn link(
    contents: &Contents,
    calls: &[Call],
    host_calls: &[Arc<RuntimeCall>],
    jit: &Jit,
) -> Result<Linked, CompileError> {
    let buffers: Box<[BufferRef]> = calls.iter().flat_map(|c| &c.buffers).map(|b| buffer_ref(*b)).collect();
    let (mut steps, mut hosts, mut call_of) = (Vec::new(), Vec::new(), Vec::new());
    let mut first = 0;
    for (number, call) in calls.iter().enumerate() {
        let kernel = &contents.kernels[call.kernel as usize];
        if let Some(host) = kernel.host {
            hosts.push(HostStep {
                after: steps.len(),
                number,
                call: host_calls[host as usize].clone(),
                buffers: first..first + call.buffers.len(),
            });
        }
        let name = kernel_name(&contents.name, call.kernel as usize);
        for (phase, &tasks) in kernel.phases.iter().enumerate() {
            let address = jit.lookup(&phase_name(&name, phase))?;
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
                buffer_count: call.buffers.len() as u64,
            });
        }
        first += call.buffers.len();
    }
    Ok(Linked {
        steps,
        call_of,
        hosts,
        buffers,
    })
}

/// Runs the preparation; `sources` are not needed any more afterwards.
pub(crate) fn prepare(
    contents: &Contents,
    sources: Constants,
    jit: &Jit,
    runner: &Runner<'_>,
) -> Result<Constants, CompileError> {
    let (calls, bytes) = &contents.preparation;
    let mut prepared = Pages::new(*bytes)?;
    let linked = link(contents, calls, &[], jit)?;
    let mut addresses = vec![0usize; calls.iter().map(|c| c.buffers.len()).max().unwrap_or(0)];
    let memory = Memory {
        inputs: std::ptr::null(),
        outputs: std::ptr::null(),
        workspace: std::ptr::null_mut(),
        constants: sources.bytes().as_ptr(),
        prepared: prepared.bytes_mut().as_mut_ptr(),
        addresses: addresses.as_mut_ptr().cast(),
        run: 0,
    };
    // SAFETY: validation has made sure that only the sources and what is prepared are mentioned; both have the sizes and the alignment that
    // the plan asks for.
    unsafe { frazil_rt::run(&linked.steps, &memory, runner) };
    Ok(Constants::of(prepared, *bytes))
}

/// The exception of a run that has no memory for its outputs.
fn out_of_memory(error: OutOfMemory) -> RunError {
    RunError::Raised(error.to_string())
}

/// Runs a kernel of the host program on its buffers.
///
/// # Safety
/// `memory` is as for `frazil_rt::run`.
unsafe fn run_host(call: &RuntimeCall, buffers: &[BufferRef], memory: &Memory) -> Result<(), RunError> {
    let Some((output, inputs)) = buffers.split_last() else {
        return Ok(());
    };
    let bytes = |s: &TensorShape| s.numel().max(0) as usize * s.dtype.size();
    // SAFETY: every buffer is as large as its tensor, and the results overlap no input.
    unsafe {
        let inputs = inputs.iter().zip(&call.input_shapes).map(|(b, shape)| {
            let address = frazil_rt::address(b, memory);
            std::slice::from_raw_parts(address.cast_const(), bytes(shape))
        });
        let inputs: Vec<&[u8]> = inputs.collect();
        let output = std::slice::from_raw_parts_mut(frazil_rt::address(output, memory), call.bytes());
        call.run(&inputs, output).map_err(RunError::Raised)
    }
}

fn check(what: &'static str, ports: &[Port], sizes: impl ExactSizeIterator<Item = usize>) -> Result<(), RunError> {
    if ports.len() != sizes.len() {
        return Err(RunError::Count {
            what,
            expected: ports.len(),
            given: sizes.len(),
        });
    }
    for (port, given) in ports.iter().zip(sizes) {
        if port.bytes() != given {
            return Err(RunError::Size {
                what,
                name: port.name.clone(),
                expected: port.bytes(),
                given,
            });
        }
    }
    Ok(())
}
