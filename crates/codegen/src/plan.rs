//! The plan of a compiled function: which kernels run, in which order, on which memory. Pure data.
//!
//! The front half of the compiler makes a [`Plan`]; the back half turns it into machine code. A plan mentions memory only as
//! [`Buffer`]s, so that the code that comes out of it is position independent, shares nothing and can run in several
//! threads at a time, each with a workspace of its own.

use crate::kernel::{KernelSpec, WinogradWeights};
use crate::mapped::MappedFile;
use crate::pages::Pages;
use frazil_ir::DType;
use frazil_runtime::memory::OutOfMemory;
use frazil_runtime::structured::Dims;
use frazil_tensor_ir::call::RuntimeCall;
use frazil_tensor_ir::graph::Origin;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Every buffer offset is a multiple of this many bytes, and so is every caller's workspace.
pub const ALIGNMENT: usize = 64;

/// Bytes of a page of memory: a multiple of [`ALIGNMENT`].
pub(crate) const PAGE: usize = 4096;

pub use frazil_tensor_ir::align_up;

/// One input or output of the compiled function: dense, row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// The name in the generated interface.
    pub name: String,
    /// Element type.
    #[serde(with = "dtype_name")]
    pub dtype: DType,
    /// Extents; empty for a scalar.
    pub shape: Dims,
}

impl Port {
    /// Number of elements; `usize::MAX` where it is larger.
    pub fn elements(&self) -> usize {
        let extents = self.shape.iter().map(|&d| usize::try_from(d).unwrap_or(0));
        extents.fold(1, usize::saturating_mul)
    }

    /// Size in bytes; `usize::MAX` where it is larger.
    pub fn bytes(&self) -> usize {
        self.elements().saturating_mul(self.dtype.size())
    }
}

pub(crate) use frazil_tensor_ir::spec::dtype_name;

/// Where a kernel's argument lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Buffer {
    /// The caller's input number `index`, `offset` bytes into it. Read only.
    Input {
        /// Index into [`Plan::inputs`].
        index: u32,
        /// Bytes from its start.
        offset: u64,
    },
    /// The caller's output number `index`, `offset` bytes into it. May be read by kernels that run after its writer.
    Output {
        /// Index into [`Plan::outputs`].
        index: u32,
        /// Bytes from its start.
        offset: u64,
    },
    /// `offset` bytes into the workspace.
    Workspace {
        /// Bytes from the workspace's start.
        offset: u64,
    },
    /// `offset` bytes into the constants. Read only.
    Constant {
        /// Bytes from the constants' start.
        offset: u64,
    },
    /// `offset` bytes into what the plan's [`Preparation`] writes. Read only in a run.
    Prepared {
        /// Bytes from its start.
        offset: u64,
    },
}

impl Buffer {
    /// The buffer that starts `bytes` further on.
    pub fn advanced(self, bytes: u64) -> Buffer {
        match self {
            Buffer::Input { index, offset } => Buffer::Input {
                index,
                offset: offset + bytes,
            },
            Buffer::Output { index, offset } => Buffer::Output {
                index,
                offset: offset + bytes,
            },
            Buffer::Workspace { offset } => Buffer::Workspace { offset: offset + bytes },
            Buffer::Constant { offset } => Buffer::Constant { offset: offset + bytes },
            Buffer::Prepared { offset } => Buffer::Prepared { offset: offset + bytes },
        }
    }
}

/// Number of a kernel in [`Plan::kernels`].
pub type KernelId = u32;

/// One step of the plan: kernel `kernel` on `buffers`. The kernels of a plan run one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Which kernel.
    pub kernel: KernelId,
    /// Its arguments, in the order that the kernel's spec documents.
    pub buffers: SmallVec<[Buffer; 5]>,
    /// In which order a thread takes its tasks.
    pub order: Order,
}

