//! Numbering of values with an identity: tensors, storages, and containers that are referenced more than once.

use frazil_ir::nesting::with_stack;
use frazil_ir::schema::FunctionSchema;
use frazil_ir::{AttributeValue, Constant, Context, DType, Graph, Module, Storage, TensorData, TypeId, TypeKind};
use indexmap::{IndexMap, IndexSet};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A storage, and properties of the tensors that are views of it.
pub(super) struct StorageUse {
    pub(super) storage: Arc<Storage>,
    /// Number of tensors on it.
    pub(super) users: usize,
    /// dtype of the first tensor that is a view of the storage.
    pub(super) dtype: DType,
}

/// All values of a module that the text references by number, in the order of the numbers. Keys are addresses, because identity matters.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) tensors: IndexMap<usize, Arc<TensorData>>,
    pub(super) storages: IndexMap<usize, StorageUse>,
    /// Lists, dictionaries and tuples that are referenced more than once. Each comes after the values that it contains.
    pub(super) shared: IndexMap<usize, Constant>,
    /// NamedTuples and interfaces, which are printed by name. Each comes after the types to which it refers.
    pub(super) named_types: IndexSet<TypeId>,
    /// The number of references to each container, keyed by its address.
    counts: HashMap<usize, u32>,
    seen_types: IndexSet<TypeId>,
}

/// Returns the address of a container; `None` for values without an identity.
pub(super) fn container(constant: &Constant) -> Option<usize> {
    match constant {
        Constant::List(l) => Some(Arc::as_ptr(l).addr()),
        Constant::Tuple(t) => Some(Arc::as_ptr(t).addr()),
        Constant::Dict(d) => Some(Arc::as_ptr(d).addr()),
        _ => None,
    }
}

/// Returns all constants of the module that are not parts of other constants: slots, class constants, defaults, attributes of nodes.
fn constants(module: &Module) -> Vec<&Constant> {
    let mut out: Vec<&Constant> = module.objects().flat_map(|(_, o)| &o.slots).collect();
    out.extend(module.states().map(|(_, state)| state));
    for class in module.unit.classes.values() {
        out.extend(class.constants.values());
        for schema in class.signatures.values() {
            out.extend(defaults(schema));
        }
    }
    for (_, function) in module.unit.functions() {
        out.extend(defaults(&function.schema));
        graphs(&function.graph, &mut |graph| {
            for node in graph.all_nodes() {
                out.extend(graph.attributes(node).iter().filter_map(|a| a.value.as_constant()));
            }
        });
    }
    out
}

fn defaults(schema: &FunctionSchema) -> impl Iterator<Item = &Constant> {
    schema
        .arguments
        .iter()
        .chain(&schema.returns)
        .filter_map(|a| a.default.as_ref())
}

/// Calls `visit` on `graph` and on the graphs in attributes of its nodes.
fn graphs<'g>(graph: &'g Graph, visit: &mut dyn FnMut(&'g Graph)) {
    visit(graph);
    for node in graph.all_nodes() {
        for attribute in graph.attributes(node) {
            match &attribute.value {
                AttributeValue::Graph(g) => graphs(g, visit),
                AttributeValue::Graphs(gs) => gs.iter().for_each(|g| graphs(g, visit)),
                _ => {}
            }
        }
    }
}

impl Collected {
    pub(super) fn new(module: &Module) -> Collected {
        let mut out = Collected::default();
        let constants = constants(module);
        for c in &constants {
            out.count(c);
        }
        for c in &constants {
            out.number(c);
        }
        out.types(module, &constants);
        out
    }

    /// Counts the references to each container (first pass).
    fn count(&mut self, constant: &Constant) {
        if let Some(address) = container(constant) {
            let count = self.counts.entry(address).or_default();
            *count += 1;
            if *count > 1 {
                return;
            }
        }
        children(constant, &mut |c| self.count(c));
    }

    /// Assigns numbers to storages, tensors and shared containers (second pass).
    fn number(&mut self, constant: &Constant) {
        if let Constant::Tensor(t) = constant {
            self.tensor(t);
            return;
        }
        let address = container(constant);
        if address.is_some_and(|a| self.shared.contains_key(&a)) {
            return;
        }
        children(constant, &mut |c| self.number(c));
        if let Some(address) = address
            && self.counts.get(&address).is_some_and(|n| *n > 1)
        {
            self.shared.insert(address, constant.clone());
        }
    }

