//! The program of an archive or text: its classes and functions, looked up by qualified name and defined on first use.

mod class;
mod hooks;
mod link;
mod modules;
mod overloads;
mod refused;

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::nesting::check_graph;
use frazil_ir::schema::{Argument, Catalogue, FunctionSchema, TypeHint};
use frazil_ir::{ClassDef, Constant, FunctionId, Graph, SymbolId, TypeId, TypeKind, symbols, types};
use frazil_passes::Operators;
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use crate::archive::{Archive, SourceMap};
use crate::emit::{self, upgrade};
use crate::error::{LoadError, Result};
use crate::library;
use crate::names::{
    Annotations, BodyState, ClassRef, Constants, Definitions, Global, MethodTable, Names, broadcast, choice,
    is_module_class,
};
use crate::options::LoadOptions;
use crate::source::decorators::{self, Marker};
use crate::source::{DefPath, Rules, SOURCE_QUALIFIER, SourceFile, Stack, comments};
use refused::Refusals;

pub use link::Known;

/// The text of a source file with its debug record.
pub(crate) struct SourceText {
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) map: Option<SourceMap>,
}

/// Finds the source file for a qualifier (`__torch__.a.b`).
pub(crate) trait Sources {
    /// Returns the source of the file with the definitions of `qualifier`, if there is one.
    fn find(&self, qualifier: &str) -> Result<Option<SourceText>>;
}

/// Source files in the directory `code/` of an archive.
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

/// A provider without source files, for a program that consists of a single text.
pub(crate) struct NoSources;

impl Sources for NoSources {
    fn find(&self, _: &str) -> Result<Option<SourceText>> {
        Ok(None)
    }
}

/// A program: its definitions, and the source files in which further definitions are looked up.
pub(crate) struct SourceProgram<'a> {
    pub(crate) definitions: Definitions,
    catalogue: &'a Catalogue,
    /// See [`LoadOptions::operators`].
    pub(crate) operators: Option<&'a dyn Operators>,
    sources: &'a dyn Sources,
    files: HashMap<String, Option<Arc<SourceFile>>>,
    /// The definitions that failed to compile.
    pub(crate) refusals: Refusals,
    /// The number of classes whose hooks have been checked.
    hooks_checked: usize,
}

