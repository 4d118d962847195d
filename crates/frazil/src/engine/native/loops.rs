//! Rolled loops: the compiled code of a loop's body, which runs once for each iteration.

use crate::engine::native::compiled::{CompiledCode, CompiledMethod, NativePlan};
use crate::engine::native::compiler::Compiler;
use crate::error::{Error, Result};
use crate::support::lock::lock;
use frazil_ir::contiguous_strides;
use frazil_planner::specialise::{LoopEnd, LoopInput, LoopOutput, ResultSpec, RolledLoop, Source, Specialised};
use frazil_runtime::storage::AlignedBytes;
use frazil_runtime::structured::TensorId;
use frazil_runtime::{Storage, Tensor, TensorError};
use frazil_tensor_ir::graph::TensorGraph;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

/// Maximum number of bodies that [`Bodies`] keeps.
const MOST_BODIES: usize = 16;

/// The compiled bodies of loops, most recently used first. For another number of iterations, a body is often the same.
#[derive(Default)]
pub(crate) struct Bodies(Mutex<VecDeque<Body>>);

#[derive(Clone)]
struct Body {
    graph: Arc<TensorGraph>,
    code: Arc<CompiledCode>,
    /// Number of calls of kernels.
    calls: usize,
}

impl Bodies {
    /// Returns the code of `graph`, and makes it the most recently used one.
    fn get(&self, graph: &TensorGraph) -> Option<Body> {
        let mut bodies = lock(&self.0);
        let at = bodies.iter().position(|body| body.graph.is_same(graph))?;
        let body = bodies.remove(at)?;
        bodies.push_front(body.clone());
        Some(body)
    }

    fn add(&self, body: Body) {
        let mut bodies = lock(&self.0);
        bodies.push_front(body);
        bodies.truncate(MOST_BODIES);
    }
}

/// A loop whose body is compiled.
pub(super) struct CompiledLoop {
    pub(super) code: Arc<CompiledCode>,
    inputs: Vec<LoopInput>,
    pub(super) end: Arc<LoopEnd>,
}

impl CompiledLoop {
    /// Compiles the body of a loop, unless it is one of `bodies`, which `compiler` has compiled. Returns it with the number of its calls of kernels.
    pub(super) fn new(rolled: RolledLoop, compiler: &Compiler, bodies: &Bodies) -> Result<(CompiledLoop, usize)> {
        let body = match bodies.get(&rolled.body) {
            Some(body) => body,
            None => {
                let graph = Arc::new(rolled.body.clone());
                let specialised = Specialised {
                    results: (0..rolled.end.outputs.len() as u32).map(ResultSpec::Tensor).collect(),
                    graph: rolled.body,
                    warnings: Vec::new(),
                };
                let plan = NativePlan::of(specialised, compiler)?;
                let calls = plan.kernel_count().0;
                let code = Arc::new(plan.code(compiler)?);
                let body = Body { graph, code, calls };
                bodies.add(body.clone());
                body
            }
        };
        let compiled = CompiledLoop {
            code: body.code,
            inputs: rolled.inputs,
            end: rolled.end,
        };
        Ok((compiled, body.calls))
    }

    /// Runs the loop. `body` is an instance of its code, `known` are the tensors that exist before the loop. Returns one tensor for each of the loop's outputs:
    /// that of the last iteration, or those of all iterations, joined along a new first dimension.
    ///
    /// # Errors
    /// If an iteration fails, or the system refuses memory.
    pub(super) fn run(&self, body: &mut CompiledMethod, known: &HashMap<TensorId, Tensor>) -> Result<Vec<Tensor>> {
        let inputs = self.inputs.iter().zip(body.inputs());
        let inputs = inputs
            .map(|(input, port)| Reading::new(input, port.bytes(), port.dtype.size(), known))
            .collect::<Result<Vec<_>>>()?;
        let outputs = self.end.outputs.iter();
        let mut outputs = outputs
            .map(|output| Writing::new(output, self.end.trips))
            .collect::<Result<Vec<_>>>()?;
        let snapshots: Vec<_> = inputs.iter().map(|input| input.tensor.storage().bytes()).collect();
        for trip in 0..self.end.trips as usize {
            frazil_limits::check()?;
            let (previous, mut new): (Vec<&[u8]>, Vec<&mut [u8]>) =
                outputs.iter_mut().map(|output| output.at(trip)).unzip();
            let bytes: Vec<&[u8]> = inputs
                .iter()
                .zip(&snapshots)
                .map(|(input, snapshot)| input.at(trip, snapshot, &previous))
                .collect();
            body.run_into(&bytes, &mut new)?;
        }
        drop(snapshots);
        outputs
            .into_iter()
            .map(|output| output.tensor(self.end.trips))
            .collect()
    }
}

