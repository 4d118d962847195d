//! Types of nodes that are not described by schemas: containers, forks, and members of classes.

use super::{Failure, Verifier, VerifyError};
use crate::names::Names;
use crate::schema::{Argument, FunctionSchema};
use crate::types::is_subtype;
use crate::{
    AttributeValue, CompilationUnit, Constant, Context, Graph, NodeId, TypeId, TypeKind, ValueId, symbols, types,
};
use std::cell::OnceCell;

/// Returns whether a value of type `actual` may be used where `declared` is expected. Tensor types may be more or less precise on either side, also inside
/// other types, because passes refine shapes one value at a time.
fn agrees(ctx: &Context, actual: TypeId, declared: TypeId) -> bool {
    if is_subtype(ctx, actual, declared) {
        return true;
    }
    let all = |a: &[TypeId], b: &[TypeId]| a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| agrees(ctx, a, b));
    match (ctx.type_kind(actual), ctx.type_kind(declared)) {
        (TypeKind::Tensor(_), TypeKind::Tensor(_)) => true,
        (TypeKind::List(a), TypeKind::List(b))
        | (TypeKind::Optional(a), TypeKind::Optional(b))
        | (TypeKind::Future(a), TypeKind::Future(b))
        | (TypeKind::Await(a), TypeKind::Await(b)) => has_tensors(ctx, a) && agrees(ctx, a, b),
        (_, TypeKind::Optional(b)) => has_tensors(ctx, b) && agrees(ctx, actual, b),
        (TypeKind::Dict(k, a), TypeKind::Dict(l, b)) => k == l && has_tensors(ctx, a) && agrees(ctx, a, b),
        (TypeKind::Tuple(a) | TypeKind::NamedTuple(_, _, a), TypeKind::Tuple(b)) => all(ctx.types(a), ctx.types(b)),
        (TypeKind::NamedTuple(x, _, a), TypeKind::NamedTuple(y, _, b)) => x == y && all(ctx.types(a), ctx.types(b)),
        // Only the unit knows which classes implement an interface.
        (TypeKind::Class(_) | TypeKind::Interface(_), TypeKind::Interface(_)) => true,
        _ => false,
    }
}

fn has_tensors(ctx: &Context, ty: TypeId) -> bool {
    match ctx.type_kind(ty) {
        TypeKind::Tensor(_) => true,
        TypeKind::List(e) | TypeKind::Optional(e) | TypeKind::Dict(_, e) | TypeKind::Future(e) | TypeKind::Await(e) => {
            has_tensors(ctx, e)
        }
        TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements) => {
            ctx.types(elements).iter().any(|&e| has_tensors(ctx, e))
        }
        _ => false,
    }
}

/// Returns the types of the elements of a tuple.
fn elements(ctx: &Context, ty: TypeId) -> Option<&[TypeId]> {
    match ctx.type_kind(ty) {
        TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements) => Some(ctx.types(elements)),
        _ => None,
    }
}