impl<'a> SourceProgram<'a> {
    pub(crate) fn new(options: &LoadOptions<'a>, sources: &'a dyn Sources, stack: Stack) -> SourceProgram<'a> {
        SourceProgram {
            definitions: Definitions::new(options, stack),
            catalogue: options.catalogue,
            operators: None,
            sources,
            files: HashMap::new(),
            refusals: Refusals::default(),
            hooks_checked: 0,
        }
    }

    /// Starts a program that consists of a single text, and returns the parsed text.
    pub(crate) fn start_text(&mut self, name: &str, text: &str) -> Result<Arc<SourceFile>> {
        self.definitions.rules = Rules::Source;
        let file = Arc::new(SourceFile::parse(name, text, None, self.definitions.stack)?.under(Rules::Source));
        self.definitions
            .unit
            .sources
            .add(self.definitions.ctx.symbol(name), 1, Arc::clone(&file.text));
        self.files.insert(SOURCE_QUALIFIER.to_owned(), Some(Arc::clone(&file)));
        Ok(file)
    }

    /// Defines all functions and classes of a single text, after its top level has been run.
    pub(crate) fn define_text(&mut self, file: &Arc<SourceFile>) -> Result<()> {
        for (name, number, is_traced) in self.definitions.compiled_names() {
            if self.refusals.skips(&name) {
                continue;
            }
            let compiled = match (is_traced, file.statement(number)) {
                (true, _) => self.definitions.traced_function(number).map(drop),
                (false, Some(Stmt::FunctionDef(def))) => {
                    let symbol = self.definitions.ctx.symbol(&format!("{SOURCE_QUALIFIER}.{name}"));
                    let path = DefPath {
                        statement: number,
                        method: None,
                    };
                    self.define_function(file, def, path, symbol, None).map(drop)
                }
                _ => Ok(()),
            };
            self.note_refusal(&name, compiled)?;
        }
        for number in self.definitions.definitions(file) {
            let (name, is_function) = match file.statement(number) {
                Some(Stmt::FunctionDef(def)) => (&def.name, true),
                Some(Stmt::ClassDef(def)) if !class::is_exception(file, def) => (&def.name, false),
                _ => continue,
            };
            if (is_function || !is_module_class(self, file, number)?) && !self.refusals.skips(name) {
                let defined = self.global_of(file, name);
                self.note_refusal(name, defined.map(|_| ()))?;
            }
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
        Ok(self.definitions.add_body(file, path, schema, class.is_some()))
    }

    /// Returns the schema of a definition. Its returns are empty if the definition has no return type.
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
            .find(|p| p.default.is_some() && file.rules.is_source());
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
            let broadcast = parameter.parameter.annotation.as_deref().and_then(broadcast);
            let default = match (
                parameter.default.as_deref(),
                broadcast,
                self.definitions.ctx.type_kind(ty),
            ) {
                // `padding: BroadcastingList2[int] = 0`
                (Some(default @ Expr::NumberLiteral(_)), Some(count), TypeKind::List(element)) => {
                    let item = self.constant_expr(file, default, Some(element))?;
                    Some(Constant::list(element, vec![item; count as usize]))
                }
                (Some(default), ..) => Some(self.default_value(file, default, &parameter.parameter.name, ty)?),
                (None, ..) => None,
            };
            let name = self.definitions.ctx.symbol(&parameter.parameter.name);
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

    fn recursive<T>(&self, id: FunctionId, file: &SourceFile, at: TextRange) -> Result<T> {
        let name = self.definitions.ctx.name(self.definitions.unit.function(id).name);
        let message = format!(
            "function '{}' is called recursively. Recursive calls are not supported",
            name.rsplit('.').next().unwrap_or(name)
        );
        Err(file.error("recursion", message, &at).into())
    }

    /// Compiles every defined function, and the functions that their bodies define in turn.
    pub(crate) fn compile_all(&mut self) -> Result<()> {
        self.check_hooks()?;
        let mut next = 0;
        while let Some(&id) = self.definitions.order.get(next) {
            next += 1;
            let compiled = self.compile(id);
            let name = self
                .definitions
                .ctx
                .name(self.definitions.unit.function(id).name)
                .to_owned();
            self.note_refusal(&name, compiled)?;
        }
        self.check_hooks()
    }

    fn compile(&mut self, id: FunctionId) -> Result<()> {
        let compiled = self.compile_body(id);
        if let Err(LoadError::Source(error)) = &compiled {
            self.refusals.keep(id, error);
            if let Some(body) = self.definitions.bodies.get_mut(&id) {
                body.state = BodyState::Failed;
            }
        }
        compiled
    }

    fn compile_body(&mut self, id: FunctionId) -> Result<()> {
        let Some(body) = self
            .definitions
            .bodies
            .get_mut(&id)
            .filter(|body| body.state == BodyState::Waiting)
        else {
            return Ok(());
        };
        body.state = BodyState::Compiling;
        let (file, path) = (Arc::clone(&body.file), body.path);
        let Some(def) = path.def(&file) else { return Ok(()) };
        let schema = self.definitions.unit.function(id).schema.clone();
        let is_traced = self.definitions.traces.context.inlined.contains(&id);
        let outer = std::mem::replace(&mut self.definitions.traces.is_tracing, is_traced);
        let compiled = self.emit_body(id, &file, def, &schema);
        self.definitions.traces.is_tracing = outer;
        let (graph, returned) = compiled?;
        let name = self.definitions.ctx.name(self.definitions.unit.function(id).name);
        check_graph(&graph, name).map_err(|error| file.error("nesting", error.to_string(), &def.name))?;
        let function = self.definitions.unit.function_mut(id);
        function.graph = graph;
        if function.schema.returns.is_empty() {
            function.schema.returns = vec![Argument::plain(symbols::EMPTY, returned)];
        }
        if let Some(body) = self.definitions.bodies.get_mut(&id) {
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
        if self.definitions.traces.context.inlined.contains(&id) {
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

impl Names for SourceProgram<'_> {
    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn definitions_mut(&mut self) -> &mut Definitions {
        &mut self.definitions
    }

    fn catalogue(&self) -> &Catalogue {
        self.catalogue
    }

    fn operators(&self) -> Option<&dyn Operators> {
        self.operators
    }

    fn file(&mut self, qualifier: &str) -> Result<Option<Arc<SourceFile>>> {
        if let Some(file) = self.files.get(qualifier) {
            return Ok(file.clone());
        }
        if qualifier == upgrade::QUALIFIER {
            let file = Arc::new(SourceFile::parse(
                upgrade::FILE,
                upgrade::UPGRADERS,
                None,
                self.definitions.stack,
            )?);
            self.files.insert(qualifier.to_owned(), Some(Arc::clone(&file)));
            return Ok(Some(file));
        }
        if self.definitions.rules.is_written()
            && let Some((name, text, qualifier)) = library::find(qualifier)
        {
            let file =
                Arc::new(SourceFile::parse(name, text, None, self.definitions.stack)?.under(Rules::Library(qualifier)));
            self.files.insert(qualifier.to_owned(), Some(Arc::clone(&file)));
            return Ok(Some(file));
        }
        let file = match self.sources.find(qualifier)? {
            Some(source) => {
                for piece in source.map.iter().flat_map(SourceMap::pieces) {
                    let file = self.definitions.ctx.symbol(&piece.file);
                    self.definitions
                        .unit
                        .sources
                        .add(file, piece.first_line, Arc::clone(&piece.text));
                }
                Some(Arc::new(SourceFile::parse(
                    &source.file,
                    &source.text,
                    source.map,
                    self.definitions.stack,
                )?))
            }
            None => None,
        };
        self.files.insert(qualifier.to_owned(), file.clone());
        Ok(file)
    }

    fn global(&mut self, name: &str) -> Result<Option<Global>> {
        let symbol = self.definitions.ctx.symbol(name);
        if let Some(&global) = self.definitions.globals.get(&symbol) {
            return Ok(Some(global));
        }
        let (qualifier, simple) = name.rsplit_once('.').unwrap_or(("", name));
        let Some(file) = self.file(qualifier)? else {
            return Ok(None);
        };
        if let Some(error) = self.refusals.left_out.get(simple).filter(|_| file.rules.is_source()) {
            return Err(error.clone().into());
        }
        if let Some(number) = self.definitions.traced_as(&file, simple) {
            return Ok(self.definitions.traced_function(number)?.map(Global::Function));
        }
        if let Some(own) = self.definitions.defined_as(&file, simple) {
            return self.global(&format!("{qualifier}.{own}"));
        }
        for (index, statement) in self.definitions.candidates(&file, simple)? {
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
                    self.definitions.globals.insert(symbol, Global::Function(id));
                    return Ok(Some(Global::Function(id)));
                }
                // `f = choose(flag, 1, when_true, when_false)`
                Stmt::Assign(assign)
                    if file.rules.is_library()
                        && matches!(assign.targets.as_slice(), [Expr::Name(target)] if target.id.as_str() == simple) =>
                {
                    if let Some(choice) = choice(qualifier, &assign.value) {
                        return Ok(Some(self.definitions.add_choice(symbol, choice)));
                    }
                }
                // Classes of modules come about by making modules.
                Stmt::ClassDef(def)
                    if def.name.as_str() == simple
                        && (!file.rules.is_written() || !is_module_class(self, &file, index)?) =>
                {
                    let ty = self.define_class(&file, def, index, symbol)?;
                    return Ok(Some(Global::Type(ty)));
                }
                // `P = NamedTuple("P", [("x", int)])`
                Stmt::Assign(assign)
                    if file.rules.is_written()
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

    fn schema_of(&mut self, id: FunctionId, file: &SourceFile, at: TextRange) -> Result<FunctionSchema> {
        if let Some(body) = self.definitions.bodies.get(&id)
            && !body.declared
        {
            match body.state {
                BodyState::Waiting => self.compile(id)?,
                BodyState::Compiling => return self.recursive(id, file, at),
                BodyState::Done => {}
                BodyState::Failed => return Err(self.refusals.error_of(id)),
            }
        }
        if self.definitions.rules.is_written() {
            // PyTorch compiles what is called before the caller, and so finds recursion.
            match self
                .definitions
                .bodies
                .get(&id)
                .map(|body| (body.state, body.is_method))
            {
                Some((BodyState::Waiting, false)) => self.compile(id)?,
                Some((BodyState::Compiling, false)) => return self.recursive(id, file, at),
                Some((BodyState::Failed, _)) => return Err(self.refusals.error_of(id)),
                _ => {}
            }
        }
        Ok(self.definitions.unit.function(id).schema.clone())
    }

    fn module_method(&mut self, class: SymbolId, method: &str) -> Result<Option<FunctionId>> {
        self.find_module_method(class, method)
    }

    fn define_module_class(&mut self, class: ClassDef, chain: &[ClassRef], table: MethodTable) -> Result<()> {
        self.add_module_class(class, chain, table)
    }
}
