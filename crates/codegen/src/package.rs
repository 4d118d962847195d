//! A compiled function as data: machine code, constants, and the order of calls. What a process needs to run it, without the compiler.
//!
//! A package can be kept in a file and mapped by a later process, so that constants are shared between processes and read only
//! where they are used. The file is as trusted as a program: its machine code will run. What is checked on reading is that the file is
//! whole and of this form.
//!
//! The file: eight bytes that say what it is; the length of the header as a little-endian `u64`; the header, in JSON; the objects one after
//! the other; a gap up to the next multiple of the size of a page; the constants; a gap likewise; the weights that kernels read in another
//! form than plans store, in that form: the next process has nothing to compute before its first run.

use crate::compile::{CompileOptions, Executable, compile_objects, pool, prepare};
use crate::host::HostCall;
use crate::kernel::KernelSpec;
use crate::native::CompileError;
use crate::native::jit::Jit;
use crate::plan::{Buffer, Call, Constants, PAGE, Plan, Port, kernel_count};
use crate::profile::{self, CallInfo};
use memmap2::Mmap;
#[cfg(target_os = "linux")]
use memmap2::UncheckedAdvice;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// What a file with a package begins with.
const MAGIC: &[u8; 8] = b"FRAZILP3";

/// A compiled function.
#[derive(Clone, Debug)]
pub struct Package {
    pub(crate) contents: Contents,
    /// The objects of the kernels that have code, in order.
    pub(crate) objects: Vec<Vec<u8>>,
    pub(crate) constants: Constants,
    pub(crate) weights: Weights,
    /// What kernels of the host program do.
    pub(crate) hosts: Vec<Arc<HostCall>>,
}

/// Weights that kernels read in another form than plans store.
#[derive(Clone, Debug)]
pub(crate) enum Weights {
    /// What the preparation is computed from.
    Sources(Constants),
    /// What it gives.
    Prepared(Constants),
}

/// Everything of a function but its bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    pub name: String,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub workspace_bytes: usize,
    pub kernels: Vec<PackedKernel>,
    pub calls: Vec<Call>,
    /// The calls of the preparation, and the bytes that they fill.
    pub preparation: (Vec<Call>, usize),
    pub checks: Vec<String>,
    pub infos: Vec<CallInfo>,
}

/// What is left of a kernel's description when it is compiled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PackedKernel {
    /// Buffers that a call passes.
    pub buffers: usize,
    /// Tasks of each phase; none for calls of the host program.
    pub phases: SmallVec<[i64; 2]>,
    /// Which call of the host program it is.
    pub host: Option<u32>,
}

/// What a file says before its objects.
#[derive(Serialize, Deserialize)]
struct Header {
    /// What the package was made of.
    key: String,
    /// What the maker wants back with it.
    note: serde_json::Value,
    contents: Contents,
    /// The size of each object.
    objects: Vec<usize>,
    /// Bytes of constants.
    constants: usize,
}

impl Contents {
    pub fn of(plan: &Plan) -> Contents {
        let kernels = plan.kernels.iter().map(|spec| PackedKernel {
            buffers: spec.buffer_count(),
            phases: spec.phases(),
            host: match spec {
                KernelSpec::Host(call) => Some(call.number),
                _ => None,
            },
        });
        Contents {
            name: plan.name.clone(),
            inputs: plan.inputs.clone(),
            outputs: plan.outputs.clone(),
            workspace_bytes: plan.workspace_bytes,
            kernels: kernels.collect(),
            calls: plan.calls.clone(),
            preparation: (plan.preparation.calls.clone(), plan.preparation.bytes),
            checks: plan.checks.clone(),
            infos: profile::calls(plan),
        }
    }

    /// Checks what the compiled code relies on.
    pub fn validate(&self, constants: &Constants, sources: &Constants, hosts: usize) -> Result<(), CompileError> {
        let invalid = |text: String| Err(CompileError::InvalidPlan(text));
        if self.checks.len() > self.outputs.len() {
            return invalid("more checks than outputs".into());
        }
        let (preparation, prepared) = &self.preparation;
        let calls = preparation
            .iter()
            .map(|c| (c, true))
            .chain(self.calls.iter().map(|c| (c, false)));
        for (i, (call, prepares)) in calls.enumerate() {
            let Some(kernel) = self.kernels.get(call.kernel as usize) else {
                let count = self.kernels.len();
                return invalid(format!("call {i} names kernel {} of {count}", call.kernel));
            };
            if let Some(host) = kernel.host
                && (host as usize >= hosts || prepares)
            {
                return invalid(format!("call {i} names call {host} of the host program of {hosts}"));
            }
            if kernel.buffers != call.buffers.len() {
                let (passed, expected) = (call.buffers.len(), kernel.buffers);
                return invalid(format!("call {i} passes {passed} buffers of {expected}"));
            }
            for buffer in &call.buffers {
                let in_port = |ports: &[Port], index: u32, offset| {
                    ports.get(index as usize).is_some_and(|p| offset <= p.bytes() as u64)
                };
                let inside = match *buffer {
                    Buffer::Constant { offset } if prepares => offset <= sources.len() as u64,
                    Buffer::Prepared { offset } => offset <= *prepared as u64,
                    _ if prepares => false,
                    Buffer::Input { index, offset } => in_port(&self.inputs, index, offset),
                    Buffer::Output { index, offset } => in_port(&self.outputs, index, offset),
                    Buffer::Workspace { offset } => offset <= self.workspace_bytes as u64,
                    Buffer::Constant { offset } => offset <= constants.len() as u64,
                };
                if !inside {
                    return invalid(format!("call {i} has buffer {buffer:?}, which does not exist"));
                }
            }
        }
        Ok(())
    }
}

