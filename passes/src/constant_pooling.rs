//! Constant pooling: `constant-pooling`.
//!
//! All constants move to the top of the graph, and equal ones are merged. Tensors are equal if their dtype, sizes and bytes are. Members of
//! enumerations move, and are not merged: code can tell two of them apart by `is`.
//!
//! **Sound when** the constants cannot be distinguished. This is always the case for immutable ones. Tensors and lists must not be written, nor their contents,
//! and at most one of them may leave the graph. PyTorch does not check that, so a write to one is visible in the other.

use crate::cse::hash_constant;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::constants::has_own_identity;
use frazil_ir::{Constant, Graph, NodeId, TensorData, TypeId, symbols};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Declaration of the pass `constant-pooling` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "constant-pooling",
    summary: "Moves constants to the top of the graph and merges equal ones.",
    before: "graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  %a : int = prim::Constant[value=1]()
  %b : int = prim::Constant[value=1]()
  %z : Tensor = aten::transpose(%y, %a, %b)
  return (%z)
",
    after: "graph(%x : Tensor):
  %a : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::transpose(%y, %a, %a)
  return (%z)
",
    options: &[],
    build: |_| AnyPass::graph(ConstantPooling),
};

/// The pass `constant-pooling`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstantPooling;

impl GraphPass<TorchScript> for ConstantPooling {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        // Of the graph before the first merge.
        let mut db = None;
        let mut known: HashMap<(TypeId, u64), Vec<NodeId>> = HashMap::new();
        let root = graph.root();
        for node in graph.all_nodes() {
            if graph.kind(node) != symbols::PRIM_CONSTANT {
                continue;
            }
            let (Some(output), Some(value)) = (graph.output(node), graph.constant_of(node)) else {
                continue;
            };
            let own = has_own_identity(&value);
            let mut hasher = DefaultHasher::new();
            hash_by_value(&value, &mut hasher);
            let same_key = known.entry((graph.ty(output), hasher.finish())).or_default();
            let same = same_key.iter().copied().filter(|_| !own).find(|&n| {
                let (Some(other), Some(v)) = (graph.output(n), graph.constant_of(n)) else {
                    return false;
                };
                equal(&v, &value) && {
                    let db = db.get_or_insert_with(|| cx.alias_db(graph));
                    db.safe_to_change_aliasing(other, output)
                }
            });
            match same.and_then(|n| graph.output(n)) {
                Some(_) if !cx.rewrite(MERGED) => break,
                Some(kept) => {
                    graph.replace_all_uses_with(output, kept);
                    graph.erase(node);
                }
                None => {
                    same_key.push(node);
                    // To the front, as in PyTorch: constants are in the reverse order of their appearance.
                    if graph.first(root) != Some(node) {
                        graph.remove(node);
                        graph.prepend(root, node);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The statistic that counts merged constants.
pub(crate) const MERGED: &str = "constants merged";

/// Number of elements at each end of a tensor that are hashed. It suffices to distinguish weights, and is fast for large tensors.
const HASHED_ELEMENTS: usize = 64;

fn hash_by_value(constant: &Constant, hasher: &mut impl Hasher) {
    match constant {
        Constant::Tensor(t) => {
            t.dtype.code().hash(hasher);
            t.sizes.hash(hasher);
            if t.is_contiguous() {
                let len = usize::try_from(t.numel()).unwrap_or(0);
                let n = len.min(HASHED_ELEMENTS);
                t.dense_bytes(0..n).hash(hasher);
                t.dense_bytes(len - n..len).hash(hasher);
            }
        }
        Constant::List(l) => l.items.iter().for_each(|c| hash_by_value(c, hasher)),
        Constant::Tuple(t) => t.items.iter().for_each(|c| hash_by_value(c, hasher)),
        other => hash_constant(other, hasher),
    }
}

fn equal(a: &Constant, b: &Constant) -> bool {
    match (a, b) {
        (Constant::Tensor(a), Constant::Tensor(b)) => equal_tensors(a, b),
        (Constant::List(x), Constant::List(y)) => x.element == y.element && all_equal(&x.items, &y.items),
        (Constant::Tuple(x), Constant::Tuple(y)) => x.ty == y.ty && all_equal(&x.items, &y.items),
        _ => a.same(b),
    }
}

fn all_equal(a: &[Constant], b: &[Constant]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| equal(x, y))
}

fn equal_tensors(a: &TensorData, b: &TensorData) -> bool {
    let alike = a.dtype == b.dtype
        && a.sizes == b.sizes
        && a.strides == b.strides
        && a.requires_grad == b.requires_grad
        && a.storage.device() == b.storage.device();
    alike && ((a.shares_storage(b) && a.offset == b.offset) || a.to_bytes() == b.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::schema::Catalogue;
    use frazil_ir::{Builder, Context, types};
    use std::sync::Arc;

    fn run(g: &mut Graph, schemas: &str) {
        let mut catalogue = Catalogue::new(g.ctx().clone());
        catalogue.add_lines(schemas);
        ConstantPooling.run(g, &mut PassContext::new(&catalogue)).unwrap();
        g.verify(None).unwrap();
    }

    fn constants(g: &Graph) -> usize {
        g.all_nodes()
            .into_iter()
            .filter(|n| g.kind(*n) == symbols::PRIM_CONSTANT)
            .count()
    }

    #[test]
    fn equal_constants_of_one_type_merge() {
        let ctx = Arc::new(Context::new());
        let mut g = Graph::new(ctx.clone());
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let values: Vec<_> = [
            Constant::Int(1),
            Constant::Int(1),
            Constant::Float(1.0),
            Constant::Bool(true),
        ]
        .into_iter()
        .map(|c| b.constant(c))
        .collect();
        let tensor = |n: u8| {
            Constant::Tensor(Arc::new(
                TensorData::contiguous(frazil_ir::DType::Byte, &[1], vec![n]).unwrap(),
            ))
        };
        let tensors: Vec<_> = [tensor(1), tensor(1), tensor(2)]
            .into_iter()
            .map(|c| b.constant(c))
            .collect();
        b.node(ctx.symbol("pure::op"), &values, &[types::INT]);
        b.node(ctx.symbol("pure::op2"), &tensors, &[types::INT]);
        run(
            &mut g,
            "pure::op(int a, int b, float c, bool d) -> int\npure::op2(Tensor a, Tensor b, Tensor c) -> int",
        );
        assert_eq!(constants(&g), 3 + 2);
    }

    #[test]
    fn members_of_enumerations_move_and_do_not_merge() {
        let ctx = Arc::new(Context::new());
        let mut g = Graph::new(ctx.clone());
        let root = g.root();
        let class = ctx.symbol("Color");
        let member = Constant::Enum(Arc::new(frazil_ir::EnumConstant {
            class,
            name: "RED".into(),
            value: Constant::Int(1),
        }));
        let mut b = Builder::at_end(&mut g, root);
        for _ in 0..2 {
            b.node(ctx.symbol("pure::before"), &[], &[types::INT]);
            b.constant(member.clone());
        }
        run(&mut g, "pure::before() -> int");
        let kinds: Vec<_> = g.all_nodes().into_iter().map(|n| g.kind_name(n)).collect();
        assert_eq!(
            kinds,
            ["prim::Constant", "prim::Constant", "pure::before", "pure::before"]
        );
    }

    #[test]
    fn a_tensor_that_is_written_stays_alone() {
        let ctx = Arc::new(Context::new());
        let mut g = Graph::new(ctx.clone());
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        for _ in 0..2 {
            let t = TensorData::contiguous(frazil_ir::DType::Byte, &[1], vec![0]).unwrap();
            let v = b.constant(Arc::new(t));
            b.op(ctx.symbol("aten::relu_"), &[v], types::TENSOR);
        }
        run(&mut g, "aten::relu_(Tensor(a!) self) -> Tensor(a!)");
        assert_eq!(constants(&g), 2);
    }
}
