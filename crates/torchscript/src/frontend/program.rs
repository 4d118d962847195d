//! The program of an archive: its classes and functions, found by qualified name and defined when they are first needed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use frazil_ir::schema::{Argument, Catalogue, FunctionSchema, TypeHint};
use frazil_ir::{
    AttributeKind, ClassDef, ClassKind, CompilationUnit, Constant, Context, Device, EnumConstant, Function, FunctionId,
    Graph, SymbolId, TupleConstant, TypeId, TypeKind, symbols, types,
};
use num_complex::Complex64;
use ruff_python_ast::{Expr, Number, Stmt, StmtClassDef, StmtFunctionDef, UnaryOp};
use ruff_text_size::Ranged;

use super::annotation::dotted;
use super::source::SourceFile;
use super::{LoadOptions, Result, emit, objects};
use crate::archive::{Archive, SourceMap};

/// A source text with the record of where its code came from.
pub(crate) struct SourceText {
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) map: Option<SourceMap>,
}

/// Where the source of a qualifier (`__torch__.a.b`) comes from.
pub(crate) trait Sources {
    /// The source of the file that defines the names under `qualifier`, if there is one.
    fn find(&self, qualifier: &str) -> Result<Option<SourceText>>;
}

/// The `code/` records of an archive.
pub(crate) struct ArchiveSources<'a> {
    pub(crate) archive: &'a Archive,
}

impl Sources for ArchiveSources<'_> {
    fn find(&self, qualifier: &str) -> Result<Option<SourceText>> {
        let file = format!("code/{}.py", qualifier.replace('.', "/"));
        if !self.archive.contains(&file) {
            return Ok(None);
        }
        let (text, map) = (self.archive.text(&file)?, self.archive.source_map(&file)?);
        Ok(Some(SourceText { file, text, map }))
    }
}

/// No files: a text that stands alone.
pub(crate) struct NoSources;

impl Sources for NoSources {
    fn find(&self, _: &str) -> Result<Option<SourceText>> {
        Ok(None)
    }
}

/// What a qualified name stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Global {
    Function(FunctionId),
    /// A class, interface, enumeration or NamedTuple.
    Type(TypeId),
}

/// Where a function's definition stands in its file: statement, and statement of the class.
#[derive(Debug, Clone, Copy)]
struct DefPath {
    statement: usize,
    method: Option<usize>,
}

