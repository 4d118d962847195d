//! The emitter: compiles a function's statements to a graph in SSA form.
//!
//! Variables are stored in frames, one per block of the graph. An `if` has an output for every variable that both sides define. A loop carries every variable
//! that its body assigns and that is defined before it. Both are in the order of the names until [`cleanup`] orders them canonically. `return`, `break` and
//! `continue` are first emitted as nodes, which [`exits`] replaces by outputs of blocks.

mod assign;
mod assigned;
mod attribute;
pub(crate) mod builtins;
mod call;
mod cleanup;
mod comprehension;
mod control;
mod exits;
mod expr;
mod fork;
mod index;
mod iterate;
mod magic;
mod matching;
mod modified_loops;
mod operator;
mod special;
mod statement;
mod sugared;
mod traced;
pub(crate) mod upgrade;
mod with;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use frazil_ir::arguments::AssignmentError;
use frazil_ir::schema::FunctionSchema;
use frazil_ir::types::{TypeStyle, display_type, unify};
use frazil_ir::{
    BlockId, Builder, Constant, Graph, NodeId, SourceRange, SymbolId, TypeId, TypeKind, ValueId, symbols, types,
};
use ruff_python_ast::{Expr, StmtFunctionDef};
use ruff_text_size::Ranged;

pub(crate) use self::matching::unwrap_optional;

use self::matching::Matcher;
use self::sugared::Sugared;
use crate::error::{LoadError, Result, SourceError};
use crate::names::{Constants, Names};
use crate::source::parameters::{PythonParameter, assignment_message};
use crate::source::{MAX_DEPTH, SourceFile};

/// A local variable, as a frame stores it.
#[derive(Debug, Clone)]
pub(super) struct Variable<'f> {
    pub(super) value: Sugared<'f>,
    /// The annotated type of the variable, if there is one.
    declared: Option<TypeId>,
}

#[derive(Debug, Default)]
pub(super) struct Frame<'f> {
    pub(super) variables: HashMap<String, Variable<'f>>,
    /// Variables to which the sides of an `if` gave types without a common type, with the error message for their uses.
    unjoined: HashMap<String, String>,
    /// True after a `return` or `raise`: the statements that follow in the block are unreachable.
    exited: bool,
}

/// The state of an enclosing loop.
#[derive(Debug)]
pub(super) enum Loop<'f> {
    /// A `prim::Loop`: the carried variables, their initial values, and the loop's condition (or the constant in its place).
    Node {
        carried: Vec<(String, ValueId)>,
        test: Option<&'f Expr>,
        always: ValueId,
    },
    /// A loop that is unrolled: the body is emitted once per iteration.
    Unrolled,
}

/// A compiled condition: its value, and the types of variables that it implies.
pub(super) struct Condition {
    pub(super) value: ValueId,
    pub(super) when_true: Vec<(String, TypeId)>,
    pub(super) when_false: Vec<(String, TypeId)>,
    /// The value of the condition, if it follows from types alone.
    pub(super) known: Option<bool>,
}

impl Condition {
    /// Returns a condition that implies nothing about types.
    pub(super) fn plain(value: ValueId) -> Condition {
        Condition {
            value,
            when_true: Vec::new(),
            when_false: Vec::new(),
            known: None,
        }
    }
}

/// A number literal. Equal literals share a constant node at the start of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Literal {
    Int(i64),
    Float(u64),
}

pub(super) struct Emitter<'e, 'f> {
    pub(super) names: &'e mut dyn Names,
    pub(super) file: &'f SourceFile,
    pub(super) graph: Graph,
    pub(super) block: BlockId,
    pub(super) range: Option<SourceRange>,
    pub(super) frames: Vec<Frame<'f>>,
    /// List literals without elements, whose element type is determined where the list is used.
    pub(super) empty_lists: HashSet<ValueId>,
    /// Parameters without an annotation, whose type is `Tensor` by default.
    inferred: HashSet<ValueId>,
    /// Values that have been assigned to a variable. A value gets the name of the first variable to which it is assigned.
    pub(super) bound: HashSet<ValueId>,
    /// The name of the function that is compiled.
    function: String,
    /// The annotated return type of the function.
    returns: Option<TypeId>,
    /// The common type of the values returned so far.
    returned: Option<TypeId>,
    loops: Vec<Loop<'f>>,
    literals: HashMap<Literal, ValueId>,
    depth: usize,
}

