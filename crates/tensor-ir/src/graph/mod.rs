//! Tensor graphs: a method as operations on numbered tensors.
//!
//! Specialisation makes a graph; transformations rewrite it in place. Tensors are numbered in topological order: an operation reads tensors of
//! smaller numbers only, and every rewrite keeps that. A tensor that no output depends on is dead. It stays in the graph until [`TensorGraph::compact`],
//! and no transformation visits it.
//!
//! The graph keeps the live users of each tensor. Edges are changed by its methods only.

mod op;
mod subgraph;
mod symbols;

pub use op::{Origin, TensorNode, TensorOp, accesses};
use symbols::Symbols;

use crate::call::RuntimeCall;
use cranelift_entity::PrimaryMap;
use frazil_ir::{DType, TensorData};
use frazil_runtime::structured::{Structured, TensorId, TensorShape, ViewKind, ViewMap};
use smallvec::SmallVec;
use std::sync::Arc;

/// A straight-line function over tensors.
#[derive(Clone, Debug, Default)]
pub struct TensorGraph {
    nodes: PrimaryMap<TensorId, TensorNode>,
    /// For each tensor, the live tensors whose operations read it, each once.
    users: PrimaryMap<TensorId, SmallVec<[TensorId; 2]>>,
    /// For each tensor, the number of outputs that it is used as.
    output_uses: PrimaryMap<TensorId, u32>,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
    checks: Vec<String>,
    /// The symbols; `None` if all sizes are fixed.
    symbols: Option<Box<Symbols>>,
    revision: u64,
}

/// Construction.
impl TensorGraph {
    /// Returns a graph without tensors.
    pub fn new() -> TensorGraph {
        TensorGraph::default()
    }

    /// Adds a tensor. Every tensor that `op` reads must have been added before.
    pub fn push(&mut self, shape: TensorShape, op: TensorOp, origins: Vec<Origin>) -> TensorId {
        self.revision += 1;
        self.users.push(SmallVec::new());
        self.output_uses.push(0);
        self.nodes.push(TensorNode { shape, op, origins })
    }

    /// Adds an input.
    pub fn input(&mut self, shape: TensorShape) -> TensorId {
        let op = TensorOp::Input(self.inputs.len() as u32);
        let id = self.push(shape, op, Vec::new());
        self.inputs.push(id);
        id
    }

    /// Adds a constant.
    pub fn constant(&mut self, data: Arc<TensorData>) -> TensorId {
        let shape = TensorShape {
            dtype: data.dtype,
            sizes: data.sizes.iter().copied().collect(),
        };
        self.push(shape, TensorOp::Constant(data), Vec::new())
    }

    /// Adds a loop nest.
    pub fn nest(&mut self, nest: Structured, origins: Vec<Origin>) -> TensorId {
        self.push(nest.output.clone(), TensorOp::Nest(Box::new(nest)), origins)
    }

    /// Adds a view.
    pub fn view(&mut self, view: ViewMap, origins: Vec<Origin>) -> TensorId {
        self.push(view.output.clone(), TensorOp::View(view), origins)
    }

    /// Adds a call of an operator without a program. Returns its results, and last a bool that is always false: if it is an output, the call is
    /// executed even if its results are not read.
    pub fn call(&mut self, call: RuntimeCall, origins: Vec<Origin>) -> Vec<TensorId> {
        let shape = call.shape();
        let mut results = call.results.clone();
        results.push(TensorShape {
            dtype: DType::Bool,
            sizes: smallvec::smallvec![],
        });
        let call = self.push(shape, TensorOp::Call(Arc::new(call)), origins.clone());
        let result = |(i, shape): (usize, TensorShape)| {
            let op = TensorOp::CallResult { call, result: i as u32 };
            self.push(shape, op, origins.clone())
        };
        results.into_iter().enumerate().map(result).collect()
    }

    /// Appends an output. A tensor may be several outputs.
    pub fn add_output(&mut self, id: TensorId) {
        self.revision += 1;
        self.outputs.push(id);
        let was_live = self.is_live(id);
        self.output_uses[id] += 1;
        if !was_live {
            self.enter(id);
        }
    }