impl Verifier<'_> {
    /// Checks `node` if it builds or unpacks a container, or starts another graph. Other nodes have schemas.
    pub(super) fn structural(&mut self, node: NodeId) {
        match self.graph.kind(node) {
            symbols::PRIM_LIST_CONSTRUCT => self.list(node),
            symbols::PRIM_DICT_CONSTRUCT => self.dictionary(node),
            symbols::PRIM_TUPLE_CONSTRUCT => self.tuple(node),
            symbols::PRIM_TUPLE_UNPACK => self.unpacked_tuple(node),
            symbols::PRIM_TUPLE_INDEX => self.tuple_item(node),
            symbols::PRIM_LIST_UNPACK => self.unpacked_list(node),
            symbols::PRIM_FORK => self.fork(node),
            _ => {}
        }
    }

    fn agrees(&self, actual: TypeId, declared: TypeId) -> bool {
        agrees(self.graph.ctx(), actual, declared)
    }

    /// Returns the type of the node's only output, or records an error.
    fn output_type(&mut self, node: NodeId) -> Option<TypeId> {
        let g = self.graph;
        match g.node_outputs(node) {
            [one] => Some(g.ty(*one)),
            other => {
                self.fail(node, format!("has {} outputs instead of 1", other.len()));
                None
            }
        }
    }

    /// Checks that operand `i`, `value`, is of type `wanted`.
    fn element(&mut self, node: NodeId, i: usize, value: ValueId, wanted: TypeId) {
        let g = self.graph;
        if !self.agrees(g.ty(value), wanted) {
            let (is, want) = (g.ctx().show_type(g.ty(value)), g.ctx().show_type(wanted));
            self.fail(
                node,
                format!("operand {i} is {is} where the declared type takes {want}"),
            );
        }
    }

    /// Checks that the type of output `i` accepts a value of type `given`.
    fn part(&mut self, node: NodeId, i: usize, given: TypeId) {
        let g = self.graph;
        let Some(&output) = g.node_outputs(node).get(i) else {
            return;
        };
        if !self.agrees(given, g.ty(output)) {
            let (is, gives) = (g.ctx().show_type(g.ty(output)), g.ctx().show_type(given));
            self.fail(
                node,
                format!("output {i} is declared {is}, but the operand holds {gives}"),
            );
        }
    }

    fn list(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(ty) = self.output_type(node) else { return };
        let TypeKind::List(element) = g.ctx().type_kind(ty) else {
            return self.fail(node, format!("gives a list, not {}", g.ctx().show_type(ty)));
        };
        for (i, value) in g.operands(node).enumerate() {
            self.element(node, i, value, element);
        }
    }

    fn dictionary(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(ty) = self.output_type(node) else { return };
        let TypeKind::Dict(key, item) = g.ctx().type_kind(ty) else {
            return self.fail(node, format!("gives a dictionary, not {}", g.ctx().show_type(ty)));
        };
        if !g.operand_count(node).is_multiple_of(2) {
            self.fail(node, "takes a value for each key");
        }
        for (i, value) in g.operands(node).enumerate() {
            self.element(node, i, value, if i % 2 == 0 { key } else { item });
        }
    }

    fn tuple(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(ty) = self.output_type(node) else { return };
        let Some(elements) = elements(g.ctx(), ty) else {
            return self.fail(node, format!("gives a tuple, not {}", g.ctx().show_type(ty)));
        };
        let count = g.operand_count(node);
        if elements.len() != count {
            let message = format!("has {count} operands for a tuple of {}", elements.len());
            return self.fail(node, message);
        }
        for (i, (value, &element)) in g.operands(node).zip(elements).enumerate() {
            self.element(node, i, value, element);
        }
    }

    /// Returns the element types of the first operand, which has to be a tuple.
    fn tuple_operand(&mut self, node: NodeId) -> Option<&[TypeId]> {
        let g = self.graph;
        let ty = g.operand(node, 0).map(|tuple| g.ty(tuple));
        let found = ty.and_then(|ty| elements(g.ctx(), ty));
        if found.is_none() {
            self.fail(node, "takes a tuple");
        }
        found
    }

    fn unpacked_tuple(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(elements) = self.tuple_operand(node).map(<[TypeId]>::to_vec) else {
            return;
        };
        let outputs = g.node_outputs(node).len();
        if outputs != elements.len() {
            let message = format!("has {outputs} outputs for a tuple of {}", elements.len());
            return self.fail(node, message);
        }
        for (i, &element) in elements.iter().enumerate() {
            self.part(node, i, element);
        }
    }

    fn tuple_item(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(elements) = self.tuple_operand(node).map(<[TypeId]>::to_vec) else {
            return;
        };
        let Some(index) = g.operand(node, 1).filter(|&index| g.ty(index) == types::INT) else {
            return self.fail(node, "takes an index of type int");
        };
        if self.output_type(node).is_none() {
            return;
        }
        let Some(Constant::Int(at)) = g.constant(index) else {
            return;
        };
        let count = elements.len() as i64;
        let element = usize::try_from(if at < 0 { at.saturating_add(count) } else { at });
        // An index out of range raises when the node runs; passes may make it a constant.
        if let Some(&element) = element.ok().and_then(|at| elements.get(at)) {
            self.part(node, 0, element);
        }
    }

    fn unpacked_list(&mut self, node: NodeId) {
        let g = self.graph;
        let list = g.operand(node, 0).map(|list| g.ctx().type_kind(g.ty(list)));
        let Some(TypeKind::List(element)) = list else {
            return self.fail(node, "takes a list");
        };
        for i in 0..g.node_outputs(node).len() {
            self.part(node, i, element);
        }
    }

    /// Checks `%f : Future(T) = prim::fork(...)`, which runs its graph on its operands.
    fn fork(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(AttributeValue::Graph(body)) = g.attribute(node, symbols::ATTR_SUBGRAPH) else {
            return;
        };
        let (inputs, operands) = (body.inputs(), g.operand_count(node));
        if inputs.len() != operands {
            let message = format!("has {operands} operands for a graph of {} inputs", inputs.len());
            return self.fail(node, message);
        }
        for (i, (value, &input)) in g.operands(node).zip(inputs).enumerate() {
            self.element(node, i, value, body.ty(input));
        }
        let Some(ty) = self.output_type(node) else { return };
        let TypeKind::Future(held) = g.ctx().type_kind(ty) else {
            return self.fail(node, format!("gives a Future, not {}", g.ctx().show_type(ty)));
        };
        let results: Vec<TypeId> = body.results(body.root()).map(|result| body.ty(result)).collect();
        let given = match results.as_slice() {
            [one] => *one,
            many => g.ctx().tuple_of(many),
        };
        if !self.agrees(given, held) {
            let (is, gives) = (g.ctx().show_type(ty), g.ctx().show_type(given));
            self.fail(node, format!("output 0 is declared {is}, but its graph gives {gives}"));
        }
    }
}

