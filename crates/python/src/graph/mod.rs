//! Graphs, for reading and for passes that are written in Python. Methods have the names of `torch._C.Graph`, `Node` and `Value`.

mod cell;
mod html;
mod node;
mod value;

pub(crate) use cell::GraphCell;
#[cfg(feature = "codegen")]
pub(crate) use html::escaped;
pub(crate) use node::{Block, Node};
pub(crate) use value::{Use, Value};

use crate::errors::{OrRaise, exception, type_error, value_error};
use crate::instance::Instance;
use crate::interrupt::without_gil;
use frazil::ir::{Constant, Graph as Ir};
use frazil::passes::PassManager;
use frazil::passes::pass::PassContext;
use frazil::passes::rewrite_patterns::{PatternRewriter, Rule};
use frazil::{Model, PassOptions};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;

/// A graph: of a method, as a copy, so that edits do not change the model; or one that a pass receives.
///
/// >>> import frazil
/// >>> graph = frazil.script("def f(x): return torch.relu(x)").f.inlined_graph
/// >>> [node.kind() for node in graph.nodes()]
/// ['aten::relu']
#[pyclass(frozen, module = "frazil", name = "Graph")]
pub(crate) struct Graph {
    cell: Arc<GraphCell>,
}

impl Graph {
    /// Returns a copy of the graph of the method at `path`.
    pub(crate) fn of_method(py: Python<'_>, instance: &Instance, path: &str) -> PyResult<Graph> {
        let model = instance.definitions(py)?;
        let graph = model.graph(path).or_raise(py)?.clone();
        Ok(Graph::new(&model, Some(path), graph))
    }

    /// Returns a graph that has the types of `model` and belongs to no method.
    pub(crate) fn loose(model: &Model, graph: Ir) -> Graph {
        Graph::new(model, None, graph)
    }

    fn new(model: &Model, method: Option<&str>, graph: Ir) -> Graph {
        Graph {
            cell: GraphCell::new(model.clone(), method.map(str::to_owned), graph),
        }
    }

    pub(crate) fn inlined(&self, py: Python<'_>) -> PyResult<Graph> {
        let model = self.cell.model();
        let Some(method) = self.cell.method() else {
            let graph = self.cell.read(Ir::clone);
            return Ok(Graph::loose(model, graph));
        };
        let inlined = without_gil(py, || model.run_passes("inline", &PassOptions::default()))?;
        let inlined = inlined.or_raise(py)?.0;
        let graph = inlined.graph(method).or_raise(py)?.clone();
        Ok(Graph::new(&inlined, Some(method), graph))
    }

    pub(crate) fn alias_db(&self) -> String {
        let session = self.cell.model().session();
        self.cell.read(|graph| session.alias_db_text(graph))
    }
}

/// Runs a Python function on the graph of each method and function of a model, and verifies the results.
pub(crate) fn run_python_pass(py: Python<'_>, model: &Model, pass: &Bound<'_, PyAny>) -> PyResult<Model> {
    let name = pass.getattr("__name__").and_then(|name| name.extract::<String>());
    let name = name.unwrap_or_else(|_| "pass".to_owned());
    let mut out = model.clone();
    let functions: Vec<_> = model.module().unit.functions().map(|(id, _)| id).collect();
    for id in functions {
        let cell = GraphCell::new(out.clone(), None, out.module().unit.function(id).graph.clone());
        let graph = Bound::new(
            py,
            Graph {
                cell: Arc::clone(&cell),
            },
        )?;
        pass.call1((graph,))?;
        let graph = cell.read(Ir::clone);
        let edited = out.edit_function(id, |old| {
            *old = graph;
            Ok(())
        });
        out = edited.map_err(|error| {
            let text = format!("after {name}: {error}");
            exception(py, "InputError", text.trim_end(), &error.places())
        })?;
    }
    Ok(out)
}

#[pymethods]
impl Graph {
    fn __str__(&self) -> String {
        self.cell.read(frazil::print_graph)
    }

    fn __repr__(&self) -> String {
        self.__str__()
    }

    fn _repr_html_(&self) -> String {
        html::graph(&self.__str__())
    }