struct Body {
    file: Arc<SourceFile>,
    path: DefPath,
    /// Whether the definition says what it returns.
    declared: bool,
    state: BodyState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyState {
    Waiting,
    Compiling,
    Done,
}

pub(crate) struct Program<'a> {
    pub(crate) ctx: Arc<Context>,
    pub(crate) catalogue: &'a Catalogue,
    sources: &'a dyn Sources,
    files: HashMap<String, Option<Arc<SourceFile>>>,
    pub(crate) unit: CompilationUnit,
    globals: HashMap<SymbolId, Global>,
    /// NamedTuples whose fields are being read: one that contains itself would be infinite.
    defining: HashSet<String>,
    bodies: HashMap<FunctionId, Body>,
    /// Functions in the order of their definition, to be compiled.
    order: Vec<FunctionId>,
    /// Classes of a text by hand whose `__init__` is being compiled: what it sets are their attributes.
    initialising: Vec<SymbolId>,
    /// Whether attributes may be declared by `__init__` alone, as people write them; archives declare all.
    by_hand: bool,
    /// `CONSTANTS.c0`, `CONSTANTS.c1`, ...
    pub(crate) constants: Vec<Constant>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(options: &LoadOptions<'a>, sources: &'a dyn Sources) -> Program<'a> {
        Program {
            ctx: Arc::clone(options.ctx),
            catalogue: options.catalogue,
            sources,
            files: HashMap::new(),
            unit: CompilationUnit::default(),
            globals: HashMap::new(),
            defining: HashSet::new(),
            bodies: HashMap::new(),
            order: Vec::new(),
            initialising: Vec::new(),
            by_hand: false,
            constants: Vec::new(),
        }
    }

    /// Reads the table of constants that code refers to.
    pub(crate) fn load_constants(&mut self, archive: &Archive) -> Result<()> {
        if archive.contains("constants.pkl") {
            self.constants = objects::read_constants(self, archive)?;
        }
        Ok(())
    }

    /// Defines all functions and classes of a text that stands alone.
    pub(crate) fn define_text(&mut self, name: &str, text: &str) -> Result<()> {
        self.by_hand = true;
        let file = Arc::new(SourceFile::parse(name, text, None)?);
        self.files.insert(String::new(), Some(Arc::clone(&file)));
        for statement in file.body() {
            let name = match statement {
                Stmt::FunctionDef(def) => &def.name,
                Stmt::ClassDef(def) => &def.name,
                Stmt::Import(_) | Stmt::ImportFrom(_) => continue,
                Stmt::Expr(expr) if expr.value.is_string_literal_expr() => continue,
                other => {
                    return Err(file
                        .error("statement", "only functions and classes stand at the top level", other)
                        .into());
                }
            };
            self.global(name)?;
        }
        Ok(())
    }

    /// What the qualified name stands for.
    pub(crate) fn global(&mut self, name: &str) -> Result<Option<Global>> {
        let symbol = self.ctx.symbol(name);
        if let Some(&global) = self.globals.get(&symbol) {
            return Ok(Some(global));
        }
        let (qualifier, simple) = name.rsplit_once('.').unwrap_or(("", name));
        let Some(file) = self.file(qualifier)? else {
            return Ok(None);
        };
        for (index, statement) in file.body().iter().enumerate() {
            match statement {
                Stmt::FunctionDef(def) if def.name.as_str() == simple => {
                    let path = DefPath {
                        statement: index,
                        method: None,
                    };
                    let id = self.define_function(&file, def, path, symbol, None)?;
                    self.globals.insert(symbol, Global::Function(id));
                    return Ok(Some(Global::Function(id)));
                }
                Stmt::ClassDef(def) if def.name.as_str() == simple => {
                    let ty = self.define_class(&file, def, index, symbol)?;
                    return Ok(Some(Global::Type(ty)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn file(&mut self, qualifier: &str) -> Result<Option<Arc<SourceFile>>> {
        if let Some(file) = self.files.get(qualifier) {
            return Ok(file.clone());
        }
        let file = match self.sources.find(qualifier)? {
            Some(source) => Some(Arc::new(SourceFile::parse(&source.file, &source.text, source.map)?)),
            None => None,
        };
        self.files.insert(qualifier.to_owned(), file.clone());
        Ok(file)
    }

    /// The type that a dotted name stands for.
    pub(crate) fn class_type(&mut self, file: &SourceFile, node: &impl Ranged, name: &str) -> Result<TypeId> {
        if self.defining.contains(name) {
            let message = format!("the NamedTuple `{name}` contains itself");
            return Err(file.error("cyclic-class", message, node).into());
        }
        match self.global(name)? {
            Some(Global::Type(ty)) => Ok(ty),
            // Classes that C++ code registers are opaque here.
            None if name.starts_with("__torch__.torch.classes.") => Ok(self.ctx.class(name)),
            _ => Err(file
                .error("unknown-type", format!("unknown type `{name}`"), node)
                .into()),
        }
    }

    fn define_class(
        &mut self,
        file: &Arc<SourceFile>,
        def: &StmtClassDef,
        statement: usize,
        name: SymbolId,
    ) -> Result<TypeId> {
        let base = def
            .arguments
            .as_ref()
            .and_then(|a| a.args.first())
            .and_then(dotted)
            .unwrap_or_default();
        let kind = match base.rsplit('.').next().unwrap_or_default() {
            "Module" => ClassKind::Module,
            "NamedTuple" => ClassKind::NamedTuple,
            "Enum" => ClassKind::Enum,
            "Interface" => ClassKind::Interface,
            "ModuleInterface" => ClassKind::ModuleInterface,
            "" | "object" => ClassKind::Class,
            other => {
                let message = format!("a class cannot derive from `{other}`");
                return Err(file.error("base-class", message, def).into());
            }
        };
        let mut class = ClassDef::new(name, kind);
        if kind == ClassKind::NamedTuple {
            return self.define_named_tuple(file, def, class);
        }
        let ty = self.ctx.type_of_kind(match kind {
            ClassKind::Enum => TypeKind::Enum(name),
            ClassKind::Interface | ClassKind::ModuleInterface => TypeKind::Interface(name),
            _ => TypeKind::Class(name),
        });
        // From here on the class may refer to itself.
        self.globals.insert(name, Global::Type(ty));
        let mut parameters = Vec::new();
        let mut buffers = Vec::new();
        for member in &def.body {
            self.define_member(file, member, &mut class, &mut parameters, &mut buffers)?;
        }
        for (names, kind) in [(parameters, AttributeKind::Parameter), (buffers, AttributeKind::Buffer)] {
            for attribute in names {
                if let Some(attribute) = class.attributes.get_mut(&attribute) {
                    attribute.kind = kind;
                }
            }
        }
        let is_interface = matches!(kind, ClassKind::Interface | ClassKind::ModuleInterface);
        for (index, member) in def.body.iter().enumerate() {
            let Stmt::FunctionDef(method) = member else { continue };
            let method_name = self.ctx.symbol(&method.name);
            if is_interface {
                let schema = self.signature(file, method, method_name, Some(ty))?;
                class.signatures.insert(method_name, schema);
            } else {
                let full = self
                    .ctx
                    .symbol(&format!("{}.{}", self.ctx.name(name), method.name.as_str()));
                let path = DefPath {
                    statement,
                    method: Some(index),
                };
                let id = self.define_function(file, method, path, full, Some(ty))?;
                class.methods.insert(method_name, id);
            }
        }
        let init = class.methods.get(&self.ctx.symbol("__init__")).copied();
        self.unit.classes.insert(name, class);
        if let (Some(init), true) = (init, self.by_hand) {
            self.initialising.push(name);
            let compiled = self.compile(init);
            self.initialising.pop();
            compiled?;
        }
        Ok(ty)
    }

    /// The type of an attribute that is set to a value of type `given`. In the `__init__` of a class by hand this declares it.
    pub(crate) fn attribute_to_set(&mut self, class: SymbolId, name: SymbolId, given: TypeId) -> Option<TypeId> {
        let declares = self.initialising.last() == Some(&class);
        let class = self.unit.classes.get_mut(&class)?;
        if let Some(attribute) = class.attributes.get(&name) {
            return Some(attribute.ty);
        }
        if !declares {
            return None;
        }
        class.add_attribute(name, given, AttributeKind::Plain);
        Some(given)
    }

    fn define_member(
        &mut self,
        file: &SourceFile,
        member: &Stmt,
        class: &mut ClassDef,
        parameters: &mut Vec<SymbolId>,
        buffers: &mut Vec<SymbolId>,
    ) -> Result<()> {
        match member {
            Stmt::AnnAssign(assign) => {
                let Expr::Name(target) = &*assign.target else {
                    return Err(file
                        .error("class-member", "an attribute's name is expected", member)
                        .into());
                };
                let ty = self.annotation(file, &assign.annotation)?;
                let name = self.ctx.symbol(&target.id);
                match &assign.value {
                    Some(value) => {
                        let value = self.constant_expr(file, value, Some(ty))?;
                        class.constants.insert(name, value);
                    }
                    None => class.add_attribute(name, ty, AttributeKind::Plain),
                }
                Ok(())
            }
            Stmt::Assign(assign) => match assign.targets.as_slice() {
                [Expr::Subscript(target)] if dotted(&target.value).as_deref() == Some("__annotations__") => {
                    let Expr::StringLiteral(name) = &*target.slice else {
                        return Err(file
                            .error("class-member", "an attribute's name is expected", member)
                            .into());
                    };
                    let ty = self.annotation(file, &assign.value)?;
                    class.add_attribute(self.ctx.symbol(name.value.to_str()), ty, AttributeKind::Plain);
                    Ok(())
                }
                [Expr::Name(target)] => match target.id.as_str() {
                    "__parameters__" => self.names(file, &assign.value, parameters),
                    "__buffers__" => self.names(file, &assign.value, buffers),
                    "__forward_pre_hooks__" => self.names(file, &assign.value, &mut class.forward_pre_hooks),
                    "__forward_hooks__" => self.names(file, &assign.value, &mut class.forward_hooks),
                    member_name => {
                        let value = self.constant_expr(file, &assign.value, None)?;
                        let name = self.ctx.symbol(member_name);
                        let value = if class.kind == ClassKind::Enum {
                            let name = member_name.into();
                            Constant::Enum(Arc::new(EnumConstant {
                                class: class.name,
                                name,
                                value,
                            }))
                        } else {
                            value
                        };
                        class.constants.insert(name, value);
                        Ok(())
                    }
                },
                _ => Err(file
                    .error("class-member", "this cannot stand in a class", member)
                    .into()),
            },
            Stmt::FunctionDef(_) | Stmt::Pass(_) => Ok(()),
            Stmt::Expr(expr) if expr.value.is_string_literal_expr() => Ok(()),
            _ => Err(file
                .error("class-member", "this cannot stand in a class", member)
                .into()),
        }
    }

    fn define_named_tuple(&mut self, file: &SourceFile, def: &StmtClassDef, mut class: ClassDef) -> Result<TypeId> {
        let qualified = self.ctx.name(class.name).to_owned();
        self.defining.insert(qualified.clone());
        for member in &def.body {
            match member {
                Stmt::AnnAssign(assign) => {
                    let Expr::Name(target) = &*assign.target else {
                        return Err(file.error("class-member", "a field's name is expected", member).into());
                    };
                    let ty = self.annotation(file, &assign.annotation)?;
                    let name = self.ctx.symbol(&target.id);
                    class.add_attribute(name, ty, AttributeKind::Plain);
                    if let Some(value) = &assign.value {
                        let value = self.constant_expr(file, value, Some(ty))?;
                        class.constants.insert(name, value);
                    }
                }
                Stmt::Pass(_) => {}
                other => {
                    return Err(file
                        .error("class-member", "this cannot stand in a NamedTuple", other)
                        .into());
                }
            }
        }
        self.defining.remove(&qualified);
        let names: Vec<SymbolId> = class.attributes.keys().copied().collect();
        let fields: Vec<TypeId> = class.attributes.values().map(|field| field.ty).collect();
        let (names, fields) = (self.ctx.symbol_list(&names), self.ctx.type_list(&fields));
        let ty = self.ctx.type_of_kind(TypeKind::NamedTuple(class.name, names, fields));
        self.globals.insert(class.name, Global::Type(ty));
        self.unit.classes.insert(class.name, class);
        Ok(ty)
    }

    fn names(&self, file: &SourceFile, list: &Expr, into: &mut Vec<SymbolId>) -> Result<()> {
        let expected = || file.error("class-member", "a list of names is expected", list);
        let items = match list {
            Expr::List(list) => &list.elts,
            Expr::Tuple(tuple) => &tuple.elts,
            _ => return Err(expected().into()),
        };
        for item in items {
            let Expr::StringLiteral(name) = item else {
                return Err(expected().into());
            };
            into.push(self.ctx.symbol(name.value.to_str()));
        }
        Ok(())
    }

    fn define_function(
        &mut self,
        file: &Arc<SourceFile>,
        def: &StmtFunctionDef,
        path: DefPath,
        name: SymbolId,
        class: Option<TypeId>,
    ) -> Result<FunctionId> {
        let schema = self.signature(file, def, name, class)?;
        let graph = Graph::new(Arc::clone(&self.ctx));
        let id = self.unit.add_function(Function { name, schema, graph });
        let declared = def.returns.is_some();
        self.bodies.insert(
            id,
            Body {
                file: Arc::clone(file),
                path,
                declared,
                state: BodyState::Waiting,
            },
        );
        self.order.push(id);
        Ok(id)
    }

    /// The schema that a definition states. What it returns is left out when the definition does not say.
    pub(crate) fn signature(
        &mut self,
        file: &SourceFile,
        def: &StmtFunctionDef,
        name: SymbolId,
        class: Option<TypeId>,
    ) -> Result<FunctionSchema> {
        if let Some(star) = def.parameters.vararg.as_ref().or(def.parameters.kwarg.as_ref()) {
            let message = "functions with a variable number of arguments are not supported";
            return Err(file.error("signature", message, &**star).into());
        }
        let mut arguments = Vec::new();
        let positional = def.parameters.posonlyargs.iter().chain(def.parameters.args.iter());
        let all = positional
            .map(|p| (p, false))
            .chain(def.parameters.kwonlyargs.iter().map(|p| (p, true)));
        for (index, (parameter, keyword_only)) in all.enumerate() {
            let ty = match (&parameter.parameter.annotation, class) {
                (_, Some(class)) if index == 0 => class,
                (Some(annotation), _) => self.annotation(file, annotation)?,
                (None, _) => types::TENSOR,
            };
            let default = match &parameter.default {
                Some(default) => Some(self.constant_expr(file, default, Some(ty))?),
                None => None,
            };
            let name = self.ctx.symbol(&parameter.parameter.name);
            arguments.push(Argument {
                default,
                keyword_only,
                ..plain_argument(name, ty)
            });
        }
        let returns = match &def.returns {
            Some(annotation) => vec![plain_argument(symbols::EMPTY, self.annotation(file, annotation)?)],
            None => Vec::new(),
        };
        Ok(FunctionSchema {
            name,
            overload: symbols::EMPTY,
            arguments,
            returns,
            is_vararg: false,
            is_varret: false,
        })
    }

    /// The schema of a function, whose body is compiled first when only that tells what it returns.
    pub(crate) fn schema_of(
        &mut self,
        id: FunctionId,
        file: &SourceFile,
        node: &impl Ranged,
    ) -> Result<FunctionSchema> {
        if let Some(body) = self.bodies.get(&id)
            && !body.declared
        {
            match body.state {
                BodyState::Waiting => self.compile(id)?,
                BodyState::Compiling => {
                    let message = "a recursive function must be annotated with the type that it returns";
                    return Err(file.error("recursion", message, node).into());
                }
                BodyState::Done => {}
            }
        }
        Ok(self.unit.function(id).schema.clone())
    }

    /// Compiles every function that has been defined, and those that their bodies define in turn.
    pub(crate) fn compile_all(&mut self) -> Result<()> {
        let mut next = 0;
        while let Some(&id) = self.order.get(next) {
            next += 1;
            self.compile(id)?;
        }
        Ok(())
    }

    fn compile(&mut self, id: FunctionId) -> Result<()> {
        let Some(body) = self.bodies.get_mut(&id).filter(|body| body.state == BodyState::Waiting) else {
            return Ok(());
        };
        body.state = BodyState::Compiling;
        let (file, path) = (Arc::clone(&body.file), body.path);
        let def = match (file.body().get(path.statement), path.method) {
            (Some(Stmt::FunctionDef(def)), None) => def,
            (Some(Stmt::ClassDef(class)), Some(method)) => match class.body.get(method) {
                Some(Stmt::FunctionDef(def)) => def,
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        let schema = self.unit.function(id).schema.clone();
        let (graph, returned) = emit::function(self, &file, def, &schema)?;
        let function = self.unit.function_mut(id);
        function.graph = graph;
        if function.schema.returns.is_empty() {
            function.schema.returns = vec![plain_argument(symbols::EMPTY, returned)];
        }
        if let Some(body) = self.bodies.get_mut(&id) {
            body.state = BodyState::Done;
        }
        Ok(())
    }

    /// The value of an expression that stands for a constant: a literal, or a container of such.
    pub(crate) fn constant_expr(&mut self, file: &SourceFile, expr: &Expr, ty: Option<TypeId>) -> Result<Constant> {
        let kind = ty.map(|ty| self.ctx.type_kind(ty));
        let kind = match kind {
            Some(TypeKind::Optional(inner)) => Some(self.ctx.type_kind(inner)),
            other => other,
        };
        let no_constant = || file.error("constant", "a constant is expected here", expr);
        let value = match expr {
            Expr::NoneLiteral(_) => Constant::None,
            Expr::BooleanLiteral(literal) => Constant::Bool(literal.value),
            Expr::StringLiteral(literal) => Constant::str(string_value(literal.value.to_str())),
            Expr::NumberLiteral(literal) => number(&literal.value).ok_or_else(no_constant)?,
            Expr::UnaryOp(op) if op.op == UnaryOp::USub => match &*op.operand {
                // The least integer is no literal without its sign.
                Expr::NumberLiteral(literal) if matches!(&literal.value, Number::Int(int) if int.as_u64() == Some(1 << 63)) => {
                    Constant::Int(i64::MIN)
                }
                operand => match self.constant_expr(file, operand, ty)? {
                    Constant::Int(i) => Constant::Int(i.wrapping_neg()),
                    Constant::Float(f) => Constant::Float(-f),
                    Constant::Complex(c) => Constant::Complex(-c),
                    _ => return Err(no_constant().into()),
                },
            },
            Expr::Tuple(tuple) => {
                let element_types: Vec<TypeId> = match kind {
                    Some(TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements)) => {
                        self.ctx.types(elements).to_vec()
                    }
                    _ => Vec::new(),
                };
                let mut items = Vec::with_capacity(tuple.elts.len());
                for (index, item) in tuple.elts.iter().enumerate() {
                    items.push(self.constant_expr(file, item, element_types.get(index).copied())?);
                }
                match kind {
                    Some(TypeKind::Tuple(_)) if element_types.len() == items.len() => {
                        let ty = self.ctx.tuple_of(&element_types);
                        Constant::Tuple(Arc::new(TupleConstant { ty, items }))
                    }
                    // `padding: List[int] = (1, 1)`
                    Some(TypeKind::List(element)) => Constant::list(element, items),
                    _ => Constant::tuple(&self.ctx, items),
                }
            }
            Expr::List(list) => {
                let hint = match kind {
                    Some(TypeKind::List(element)) => Some(element),
                    _ => None,
                };
                let mut items = Vec::with_capacity(list.elts.len());
                for item in &list.elts {
                    items.push(self.constant_expr(file, item, hint)?);
                }
                let element = hint
                    .or_else(|| items.first().map(|item| item.ty(&self.ctx)))
                    .unwrap_or(types::TENSOR);
                Constant::list(element, items)
            }
            Expr::Name(name) => match name.id.as_str() {
                "inf" => Constant::Float(f64::INFINITY),
                "nan" => Constant::Float(f64::NAN),
                "infj" => Constant::Complex(Complex64::new(0.0, f64::INFINITY)),
                "nanj" => Constant::Complex(Complex64::new(0.0, f64::NAN)),
                _ => return Err(no_constant().into()),
            },
            Expr::Attribute(_) => {
                let name = dotted(expr).ok_or_else(no_constant)?;
                match self.named_constant(&name)? {
                    Some(constant) => constant,
                    None => return Err(no_constant().into()),
                }
            }
            Expr::Call(call) => match (dotted(&call.func).as_deref(), &*call.arguments.args) {
                (Some("torch.device"), [Expr::StringLiteral(text)]) => {
                    Constant::Device(Device::parse(text.value.to_str()).ok_or_else(no_constant)?)
                }
                (Some("annotate" | "torch.jit.annotate"), [ty, value]) => {
                    let ty = self.annotation(file, ty)?;
                    self.constant_expr(file, value, Some(ty))?
                }
                _ => return Err(no_constant().into()),
            },
            _ => return Err(no_constant().into()),
        };
        Ok(match (kind, value) {
            (Some(TypeKind::Float), Constant::Int(i)) => Constant::Float(i as f64),
            (_, value) => value,
        })
    }

    /// `CONSTANTS.c3`, `__torch__.m.Color.RED`, `torch.float32`, `math.pi`.
    pub(crate) fn named_constant(&mut self, name: &str) -> Result<Option<Constant>> {
        if let Some(index) = name.strip_prefix("CONSTANTS.c") {
            let constant = index.parse::<usize>().ok().and_then(|index| self.constants.get(index));
            return Ok(constant.cloned());
        }
        if let Some(constant) = super::builtins::constant(name) {
            return Ok(Some(constant));
        }
        let Some((class, member)) = name.rsplit_once('.') else {
            return Ok(None);
        };
        let Some(Global::Type(ty)) = self.global(class)? else {
            return Ok(None);
        };
        let TypeKind::Enum(class) = self.ctx.type_kind(ty) else {
            return Ok(None);
        };
        let member = self.ctx.symbol(member);
        Ok(self
            .unit
            .class(class)
            .and_then(|class| class.constants.get(&member))
            .cloned())
    }
}

/// An argument without default, alias annotation and hint.
pub(crate) fn plain_argument(name: SymbolId, ty: TypeId) -> Argument {
    Argument {
        name,
        ty,
        broadcast: None,
        default: None,
        keyword_only: false,
        alias: None,
        element_alias: None,
        hint: TypeHint::None,
    }
}

/// The value of a number literal, if it fits 64 bits.
pub(crate) fn number(number: &Number) -> Option<Constant> {
    Some(match number {
        Number::Int(int) => Constant::Int(int.as_i64()?),
        Number::Float(float) => Constant::Float(*float),
        Number::Complex { real, imag } => Constant::Complex(Complex64::new(*real, *imag)),
    })
}

/// The text of a string literal. PyTorch's printer writes the bytes of characters outside ASCII as octal escapes, one each, which Python reads as
/// one character a byte.
pub(crate) fn string_value(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_else(|| text.to_owned())
}
