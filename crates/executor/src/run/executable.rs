//! Runs of compiled functions.

use super::load::{LoadedCode, RunOptions};
use super::pools::Taken;
use super::profile::{Clock, Profile};
use crate::error::LoadError;
use crate::memory::{Constants, NewBytes, OutputContents, Workspace, release};
use crate::package::Package;
use crate::program::Port;
use frazil_rt::{BufferRef, Memory, Runner};
use frazil_runtime::memory::OutOfMemory;
use frazil_runtime::storage::AlignedBytes;
use frazil_runtime::structured::TensorShape;
use frazil_tensor_ir::call::RuntimeCall;
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// An instance of a compiled function, with a workspace of its own. One run at a time; [`Executable::instance`] makes more.
pub struct Executable {
    loaded: LoadedCode,
    workspace: Workspace,
    addresses: Vec<usize>,
    /// Number of runs so far.
    runs: u64,
}

/// Error of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The number of inputs or outputs is wrong.
    #[error("{given} {what}s were given; the function has {expected}")]
    Count {
        /// "input" or "output".
        what: &'static str,
        /// The number that the function has.
        expected: usize,
        /// The number that was passed.
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
        /// The name of the input.
        name: String,
        /// The dtype and sizes that it should have.
        expected: String,
        /// The dtype and sizes that it has.
        given: String,
    },
    /// An input or output has the wrong size.
    #[error("{what} {name} has {given} bytes; it should have {expected}")]
    Size {
        /// "input" or "output".
        what: &'static str,
        /// The name of the input or output.
        name: String,
        /// The expected size, in bytes.
        expected: usize,
        /// The passed size, in bytes.
        given: usize,
    },
}

impl LoadedCode {
    /// Returns an instance with a new workspace, which may run while others do.
    ///
    /// # Errors
    /// If the system refuses memory.
    pub fn instance(&self) -> Result<Executable, LoadError> {
        self.instance_in(&Workspace::default())
    }

    /// Returns an instance that runs in `workspace`, and only while no other instance does.
    ///
    /// # Errors
    /// If the system refuses memory.
    pub fn instance_in(&self, workspace: &Workspace) -> Result<Executable, LoadError> {
        workspace.reserve(self.code.workspace_bytes)?;
        Ok(Executable {
            workspace: workspace.clone(),
            addresses: vec![0; self.code.most_buffers],
            runs: 0,
            loaded: self.clone(),
        })
    }
}

impl Package {
    /// Links the code into this process.
    ///
    /// # Errors
    /// If the code is not for this process, or the system refuses memory or threads.
    pub fn load(self, options: &RunOptions) -> Result<Executable, LoadError> {
        self.link(options)?.instance()
    }
}

impl Executable {
    /// Returns another instance of the same code, which may run at the same time.
    ///
    /// # Errors
    /// As [`LoadedCode::instance`].
    pub fn instance(&self) -> Result<Executable, LoadError> {
        self.loaded.instance()
    }

    /// Returns the number of threads of a run, including the caller's.
    pub fn threads(&self) -> usize {
        self.loaded.threads
    }

    /// Returns the inputs of a run.
    pub fn inputs(&self) -> &[Port] {
        &self.loaded.code.inputs
    }

    /// Returns the outputs of a run.
    pub fn outputs(&self) -> &[Port] {
        &self.loaded.code.outputs
    }

    /// Returns the outputs without those of checks.
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
    /// If inputs or outputs do not match the ports, or the program raises an exception.
    pub fn run(&mut self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), RunError> {
        self.run_timed(inputs, outputs, None)
    }