/// Compiles a function, and returns its graph and return type.
pub(super) fn function(
    names: &mut dyn Names,
    file: &SourceFile,
    def: &StmtFunctionDef,
    schema: &FunctionSchema,
) -> Result<(Graph, TypeId)> {
    let mut emitter = Emitter::new(names, file, schema.returns.first().map(|result| result.ty));
    match emitter.names.definitions().traces.is_tracing {
        true => emitter.traced_inputs(def, schema)?,
        false => emitter.inputs(def, schema),
    }
    emitter.body(def)
}

/// The message of the exception that replaces the body of a function marked as unused or ignored.
const UNUSED: &str = "This Python function is annotated to be ignored and cannot be run";

/// Name of an attribute of the raising node that replaces a Python function. Its value is the function's name.
const PYTHON: &str = "python_function";

/// Returns the Python function that the raising node `node` replaces. Archives cannot contain calls of it.
pub(crate) fn python_function(graph: &Graph, node: NodeId) -> Option<SymbolId> {
    match graph.kind(node) {
        symbols::PRIM_RAISE_EXCEPTION => graph.attribute_symbol(node, graph.ctx().find_symbol(PYTHON)?),
        _ => None,
    }
}

/// Returns a graph that raises, for a function that is marked as unused or ignored. `is_called` says that PyTorch would
/// call Python instead.
pub(super) fn unused(
    names: &mut dyn Names,
    file: &SourceFile,
    def: &StmtFunctionDef,
    schema: &FunctionSchema,
    is_called: bool,
) -> Result<(Graph, TypeId)> {
    // Without an annotation such a function returns a tensor.
    let ty = schema.returns.first().map_or(types::TENSOR, |result| result.ty);
    let mut emitter = Emitter::new(names, file, Some(ty));
    emitter.inputs(def, schema);
    emitter.locate(def);
    let text = emitter.constant(Constant::str(UNUSED));
    let class = emitter.none();
    let raise = emitter.node("prim::RaiseException", &[text, class], &[]);
    if is_called {
        let ctx = Arc::clone(emitter.names.ctx());
        let (attribute, name) = (ctx.symbol(PYTHON), ctx.symbol(&def.name));
        emitter.graph.set_attribute_symbol(raise, attribute, name);
    }
    let result = emitter.uninitialized(ty);
    let root = emitter.graph.root();
    emitter.graph.add_result(root, result);
    cleanup::run(&mut emitter.graph, emitter.names);
    Ok((emitter.graph, ty))
}

impl<'e, 'f> Emitter<'e, 'f> {
    pub(super) fn new(names: &'e mut dyn Names, file: &'f SourceFile, returns: Option<TypeId>) -> Self {
        let graph = Graph::new(Arc::clone(names.ctx()));
        let block = graph.root();
        Emitter {
            names,
            file,
            graph,
            block,
            range: None,
            frames: vec![Frame::default()],
            empty_lists: HashSet::new(),
            inferred: HashSet::new(),
            bound: HashSet::new(),
            function: String::new(),
            returns,
            returned: None,
            loops: Vec::new(),
            literals: HashMap::new(),
            depth: 0,
        }
    }

    /// Adds an input to the graph for each parameter.
    fn inputs(&mut self, def: &StmtFunctionDef, schema: &FunctionSchema) {
        let parameters = def.parameters.iter_non_variadic_params();
        for (argument, parameter) in schema.arguments.iter().zip(parameters) {
            let value = self.graph.add_input(argument.ty);
            self.graph.name_value(value, &parameter.parameter.name);
            if argument.ty == types::TENSOR && parameter.parameter.annotation.is_none() {
                self.inferred.insert(value);
            }
            self.define(&parameter.parameter.name, value, None);
        }
    }

