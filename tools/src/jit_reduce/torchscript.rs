//! Modules and graphs of TorchScript as inputs.

use super::{Input, Search};
use crate::Failure;
use frazil::ir::{FunctionId, Graph, Module};
use frazil::passes::pass::LastRewrite;
use frazil::{Loaded, PassOptions, Session, write_atomically};
use std::io::Write;
use std::path::Path;

impl Input for Loaded {
    const EXTENSION: &'static str = "ir";

    fn nodes(&self) -> usize {
        functions(self).iter().map(|(_, g)| g.all_nodes().len()).sum()
    }

    fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = self.ir_text(None);
        self.check_unchanged()?;
        write_atomically(path, |f| f.write_all(text.as_bytes())).map_err(|e| Failure::io("write", path, e))
    }

    fn run_passes(&mut self, pipeline: &str, limit: u64) -> Result<Option<LastRewrite>, Failure> {
        let options = PassOptions::default().limit(Some(limit));
        Ok(Loaded::run_passes(self, pipeline, &options)?.last_rewrite)
    }

    fn reduce(self, search: &mut Search<'_, Loaded>) -> Result<Loaded, Failure> {
        // A smaller body no longer uses some attributes and methods, which may make others unused.
        let text = self.ir_text(None);
        let is_model = matches!(self, Loaded::Model(_));
        let reduced = bodies(members(self, search)?, search)?;
        search.has_progress = is_model && reduced.ir_text(None) != text;
        Ok(reduced)
    }
}

/// Removes members of a module that the failure does not need. Graphs without a module are returned unchanged.
fn members(loaded: Loaded, search: &mut Search<'_, Loaded>) -> Result<Loaded, Failure> {
    let Loaded::Model(model) = &loaded else {
        return Ok(loaded);
    };
    let session = model.session();
    let module: &Module = model.module();
    let small = search.part(module, |_| true, |module| with_module(session, module))?;
    Ok(with_module(session, small).unwrap_or(loaded))
}

/// Reduces the graphs of the input one after the other.
fn bodies(mut loaded: Loaded, search: &mut Search<'_, Loaded>) -> Result<Loaded, Failure> {
    for index in 0..functions(&loaded).len() {
        let Some(graph) = functions(&loaded).get(index).map(|(_, g)| (*g).clone()) else {
            continue;
        };
        // A method's signature must match its callers.
        let is_fixed = matches!(loaded, Loaded::Model(_));
        let signature = |g: &Graph| (g.inputs().len(), g.outputs().len());
        let accepts = |g: &Graph| !is_fixed || signature(g) == signature(&graph);
        let small = search.part(&graph, accepts, |g| with_function(&loaded, index, g))?;
        loaded = with_function(&loaded, index, small).unwrap_or(loaded);
    }
    Ok(loaded)
}

/// Returns the graphs of the input with their ids.
fn functions(loaded: &Loaded) -> Vec<(FunctionId, &Graph)> {
    let unit = match loaded {
        Loaded::Model(model) => &model.module().unit,
        Loaded::Graphs(graphs) => graphs.unit(),
    };
    unit.functions().map(|(id, f)| (id, &f.graph)).collect()
}

/// Returns a model that consists of `module`; `None` if the module belongs to another session.
fn with_module(session: &Session, module: Module) -> Option<Loaded> {
    frazil::Model::new(session.clone(), module).ok().map(Loaded::Model)
}

/// Returns the input with graph number `index` replaced by `graph`.
fn with_function(loaded: &Loaded, index: usize, graph: Graph) -> Option<Loaded> {
    let id = functions(loaded).get(index).map(|(id, _)| *id)?;
    match loaded {
        Loaded::Model(model) => {
            let mut module = Module::clone(model.module());
            module.unit.function_mut(id).graph = graph;
            with_module(model.session(), module)
        }
        Loaded::Graphs(graphs) => {
            let mut unit = graphs.unit().clone();
            unit.function_mut(id).graph = graph;
            Some(Loaded::Graphs(frazil::Graphs::of_unit(graphs.session().clone(), unit)))
        }
    }
}
