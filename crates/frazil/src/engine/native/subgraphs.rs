//! Native code for subgraphs of methods, called by the interpreter at run time.

use crate::engine::native::compiled::{CompiledCode, CompiledMethod, NativePlan};
use crate::engine::native::compiler::Compiler;
use crate::engine::native::partition::partition;
use crate::engine::native::record::Record;
use crate::engine::native::signature::{Argument, describe_cells};
use crate::error::Result;
use crate::support::limited::unexceeded;
use crate::support::lock::lock;
use crate::support::once::Once;
use frazil_ir::Graph;
use frazil_runtime::interp::Delegate;
use frazil_runtime::{Registry, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Maximum number of call signatures for which a subgraph is compiled. Beyond it, the interpreter runs all further calls.
const MAX_VARIANTS: usize = 16;

/// The compiled subgraphs of a model's methods. Several threads may run the same subgraph at the same time. No lock is held while code runs or is compiled.
pub(crate) struct Subgraphs {
    registry: Arc<Registry>,
    compiler: Compiler,
    record: Arc<Record>,
    /// The compiled subgraphs, keyed by the address of their graph.
    parts: Mutex<HashMap<usize, Part>>,
}

/// A subgraph with its compiled code.
struct Part {
    /// The graph of the subgraph. It is kept alive because its address is a key.
    _graph: Arc<Graph>,
    variants: HashMap<Vec<Argument>, Arc<Variant>>,
}

/// The compiled code of a subgraph for one call signature.
#[derive(Default)]
struct Variant {
    /// The code; `None` if the subgraph cannot be compiled.
    code: Once<Option<CompiledCode>>,
    /// Instances of the code that no thread uses. Their number is the largest number of concurrent runs so far.
    idle: Mutex<Vec<CompiledMethod>>,
}

impl Subgraphs {
    pub(crate) fn new(registry: Arc<Registry>, compiler: Compiler, record: Arc<Record>) -> Subgraphs {
        Subgraphs {
            registry,
            compiler,
            record,
            parts: Mutex::default(),
        }
    }

    /// Returns the code of a subgraph; `None` if it cannot be compiled.
    ///
    /// # Errors
    /// If a limit is exceeded; the subgraph may still be compilable.
    fn compile(&self, graph: &Graph, specs: &[frazil_planner::ArgumentSpec]) -> Result<Option<CompiledCode>> {
        let start = Instant::now();
        let compiler = self.compiler.named("part").in_process();
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
        let compiled = NativePlan::aliasing(graph, specs, None, &self.registry, &compiler)
            .map_err(|e| e.to_string())
            .and_then(|plan| {
                let (calls, _) = plan.kernel_count();
                plan.code(&compiler)
                    .map(|code| (calls, code))
                    .map_err(|e| e.to_string())
            });
        unexceeded()?;
        let time = start.elapsed();
        self.record.add_time(time);
        match compiled {
            Ok((calls, code)) => {
                let ms = time.as_secs_f64() * 1e3;
                self.record
                    .note(format!("part{place}: {calls} kernel calls, compiled in {ms:.0} ms"));
                Ok(Some(code))
            }
            Err(why) => {
                self.record.note(format!("part{place}: runs in the interpreter: {why}"));
                Ok(None)
            }
        }
    }

    /// Returns the variant of a subgraph for the call signature `key`; `None` if the subgraph already has the maximum number of variants.
    fn variant(&self, part: &Arc<Graph>, key: Vec<Argument>) -> Option<Arc<Variant>> {
        let mut parts = lock(&self.parts);
        let known = parts.entry(Arc::as_ptr(part) as usize).or_insert_with(|| Part {
            _graph: part.clone(),
            variants: HashMap::new(),
        });
        if let Some(variant) = known.variants.get(&key) {
            return Some(Arc::clone(variant));
        }
        let has_room = known.variants.len() < MAX_VARIANTS;
        has_room.then(|| Arc::clone(known.variants.entry(key).or_default()))
    }
}

impl Delegate for Subgraphs {
    fn partition(&self, graph: &Graph) -> Option<Graph> {
        partition(graph, &self.registry)
    }

    fn run(&self, part: &Arc<Graph>, inputs: &[Value]) -> Option<Vec<Value>> {
        let ((key, specs, tensors), cells) = describe_cells(inputs)?;
        let variant = self.variant(part, key)?;
        let code = variant.code.get_or_make(|| self.compile(part, &specs)).ok()?.as_ref()?;
        let idle = lock(&variant.idle).pop();
        let mut method = idle.map_or_else(|| code.instance(), Ok).ok()?;
        let results = method.results_aliasing(&tensors, &cells);
        lock(&variant.idle).push(method);
        // If the code raises an exception, the interpreter raises it again, with the place in the source.
        results.ok()
    }
}
