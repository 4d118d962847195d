//! The emitter: a function's statements become a graph in SSA form.
//!
//! Variables live in frames, one for each block of the graph. An `if` gives an output for every variable that both sides define, a loop carries
//! every variable that its body assigns and that exists before it; both in the order of the names, until
//! [`cleanup`](super::cleanup) puts them into canonical order. A `return` at the end of all paths becomes a result of the enclosing `if`s; one
//! that leaves a loop, and `break` and `continue`, set flags that guard the statements after them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use frazil_ir::schema::FunctionSchema;
use frazil_ir::types::unify;
use frazil_ir::{
    BlockId, Builder, Constant, Graph, NodeId, SourceRangeId, SymbolId, TypeId, TypeKind, ValueId, symbols, types,
};
use ruff_python_ast::{ElifElseClause, Expr, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::cleanup;
use super::matching::Matcher;
use super::program::Program;
use super::source::{MAX_DEPTH, SourceError, SourceFile};
use super::sugared::{Iterable, Sugared};
use super::{LoadError, Result};

/// A variable of a frame.
#[derive(Debug, Clone)]
pub(super) struct Variable<'f> {
    pub(super) value: Sugared<'f>,
    /// The type that an annotation gave it, if any.
    declared: Option<TypeId>,
}

#[derive(Debug, Default)]
pub(super) struct Frame<'f> {
    pub(super) variables: HashMap<String, Variable<'f>>,
    /// Variables that the sides of an `if` gave types that cannot be joined, with the message for whoever uses them.
    unjoined: HashMap<String, String>,
    /// True once a statement has raised: nothing after it is reached.
    raised: bool,
}

/// A statement, or what is left of an `if` after its first condition.
#[derive(Debug, Clone, Copy)]
enum Item<'f> {
    Statement(&'f Stmt),
    Clauses(&'f [ElifElseClause]),
}

/// Variables that cannot be written in Python hold the state of exits.
const RETURNED: &str = "%returned";
const RESULT: &str = "%result";
const BROKE: &str = "%broke";
const LEFT: &str = "%left";

/// What a condition says besides its value.
pub(super) struct Condition {
    pub(super) value: ValueId,
    pub(super) when_true: Vec<(String, TypeId)>,
    pub(super) when_false: Vec<(String, TypeId)>,
    /// The outcome, where types alone decide it.
    pub(super) known: Option<bool>,
}

/// A number literal; all uses of one share a constant at the graph's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Literal {
    Int(i64),
    Float(u64),
}

pub(super) struct Emitter<'e, 'p, 'f> {
    pub(super) program: &'e mut Program<'p>,
    pub(super) file: &'f SourceFile,
    pub(super) graph: Graph,
    pub(super) block: BlockId,
    pub(super) range: Option<SourceRangeId>,
    pub(super) frames: Vec<Frame<'f>>,
    /// List literals without elements, whose type the place of use decides.
    pub(super) empty_lists: HashSet<ValueId>,
    /// What the function says that it returns.
    returns: Option<TypeId>,
    literals: HashMap<Literal, ValueId>,
    depth: usize,
}

/// Compiles a function. Gives its graph and the type of what it returns.
pub(super) fn function(
    program: &mut Program<'_>,
    file: &SourceFile,
    def: &StmtFunctionDef,
    schema: &FunctionSchema,
) -> Result<(Graph, TypeId)> {
    let returns = schema.returns.first().map(|result| result.ty);
    let mut emitter = Emitter::new(program, file, returns);
    let parameters = def.parameters.iter_non_variadic_params();
    for (argument, parameter) in schema.arguments.iter().zip(parameters) {
        let value = emitter.graph.add_input(argument.ty);
        emitter.graph.name_value(value, &parameter.parameter.name);
        emitter.define(&parameter.parameter.name, value, None);
    }
    emitter.body(def)
}

impl<'e, 'p, 'f> Emitter<'e, 'p, 'f> {
    pub(super) fn new(program: &'e mut Program<'p>, file: &'f SourceFile, returns: Option<TypeId>) -> Self {
        let graph = Graph::new(Arc::clone(&program.ctx));
        let block = graph.root();
        Emitter {
            program,
            file,
            graph,
            block,
            range: None,
            frames: vec![Frame::default()],
            empty_lists: HashSet::new(),
            returns,
            literals: HashMap::new(),
            depth: 0,
        }
    }

