//! Edits: creating, changing and erasing nodes, values and blocks.

use super::{
    Attribute, AttributeList, AttributeValue, BlockData, BlockId, Change, Graph, IS_PARAMETER, NodeData, NodeId, Use,
    ValueData, ValueId, ValueName,
};
use crate::{Constant, SourceRange, SymbolId, TypeId, symbols};
use cranelift_entity::EntityList;

impl Graph {
    /// Returns a new block of `owner`, appended to its blocks; without an owner only for the root.
    pub(super) fn new_block(&mut self, owner: Option<NodeId>) -> BlockId {
        let block = self.blocks.next_key();
        let return_node = self.create_node(symbols::PRIM_RETURN);
        self.blocks.push(BlockData {
            parameters: EntityList::new(),
            first: None.into(),
            last: None.into(),
            return_node,
            owner: owner.into(),
        });
        self.nodes[return_node].parent = block.into();
        if let Some(owner) = owner {
            self.nodes[owner].blocks.push(block, &mut self.block_lists);
        }
        block
    }

    /// Returns a new node of kind `kind`, without operands and outputs, which is not in any block yet.
    pub fn create_node(&mut self, kind: SymbolId) -> NodeId {
        self.nodes.push(NodeData {
            kind: kind.into(),
            operands: None.into(),
            outputs: EntityList::new(),
            blocks: EntityList::new(),
            attributes: None.into(),
            parent: None.into(),
            previous: None.into(),
            next: None.into(),
        })
    }

    /// Appends a block to `node`.
    pub fn add_block(&mut self, node: NodeId) -> BlockId {
        let block = self.new_block(Some(node));
        self.record(Change::Updated(node));
        block
    }

    fn new_value(&mut self, ty: TypeId, owner: u32, position: u32) -> ValueId {
        self.values.push(ValueData {
            ty,
            first_use: None.into(),
            owner,
            position,
        })
    }

    /// Appends an output of type `ty` to `node`.
    pub fn add_output(&mut self, node: NodeId, ty: TypeId) -> ValueId {
        let index = self.node_outputs(node).len() as u32;
        let value = self.new_value(ty, node.as_u32(), index);
        self.nodes[node].outputs.push(value, &mut self.value_lists);
        value
    }

    /// Appends a parameter of type `ty` to `block`.
    pub fn add_parameter(&mut self, block: BlockId, ty: TypeId) -> ValueId {
        let index = self.parameters(block).len() as u32;
        let value = self.new_value(ty, block.as_u32(), index | IS_PARAMETER);
        self.blocks[block].parameters.push(value, &mut self.value_lists);
        value
    }

    /// Appends an input to the graph.
    pub fn add_input(&mut self, ty: TypeId) -> ValueId {
        self.add_parameter(self.root, ty)
    }

    /// Appends a result to `block`.
    pub fn add_result(&mut self, block: BlockId, value: ValueId) {
        self.add_operand(self.return_node(block), value);
    }

    /// Makes `results` the results of `block`.
    pub fn set_results(&mut self, block: BlockId, results: &[ValueId]) {
        let node = self.return_node(block);
        self.set_operands(node, results);
    }

    /// Removes output `index` of `node`. Returns false and changes nothing if it does not exist or is used.
    pub fn remove_output(&mut self, node: NodeId, index: usize) -> bool {
        let Some(&value) = self.node_outputs(node).get(index) else {
            return false;
        };
        if self.has_uses(value) {
            return false;
        }
        self.nodes[node].outputs.remove(index, &mut self.value_lists);
        for i in index..self.node_outputs(node).len() {
            let moved = self.node_outputs(node)[i];
            self.values[moved].position = i as u32;
        }
        self.record(Change::Updated(node));
        true
    }

    /// Removes parameter `index` of `block`. Returns false and changes nothing if it does not exist or is used.
    pub fn remove_parameter(&mut self, block: BlockId, index: usize) -> bool {
        let Some(&value) = self.parameters(block).get(index) else {
            return false;
        };
        if self.has_uses(value) {
            return false;
        }
        self.blocks[block].parameters.remove(index, &mut self.value_lists);
        for i in index..self.parameters(block).len() {
            let moved = self.parameters(block)[i];
            self.values[moved].position = i as u32 | IS_PARAMETER;
        }
        self.record(Change::Updated(self.return_node(block)));
        true
    }

