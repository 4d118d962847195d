//! Extraction of subgraphs, and removal of dead tensors.

use super::{TensorGraph, TensorOp};
use frazil_runtime::structured::TensorId;
use std::collections::BTreeSet;

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