impl Package {
    /// Compiles the kernels of `plan`.
    ///
    /// # Errors
    /// When a kernel cannot be compiled, or the plan contradicts itself.
    pub fn new(plan: &Plan, options: &CompileOptions) -> Result<Package, CompileError> {
        let contents = Contents::of(plan);
        contents.validate(&plan.constants, &plan.preparation.sources, plan.hosts.len())?;
        Ok(Package {
            contents,
            objects: compile_objects(plan, &options.target, options.cache.as_ref())?,
            constants: plan.constants.clone(),
            weights: Weights::Sources(plan.preparation.sources.clone()),
            hosts: plan.hosts.clone(),
        })
    }

    /// Links the code into this process.
    ///
    /// # Errors
    /// When the code is not for this process, or the system refuses memory or threads.
    pub fn load(self, options: &CompileOptions) -> Result<Executable, CompileError> {
        self.validate()?;
        Executable::new(self, options)
    }

    /// The same with what [`Package::load`] would compute before the first run, so that nobody whom the package is given has to.
    ///
    /// # Errors
    /// As [`Package::load`].
    pub fn prepared(mut self, options: &CompileOptions) -> Result<Package, CompileError> {
        self.validate()?;
        if let Weights::Sources(sources) = self.weights {
            let objects = self.objects.iter().map(Vec::as_slice);
            let code = Jit::new(&objects.collect::<Vec<_>>())?;
            let prepared = prepare(&self.contents, sources, &code, pool(options.threads)?.as_ref())?;
            self.weights = Weights::Prepared(prepared);
            self.contents.preparation.0.clear();
        }
        Ok(self)
    }

    fn validate(&self) -> Result<(), CompileError> {
        let none = Constants::default();
        let sources = match &self.weights {
            Weights::Sources(sources) => sources,
            Weights::Prepared(prepared) if prepared.len() == self.contents.preparation.1 => &none,
            Weights::Prepared(_) => return Err(CompileError::InvalidPlan("prepared weights of another size".into())),
        };
        self.contents.validate(&self.constants, sources, self.hosts.len())
    }

    /// Number of kernel calls of a run, and of distinct kernels among them.
    pub fn kernel_count(&self) -> (usize, usize) {
        kernel_count(&self.contents.calls)
    }

    /// Bytes of memory that a run needs besides inputs, outputs and constants.
    pub fn workspace_bytes(&self) -> usize {
        self.contents.workspace_bytes
    }

    /// Writes the package, which has been [`Package::prepared`], with the `key` that [`Package::read`] has to be given, and a `note` that it
    /// gives back. False, and nothing is written, when it is not prepared, or calls the host program, which no file can hold.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, key: &str, note: serde_json::Value, mut out: impl Write) -> io::Result<bool> {
        let Weights::Prepared(prepared) = &self.weights else {
            return Ok(false);
        };
        if !self.hosts.is_empty() {
            return Ok(false);
        }
        let header = serde_json::to_vec(&Header {
            key: key.to_owned(),
            note,
            contents: self.contents.clone(),
            objects: self.objects.iter().map(Vec::len).collect(),
            constants: self.constants.len(),
        })?;
        out.write_all(MAGIC)?;
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        let mut end = PREFIX + header.len();
        for object in &self.objects {
            out.write_all(object)?;
            end += object.len();
        }
        for constants in [&self.constants, prepared] {
            let first = end.next_multiple_of(PAGE);
            out.write_all(&[0; PAGE][..first - end])?;
            out.write_all(constants.bytes())?;
            end = first + constants.len();
        }
        out.flush()?;
        Ok(true)
    }

    /// The package in the file at `path` and its note; `None` when there is no file, or it is not one with this key.
    ///
    /// The file must not be written to while the package, or what was loaded from it, is in use; it may be deleted or replaced by another.
    pub fn read(path: &Path, key: &str) -> Option<(Package, serde_json::Value)> {
        let file = File::open(path).ok()?;
        // SAFETY: packages are put in their place whole and replaced by renaming, never written to; the documentation asks
        // others for the same. Every range below is checked against the file's size.
        let file = Arc::new(unsafe { Mmap::map(&file) }.ok()?);
        let mut rest = Reader { file: &file, at: 0 };
        if rest.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let length = u64::from_le_bytes(rest.take(8)?.try_into().ok()?);
        let header: Header = serde_json::from_slice(rest.take(usize::try_from(length).ok()?)?).ok()?;
        if header.key != key {
            return None;
        }
        let objects = header.objects.iter().map(|&size| Some(rest.take(size)?.to_vec()));
        let objects = objects.collect::<Option<Vec<_>>>()?;
        let mut end = rest.at;
        // What has been read is copied; the constants lie in pages of their own.
        // SAFETY: nobody writes to the file, so that its pages have the same contents when they come back.
        #[cfg(target_os = "linux")]
        let _ = unsafe { file.unchecked_advise_range(UncheckedAdvice::DontNeed, 0, end) };
        let mut constants = |len: usize| {
            let first = end.checked_next_multiple_of(PAGE)?;
            end = first.checked_add(len)?;
            Constants::mapped(Arc::clone(&file), first, len)
        };
        let (constants, prepared) = (constants(header.constants)?, constants(header.contents.preparation.1)?);
        (end == file.len()).then_some(())?;
        let package = Package {
            contents: header.contents,
            objects,
            constants,
            weights: Weights::Prepared(prepared),
            hosts: Vec::new(),
        };
        Some((package, header.note))
    }
}

/// Bytes before the header.
const PREFIX: usize = MAGIC.len() + size_of::<u64>();

/// A file, and how far it has been read.
struct Reader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(n)?;
        let bytes = self.file.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }
}
