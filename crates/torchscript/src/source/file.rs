//! Parsed source files of TorchScript.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use frazil_ir::{Context, Diagnostic, SourceRange, Span};
use frazil_limits::Held;
use ruff_python_ast::{Expr, ModModule, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use super::depth::too_deep;
use super::rules::Rules;
use super::stack::Stack;
use crate::archive::SourceMap;
use crate::error::SourceError;

/// Maximum size of a source file in bytes, because spans are 32 bits wide.
const MAX_SOURCE_BYTES: usize = 1 << 30;

/// Estimated memory of the parser per token in bytes, including its part of the syntax tree.
const TOKEN_BYTES: usize = 80;

/// Returns the approximate number of tokens in `text`: words, numbers, and all remaining characters except spaces.
fn tokens(text: &str) -> usize {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut in_word = false;
    let mut count = 0;
    for byte in text.bytes() {
        let was = std::mem::replace(&mut in_word, is_word(byte));
        count += usize::from(if in_word {
            !was
        } else {
            !matches!(byte, b' ' | b'\t' | b'\r')
        });
    }
    count
}

/// A parsed source file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    map: Option<SourceMap>,
    /// The byte offset of the start of each line.
    lines: Vec<u32>,
    /// The rules by which the file is compiled.
    pub(crate) rules: Rules,
    /// The names that imports at the top level bind, with the dotted names of the imported objects.
    imports: HashMap<String, String>,
    /// Aliases of dotted names (`act = F.relu`), known after the source text has run.
    aliases: OnceLock<HashMap<String, String>>,
    module: ModModule,
    /// Functions and classes inside `if`, `for`, `with` and `try` at the top level. Their indices follow the indices of the top-level statements.
    nested: Vec<Stmt>,
    /// Index of each function and class statement, keyed by the byte offset at which it starts.
    numbers: HashMap<u32, usize>,
    /// Indices of the function and class statements of each name, in the order of the text.
    definitions: HashMap<String, Vec<usize>>,
    /// Indices of the top-level assignments to a single name, keyed by that name.
    assignments: HashMap<String, Vec<usize>>,
    /// The part of the memory budget that the text and the syntax tree use.
    _held: Held,
}

impl SourceFile {
    /// Parses `text`. The available `stack` limits the nesting depth.
    pub(crate) fn parse(
        name: &str,
        text: &str,
        map: Option<SourceMap>,
        stack: Stack,
    ) -> Result<SourceFile, Box<SourceError>> {
        let (name, text): (Arc<str>, Arc<str>) = (name.into(), text.into());
        let fail = |code, message: String, span, label: &str| {
            Err(Box::new(SourceError {
                file: Arc::clone(&name),
                text: Arc::clone(&text),
                diagnostic: Diagnostic::error(code, message, span, label),
                original: None,
            }))
        };
        if text.len() > MAX_SOURCE_BYTES {
            return fail(
                "source-too-long",
                format!("the source has {} bytes", text.len()),
                Span::default(),
                "",
            );
        }
        let held = match frazil_limits::hold(text.len() + TOKEN_BYTES * tokens(&text)) {
            Ok(held) => held,
            Err(exceeded) => return fail("limit", exceeded.to_string(), Span::default(), ""),
        };
        let levels = stack.parser_levels();
        if let Some(at) = too_deep(&text, levels) {
            let message = format!("more than {levels} levels of nesting");
            return fail("nesting", message, Span::new(at, at + 1), "one level too deep");
        }
        let module = match ruff_python_parser::parse_module(&text) {
            Ok(parsed) => parsed.into_syntax(),
            Err(e) => {
                let span = Span::new(e.location.start().to_usize(), e.location.end().to_usize());
                return fail("syntax", format!("syntax error: {}", e.error), span, "here");
            }
        };
        let newlines = text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .map(|(i, _)| i as u32 + 1);
        let lines = std::iter::once(0).chain(newlines).collect();
        let imports = imports(&module.body);
        let mut file = SourceFile {
            rules: Rules::Archive,
            imports,
            aliases: OnceLock::new(),
            name,
            text,
            map,
            lines,
            nested: module.body.iter().flat_map(nested_definitions).cloned().collect(),
            numbers: HashMap::new(),
            definitions: HashMap::new(),
            assignments: HashMap::new(),
            _held: held,
            module,
        };
        file.number_definitions();
        Ok(file)
    }

    fn number_definitions(&mut self) {
        for (number, statement) in self.module.body.iter().chain(&self.nested).enumerate() {
            let name = match statement {
                Stmt::FunctionDef(def) => &def.name,
                Stmt::ClassDef(def) => &def.name,
                Stmt::Assign(assign) => {
                    if let [Expr::Name(target)] = assign.targets.as_slice() {
                        let numbers = self.assignments.entry(target.id.to_string()).or_default();
                        numbers.push(number);
                    }
                    continue;
                }
                _ => continue,
            };
            self.numbers.insert(statement.start().to_u32(), number);
            self.definitions.entry(name.to_string()).or_default().push(number);
        }
    }

    /// Returns the file, to be compiled by `rules`.
    pub(crate) fn under(mut self, rules: Rules) -> SourceFile {
        self.rules = rules;
        self
    }

    /// Returns the dotted name of the object that an import binds to `name`. For example, `F` is `torch.nn.functional`.
    pub(crate) fn imported(&self, name: &str) -> Option<&str> {
        let alias = || self.aliases.get().and_then(|aliases| aliases.get(name));
        self.imports.get(name).or_else(alias).map(String::as_str).or_else(|| {
            self.rules.qualifier()?;
            // What nearly every file imports is known without.
            Some(match name {
                "nn" => "torch.nn",
                "F" => "torch.nn.functional",
                "warnings" => "warnings",
                _ => return None,
            })
        })
    }

