//! The program of an archive or text: its classes and functions, found by qualified name and defined when they are first needed.

mod adopt;
mod class;
mod comments;
mod decorators;
mod foreign;
mod hooks;
mod literal;
mod modules;
mod overloads;
mod refused;
mod top;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use frazil_ir::nesting::check_graph;
use frazil_ir::schema::{Argument, Catalogue, FunctionSchema, TypeHint};
use frazil_ir::{
    ClassKind, CompilationUnit, Constant, Context, Function, FunctionId, Graph, SymbolId, TypeId, TypeKind, symbols,
    types,
};
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use crate::archive::{Archive, SourceMap};
use crate::frontend::annotation;
use crate::frontend::construct::{self, Base, MethodTable};
use crate::frontend::emit::upgrade;
use crate::frontend::objects::Objects;
use crate::frontend::source::SourceFile;
use crate::frontend::traced::Traces;
use crate::frontend::{Fold, LoadError, LoadOptions, Result, Stack, emit, library, objects};

use decorators::Marker;
use refused::Refusals;
use top::Top;

pub(crate) use decorators::{is_plain_decorator, is_scripted, marker_of};
pub(crate) use foreign::{FOREIGN_CLASSES, foreign_method};
pub(crate) use literal::{complex_sum, number, string_value};
pub(crate) use overloads::Alternatives;
pub(crate) use top::{Bound, TopName};

/// The qualifier of what a text by hand defines.
pub(crate) const BY_HAND: &str = "__torch__";

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
    /// One of several functions; which, the arguments tell. The index into [`Program::alternatives`].
    Alternatives(usize),
}

/// Where a function's definition stands in its file: statement, and statement of the class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DefPath {
    pub(crate) statement: usize,
    pub(crate) method: Option<usize>,
}

impl DefPath {
    pub(crate) fn def(self, file: &SourceFile) -> Option<&StmtFunctionDef> {
        match (file.statement(self.statement)?, self.method) {
            (Stmt::FunctionDef(def), None) => Some(def),
            (Stmt::ClassDef(class), Some(method)) => class.body.get(method)?.as_function_def_stmt(),
            _ => None,
        }
    }
}

struct Body {
    file: Arc<SourceFile>,
    path: DefPath,
    /// Whether the definition says what it returns.
    declared: bool,
    /// Methods may call one another in circles.
    is_method: bool,
    state: BodyState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyState {
    Waiting,
    Compiling,
    Done,
    /// Its error is among the refusals.
    Failed,
}

pub(crate) struct Program<'a> {
    pub(crate) ctx: Arc<Context>,
    pub(crate) catalogue: &'a Catalogue,
    /// See [`LoadOptions::fold`].
    pub(crate) fold: Option<Fold<'a>>,
    /// As in the options.
    pub(crate) operators_first: bool,
    /// The format version that the code was written for.
    pub(crate) version: u64,
    sources: &'a dyn Sources,
    /// What the work runs on.
    pub(crate) stack: Stack,
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
    /// Static methods, by class and name.
    statics: HashMap<(SymbolId, SymbolId), FunctionId>,
    /// Classes of modules that a text by hand made, with what is not compiled yet.
    modules: HashMap<SymbolId, MethodTable>,
    /// Functions that share a name.
    pub(crate) alternatives: Vec<Alternatives>,
    /// How many class names have been mangled.
    mangled: usize,
    /// `CONSTANTS.c0`, `CONSTANTS.c1`, ...
    pub(crate) constants: Vec<Constant>,
    /// The objects that the archive holds.
    pub(crate) objects: Objects,
    /// What running the text by hand gave.
    top: Option<Top>,
    /// The bases of the classes of the text by hand, by the numbers of the class and of the base.
    pub(crate) bases: HashMap<(usize, usize), Base>,
    /// Functions of the text that `torch.jit.script` was given, by statement.
    pub(crate) scripted: HashSet<usize>,
    /// What `torch.jit.trace` is to record.
    pub(crate) traces: Traces,
    /// Functions that do not compile.
    pub(crate) refusals: Refusals,
    /// Of how many classes the hooks have been checked.
    hooks_checked: usize,
}

