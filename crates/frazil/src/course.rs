//! Segmented execution: methods that run natively in segments, with graph breaks between them.
//!
//! A graph break is an operator whose result (a bool, a scalar, the shape of a tensor) depends on the elements of its operands. A segment is
//! compiled when a run first reaches it. Its key is the results of the graph breaks before it: bools and scalars by value, tensors by shape.
//! Loops and conditions on elements thus become a tree of compiled segments, and a run follows one path in it. Side effects (on attributes
//! and on the caller's tensors) are committed at the end of the run, so that the interpreter can run the method instead until then.

use crate::compiler::Compiler;
use crate::describe::{Argument, CallSignature, describe_cells};
use crate::{CompiledMethod, NativePlan};
use crate::{Error, Result};
use frazil_codegen::LowerError;
use frazil_codegen::cache::ObjectCache;
use frazil_codegen::compile::RunError;
use frazil_codegen::host::HostCall;
use frazil_codegen::specialise::{InputSpec, Next, ResultSpec, Specialised, Start, stretch};
use frazil_ir::{Graph, Module};
use frazil_runtime::structured::TensorId;
use frazil_runtime::value::{TensorCell, Value};
use frazil_runtime::{Registry, Tensor};
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// Maximum number of segments in one run.
const MAX_STRETCHES: usize = 512;
/// Number of segments after which a method is left to the interpreter, unless the engine is strict: its control flow depends on values that
/// hardly ever repeat.
const PATIENCE: usize = 64;
/// Maximum number of segments that are kept for one method and call signature. With more, the next run discards all of them.
const MAX_KEPT: usize = 2 * MAX_STRETCHES;

/// The method to run.
pub(crate) struct Method<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its graph, frozen.
    pub graph: &'a Graph,
    /// The module that the graph belongs to.
    pub module: &'a Module,
    /// The operators.
    pub registry: &'a Registry,
    /// How it is compiled.
    pub compiler: &'a Compiler,
    /// Whether the interpreter must not run the method when it has more than `PATIENCE` segments.
    pub strict: bool,
}

/// The outcome of a run.
pub(crate) enum Ending {
    /// The method returned this value.
    Returned(Value),
    /// The interpreter has to run the method: it raises, or its tensors share memory in a way that matters.
    Interpret,
    /// The method cannot be compiled, for this reason.
    Refused(String),
}

/// The compiled segments of a method for one call signature.
#[derive(Default)]
pub(crate) struct Course {
    stages: Vec<Stage>,
    /// Their kernels: most iterations of a loop share them.
    objects: ObjectCache,
    /// The first segment, or the reason why it cannot be compiled.
    first: Option<Found>,
    /// The reason why the method is no longer run natively.
    given_up: Option<String>,
}

/// The index of a stage, or the reason why there is none.
type Found = std::result::Result<usize, Obstacle>;

#[derive(Clone)]
enum Obstacle {
    Raises,
    Unsupported(String),
}

/// A compiled segment.
struct Stage {
    /// `None` when the segment computes nothing.
    code: Option<CompiledMethod>,
    /// The input tensors of the code.
    takes: Vec<TensorId>,
    /// The output tensors of the code.
    gives: Vec<TensorId>,
    /// All inputs so far: arguments, state, and results of graph breaks.
    inputs: Vec<TensorId>,
    /// End of the stable prefix: ids from here on denote other tensors in later segments.
    settled: TensorId,
    then: Then,
    /// The next stages, by the results of the graph break.
    after: HashMap<Vec<Argument>, Found>,
}

enum Then {
    Return(Box<Return>),
    Call(Box<HostCall>),
}

/// See [`Next::Return`].
struct Return {
    results: Vec<ResultSpec>,
    outputs: Vec<TensorId>,
    writes: Vec<(u32, u32)>,
    sets: Vec<(u32, u32, ResultSpec)>,
    warnings: Vec<String>,
}

