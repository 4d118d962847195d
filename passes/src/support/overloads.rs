//! Overload resolution of nodes, cached by operator and operand types.
//!
//! Graphs have many nodes of few operators. Passes that query every node use this cache instead of the catalogue.

use super::effects::{self, Effect};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use frazil_ir::schema::{Argument, Catalogue, FunctionSchema};
use frazil_ir::{Context, Graph, NodeId, SymbolId, TypeId, TypeKind, types};
use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::SmallVec;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// Facts about all nodes of one operator whose operands have the same types.
#[derive(Debug)]
pub struct Overload {
    kind: SymbolId,
    /// Operand types without the sizes of tensors.
    operands: SmallVec<[TypeId; 8]>,
    /// The overload to which these nodes resolve; `None` if unknown.
    pub schema: Option<Arc<FunctionSchema>>,
    /// The effect of these nodes; `None` if it differs between nodes.
    effect: Option<Effect>,
    /// Whether these nodes write nothing, and return only new tensors and values without identity.
    pub is_plain: bool,
}

/// A cache of facts about the overloads of one catalogue. See the [module documentation](self).
#[derive(Debug, Default)]
pub struct Overloads {
    known: Vec<Overload>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// For each type, the same type without the sizes of tensors.
    unshaped: SecondaryMap<TypeId, PackedOption<TypeId>>,
}

impl Overloads {
    /// Returns the facts about nodes with the operator and operand types of `node`.
    pub fn of(&mut self, catalogue: &Catalogue, graph: &Graph, node: NodeId) -> &Overload {
        let kind = graph.kind(node);
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(kind.as_u32());
        let mut operands: SmallVec<[TypeId; 8]> = SmallVec::new();
        for value in graph.operands(node) {
            let ty = graph.ty(value);
            let ty = match self.unshaped[ty].expand() {
                Some(ty) => ty,
                None => self.unshape(graph.ctx(), ty),
            };
            hasher.write_u32(ty.as_u32());
            operands.push(ty);
        }
        let hash = hasher.finish();
        let known = &self.known;
        let same = |i: &u32| {
            let other = &known[*i as usize];
            other.kind == kind && other.operands == operands
        };
        let index = match self.table.find(hash, same) {
            Some(index) => *index,
            None => self.add(catalogue, graph, node, operands, hash),
        };
        &self.known[index as usize]
    }

    /// Returns the effect of `node` besides its results.
    pub fn effect(&mut self, catalogue: &Catalogue, graph: &Graph, node: NodeId) -> Effect {
        if let Some(effect) = effects::effect_of_kind(graph.kind(node)) {
            return effect;
        }
        let overload = self.of(catalogue, graph, node);
        let of_node = || effects::effect_with(graph, node, overload.schema.as_deref(), catalogue);
        overload.effect.unwrap_or_else(of_node)
    }

    fn unshape(&mut self, ctx: &Context, ty: TypeId) -> TypeId {
        let unshaped = match ctx.type_kind(ty) {
            TypeKind::Tensor(_) => types::TENSOR,
            _ => ty,
        };
        self.unshaped[ty] = unshaped.into();
        unshaped
    }

    fn add(
        &mut self,
        catalogue: &Catalogue,
        graph: &Graph,
        node: NodeId,
        operands: SmallVec<[TypeId; 8]>,
        hash: u64,
    ) -> u32 {
        let kind = graph.kind(node);
        let schema = catalogue.resolve_types(kind, &operands).found();
        let effect = (!effects::depends_on_operands(kind, catalogue))
            .then(|| effects::effect_with(graph, node, schema.as_deref(), catalogue));
        let properties = catalogue.properties(kind);
        let is_plain = !properties.updates_statistics
            && !properties.may_return_operand
            && schema.as_ref().is_some_and(|s| is_plain(graph.ctx(), s));
        let index = self.known.len() as u32;
        self.known.push(Overload {
            kind,
            operands,
            schema,
            effect,
            is_plain,
        });
        let (known, hasher) = (&self.known, &self.hasher);
        let hash_of = |i: &u32| {
            let mut state = hasher.build_hasher();
            let overload = &known[*i as usize];
            state.write_u32(overload.kind.as_u32());
            overload.operands.iter().for_each(|ty| state.write_u32(ty.as_u32()));
            state.finish()
        };
        self.table.insert_unique(hash, index, hash_of);
        index
    }
}

fn is_plain(ctx: &Context, schema: &FunctionSchema) -> bool {
    let unmarked = |a: &Argument| a.alias.is_none() && a.element_alias.is_none();
    let new = |r: &Argument| {
        matches!(
            ctx.type_kind(r.ty),
            TypeKind::Tensor(_)
                | TypeKind::Int
                | TypeKind::Float
                | TypeKind::Bool
                | TypeKind::Complex
                | TypeKind::Number
                | TypeKind::Str
        )
    };
    !schema.is_varret && schema.arguments.iter().all(unmarked) && schema.returns.iter().all(|r| unmarked(r) && new(r))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::schema::{Determinism, Properties};
    use frazil_ir::{Builder, DType};

    #[test]
    fn shapes_do_not_count_and_dropout_asks_its_operands() {
        let ctx = Arc::new(Context::new());
        let mut catalogue = Catalogue::new(ctx.clone());
        catalogue.add_lines(
            "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor\n\
             aten::relu_(Tensor(a!) self) -> Tensor(a!)\n\
             aten::dropout(Tensor input, float p, bool train) -> Tensor\n",
        );
        let dropout = Properties {
            determinism: Determinism::RandomIf("train"),
            ..Properties::NONE
        };
        catalogue.add_properties(ctx.symbol("aten::dropout"), dropout);
        let mut g = Graph::new(ctx.clone());
        let x = g.add_input(types::TENSOR);
        let y = g.add_input(ctx.tensor_of(DType::Float, &[2], &[1], false));
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let (p, on, off) = (b.constant(0.5), b.constant(true), b.constant(false));
        let mut node = |kind: &str, operands: &[_]| b.node(ctx.symbol(kind), operands, &[types::TENSOR]);
        let products = [node("aten::mul", &[x, x]), node("aten::mul", &[x, y])];
        let write = node("aten::relu_", &[x]);
        let dropouts = [on, off].map(|train| node("aten::dropout", &[x, p, train]));
        let unknown = node("foo::bar", &[x]);
        let mut overloads = Overloads::default();
        for product in products {
            assert!(overloads.of(&catalogue, &g, product).is_plain);
        }
        assert_eq!(overloads.known.len(), 1);
        assert!(!overloads.of(&catalogue, &g, write).is_plain);
        assert!(!overloads.of(&catalogue, &g, unknown).is_plain);
        let mut effect = |n| overloads.effect(&catalogue, &g, n);
        assert_eq!(
            [products[0], write, unknown].map(&mut effect),
            [Effect::Pure, Effect::Writes, Effect::Visible]
        );
        assert_eq!(dropouts.map(effect), [Effect::Random, Effect::Pure]);
    }
}
