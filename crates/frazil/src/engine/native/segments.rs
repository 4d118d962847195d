//! Segmented execution: methods run natively in segments, with graph breaks between them.
//!
//! A graph break is an operator whose result (a bool, a scalar, the shape of a tensor) depends on the elements of its operands, or a loop that stays rolled. A
//! segment is
//! compiled when a run first reaches it. Its key is the results of the graph breaks before it: bools and scalars by value, tensors by shape.
//! Loops and conditions on elements thus become a tree of compiled segments, and a run follows one path in it. Side effects (on attributes
//! and on the caller's tensors) are committed at the end of the run, so that the interpreter can run the method instead until then.

use crate::engine::native::compiled::{CompiledCode, CompiledMethod, NativePlan};
use crate::engine::native::compiler::Compiler;
use crate::engine::native::leaves::Leaves;
use crate::engine::native::loops::{Bodies, CompiledLoop};
use crate::engine::native::record::Record;
use crate::engine::native::signature::{Argument, CallSignature, describe_cells};
use crate::error::{Error, Result};
use crate::support::limited::unexceeded;
use crate::support::lock::lock;
use crate::support::once::Once;
use frazil_executor::RunError;
use frazil_executor::memory::Workspace;
use frazil_ir::{Graph, Module};
use frazil_planner::LowerError;
use frazil_planner::specialise::{self, Answer, Next, ResultSpec, Specialised, Start, segments};
use frazil_runtime::structured::TensorId;
use frazil_runtime::value::{TensorCell, Value};
use frazil_runtime::{Registry, Tensor};
use frazil_tensor_ir::call::RuntimeCall;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// Maximum number of segments in one run.
const MAX_SEGMENTS: usize = 512;
/// Number of segments after which a method is left to the interpreter, unless the engine is strict. The control flow of such a method depends on values that
/// rarely repeat.
const PATIENCE: usize = 64;
/// Maximum number of stored segments for one method and call signature. Above it, the next run discards all segments of the signature.
const MAX_KEPT: usize = 2 * MAX_SEGMENTS;

/// The method to be run in segments.
pub(crate) struct SegmentedMethod<'a> {
    /// The name of the method.
    pub name: &'a str,
    /// The frozen graph of the method.
    pub graph: &'a Graph,
    /// The module of the graph.
    pub module: &'a Module,
    /// The operators, with their semantics.
    pub registry: &'a Registry,
    /// The compiler for the method's segments.
    pub compiler: &'a Compiler,
    /// The record of compiled and refused segments.
    pub record: &'a Record,
    /// Whether loops stay rolled.
    pub rolls: bool,
    /// Plans of graphs, which specialisations share.
    pub shared: specialise::Shared<'a>,
    /// The compiled bodies of loops, which call signatures share.
    pub bodies: &'a Bodies,
    /// The first segments, if they have been specialised before.
    pub first: Mutex<VecDeque<specialise::Segment>>,
    /// Whether the interpreter must not run the method when it has more than `PATIENCE` segments.
    pub strict: bool,
}

/// The outcome of a segmented run of a method.
pub(crate) enum Outcome {
    /// The method returned the given value.
    Returned(Value),
    /// The interpreter must run the method, because it raises an exception, or because its tensors share memory in an unsupported way.
    Interpret,
    /// The method cannot be compiled, for the given reason.
    Refused(String),
}

/// The compiled segments of a method for one call signature, which all handles of an engine share. No lock is held while code runs or is compiled.
#[derive(Default)]
pub(crate) struct SegmentTree {
    /// Whether the code of the segments takes all sizes as arguments, so that other call signatures can use it.
    any_size: bool,
    segments: Mutex<Vec<Arc<Segment>>>,
    /// The segment with which every run starts.
    first: Once<Found>,
    /// The reason why the method is no longer run in segments.
    given_up: OnceLock<String>,
}

/// The index of a segment, or the reason why the segment cannot be compiled.
type Found = std::result::Result<usize, Refusal>;

#[derive(Clone)]
enum Refusal {
    Raises,
    Unsupported(String),
}