    /// Emits the body of `def` and finishes the graph.
    pub(super) fn body(mut self, def: &'f StmtFunctionDef) -> Result<(Graph, TypeId)> {
        let items: Vec<Item<'f>> = def.body.iter().map(Item::Statement).collect();
        let returned = if needs_flags(&items) {
            self.body_with_flags(def, &items)?
        } else {
            self.tail(&items)?
        };
        let result = match returned {
            Some(value) => value,
            None if self.frame().raised && self.returns.is_some_and(|ty| ty != types::NONE) => {
                self.uninitialized(self.returns.unwrap_or(types::NONE))
            }
            None => self.none(),
        };
        let result = self.returned(result, def)?;
        let ty = self.returns.unwrap_or_else(|| self.unshaped(self.graph.ty(result)));
        let root = self.graph.root();
        self.graph.add_result(root, result);
        cleanup::run(&mut self.graph, self.program.catalogue);
        Ok((self.graph, ty))
    }

    // --- errors and small helpers

    pub(super) fn error<T>(&self, code: &'static str, message: impl Into<String>, node: &impl Ranged) -> Result<T> {
        Err(LoadError::Source(self.fault(code, message, node)))
    }

    pub(super) fn fault(&self, code: &'static str, message: impl Into<String>, node: &impl Ranged) -> Box<SourceError> {
        self.file.error(code, message, node)
    }

    /// How a type reads in messages.
    pub(super) fn shown(&self, ty: TypeId) -> String {
        self.program.ctx.show_type(ty).to_string()
    }

    pub(super) fn ty(&self, value: ValueId) -> TypeId {
        self.graph.ty(value)
    }

    pub(super) fn kind_of(&self, value: ValueId) -> TypeKind {
        self.program.ctx.type_kind(self.graph.ty(value))
    }

    /// The type without what is known of a tensor's shape.
    pub(super) fn unshaped(&self, ty: TypeId) -> TypeId {
        let ctx = &self.program.ctx;
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

    /// The join of two types, if there is one.
    pub(super) fn join(&self, a: TypeId, b: TypeId) -> Option<TypeId> {
        if self.program.is_subtype(a, b) {
            return Some(b);
        }
        if self.program.is_subtype(b, a) {
            return Some(a);
        }
        unify(&self.program.ctx, a, b)
    }

    /// Nodes that follow come from `node`.
    pub(super) fn locate(&mut self, node: &impl Ranged) {
        self.range = Some(self.file.range(&self.program.ctx, node.range()));
    }

    pub(super) fn builder(&mut self) -> Builder<'_> {
        let mut builder = Builder::at_end(&mut self.graph, self.block);
        builder.set_range(self.range);
        builder
    }

    pub(super) fn node(&mut self, kind: &str, operands: &[ValueId], outputs: &[TypeId]) -> NodeId {
        let kind = self.program.ctx.symbol(kind);
        self.builder().node(kind, operands, outputs)
    }

    pub(super) fn op(&mut self, kind: &str, operands: &[ValueId], output: TypeId) -> ValueId {
        let kind = self.program.ctx.symbol(kind);
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

    /// A number literal, shared by all its uses.
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
        let value = match self.graph.first(root) {
            Some(first) => {
                let mut builder = Builder::before(&mut self.graph, first);
                builder.set_range(self.range);
                builder.constant(value)
            }
            None => Builder::at_end(&mut self.graph, root).constant(value),
        };
        self.literals.insert(key, value);
        value
    }

    /// One level of nesting deeper, if that is allowed.
    pub(super) fn deeper<T>(&mut self, node: &impl Ranged, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return self.error("nesting", format!("more than {MAX_DEPTH} levels of nesting"), node);
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    pub(super) fn matcher(&self) -> Matcher<'_, 'p> {
        Matcher {
            program: self.program,
            graph: &self.graph,
            empty_lists: &self.empty_lists,
        }
    }

    // --- variables

    pub(super) fn frame(&mut self) -> &mut Frame<'f> {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Nothing after this is reached.
    pub(super) fn mark_raised(&mut self) {
        self.frame().raised = true;
    }

    /// The variable `name`, from the innermost frame that has it.
    pub(super) fn lookup(&self, name: &str) -> Option<&Variable<'f>> {
        self.frames.iter().rev().find_map(|frame| frame.variables.get(name))
    }

