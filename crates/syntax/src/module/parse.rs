//! Reading module files.
//!
//! The text is a list of items, each beginning with a keyword at the start of a line. Items refer to one another in any direction, so they
//! are found first and then read by kind: types, data, enumerations, containers, classes, objects, functions. After an error in one item,
//! the others are still read.

use super::VERSION;
use super::tensors::{NoTensors, TensorSource};
use crate::diagnostics::{ParseError, Parsed, Reported};
use crate::parse::ParseOptions;
use crate::parse::cursor::Cursor;
use crate::parse::types::parse_type;
use crate::parse::value::{Env, parse_constant};
use crate::parse::{GraphParser, SpanTable};
use frazil_ir::nesting::Extent;
use frazil_ir::{
    ClassKind, CompilationUnit, Constant, Context, Diagnostic, Function, FunctionId, Module, Object, ObjectId, Span,
    SymbolId, TypeId, TypeKind, types,
};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::sync::Arc;

/// Reads a module file. `tensors` returns the bytes that are not in the text.
///
/// # Errors
/// All errors in the text, with their locations.
pub fn parse_module(ctx: &Arc<Context>, text: &str, tensors: &dyn TensorSource) -> Result<Module, ParseError> {
    parse_module_with(ctx, text, tensors, ParseOptions::default())
}

/// Reads a module file with options, which apply to the graphs in it.
///
/// # Errors
/// All errors in the text, with their locations.
pub fn parse_module_with(
    ctx: &Arc<Context>,
    text: &str,
    tensors: &dyn TensorSource,
    options: ParseOptions<'_>,
) -> Result<Module, ParseError> {
    parse_file(ctx, text, options, &mut |_| Box::new(tensors))
}

/// Reads a module file; `open` opens the tensor file that it names.
pub(super) fn parse_file<'s>(
    ctx: &Arc<Context>,
    text: &str,
    options: ParseOptions<'_>,
    open: &mut dyn FnMut(&str) -> Box<dyn TensorSource + 's>,
) -> Result<Module, ParseError> {
    let mut cur = Cursor::new(text);
    let module = Parser {
        cur: &mut cur,
        ctx,
        env: Env {
            exact: true,
            ..Env::default()
        },
        options,
        items: Vec::new(),
    }
    .module(open);
    let warnings = cur.sink.finish()?;
    // If there is no module, there is an error, and the line above has returned it.
    module.map_err(|Reported| ParseError { diagnostics: warnings })
}