impl<'a> Program<'a> {
    pub(crate) fn new(options: &LoadOptions<'a>, sources: &'a dyn Sources, stack: Stack) -> Program<'a> {
        Program {
            ctx: Arc::clone(options.ctx),
            catalogue: options.catalogue,
            fold: None,
            operators_first: false,
            version: u64::MAX,
            sources,
            stack,
            files: HashMap::new(),
            unit: CompilationUnit::default(),
            globals: HashMap::new(),
            defining: HashSet::new(),
            bodies: HashMap::new(),
            order: Vec::new(),
            initialising: Vec::new(),
            by_hand: false,
            statics: HashMap::new(),
            modules: HashMap::new(),
            alternatives: Vec::new(),
            mangled: 0,
            constants: Vec::new(),
            objects: Objects::default(),
            top: None,
            bases: HashMap::new(),
            scripted: HashSet::new(),
            traces: Traces::default(),
            refusals: Refusals::default(),
            hooks_checked: 0,
        }
    }

    /// Reads the table of constants that code refers to.
    pub(crate) fn load_constants(&mut self, archive: &Archive) -> Result<()> {
        if archive.contains("constants.pkl") {
            self.constants = objects::read_constants(self, archive)?;
        }
        Ok(())
    }

    /// Defines all functions and classes of a text that stands alone, and gives the objects of the module that it makes, if it has module classes.
    pub(crate) fn define_text(&mut self, name: &str, text: &str) -> Result<Option<Objects>> {
        self.by_hand = true;
        let file = Arc::new(SourceFile::parse(name, text, None, self.stack)?.under(BY_HAND));
        self.unit.sources.add(self.ctx.symbol(name), 1, Arc::clone(&file.text));
        self.files.insert(BY_HAND.to_owned(), Some(Arc::clone(&file)));
        if let Some(objects) = construct::module(self, &file)? {
            // Functions serve the module: those that it does not call are Python's.
            return Ok(Some(objects));
        }
        for (name, number, is_traced) in self.compiled_names() {
            if self.refusals.skips(&name) {
                continue;
            }
            let compiled = match (is_traced, file.statement(number)) {
                (true, _) => self.traced_function(number).map(drop),
                (false, Some(Stmt::FunctionDef(def))) => {
                    let symbol = self.ctx.symbol(&format!("{BY_HAND}.{name}"));
                    let path = DefPath {
                        statement: number,
                        method: None,
                    };
                    self.define_function(&file, def, path, symbol, None).map(drop)
                }
                _ => Ok(()),
            };
            self.note_refusal(&name, compiled)?;
        }
        for number in self.definitions(&file) {
            let (name, is_function) = match file.statement(number) {
                Some(Stmt::FunctionDef(def)) => (&def.name, true),
                Some(Stmt::ClassDef(def)) if !class::is_exception(&file, def) => (&def.name, false),
                _ => continue,
            };
            if (is_function || !construct::is_module_class(self, &file, number)?) && !self.refusals.skips(name) {
                let defined = self.global_of(&file, name);
                self.note_refusal(name, defined.map(|_| ()))?;
            }
        }
        Ok(None)
    }

    /// Whether the code is written by people: PyTorch's compiler is stricter with them than its reader of archives is.
    pub(crate) fn by_hand(&self) -> bool {
        self.by_hand
    }

    /// Whether `class` is a class of modules.
    pub(crate) fn is_module(&self, class: SymbolId) -> bool {
        self.unit
            .class(class)
            .is_some_and(|class| class.kind == ClassKind::Module)
    }

    /// The static method `name` of `class`.
    pub(crate) fn static_method(&self, class: SymbolId, name: SymbolId) -> Option<FunctionId> {
        self.statics.get(&(class, name)).copied()
    }

    /// What `name` stands for in the code of `file`, where names of its own definitions may go without their qualifier.
    pub(crate) fn global_of(&mut self, file: &SourceFile, name: &str) -> Result<Option<Global>> {
        match file.qualifier {
            Some(qualifier) if !name.starts_with("__torch__.") => self.global(&format!("{qualifier}.{name}")),
            _ => self.global(name),
        }
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
        if let Some(error) = self.refusals.left_out.get(simple).filter(|_| file.is_by_hand()) {
            return Err(error.clone().into());
        }
        if let Some(number) = self.traced_as(&file, simple) {
            return Ok(self.traced_function(number)?.map(Global::Function));
        }
        if let Some(own) = self.defined_as(&file, simple) {
            return self.global(&format!("{qualifier}.{own}"));
        }
        for (index, statement) in self.candidates(&file, simple)? {
            match statement {
                Stmt::FunctionDef(def)
                    if def.name.as_str() == simple && decorators::marker(&file, def)? != Marker::Overload =>
                {
                    let path = DefPath {
                        statement: index,
                        method: None,
                    };
                    if let Some(overloaded) = self.define_overloads(&file, def, path, symbol)? {
                        return Ok(Some(overloaded));
                    }
                    let id = self.define_function(&file, def, path, symbol, None)?;
                    self.globals.insert(symbol, Global::Function(id));
                    return Ok(Some(Global::Function(id)));
                }
                // `f = choose(flag, 1, when_true, when_false)`
                Stmt::Assign(assign)
                    if file.qualifier.is_some_and(|qualifier| qualifier != BY_HAND)
                        && matches!(assign.targets.as_slice(), [Expr::Name(target)] if target.id.as_str() == simple) =>
                {
                    if let Some(choice) = overloads::choice(qualifier, &assign.value) {
                        return Ok(Some(self.add_choice(symbol, choice)));
                    }
                }
                // Classes of modules come about by making modules.
                Stmt::ClassDef(def)
                    if def.name.as_str() == simple
                        && (file.qualifier.is_none() || !construct::is_module_class(self, &file, index)?) =>
                {
                    let ty = self.define_class(&file, def, index, symbol)?;
                    return Ok(Some(Global::Type(ty)));
                }
                // `P = NamedTuple("P", [("x", int)])`
                Stmt::Assign(assign)
                    if file.qualifier.is_some()
                        && matches!(assign.targets.as_slice(), [Expr::Name(target)] if target.id.as_str() == simple) =>
                {
                    if let Some(ty) = self.named_tuple_call(&file, &assign.value, symbol)? {
                        return Ok(Some(Global::Type(ty)));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    pub(crate) fn file(&mut self, qualifier: &str) -> Result<Option<Arc<SourceFile>>> {
        if let Some(file) = self.files.get(qualifier) {
            return Ok(file.clone());
        }
        if qualifier == upgrade::QUALIFIER {
            let file = Arc::new(SourceFile::parse(upgrade::FILE, upgrade::UPGRADERS, None, self.stack)?);
            self.files.insert(qualifier.to_owned(), Some(Arc::clone(&file)));
            return Ok(Some(file));
        }
        if self.by_hand
            && let Some((name, text, qualifier)) = library::find(qualifier)
        {
            let file = Arc::new(SourceFile::parse(name, text, None, self.stack)?.under(qualifier));
            self.files.insert(qualifier.to_owned(), Some(Arc::clone(&file)));
            return Ok(Some(file));
        }
        let file = match self.sources.find(qualifier)? {
            Some(source) => {
                for piece in source.map.iter().flat_map(SourceMap::pieces) {
                    let file = self.ctx.symbol(&piece.file);
                    self.unit.sources.add(file, piece.first_line, Arc::clone(&piece.text));
                }
                Some(Arc::new(SourceFile::parse(
                    &source.file,
                    &source.text,
                    source.map,
                    self.stack,
                )?))
            }
            None => None,
        };
        self.files.insert(qualifier.to_owned(), file.clone());
        Ok(file)
    }

    /// The type that a dotted name stands for.
    pub(crate) fn class_type(&mut self, file: &SourceFile, node: &impl Ranged, name: &str) -> Result<TypeId> {
        let qualified = match file.qualifier {
            Some(qualifier) if !name.starts_with("__torch__.") => format!("{qualifier}.{name}"),
            _ => name.to_owned(),
        };
        if self.defining.contains(&qualified) {
            let message = format!("the NamedTuple `{name}` contains itself");
            return Err(file.error("cyclic-class", message, node).into());
        }
        let mut found = self.global(&qualified)?;
        // Another file of the library, by its dotted name.
        if let (None, true, Some(path)) = (
            found,
            self.by_hand,
            library::name_of(name).filter(|_| name.contains('.')),
        ) {
            found = self.global(&path)?;
        }
        match found {
            Some(Global::Type(ty)) => Ok(ty),
            // Classes that C++ code registers are opaque here.
            None if name.starts_with(FOREIGN_CLASSES) => Ok(self.ctx.class(name)),
            _ => Err(file
                .error("unknown-type", format!("Unknown type name '{name}'"), node)
                .into()),
        }
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
        Ok(self.add_body(file, path, schema, class.is_some()))
    }

    /// Adds a function whose body is not compiled yet.
    pub(crate) fn add_body(
        &mut self,
        file: &Arc<SourceFile>,
        path: DefPath,
        schema: FunctionSchema,
        is_method: bool,
    ) -> FunctionId {
        let declared = !schema.returns.is_empty();
        let graph = Graph::new(Arc::clone(&self.ctx));
        let name = schema.name;
        let id = self.unit.add_function(Function { name, schema, graph });
        self.bodies.insert(
            id,
            Body {
                file: Arc::clone(file),
                path,
                declared,
                is_method,
                state: BodyState::Waiting,
            },
        );
        self.order.push(id);
        id
    }

    /// Where the function `id` stands in the text, if Python would run it: nothing says that it is compiled.
    pub(crate) fn python_function(&self, id: FunctionId) -> Option<(Arc<SourceFile>, DefPath)> {
        let body = self.bodies.get(&id).filter(|body| body.file.is_by_hand())?;
        let def = body.path.def(&body.file)?;
        let is_plain = !decorators::is_compiled(&body.file, def) && !self.scripted.contains(&body.path.statement);
        (is_plain && body.path.method.is_none()).then(|| (Arc::clone(&body.file), body.path))
    }

    /// The schema that a definition states. What it returns is left out when the definition does not say.
    pub(crate) fn signature(
        &mut self,
        file: &SourceFile,
        def: &StmtFunctionDef,
        name: SymbolId,
        class: Option<TypeId>,
    ) -> Result<FunctionSchema> {
        if def.is_async {
            let message = "async function definitions aren't supported";
            return Err(file.error("statement", message, &def.name).into());
        }
        let defaulted = def
            .parameters
            .kwonlyargs
            .iter()
            .find(|p| p.default.is_some() && file.qualifier == Some(BY_HAND));
        let star = def.parameters.vararg.as_ref().or(def.parameters.kwarg.as_ref());
        if let Some(range) = star.map(|p| p.range()).or(defaulted.map(Ranged::range)) {
            let message = "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults";
            return Err(file.error("signature", message, &range).into());
        }
        let comments = comments::signature(file, def)?;
        let mut arguments = Vec::new();
        let positional = def.parameters.posonlyargs.iter().chain(def.parameters.args.iter());
        let all = positional
            .map(|p| (p, false))
            .chain(def.parameters.kwonlyargs.iter().map(|p| (p, true)));
        for (index, (parameter, keyword_only)) in all.enumerate() {
            let commented = comments.as_ref().map(|comments| {
                comments
                    .parameters
                    .get(index.wrapping_sub(usize::from(class.is_some())))
            });
            let mut hint = TypeHint::None;
            let ty = match (&parameter.parameter.annotation, class, commented) {
                (_, Some(class), _) if index == 0 => class,
                (_, _, Some(Some(text))) => self.annotation_text(file, text, parameter)?,
                (Some(annotation), _, _) => self.annotation(file, annotation)?,
                _ => {
                    hint = TypeHint::Inferred;
                    types::TENSOR
                }
            };
            let broadcast = parameter
                .parameter
                .annotation
                .as_deref()
                .and_then(annotation::broadcast);
            let default = match (parameter.default.as_deref(), broadcast, self.ctx.type_kind(ty)) {
                // `padding: BroadcastingList2[int] = 0`
                (Some(default @ Expr::NumberLiteral(_)), Some(count), TypeKind::List(element)) => {
                    let item = self.constant_expr(file, default, Some(element))?;
                    Some(Constant::list(element, vec![item; count as usize]))
                }
                (Some(default), ..) => Some(self.default_value(file, default, &parameter.parameter.name, ty)?),
                (None, ..) => None,
            };
            let name = self.ctx.symbol(&parameter.parameter.name);
            arguments.push(Argument {
                default,
                keyword_only,
                broadcast,
                hint,
                ..Argument::plain(name, ty)
            });
        }
        let returns = match (&def.returns, &comments) {
            (_, Some(comments)) => Some(self.annotation_text(file, &comments.returns, &def.name)?),
            (Some(annotation), None) => Some(self.annotation(file, annotation)?),
            (None, None) => None,
        };
        let returns = returns
            .map(|ty| Argument::plain(symbols::EMPTY, ty))
            .into_iter()
            .collect();
        Ok(FunctionSchema {
            name,
            overload: symbols::EMPTY,
            arguments,
            returns,
            is_vararg: false,
            is_varret: false,
        })
    }

    /// Whether code that calls the function raises instead.
    pub(crate) fn is_unused(&self, id: FunctionId) -> bool {
        let Some(body) = self.bodies.get(&id) else { return false };
        let marker = body.path.def(&body.file).map(|def| decorators::marker(&body.file, def));
        matches!(marker, Some(Ok(Marker::Unused)))
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
                BodyState::Compiling => return self.recursive(id, file, node),
                BodyState::Done => {}
                BodyState::Failed => return Err(self.refusals.error_of(id)),
            }
        }
        if self.by_hand {
            // PyTorch compiles what is called before the caller, and so finds recursion.
            match self.bodies.get(&id).map(|body| (body.state, body.is_method)) {
                Some((BodyState::Waiting, false)) => self.compile(id)?,
                Some((BodyState::Compiling, false)) => return self.recursive(id, file, node),
                Some((BodyState::Failed, _)) => return Err(self.refusals.error_of(id)),
                _ => {}
            }
        }
        Ok(self.unit.function(id).schema.clone())
    }

    fn recursive<T>(&self, id: FunctionId, file: &SourceFile, node: &impl Ranged) -> Result<T> {
        let name = self.ctx.name(self.unit.function(id).name);
        let message = format!(
            "function '{}' is called recursively. Recursive calls are not supported",
            name.rsplit('.').next().unwrap_or(name)
        );
        Err(file.error("recursion", message, node).into())
    }

    /// Compiles every function that has been defined, and those that their bodies define in turn.
    pub(crate) fn compile_all(&mut self) -> Result<()> {
        self.check_hooks()?;
        let mut next = 0;
        while let Some(&id) = self.order.get(next) {
            next += 1;
            let compiled = self.compile(id);
            let name = self.ctx.name(self.unit.function(id).name).to_owned();
            self.note_refusal(&name, compiled)?;
        }
        self.check_hooks()
    }

    fn compile(&mut self, id: FunctionId) -> Result<()> {
        let compiled = self.compile_body(id);
        if let Err(LoadError::Source(error)) = &compiled {
            self.refusals.keep(id, error);
            if let Some(body) = self.bodies.get_mut(&id) {
                body.state = BodyState::Failed;
            }
        }
        compiled
    }

    fn compile_body(&mut self, id: FunctionId) -> Result<()> {
        let Some(body) = self.bodies.get_mut(&id).filter(|body| body.state == BodyState::Waiting) else {
            return Ok(());
        };
        body.state = BodyState::Compiling;
        let (file, path) = (Arc::clone(&body.file), body.path);
        let Some(def) = path.def(&file) else { return Ok(()) };
        let schema = self.unit.function(id).schema.clone();
        let is_traced = self.traces.context.inlined.contains(&id);
        let outer = std::mem::replace(&mut self.traces.is_tracing, is_traced);
        let compiled = self.emit_body(id, &file, def, &schema);
        self.traces.is_tracing = outer;
        let (graph, returned) = compiled?;
        let name = self.ctx.name(self.unit.function(id).name);
        check_graph(&graph, name).map_err(|error| file.error("nesting", error.to_string(), &def.name))?;
        let function = self.unit.function_mut(id);
        function.graph = graph;
        if function.schema.returns.is_empty() {
            function.schema.returns = vec![Argument::plain(symbols::EMPTY, returned)];
        }
        if let Some(body) = self.bodies.get_mut(&id) {
            body.state = BodyState::Done;
        }
        Ok(())
    }

    fn emit_body(
        &mut self,
        id: FunctionId,
        file: &Arc<SourceFile>,
        def: &StmtFunctionDef,
        schema: &FunctionSchema,
    ) -> Result<(Graph, TypeId)> {
        if self.traces.context.inlined.contains(&id) {
            return emit::function(self, file, def, schema);
        }
        match decorators::marker(file, def)? {
            marker @ (Marker::Unused | Marker::Ignored) => {
                emit::unused(self, file, def, schema, marker == Marker::Ignored)
            }
            _ => emit::function(self, file, def, schema),
        }
    }
}