/// An input of the body, with the tensor in which its bytes are before the first iteration.
struct Reading {
    tensor: Tensor,
    /// First byte of the input in the storage, in each iteration; the last one also holds for later iterations.
    first: Vec<usize>,
    bytes: usize,
    /// The output of the previous iteration that is the input of all iterations but the first.
    next: Option<usize>,
}

impl Reading {
    fn new(input: &LoopInput, bytes: usize, size: usize, known: &HashMap<TensorId, Tensor>) -> Result<Reading> {
        let missing = || Error::Unsupported("a loop reads a tensor that was not computed".to_owned());
        let of_source = |source: &Source| match source {
            Source::Computed(id) => known.get(id).cloned().ok_or_else(missing),
            Source::Known(tensor) => Ok(tensor.clone()),
        };
        let reading = |tensor: Tensor, offsets: &[i64], next| -> Result<Reading> {
            let tensor = tensor.contiguous()?;
            let first = |offset: &i64| (tensor.offset() + offset).max(0) as usize * size;
            Ok(Reading {
                first: offsets.iter().map(first).collect(),
                tensor,
                bytes,
                next,
            })
        };
        match input {
            LoopInput::Same(source) => reading(of_source(source)?, &[0], None),
            LoopInput::Carried { initial, next } => reading(of_source(initial)?, &[0], Some(*next)),
            LoopInput::Slice { whole, offsets } => {
                reading(known.get(whole).cloned().ok_or_else(missing)?, offsets, None)
            }
            LoopInput::Number(values) => {
                let offsets: Vec<i64> = (0..values.len() as i64).collect();
                reading(Tensor::from_i64(values, &[values.len() as i64])?, &offsets, None)
            }
        }
    }

    /// Returns the bytes of the input in iteration `trip`. `snapshot` are the bytes of the tensor's storage, `previous` the outputs of the previous iteration.
    fn at<'a>(&self, trip: usize, snapshot: &'a [u8], previous: &[&'a [u8]]) -> &'a [u8] {
        if let (Some(next), true) = (self.next, trip > 0) {
            return previous.get(next).copied().unwrap_or_default();
        }
        let first = self.first.get(trip).or(self.first.last()).copied().unwrap_or_default();
        snapshot.get(first..first + self.bytes).unwrap_or_default()
    }
}

/// An output of the body, with its memory.
struct Writing<'a> {
    output: &'a LoopOutput,
    /// Number of bytes in one iteration.
    bytes: usize,
    /// The memory for all iterations, or for those with an even number.
    memory: AlignedBytes,
    /// The memory for iterations with an odd number, if the output is not kept.
    other: AlignedBytes,
}

impl Writing<'_> {
    fn new(output: &LoopOutput, trips: i64) -> Result<Writing<'_>> {
        let bytes = Tensor::byte_size(output.shape.dtype, &output.shape.sizes)?;
        let too_large = || Error::Unsupported("the outputs of a loop are too large".to_owned());
        let (all, other) = match output.is_kept {
            true => (bytes.checked_mul(trips as usize).ok_or_else(too_large)?, 0),
            false => (bytes, bytes),
        };
        Ok(Writing {
            output,
            bytes,
            memory: AlignedBytes::zeroed(all).map_err(TensorError::from)?,
            other: AlignedBytes::zeroed(other).map_err(TensorError::from)?,
        })
    }

    /// Returns the bytes of the iteration before `trip`, and the memory for iteration `trip`.
    fn at(&mut self, trip: usize) -> (&[u8], &mut [u8]) {
        match (self.output.is_kept, trip % 2) {
            (true, _) => {
                let at = trip * self.bytes;
                let (done, rest) = self.memory.as_mut_slice().split_at_mut(at);
                let previous = done.get(at.saturating_sub(self.bytes)..).unwrap_or_default();
                (previous, rest.get_mut(..self.bytes).unwrap_or_default())
            }
            (false, 0) => (self.other.as_slice(), self.memory.as_mut_slice()),
            (false, _) => (self.memory.as_slice(), self.other.as_mut_slice()),
        }
    }

    /// Returns the output after the loop.
    fn tensor(self, trips: i64) -> Result<Tensor> {
        let mut sizes = self.output.shape.sizes.to_vec();
        let memory = match (self.output.is_kept, trips % 2) {
            (true, _) => {
                sizes.insert(0, trips);
                self.memory
            }
            (false, 1) => self.memory,
            (false, _) => self.other,
        };
        let strides = contiguous_strides(&sizes);
        Ok(Tensor::from_storage(
            Storage::from_owned(memory),
            self.output.shape.dtype,
            &sizes,
            &strides,
            0,
        )?)
    }
}