/// Returns the part of a qualified name after the last dot, which is the default name of a function's schema.
pub(super) fn last_component(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The keywords that start items of a module file.
const KEYWORDS: [&str; 16] = [
    "tensors",
    "root",
    "type",
    "module",
    "class",
    "interface",
    "module_interface",
    "enum",
    "namedtuple",
    "function",
    "object",
    "value",
    "tensor",
    "storage",
    "extra",
    "record",
];

#[derive(Clone, Copy)]
struct Item {
    keyword: &'static str,
    /// Offset of the text after the item's keyword, in bytes.
    start: usize,
    /// Offset of the next item, in bytes.
    end: usize,
}

pub(super) struct Parser<'p, 'a> {
    pub(super) cur: &'p mut Cursor<'a>,
    pub(super) ctx: &'p Arc<Context>,
    pub(super) env: Env,
    options: ParseOptions<'p>,
    items: Vec<Item>,
}

impl Parser<'_, '_> {
    fn module<'s>(mut self, open: &mut dyn FnMut(&str) -> Box<dyn TensorSource + 's>) -> Parsed<Module> {
        self.header()?;
        self.find_items();
        self.declare();
        let ctx = self.ctx.clone();

        let mut source: Box<dyn TensorSource + 's> = Box::new(NoTensors);
        self.each("tensors", |p| {
            source = open(&p.file_name()?);
            p.belongs_to(&*source)
        });
        self.each("type", Self::named_type);
        let mut storages = HashMap::new();
        self.each("storage", |p| p.storage(&*source, &mut storages));
        self.each("tensor", |p| p.tensor(&storages));
        // The members of enumerations, for the values that refer to them; the definitions follow with the others.
        self.each("enum", |p| {
            let class = p.class(ClassKind::Enum)?;
            let value = |c: Constant| match c {
                Constant::Enum(member) => member.value.clone(),
                plain => plain,
            };
            let members = class.def.constants.into_iter().map(|(name, c)| (name, value(c)));
            p.env.enums.insert(class.def.name, members.collect());
            Ok(())
        });
        self.each("value", Self::shared_value);

        let mut unit = CompilationUnit::default();
        let mut methods = Vec::new();
        for index in 0..self.items.len() {
            let Some(item) = self.items.get(index).copied() else {
                continue;
            };
            let kind = match item.keyword {
                "module" => ClassKind::Module,
                "class" => ClassKind::Class,
                "interface" => ClassKind::Interface,
                "module_interface" => ClassKind::ModuleInterface,
                "enum" => ClassKind::Enum,
                "namedtuple" => ClassKind::NamedTuple,
                _ => continue,
            };
            let class = self.item(item, |p| p.class(kind));
            if let Ok(class) = class {
                let name = class.def.name;
                methods.extend(class.methods.into_iter().map(|m| (name, m)));
                if unit.classes.insert(name, class.def).is_some() {
                    let span = Span::new(item.start, item.start);
                    let message = format!("class `{}` is defined twice", ctx.name(name));
                    self.cur.sink.error("bad-module", message, span, "the second time");
                }
            }
        }
        let mut functions = Vec::new();
        self.each("function", |p| {
            functions.push(p.function()?);
            Ok(())
        });
        let mut spans = Vec::new();
        for (function, table) in functions {
            spans.push((unit.add_function(function), table));
        }
        for (class, (method, function, span)) in methods {
            match (unit.find_function(function), unit.classes.get_mut(&class)) {
                (Some(id), Some(def)) => {
                    def.methods.insert(method, id);
                }
                // The function may have been skipped after an error.
                _ if self.cur.sink.has_errors() => {}
                _ => {
                    let message = format!("there is no function `{}`", ctx.name(function));
                    self.cur
                        .sink
                        .error("bad-module", message, span, "not defined in this file");
                }
            }
        }

        if self.options.verify && !self.cur.sink.has_errors() {
            for (function, table) in &spans {
                self.verify_members(&unit, *function, table);
            }
        }

        let (mut objects, mut states) = (Vec::new(), Vec::new());
        self.each("object", |p| {
            let (object, state) = p.object(&unit)?;
            states.extend(state.map(|state| (ObjectId::from_u32(objects.len() as u32), state)));
            objects.push(object);
            Ok(())
        });
        let mut root = None;
        self.each("root", |p| {
            root = Some(p.object_reference()?);
            Ok(())
        });
        let [mut extra_files, mut records] = [IndexMap::new(), IndexMap::new()];
        for (keyword, files) in [("extra", &mut extra_files), ("record", &mut records)] {
            self.each(keyword, |p| {
                let (name, bytes) = p.extra(&*source)?;
                files.insert(name, bytes);
                Ok(())
            });
        }

        let mut objects = objects.into_iter();
        let (Some(root), Some(first)) = (root, objects.next()) else {
            let end = Span::new(self.cur.pos, self.cur.pos);
            // An error in the root has been recorded.
            if self.cur.sink.has_errors() {
                return Err(Reported);
            }
            return Err(self.cur.sink.report(
                Diagnostic::error("bad-module", "the module has no root object", end, "missing until here")
                    .with_help("a line `root object<0>` says which object the module is"),
            ));
        };
        // Objects are numbered in the order of their items, in which they are added here.
        let mut module = Module::new(ctx, unit, first.class, first.slots);
        for object in objects {
            module.add_object(object);
        }
        for (object, state) in states {
            module.set_state(object, Some(state));
        }
        module.root = root;
        module.extra_files = extra_files;
        module.records = records;
        if self.cur.sink.has_errors() {
            return Err(Reported);
        }
        module.order_states();
        Ok(module)
    }

    /// Reads the header: `frazil module 1`.
    fn header(&mut self) -> Parsed<()> {
        if !self.cur.eat_word("frazil") || !self.cur.eat_word("module") {
            return Err(self
                .cur
                .unexpected("`frazil module 1`, the first line of a module file"));
        }
        self.cur.skip_blanks();
        let start = self.cur.pos;
        let version = self.cur.integer("the version of the format")?;
        if version != VERSION {
            let span = self.cur.span_from(start);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "bad-version",
                    format!("this is a module file of version {version}"),
                    span,
                    "not known here",
                )
                .with_help(format!("this program reads version {VERSION}")),
            ));
        }
        Ok(())
    }

    /// Finds all items of the file, by the keywords at the starts of lines.
    fn find_items(&mut self) {
        self.cur.skip_space();
        let from = self.cur.pos;
        let mut at = from;
        for line in self.cur.rest().split_inclusive('\n') {
            let word_end = line
                .find(|c: char| !c.is_ascii_alphabetic() && c != '_')
                .unwrap_or(line.len());
            let word = line.get(..word_end).unwrap_or_default();
            let next = line.as_bytes().get(word_end);
            if let Some(keyword) = KEYWORDS.iter().find(|k| **k == word)
                && matches!(next, Some(b' ' | b'<'))
            {
                if let Some(last) = self.items.last_mut() {
                    last.end = at;
                }
                self.items.push(Item {
                    keyword,
                    start: at + word_end,
                    end: usize::MAX,
                });
            }
            at += line.len();
        }
        let first = self.items.first().map_or(at, |i| i.start - i.keyword.len());
        if let Some(last) = self.items.last_mut() {
            last.end = at;
        }
        if first > from {
            self.cur
                .unexpected("an item such as `class`, `function` or `object<0>`");
        }
    }

    /// Reads one item, which must extend to the start of the next one.
    fn item<T>(&mut self, item: Item, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.cur.pos = item.start;
        let result = read(self)?;
        self.cur.skip_space();
        if self.cur.pos < item.end {
            return Err(self.cur.unexpected("the next item"));
        }
        Ok(result)
    }

    /// Reads every item with the keyword `keyword`. After an error, the next item is read.
    fn each(&mut self, keyword: &str, mut read: impl FnMut(&mut Self) -> Parsed<()>) {
        for index in 0..self.items.len() {
            let Some(item) = self.items.get(index).copied() else {
                continue;
            };
            if item.keyword == keyword && !self.cur.sink.is_full() {
                let _ = self.item(item, &mut read);
            }
        }
    }

    pub(super) fn symbol(&mut self, what: &str) -> Parsed<SymbolId> {
        let name = self.cur.any_name(what)?;
        Ok(self.ctx.symbol(&name))
    }

    pub(super) fn ty(&mut self) -> Parsed<TypeId> {
        parse_type(self.cur, self.ctx, &self.env.nominal)
    }

    /// Reads the checksum after the name of the tensor file, if there is one, and compares it with the checksum of the tensor file.
    fn belongs_to(&mut self, source: &dyn TensorSource) -> Parsed<()> {
        self.cur.skip_space();
        if !self.cur.eat_word("crc32") {
            return Ok(());
        }
        self.cur.skip_space();
        let start = self.cur.pos;
        let text = self.cur.string()?;
        let said = u32::from_str_radix(&text, 16).ok();
        let span = self.cur.span_from(start);
        let Some(said) = said else {
            let what = "this is no checksum";
            return Err(self
                .cur
                .sink
                .error("bad-module", what, span, "expected hexadecimal digits"));
        };
        match source.checksum() {
            Some(found) if found != said => Err(self.cur.sink.report(
                Diagnostic::error(
                    "mixed-files",
                    "the tensor file belongs to another text",
                    span,
                    format!("its tensors have the checksum {found:08x}"),
                )
                .with_help("one of the two was replaced without the other: write both again"),
            )),
            _ => Ok(()),
        }
    }

    /// Reads the name of a file in the folder of the module file.
    fn file_name(&mut self) -> Parsed<String> {
        self.cur.skip_space();
        let start = self.cur.pos;
        let name = self.cur.string()?.into_owned();
        if name.is_empty() || name == ".." || name.contains(['/', '\\', '\0']) {
            let span = self.cur.span_from(start);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "bad-module",
                    "this is no name of a file beside this one",
                    span,
                    "a path",
                )
                .with_help("the tensor file stands in the same folder as the text"),
            ));
        }
        Ok(name)
    }

    /// Reads a number in angle brackets: `<12>`.
    pub(super) fn number(&mut self) -> Parsed<u32> {
        self.cur.expect(b'<', "before the number")?;
        let number = self.cur.integer("a number")?;
        self.cur.expect(b'>', "behind the number")?;
        u32::try_from(number).map_err(|_| self.cur.unexpected("a number that is not negative"))
    }

    /// Reads a named type after its keyword: ` __torch__.P = NamedTuple(x : int)` or ` __torch__.I = interface`.
    fn named_type(&mut self) -> Parsed<()> {
        let name = self.symbol("a type's qualified name")?;
        self.cur.expect(b'=', "behind the type's name")?;
        let ty = if self.cur.eat_word("interface") {
            self.ctx.type_of_kind(TypeKind::Interface(name))
        } else {
            self.cur.skip_space();
            let start = self.cur.pos;
            let ty = self.ty()?;
            match self.ctx.type_kind(ty) {
                TypeKind::NamedTuple(_, fields, elements) => {
                    self.ctx.type_of_kind(TypeKind::NamedTuple(name, fields, elements))
                }
                _ => {
                    let span = self.cur.span_from(start);
                    let message = "only interfaces and NamedTuples are named this way";
                    return Err(self.cur.sink.error("bad-module", message, span, "another type"));
                }
            }
        };
        self.env.nominal.insert(name, ty);
        Ok(())
    }

    #[cold]
    fn twice(&mut self, start: usize) {
        let span = self.cur.span_from(start);
        self.cur
            .sink
            .error("bad-module", "this number is taken", span, "defined a second time");
    }

    /// Collects the numbers of all items, and assigns ids to the objects, in the order of their items.
    fn declare(&mut self) {
        let mut next = 0;
        for item in self.items.clone() {
            if !matches!(item.keyword, "storage" | "tensor" | "value" | "object") {
                continue;
            }
            self.cur.pos = item.start;
            let Ok(number) = self.number() else { continue };
            let is_new = self.env.declared.insert((item.keyword, number));
            if item.keyword == "object" {
                self.env.objects.insert(number, ObjectId::from_u32(next));
                next += 1;
            }
            if !is_new {
                self.twice(item.start);
            }
        }
    }

    /// Reads a shared value after its keyword: `<0> : int[] = [1, 2]`.
    fn shared_value(&mut self) -> Parsed<()> {
        let number = self.number()?;
        self.cur.expect(b':', "behind the value's number")?;
        let ty = self.ty()?;
        self.cur.expect(b'=', "behind the value's type")?;
        let value = parse_constant(self.cur, self.ctx, &self.env, Some(ty))?;
        let (levels, values) = (self.cur.deepest, self.cur.values);
        self.env.shared.insert(number, (value, Extent { levels, values }));
        Ok(())
    }

    /// Reports nodes in `function` that contradict the members of classes or the signatures of functions.
    fn verify_members(&mut self, unit: &CompilationUnit, function: FunctionId, spans: &SpanTable) {
        let before = self.cur.sink.len();
        for (index, graph) in unit
            .function(function)
            .graph
            .self_and_subgraphs()
            .into_iter()
            .enumerate()
        {
            let Err(error) = graph.verify_members(unit) else {
                continue;
            };
            for failure in &error.failures {
                // The nodes of subgraphs are in tables of their own, which have been dropped; the message identifies
                // them.
                let diagnostic = match index {
                    0 => spans.locate(failure),
                    _ => Diagnostic::error(
                        "invalid-graph",
                        failure.to_string(),
                        Span::default(),
                        "in a subgraph of this file",
                    ),
                };
                self.cur.sink.report(diagnostic);
            }
        }
        let name = self.ctx.name(unit.function(function).name);
        self.cur.sink.name_function(before, name);
    }

    /// Reads a function after its keyword: ` name(...) -> (...)` and the graph.
    fn function(&mut self) -> Parsed<(Function, SpanTable)> {
        let name = self.symbol("a function's qualified name")?;
        let schema = self.schema(self.ctx.symbol(last_component(self.ctx.name(name))))?;
        let before = self.cur.sink.len();
        let parser = GraphParser::new(self.cur, self.ctx, &self.env, self.options);
        let (graph, spans) = parser.graph(0)?;
        self.cur.sink.name_function(before, self.ctx.name(name));
        Ok((Function { name, schema, graph }, spans))
    }

    /// Reads an object after its keyword: `<0> = __torch__.Net { name = value ... }`.
    fn object(&mut self, unit: &CompilationUnit) -> Parsed<(Object, Option<Constant>)> {
        self.number()?;
        self.cur.expect(b'=', "behind the object's number")?;
        self.cur.skip_space();
        let start = self.cur.pos;
        let class = self.symbol("a class's qualified name")?;
        let span = self.cur.span_from(start);
        if self.cur.eat_word("from") {
            // Classes that C++ code registers have no definition.
            let def = unit.class(class);
            let wanted = def.and_then(|def| def.restored_from(self.ctx, unit));
            let state = parse_constant(self.cur, self.ctx, &self.env, wanted)?;
            let slots = vec![Constant::None; def.map_or(0, |def| def.attributes.len())];
            return Ok((Object { class, slots }, Some(state)));
        }
        let Some(def) = unit.class(class) else {
            if self.cur.sink.has_errors() {
                // The class may have been skipped after an error.
                return Err(Reported);
            }
            let message = format!("there is no class `{}`", self.ctx.name(class));
            return Err(self
                .cur
                .sink
                .error("bad-module", message, span, "not defined in this file"));
        };
        self.cur.expect(b'{', "behind the class's name")?;
        let mut slots: Vec<Option<Constant>> = vec![None; def.attributes.len()];
        while !self.cur.eat(b'}') {
            self.cur.skip_space();
            let at = self.cur.pos;
            let name = self.symbol("an attribute's name or `}`")?;
            let name_span = self.cur.span_from(at);
            self.cur.expect(b'=', "behind the attribute's name")?;
            let found = def.attributes.get_full(&name);
            let wanted = found.map(|(_, _, a)| a.ty);
            let value = parse_constant(self.cur, self.ctx, &self.env, wanted)?;
            let slot = found.and_then(|(index, ..)| slots.get_mut(index));
            match slot {
                Some(slot) if slot.is_none() => *slot = Some(value),
                Some(_) => {
                    let message = format!("the attribute `{}` is given twice", self.ctx.name(name));
                    self.cur
                        .sink
                        .error("duplicate-attribute", message, name_span, "the second time");
                }
                None => {
                    let message = format!("the class has no attribute `{}`", self.ctx.name(name));
                    self.cur
                        .sink
                        .error("bad-module", message, name_span, "unknown attribute");
                }
            }
        }
        let missing: Vec<_> = def
            .attributes
            .keys()
            .zip(&slots)
            .filter(|(_, slot)| slot.is_none())
            .map(|(name, _)| self.ctx.name(*name))
            .collect();
        if !missing.is_empty() {
            let message = format!("the object has no value for {}", missing.join(", "));
            return Err(self.cur.sink.error("bad-module", message, span, "this object"));
        }
        let slots = slots.into_iter().flatten().collect();
        Ok((Object { class, slots }, None))
    }

    /// Reads a reference to an object: ` object<0>`.
    fn object_reference(&mut self) -> Parsed<ObjectId> {
        self.cur.skip_space();
        let start = self.cur.pos;
        match parse_constant(self.cur, self.ctx, &self.env, Some(types::ANY))? {
            Constant::Object(id) => Ok(id),
            _ => {
                let span = self.cur.span_from(start);
                Err(self
                    .cur
                    .sink
                    .error("bad-module", "the root is an object", span, "expected `object<0>`"))
            }
        }
    }
}
