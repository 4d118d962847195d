//! Reading module files.
//!
//! The text is a list of items, each beginning with a keyword at the start of a line. Items refer to one another in any direction, so they
//! are found first and then read by kind: types, data, enumerations, containers, classes, objects, functions. An error in one item does
//! not keep the others from being read.

use super::tensors::{NoTensors, TensorSource};
use super::{VERSION, element};
use crate::diagnostics::{ParseError, Parsed, Reported};
use crate::parse::GraphParser;
use crate::parse::ParseOptions;
use crate::parse::cursor::Cursor;
use crate::parse::types::parse_type;
use crate::parse::value::{Env, parse_constant};
use frazil_ir::schema::{Argument, FunctionSchema, TypeHint};
use frazil_ir::{
    AttributeKind, ClassDef, ClassKind, CompilationUnit, Constant, Context, DType, Device, Diagnostic, Dim, Function,
    Module, Object, ObjectId, Span, Storage, SymbolId, TensorData, TypeId, TypeKind, symbols, types,
};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::sync::Arc;

/// Reads a module file. `tensors` gives the bytes that do not stand in the text.
///
/// # Errors
/// Everything that is wrong with the text, with places.
pub fn parse_module(ctx: &Arc<Context>, text: &str, tensors: &dyn TensorSource) -> Result<Module, ParseError> {
    parse_file(ctx, text, &mut |_| Box::new(tensors))
}

/// Reads a module file; `open` gives the bytes of the file that it names.
pub(super) fn parse_file<'s>(
    ctx: &Arc<Context>,
    text: &str,
    open: &mut dyn FnMut(&str) -> Box<dyn TensorSource + 's>,
) -> Result<Module, ParseError> {
    let mut cur = Cursor::new(text);
    let module = Parser {
        cur: &mut cur,
        ctx,
        env: Env::default(),
        items: Vec::new(),
    }
    .module(open);
    let warnings = cur.sink.finish()?;
    // Without a module there is an error, and the line above has returned it.
    module.map_err(|Reported| ParseError { diagnostics: warnings })
}

