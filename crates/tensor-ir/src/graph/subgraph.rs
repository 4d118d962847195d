//! Extraction of subgraphs, removal of tensors, and comparison of graphs.

use super::{TensorGraph, TensorOp};
use cranelift_entity::PrimaryMap;
use frazil_runtime::structured::TensorId;
use std::collections::BTreeSet;
use std::sync::Arc;

impl TensorGraph {
    /// Returns the subgraph with the outputs `wanted`, computed from tensors in `given`, and those of `given` that are its inputs.
    pub fn subgraph(&self, given: &BTreeSet<TensorId>, wanted: &[TensorId]) -> (TensorGraph, Vec<TensorId>) {
        let mut needed = vec![false; self.len()];
        wanted.iter().for_each(|&id| needed[id.index()] = true);
        for id in self.ids().rev() {
            if needed[id.index()] && !given.contains(&id) {
                self.operands(id)
                    .iter()
                    .for_each(|operand| needed[operand.index()] = true);
            }
        }
        let mut part = TensorGraph::new();
        let mut taken = Vec::new();
        let mut renamed = vec![TensorId::new(0); self.len()];
        for id in self.ids().filter(|id| needed[id.index()]) {
            let node = self.node(id);
            renamed[id.index()] = if given.contains(&id) || matches!(node.op, TensorOp::Input(_)) {
                taken.push(id);
                part.input(node.shape.clone())
            } else {
                let mut op = node.op.clone();
                op.each_operand(&mut |operand| *operand = renamed[operand.index()]);
                part.push(node.shape.clone(), op, node.origins.clone())
            };
        }
        part.copy_symbols(self, |id| needed[id.index()].then(|| renamed[id.index()]));
        wanted.iter().for_each(|id| part.add_output(renamed[id.index()]));
        (part, taken)
    }

    /// Removes all tensors from `end` on. None of them may be an output, or be read by a tensor that stays.
    pub fn truncate(&mut self, end: TensorId) {
        self.revision += 1;
        shorten(&mut self.nodes, end);
        shorten(&mut self.users, end);
        shorten(&mut self.output_uses, end);
        self.inputs.retain(|&id| id < end);
        if let Some(symbols) = &mut self.symbols {
            symbols.forget_from(end);
        }
    }

    /// Returns true if both graphs compute the same from the same inputs, tensor by tensor, and share their constants. Origins and texts of checks do not
    /// matter. Graphs with symbols or runtime calls are never the same.
    pub fn is_same(&self, other: &TensorGraph) -> bool {
        let is_same_op = |own: &TensorOp, other: &TensorOp| match (own, other) {
            (TensorOp::Input(a), TensorOp::Input(b)) => a == b,
            (TensorOp::Constant(a), TensorOp::Constant(b)) => Arc::ptr_eq(a, b),
            (TensorOp::Nest(a), TensorOp::Nest(b)) => a == b,
            (TensorOp::View(a), TensorOp::View(b)) => a == b,
            (TensorOp::Gather(a), TensorOp::Gather(b)) => a == b,
            _ => false,
        };
        let mut nodes = self.nodes.values().zip(other.nodes.values());
        self.len() == other.len()
            && (&self.inputs, &self.outputs) == (&other.inputs, &other.outputs)
            && self.checks.len() == other.checks.len()
            && self.symbols.is_none()
            && other.symbols.is_none()
            && nodes.all(|(a, b)| a.shape == b.shape && is_same_op(&a.op, &b.op))
    }

    /// Removes dead tensors and renumbers the others. All inputs are kept.
    pub fn compact(&mut self) {
        let mut compacted = TensorGraph::new();
        let mut renamed = vec![TensorId::new(0); self.len()];
        // Inputs may have any number; their order among one another is that of the graph's inputs.
        for id in self.live_ids() {
            let node = self.node(id);
            let mut op = node.op.clone();
            op.each_operand(&mut |operand| *operand = renamed[operand.index()]);
            let new = compacted.push(node.shape.clone(), op, node.origins.clone());
            renamed[id.index()] = new;
        }
        compacted.copy_symbols(self, |id| self.is_live(id).then(|| renamed[id.index()]));
        compacted.inputs = self.inputs.iter().map(|id| renamed[id.index()]).collect();
        self.outputs
            .iter()
            .for_each(|id| compacted.add_output(renamed[id.index()]));
        compacted.checks = std::mem::take(&mut self.checks);
        compacted.revision += self.revision;
        *self = compacted;
    }
}

/// Removes the entries from `end` on.
fn shorten<V>(map: &mut PrimaryMap<TensorId, V>, end: TensorId) {
    let mut values = Vec::from(std::mem::take(map));
    values.truncate(end.index());
    *map = values.into();
}
