//! `x[int(i)]` at a run-time index: the elements are copied to a new tensor at run time, in place of a view of `x`.
//!
//! The copy has the strides of the view. The whole method is searched for operations for which a copy and a view differ otherwise: writes, reads of
//! addresses, and returning a view of a tensor of the caller. If there is one, the index has to be known.

use super::refusal::Refusal;
use super::state::Specialiser;
use super::store::address;
use super::store::tensors_in;
use frazil_ir::schema::Observes;
use frazil_ir::{Graph, NodeId, ValueId, symbols, types};
use frazil_runtime::entry::Role;
use frazil_runtime::number::NumberKind;
use frazil_runtime::op::Operator;
use frazil_runtime::registry::Lookup;
use frazil_runtime::value::{ListValue, TensorCell, Value};
use rustc_hash::FxHashSet;

impl Specialiser<'_> {
    /// Returns `base[index]` along `dim` for a run-time index; `None` if the result has to be a view.
    pub(super) fn row(
        &mut self,
        graph: &Graph,
        node: NodeId,
        base: &TensorCell,
        dim: i64,
        index: &Value,
    ) -> Result<Option<Value>, Refusal> {
        let tensor = base.get();
        let rank = tensor.sizes().len() as i64;
        let at = if dim < 0 { dim + rank } else { dim };
        if self.telling > 0 || !(0..rank).contains(&at) || !tensor.marks().is_none() {
            return Ok(None);
        }
        let at = at as usize;
        let (mut sizes, mut strides) = (tensor.sizes().to_vec(), tensor.strides().to_vec());
        sizes.remove(at);
        strides.remove(at);
        // `index` does not look at indices where the result is empty.
        if sizes.contains(&0) || self.is_input(base) && self.leaves(graph, node) {
            return Ok(None);
        }
        let bytes = tensor.storage().len();
        drop(tensor);
        let Some(index) = self.as_tensor(index, NumberKind::Int.dtype())? else {
            return Ok(None);
        };
        let mut indices = vec![Value::None; at];
        indices.push(index);
        let optional = self.ctx.optional_of(types::TENSOR);
        let indices = Value::List(ListValue::new(optional, indices));
        let values = [Value::Tensor(base.clone()), indices];
        let Some(Value::Tensor(copy)) = self.through(graph, node, self.registry.with_role(Role::Index), &values)?
        else {
            return Ok(None);
        };
        let id = self.read(&copy)?;
        let shape = self.tensors.shape(id).clone();
        Ok(Some(Value::Tensor(self.store.strided(id, &shape, &strides, bytes)?)))
    }

    /// Returns whether `cell` shares its storage with a tensor of the caller or one that a call returned.
    fn is_input(&self, cell: &TensorCell) -> bool {
        let tensor = cell.get();
        self.inputs.iter().any(|input| input.get().shares_storage(&tensor))
    }

    /// Returns the reason why `op` cannot be run on `values`, if its result depends on the addresses of the caller's arguments, or on their exact strides.
    /// Code is compiled for representative strides, and for any offset.
    pub(super) fn unknown_place(&self, op: &Operator, values: &[Value]) -> Option<&'static str> {
        let may_hold = |v: &Value| matches!(v, Value::Tensor(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_));
        if !values.iter().any(may_hold) {
            return None;
        }
        let observes = self.registry.catalogue().properties(op.schema().name).observes;
        let (places, strides) = (observes == Observes::Storage, observes == Observes::Strides);
        if !places && !strides {
            return None;
        }
        let mut cells = Vec::new();
        values.iter().for_each(|v| tensors_in(v, &mut cells));
        cells.retain(|c| self.is_input(c));
        // Row-major tensors may have any stride along dimensions of extent 1.
        let is_free = |cell: &TensorCell| {
            let tensor = cell.get();
            self.strided.contains(&address(tensor.storage())) || tensor.sizes().contains(&1)
        };
        if places && !cells.is_empty() {
            return Some("depends on where an argument is stored");
        }
        (strides && cells.iter().any(is_free)).then_some("depends on the strides of an argument")
    }

    /// Returns whether the result of `node`, or a view of it, may outlive the graph: it is returned, stored, or given to another graph.
    fn leaves(&self, graph: &Graph, node: NodeId) -> bool {
        let mut reached: Vec<ValueId> = graph.node_outputs(node).to_vec();
        let mut seen: FxHashSet<ValueId> = FxHashSet::default();
        while let Some(value) = reached.pop() {
            if !seen.insert(value) {
                continue;
            }
            for place in graph.uses(value) {
                let next = self.carried(graph, place.user, place.index);
                match next {
                    Some(values) => reached.extend(values),
                    None => return true,
                }
            }
        }
        false
    }

    /// Returns the values of the graph that may share memory with operand `index` of `user`; `None` if one of them may be reachable from outside the graph.
    fn carried(&self, graph: &Graph, user: NodeId, index: usize) -> Option<Vec<ValueId>> {
        let outputs = graph.node_outputs(user);
        let block = graph.parent(user)?;
        if graph.return_node(block) == user {
            let owner = graph.owner(block)?;
            let number = match graph.kind(owner) {
                symbols::PRIM_LOOP => index.checked_sub(1)?,
                _ => index,
            };
            let mut next: Vec<ValueId> = graph.node_outputs(owner).get(number).copied().into_iter().collect();
            if graph.kind(owner) == symbols::PRIM_LOOP {
                next.extend(graph.parameters(block).get(index));
            }
            return Some(next);
        }
        match graph.kind(user) {
            symbols::PRIM_LOOP => {
                let &[body] = graph.node_blocks(user) else { return None };
                let carried = graph.parameters(body).get(index.checked_sub(1)?).copied();
                let result = outputs.get(index.checked_sub(2)?).copied();
                Some(carried.into_iter().chain(result).collect())
            }
            symbols::PRIM_UNCHECKED_CAST => Some(outputs.to_vec()),
            symbols::PRIM_LIST_CONSTRUCT
            | symbols::PRIM_TUPLE_CONSTRUCT
            | symbols::PRIM_LIST_UNPACK
            | symbols::PRIM_TUPLE_UNPACK
            | symbols::PRIM_TUPLE_INDEX => Some(outputs.to_vec()),
            _ => match self.registry.lookup(graph, user) {
                Lookup::Found(op) => {
                    let schema = op.schema();
                    let mut returns = schema.returns.iter();
                    let shares = returns.any(|r| r.alias.is_some() || r.element_alias.is_some());
                    // The written value may be a list.
                    (!schema.is_mutable()).then(|| if shares { outputs.to_vec() } else { Vec::new() })
                }
                _ => None,
            },
        }
    }
}