    /// Runs the function as [`Executable::run`] does, and returns its outputs in new memory.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn call(&mut self, inputs: &[&[u8]]) -> Result<Vec<AlignedBytes>, RunError> {
        check("input", &self.loaded.code.inputs, inputs.iter().map(|b| b.len()))?;
        // Runtime calls write to slices of bytes, which have to be initialised.
        let contents = match self.loaded.code.runtime_calls.is_empty() {
            true => OutputContents::Undefined,
            false => OutputContents::Zero,
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

    /// Raises the exception of the first check whose output is true. The outputs of checks are the last ones.
    fn check_raised<'a>(&self, outputs: impl ExactSizeIterator<Item = &'a [u8]>) -> Result<(), RunError> {
        let checks = &self.loaded.code.checks;
        let results = outputs.len().saturating_sub(checks.len());
        let truths = outputs.skip(results).map(|b| b.first().is_some_and(|&x| x != 0));
        match checks.iter().zip(truths).find(|(_, raised)| *raised) {
            Some((message, _)) => Err(RunError::Raised(message.clone())),
            None => Ok(()),
        }
    }

    /// Runs the function repeatedly for `time`, and measures its kernels. `peak` is the processor's throughput, for comparison: floating-point
    /// operations per second of a matmul in cache.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn profile(
        &mut self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        time: Duration,
        peak: f64,
    ) -> Result<Profile, RunError> {
        let mut clock = Clock::new(self.loaded.code.infos.len());
        // Caches and pages are warm afterwards.
        self.run(inputs, outputs)?;
        let start = Instant::now();
        while clock.runs < 3 || start.elapsed() < time {
            clock.start();
            self.run_timed(inputs, outputs, Some(&mut clock))?;
        }
        Ok(Profile::new(&self.loaded.code.infos, &clock, peak))
    }

    /// Runs the function, and records the time of each call in `clock`.
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

    /// Runs the function as [`Executable::run`] does, on addresses, and ignores the outputs of checks.
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
        let mut workspace = self.workspace.lock();
        let memory = Memory {
            inputs: inputs.as_ptr(),
            outputs: outputs.as_ptr(),
            // There is one: it was reserved.
            workspace: workspace
                .as_mut()
                .map_or(std::ptr::null_mut(), |pages| pages.bytes_mut().as_mut_ptr()),
            constants: self.loaded.code.constants.bytes().as_ptr(),
            // Runs only read it.
            prepared: self.loaded.code.prepared.bytes().as_ptr().cast_mut(),
            addresses: self.addresses.as_mut_ptr().cast(),
            run: self.runs,
            numbers: self.loaded.code.numbers.as_ptr(),
        };
        if self.runs == 0 {
            // Weights and workspace are first accessed by this run.
            release::before_running(
                self.loaded.code.constants.len() + self.loaded.code.prepared.len() + self.loaded.code.workspace_bytes,
            );
        }
        self.runs = self.runs.wrapping_add(1);
        let threads = self.loaded.pools.take(self.loaded.threads).ok();
        // Without memory for a pool, the calling thread runs all tasks.
        let runner = threads.as_ref().map_or(Runner::Serial, Taken::runner);
        let code = &self.loaded.code;
        let run_steps = |from: usize, to: usize, clock: &mut Option<&mut Clock>| match clock {
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
        for call in &code.runtime_calls {
            run_steps(done, call.after, &mut clock);
            done = call.after;
            let start = Instant::now();
            // SAFETY: as above.
            unsafe { run_call(&call.call, &code.buffers[call.buffers.clone()], &memory)? };
            if let Some(clock) = &mut clock {
                clock.add(call.number, start);
            }
        }
        run_steps(done, code.steps.len(), &mut clock);
        let mut constants = [&code.constants, &code.prepared].into_iter().chain(&code.shared);
        match constants.all(Constants::is_unchanged) {
            true => Ok(()),
            false => Err(RunError::Changed),
        }
    }
}

/// Returns the error of a run whose outputs could not be allocated.
fn out_of_memory(error: OutOfMemory) -> RunError {
    RunError::Raised(error.to_string())
}

/// Runs a runtime call on its buffers.
///
/// # Safety
/// `memory` is as for `frazil_rt::run`.
unsafe fn run_call(call: &RuntimeCall, buffers: &[BufferRef], memory: &Memory) -> Result<(), RunError> {
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