    /// Appends an output that has to be false: if it is true after a run, the inputs are such that the program raises `message`, and the other
    /// outputs are meaningless. All checks are the last outputs.
    pub fn add_check(&mut self, id: TensorId, message: String) {
        self.add_output(id);
        self.checks.push(message);
    }

    /// Replaces all outputs, and removes the checks.
    pub fn set_outputs(&mut self, outputs: &[TensorId]) {
        self.checks.clear();
        // New outputs first, so that what both need stays live.
        let old = std::mem::take(&mut self.outputs);
        outputs.iter().for_each(|&id| self.add_output(id));
        for id in old {
            self.output_uses[id] -= 1;
            if !self.is_live(id) {
                self.leave(id);
            }
        }
    }

    /// Replaces the messages of the checks, which are the last outputs.
    pub fn set_checks(&mut self, messages: Vec<String>) {
        self.revision += 1;
        self.checks = messages;
    }
}

/// Access.
impl TensorGraph {
    /// Returns the number of tensors, including dead ones.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether the graph has no tensors.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns all tensors in topological order, including dead ones.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = TensorId> + use<> {
        self.nodes.keys()
    }

    /// Returns the inputs in order.
    pub fn inputs(&self) -> &[TensorId] {
        &self.inputs
    }

    /// Returns the outputs in order; the last ones belong to the checks.
    pub fn outputs(&self) -> &[TensorId] {
        &self.outputs
    }

    /// Returns the messages of the checks, one for each of the last outputs; see [`TensorGraph::add_check`].
    pub fn checks(&self) -> &[String] {
        &self.checks
    }

    /// Returns the revision of the graph, which changes with every modification.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the tensor `id`, which must belong to this graph.
    pub fn node(&self, id: TensorId) -> &TensorNode {
        &self.nodes[id]
    }

    /// Returns the operation that computes `id`.
    pub fn op(&self, id: TensorId) -> &TensorOp {
        &self.nodes[id].op
    }

    /// Returns dtype and sizes of `id`.
    pub fn shape(&self, id: TensorId) -> &TensorShape {
        &self.nodes[id].shape
    }

    /// Returns the loop nest that computes `id`, if one does.
    pub fn as_nest(&self, id: TensorId) -> Option<&Structured> {
        match self.op(id) {
            TensorOp::Nest(nest) => Some(nest),
            _ => None,
        }
    }

    /// Returns the value of `id`, if it is a constant.
    pub fn as_constant(&self, id: TensorId) -> Option<&Arc<TensorData>> {
        match self.op(id) {
            TensorOp::Constant(data) => Some(data),
            _ => None,
        }
    }

    /// Returns the tensor that `id` is a reshape of, through any number of reshapes, or `id` itself. Both have the same elements in row-major order.
    pub fn root(&self, mut id: TensorId) -> TensorId {
        while let TensorOp::View(ViewMap {
            tensor,
            kind: ViewKind::Reshape,
            ..
        }) = self.op(id)
        {
            id = *tensor;
        }
        id
    }

    /// Returns the tensor that `id` is a view of, through any number of views, or itself.
    pub fn viewed(&self, mut id: TensorId) -> TensorId {
        while let TensorOp::View(view) = self.op(id) {
            id = view.tensor;
        }
        id
    }

    /// Returns the tensors that `id` reads, each once, in the order of their numbers.
    pub fn operands(&self, id: TensorId) -> SmallVec<[TensorId; 4]> {
        self.op(id).operands()
    }
}

/// Uses.
impl TensorGraph {
    /// Returns whether an output depends on `id`. Inputs are live too.
    pub fn is_live(&self, id: TensorId) -> bool {
        self.use_count(id) > 0 || matches!(self.op(id), TensorOp::Input(_))
    }

    /// Returns the live tensors in topological order.
    pub fn live_ids(&self) -> Vec<TensorId> {
        self.ids().filter(|&id| self.is_live(id)).collect()
    }

    /// Returns how many live tensors and outputs read `id`.
    pub fn use_count(&self, id: TensorId) -> usize {
        self.users[id].len() + self.output_uses[id] as usize
    }