impl Course {
    /// Runs the method, and adds a note for each segment that it compiles.
    ///
    /// # Errors
    /// When the inputs do not fit the compiled code.
    pub fn run(&mut self, method: &Method<'_>, signature: &CallSignature, notes: &mut Vec<String>) -> Result<Ending> {
        if let Some(why) = &self.given_up {
            return Ok(Ending::Refused(why.clone()));
        }
        if self.stages.len() > MAX_KEPT {
            *self = Course::default();
        }
        let mut known: HashMap<TensorId, Tensor> = HashMap::new();
        let mut tensors = signature.tensors.clone();
        let mut answers: Vec<Vec<InputSpec>> = Vec::new();
        let mut next = match &self.first {
            Some(found) => found.clone(),
            None => {
                let found = self.add(method, signature, &answers, &known, notes);
                self.first.insert(found).clone()
            }
        };
        loop {
            let at = match next {
                Ok(at) => at,
                Err(Obstacle::Raises) => return Ok(Ending::Interpret),
                Err(Obstacle::Unsupported(why)) => return Ok(Ending::Refused(why)),
            };
            let stage = &mut self.stages[at];
            for (id, cell) in stage.inputs.iter().zip(&tensors) {
                known.entry(*id).or_insert_with(|| cell.get());
            }
            if let Some(code) = &mut stage.code {
                let inputs: Vec<Tensor> = stage.takes.iter().filter_map(|id| known.get(id).cloned()).collect();
                match code.run_all(&inputs) {
                    Ok(outputs) => {
                        let outputs = outputs.iter().filter_map(Value::as_tensor);
                        known.extend(stage.gives.iter().copied().zip(outputs));
                    }
                    Err(Error::NativeRun(RunError::Raised(_))) => return Ok(Ending::Interpret),
                    Err(error) => return Err(error),
                }
            }
            let call = match &stage.then {
                Then::Return(end) => return end.value(signature, &tensors, &known),
                Then::Call(call) => call,
            };
            let inputs: Vec<Value> = call
                .inputs
                .iter()
                .map(|id| known.get(id).cloned().map(Value::from).unwrap_or_default())
                .collect();
            let Ok(given) = call.values(&inputs) else {
                return Ok(Ending::Interpret);
            };
            known.retain(|&id, _| id < stage.settled);
            let Some((keys, specs, cells)) = describe_cells(&given) else {
                let why = format!("{} gives what native code does not take", call.name());
                return Ok(Ending::Refused(why));
            };
            tensors.extend(cells);
            answers.push(specs);
            next = match stage.after.get(&keys) {
                Some(found) => found.clone(),
                None => {
                    let found = self.add(method, signature, &answers, &known, notes);
                    self.stages[at].after.insert(keys, found.clone());
                    found
                }
            };
        }
    }

    /// Compiles the segment that follows the graph breaks with the results `answers`. The tensors `known` have been computed.
    fn add(
        &mut self,
        method: &Method<'_>,
        signature: &CallSignature,
        answers: &[Vec<InputSpec>],
        known: &HashMap<TensorId, Tensor>,
        notes: &mut Vec<String>,
    ) -> Found {
        let limit = if method.strict { MAX_STRETCHES } else { PATIENCE };
        let count = if method.strict {
            answers.len()
        } else {
            self.stages.len()
        };
        if count >= limit {
            let why = format!("its control flow depends on tensor elements: more than {limit} segments");
            self.given_up = (!method.strict).then(|| why.clone());
            return Err(Obstacle::Unsupported(why));
        }
        let begin = Instant::now();
        let stage = Stage::new(method, signature, answers, known, &self.objects).map_err(|e| match e {
            Error::Lower(LowerError::Raises { .. }) => Obstacle::Raises,
            other => Obstacle::Unsupported(other.to_string()),
        })?;
        let (stage, kernels) = stage;
        let until = match &stage.then {
            Then::Return(_) => "its end".to_owned(),
            Then::Call(call) => call.name(),
        };
        notes.push(format!(
            "{}: segment {} up to {until}: {kernels} kernel calls, compiled in {:.0} ms",
            method.name,
            self.stages.len(),
            begin.elapsed().as_secs_f64() * 1e3
        ));
        self.stages.push(stage);
        Ok(self.stages.len() - 1)
    }
}