    /// Why `name` is no variable here although an `if` assigned it, if that is so.
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

    /// Sets a variable of the current frame without checks.
    pub(super) fn define(&mut self, name: &str, value: ValueId, declared: Option<TypeId>) {
        let variable = Variable {
            value: Sugared::Value(value),
            declared,
        };
        self.frame().variables.insert(name.to_owned(), variable);
    }

    /// `name = value`, with the type that the variable has where it was defined further out.
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
                return self.error(
                    "reassign",
                    format!("`{name}` is no first-class value and cannot be reassigned"),
                    node,
                );
            }
            Some(Some(ty)) => Some(ty),
            None => declared,
        };
        if let Some(wanted) = wanted {
            id = self.convert(id, wanted, node);
            if !self.program.is_subtype(self.ty(id), wanted) {
                let message = format!(
                    "variable `{name}` has type `{}` but is now assigned a `{}`",
                    self.shown(wanted),
                    self.shown(self.ty(id))
                );
                return self.error("type", message, node);
            }
        }
        if self.graph.value_name(id).is_none()
            && self.graph.defining_block(id) == Some(self.block)
            && is_meaningful(name)
        {
            self.graph.name_value(id, name);
        }
        self.define(name, id, wanted.filter(|_| declared.is_some()));
        Ok(())
    }

    /// `value` as a `wanted`, as far as implicit conversions go.
    pub(super) fn convert(&mut self, value: ValueId, wanted: TypeId, node: &impl Ranged) -> ValueId {
        let open = self.empty_lists.contains(&value);
        let (conversion, _) = self.matcher().convert(self.ty(value), open, wanted, true);
        self.locate(node);
        self.apply(value, &conversion)
    }

    // --- statements

    /// Emits statements that all paths of leave by a return at their end, if they return at all. Gives what is returned.
    fn tail(&mut self, items: &[Item<'f>]) -> Result<Option<ValueId>> {
        for (index, item) in items.iter().enumerate() {
            let rest = items.get(index + 1..).unwrap_or_default();
            match item {
                Item::Statement(Stmt::Return(statement)) => {
                    let value = match &statement.value {
                        Some(value) => self.expr(value, self.returns)?,
                        None => self.none(),
                    };
                    return self.returned(value, statement).map(Some);
                }
                Item::Statement(Stmt::If(statement)) if contains_return(&[*item]) => {
                    let body: Vec<Item<'f>> = statement.body.iter().map(Item::Statement).collect();
                    return self.tail_if(&statement.test, body, &statement.elif_else_clauses, rest);
                }
                Item::Clauses(clauses) if contains_return(&[*item]) => match clauses {
                    [] => {}
                    [clause, others @ ..] => {
                        let body: Vec<Item<'f>> = clause.body.iter().map(Item::Statement).collect();
                        match &clause.test {
                            Some(test) => return self.tail_if(test, body, others, rest),
                            None => return self.tail(&[body.as_slice(), rest].concat()),
                        }
                    }
                },
                _ => self.item(*item)?,
            }
        }
        Ok(None)
    }

    /// An `if` of which a side returns: what follows it belongs to the other side.
    fn tail_if(
        &mut self,
        test: &'f Expr,
        body: Vec<Item<'f>>,
        clauses: &'f [ElifElseClause],
        rest: &[Item<'f>],
    ) -> Result<Option<ValueId>> {
        let mut body = body;
        let mut orelse = vec![Item::Clauses(clauses)];
        if !always_leaves(&body) {
            body.extend_from_slice(rest);
        }
        if !always_leaves(&orelse) {
            orelse.extend_from_slice(rest);
        }
        self.deeper(test, |this| {
            let condition = this.condition(test)?;
            if let Some(known) = condition.known {
                this.refine(if known {
                    &condition.when_true
                } else {
                    &condition.when_false
                });
                return this.tail(if known { &body } else { &orelse });
            }
            this.locate(test);
            let node = this.node("prim::If", &[condition.value], &[]);
            let outer = this.block;
            let mut sides = Vec::with_capacity(2);
            for (items, refinements) in [(&body, &condition.when_true), (&orelse, &condition.when_false)] {
                this.block = this.graph.add_block(node);
                this.frames.push(Frame::default());
                this.refine(refinements);
                let returned = this.tail(items)?;
                let raised = this.frame().raised;
                let returned = match returned {
                    None if !raised => Some(this.none()),
                    returned => returned,
                };
                this.frames.pop();
                sides.push((this.block, returned));
            }
            let returned: Vec<TypeId> = sides
                .iter()
                .filter_map(|(_, value)| value.map(|v| this.ty(v)))
                .collect();
            let ty = match (this.returns, returned.as_slice()) {
                (Some(declared), [_, ..]) => declared,
                (None, &[a, b]) => match this.join(this.unshaped(a), this.unshaped(b)) {
                    Some(ty) => ty,
                    None => {
                        let message = format!("one side returns `{}`, the other `{}`", this.shown(a), this.shown(b));
                        return this.error("type", message, test);
                    }
                },
                (None, &[a]) => this.unshaped(a),
                _ => {
                    this.block = outer;
                    this.frame().raised = true;
                    return Ok(None);
                }
            };
            for (block, value) in sides {
                this.block = block;
                let value = match value {
                    Some(value) => value,
                    None => this.uninitialized(ty),
                };
                this.graph.add_result(block, value);
            }
            this.block = outer;
            Ok(Some(this.graph.add_output(node, ty)))
        })
    }

    /// Converts what is returned to the declared type.
    fn returned(&mut self, value: ValueId, node: &impl Ranged) -> Result<ValueId> {
        let Some(wanted) = self.returns else { return Ok(value) };
        let value = self.convert(value, wanted, node);
        if !self.program.is_subtype(self.ty(value), wanted) {
            let message = format!(
                "the function returns `{}`, this is `{}`",
                self.shown(wanted),
                self.shown(self.ty(value))
            );
            return self.error("type", message, node);
        }
        Ok(value)
    }

    /// A function with returns in loops, or on some paths only: flags say whether and what was returned.
    fn body_with_flags(&mut self, def: &'f StmtFunctionDef, items: &[Item<'f>]) -> Result<Option<ValueId>> {
        let Some(ty) = self.returns else {
            let message = "a function that returns from within a loop must be annotated with the type that it returns";
            return self.error("signature", message, &def.name);
        };
        self.locate(def);
        let no = self.constant(Constant::Bool(false));
        let nothing = if ty == types::NONE {
            self.none()
        } else {
            self.uninitialized(ty)
        };
        self.define(RETURNED, no, None);
        self.define(LEFT, no, None);
        self.define(RESULT, nothing, Some(ty));
        self.items(items)?;
        Ok(self.lookup_value(RESULT))
    }

    /// Emits statements; those behind one that may leave run only when it did not.
    fn items(&mut self, items: &[Item<'f>]) -> Result<()> {
        for (index, item) in items.iter().enumerate() {
            self.item(*item)?;
            let rest = items.get(index + 1..).unwrap_or_default();
            if !may_leave(&[*item]) || rest.is_empty() {
                continue;
            }
            if always_leaves(&[*item]) {
                return Ok(());
            }
            let Some(left) = self.lookup_value(LEFT) else { continue };
            let condition = Condition {
                value: left,
                when_true: Vec::new(),
                when_false: Vec::new(),
                known: None,
            };
            return self.branches(condition, |_| Ok(()), |this| this.items(rest), item_range(rest));
        }
        Ok(())
    }

    fn item(&mut self, item: Item<'f>) -> Result<()> {
        match item {
            Item::Statement(statement) => self.deeper(statement, |this| this.statement(statement)),
            Item::Clauses([]) => Ok(()),
            Item::Clauses([clause, others @ ..]) => self.deeper(clause, |this| match &clause.test {
                Some(test) => this.if_statement(test, &clause.body, others),
                None => this.suite(&clause.body),
            }),
        }
    }

    pub(super) fn suite(&mut self, body: &'f [Stmt]) -> Result<()> {
        let items: Vec<Item<'f>> = body.iter().map(Item::Statement).collect();
        self.items(&items)
    }

    fn statement(&mut self, statement: &'f Stmt) -> Result<()> {
        match statement {
            Stmt::Pass(_) => Ok(()),
            Stmt::Expr(statement) => match &*statement.value {
                Expr::StringLiteral(_) | Expr::EllipsisLiteral(_) => Ok(()),
                value => self.sugared(value, None).map(drop),
            },
            Stmt::Assign(assign) => {
                let value = self.sugared(&assign.value, None)?;
                for target in &assign.targets {
                    self.assign_to(target, value.clone(), None)?;
                }
                Ok(())
            }
            Stmt::AnnAssign(assign) => {
                let ty = self.program.annotation(self.file, &assign.annotation)?;
                match &assign.value {
                    Some(value) => {
                        let value = self.sugared(value, Some(ty))?;
                        self.assign_to(&assign.target, value, Some(ty))
                    }
                    None => self.error("annotation", "a declared variable needs a value", statement),
                }
            }
            Stmt::AugAssign(assign) => self.augmented(assign),
            Stmt::If(statement) => self.if_statement(&statement.test, &statement.body, &statement.elif_else_clauses),
            Stmt::While(statement) => {
                if !statement.orelse.is_empty() {
                    return self.error("statement", "`else` of a loop is not supported", statement);
                }
                self.loop_statement(None, None, Some(&statement.test), &statement.body, statement)
            }
            Stmt::For(statement) => {
                if !statement.orelse.is_empty() {
                    return self.error("statement", "`else` of a loop is not supported", statement);
                }
                self.for_statement(statement)
            }
            Stmt::Return(statement) => {
                let value = match &statement.value {
                    Some(value) => self.expr(value, self.returns)?,
                    None => self.none(),
                };
                let value = self.returned(value, statement)?;
                self.locate(statement);
                let yes = self.constant(Constant::Bool(true));
                self.define(RESULT, value, self.returns);
                self.define(RETURNED, yes, None);
                self.define(LEFT, yes, None);
                Ok(())
            }
            Stmt::Break(_) | Stmt::Continue(_) => {
                if self.lookup(BROKE).is_none() {
                    return self.error("statement", "this stands outside of a loop", statement);
                }
                self.locate(statement);
                let yes = self.constant(Constant::Bool(true));
                if matches!(statement, Stmt::Break(_)) {
                    self.define(BROKE, yes, None);
                }
                self.define(LEFT, yes, None);
                Ok(())
            }
            Stmt::Raise(raise) => self.raise(raise),
            Stmt::Assert(assert) => self.assert(assert),
            Stmt::FunctionDef(def) => {
                let name = def.name.to_string();
                self.frame().variables.insert(
                    name,
                    Variable {
                        value: Sugared::Closure(def),
                        declared: None,
                    },
                );
                Ok(())
            }
            other => self.error("statement", "this statement is not supported in TorchScript", other),
        }
    }

    fn if_statement(&mut self, test: &'f Expr, body: &'f [Stmt], clauses: &'f [ElifElseClause]) -> Result<()> {
        let condition = self.condition(test)?;
        if let Some(known) = condition.known {
            self.refine(if known {
                &condition.when_true
            } else {
                &condition.when_false
            });
            return if known {
                self.suite(body)
            } else {
                self.item(Item::Clauses(clauses))
            };
        }
        self.branches(
            condition,
            |this| this.suite(body),
            |this| this.item(Item::Clauses(clauses)),
            test.range(),
        )
    }

    /// Narrows variables in the current frame: `prim::unchecked_cast` to what a condition has told.
    fn refine(&mut self, refinements: &[(String, TypeId)]) {
        for (name, ty) in refinements {
            if let Some(value) = self.lookup_value(name)
                && self.ty(value) != *ty
            {
                let narrowed = self.op("prim::unchecked_cast", &[value], *ty);
                // The declared type stays with the outer variable; here it is the narrow one.
                self.define(name, narrowed, None);
            }
        }
    }

    /// A `prim::If`, with an output for each variable that both sides know and one has assigned.
    pub(super) fn branches(
        &mut self,
        condition: Condition,
        then: impl FnOnce(&mut Self) -> Result<()>,
        otherwise: impl FnOnce(&mut Self) -> Result<()>,
        range: impl Ranged,
    ) -> Result<()> {
        self.locate(&range);
        let node = self.node("prim::If", &[condition.value], &[]);
        let outer = self.block;
        let then_block = self.graph.add_block(node);
        let else_block = self.graph.add_block(node);
        let enter = |this: &mut Self, block, refinements: &[(String, TypeId)]| {
            this.block = block;
            this.frames.push(Frame::default());
            this.refine(refinements);
        };
        enter(self, then_block, &condition.when_true);
        then(self)?;
        let then_frame = self.frames.pop().unwrap_or_default();
        enter(self, else_block, &condition.when_false);
        otherwise(self)?;
        let else_frame = self.frames.pop().unwrap_or_default();
        self.block = outer;
        if then_frame.raised && else_frame.raised {
            self.frame().raised = true;
        }
        let names: BTreeSet<&String> = then_frame.variables.keys().chain(else_frame.variables.keys()).collect();
        for name in names {
            let sides = [(&then_frame, then_block), (&else_frame, else_block)];
            let found = sides.map(|(frame, _)| frame.variables.get(name).or_else(|| self.lookup(name)).cloned());
            let known = found.each_ref().map(|variable| {
                variable.as_ref().and_then(|v| match v.value {
                    Sugared::Value(value) => self.variable_type(v).map(|ty| (value, ty)),
                    _ => None,
                })
            });
            // A side that raises does not count.
            let (known, types, declared) = match known {
                [Some(a), _] if else_frame.raised => ([Some(a), None], [a.1, a.1], None),
                [_, Some(b)] if then_frame.raised => ([None, Some(b)], [b.1, b.1], None),
                [Some(a), Some(b)] => {
                    let declared = found.each_ref().map(|v| v.as_ref().and_then(|v| v.declared));
                    (known, [a.1, b.1], declared[0].or(declared[1]))
                }
                _ => continue,
            };
            let Some(ty) = self.join(types[0], types[1]) else {
                let message = format!(
                    "`{name}` is a `{}` after one side of an `if` and a `{}` after the other",
                    self.shown(types[0]),
                    self.shown(types[1])
                );
                self.frame().variables.remove(name);
                self.frame().unjoined.insert(name.clone(), message);
                continue;
            };
            for ((_, block), value) in sides.into_iter().zip(known) {
                let value = match value {
                    Some((value, _)) => value,
                    None => {
                        self.block = block;
                        self.uninitialized(ty)
                    }
                };
                self.graph.add_result(block, value);
            }
            self.block = outer;
            let output = self.graph.add_output(node, ty);
            if is_meaningful(name) {
                self.graph.name_value(output, name);
            }
            self.define(name, output, declared);
        }
        Ok(())
    }

    fn for_statement(&mut self, statement: &'f ruff_python_ast::StmtFor) -> Result<()> {
        let sugared = self.sugared(&statement.iter, None)?;
        let iterable = self.iterable(sugared, &*statement.iter)?;
        self.loop_statement(
            Some(&iterable),
            Some(&statement.target),
            None,
            &statement.body,
            statement,
        )
    }

    /// `for` and `while`.
    fn loop_statement(
        &mut self,
        iterable: Option<&Iterable<'f>>,
        target: Option<&'f Expr>,
        test: Option<&'f Expr>,
        body: &'f [Stmt],
        node: &impl Ranged,
    ) -> Result<()> {
        let items: Vec<Item<'f>> = body.iter().map(Item::Statement).collect();
        let mut assigned = BTreeSet::new();
        assigned_names(&items, &mut assigned);
        if let Some(target) = target {
            target_names(target, &mut assigned);
        }
        self.loop_with(iterable, target, test, assigned, may_leave(&items), node, |this| {
            this.items(&items)
        })
    }

    /// A `prim::Loop` that carries `assigned`; `leaves` says that its body may break, continue or return.
    #[allow(clippy::too_many_arguments, reason = "the parts of a loop")]
    pub(super) fn loop_with(
        &mut self,
        iterable: Option<&Iterable<'f>>,
        target: Option<&'f Expr>,
        test: Option<&'f Expr>,
        mut assigned: BTreeSet<String>,
        leaves: bool,
        node: &impl Ranged,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.locate(node);
        if leaves {
            let no = self.constant(Constant::Bool(false));
            self.define(BROKE, no, None);
            if self.lookup(LEFT).is_none() {
                self.define(LEFT, no, None);
            }
            for flag in [BROKE, LEFT, RETURNED, RESULT] {
                assigned.insert(flag.to_owned());
            }
        }
        let trip_count = match iterable {
            Some(iterable) => self.length(iterable, node)?,
            None => self.literal(Constant::Int(i64::MAX)),
        };
        let first = match test {
            Some(test) => self.condition(test)?.value,
            None => self.constant(Constant::Bool(true)),
        };
        let mut carried: Vec<(String, ValueId, Option<TypeId>, TypeId)> = Vec::new();
        for name in assigned {
            let Some(variable) = self.lookup(&name).cloned() else {
                continue;
            };
            if let (Sugared::Value(value), Some(ty)) = (&variable.value, self.variable_type(&variable)) {
                carried.push((name, *value, variable.declared, ty));
            }
        }
        self.locate(node);
        let loop_node = self.node("prim::Loop", &[trip_count, first], &[]);
        let outer = self.block;
        let block = self.graph.add_block(loop_node);
        let index = self.graph.add_parameter(block, types::INT);
        self.block = block;
        self.frames.push(Frame::default());
        for (name, initial, declared, ty) in &carried {
            self.graph.add_operand(loop_node, *initial);
            let parameter = self.graph.add_parameter(block, *ty);
            if is_meaningful(name) {
                self.graph.name_value(parameter, name);
            }
            self.define(name, parameter, *declared);
        }
        if leaves {
            let no = self.constant(Constant::Bool(false));
            self.define(LEFT, no, None);
        }
        if let (Some(iterable), Some(target)) = (iterable, target) {
            let element = self.element(iterable, index, node)?;
            self.assign_to(target, element, None)?;
        }
        body(self)?;
        let mut next = match test {
            Some(test) => self.condition(test)?.value,
            None => self.constant(Constant::Bool(true)),
        };
        if leaves {
            self.locate(node);
            for flag in [BROKE, RETURNED] {
                if let Some(flag) = self.lookup_value(flag) {
                    let go_on = self.op("aten::__not__", &[flag], types::BOOL);
                    next = self.op("aten::__and__", &[next, go_on], types::BOOL);
                }
            }
        }
        let frame = self.frames.pop().unwrap_or_default();
        self.graph.add_result(block, next);
        self.block = outer;
        for (name, initial, declared, ty) in carried {
            let value = match frame.variables.get(&name).map(|variable| &variable.value) {
                Some(Sugared::Value(value)) => *value,
                _ => initial,
            };
            self.graph.add_result(block, value);
            let output = self.graph.add_output(loop_node, ty);
            if is_meaningful(&name) {
                self.graph.name_value(output, &name);
            }
            self.define(&name, output, declared);
        }
        if leaves {
            // What left the loop has arrived; a return goes on leaving.
            self.frame().variables.remove(BROKE);
            let left = match self.lookup_value(RETURNED) {
                Some(returned) => returned,
                None => self.constant(Constant::Bool(false)),
            };
            self.define(LEFT, left, None);
        }
        Ok(())
    }
}

/// Whether a name was chosen by a person: the printer's temporaries are an underscore and a number.
pub(super) fn is_meaningful(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('%')
        && !name
            .strip_prefix('_')
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

fn item_range(items: &[Item<'_>]) -> ruff_text_size::TextRange {
    match items.first() {
        Some(Item::Statement(statement)) => statement.range(),
        Some(Item::Clauses([clause, ..])) => clause.range(),
        _ => ruff_text_size::TextRange::default(),
    }
}

/// Asks something of every statement, those in blocks of `if`s included, and those in loops when `loops` says so.
fn any_statement<'f>(items: &[Item<'f>], loops: bool, test: &mut impl FnMut(&'f Stmt) -> bool) -> bool {
    fn suite<'f>(body: &'f [Stmt], loops: bool, test: &mut impl FnMut(&'f Stmt) -> bool) -> bool {
        let items: Vec<Item<'f>> = body.iter().map(Item::Statement).collect();
        any_statement(&items, loops, test)
    }
    items.iter().any(|item| match item {
        Item::Clauses(clauses) => clauses.iter().any(|clause| suite(&clause.body, loops, test)),
        Item::Statement(statement) => {
            test(statement)
                || match statement {
                    Stmt::If(statement) => {
                        suite(&statement.body, loops, test)
                            || statement
                                .elif_else_clauses
                                .iter()
                                .any(|clause| suite(&clause.body, loops, test))
                    }
                    Stmt::For(statement) if loops => suite(&statement.body, loops, test),
                    Stmt::While(statement) if loops => suite(&statement.body, loops, test),
                    _ => false,
                }
        }
    })
}

fn contains_return(items: &[Item<'_>]) -> bool {
    any_statement(items, true, &mut |statement| matches!(statement, Stmt::Return(_)))
}

/// Whether control may not reach what follows: by return anywhere, or by break or continue of the loop at hand.
fn may_leave(items: &[Item<'_>]) -> bool {
    contains_return(items)
        || any_statement(items, false, &mut |statement| {
            matches!(statement, Stmt::Break(_) | Stmt::Continue(_))
        })
}

/// Whether control never reaches what follows.
fn always_leaves(items: &[Item<'_>]) -> bool {
    let suite = |body: &[Stmt]| {
        body.iter()
            .any(|statement| always_leaves(&[Item::Statement(statement)]))
    };
    let clauses_leave = |clauses: &[ElifElseClause]| {
        clauses.last().is_some_and(|last| last.test.is_none()) && clauses.iter().all(|clause| suite(&clause.body))
    };
    items.iter().any(|item| match item {
        Item::Clauses(clauses) => clauses_leave(clauses),
        Item::Statement(Stmt::Return(_) | Stmt::Raise(_) | Stmt::Break(_) | Stmt::Continue(_)) => true,
        Item::Statement(Stmt::If(statement)) => suite(&statement.body) && clauses_leave(&statement.elif_else_clauses),
        Item::Statement(_) => false,
    })
}

/// Whether returns stand where they cannot simply become results of `if`s: in loops, or on a side that goes on otherwise.
fn needs_flags(items: &[Item<'_>]) -> bool {
    let suite = |body: &[Stmt]| {
        let items: Vec<Item<'_>> = body.iter().map(Item::Statement).collect();
        contains_return(&items) && (!always_leaves(&items) || needs_flags(&items))
    };
    items.iter().any(|item| match item {
        Item::Statement(Stmt::For(_) | Stmt::While(_)) => contains_return(&[*item]),
        Item::Statement(Stmt::If(statement)) => {
            suite(&statement.body) || statement.elif_else_clauses.iter().any(|clause| suite(&clause.body))
        }
        Item::Clauses(clauses) => clauses.iter().any(|clause| suite(&clause.body)),
        Item::Statement(_) => false,
    })
}

/// The variables that statements assign.
fn assigned_names(items: &[Item<'_>], names: &mut BTreeSet<String>) {
    any_statement(items, true, &mut |statement| {
        match statement {
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| target_names(target, names)),
            Stmt::AnnAssign(assign) => target_names(&assign.target, names),
            Stmt::AugAssign(assign) => target_names(&assign.target, names),
            Stmt::For(statement) => target_names(&statement.target, names),
            _ => {}
        }
        false
    });
}

/// The variables that an assignment to `target` sets.
pub(super) fn target_names(target: &Expr, names: &mut BTreeSet<String>) {
    match target {
        Expr::Name(name) => {
            names.insert(name.id.to_string());
        }
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|target| target_names(target, names)),
        Expr::List(list) => list.elts.iter().for_each(|target| target_names(target, names)),
        Expr::Starred(starred) => target_names(&starred.value, names),
        _ => {}
    }
}

/// The operand of a symbol attribute.
pub(super) fn name_attribute(graph: &mut Graph, node: NodeId, name: SymbolId) {
    graph.set_attribute_symbol(node, symbols::ATTR_NAME, name);
}
