//! Nodes and blocks of graphs.

use super::cell::Handle;
use super::{Graph, GraphCell, Value, list};
use crate::errors::value_error;
use frazil::ir::types::{TypeStyle, display_type};
use frazil::ir::{AttributeValue, BlockId, Graph as Ir, NodeId, symbols};
use frazil::runtime::import::Importer;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::Arc;

/// A node of a graph.
#[pyclass(frozen, module = "frazil", name = "Node")]
pub(crate) struct Node(Handle<NodeId>);

/// A block: of a graph, or of a node with control flow.
#[pyclass(frozen, module = "frazil", name = "Block")]
pub(crate) struct Block(Handle<BlockId>);

/// The place to which a node is moved.
#[derive(Clone, Copy)]
enum Place {
    Before(NodeId),
    After(NodeId),
    End(BlockId),
}

/// Returns true if `node` is `other`, or contains it in one of its blocks.
fn contains(graph: &Ir, node: NodeId, other: NodeId) -> bool {
    let mut owners = graph.enclosing_blocks(other).filter_map(|block| graph.owner(block));
    node == other || owners.any(|owner| owner == node)
}

/// Moves a node to a place.
fn put(graph: &mut Ir, node: NodeId, place: Place) -> PyResult<()> {
    let (block, beside) = match place {
        Place::Before(other) | Place::After(other) => (graph.parent(other), Some(other)),
        Place::End(block) => (Some(block), graph.owner(block)),
    };
    let Some(block) = block else {
        return Err(value_error("the other node is in no block"));
    };
    if graph.kind(node) == symbols::PRIM_RETURN {
        return Err(value_error("the node that returns from a block stays at its end"));
    }
    if beside.is_some_and(|other| contains(graph, node, other)) {
        return Err(value_error(
            "a node cannot be moved into its own blocks, or beside itself",
        ));
    }
    if graph.parent(node).is_some() {
        graph.remove(node);
    }
    match place {
        Place::Before(other) => graph.insert_before(node, other),
        Place::After(other) if graph.return_node(block) == other => graph.append(block, node),
        Place::After(other) => graph.insert_after(node, other),
        Place::End(block) => graph.append(block, node),
    }
    Ok(())
}

impl Node {
    pub(crate) fn new(cell: &Arc<GraphCell>, id: NodeId) -> Node {
        Node(Handle::new(cell, id))
    }

    fn values(&self, ids: Vec<frazil::ir::ValueId>) -> Vec<Value> {
        ids.into_iter().map(|id| Value::new(&self.0.cell, id)).collect()
    }

    fn put(&self, place: impl FnOnce(NodeId) -> Place, other: &Node, must_be_new: bool) -> PyResult<()> {
        let other = other.0.id_in(&self.0.cell)?;
        self.0
            .write(|graph, id| match must_be_new && graph.parent(id).is_some() {
                true => Err(value_error(
                    "the node is in a block already: use moveBefore or moveAfter",
                )),
                false => put(graph, id, place(other)),
            })?
    }

    /// Checks the index of an input.
    fn check_index(&self, i: usize) -> PyResult<()> {
        let count = self.0.read(|graph, id| graph.operand_count(id))?;
        match i < count {
            true => Ok(()),
            false => Err(PyIndexError::new_err(format!(
                "expected an index below {count}, not {i}"
            ))),
        }
    }
}

fn one(mut values: Vec<Value>, what: &str) -> PyResult<Value> {
    match (values.len(), values.pop()) {
        (1, Some(value)) => Ok(value),
        (count, _) => Err(value_error(format!("the node has {count} {what}, not one"))),
    }
}

#[pymethods]
impl Node {
    /// Returns the operator: ``aten::relu``.
    fn kind(&self) -> PyResult<String> {
        self.0.read(|graph, id| graph.kind_name(id).to_owned())
    }