    /// Returns a dotted name with its first component replaced by the dotted name that an import binds to it.
    pub(crate) fn expand(&self, name: &str) -> String {
        let (head, rest) = name
            .split_once('.')
            .map_or((name, None), |(head, rest)| (head, Some(rest)));
        match (self.imported(head), rest) {
            (Some(path), Some(rest)) => format!("{path}.{rest}"),
            (Some(path), None) => path.to_owned(),
            (None, _) => name.to_owned(),
        }
    }

    /// Sets the aliases of dotted names. Only the first call has an effect.
    pub(crate) fn set_aliases(&self, aliases: HashMap<String, String>) {
        // A file is run once.
        let _ = self.aliases.set(aliases);
    }

    /// Returns the top-level statements of the file.
    pub(crate) fn body(&self) -> &[Stmt] {
        &self.module.body
    }

    /// Returns the classes that are defined outside of functions.
    pub(crate) fn classes(&self) -> impl Iterator<Item = &StmtClassDef> {
        self.module
            .body
            .iter()
            .chain(&self.nested)
            .filter_map(Stmt::as_class_def_stmt)
    }

    /// Returns the statement with index `number`: a top-level statement, or a function or class inside one.
    pub(crate) fn statement(&self, number: usize) -> Option<&Stmt> {
        match number.checked_sub(self.module.body.len()) {
            Some(nested) => self.nested.get(nested),
            None => self.module.body.get(number),
        }
    }

    /// Returns the index of a function or class statement.
    pub(crate) fn number_of(&self, definition: &impl Ranged) -> Option<usize> {
        self.numbers.get(&definition.start().to_u32()).copied()
    }

    /// Returns the numbers of the statements that assign to `name` alone, in the order of the text.
    pub(crate) fn assignments(&self, name: &str) -> &[usize] {
        self.assignments.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the numbers of the functions and classes called `name`, in the order of the text.
    pub(crate) fn definitions(&self, name: &str) -> &[usize] {
        self.definitions.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the source range of the code at `range`: in the original program if the archive has debug records, otherwise in this file.
    pub(crate) fn range(&self, ctx: &Context, range: TextRange) -> SourceRange {
        let start = range.start().to_u32();
        let original = self
            .map
            .as_ref()
            .and_then(|map| map.find(start.into()))
            .filter(|place| !place.file.is_empty());
        match original {
            Some(place) => SourceRange {
                file: ctx.symbol(&place.file),
                line: place.line,
                column: place.column,
                length: place.length,
            },
            None => {
                let line = self.lines.partition_point(|&begin| begin <= start);
                let begin = line
                    .checked_sub(1)
                    .and_then(|i| self.lines.get(i))
                    .copied()
                    .unwrap_or(0);
                SourceRange {
                    file: ctx.symbol(&self.name),
                    line: line as u32,
                    column: start - begin,
                    length: range.len().to_u32(),
                }
            }
        }
    }

    /// Returns an error at `node`.
    pub(crate) fn error(&self, code: &'static str, message: impl Into<String>, node: &impl Ranged) -> Box<SourceError> {
        let span = Span::new(node.start().to_usize(), node.end().to_usize());
        Box::new(SourceError {
            file: Arc::clone(&self.name),
            text: Arc::clone(&self.text),
            diagnostic: Diagnostic::error(code, message, span, ""),
            original: self
                .map
                .as_ref()
                .and_then(|map| map.find(node.start().to_u32().into()))
                .cloned(),
        })
    }
}

/// Returns the function and class statements inside a compound statement.
fn nested_definitions(statement: &Stmt) -> Vec<&Stmt> {
    let mut found = Vec::new();
    let mut waiting = inner_suites(statement);
    while let Some(suite) = waiting.pop() {
        for statement in suite {
            match statement {
                Stmt::FunctionDef(_) | Stmt::ClassDef(_) => found.push(statement),
                other => waiting.extend(inner_suites(other)),
            }
        }
    }
    found.sort_by_key(|statement| statement.start());
    found
}

/// Returns the nested blocks of a compound statement that is not a definition.
fn inner_suites(statement: &Stmt) -> Vec<&[Stmt]> {
    match statement {
        Stmt::If(statement) => {
            let clauses = statement.elif_else_clauses.iter().map(|clause| clause.body.as_slice());
            std::iter::once(statement.body.as_slice()).chain(clauses).collect()
        }
        Stmt::For(statement) => vec![&statement.body, &statement.orelse],
        Stmt::While(statement) => vec![&statement.body, &statement.orelse],
        Stmt::With(statement) => vec![&statement.body],
        Stmt::Try(statement) => {
            let mut suites: Vec<&[Stmt]> = vec![&statement.body, &statement.orelse, &statement.finalbody];
            suites.extend(statement.handlers.iter().map(|handler| match handler {
                ruff_python_ast::ExceptHandler::ExceptHandler(handler) => handler.body.as_slice(),
            }));
            suites
        }
        _ => Vec::new(),
    }
}

/// Returns the names that import statements bind, with the dotted names of the imported objects.
pub(crate) fn imports(body: &[Stmt]) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for statement in body {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    if let Some(name) = &alias.asname {
                        names.insert(name.to_string(), alias.name.to_string());
                    } else if let Some(head) = alias.name.split('.').next() {
                        names.insert(head.to_owned(), head.to_owned());
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let mut module = ".".repeat(import.level as usize);
                module += import.module.as_ref().map_or("", |module| module.as_str());
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    names.insert(name.to_string(), format!("{module}.{}", alias.name));
                }
            }
            _ => {}
        }
    }
    names
}

/// The location of a function's definition in its file: the statement, and the statement in its class.
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