/// A compiled segment: the code between two graph breaks, and how the run continues.
pub(super) struct Segment {
    /// The code of the segment; `None` if the segment computes nothing.
    code: Option<CompiledCode>,
    /// The tensors that are the inputs of the code.
    takes: Vec<TensorId>,
    /// The tensors that are the outputs of the code.
    gives: Vec<TensorId>,
    /// All tensors that are inputs up to this segment: arguments, state, and results of graph breaks.
    inputs: Vec<TensorId>,
    /// End of the stable prefix: tensor ids from this one on denote different tensors in later segments.
    settled: TensorId,
    then: Then,
    /// The segments that follow and were specialised together with this one, until the next one is compiled.
    rest: Mutex<VecDeque<specialise::Segment>>,
    /// The segments that follow, keyed by the results of the graph break.
    after: Mutex<HashMap<Vec<Argument>, Arc<Once<Found>>>>,
}

/// The state of one handle for a [`SegmentTree`]: instances of the segments that its runs have reached, and the edges between these.
pub(crate) struct SegmentedRun {
    tree: Arc<SegmentTree>,
    /// Instances of segments, by the index of the segment.
    instances: Vec<Option<SegmentInstance>>,
    /// The memory in which the segments run, one at a time.
    workspace: Workspace,
    first: Option<Found>,
}

/// An instance of a segment, for runs on one handle.
struct SegmentInstance {
    segment: Arc<Segment>,
    code: Option<CompiledMethod>,
    /// The body of the loop at which the segment ends.
    body: Option<CompiledMethod>,
    after: HashMap<Vec<Argument>, Found>,
}

enum Then {
    Return(Box<Return>),
    Call(Box<RuntimeCall>),
    Loop(Box<CompiledLoop>),
}

/// The end of a method: how its results are formed, and its side effects; see [`Next::Return`].
struct Return {
    results: Vec<ResultSpec>,
    outputs: Vec<Output>,
    writes: Vec<(u32, u32)>,
    sets: Vec<(u32, u32, ResultSpec)>,
    warnings: Vec<String>,
}

/// An output of the method.
struct Output {
    tensor: TensorId,
    /// Whether the output is a copy, since the tensor is an input or an earlier output, too: the caller may write to either.
    is_copied: bool,
}

impl SegmentTree {
    /// Returns a tree without segments. `any_size` states whether their code takes all sizes as arguments.
    pub(crate) fn new(any_size: bool) -> SegmentTree {
        SegmentTree {
            any_size,
            ..SegmentTree::default()
        }
    }

    fn segments(&self) -> MutexGuard<'_, Vec<Arc<Segment>>> {
        lock(&self.segments)
    }

    /// Returns whether there are more segments than the maximum, so that all of them must be discarded.
    pub(crate) fn is_full(&self) -> bool {
        self.segments().len() > MAX_KEPT
    }

    /// Compiles the segment that follows the graph breaks with the results `answers`. The tensors `known` have been computed. `specialised` contains the segment
    /// and those that follow, if they have been specialised.
    ///
    /// # Errors
    /// If a limit is exceeded; the segment may still be compilable.
    fn add(
        &self,
        method: &SegmentedMethod<'_>,
        signature: &CallSignature,
        answers: &[Answer],
        known: &BTreeSet<TensorId>,
        specialised: &Mutex<VecDeque<specialise::Segment>>,
    ) -> Result<Found> {
        let limit = if method.strict { MAX_SEGMENTS } else { PATIENCE };
        let count = if method.strict {
            answers.len()
        } else {
            self.segments().len()
        };
        if count >= limit {
            let why = format!("its control flow depends on tensor elements: more than {limit} segments");
            if !method.strict {
                let _ = self.given_up.set(why.clone());
            }
            return Ok(Err(Refusal::Unsupported(why)));
        }
        let begin = Instant::now();
        let specialised = std::mem::take(&mut *lock(specialised));
        let compiled = Segment::new(method, self.any_size, signature, answers, known, specialised);
        unexceeded()?;
        let (segment, kernels) = match compiled {
            Ok(compiled) => compiled,
            Err(Error::Lower(LowerError::Raises { .. })) => return Ok(Err(Refusal::Raises)),
            Err(other) => return Ok(Err(Refusal::Unsupported(other.to_string()))),
        };
        let until = match &segment.then {
            Then::Return(_) => "its end".to_owned(),
            Then::Call(call) => call.name(),
            Then::Loop(rolled) => format!("a loop of {} iterations", rolled.end.trips),
        };
        let time = begin.elapsed();
        let mut segments = self.segments();
        method.record.add_time(time);
        method.record.note(format!(
            "{}: segment {} up to {until}: {kernels} kernel calls, compiled in {:.0} ms",
            method.name,
            segments.len(),
            time.as_secs_f64() * 1e3
        ));
        segments.push(Arc::new(segment));
        Ok(Ok(segments.len() - 1))
    }
}