impl Stage {
    /// Compiles a segment. Returns it with the number of its kernel calls.
    fn new(
        method: &Method<'_>,
        signature: &CallSignature,
        answers: &[Vec<InputSpec>],
        known: &HashMap<TensorId, Tensor>,
        objects: &ObjectCache,
    ) -> Result<(Stage, usize)> {
        let start = Start {
            objects: &signature.objects,
            module: Some(method.module),
        };
        let found = stretch(method.graph, &signature.specs, answers, &start, method.registry)?;
        let graph = found.graph;
        let mut given: BTreeSet<TensorId> = known.keys().copied().collect();
        given.extend(&graph.inputs);
        let (then, mut wanted) = match found.next {
            Next::Call(call) => {
                let mut wanted: BTreeSet<TensorId> = call.inputs.iter().copied().collect();
                wanted.extend(found.live.iter().filter(|&&id| graph.as_constant(id).is_none()));
                (Then::Call(call), wanted)
            }
            Next::Return {
                results,
                writes,
                sets,
                warnings,
            } => {
                let outputs = graph.outputs.clone();
                let wanted = outputs.iter().copied().collect();
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
        let (mut part, takes) = graph.part(&given, &outputs);
        part.checks = found.checks.into_iter().map(|(_, message)| message).collect();
        let mut kernels = 0;
        let code = if outputs.is_empty() {
            None
        } else {
            let results = (0..gives.len() as u32).map(ResultSpec::Tensor).collect();
            let compiler = method.compiler.named(method.name).or_sharing(objects);
            let specialised = Specialised {
                graph: part,
                results,
                warnings: Vec::new(),
            };
            let plan = NativePlan::of(specialised, &compiler)?;
            kernels = plan.kernel_count().0;
            Some(plan.compile_with(&compiler)?)
        };
        let stage = Stage {
            code,
            takes,
            gives,
            inputs: graph.inputs,
            settled: found.settled,
            then,
            after: HashMap::new(),
        };
        Ok((stage, kernels))
    }
}

impl Return {
    /// Commits the side effects of the method and returns its result.
    fn value(
        &self,
        signature: &CallSignature,
        tensors: &[TensorCell],
        known: &HashMap<TensorId, Tensor>,
    ) -> Result<Ending> {
        let own = &signature.tensors;
        let all = self.results.iter().chain(self.sets.iter().map(|(_, _, spec)| spec));
        let is_dense = |n: u32| tensors.get(n as usize).is_some_and(|c| c.get().is_contiguous());
        if all.into_iter().any(|spec| !views(spec).into_iter().all(is_dense)) || !self.writes.is_empty() && overlap(own)
        {
            return Ok(Ending::Interpret);
        }
        let output = |i: u32| self.outputs.get(i as usize).and_then(|id| known.get(id)).cloned();
        let leaf = |spec: &ResultSpec| match spec {
            ResultSpec::Tensor(i) => output(*i).map(Value::from).unwrap_or_default(),
            ResultSpec::Input(n) => tensors.get(*n as usize).cloned().map(Value::Tensor).unwrap_or_default(),
            ResultSpec::View(n, sizes, strides, offset, marks) => {
                let base = tensors.get(*n as usize).map(TensorCell::get);
                let view = base.and_then(|t| t.as_strided(sizes, strides, t.offset() + offset).ok());
                let marked = view.map(|v| v.with_marks(v.marks().with(*marks)));
                marked.map(Value::from).unwrap_or_default()
            }
            _ => Value::None,
        };
        let mut results: Vec<Value> = self.results.iter().map(|r| r.value_with(&leaf)).collect();
        let set: Vec<Value> = self.sets.iter().map(|(_, _, spec)| spec.value_with(&leaf)).collect();
        for (number, index) in &self.writes {
            if let (Some(cell), Some(value)) = (own.get(*number as usize), output(*index)) {
                cell.get().copy_(&value)?;
            }
        }
        for ((object, slot, _), value) in self.sets.iter().zip(set) {
            if let Some(object) = signature.state.get(*object as usize) {
                object.set_slot(*slot as usize, value);
            }
        }
        // As the interpreter does; not before, since the interpreter may have to run the method instead.
        for text in &self.warnings {
            tracing::warn!(target: "frazil::warn", "{text}");
        }
        Ok(Ending::Returned(match results.len() {
            1 => results.remove(0),
            _ => Value::tuple(results),
        }))
    }
}

/// Returns the inputs of which `spec` holds views.
fn views(spec: &ResultSpec) -> Vec<u32> {
    match spec {
        ResultSpec::View(n, ..) => vec![*n],
        ResultSpec::List(_, items) | ResultSpec::Tuple(items) => items.iter().flat_map(views).collect(),
        ResultSpec::Dict(_, _, entries) => entries.iter().flat_map(|(_, v)| views(v)).collect(),
        ResultSpec::Tensor(_) | ResultSpec::Number(_) | ResultSpec::Input(_) | ResultSpec::Value(_) => Vec::new(),
    }
}

/// Returns whether two of the tensors share memory.
fn overlap(tensors: &[TensorCell]) -> bool {
    let mut seen = BTreeSet::new();
    let addresses = tensors
        .iter()
        .map(|c| std::sync::Arc::as_ptr(c.get().storage()) as usize);
    addresses.into_iter().any(|a| !seen.insert(a))
}