/// The order in which a thread takes the tasks of a call.
///
/// Weights that each task reads a part of, all of them once, are read to and fro: what was read last time is what the cache still has, where
/// they are somewhat larger than it is. Read always from the same end they would all have gone each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The last task comes first.
    pub backward: bool,
    /// Every other run has it the other way round.
    pub turns: bool,
}

/// Number of `calls`, and of distinct kernels among them.
pub(crate) fn kernel_count(calls: &[Call]) -> (usize, usize) {
    let kernels: std::collections::BTreeSet<KernelId> = calls.iter().map(|c| c.kernel).collect();
    (calls.len(), kernels.len())
}

/// Read-only data: packed weights and other constant tensors, each at a multiple of [`ALIGNMENT`] bytes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Constants {
    memory: ConstantMemory,
    len: usize,
}

/// Who holds the bytes.
#[derive(Clone, Debug)]
enum ConstantMemory {
    /// The process; there may be room for more.
    Own(Arc<Pages>),
    /// A part of a file, from this byte of it on: a multiple of [`ALIGNMENT`], as pages are.
    Stored(Arc<StoredBytes>, usize),
    /// The process, once somebody has read them.
    Later(Arc<Later>),
}

/// A part of a file.
#[derive(Debug)]
pub(crate) enum StoredBytes {
    /// A copy.
    Read(Pages),
    /// From this byte of the file on.
    Mapped(MappedFile, usize),
}

impl StoredBytes {
    /// All of them, and maybe more.
    fn bytes(&self) -> &[u8] {
        match self {
            StoredBytes::Read(pages) => pages.bytes(),
            StoredBytes::Mapped(file, start) => file.bytes().get(*start..).unwrap_or_default(),
        }
    }
}

/// Bytes that are written when they are first read.
struct Later {
    pages: OnceLock<Pages>,
    /// Until then: zeros, and the function that writes them.
    waiting: Mutex<Option<(Pages, Fill)>>,
}

type Fill = Box<dyn FnOnce(&mut [u8]) + Send>;

impl std::fmt::Debug for Later {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Later").field(&self.pages.get()).finish()
    }
}

impl Later {
    /// All of them, `len` bytes and maybe more.
    fn bytes(&self, len: usize) -> &[u8] {
        let pages = self.pages.get_or_init(|| {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Taken once, by this very call.
            waiting.map_or(Pages::Allocated(Vec::new()), |(mut pages, fill)| {
                fill(&mut pages.bytes_mut()[..len]);
                pages
            })
        });
        pages.bytes()
    }
}

impl Default for ConstantMemory {
    fn default() -> Self {
        ConstantMemory::Own(Arc::new(Pages::Allocated(Vec::new())))
    }
}

impl Constants {
    /// The `len` bytes of `stored` from `start` on; `None` when `start` is no multiple of [`ALIGNMENT`] or there are fewer.
    pub(crate) fn stored(stored: Arc<StoredBytes>, start: usize, len: usize) -> Option<Constants> {
        let inside = start.checked_add(len).is_some_and(|end| end <= stored.bytes().len());
        (inside && start.is_multiple_of(ALIGNMENT)).then_some(Constants {
            memory: ConstantMemory::Stored(stored, start),
            len,
        })
    }

    /// Returns whether all bytes that were read so far were as they are stored. A file that is mapped may have been changed by another process.
    pub(crate) fn is_unchanged(&self) -> bool {
        match &self.memory {
            ConstantMemory::Stored(stored, _) => match &**stored {
                StoredBytes::Mapped(file, _) => file.is_unchanged(),
                StoredBytes::Read(_) => true,
            },
            ConstantMemory::Own(_) | ConstantMemory::Later(_) => true,
        }
    }