    /// Replaces the operator.
    #[pyo3(name = "setKind")]
    fn set_kind(&self, kind: &str) -> PyResult<()> {
        if !kind.contains("::") || kind.contains(char::is_whitespace) || kind == "prim::Return" {
            return Err(value_error(format!(
                "`kind`: expected a name such as 'aten::relu', not {kind:?}"
            )));
        }
        self.0.write(|graph, id| match graph.kind(id) == symbols::PRIM_RETURN {
            true => Err(value_error("the node that returns from a block has no other kind")),
            false => {
                let kind = graph.ctx().symbol(kind);
                graph.set_kind(id, kind);
                Ok(())
            }
        })?
    }

    /// Returns the schema of the operator's overload; ``(no schema)`` if there is none.
    fn schema(&self) -> PyResult<String> {
        let registry = self.0.cell.model().session().registry();
        self.0.read(|graph, id| match registry.catalogue().resolve(graph, id) {
            frazil::ir::schema::Resolution::Found(schema) => schema.display(graph.ctx()).to_string(),
            _ => "(no schema)".to_owned(),
        })
    }

    /// Returns the inputs.
    fn inputs(&self) -> PyResult<Vec<Value>> {
        let ids = self.0.read(|graph, id| graph.operands(id).collect())?;
        Ok(self.values(ids))
    }

    /// Returns the outputs.
    fn outputs(&self) -> PyResult<Vec<Value>> {
        let ids = self.0.read(|graph, id| graph.node_outputs(id).to_vec())?;
        Ok(self.values(ids))
    }

    /// Returns the only input.
    fn input(&self) -> PyResult<Value> {
        one(self.inputs()?, "inputs")
    }

    /// Returns the only output.
    fn output(&self) -> PyResult<Value> {
        one(self.outputs()?, "outputs")
    }

    /// Returns input ``i``.
    #[pyo3(name = "inputsAt")]
    fn inputs_at(&self, i: usize) -> PyResult<Value> {
        self.check_index(i)?;
        let mut inputs = self.inputs()?;
        Ok(inputs.swap_remove(i))
    }

    /// Returns the number of inputs.
    #[pyo3(name = "inputsSize")]
    fn inputs_size(&self) -> PyResult<usize> {
        self.0.read(|graph, id| graph.operand_count(id))
    }

    /// Replaces input ``i``.
    #[pyo3(name = "replaceInput")]
    fn replace_input(&self, i: usize, value: &Value) -> PyResult<()> {
        self.check_index(i)?;
        let value = value.id_in(&self.0.cell)?;
        self.0.write(|graph, id| graph.set_operand(id, i, value))
    }

    /// Adds an input at the end.
    #[pyo3(name = "addInput")]
    fn add_input(&self, value: &Value) -> PyResult<()> {
        let value = value.id_in(&self.0.cell)?;
        self.0.write(|graph, id| graph.add_operand(id, value))
    }

    /// Removes input ``i``.
    #[pyo3(name = "removeInput")]
    fn remove_input(&self, i: usize) -> PyResult<()> {
        self.check_index(i)?;
        self.0.write(|graph, id| graph.remove_operand(id, i))
    }

    /// Returns the names of the node's attributes.
    #[pyo3(name = "attributeNames")]
    fn attribute_names(&self) -> PyResult<Vec<String>> {
        self.0.read(|graph, id| {
            let names = graph.attributes(id).iter();
            names.map(|a| graph.ctx().name(a.name).to_owned()).collect()
        })
    }

