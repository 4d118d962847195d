//! Native code for parts of methods, called by the interpreter that runs the rest.

use crate::compiler::Compiler;
use crate::describe::{Argument, describe_all};
use crate::partition::partition;
use crate::{CompiledMethod, NativePlan};
use frazil_ir::Graph;
use frazil_runtime::interp::Delegate;
use frazil_runtime::{Registry, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Kinds of arguments for which a part is compiled; one that sees more runs in the interpreter from then on.
const MAX_VARIANTS: usize = 16;

/// The parts of a model's methods.
pub(crate) struct Parts {
    registry: Arc<Registry>,
    compiler: Compiler,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    parts: HashMap<usize, Part>,
    notes: Vec<String>,
    compile_time: Duration,
}

/// A part with what it was compiled to; `None` where it cannot be.
struct Part {
    /// Keeps the address, by which the part is known, from being used again.
    _graph: Arc<Graph>,
    variants: HashMap<Vec<Argument>, Option<CompiledMethod>>,
}

impl Parts {
    pub(crate) fn new(registry: Arc<Registry>, compiler: Compiler) -> Parts {
        Parts {
            registry,
            compiler,
            state: Mutex::default(),
        }
    }

    /// What was compiled since the last call of this, a line each, and how long that took.
    pub(crate) fn take_notes(&self) -> (Vec<String>, Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (
            std::mem::take(&mut state.notes),
            std::mem::take(&mut state.compile_time),
        )
    }

    fn compile(&self, state: &mut State, graph: &Graph, specs: &[frazil_codegen::InputSpec]) -> Option<CompiledMethod> {
        let start = Instant::now();
        let compiler = self.compiler.named("part");
        let place = graph
            .first(graph.root())
            .and_then(|n| {
                graph
                    .all_nodes()
                    .into_iter()
                    .chain([n])
                    .find_map(|n| graph.source_range(n))
            })
            .map(|r| format!(" at {}", r.display(graph.ctx())));
        let place = place.unwrap_or_default();
        let compiled = NativePlan::new(graph, specs, &self.registry, &compiler)
            .map_err(|e| e.to_string())
            .and_then(|plan| {
                let (calls, _) = plan.kernel_count();
                plan.compile_with(&compiler)
                    .map(|code| (calls, code))
                    .map_err(|e| e.to_string())
            });
        let time = start.elapsed();
        state.compile_time += time;
        match compiled {
            Ok((calls, code)) => {
                let ms = time.as_secs_f64() * 1e3;
                state
                    .notes
                    .push(format!("part{place}: {calls} kernel calls, compiled in {ms:.0} ms"));
                Some(code)
            }
            Err(why) => {
                state.notes.push(format!("part{place}: runs in the interpreter: {why}"));
                None
            }
        }
    }
}

impl Delegate for Parts {
    fn partition(&self, graph: &Graph) -> Option<Graph> {
        partition(graph, &self.registry)
    }

    fn run(&self, part: &Arc<Graph>, inputs: &[Value]) -> Option<Vec<Value>> {
        let (key, specs, tensors) = describe_all(inputs)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let address = Arc::as_ptr(part) as usize;
        let known = state.parts.entry(address).or_insert_with(|| Part {
            _graph: part.clone(),
            variants: HashMap::new(),
        });
        if !known.variants.contains_key(&key) {
            if known.variants.len() >= MAX_VARIANTS {
                return None;
            }
            let compiled = self.compile(&mut state, part, &specs);
            state.parts.get_mut(&address)?.variants.insert(key.clone(), compiled);
        }
        let code = state.parts.get_mut(&address)?.variants.get_mut(&key)?.as_mut()?;
        // What it raises, the interpreter raises with the place.
        code.run_all(&tensors).ok()
    }
}