impl SegmentedRun {
    pub(crate) fn new(tree: Arc<SegmentTree>, workspace: Workspace) -> SegmentedRun {
        SegmentedRun {
            tree,
            workspace,
            instances: Vec::new(),
            first: None,
        }
    }

    /// Returns the number of distinct kernels in the segments that the runs have reached.
    pub(crate) fn kernels(&self) -> usize {
        let kernels = |instance: &SegmentInstance| {
            let own = instance.segment.code.as_ref().map_or(0, CompiledCode::kernels);
            match &instance.segment.then {
                Then::Loop(rolled) => own + rolled.code.kernels(),
                Then::Return(_) | Then::Call(_) => own,
            }
        };
        self.instances.iter().flatten().map(kernels).sum()
    }

    /// Returns whether the segment tree has been discarded, so that the next run needs a new tree.
    pub(crate) fn is_over(&self) -> bool {
        self.instances.len() > MAX_KEPT
    }

    /// Returns the instance of the segment with the index `at`, which is created if necessary.
    fn instance(&mut self, at: usize) -> Result<&mut SegmentInstance> {
        if self.instances.len() <= at {
            self.instances.resize_with(at + 1, || None);
        }
        let missing = || Error::Unsupported(format!("there is no segment {at}"));
        let slot = self.instances.get_mut(at).ok_or_else(missing)?;
        match slot {
            Some(instance) => Ok(instance),
            None => {
                let segment = self.tree.segments().get(at).map(Arc::clone).ok_or_else(missing)?;
                let instance = |code: &CompiledCode| code.instance_in(&self.workspace);
                let body = match &segment.then {
                    Then::Loop(rolled) => Some(instance(&rolled.code)?),
                    Then::Return(_) | Then::Call(_) => None,
                };
                Ok(slot.insert(SegmentInstance {
                    code: segment.code.as_ref().map(instance).transpose()?,
                    body,
                    segment,
                    after: HashMap::new(),
                }))
            }
        }
    }