    /// Reorders the outputs of `node`: output `order[i]` moves to index `i`. Does nothing if `order` is not a permutation of the outputs' indices. The caller
    /// must reorder the results of the node's blocks in the same way.
    pub fn permute_outputs(&mut self, node: NodeId, order: &[usize]) {
        let Some(permuted) = permutation(self.node_outputs(node), order) else {
            return;
        };
        let list = &mut self.nodes[node].outputs;
        list.clear(&mut self.value_lists);
        list.extend(permuted.iter().copied(), &mut self.value_lists);
        for (i, value) in permuted.into_iter().enumerate() {
            self.values[value].position = i as u32;
        }
        self.record(Change::Updated(node));
    }

    /// Reorders the parameters of `block`, as [`permute_outputs`](Self::permute_outputs) does for outputs.
    pub fn permute_parameters(&mut self, block: BlockId, order: &[usize]) {
        let Some(permuted) = permutation(self.parameters(block), order) else {
            return;
        };
        let list = &mut self.blocks[block].parameters;
        list.clear(&mut self.value_lists);
        list.extend(permuted.iter().copied(), &mut self.value_lists);
        for (i, value) in permuted.into_iter().enumerate() {
            self.values[value].position = i as u32 | IS_PARAMETER;
        }
        self.record(Change::Updated(self.return_node(block)));
    }

    /// Removes result `index` of `block`.
    pub fn remove_result(&mut self, block: BlockId, index: usize) {
        self.remove_operand(self.return_node(block), index);
    }

    /// Appends an operand to `node`.
    pub fn add_operand(&mut self, node: NodeId, value: ValueId) {
        self.add_operands(node, &[value]);
    }

    /// Appends operands to `node`.
    pub fn add_operands(&mut self, node: NodeId, values: &[ValueId]) {
        self.operands
            .extend(&mut self.nodes[node].operands, node, values, &mut self.values);
        self.record(Change::Updated(node));
    }

    /// Makes `values` the operands of `node`.
    pub fn set_operands(&mut self, node: NodeId, values: &[ValueId]) {
        self.operands
            .truncate(&mut self.nodes[node].operands, 0, &mut self.values);
        self.add_operands(node, values);
    }

    /// Replaces operand `index` of `node`. Does nothing if the node has no such operand.
    pub fn set_operand(&mut self, node: NodeId, index: usize, value: ValueId) {
        if self
            .operands
            .set(self.nodes[node].operands, index, value, &mut self.values)
        {
            self.record(Change::Updated(node));
        }
    }

    /// Inserts an operand before operand `index` of `node` (at the end if `index` is at least the number of operands).
    pub fn insert_operand(&mut self, node: NodeId, index: usize, value: ValueId) {
        let tail: Vec<_> = self.operands(node).skip(index).collect();
        self.operands
            .truncate(&mut self.nodes[node].operands, index, &mut self.values);
        self.add_operand(node, value);
        self.add_operands(node, &tail);
    }

    /// Removes operand `index` of `node`. Does nothing if the node has no such operand.
    pub fn remove_operand(&mut self, node: NodeId, index: usize) {
        let tail: Vec<_> = self.operands(node).skip(index + 1).collect();
        self.operands
            .truncate(&mut self.nodes[node].operands, index, &mut self.values);
        self.add_operands(node, &tail);
    }

    /// Replaces `from` by `to` in all its uses.
    pub fn replace_all_uses_with(&mut self, from: ValueId, to: ValueId) {
        if from == to {
            return;
        }
        let mut users = Vec::new();
        self.operands
            .move_uses(from, to, &mut self.values, |user| users.push(user));
        for user in users {
            self.record(Change::Updated(user));
        }
    }

    /// Replaces `from` by `to` in the uses for which `choose` returns true.
    pub fn replace_uses_if(&mut self, from: ValueId, to: ValueId, mut choose: impl FnMut(&Graph, Use) -> bool) {
        let uses: Vec<_> = self.uses(from).collect();
        for u in uses {
            if choose(self, u) {
                self.set_operand(u.user, u.index, to);
            }
        }
    }

    /// Changes the kind of `node` to another operator, which takes the same operands.
    pub fn set_kind(&mut self, node: NodeId, kind: SymbolId) {
        self.nodes[node].kind = kind.into();
        self.record(Change::Updated(node));
    }

    /// Changes the type of `value`.
    pub fn set_type(&mut self, value: ValueId, ty: TypeId) {
        if self.values[value].ty != ty {
            self.values[value].ty = ty;
            self.record(Change::Retyped(value));
        }
    }

    /// Sets the name of `value`. Several values may have the same name; the printer makes names unique.
    pub fn set_value_name(&mut self, value: ValueId, name: ValueName) {
        self.names[value] = name.into();
    }

    /// Names `value` by the text `name` (without `%`).
    pub fn name_value(&mut self, value: ValueId, name: &str) {
        let name = ValueName::new(&self.ctx, name);
        self.set_value_name(value, name);
    }

