//! Renaming of a module's classes and functions, so that they can be merged with equally named classes and functions.

use frazil_ir::schema::FunctionSchema;
use frazil_ir::{
    AttributeValue, ClassDef, CompilationUnit, Constant, Context, DictConstant, EnumConstant, Function, FunctionId,
    Graph, ListConstant, SymbolId, TupleConstant, TypeId, TypeKind, ValueId, mangled_name,
};
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::Arc;

/// A map from old to new names of classes and functions.
pub(super) struct Renaming<'c> {
    ctx: &'c Context,
    names: IndexMap<SymbolId, SymbolId>,
}

impl<'c> Renaming<'c> {
    /// Returns new names for definitions of `other` whose names have another meaning in `unit`, and for definitions that refer to these.
    pub(super) fn between(ctx: &'c Context, unit: &CompilationUnit, other: &CompilationUnit) -> Renaming<'c> {
        let mut renaming = Renaming {
            ctx,
            names: IndexMap::new(),
        };
        let methods = methods(other);
        // Each iteration finds the definitions that differ because of names that the previous one changed.
        loop {
            let before = renaming.names.len();
            for (name, class) in &other.classes {
                if let Some(known) = unit.class(*name)
                    && !renaming.is_same(unit, known, other, class)
                {
                    renaming.rename(*name, unit, other);
                }
            }
            for (_, function) in other.functions().filter(|(id, _)| !methods.contains(id)) {
                if let Some(known) = unit.find_function(function.name)
                    && text(&unit.function(known).graph) != text(&renaming.graph(&function.graph))
                {
                    renaming.rename(function.name, unit, other);
                }
            }
            if renaming.names.len() == before {
                return renaming;
            }
        }
    }

    fn rename(&mut self, name: SymbolId, unit: &CompilationUnit, other: &CompilationUnit) {
        if self.names.contains_key(&name) {
            return;
        }
        let is_free = |name: SymbolId| {
            [unit, other]
                .iter()
                .all(|unit| unit.class(name).is_none() && unit.find_function(name).is_none())
                && !self.names.values().any(|taken| *taken == name)
        };
        let new = mangled_name(self.ctx, name, is_free);
        self.names.insert(name, new);
    }

    pub(super) fn symbol(&self, name: SymbolId) -> SymbolId {
        self.names.get(&name).copied().unwrap_or(name)
    }

    fn ty(&self, ty: TypeId) -> TypeId {
        if self.names.is_empty() {
            return ty;
        }
        let ctx = self.ctx;
        let all = |types: &[TypeId]| -> Vec<TypeId> { types.iter().map(|ty| self.ty(*ty)).collect() };
        let kind = match ctx.type_kind(ty) {
            TypeKind::Optional(e) => return ctx.optional_of(self.ty(e)),
            TypeKind::List(e) => return ctx.list_of(self.ty(e)),
            TypeKind::Dict(k, v) => return ctx.dict_of(self.ty(k), self.ty(v)),
            TypeKind::Tuple(es) => return ctx.tuple_of(&all(ctx.types(es))),
            TypeKind::NamedTuple(name, fields, es) => {
                TypeKind::NamedTuple(self.symbol(name), fields, ctx.type_list(&all(ctx.types(es))))
            }
            TypeKind::Union(es) => TypeKind::Union(ctx.type_list(&all(ctx.types(es)))),
            TypeKind::Future(e) => TypeKind::Future(self.ty(e)),
            TypeKind::Await(e) => TypeKind::Await(self.ty(e)),
            TypeKind::RRef(e) => TypeKind::RRef(self.ty(e)),
            TypeKind::Class(name) => TypeKind::Class(self.symbol(name)),
            TypeKind::Interface(name) => TypeKind::Interface(self.symbol(name)),
            TypeKind::Enum(name) => TypeKind::Enum(self.symbol(name)),
            TypeKind::Function(name) => TypeKind::Function(self.symbol(name)),
            _ => return ty,
        };
        ctx.type_of_kind(kind)
    }

    pub(super) fn constant(&self, value: &Constant) -> Constant {
        if self.names.is_empty() {
            return value.clone();
        }
        let all = |items: &[Constant]| items.iter().map(|item| self.constant(item)).collect();
        match value {
            Constant::List(list) => Constant::List(Arc::new(ListConstant {
                element: self.ty(list.element),
                items: all(&list.items),
            })),
            Constant::Tuple(tuple) => Constant::Tuple(Arc::new(TupleConstant {
                ty: self.ty(tuple.ty),
                items: all(&tuple.items),
            })),
            Constant::Dict(dict) => Constant::Dict(Arc::new(DictConstant {
                key: self.ty(dict.key),
                value: self.ty(dict.value),
                entries: dict
                    .entries
                    .iter()
                    .map(|(k, v)| (self.constant(k), self.constant(v)))
                    .collect(),
            })),
            Constant::Enum(member) => Constant::Enum(Arc::new(EnumConstant {
                class: self.symbol(member.class),
                name: Arc::clone(&member.name),
                value: self.constant(&member.value),
            })),
            Constant::Function(name) => Constant::Function(self.symbol(*name)),
            other => other.clone(),
        }
    }

    fn schema(&self, schema: &FunctionSchema) -> FunctionSchema {
        let mut schema = schema.clone();
        for argument in schema.arguments.iter_mut().chain(&mut schema.returns) {
            argument.ty = self.ty(argument.ty);
            argument.default = argument.default.as_ref().map(|default| self.constant(default));
        }
        schema
    }

    /// Returns the definition of a class with all names mapped, except those of its methods.
    pub(super) fn class(&self, class: &ClassDef) -> ClassDef {
        let mut class = class.clone();
        class.name = self.symbol(class.name);
        for attribute in class.attributes.values_mut() {
            attribute.ty = self.ty(attribute.ty);
        }
        for constant in class.constants.values_mut() {
            *constant = self.constant(constant);
        }
        for schema in class.signatures.values_mut() {
            *schema = self.schema(schema);
        }
        class
    }

    /// Returns a function with new names. With `method_of`, it becomes the method of that name of the class.
    pub(super) fn function(&self, function: &Function, method_of: Option<(SymbolId, SymbolId)>) -> Function {
        let mut schema = self.schema(&function.schema);
        let name = match method_of {
            Some((class, method)) if self.names.contains_key(&class) => {
                let class = self.ctx.name(self.symbol(class));
                self.ctx.symbol(&format!("{class}.{}", self.ctx.name(method)))
            }
            _ => self.symbol(function.name),
        };
        if schema.name == function.name {
            schema.name = name;
        }
        Function {
            name,
            schema,
            graph: self.graph(&function.graph),
        }
    }

    fn graph(&self, graph: &Graph) -> Graph {
        let mut graph = graph.clone();
        if self.names.is_empty() {
            return graph;
        }
        let mut values: Vec<ValueId> = graph.inputs().to_vec();
        let nodes = graph.all_nodes();
        for &node in &nodes {
            values.extend_from_slice(graph.node_outputs(node));
            for block in graph.node_blocks(node) {
                values.extend_from_slice(graph.parameters(*block));
            }
        }
        for value in values {
            let ty = self.ty(graph.ty(value));
            if ty != graph.ty(value) {
                graph.set_type(value, ty);
            }
        }
        for node in nodes {
            let changed: Vec<(SymbolId, AttributeValue)> = graph
                .attributes(node)
                .iter()
                .filter_map(|attribute| Some((attribute.name, self.attribute(&attribute.value)?)))
                .collect();
            for (name, value) in changed {
                graph.set_attribute(node, name, value);
            }
        }
        graph
    }

    /// Returns the attribute value of a node with all names mapped; `None` if it cannot contain names.
    fn attribute(&self, value: &AttributeValue) -> Option<AttributeValue> {
        match value {
            AttributeValue::Constant(Constant::Tensor(_) | Constant::Int(_) | Constant::Str(_)) => None,
            AttributeValue::Constant(constant) => Some(AttributeValue::Constant(self.constant(constant))),
            AttributeValue::Type(ty) => Some(AttributeValue::Type(self.ty(*ty))),
            AttributeValue::Types(types) => Some(AttributeValue::Types(types.iter().map(|ty| self.ty(*ty)).collect())),
            AttributeValue::Graph(graph) => Some(AttributeValue::Graph(Arc::new(self.graph(graph)))),
            AttributeValue::Graphs(graphs) => Some(AttributeValue::Graphs(
                graphs.iter().map(|graph| Arc::new(self.graph(graph))).collect(),
            )),
            AttributeValue::Elided(_) => None,
        }
    }

    /// Returns whether both definitions are equal after `other` is renamed, so that objects of either class are valid for the other.
    fn is_same(&self, unit: &CompilationUnit, a: &ClassDef, other: &CompilationUnit, b: &ClassDef) -> bool {
        let renamed = self.class(b);
        let attributes = |c: &ClassDef| -> Vec<_> { c.attributes.iter().map(|(n, a)| (*n, a.ty, a.kind)).collect() };
        let constants = |c: &ClassDef| c.constants.keys().copied().collect::<Vec<_>>();
        let same_constants = || {
            a.constants
                .values()
                .zip(renamed.constants.values())
                .all(|(a, b)| a.same(b))
        };
        let hooks = |c: &ClassDef| (c.forward_pre_hooks.clone(), c.forward_hooks.clone());
        let same_code = || {
            let ours = a
                .methods
                .iter()
                .map(|(name, id)| (*name, text(&unit.function(*id).graph)));
            ours.eq(b
                .methods
                .iter()
                .map(|(name, id)| (*name, text(&self.graph(&other.function(*id).graph)))))
        };
        a.kind == b.kind
            && attributes(a) == attributes(&renamed)
            && constants(a) == constants(&renamed)
            && same_constants()
            && hooks(a) == hooks(&renamed)
            && same_code()
    }
}

/// Returns the functions that are methods of any class of `unit`.
pub(super) fn methods(unit: &CompilationUnit) -> HashSet<FunctionId> {
    unit.classes
        .values()
        .flat_map(|class| class.methods.values().copied())
        .collect()
}

fn text(graph: &Graph) -> String {
    frazil_syntax::print_graph(graph)
}