    /// Adds an input to the graph for each parameter that the call passes. Other parameters are constants: their defaults.
    fn traced_inputs(&mut self, def: &'f StmtFunctionDef, schema: &FunctionSchema) -> Result<()> {
        for parameter in PythonParameter::all(&def.parameters) {
            let name = parameter.name();
            let symbol = self.names.ctx().symbol(name);
            if let Some(argument) = schema.arguments.iter().find(|argument| argument.name == symbol) {
                let value = self.graph.add_input(argument.ty);
                self.graph.name_value(value, name);
                self.define(name, value, None);
                continue;
            }
            let Some(default) = parameter.default() else {
                let message = assignment_message(&def.name, AssignmentError::Missing, name);
                return self.error("call", message, &parameter);
            };
            let constant = self.names.python_default(self.file, default)?;
            self.locate(&parameter);
            let value = self.constant(constant);
            self.define(name, value, None);
        }
        Ok(())
    }

    /// Emits the body of `def` and finishes the graph.
    pub(super) fn body(mut self, def: &'f StmtFunctionDef) -> Result<(Graph, TypeId)> {
        self.function = def.name.to_string();
        self.suite(&def.body)?;
        if !self.frame().exited {
            if self.file.rules.is_written() && self.returns.is_some_and(|ty| ty != types::NONE) {
                let message = "Function was not annotated as having type None, but does not return along all paths";
                return self.error("return", message, &def.name);
            }
            self.locate(def);
            let none = self.none();
            self.leave_with(none, def)?;
        }
        let ty = self.returned.or(self.returns).unwrap_or(types::NONE);
        // The result stands at the `return`s until they are gone.
        let unset = self.uninitialized(ty);
        let root = self.graph.root();
        self.graph.add_result(root, unset);
        drop_reads(&mut self.graph);
        exits::run(&mut self.graph);
        modified_loops::run(&mut self.graph);
        cleanup::run(&mut self.graph, self.names);
        Ok((self.graph, ty))
    }

    pub(super) fn error<T>(&self, code: &'static str, message: impl Into<String>, node: &impl Ranged) -> Result<T> {
        Err(LoadError::Source(self.fault(code, message, node)))
    }

    pub(super) fn fault(&self, code: &'static str, message: impl Into<String>, node: &impl Ranged) -> Box<SourceError> {
        self.file.error(code, message, node)
    }

    /// Returns the text of `ty` for messages.
    pub(super) fn shown(&self, ty: TypeId) -> String {
        display_type(self.names.ctx(), ty, TypeStyle::Annotation).to_string()
    }

    /// Returns the text of the type of a value in messages, with a note if a parameter has no annotation.
    pub(super) fn shown_type_of(&self, value: ValueId) -> String {
        let remark = if self.inferred.contains(&value) {
            " (inferred)"
        } else {
            ""
        };
        self.shown(self.ty(value)) + remark
    }

    pub(super) fn ty(&self, value: ValueId) -> TypeId {
        self.graph.ty(value)
    }

    pub(super) fn kind_of(&self, value: ValueId) -> TypeKind {
        self.names.ctx().type_kind(self.graph.ty(value))
    }

    /// Returns the type with unrefined tensors: without dtypes and sizes.
    pub(super) fn unshaped(&self, ty: TypeId) -> TypeId {
        let ctx = self.names.ctx();
        match ctx.type_kind(ty) {
            TypeKind::Tensor(_) => types::TENSOR,
            TypeKind::Optional(inner) => ctx.optional_of(self.unshaped(inner)),
            TypeKind::List(inner) => ctx.list_of(self.unshaped(inner)),
            TypeKind::Tuple(items) => {
                let items: Vec<TypeId> = ctx.types(items).iter().map(|&item| self.unshaped(item)).collect();
                ctx.tuple_of(&items)
            }
            _ => ty,
        }
    }

    /// Returns the common type of `a` and `b`, if there is one.
    pub(super) fn join(&self, a: TypeId, b: TypeId) -> Option<TypeId> {
        // Interfaces are known to the program alone.
        if self.names.definitions().is_subtype(a, b) {
            return Some(b);
        }
        if self.names.definitions().is_subtype(b, a) {
            return Some(a);
        }
        unify(self.names.ctx(), a, b)
    }

    /// Sets the source range of the nodes that are emitted from now on.
    pub(super) fn locate(&mut self, node: &impl Ranged) {
        self.range = Some(self.file.range(self.names.ctx(), node.range()));
    }