    fn tensor(&mut self, t: &Arc<TensorData>) {
        let address = Arc::as_ptr(t).addr();
        if self.tensors.contains_key(&address) {
            return;
        }
        // Before the tensor that refers to them; they are plain tensors themselves.
        for part in t.encoding.iter().flat_map(|encoding| encoding.tensors()) {
            if part.encoding.is_none() {
                self.tensor(part);
            }
        }
        if self.tensors.insert(address, t.clone()).is_none() {
            let storage = Arc::as_ptr(&t.storage).addr();
            let entry = self.storages.entry(storage).or_insert_with(|| StorageUse {
                storage: t.storage.clone(),
                users: 0,
                dtype: t.dtype,
            });
            entry.users += 1;
        }
    }

    fn types(&mut self, module: &Module, constants: &[&Constant]) {
        let ctx = module.ctx();
        for class in module.unit.classes.values() {
            for attribute in class.attributes.values() {
                self.ty(ctx, attribute.ty);
            }
            for schema in class.signatures.values() {
                self.schema(ctx, schema);
            }
        }
        for (_, function) in module.unit.functions() {
            self.schema(ctx, &function.schema);
            graphs(&function.graph, &mut |graph| self.graph(ctx, graph));
        }
        let mut seen = HashSet::new();
        for c in constants {
            self.constant_types(ctx, c, &mut seen);
        }
    }

    /// Collects the types of containers in `constant`, except of containers whose addresses are in `seen`.
    fn constant_types(&mut self, ctx: &Context, constant: &Constant, seen: &mut HashSet<usize>) {
        if let Some(address) = container(constant) {
            if !seen.insert(address) {
                return;
            }
            self.ty(ctx, constant.ty(ctx));
        }
        children(constant, &mut |c| self.constant_types(ctx, c, seen));
    }

    fn schema(&mut self, ctx: &Context, schema: &FunctionSchema) {
        for argument in schema.arguments.iter().chain(&schema.returns) {
            self.ty(ctx, argument.ty);
        }
    }

    fn graph(&mut self, ctx: &Context, graph: &Graph) {
        let mut blocks = vec![graph.root()];
        for node in graph.all_nodes() {
            blocks.extend_from_slice(graph.node_blocks(node));
            for &v in graph.node_outputs(node) {
                self.ty(ctx, graph.ty(v));
            }
            for attribute in graph.attributes(node) {
                match &attribute.value {
                    AttributeValue::Type(ty) => self.ty(ctx, *ty),
                    AttributeValue::Types(types) => types.iter().for_each(|ty| self.ty(ctx, *ty)),
                    _ => {}
                }
            }
        }
        for block in blocks {
            for &v in graph.parameters(block) {
                self.ty(ctx, graph.ty(v));
            }
        }
    }

    fn ty(&mut self, ctx: &Context, ty: TypeId) {
        if !self.seen_types.insert(ty) {
            return;
        }
        with_stack(|| self.parts(ctx, ty));
    }

    /// Collects the component types of `ty`, then `ty` itself if it is a named type.
    fn parts(&mut self, ctx: &Context, ty: TypeId) {
        match ctx.type_kind(ty) {
            TypeKind::Optional(e)
            | TypeKind::List(e)
            | TypeKind::Future(e)
            | TypeKind::Await(e)
            | TypeKind::RRef(e) => self.ty(ctx, e),
            TypeKind::Dict(k, v) => {
                self.ty(ctx, k);
                self.ty(ctx, v);
            }
            TypeKind::Tuple(es) | TypeKind::Union(es) => ctx.types(es).iter().for_each(|e| self.ty(ctx, *e)),
            TypeKind::NamedTuple(_, _, es) => {
                ctx.types(es).iter().for_each(|e| self.ty(ctx, *e));
                self.named_types.insert(ty);
            }
            TypeKind::Interface(_) => {
                self.named_types.insert(ty);
            }
            _ => {}
        }
    }
}

fn children(constant: &Constant, visit: &mut dyn FnMut(&Constant)) {
    with_stack(|| match constant {
        Constant::List(l) => l.items.iter().for_each(visit),
        Constant::Tuple(t) => t.items.iter().for_each(visit),
        Constant::Dict(d) => d.entries.iter().for_each(|(k, v)| {
            visit(k);
            visit(v);
        }),
        Constant::Enum(e) => visit(&e.value),
        _ => {}
    });
}