    /// `len` bytes that `fill` writes over zeros when somebody first reads them. The address space is reserved at once, the memory is not
    /// touched before.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn later(len: usize, fill: impl FnOnce(&mut [u8]) + Send + 'static) -> Result<Constants, OutOfMemory> {
        let later = Later {
            pages: OnceLock::new(),
            waiting: Mutex::new(Some((Pages::new(len)?, Box::new(fill)))),
        };
        Ok(Constants {
            memory: ConstantMemory::Later(Arc::new(later)),
            len,
        })
    }

    /// The first `len` bytes of `pages`, which have as many.
    pub(crate) fn of(pages: Pages, len: usize) -> Constants {
        Constants {
            memory: ConstantMemory::Own(Arc::new(pages)),
            len,
        }
    }

    /// Appends `data` at the next aligned offset and gives its place.
    pub fn push<T: bytemuck::NoUninit>(&mut self, data: &[T]) -> Buffer {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let offset = align_up(self.len);
        let end = offset + bytes.len();
        let room = match &mut self.memory {
            ConstantMemory::Own(pages) => Arc::get_mut(pages).filter(|p| p.bytes().len() >= end),
            ConstantMemory::Stored(..) | ConstantMemory::Later(_) => None,
        };
        match room {
            Some(pages) => pages.bytes_mut()[offset..end].copy_from_slice(bytes),
            None => {
                // What is pushed is a copy of what is in memory, and comes from the compiler, not from the program.
                let mut pages = Pages::infallible(align_up(end.max(2 * self.len)));
                pages.bytes_mut()[..self.len].copy_from_slice(self.bytes());
                pages.bytes_mut()[offset..end].copy_from_slice(bytes);
                self.memory = ConstantMemory::Own(Arc::new(pages));
            }
        }
        self.len = end;
        Buffer::Constant { offset: offset as u64 }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes; the first lies at a 64-byte boundary.
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            ConstantMemory::Own(pages) => &pages.bytes()[..self.len],
            ConstantMemory::Stored(stored, start) => &stored.bytes()[*start..*start + self.len],
            ConstantMemory::Later(later) => &later.bytes(self.len)[..self.len],
        }
    }
}

impl PartialEq for Constants {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

/// What is computed once, when the code is loaded, for all instances: constants in a form that takes more room than the one that they are
/// stored in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preparation {
    /// Bytes of memory that it fills.
    pub bytes: usize,
    /// What it is computed from, and nothing else reads.
    pub sources: Constants,
    /// What runs, in order. A [`Buffer::Constant`] is a place in the sources here, a [`Buffer::Prepared`] may be written, and there are no
    /// others.
    pub calls: Vec<Call>,
}

/// A function ready to be turned into machine code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Name of the function; a C identifier.
    pub name: String,
    /// What the caller gives.
    pub inputs: Vec<Port>,
    /// What the caller gets.
    pub outputs: Vec<Port>,
    /// Size of the workspace that a run needs.
    pub workspace_bytes: usize,
    /// Weights and other constants.
    pub constants: Constants,
    /// The kernels, each once.
    pub kernels: Vec<KernelSpec>,
    /// What runs, in order.
    pub calls: Vec<Call>,
    /// What runs before the first run.
    pub preparation: Preparation,
    /// What kernels of the host program do; a library cannot have any.
    pub hosts: Vec<Arc<RuntimeCall>>,
    /// One message for each of the last outputs, which are truth values: where one is true after a run, the inputs were such that
    /// the program raises this exception.
    pub checks: Vec<String>,
    /// The operators that each call computes, for listings; empty, or as long as [`Plan::calls`].
    pub origins: Vec<Vec<Origin>>,
}

impl Plan {
    /// The number of `spec` in [`Plan::kernels`], which it is added to unless an equal kernel is there.
    pub fn kernel(&mut self, spec: KernelSpec) -> KernelId {
        if let Some(i) = self.kernels.iter().position(|k| *k == spec) {
            return i as KernelId;
        }
        self.kernels.push(spec);
        (self.kernels.len() - 1) as KernelId
    }

    /// Number of kernel calls of a run, and of distinct kernels among them.
    pub fn kernel_count(&self) -> (usize, usize) {
        kernel_count(&self.calls)
    }