    /// Removes the name of `value`, which is then printed as a number.
    pub fn clear_value_name(&mut self, value: ValueId) {
        self.names[value] = None.into();
    }

    /// Sets the source range of `node`.
    pub fn set_source_range(&mut self, node: NodeId, range: Option<SourceRange>) {
        if range.is_some() || self.ranges.get(node).is_some() {
            self.ranges[node] = range.into();
        }
    }

    /// Sets the tracing scope in which `node` was recorded.
    pub fn set_scope(&mut self, node: NodeId, scope: SymbolId) {
        self.scopes.insert(node, scope);
    }

    /// Sets the attribute `name` of `node`, replacing an existing one.
    pub fn set_attribute(&mut self, node: NodeId, name: SymbolId, value: impl Into<AttributeValue>) {
        let value = value.into();
        let id = match self.nodes[node].attributes.expand() {
            Some(id) => id,
            None => {
                let id = self.attributes.push(AttributeList::new());
                self.nodes[node].attributes = id.into();
                id
            }
        };
        let list = &mut self.attributes[id];
        match list.iter_mut().find(|a| a.name == name) {
            Some(a) => a.value = value,
            None => list.push(Attribute { name, value }),
        }
        self.record(Change::Updated(node));
    }

    /// Removes the attribute `name` of `node` and returns its value.
    pub fn remove_attribute(&mut self, node: NodeId, name: SymbolId) -> Option<AttributeValue> {
        let id = self.nodes[node].attributes.expand()?;
        let index = self.attributes[id].iter().position(|a| a.name == name)?;
        let removed = self.attributes[id].remove(index);
        self.record(Change::Updated(node));
        Some(removed.value)
    }

    /// Sets a string attribute of `node`, such as the `name` of a `prim::GetAttr`.
    pub fn set_attribute_symbol(&mut self, node: NodeId, name: SymbolId, text: SymbolId) {
        let text = Constant::str(self.ctx.name(text));
        self.set_attribute(node, name, text);
    }

    /// Erases `node` with its blocks. Returns false and changes nothing if an output of `node` is used, or if `node` is a return node.
    pub fn erase(&mut self, node: NodeId) -> bool {
        let used = self.node_outputs(node).iter().any(|v| self.has_uses(*v));
        if used || !self.is_alive(node) || self.kind(node) == symbols::PRIM_RETURN {
            return false;
        }
        // All operands are removed before the nodes, so that the order of definitions and uses does not matter.
        let mut doomed = vec![node];
        let mut blocks: Vec<BlockId> = self.node_blocks(node).to_vec();
        while let Some(block) = blocks.pop() {
            doomed.push(self.return_node(block));
            let nodes: Vec<_> = self.nodes(block).collect();
            for n in nodes {
                blocks.extend_from_slice(self.node_blocks(n));
                doomed.push(n);
            }
        }
        self.unlink(node);
        for n in doomed {
            self.operands.truncate(&mut self.nodes[n].operands, 0, &mut self.values);
            if let Some(a) = self.nodes[n].attributes.take() {
                self.attributes[a] = AttributeList::new();
            }
            let data = &mut self.nodes[n];
            data.kind = None.into();
            data.parent = None.into();
            data.outputs.clear(&mut self.value_lists);
            data.blocks.clear(&mut self.block_lists);
            self.scopes.remove(&n);
            self.record(Change::Erased(n));
        }
        true
    }

    /// Erases block `index` of `node`. Returns false and changes nothing if there is no such block.
    pub fn erase_block(&mut self, node: NodeId, index: usize) -> bool {
        let Some(&block) = self.node_blocks(node).get(index) else {
            return false;
        };
        let return_node = self.return_node(block);
        self.set_operands(return_node, &[]);
        let mut last = self.last(block);
        while let Some(n) = last {
            last = self.previous(n);
            // In reverse order, so that users are erased before their operands.
            self.erase(n);
        }
        self.nodes[node].blocks.remove(index, &mut self.block_lists);
        self.nodes[return_node].kind = None.into();
        self.record(Change::Updated(node));
        true
    }
}

/// Returns `values` in the order `order`; `None` if `order` is not a permutation.
fn permutation(values: &[ValueId], order: &[usize]) -> Option<Vec<ValueId>> {
    let mut seen = vec![false; values.len()];
    for &from in order {
        if std::mem::replace(seen.get_mut(from)?, true) {
            return None;
        }
    }
    (order.len() == values.len()).then(|| order.iter().map(|&from| values[from]).collect())
}
