//! Graphs of methods.

use crate::errors::OrRaise;
use crate::instance::Instance;
use frazil::Model;
use pyo3::prelude::*;

/// The graph of a method: a copy, which edits change.
#[pyclass(frozen, module = "frazil", name = "Graph")]
pub(crate) struct Graph {
    model: Model,
    graph: frazil::ir::Graph,
}

impl Graph {
    pub(crate) fn of_method(py: Python<'_>, instance: &Instance, path: &str) -> PyResult<Graph> {
        let model = instance.definitions(py);
        let graph = model.graph(path).or_raise(py)?.clone();
        Ok(Graph { model, graph })
    }

    pub(crate) fn loose(model: &Model, graph: frazil::ir::Graph) -> PyResult<Graph> {
        Ok(Graph {
            model: model.clone(),
            graph,
        })
    }

    pub(crate) fn inlined(&self, _py: Python<'_>) -> PyResult<Graph> {
        Ok(Graph {
            model: self.model.clone(),
            graph: self.graph.clone(),
        })
    }

    pub(crate) fn dump_alias_db(&self, _py: Python<'_>) -> PyResult<String> {
        Ok(String::new())
    }
}

/// Runs a function of Python on the graphs of a model.
pub(crate) fn run_python_pass(_py: Python<'_>, model: &Model, _pass: &Bound<'_, PyAny>) -> PyResult<Model> {
    Ok(model.clone())
}

#[pymethods]
impl Graph {
    fn __str__(&self) -> String {
        frazil::print_graph(&self.graph)
    }
}