impl Graph {
    /// Checks the nodes that refer to attributes, methods and functions against those of `unit`. Subgraphs are not checked. Classes and functions that are not
    /// in the unit are ignored, because C++ code may register them.
    ///
    /// # Errors
    /// All failures.
    pub fn verify_members(&self, unit: &CompilationUnit) -> Result<(), VerifyError> {
        let mut members = Members {
            graph: self,
            unit,
            failures: Vec::new(),
            names: OnceCell::new(),
        };
        for node in self.all_nodes() {
            match self.kind(node) {
                symbols::PRIM_GET_ATTR | symbols::PRIM_SET_ATTR => members.attribute(node),
                symbols::PRIM_CALL_METHOD => members.method(node),
                symbols::PRIM_CALL_FUNCTION => members.function(node),
                _ => {}
            }
        }
        match members.failures {
            failures if failures.is_empty() => Ok(()),
            failures => Err(VerifyError { failures }),
        }
    }
}

struct Members<'a> {
    graph: &'a Graph,
    unit: &'a CompilationUnit,
    failures: Vec<Failure>,
    names: OnceCell<Names<'a>>,
}

impl Members<'_> {
    fn fail(&mut self, node: NodeId, message: String) {
        let names = self.names.get_or_init(|| Names::new(self.graph));
        let failure = Failure::at(self.graph, names, node, message);
        self.failures.push(failure);
    }

    fn show(&self, ty: TypeId) -> String {
        self.graph.ctx().show_type(ty).to_string()
    }

    fn attribute(&mut self, node: NodeId) {
        let (g, ctx) = (self.graph, self.graph.ctx());
        let (Some(object), Some(name)) = (g.operand(node, 0), g.attribute_symbol(node, symbols::ATTR_NAME)) else {
            return self.fail(node, "takes an object and names an attribute of it".to_owned());
        };
        let TypeKind::Class(class) = ctx.type_kind(g.ty(object)) else {
            return;
        };
        let Some(definition) = self.unit.class(class) else {
            return;
        };
        let Some(attribute) = definition.attributes.get(&name) else {
            let message = format!("class {} has no attribute `{}`", ctx.name(class), ctx.name(name));
            return self.fail(node, message);
        };
        let fits = match (g.kind(node), g.output(node), g.operand(node, 1)) {
            (symbols::PRIM_GET_ATTR, Some(output), None) => agrees(ctx, attribute.ty, g.ty(output)),
            (symbols::PRIM_SET_ATTR, None, Some(value)) => agrees(ctx, g.ty(value), attribute.ty),
            _ => return self.fail(node, "has other operands or outputs than it takes".to_owned()),
        };
        if !fits {
            let is = g
                .output(node)
                .or(g.operand(node, 1))
                .map_or(String::new(), |value| self.show(g.ty(value)));
            let message = format!(
                "attribute `{}` is {}, not {is}",
                ctx.name(name),
                self.show(attribute.ty)
            );
            self.fail(node, message);
        }
    }

    fn method(&mut self, node: NodeId) {
        let (g, ctx) = (self.graph, self.graph.ctx());
        let (Some(object), Some(name)) = (g.operand(node, 0), g.attribute_symbol(node, symbols::ATTR_NAME)) else {
            return self.fail(node, "takes an object and names a method of it".to_owned());
        };
        let (TypeKind::Class(class) | TypeKind::Interface(class)) = ctx.type_kind(g.ty(object)) else {
            return self.fail(node, format!("takes an object, not {}", self.show(g.ty(object))));
        };
        let Some(definition) = self.unit.class(class) else {
            return;
        };
        let method = self.unit.method(class, name).map(|id| &self.unit.function(id).schema);
        match method.or_else(|| definition.signatures.get(&name)) {
            Some(schema) => self.call(node, schema, 0),
            None => {
                let message = format!("class {} has no method `{}`", ctx.name(class), ctx.name(name));
                self.fail(node, message);
            }
        }
    }

    fn function(&mut self, node: NodeId) {
        let g = self.graph;
        let callee = g.operand(node, 0).and_then(|callee| g.constant(callee));
        let Some(Constant::Function(name)) = callee else { return };
        if let Some(id) = self.unit.find_function(name) {
            self.call(node, &self.unit.function(id).schema, 1);
        }
    }

    /// Checks the operands of `node` from `first` on as the arguments of `schema`.
    fn call(&mut self, node: NodeId, schema: &FunctionSchema, first: usize) {
        let (g, ctx) = (self.graph, self.graph.ctx());
        let name = ctx.name(schema.name);
        let given = g.operand_count(node) - first;
        if given != schema.arguments.len() {
            let message = format!(
                "gives {given} arguments to `{name}`, which takes {}",
                schema.arguments.len()
            );
            return self.fail(node, message);
        }
        for (Argument { name: argument, ty, .. }, value) in schema.arguments.iter().zip(g.operands(node).skip(first)) {
            if !agrees(ctx, g.ty(value), *ty) {
                let (is, want) = (self.show(g.ty(value)), self.show(*ty));
                let argument = ctx.name(*argument);
                self.fail(node, format!("argument `{argument}` of `{name}` is {want}, not {is}"));
            }
        }
        let (Some(output), [returned]) = (g.output(node), schema.returns.as_slice()) else {
            return;
        };
        if !agrees(ctx, returned.ty, g.ty(output)) {
            let (is, gives) = (self.show(g.ty(output)), self.show(returned.ty));
            self.fail(node, format!("output 0 is declared {is}, but `{name}` gives {gives}"));
        }
    }
}