    /// Runs the method, and adds a note for each segment that it compiles.
    ///
    /// # Errors
    /// If the inputs do not fit the compiled code, and when a limit is exceeded.
    pub(crate) fn run(&mut self, method: &SegmentedMethod<'_>, signature: &CallSignature) -> Result<Outcome> {
        let tree = Arc::clone(&self.tree);
        if let Some(why) = tree.given_up.get() {
            return Ok(Outcome::Refused(why.clone()));
        }
        let mut known: HashMap<TensorId, Tensor> = HashMap::new();
        let mut cells = signature.cells.clone();
        let mut given_tensors: Vec<Tensor> = Vec::new();
        let mut answers: Vec<Answer> = Vec::new();
        let mut next = match &self.first {
            Some(found) => found.clone(),
            None => {
                let make = || tree.add(method, signature, &answers, &BTreeSet::new(), &method.first);
                let found = tree.first.get_or_make(make)?;
                self.first.insert(found.clone()).clone()
            }
        };
        loop {
            frazil_limits::check()?;
            let at = match next {
                Ok(at) => at,
                Err(Refusal::Raises) => return Ok(Outcome::Interpret),
                Err(Refusal::Unsupported(why)) => return Ok(Outcome::Refused(why)),
            };
            let instance = self.instance(at)?;
            let segment = &*instance.segment;
            let tensors = signature.tensors.iter().chain(&given_tensors);
            for (id, tensor) in segment.inputs.iter().zip(tensors) {
                known.entry(*id).or_insert_with(|| tensor.clone());
            }
            if let Some(code) = &mut instance.code {
                let inputs: Vec<Tensor> = segment.takes.iter().filter_map(|id| known.get(id).cloned()).collect();
                match code.run_all(&inputs) {
                    Ok(outputs) => {
                        let outputs = outputs.iter().filter_map(Value::as_tensor);
                        known.extend(segment.gives.iter().copied().zip(outputs));
                    }
                    Err(Error::NativeRun(RunError::Raised(_))) => return Ok(Outcome::Interpret),
                    Err(error) => return Err(error),
                }
            }
            let (given, name) = match &segment.then {
                Then::Return(end) => return end.value(signature, &cells, &known),
                Then::Call(call) => {
                    let inputs = call.inputs.iter().map(|id| known.get(id).cloned());
                    let inputs: Vec<Value> = inputs.map(|t| t.map(Value::from).unwrap_or_default()).collect();
                    let Ok(given) = call.values(&inputs) else {
                        return Ok(Outcome::Interpret);
                    };
                    (given, call.name())
                }
                Then::Loop(rolled) => {
                    let body = instance.body.as_mut();
                    let body = body.ok_or_else(|| Error::Unsupported("a loop has no code".to_owned()))?;
                    let given = rolled.run(body, &known)?;
                    (given.into_iter().map(Value::from).collect(), "a loop".to_owned())
                }
            };
            known.retain(|&id, _| id < segment.settled);
            let Some(((keys, specs, more), more_cells)) = describe_cells(&given) else {
                let why = format!("{name} gives what native code does not take");
                return Ok(Outcome::Refused(why));
            };
            cells.extend(more_cells);
            given_tensors.extend(more);
            answers.push(match &segment.then {
                Then::Loop(rolled) => Answer::Loop(Arc::clone(&rolled.end)),
                _ => Answer::Results(specs),
            });
            next = match instance.after.get(&keys) {
                Some(found) => found.clone(),
                None => {
                    let after = Arc::clone(lock(&segment.after).entry(keys.clone()).or_default());
                    let given: BTreeSet<TensorId> = known.keys().copied().collect();
                    let found = after.get_or_make(|| tree.add(method, signature, &answers, &given, &segment.rest))?;
                    instance.after.insert(keys, found.clone());
                    found.clone()
                }
            };
        }
    }
}

impl Segment {
    /// Compiles a segment. Returns it with the number of its calls of kernels.
    fn new(
        method: &SegmentedMethod<'_>,
        any_size: bool,
        signature: &CallSignature,
        answers: &[Answer],
        known: &BTreeSet<TensorId>,
        mut specialised: VecDeque<specialise::Segment>,
    ) -> Result<(Segment, usize)> {
        let start = Start {
            objects: &signature.objects,
            module: Some(method.module),
            rolls: method.rolls,
            shared: Some(method.shared),
        };
        let compiler = method.compiler.named(method.name);
        let compiler = match any_size {
            true => compiler.for_any_size(),
            false => compiler.in_process(),
        };
        if specialised.is_empty() {
            specialised = segments(method.graph, &signature.specs, answers, &start, method.registry)?.into();
        }
        let missing = || Error::Unsupported("a method has no segment".to_owned());
        let found = specialised.pop_front().ok_or_else(missing)?;
        let (mut segment, kernels) = Segment::of(found, known, &compiler, method.bodies)?;
        segment.rest = Mutex::new(specialised);
        Ok((segment, kernels))
    }

