//! The program of an archive: its classes and functions, found by qualified name and defined when they are first needed.

mod class;
mod literal;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use frazil_ir::schema::{Argument, Catalogue, FunctionSchema, TypeHint};
use frazil_ir::{CompilationUnit, Constant, Context, Function, FunctionId, Graph, SymbolId, TypeId, symbols, types};
use ruff_python_ast::{Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use crate::archive::{Archive, SourceMap};
use crate::frontend::emit::upgrade;
use crate::frontend::source::SourceFile;
use crate::frontend::{LoadOptions, Result, emit, objects};

pub(crate) use literal::{complex_sum, number, string_value};

/// How the names of classes begin that C++ code registers: archives name them and do not define them.
pub(crate) const FOREIGN_CLASSES: &str = "__torch__.torch.classes.";

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
    /// The format version that the code was written for.
    pub(crate) version: u64,
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
            version: u64::MAX,
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
        if qualifier == upgrade::QUALIFIER {
            let file = Arc::new(SourceFile::parse(upgrade::FILE, upgrade::UPGRADERS, None)?);
            self.files.insert(qualifier.to_owned(), Some(Arc::clone(&file)));
            return Ok(Some(file));
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
            None if name.starts_with(FOREIGN_CLASSES) => Ok(self.ctx.class(name)),
            _ => Err(file
                .error("unknown-type", format!("unknown type `{name}`"), node)
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