    /// Returns the live tensors whose operations read `id`, each once.
    pub fn users(&self, id: TensorId) -> &[TensorId] {
        &self.users[id]
    }

    /// Returns whether `id` is an output.
    pub fn is_output(&self, id: TensorId) -> bool {
        self.output_uses[id] > 0
    }

    /// Returns, for each tensor, whether one of `wanted` depends on it. Inputs are included.
    pub fn reachable_from(&self, wanted: &[TensorId]) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        for &id in wanted.iter().chain(&self.inputs) {
            reached[id.index()] = true;
        }
        for id in self.ids().rev() {
            if reached[id.index()] {
                for operand in self.operands(id) {
                    reached[operand.index()] = true;
                }
            }
        }
        reached
    }

    /// Adds `id`, which has become live, to the users of its operands. Does the same, recursively, for operands that become live by this.
    fn enter(&mut self, id: TensorId) {
        let mut entering = vec![id];
        while let Some(id) = entering.pop() {
            for operand in self.nodes[id].op.operands() {
                if !self.is_live(operand) {
                    entering.push(operand);
                }
                self.users[operand].push(id);
            }
        }
    }

    /// Removes `id`, which has become dead, from the users of its operands. Does the same, recursively, for operands that become dead by this.
    fn leave(&mut self, id: TensorId) {
        let mut leaving = vec![id];
        while let Some(id) = leaving.pop() {
            for operand in self.nodes[id].op.operands() {
                self.users[operand].retain(|user| *user != id);
                if !self.is_live(operand) {
                    leaving.push(operand);
                }
            }
        }
    }
}

/// Rewriting.
impl TensorGraph {
    /// Replaces the operation that computes `id`. It reads tensors of smaller numbers only.
    pub fn set_op(&mut self, id: TensorId, op: TensorOp) {
        self.revision += 1;
        if !self.is_live(id) {
            self.nodes[id].op = op;
            return;
        }
        let old = self.nodes[id].op.operands();
        let new = op.operands();
        self.nodes[id].op = op;
        for &operand in new.iter().filter(|operand| !old.contains(operand)) {
            let was_live = self.is_live(operand);
            self.users[operand].push(id);
            if !was_live {
                self.enter(operand);
            }
        }
        for &operand in old.iter().filter(|operand| !new.contains(operand)) {
            self.users[operand].retain(|user| *user != id);
            if !self.is_live(operand) {
                self.leave(operand);
            }
        }
    }

    /// Replaces the operation that computes `id` by one whose result has another shape. Users have to be changed accordingly. The extents of `id` become
    /// unknown: see [`TensorGraph::set_extents`].
    pub fn set_shape_and_op(&mut self, id: TensorId, shape: TensorShape, op: TensorOp) {
        self.set_extents(id, None);
        self.nodes[id].shape = shape;
        self.set_op(id, op);
    }

    /// Makes `id` the last input of the graph, in place of the operation that computes it. Does nothing if `id` is an input already.
    pub fn set_input(&mut self, id: TensorId) {
        if !matches!(self.op(id), TensorOp::Input(_)) {
            self.set_op(id, TensorOp::Input(self.inputs.len() as u32));
            self.inputs.push(id);
        }
    }

    /// Replaces `id` in all live operations and outputs by `other`, which has the same shape.
    pub fn replace_uses(&mut self, id: TensorId, other: TensorId) {
        if id == other {
            return;
        }
        self.revision += 1;
        for user in self.users[id].clone() {
            let mut op = self.nodes[user].op.clone();
            op.each_operand(&mut |operand| {
                if *operand == id {
                    *operand = other;
                }
            });
            self.set_op(user, op);
        }
        let count = std::mem::take(&mut self.output_uses[id]);
        if count > 0 {
            let was_live = self.is_live(other);
            self.output_uses[other] += count;
            for output in self.outputs.iter_mut().filter(|output| **output == id) {
                *output = other;
            }
            if !was_live {
                self.enter(other);
            }
            if !self.is_live(id) {
                self.leave(id);
            }
        }
    }

    /// Replaces the origins of `id`.
    pub fn set_origins(&mut self, id: TensorId, origins: Vec<Origin>) {
        self.nodes[id].origins = origins;
    }
}