    /// Returns the attribute ``name``: a value, a type as text, or a graph.
    fn attribute<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let found = self.0.read(|graph, id| {
            let name = graph.ctx().find_symbol(name)?;
            graph.attribute(id, name).cloned()
        })?;
        let found = found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let model = self.0.cell.model();
        let show = |ty| display_type(model.module().ctx(), ty, TypeStyle::Exact).to_string();
        match found {
            AttributeValue::Constant(constant) => {
                let value = Importer::new().value(&constant, Some(model.module()));
                let value = value.map_err(|e| value_error(e.to_string()))?;
                crate::value::Values::new(py, model, crate::arrays::Kind::Numpy).write(value)
            }
            AttributeValue::Type(ty) => Ok(PyString::new(py, &show(ty)).into_any()),
            AttributeValue::Types(types) => types.into_iter().map(show).collect::<Vec<_>>().into_bound_py_any(py),
            AttributeValue::Graph(graph) => Graph::loose(model, Ir::clone(&graph)).into_bound_py_any(py),
            AttributeValue::Graphs(graphs) => {
                let graphs = graphs.iter().map(|graph| Graph::loose(model, Ir::clone(graph)));
                graphs.collect::<Vec<_>>().into_bound_py_any(py)
            }
            AttributeValue::Elided(text) => Ok(PyString::new(py, &text).into_any()),
        }
    }

    /// Sets the attribute ``name`` to a value.
    #[pyo3(name = "setAttribute")]
    fn set_attribute(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (constant, _) = self.0.cell.constant(value)?;
        self.0.write(|graph, id| {
            let name = graph.ctx().symbol(name);
            graph.set_attribute(id, name, constant);
        })
    }

    /// Removes the attribute ``name``.
    #[pyo3(name = "removeAttribute")]
    fn remove_attribute(&self, name: &str) -> PyResult<()> {
        let removed = self.0.write(|graph, id| {
            let name = graph.ctx().find_symbol(name)?;
            graph.remove_attribute(id, name)
        })?;
        removed.map(drop).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    /// Returns the blocks of the node.
    fn blocks(&self) -> PyResult<Vec<Block>> {
        let ids = self.0.read(|graph, id| graph.node_blocks(id).to_vec())?;
        Ok(ids.into_iter().map(|id| Block::new(&self.0.cell, id)).collect())
    }

    /// Adds an empty block.
    #[pyo3(name = "addBlock")]
    fn add_block(&self) -> PyResult<Block> {
        let block = self.0.write(|graph, id| graph.add_block(id))?;
        Ok(Block::new(&self.0.cell, block))
    }

    /// Adds an output, a tensor; use ``Value.setType`` for other types.
    #[pyo3(name = "addOutput")]
    fn add_output(&self) -> PyResult<Value> {
        let value = self
            .0
            .write(|graph, id| graph.add_output(id, frazil::ir::types::TENSOR))?;
        Ok(Value::new(&self.0.cell, value))
    }

    /// Returns the next node of its block; ``None`` at the end.
    fn next(&self) -> PyResult<Option<Node>> {
        let next = self.0.read(|graph, id| graph.next(id))?;
        Ok(next.map(|id| Node::new(&self.0.cell, id)))
    }

    /// Returns the previous node of its block; ``None`` at the start.
    fn prev(&self) -> PyResult<Option<Node>> {
        let previous = self.0.read(|graph, id| graph.previous(id))?;
        Ok(previous.map(|id| Node::new(&self.0.cell, id)))
    }

    /// Inserts the node before another one.
    #[pyo3(name = "insertBefore")]
    fn insert_before<'py>(slf: &Bound<'py, Self>, node: &Node) -> PyResult<Bound<'py, Self>> {
        slf.get().put(Place::Before, node, true)?;
        Ok(slf.clone())
    }

    /// Inserts the node after another one.
    #[pyo3(name = "insertAfter")]
    fn insert_after<'py>(slf: &Bound<'py, Self>, node: &Node) -> PyResult<Bound<'py, Self>> {
        slf.get().put(Place::After, node, true)?;
        Ok(slf.clone())
    }

    /// Moves the node before another one.
    #[pyo3(name = "moveBefore")]
    fn move_before(&self, node: &Node) -> PyResult<()> {
        self.put(Place::Before, node, false)
    }

    /// Moves the node after another one.
    #[pyo3(name = "moveAfter")]
    fn move_after(&self, node: &Node) -> PyResult<()> {
        self.put(Place::After, node, false)
    }

    /// Erases the node with its blocks.
    ///
    /// Raises:
    ///     ValueError: if one of its outputs is used.
    fn destroy(&self) -> PyResult<()> {
        match self.0.write(|graph, id| graph.erase(id))? {
            true => Ok(()),
            false => Err(value_error(
                "the node returns from a block, or one of its outputs is used: replace its uses first",
            )),
        }
    }

    /// Returns the node's source location, ``file:line:column``; empty if unknown.
    #[pyo3(name = "sourceRange")]
    fn source_range(&self) -> PyResult<String> {
        self.0.read(|graph, id| match graph.source_range(id) {
            Some(range) => format!("{}:{}:{}", graph.ctx().name(range.file), range.line, range.column),
            None => String::new(),
        })
    }

    /// Returns the scope that a trace recorded; empty if there is none.
    #[pyo3(name = "scopeName")]
    fn scope_name(&self) -> PyResult<String> {
        self.0.read(|graph, id| {
            graph
                .scope(id)
                .map(|scope| graph.ctx().name(scope).to_owned())
                .unwrap_or_default()
        })
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Node>().is_ok_and(|other| self.0.is(&other.get().0))
    }

    fn __hash__(&self) -> u64 {
        self.0.hash()
    }

    fn __str__(&self) -> PyResult<String> {
        self.0.read(|graph, id| frazil::GraphText::new(graph).node(id))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<frazil.Node {}>", self.__str__()?.trim()))
    }
}