    /// Compiles a specialised segment. Returns it with the number of its calls of kernels.
    pub(super) fn of(
        found: specialise::Segment,
        known: &BTreeSet<TensorId>,
        compiler: &Compiler,
        bodies: &Bodies,
    ) -> Result<(Segment, usize)> {
        let mut kernels = 0;
        let graph = found.graph;
        let mut given = known.clone();
        given.extend(graph.inputs());
        let (then, mut wanted) = match found.next {
            Next::Call(call) => {
                let mut wanted: BTreeSet<TensorId> = call.inputs.iter().copied().collect();
                wanted.extend(found.live.iter().filter(|&&id| graph.as_constant(id).is_none()));
                (Then::Call(call), wanted)
            }
            Next::Loop(rolled) => {
                let mut wanted: BTreeSet<TensorId> = rolled.needs().collect();
                wanted.extend(found.live.iter().filter(|&&id| graph.as_constant(id).is_none()));
                let (rolled, calls) = CompiledLoop::new(*rolled, compiler, bodies)?;
                kernels += calls;
                (Then::Loop(Box::new(rolled)), wanted)
            }
            Next::Return {
                results,
                writes,
                sets,
                warnings,
            } => {
                let mut others: BTreeSet<TensorId> = graph.inputs().iter().copied().collect();
                let output = |&tensor| Output {
                    tensor,
                    is_copied: !others.insert(tensor),
                };
                let outputs = graph.outputs().iter().map(output).collect();
                let wanted = graph.outputs().iter().copied().collect();
                let end = Return {
                    results,
                    outputs,
                    writes,
                    sets,
                    warnings,
                };
                (Then::Return(Box::new(end)), wanted)
            }
        };
        wanted.retain(|id| !given.contains(id));
        let gives: Vec<TensorId> = wanted.into_iter().collect();
        let checked = found.checks.iter().map(|(id, _)| *id);
        let outputs: Vec<TensorId> = gives.iter().copied().chain(checked).collect();
        let (mut part, takes) = graph.subgraph(&given, &outputs);
        part.set_checks(found.checks.into_iter().map(|(_, message)| message).collect());
        let code = if outputs.is_empty() {
            None
        } else {
            let results = (0..gives.len() as u32).map(ResultSpec::Tensor).collect();
            let specialised = Specialised {
                graph: part,
                results,
                warnings: Vec::new(),
            };
            let plan = NativePlan::of(specialised, compiler)?;
            kernels += plan.kernel_count().0;
            Some(plan.code(compiler)?)
        };
        let segment = Segment {
            code,
            takes,
            gives,
            inputs: graph.inputs().to_vec(),
            settled: found.settled,
            then,
            rest: Mutex::default(),
            after: Mutex::default(),
        };
        Ok((segment, kernels))
    }

    /// Returns the tensors that exist after the segment, if the tensors `known` exist before.
    pub(super) fn leaves(&self, mut known: BTreeSet<TensorId>) -> BTreeSet<TensorId> {
        known.extend(self.inputs.iter().chain(&self.gives));
        known.retain(|&id| id < self.settled);
        known
    }
}

impl Return {
    /// Performs the side effects of the method and returns its result.
    fn value(
        &self,
        signature: &CallSignature,
        cells: &[TensorCell],
        known: &HashMap<TensorId, Tensor>,
    ) -> Result<Outcome> {
        let own = &signature.cells;
        if !self.writes.is_empty() && overlap(own) {
            return Ok(Outcome::Interpret);
        }
        let output = |output: &Output| {
            let missing = || Error::Unsupported("an output was not computed".to_owned());
            let tensor = known.get(&output.tensor).ok_or_else(missing)?;
            Ok(match output.is_copied {
                true => tensor.deep_copy()?,
                false => tensor.clone(),
            })
        };
        let outputs: Result<Vec<Tensor>> = self.outputs.iter().map(output).collect();
        let leaves = Leaves::new(outputs?, cells);
        let mut results: Vec<Value> = self.results.iter().map(|r| leaves.value(r)).collect();
        let set: Vec<Value> = self.sets.iter().map(|(_, _, spec)| leaves.value(spec)).collect();
        for (number, index) in &self.writes {
            if let (Some(cell), Some(value)) = (own.get(*number as usize), leaves.output(*index)) {
                cell.get().copy_(value)?;
            }
        }
        for ((object, slot, _), value) in self.sets.iter().zip(set) {
            if let Some(object) = signature.state.get(*object as usize) {
                object.set_slot(*slot as usize, value);
            }
        }
        // In the interpreter's order; not earlier, since the interpreter may have to run the method instead.
        for text in &self.warnings {
            tracing::warn!(target: "frazil::warn", "{text}");
        }
        Ok(Outcome::Returned(match results.len() {
            1 => results.remove(0),
            _ => Value::tuple(results),
        }))
    }
}

/// Returns whether two tensors in `cells` share memory.
fn overlap(cells: &[TensorCell]) -> bool {
    let mut seen = BTreeSet::new();
    let addresses = cells.iter().map(|c| Arc::as_ptr(c.get().storage()) as usize);
    addresses.into_iter().any(|a| !seen.insert(a))
}
