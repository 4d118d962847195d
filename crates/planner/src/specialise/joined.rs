//! Joins of the rows of one tensor, which rolled loops leave in lists: they are views of the tensor, and need no code for each row.

use super::state::Specialiser;
use crate::error::LowerError;
use frazil_ir::{Graph, NodeId};
use frazil_runtime::Variant;
use frazil_runtime::entry::Role;
use frazil_runtime::op::Operator;
use frazil_runtime::structured::{Affine, TensorShape, ViewKind};
use frazil_runtime::value::{TensorCell, Value};
use frazil_tensor_ir::spec::PathStep;

impl Specialiser<'_> {
    /// Returns the result of joining rows of one tensor along the first dimension; `None` for other operators and operands.
    pub(super) fn joined_rows(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
    ) -> Result<Option<Value>, LowerError> {
        let ([Value::List(list), Value::Int(dim)], Some(role), Variant::Functional) =
            (values, op.traits().role, op.variant())
        else {
            return Ok(None);
        };
        if !self.store.has_rows() || !matches!(role, Role::Stack | Role::Concat) {
            return Ok(None);
        }
        let items = list.items();
        let row = |value: &Value| match value {
            Value::Tensor(cell) => self.store.row(cell),
            _ => None,
        };
        let Some(rows) = items.iter().map(row).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let [(whole, first), (_, second), ..] = rows.as_slice() else {
            return Ok(None);
        };
        let step = second - first;
        let follows = |(at, (own, index)): (i64, &(TensorCell, i64))| own.is(whole) && *index == first + at * step;
        let count = rows.len() as i64;
        if step == 0 || !(0..).zip(&rows).all(follows) {
            return Ok(None);
        }
        let base = self.read(whole)?;
        let mut shape = self.tensors.shape(base).clone();
        let rank = shape.sizes.len() as i64;
        let result_rank = if role == Role::Stack { rank } else { rank - 1 };
        if result_rank < 1 || (*dim != 0 && *dim != -result_rank) {
            return Ok(None);
        }
        let origins = self.origin(graph, node);
        let mut id = base;
        if (*first, step, count) != (0, 1, shape.sizes.first().copied().unwrap_or_default()) {
            shape.sizes[0] = count;
            let rank = shape.sizes.len();
            let mut map: Vec<Affine> = (0..rank).map(|d| Affine::index(rank, d)).collect();
            map[0].coefficients[0] = step;
            map[0].offset = *first;
            let rows = PathStep {
                kind: ViewKind::Affine(map),
                shape: shape.clone(),
            };
            id = self.tensors.view(rows.over(id), origins.clone());
        }
        if role == Role::Concat {
            let mut sizes = shape.sizes.clone();
            let rows = sizes.remove(0);
            sizes[0] *= rows;
            shape = TensorShape { sizes, ..shape };
            let joined = PathStep {
                kind: ViewKind::Reshape,
                shape: shape.clone(),
            };
            id = self.tensors.view(joined.over(id), origins);
        }
        Ok(Some(Value::Tensor(self.store.fresh(id, &shape, false)?)))
    }
}
