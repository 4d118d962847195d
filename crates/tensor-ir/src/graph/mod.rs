//! The tensor-program graph: a whole method as loop nests and views over numbered tensors, without operator names.
//!
//! Specialisation makes one of these; simplification, fusion and layout rewrite it in place. Tensors are numbered in
//! topological order: a node only reads tensors of smaller numbers, and every rewrite keeps that. A node that nothing
//! reaches from the outputs is dead and is simply never looked at.

use crate::call::RuntimeCall;
use frazil_ir::{DType, TensorData};
use frazil_runtime::gather::Gather;
use frazil_runtime::structured::{Access, Structured, TensorId, TensorShape, ViewKind, ViewMap};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a tensor comes about.
#[derive(Clone, Debug)]
pub enum TensorOp {
    /// The function's input of this number, dense.
    Input(u32),
    /// Known at compile time.
    Constant(Arc<TensorData>),
    /// A loop nest; its accesses name tensors of the graph. After fusion, a fold's parallel loops may split dimensions of its
    /// result: their elements in row-major order are the result's.
    Compute(Box<Structured>),
    /// A view of another tensor of the graph.
    View(ViewMap),
    /// Elements at places that other tensors name.
    Gather(Box<Gather>),
    /// All results of an operator without a program, as bytes.
    Host(Arc<RuntimeCall>),
    /// Result number `result` of the host call that tensor `host` is.
    HostResult {
        /// The call.
        host: TensorId,
        /// Which of its results.
        result: u32,
    },
}

/// Where a tensor comes from in the source, for listings and messages only.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The operator's name.
    pub operator: String,
    /// `file:line:column`, where known.
    pub source: Option<String>,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{} ({source})", self.operator),
            None => f.write_str(&self.operator),
        }
    }
}

/// One tensor of the graph.
#[derive(Clone, Debug)]
pub struct TensorNode {
    /// dtype and sizes.
    pub shape: TensorShape,
    /// What computes it.
    pub op: TensorOp,
    /// The operators that went into it, in order.
    pub origins: Vec<Origin>,
}

/// A straight-line function over tensors.
#[derive(Clone, Debug, Default)]
pub struct TensorGraph {
    nodes: Vec<TensorNode>,
    /// The function's inputs in order.
    pub inputs: Vec<TensorId>,
    /// The function's results in order; a tensor may occur more than once.
    pub outputs: Vec<TensorId>,
    /// What has to hold of the inputs: one message for each of the last outputs, which are truth values. Where one is true, the message
    /// is an exception, and the other outputs mean nothing.
    pub checks: Vec<String>,
}

impl TensorGraph {
    /// A graph without tensors.
    pub fn new() -> TensorGraph {
        TensorGraph::default()
    }

    /// Adds a tensor. Every tensor that `op` reads must be there already.
    pub fn push(&mut self, shape: TensorShape, op: TensorOp, origins: Vec<Origin>) -> TensorId {
        self.nodes.push(TensorNode { shape, op, origins });
        (self.nodes.len() - 1) as TensorId
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
    pub fn compute(&mut self, s: Structured, origins: Vec<Origin>) -> TensorId {
        self.push(s.output.clone(), TensorOp::Compute(Box::new(s)), origins)
    }

    /// Adds a view.
    pub fn view(&mut self, v: ViewMap, origins: Vec<Origin>) -> TensorId {
        self.push(v.output.clone(), TensorOp::View(v), origins)
    }

    /// Adds a call of an operator without a program; gives its results, and last the truth value that it has raised, which is always false:
    /// where it is an output, the call is made although nothing reads its results.
    pub fn host(&mut self, call: RuntimeCall, origins: Vec<Origin>) -> Vec<TensorId> {
        let shape = TensorShape {
            dtype: DType::Byte,
            sizes: smallvec::smallvec![call.bytes() as i64],
        };
        let mut results = call.results.clone();
        results.push(TensorShape {
            dtype: DType::Bool,
            sizes: smallvec::smallvec![],
        });
        let host = self.push(shape, TensorOp::Host(Arc::new(call)), origins.clone());
        let result = |(i, shape): (usize, TensorShape)| {
            let op = TensorOp::HostResult { host, result: i as u32 };
            self.push(shape, op, origins.clone())
        };
        results.into_iter().enumerate().map(result).collect()
    }

    /// Number of tensors, dead ones included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True without any tensor.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The tensor `id`, which must be of this graph.
    pub fn node(&self, id: TensorId) -> &TensorNode {
        &self.nodes[id as usize]
    }

    /// The tensor `id`, to be changed.
    pub fn node_mut(&mut self, id: TensorId) -> &mut TensorNode {
        &mut self.nodes[id as usize]
    }

    /// dtype and sizes of `id`.
    pub fn shape(&self, id: TensorId) -> &TensorShape {
        &self.node(id).shape
    }

    /// The loop nest that computes `id`, if one does.
    pub fn structured(&self, id: TensorId) -> Option<&Structured> {
        match &self.node(id).op {
            TensorOp::Compute(s) => Some(s),
            _ => None,
        }
    }

    /// The constant that `id` is, if it is one.
    pub fn as_constant(&self, id: TensorId) -> Option<&Arc<TensorData>> {
        match &self.node(id).op {
            TensorOp::Constant(c) => Some(c),
            _ => None,
        }
    }

    /// The tensor whose elements in row-major order `id`'s are: past reshapes. Affine views are not looked through.
    pub fn root(&self, mut id: TensorId) -> TensorId {
        while let TensorOp::View(ViewMap {
            tensor,
            kind: ViewKind::Reshape,
            ..
        }) = &self.node(id).op
        {
            id = *tensor;
        }
        id
    }

    /// The tensor that `id` is a view of, or a view of a view of; or itself.
    pub fn computed(&self, mut id: TensorId) -> TensorId {
        while let TensorOp::View(view) = &self.node(id).op {
            id = view.tensor;
        }
        id
    }

    /// The tensors that `id` reads, each once.
    pub fn operands(&self, id: TensorId) -> BTreeSet<TensorId> {
        match &self.node(id).op {
            TensorOp::Input(_) | TensorOp::Constant(_) => BTreeSet::new(),
            TensorOp::Compute(s) => accesses(s).map(|a| a.tensor).collect(),
            TensorOp::View(v) => BTreeSet::from([v.tensor]),
            TensorOp::Gather(g) => g.operands().collect(),
            TensorOp::Host(call) => call.inputs.iter().copied().collect(),
            TensorOp::HostResult { host, .. } => BTreeSet::from([*host]),
        }
    }

    /// For each tensor, whether an output depends on it. Inputs are always live.
    pub fn live(&self) -> Vec<bool> {
        self.live_for(&self.outputs)
    }

    /// For each tensor, whether any of `wanted` depends on it. Inputs are always live.
    pub fn live_for(&self, wanted: &[TensorId]) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        for &id in wanted.iter().chain(&self.inputs) {
            live[id as usize] = true;
        }
        for id in (0..self.nodes.len()).rev() {
            if live[id] {
                for operand in self.operands(id as TensorId) {
                    live[operand as usize] = true;
                }
            }
        }
        live
    }