    /// Returns the graph as DOT, for Graphviz.
    fn dot(&self) -> String {
        let name = self.cell.method().unwrap_or("graph");
        self.cell.read(|graph| frazil::print_dot([(name, graph)]))
    }

    /// Returns an SVG image drawn by Graphviz; ``None`` if its program ``dot`` is not installed.
    fn _repr_svg_(&self, py: Python<'_>) -> Option<String> {
        let dot = self.dot();
        py.detach(|| html::svg(&dot))
    }

    /// Returns a copy, which is independent of edits of this graph.
    fn copy(&self) -> Graph {
        let graph = self.cell.read(Ir::clone);
        Graph::new(self.cell.model(), self.cell.method(), graph)
    }

    /// Returns the nodes of the outermost block, in order.
    fn nodes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.block().nodes(py)
    }

    /// Returns all nodes in order, including those of nested blocks.
    fn all_nodes(&self) -> Vec<Node> {
        let nodes = self.cell.read(Ir::all_nodes);
        nodes.into_iter().map(|id| Node::new(&self.cell, id)).collect()
    }

    /// Returns the outermost block.
    fn block(&self) -> Block {
        Block::new(&self.cell, self.cell.read(Ir::root))
    }

    /// Returns the inputs. The first one of a method is the module.
    fn inputs(&self) -> Vec<Value> {
        let inputs = self.cell.read(|graph| graph.inputs().to_vec());
        inputs.into_iter().map(|id| Value::new(&self.cell, id)).collect()
    }

    /// Returns the outputs.
    fn outputs(&self) -> Vec<Value> {
        let outputs: Vec<_> = self.cell.read(|graph| graph.outputs().collect());
        outputs.into_iter().map(|id| Value::new(&self.cell, id)).collect()
    }

    /// Returns the first node of a kind (``"aten::relu"``), or ``None``. With ``recurse=False``, blocks of nodes are not searched.
    #[pyo3(signature = (kind, recurse = true))]
    #[pyo3(name = "findNode")]
    fn find_node(&self, kind: &str, recurse: bool) -> Option<Node> {
        self.find_all_nodes(kind, recurse).into_iter().next()
    }

    /// Returns the nodes of a kind, in order.
    #[pyo3(signature = (kind, recurse = true))]
    #[pyo3(name = "findAllNodes")]
    fn find_all_nodes(&self, kind: &str, recurse: bool) -> Vec<Node> {
        let found: Vec<_> = self.cell.read(|graph| {
            let nodes = match recurse {
                true => graph.all_nodes(),
                false => graph.nodes(graph.root()).collect(),
            };
            nodes.into_iter().filter(|&id| graph.kind_name(id) == kind).collect()
        });
        found.into_iter().map(|id| Node::new(&self.cell, id)).collect()
    }

    /// Makes a node without inserting it; use ``insertNode``, ``Node.insertBefore`` or ``Node.insertAfter``. Its outputs are tensors;
    /// use ``Value.setType`` for other types.
    #[pyo3(signature = (kind, inputs = Vec::new(), num_outputs = 1))]
    fn create(&self, kind: &str, inputs: Vec<PyRef<'_, Value>>, num_outputs: usize) -> PyResult<Node> {
        let (namespace, name) = kind.split_once("::").unwrap_or(("", ""));
        if namespace.is_empty() || name.is_empty() || kind == "prim::Return" || kind.contains(char::is_whitespace) {
            return Err(value_error(format!(
                "`kind`: expected a name such as 'aten::relu', not {kind:?}"
            )));
        }
        let operands: Vec<_> = inputs.iter().map(|v| v.id_in(&self.cell)).collect::<PyResult<_>>()?;
        let id = self.cell.write(|graph| {
            let kind = graph.ctx().symbol(kind);
            let node = graph.create_node(kind);
            graph.add_operands(node, &operands);
            for _ in 0..num_outputs {
                graph.add_output(node, frazil::ir::types::TENSOR);
            }
            node
        });
        Ok(Node::new(&self.cell, id))
    }

    /// Inserts a node at the end of the outermost block.
    #[pyo3(name = "insertNode")]
    fn insert_node<'py>(&self, node: Bound<'py, Node>) -> PyResult<Bound<'py, Node>> {
        self.block().append(&node)?;
        Ok(node)
    }

    /// Inserts a constant at the start of the graph.
    #[pyo3(name = "insertConstant")]
    fn insert_constant(&self, value: &Bound<'_, PyAny>) -> PyResult<Value> {
        let (constant, ty) = self.cell.constant(value)?;
        let id = self.cell.write(|graph| {
            let root = graph.root();
            let first = graph.nodes(root).next().unwrap_or_else(|| graph.return_node(root));
            let mut builder = frazil::ir::Builder::before(graph, first);
            match ty {
                Some(ty) => builder.constant_typed(constant, ty),
                None => builder.constant(constant),
            }
        });
        Ok(Value::new(&self.cell, id))
    }

    /// Verifies the graph.
    ///
    /// Raises:
    ///     frazil.InputError: with all errors.
    fn lint(&self, py: Python<'_>) -> PyResult<()> {
        let session = self.cell.model().session();
        let verified = self
            .cell
            .read(|graph| graph.verify(Some(session.registry().catalogue())));
        verified.map_err(|error| exception(py, "InputError", error.to_string().trim_end(), &[]))
    }

    /// Runs a pipeline of passes on the graph, in place. Nodes and values from before become invalid.
    fn run_passes(&self, py: Python<'_>, pipeline: &str) -> PyResult<()> {
        let session = self.cell.model().session();
        let manager = PassManager::from_pipeline(session.passes(), pipeline);
        let manager = manager.map_err(frazil::Error::from).or_raise(py)?;
        let mut graph = self.cell.read(Ir::clone);
        let done = without_gil(py, || {
            manager.run_on_graph(&mut graph, session.registry().as_ref())?;
            Ok::<_, frazil::Error>(graph)
        })?;
        self.cell.replace(done.or_raise(py)?);
        Ok(())
    }

    /// Replaces every match of a pattern, and returns their number. Both are graphs as text; the inputs and outputs of the
    /// replacement correspond to those of the pattern by position.
    fn rewrite(&self, py: Python<'_>, pattern: &str, replacement: &str) -> PyResult<usize> {
        let session = self.cell.model().session();
        let rule = Rule::new(session.ctx(), pattern, replacement)
            .map_err(|e| exception(py, "InputError", e.to_string().trim_end(), &[]))?;
        let rewriter = PatternRewriter { rules: vec![rule] };
        let mut graph = self.cell.read(Ir::clone);
        let count = rewriter.run(&mut graph, &mut PassContext::new(session.registry().as_ref()));
        let count = count.map_err(frazil::Error::from).or_raise(py)?;
        self.cell.replace(graph);
        Ok(count)
    }

    /// Returns true if two values may be, or contain, the same memory.
    fn may_alias(&self, a: &Value, b: &Value) -> PyResult<bool> {
        let (a, b) = (a.id_in(&self.cell)?, b.id_in(&self.cell)?);
        let session = self.cell.model().session();
        let unit = &self.cell.model().module().unit;
        Ok(self.cell.read(|graph| {
            let db = frazil::passes::AliasDb::with_calls(graph, session.registry().catalogue(), unit);
            db.may_alias(a, b)
        }))
    }

    /// Returns the alias analysis, as text.
    fn dump_alias_db(&self) -> String {
        self.alias_db()
    }
}

impl GraphCell {
    /// Returns a constant of a graph for a Python value, with its type if the constant does not determine it.
    fn constant(&self, value: &Bound<'_, PyAny>) -> PyResult<(Constant, Option<frazil::ir::TypeId>)> {
        let model = self.model();
        let value = crate::value::Values::new(value.py(), model, crate::arrays::Kind::Numpy).read(value)?;
        let ty = value.ty(model.module().ctx());
        let constant = frazil::runtime::export::value_to_constant(&value);
        let constant = constant.ok_or_else(|| type_error("expected a value that a graph can hold, not an object"))?;
        Ok((constant, Some(ty)))
    }
}

/// Returns nodes or values as a Python list.
fn list<'py, T: IntoPyObject<'py>>(py: Python<'py>, items: Vec<T>) -> PyResult<Py<PyAny>> {
    Ok(PyList::new(py, items)?.into_any().unbind())
}