    pub(super) fn builder(&mut self) -> Builder<'_> {
        let mut builder = Builder::at_end(&mut self.graph, self.block);
        builder.set_range(self.range);
        builder
    }

    pub(super) fn node(&mut self, kind: &str, operands: &[ValueId], outputs: &[TypeId]) -> NodeId {
        let kind = self.names.ctx().symbol(kind);
        self.builder().node(kind, operands, outputs)
    }

    pub(super) fn op(&mut self, kind: &str, operands: &[ValueId], output: TypeId) -> ValueId {
        let kind = self.names.ctx().symbol(kind);
        self.builder().op(kind, operands, output)
    }

    pub(super) fn constant(&mut self, value: Constant) -> ValueId {
        self.builder().constant(value)
    }

    pub(super) fn none(&mut self) -> ValueId {
        self.constant(Constant::None)
    }

    pub(super) fn uninitialized(&mut self, ty: TypeId) -> ValueId {
        self.op("prim::Uninitialized", &[], ty)
    }

    /// Returns the value of a number literal. All uses of equal literals share one constant.
    pub(super) fn literal(&mut self, value: Constant) -> ValueId {
        let key = match value {
            Constant::Int(i) => Literal::Int(i),
            Constant::Float(f) => Literal::Float(f.to_bits()),
            other => return self.constant(other),
        };
        if let Some(&known) = self.literals.get(&key) {
            return known;
        }
        let root = self.graph.root();
        let mut builder = match self.graph.first(root) {
            Some(first) => Builder::before(&mut self.graph, first),
            None => Builder::at_end(&mut self.graph, root),
        };
        builder.set_range(self.range);
        let value = builder.constant(value);
        self.literals.insert(key, value);
        value
    }

    /// Calls `work` one nesting level deeper. Fails if the maximum nesting is exceeded.
    pub(super) fn deeper<T>(&mut self, node: &impl Ranged, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH || self.names.definitions().stack.is_short() {
            let levels = self.depth;
            return self.error("nesting", format!("more than {levels} levels of nesting"), node);
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    pub(super) fn matcher(&self) -> Matcher<'_> {
        Matcher {
            definitions: self.names.definitions(),
            graph: &self.graph,
            empty_lists: &self.empty_lists,
        }
    }

    pub(super) fn frame(&mut self) -> &mut Frame<'f> {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Marks the code after the current position as unreachable.
    pub(super) fn mark_exited(&mut self) {
        self.frame().exited = true;
    }

    /// Returns the variable `name`, from the innermost frame that has it.
    pub(super) fn lookup(&self, name: &str) -> Option<&Variable<'f>> {
        self.frames.iter().rev().find_map(|frame| frame.variables.get(name))
    }

    /// Returns the error message for a use of `name`, if the sides of an `if` assigned values without a common type to it.
    pub(super) fn why_unjoined(&self, name: &str) -> Option<&String> {
        self.frames.iter().rev().find_map(|frame| frame.unjoined.get(name))
    }

    fn lookup_value(&self, name: &str) -> Option<ValueId> {
        match self.lookup(name)?.value {
            Sugared::Value(value) => Some(value),
            _ => None,
        }
    }

    fn variable_type(&self, variable: &Variable<'f>) -> Option<TypeId> {
        match (variable.declared, &variable.value) {
            (Some(declared), _) => Some(declared),
            (None, Sugared::Value(value)) => Some(self.unshaped(self.ty(*value))),
            _ => None,
        }
    }

    /// Names `value` after the variable `name` to which it will be assigned, unless it has already been assigned to another variable.
    pub(super) fn suggest_name(&mut self, value: ValueId, name: &str) {
        let is_fresh = self.graph.value_name(value).is_none() && !self.bound.contains(&value);
        if is_fresh && self.graph.defining_block(value) == Some(self.block) && is_meaningful(name) {
            self.graph.name_value(value, name);
        }
    }

    /// Sets a variable of the current frame, without checking types.
    pub(super) fn define(&mut self, name: &str, value: ValueId, declared: Option<TypeId>) {
        self.bound.insert(value);
        let variable = Variable {
            value: Sugared::Value(value),
            declared,
        };
        self.frame().variables.insert(name.to_owned(), variable);
    }

    /// Emits `name = value`. A variable of an enclosing frame keeps its type.
    pub(super) fn assign(
        &mut self,
        name: &str,
        value: Sugared<'f>,
        declared: Option<TypeId>,
        node: &impl Ranged,
    ) -> Result<()> {
        let Sugared::Value(mut id) = value else {
            self.frame()
                .variables
                .insert(name.to_owned(), Variable { value, declared: None });
            return Ok(());
        };
        let outer = self
            .frames
            .iter()
            .rev()
            .skip(1)
            .find_map(|frame| frame.variables.get(name));
        let outer = outer.map(|variable| self.variable_type(variable));
        let wanted = match outer {
            Some(None) => {
                let message = format!(
                    "Cannot re-assign '{name}' because it is not a first-class value. Only reassignments to first-class values are allowed"
                );
                return self.error("reassign", message, node);
            }
            Some(Some(_)) if declared.is_some() && self.file.rules.is_written() => {
                let message = format!(
                    "Attempting to declare and annotate the type of variable '{name}' that is already defined in an outer block"
                );
                return self.error("reassign", message, node);
            }
            Some(Some(ty)) => Some(ty),
            None => declared,
        };
        if let Some(wanted) = wanted {
            if outer.is_some() || !self.file.rules.is_written() {
                id = self.convert(id, wanted, node);
            }
            if !self.names.definitions().is_subtype(self.ty(id), wanted) {
                let how = if outer.is_some() {
                    ["previously had type", "is now being assigned to"]
                } else {
                    ["is annotated with type", "is being assigned to"]
                };
                let message = format!(
                    "Variable '{name}' {} {} but {} a value of type {}",
                    how[0],
                    self.shown(wanted),
                    how[1],
                    self.shown_type_of(id)
                );
                return self.error("type", message, node);
            }
        }
        if self.file.rules.is_written() {
            // Only a literal that nothing is assigned to takes the type of where it is passed.
            self.empty_lists.remove(&id);
        }
        self.suggest_name(id, name);
        if let Some(declared) = declared.filter(|&ty| self.file.rules.is_written() && ty != self.ty(id)) {
            // Reads of the variable have the declared type.
            self.bound.insert(id);
            id = self.read_as(id, declared);
        }
        self.define(name, id, wanted.filter(|_| declared.is_some()));
        Ok(())
    }

    /// Emits a temporary node that gives `value` the type `ty`, the declared type of a variable; see [`READ`].
    pub(super) fn read_as(&mut self, value: ValueId, ty: TypeId) -> ValueId {
        self.op(READ, &[value], ty)
    }

    /// Returns the value that was assigned to a variable, which has its own type and not the variable's declared type.
    pub(super) fn held(&self, value: ValueId) -> ValueId {
        let node = self.graph.defining_node(value);
        match node.filter(|&node| self.graph.kind_name(node) == READ) {
            Some(node) => self.graph.operand(node, 0).unwrap_or(value),
            None => value,
        }
    }

    /// Converts `value` to the type `wanted`, if an implicit conversion exists.
    pub(super) fn convert(&mut self, value: ValueId, wanted: TypeId, node: &impl Ranged) -> ValueId {
        let open = self.empty_lists.contains(&value);
        let (conversion, _) = self.matcher().convert(self.ty(value), open, wanted, true);
        self.locate(node);
        self.apply(value, &conversion)
    }
}

/// Kind of the temporary node that gives the value of a variable its declared type, during emission.
const READ: &str = "prim::Load";

fn drop_reads(graph: &mut Graph) {
    let kind = graph.ctx().symbol(READ);
    for node in graph.all_nodes() {
        if graph.kind(node) == kind
            && let (Some(value), Some(read)) = (graph.operand(node, 0), graph.output(node))
        {
            graph.replace_all_uses_with(read, value);
            graph.erase(node);
        }
    }
}

/// Returns whether a name is written by a programmer. The printer's temporaries are an underscore and a number.
pub(super) fn is_meaningful(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('%')
        && !name
            .strip_prefix('_')
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Sets the attribute `name` of `node` to the string `name`, for nodes such as `prim::GetAttr`.
pub(super) fn name_attribute(graph: &mut Graph, node: NodeId, name: SymbolId) {
    graph.set_attribute_symbol(node, symbols::ATTR_NAME, name);
}