    /// The live tensors in topological order.
    pub fn live_ids(&self) -> Vec<TensorId> {
        let live = self.live();
        (0..self.nodes.len() as TensorId)
            .filter(|&id| live[id as usize])
            .collect()
    }

    /// For each tensor, how many live nodes and outputs read it.
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.nodes.len()];
        for id in self.live_ids() {
            for operand in self.operands(id) {
                counts[operand as usize] += 1;
            }
        }
        for &id in &self.outputs {
            counts[id as usize] += 1;
        }
        counts
    }

    /// Makes every reader of `from`, outputs included, read `to` instead; both have one shape.
    pub fn replace_uses(&mut self, from: TensorId, to: TensorId) {
        let mut swap = |id: &mut TensorId| {
            if *id == from {
                *id = to;
            }
        };
        for node in &mut self.nodes {
            // A call is shared until it changes.
            match &node.op {
                TensorOp::Host(call) if !call.inputs.contains(&from) => {}
                _ => node.op.each_operand(&mut swap),
            }
        }
        self.outputs.iter_mut().for_each(swap);
    }

    /// The graph that computes `wanted`, its outputs, when the tensors in `given` are known; and which of those it takes, its inputs.
    pub fn part(&self, given: &BTreeSet<TensorId>, wanted: &[TensorId]) -> (TensorGraph, Vec<TensorId>) {
        let mut needed = vec![false; self.nodes.len()];
        wanted.iter().for_each(|&id| needed[id as usize] = true);
        for id in (0..self.nodes.len() as TensorId).rev() {
            if needed[id as usize] && !given.contains(&id) {
                self.operands(id).iter().for_each(|&o| needed[o as usize] = true);
            }
        }
        let mut part = TensorGraph::new();
        let mut taken = Vec::new();
        let mut renamed = vec![0; self.nodes.len()];
        for (id, node) in (0..).zip(&self.nodes).filter(|(id, _)| needed[*id as usize]) {
            renamed[id as usize] = if given.contains(&id) || matches!(node.op, TensorOp::Input(_)) {
                taken.push(id);
                part.input(node.shape.clone())
            } else {
                let mut op = node.op.clone();
                op.each_operand(&mut |operand| *operand = renamed[*operand as usize]);
                part.push(node.shape.clone(), op, node.origins.clone())
            };
        }
        part.outputs = wanted.iter().map(|&id| renamed[id as usize]).collect();
        (part, taken)
    }
}

impl TensorOp {
    /// Lets `change` rename the tensors that are read.
    fn each_operand(&mut self, change: &mut impl FnMut(&mut TensorId)) {
        match self {
            TensorOp::Input(_) | TensorOp::Constant(_) => {}
            TensorOp::Compute(s) => {
                let accesses = s.inputs.iter_mut().chain(&mut s.finish_inputs);
                accesses.for_each(|a| change(&mut a.tensor));
            }
            TensorOp::View(v) => change(&mut v.tensor),
            TensorOp::Gather(g) => g.operands_mut().for_each(change),
            TensorOp::Host(call) => Arc::make_mut(call).inputs.iter_mut().for_each(change),
            TensorOp::HostResult { host, .. } => change(host),
        }
    }
}

/// All accesses of a loop nest: those of its body, then those of its finish.
pub fn accesses(s: &Structured) -> impl Iterator<Item = &Access> {
    s.inputs.iter().chain(&s.finish_inputs)
}