    /// The outputs that are results: all but those of the checks.
    pub fn results(&self) -> &[Port] {
        &self.outputs[..self.outputs.len().saturating_sub(self.checks.len())]
    }

    /// The origins of the calls of the host program: what keeps the plan from being a library.
    pub fn host_operators(&self) -> Vec<String> {
        let origins = self.calls.iter().zip(&self.origins);
        let hosts = origins.filter(|(c, _)| {
            let spec = self.kernels.get(c.kernel as usize);
            matches!(spec, Some(KernelSpec::Host(_)))
        });
        hosts.flat_map(|(_, o)| o).map(Origin::to_string).collect()
    }

    /// Adds weights as a kernel's packing gives them; with a `transformation`, the place of what it makes of them when the code is loaded.
    pub fn weights(&mut self, packed: &[f32], transformation: Option<WinogradWeights>) -> Buffer {
        let Some(transformation) = transformation else {
            return self.constants.push(packed);
        };
        let source = self.preparation.sources.push(packed);
        let place = Buffer::Prepared {
            offset: self.preparation.bytes as u64,
        };
        self.preparation.bytes += align_up(transformation.transformed_bytes());
        let kernel = self.kernel(KernelSpec::WinogradWeights(transformation));
        self.preparation.calls.push(Call {
            kernel,
            buffers: SmallVec::from_slice(&[source, place]),
            order: Order::default(),
        });
        place
    }

    /// Appends a call of `spec` on `buffers`.
    pub fn call(&mut self, spec: KernelSpec, buffers: impl IntoIterator<Item = Buffer>) {
        let kernel = self.kernel(spec);
        self.calls.push(Call {
            kernel,
            buffers: buffers.into_iter().collect(),
            order: Order::default(),
        });
    }

    /// Gives the calls that stream weights their [`Order`]; those that read the same ones take turns.
    pub(crate) fn order_calls(&mut self) {
        let mut readers: HashMap<Buffer, Vec<usize>> = HashMap::new();
        for (i, call) in self.calls.iter().enumerate() {
            let spec = self.kernels.get(call.kernel as usize);
            let streamed = spec.and_then(KernelSpec::streamed_weights);
            if let Some(&weights) = streamed.and_then(|which| call.buffers.get(which)) {
                readers.entry(weights).or_default().push(i);
            }
        }
        for calls in readers.into_values() {
            let turns = calls.len() % 2 == 1;
            for (turn, i) in calls.into_iter().enumerate() {
                let backward = turn % 2 == 1;
                self.calls[i].order = Order { backward, turns };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Epilogue, Gemm};
    use crate::target::SAPPHIRE_RAPIDS;

    #[test]
    fn weights_that_are_streamed_are_read_to_and_fro() {
        let mut plan = Plan::default();
        let mut product = |rows: i64, weights: u64| {
            let gemm = Gemm::linear(rows, 512, 256, Epilogue::none(), &SAPPHIRE_RAPIDS);
            let place = Buffer::Workspace { offset: 0 };
            plan.call(
                KernelSpec::Gemm(gemm),
                [place, Buffer::Constant { offset: weights }, place],
            );
        };
        // Read twice, three times and once; and weights that are read again for other rows.
        for (rows, weights) in [
            (1, 0),
            (1, 64),
            (1, 0),
            (1, 64),
            (1, 64),
            (1, 128),
            (256, 192),
            (256, 192),
        ] {
            product(rows, weights);
        }
        plan.order_calls();
        let order = |backward, turns| Order { backward, turns };
        let expected = [
            order(false, false),
            order(false, true),
            order(true, false),
            order(true, true),
            order(false, true),
            order(false, true),
            order(false, false),
            order(false, false),
        ];
        assert_eq!(plan.calls.iter().map(|c| c.order).collect::<Vec<_>>(), expected);
    }
}