impl Block {
    pub(crate) fn new(cell: &Arc<GraphCell>, id: BlockId) -> Block {
        Block(Handle::new(cell, id))
    }

    pub(crate) fn append(&self, node: &Bound<'_, Node>) -> PyResult<()> {
        let node = node.get();
        let block = self.0.id_in(&node.0.cell)?;
        node.0.write(|graph, id| match graph.parent(id) {
            Some(_) => Err(value_error(
                "the node is in a block already: use moveBefore or moveAfter",
            )),
            None => put(graph, id, Place::End(block)),
        })?
    }
}

#[pymethods]
impl Block {
    /// Returns the nodes, in order.
    pub(crate) fn nodes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let ids: Vec<_> = self.0.read(|graph, id| graph.nodes(id).collect())?;
        list(py, ids.into_iter().map(|id| Node::new(&self.0.cell, id)).collect())
    }

    /// Returns the parameters.
    fn inputs(&self) -> PyResult<Vec<Value>> {
        let ids = self.0.read(|graph, id| graph.parameters(id).to_vec())?;
        Ok(ids.into_iter().map(|id| Value::new(&self.0.cell, id)).collect())
    }

    /// Returns the values that the block returns.
    fn outputs(&self) -> PyResult<Vec<Value>> {
        let ids: Vec<_> = self.0.read(|graph, id| graph.results(id).collect())?;
        Ok(ids.into_iter().map(|id| Value::new(&self.0.cell, id)).collect())
    }

    /// Adds a parameter, a tensor; use ``Value.setType`` for other types.
    #[pyo3(name = "addInputToBlock")]
    fn add_input(&self) -> PyResult<Value> {
        let value = self
            .0
            .write(|graph, id| graph.add_parameter(id, frazil::ir::types::TENSOR))?;
        Ok(Value::new(&self.0.cell, value))
    }

    /// Adds a value to the returned ones.
    #[pyo3(name = "registerOutput")]
    fn register_output(&self, value: &Value) -> PyResult<()> {
        let value = value.id_in(&self.0.cell)?;
        self.0.write(|graph, id| graph.add_result(id, value))
    }

    /// Inserts a node at the end.
    #[pyo3(name = "insertNode")]
    fn insert_node(&self, node: &Bound<'_, Node>) -> PyResult<()> {
        self.append(node)
    }

    /// Returns the node whose block it is; ``None`` for the block of a graph.
    #[pyo3(name = "owningNode")]
    fn owning_node(&self) -> PyResult<Option<Node>> {
        let owner = self.0.read(|graph, id| graph.owner(id))?;
        Ok(owner.map(|id| Node::new(&self.0.cell, id)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Block>().is_ok_and(|other| self.0.is(&other.get().0))
    }

    fn __hash__(&self) -> u64 {
        self.0.hash()
    }
}
