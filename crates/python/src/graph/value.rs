//! Values of graphs.

use super::cell::Handle;
use super::{GraphCell, Node, list};
use crate::errors::{type_error, value_error};
use frazil::ir::types::{TypeStyle, display_type};
use frazil::ir::{Definition, TypeId, ValueId, ValueName};
use frazil::runtime::import::Importer;
use pyo3::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// A value of a graph: an output of a node, or a parameter of a block.
#[pyclass(frozen, module = "frazil", name = "Value")]
pub(crate) struct Value(Handle<ValueId>);

/// A use of a value: as input ``offset`` of the node ``user``.
#[pyclass(frozen, get_all, module = "frazil", name = "Use")]
pub(crate) struct Use {
    user: Py<Node>,
    offset: usize,
}

impl Value {
    pub(crate) fn new(cell: &Arc<GraphCell>, id: ValueId) -> Value {
        Value(Handle::new(cell, id))
    }

    pub(crate) fn id_in(&self, cell: &Arc<GraphCell>) -> PyResult<ValueId> {
        self.0.id_in(cell)
    }
}

/// Returns the type with the given text, in the form of printed graphs.
pub(super) fn parse_type(cell: &GraphCell, text: &str) -> PyResult<TypeId> {
    let wrong = || {
        value_error(format!(
            "expected a type as graphs print it, such as 'Tensor' or 'int[]', not {text:?}"
        ))
    };
    if text.contains(['\n', '#', '%']) {
        return Err(wrong());
    }
    let source = format!("graph(%x : {text}):\n  return (%x)\n");
    let session = cell.model().session();
    let loaded = session.load_bytes(Path::new("type.ir"), source.into_bytes());
    let loaded = loaded.map_err(|_| wrong())?;
    let graph = loaded.graph("forward").map_err(|_| wrong())?;
    graph.inputs().first().map(|&input| graph.ty(input)).ok_or_else(wrong)
}

#[pymethods]
impl Value {
    /// Returns the name, without ``%``. Values without a name have a number, which edits may change.
    #[pyo3(name = "debugName")]
    fn debug_name(&self) -> PyResult<String> {
        self.0.read(|graph, id| {
            let text = graph.show_value(id).to_string();
            text.trim_start_matches('%').to_owned()
        })
    }

    /// Sets the name; a number is added if the name is taken.
    #[pyo3(name = "setDebugName")]
    fn set_debug_name<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, Self>> {
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
        if !is_name || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Err(value_error(format!(
                "`name`: expected letters, digits, `_` and `.`, not {name:?}"
            )));
        }
        slf.get().0.write(|graph, id| {
            let name = ValueName::new(graph.ctx(), name);
            graph.set_value_name(id, name);
        })?;
        Ok(slf.clone())
    }

    /// Returns the type, as in printed graphs.
    fn r#type(&self) -> PyResult<String> {
        self.0
            .read(|graph, id| display_type(graph.ctx(), graph.ty(id), TypeStyle::Exact).to_string())
    }

    /// Sets the type, from text as in printed graphs.
    #[pyo3(name = "setType")]
    fn set_type<'py>(slf: &Bound<'py, Self>, r#type: &str) -> PyResult<Bound<'py, Self>> {
        let own = &slf.get().0;
        let ty = parse_type(&own.cell, r#type)?;
        own.write(|graph, id| graph.set_type(id, ty))?;
        Ok(slf.clone())
    }

    /// Returns the node whose output it is; ``None`` for parameters of blocks.
    fn node(&self) -> PyResult<Option<Node>> {
        let node = self.0.read(|graph, id| graph.defining_node(id))?;
        Ok(node.map(|id| Node::new(&self.0.cell, id)))
    }

    /// Its index among the outputs of its node, or the parameters of its block.
    fn offset(&self) -> PyResult<usize> {
        self.0.read(|graph, id| match graph.definition(id) {
            Definition::Output(_, offset) | Definition::Parameter(_, offset) => offset,
        })
    }

    /// Returns the uses of the value.
    fn uses(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let uses: Vec<_> = self
            .0
            .read(|graph, id| graph.uses(id).map(|u| (u.user, u.index)).collect())?;
        let make = |(user, offset)| {
            let user = Py::new(py, Node::new(&self.0.cell, user))?;
            Py::new(py, Use { user, offset })
        };
        list(py, uses.into_iter().map(make).collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns the Python value of a constant; ``None`` for other values.
    #[pyo3(name = "toIValue")]
    fn to_ivalue<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let constant = self.0.read(|graph, id| graph.constant(id))?;
        let Some(constant) = constant else {
            return Ok(py.None().into_bound(py));
        };
        let model = self.0.cell.model();
        let value = Importer::new().value(&constant, Some(model.module()));
        let value = value.map_err(|e| type_error(e.to_string()))?;
        crate::value::Values::new(py, model, crate::arrays::Kind::Numpy).write(value)
    }

    /// Replaces the value in all its uses.
    #[pyo3(name = "replaceAllUsesWith")]
    fn replace_all_uses_with(&self, other: &Value) -> PyResult<()> {
        let other = other.id_in(&self.0.cell)?;
        self.0.write(|graph, id| graph.replace_all_uses_with(id, other))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Value>().is_ok_and(|other| self.0.is(&other.get().0))
    }

    fn __hash__(&self) -> u64 {
        self.0.hash()
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<frazil.Value %{} : {}>", self.debug_name()?, self.r#type()?))
    }
}