/// The name behind the last dot: what a function's schema is called unless the text says otherwise.
pub(super) fn last_component(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// What an item can be.
const KEYWORDS: [&str; 15] = [
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
];

#[derive(Clone, Copy)]
struct Item {
    keyword: &'static str,
    /// Behind the keyword.
    start: usize,
    /// Where the next item begins.
    end: usize,
}

struct Parser<'p, 'a> {
    cur: &'p mut Cursor<'a>,
    ctx: &'p Arc<Context>,
    env: Env,
    items: Vec<Item>,
}

/// A class and its methods' functions, which are found when all functions are known.
struct ClassItem {
    def: ClassDef,
    methods: Vec<(SymbolId, SymbolId, Span)>,
}

impl<'a> Parser<'_, 'a> {
    fn module<'s>(mut self, open: &mut dyn FnMut(&str) -> Box<dyn TensorSource + 's>) -> Parsed<Module> {
        self.header()?;
        self.find_items();
        let ctx = self.ctx.clone();

        let mut source: Box<dyn TensorSource + 's> = Box::new(NoTensors);
        self.each("tensors", |p| {
            source = open(&p.file_name()?);
            Ok(())
        });
        self.each("type", Self::named_type);
        let mut storages = HashMap::new();
        self.each("storage", |p| p.storage(&*source, &mut storages));
        self.each("tensor", |p| p.tensor(&storages));
        self.number_objects();
        // The members of enumerations, for the values that speak of them; the definitions follow with the others.
        self.each("enum", |p| {
            let class = p.class(ClassKind::Enum)?;
            p.env.enums.insert(class.def.name, class.def.constants);
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
        for function in functions {
            unit.add_function(function);
        }
        for (class, (method, function, span)) in methods {
            match (unit.find_function(function), unit.classes.get_mut(&class)) {
                (Some(id), Some(def)) => {
                    def.methods.insert(method, id);
                }
                _ => {
                    let message = format!("there is no function `{}`", ctx.name(function));
                    self.cur
                        .sink
                        .error("bad-module", message, span, "not defined in this file");
                }
            }
        }

        let mut objects = Vec::new();
        self.each("object", |p| {
            let object = p.object(&unit)?;
            objects.push(object);
            Ok(())
        });
        let mut root = None;
        self.each("root", |p| {
            root = Some(p.object_reference()?);
            Ok(())
        });
        let mut extra_files = IndexMap::new();
        self.each("extra", |p| {
            let (name, bytes) = p.extra(&*source)?;
            extra_files.insert(name, bytes);
            Ok(())
        });

        let mut objects = objects.into_iter();
        let (Some(root), Some(first)) = (root, objects.next()) else {
            let end = Span::new(self.cur.pos, self.cur.pos);
            // A root that could not be read is on record.
            if self.cur.sink.has_errors() {
                return Err(Reported);
            }
            return Err(self.cur.sink.report(
                Diagnostic::error("bad-module", "the module has no root object", end, "missing until here")
                    .with_help("a line `root object<0>` says which object the module is"),
            ));
        };
        // Objects are numbered in the order of their items, which is the order in which they are added here.
        let mut module = Module::new(ctx, unit, first.class, first.slots);
        for object in objects {
            module.add_object(object);
        }
        module.root = root;
        module.extra_files = extra_files;
        if self.cur.sink.has_errors() {
            return Err(Reported);
        }
        Ok(module)
    }

    /// `frazil module 1`
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

    /// Finds the items, by the keywords at the starts of lines.
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

    /// Reads one item, all of it.
    fn item<T>(&mut self, item: Item, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.cur.pos = item.start;
        let result = read(self)?;
        self.cur.skip_space();
        if self.cur.pos < item.end {
            return Err(self.cur.unexpected("the next item"));
        }
        Ok(result)
    }

    /// Reads every item with this keyword. What is wrong is on record; the next item is read all the same.
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

    fn symbol(&mut self, what: &str) -> Parsed<SymbolId> {
        let name = self.cur.any_name(what)?;
        Ok(self.ctx.symbol(&name))
    }

    fn ty(&mut self) -> Parsed<TypeId> {
        parse_type(self.cur, self.ctx, &self.env.nominal)
    }

    /// A name of a file beside this one.
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

    /// `<12>`
    fn number(&mut self) -> Parsed<u32> {
        self.cur.expect(b'<', "before the number")?;
        let number = self.cur.integer("a number")?;
        self.cur.expect(b'>', "behind the number")?;
        u32::try_from(number).map_err(|_| self.cur.unexpected("a number that is not negative"))
    }

    /// ` __torch__.P = NamedTuple(x : int)` or ` __torch__.I = interface`
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

    /// `<3> = 256 bytes on cpu in "key"` or `<3> = 2 bytes "00ff"`
    fn storage(&mut self, source: &dyn TensorSource, storages: &mut HashMap<u32, Arc<Storage>>) -> Parsed<()> {
        let start = self.cur.pos;
        let number = self.number()?;
        self.cur.expect(b'=', "behind the storage's number")?;
        let (bytes, device) = self.bytes(source)?;
        let storage = Arc::new(Storage::new(bytes, device));
        if storages.insert(number, storage).is_some() {
            return Err(self.twice(start));
        }
        Ok(())
    }

    #[cold]
    fn twice(&mut self, start: usize) -> Reported {
        let span = Span::new(start, start + 1);
        self.cur
            .sink
            .error("bad-module", "this number is taken", span, "defined twice")
    }

    /// `256 bytes on cpu in "key"` or `2 bytes "00ff"`
    fn bytes(&mut self, source: &dyn TensorSource) -> Parsed<(super::tensors::SharedBytes, Device)> {
        let start = self.cur.pos;
        let len = self.cur.integer("the number of bytes")?;
        if !self.cur.eat_word("bytes") {
            return Err(self.cur.unexpected("`bytes`"));
        }
        let mut device = Device::CPU;
        if self.cur.eat_word("on") {
            self.cur.skip_space();
            let at = self.cur.pos;
            while !matches!(self.cur.peek(), b' ' | b'\n' | 0) {
                self.cur.pos += 1;
            }
            device = Device::parse(self.cur.since(at)).ok_or_else(|| {
                let span = self.cur.span_from(at);
                self.cur
                    .sink
                    .error("bad-module", "there is no such device", span, "not a device")
            })?;
        }
        let (bytes, what): (super::tensors::SharedBytes, _) = if self.cur.eat_word("in") {
            let at = self.cur.pos;
            let key = self.cur.string()?;
            match source.bytes(&key) {
                Some(bytes) => (bytes, "the tensor file has"),
                None => {
                    let span = self.cur.span_from(at);
                    return Err(self.cur.sink.report(
                        Diagnostic::error(
                            "unknown-reference",
                            format!("the tensor file has no entry `{key}`"),
                            span,
                            "not in the file",
                        )
                        .with_help("the line `tensors \"NAME.safetensors\"` names the file; it stands beside the text"),
                    ));
                }
            }
        } else {
            let at = self.cur.pos;
            let digits = self.cur.string()?;
            match element::from_hex(&digits) {
                Some(bytes) => (Arc::new(bytes), "the text has"),
                None => {
                    let span = self.cur.span_from(at);
                    return Err(self.cur.sink.error(
                        "bad-module",
                        "bytes are written as pairs of hexadecimal digits",
                        span,
                        "something else",
                    ));
                }
            }
        };
        let found = (*bytes).as_ref().len();
        if i64::try_from(found) != Ok(len) {
            let span = self.cur.span_from(start);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "bad-module",
                    format!("{len} bytes are wanted, {what} {found}"),
                    span,
                    "here",
                )
                .with_help("do text and tensor file belong together?"),
            ));
        }
        Ok((bytes, device))
    }

    /// `<1> = Float(2, strides=[1], requires_grad=0) [1., 2.]`, or `storage<3> offset 4` in place of the numbers
    fn tensor(&mut self, storages: &HashMap<u32, Arc<Storage>>) -> Parsed<()> {
        let start = self.cur.pos;
        let number = self.number()?;
        self.cur.expect(b'=', "behind the tensor's number")?;
        self.cur.skip_space();
        let at = self.cur.pos;
        let ty = self.ty()?;
        let known = match self.ctx.type_kind(ty) {
            TypeKind::Tensor(t) => Some(t),
            _ => None,
        };
        let numbers = |dims: Option<frazil_ir::DimsId>| -> Option<Vec<i64>> {
            let one = |d: &Dim| match d {
                Dim::Known(n) => Some(*n),
                Dim::Unknown | Dim::Symbolic(_) => None,
            };
            self.ctx.dims(dims?).iter().map(one).collect()
        };
        let (Some(dtype), Some(sizes), Some(strides)) = (
            known.and_then(|t| t.dtype),
            known.and_then(|t| numbers(t.sizes)),
            known.and_then(|t| numbers(t.strides)),
        ) else {
            let span = self.cur.span_from(at);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "bad-module",
                    "the type of a tensor must say all",
                    span,
                    "says too little",
                )
                .with_help("dtype, sizes and strides: `Float(2, 3, strides=[3, 1], requires_grad=0)`"),
            ));
        };
        self.cur.skip_space();
        let at = self.cur.pos;
        let (storage, offset) = if self.cur.eat_word("elided") {
            let span = self.cur.span_from(at);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "elided-constant",
                    "the elements were left out of the text",
                    span,
                    "no data",
                )
                .with_help("print the module without eliding constants"),
            ));
        } else if self.cur.peek() == b'[' {
            let bytes = self.elements(dtype)?;
            (Arc::new(Storage::new(Arc::new(bytes), Device::CPU)), 0)
        } else {
            if !self.cur.eat_word("storage") {
                return Err(self.cur.unexpected("`[`, `storage<...>` or `elided`"));
            }
            let number = self.number()?;
            let Some(storage) = storages.get(&number).cloned() else {
                let span = self.cur.span_from(at);
                let message = format!("there is no storage<{number}>");
                return Err(self
                    .cur
                    .sink
                    .error("unknown-reference", message, span, "refers to nothing"));
            };
            let offset = if self.cur.eat_word("offset") {
                self.cur.integer("the first element's number")?
            } else {
                0
            };
            (storage, offset)
        };
        let tensor = TensorData::new(dtype, sizes.as_slice(), strides.as_slice(), offset, storage);
        let mut tensor = tensor.map_err(|e| {
            let span = self.cur.span_from(at);
            self.cur.sink.error("bad-module", e.to_string(), span, "this data")
        })?;
        tensor.requires_grad = known.and_then(|t| t.requires_grad).unwrap_or(false);
        if self.env.tensors.insert(number, Arc::new(tensor)).is_some() {
            return Err(self.twice(start));
        }
        Ok(())
    }

    /// `[1., 2.5]`
    fn elements(&mut self, dtype: DType) -> Parsed<Vec<u8>> {
        let mut bytes = Vec::new();
        self.cur.expect(b'[', "before the elements")?;
        if self.cur.eat(b']') {
            return Ok(bytes);
        }
        loop {
            self.cur.skip_space();
            let start = self.cur.pos;
            let text = self.cur.number();
            if text.is_empty() {
                return Err(self.cur.unexpected("an element"));
            }
            if element::read(dtype, text, &mut bytes).is_none() {
                let span = self.cur.span_from(start);
                let message = format!("`{text}` is no element of a {} tensor", dtype.type_name());
                return Err(self.cur.sink.error("bad-number", message, span, "this number"));
            }
            if !self.cur.eat(b',') {
                break;
            }
        }
        self.cur.expect(b']', "behind the elements")?;
        Ok(bytes)
    }

    /// Gives the objects their ids, in the order of their items.
    fn number_objects(&mut self) {
        let mut next = 0;
        self.each_start("object", |p| {
            let start = p.cur.pos;
            let number = p.number()?;
            if p.env.objects.insert(number, ObjectId::from_u32(next)).is_some() {
                return Err(p.twice(start));
            }
            next += 1;
            Ok(())
        });
    }

    /// Reads the starts of the items with this keyword.
    fn each_start(&mut self, keyword: &str, mut read: impl FnMut(&mut Self) -> Parsed<()>) {
        for index in 0..self.items.len() {
            let Some(item) = self.items.get(index).copied() else {
                continue;
            };
            if item.keyword == keyword && !self.cur.sink.is_full() {
                self.cur.pos = item.start;
                let _ = read(self);
            }
        }
    }

    /// `<0> : int[] = [1, 2]`
    fn shared_value(&mut self) -> Parsed<()> {
        let start = self.cur.pos;
        let number = self.number()?;
        self.cur.expect(b':', "behind the value's number")?;
        let ty = self.ty()?;
        self.cur.expect(b'=', "behind the value's type")?;
        let value = parse_constant(self.cur, self.ctx, &self.env, Some(ty))?;
        if self.env.shared.insert(number, value).is_some() {
            return Err(self.twice(start));
        }
        Ok(())
    }

    /// ` __torch__.Net { ... }`
    fn class(&mut self, kind: ClassKind) -> Parsed<ClassItem> {
        let name = self.symbol("a class's qualified name")?;
        let mut class = ClassItem {
            def: ClassDef::new(name, kind),
            methods: Vec::new(),
        };
        self.cur.expect(b'{', "behind the class's name")?;
        while !self.cur.eat(b'}') {
            self.member(&mut class)?;
        }
        Ok(class)
    }

    fn member(&mut self, class: &mut ClassItem) -> Parsed<()> {
        self.cur.skip_space();
        let start = self.cur.pos;
        let word = self.cur.word();
        let attribute = match word {
            "attribute" => Some(AttributeKind::Plain),
            "parameter" => Some(AttributeKind::Parameter),
            "buffer" => Some(AttributeKind::Buffer),
            "constant" | "signature" | "method" | "forward_hook" | "forward_pre_hook" => None,
            _ => {
                self.cur.pos = start;
                return Err(self
                    .cur
                    .unexpected("a member (`attribute`, `parameter`, `method`, ...) or `}`"));
            }
        };
        self.cur.skip_space();
        let at = self.cur.pos;
        let name = self.symbol("the member's name")?;
        let span = self.cur.span_from(at);
        let def = &mut class.def;
        if let Some(kind) = attribute {
            self.cur.expect(b':', "behind the attribute's name")?;
            let ty = parse_type(self.cur, self.ctx, &self.env.nominal)?;
            if def.attributes.contains_key(&name) {
                let message = format!("the attribute `{}` is given twice", self.ctx.name(name));
                return Err(self
                    .cur
                    .sink
                    .error("duplicate-attribute", message, span, "the second time"));
            }
            def.add_attribute(name, ty, kind);
            return Ok(());
        }
        match word {
            "constant" => {
                self.cur.expect(b'=', "behind the constant's name")?;
                let value = parse_constant(self.cur, self.ctx, &self.env, None)?;
                def.constants.insert(name, value);
            }
            "signature" => {
                let schema = self.schema(name)?;
                class.def.signatures.insert(name, schema);
            }
            "method" => {
                self.cur.expect(b'=', "behind the method's name")?;
                let at = self.cur.pos;
                let function = self.symbol("a function's qualified name")?;
                let span = self.cur.span_from(at);
                class.methods.push((name, function, span));
            }
            "forward_hook" => def.forward_hooks.push(name),
            _ => def.forward_pre_hooks.push(name),
        }
        Ok(())
    }

    /// `(self : T, x : Tensor, *, n : int = 1) -> (Tensor) as name`
    fn schema(&mut self, name: SymbolId) -> Parsed<FunctionSchema> {
        let arguments = self.arguments()?;
        self.cur.skip_space();
        if !self.cur.rest().starts_with("->") {
            return Err(self.cur.unexpected("`->` behind the arguments"));
        }
        self.cur.pos += 2;
        let returns = self.arguments()?;
        let name = if self.cur.eat_word("as") {
            self.symbol("the schema's name")?
        } else {
            name
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

    /// `(name : Type = default, *, Type)`
    fn arguments(&mut self) -> Parsed<Vec<Argument>> {
        self.cur.expect(b'(', "before the arguments")?;
        let mut out = Vec::new();
        if self.cur.eat(b')') {
            return Ok(out);
        }
        let mut keyword_only = false;
        loop {
            if self.cur.eat(b'*') {
                keyword_only = true;
            } else {
                out.push(self.argument(keyword_only)?);
            }
            if !self.cur.eat(b',') {
                break;
            }
        }
        self.cur.expect(b')', "behind the arguments")?;
        Ok(out)
    }

    fn argument(&mut self, keyword_only: bool) -> Parsed<Argument> {
        self.cur.skip_space();
        let start = self.cur.pos;
        // A name is told from a type by the colon behind it.
        let mut name = symbols::EMPTY;
        if self.cur.peek() == b'"' || !self.cur.name().is_empty() {
            self.cur.pos = start;
            let found = self.cur.any_name("a name")?;
            if self.cur.eat(b':') {
                name = self.ctx.symbol(&found);
            } else {
                self.cur.pos = start;
            }
        }
        let ty = self.ty()?;
        let default = if self.cur.eat(b'=') {
            Some(parse_constant(self.cur, self.ctx, &self.env, Some(ty))?)
        } else {
            None
        };
        Ok(Argument {
            name,
            ty,
            broadcast: None,
            default,
            keyword_only,
            alias: None,
            element_alias: None,
            hint: TypeHint::None,
        })
    }

    /// ` name(...) -> (...)` and the graph
    fn function(&mut self) -> Parsed<Function> {
        let name = self.symbol("a function's qualified name")?;
        let schema = self.schema(self.ctx.symbol(last_component(self.ctx.name(name))))?;
        let parser = GraphParser::new(self.cur, self.ctx, &self.env, ParseOptions::default());
        let (graph, _) = parser.graph(0)?;
        Ok(Function { name, schema, graph })
    }

    /// `<0> = __torch__.Net { name = value ... }`
    fn object(&mut self, unit: &CompilationUnit) -> Parsed<Object> {
        self.number()?;
        self.cur.expect(b'=', "behind the object's number")?;
        self.cur.skip_space();
        let start = self.cur.pos;
        let class = self.symbol("a class's qualified name")?;
        let span = self.cur.span_from(start);
        let Some(def) = unit.class(class) else {
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
        Ok(Object {
            class,
            slots: slots.into_iter().flatten().collect(),
        })
    }

    /// ` object<0>`
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

    /// ` "name" = "text"` or ` "name" = 3 bytes ...`
    fn extra(&mut self, source: &dyn TensorSource) -> Parsed<(String, Arc<[u8]>)> {
        let name = self.cur.string()?.into_owned();
        self.cur.expect(b'=', "behind the file's name")?;
        self.cur.skip_space();
        if self.cur.peek() == b'"' {
            let text = self.cur.string()?;
            return Ok((name, Arc::from(text.as_bytes())));
        }
        let (bytes, _) = self.bytes(source)?;
        Ok((name, Arc::from((*bytes).as_ref())))
    }
}
