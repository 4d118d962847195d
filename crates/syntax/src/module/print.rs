//! Printing of module files. The order is meant for readers: types, classes, code, then objects, and the data last.

use super::collect::{Collected, StorageUse};
use super::parse::last_component;
use super::{VERSION, element};
use crate::print::graph::{PrintOptions, write_graph};
use crate::print::value::{self, Style};
use frazil_ir::literal::quoted;
use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{
    AttributeKind, ClassDef, ClassKind, Constant, Context, DeviceKind, Module, SymbolId, TensorData, TypeId, TypeKind,
};
use indexmap::IndexMap;
use std::fmt::Write;
use std::sync::Arc;

/// Maximum number of elements of a tensor that is printed in the text.
const INLINE_ELEMENTS: i64 = 16;
/// Maximum size in bytes of a storage or file that is printed in the text.
const INLINE_BYTES: usize = 64;

/// Options for printing a module.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModulePrintOptions<'a> {
    /// Leaves out the elements of tensors that have more than this number. Such a text cannot be read back.
    pub elide_constants_larger_than: Option<usize>,
    /// Name of the tensor file, which contains the bytes of large storages. Without a tensor file, all bytes are in the text.
    pub tensor_file: Option<&'a str>,
    /// Checksum of the tensors in the tensor file, as returned by [`TensorFile::checksum`](super::TensorFile::checksum). A reader refuses a tensor file with
    /// another checksum.
    pub tensor_checksum: Option<u32>,
}

/// Prints a module file.
pub fn print_module_to_string(module: &Module, options: ModulePrintOptions<'_>) -> String {
    print_collected(module, &Collected::new(module), options)
}

/// Returns the key of storage `number` in the tensor file.
pub(super) fn storage_key(number: usize) -> String {
    format!("storage.{number}")
}

/// Returns the files of the module that become items: keyword, name and bytes.
pub(super) fn files(module: &Module) -> impl Iterator<Item = (&'static str, &str, &[u8])> {
    fn items<'m>(
        keyword: &'static str,
        files: &'m IndexMap<String, Arc<[u8]>>,
    ) -> impl Iterator<Item = (&'static str, &'m str, &'m [u8])> {
        files
            .iter()
            .map(move |(name, bytes)| (keyword, name.as_str(), &**bytes))
    }
    items("extra", &module.extra_files).chain(items("record", &module.records))
}

/// Returns the key of the file item `name` in the tensor file.
pub(super) fn file_key(keyword: &str, name: &str) -> String {
    format!("{keyword}/{name}")
}

/// Returns true if a file with the content `bytes` is written in the text, and not in the tensor file.
pub(super) fn is_file_inline(bytes: &[u8]) -> bool {
    bytes.len() <= 64 * INLINE_BYTES && std::str::from_utf8(bytes).is_ok()
}

/// The location of the bytes of a storage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The bytes are printed as numbers after the only tensor on the storage.
    Numbers,
    /// The bytes are in the text.
    Text,
    /// The bytes are in the tensor file.
    File,
    /// The bytes are left out.
    Elided,
}

/// Returns the location of the bytes of `storage`.
pub(super) fn place(c: &Collected, storage: &StorageUse, options: ModulePrintOptions<'_>) -> Place {
    let mut users = c.tensors.values().filter(|t| Arc::ptr_eq(&t.storage, &storage.storage));
    let bytes = storage.storage.bytes().len();
    if storage.users == 1
        && let Some(t) = users.next()
    {
        let is_elided = options
            .elide_constants_larger_than
            .is_some_and(|limit| t.numel().unsigned_abs() as usize > limit);
        if is_elided {
            return Place::Elided;
        }
        if t.numel() <= INLINE_ELEMENTS
            && t.is_contiguous()
            && t.offset == 0
            && t.numel() as usize * t.dtype.size() == bytes
            && storage.storage.device() == frazil_ir::Device::CPU
            && element::show(t).is_some()
        {
            return Place::Numbers;
        }
    } else if let Some(limit) = options.elide_constants_larger_than
        && bytes / storage.dtype.size() > limit
    {
        return Place::Elided;
    }
    if bytes <= INLINE_BYTES || options.tensor_file.is_none() {
        Place::Text
    } else {
        Place::File
    }
}

pub(super) fn print_collected(module: &Module, collected: &Collected, options: ModulePrintOptions<'_>) -> String {
    let places = collected
        .storages
        .values()
        .map(|s| place(collected, s, options))
        .collect();
    let mut printer = Printer {
        ctx: module.ctx(),
        module,
        style: Exact { collected },
        places,
        options,
        out: String::new(),
    };
    printer.file();
    printer.out
}

/// The style that prints values without loss, so that they are read back unchanged.
struct Exact<'a> {
    collected: &'a Collected,
}

impl Style for Exact<'_> {
    fn types(&self) -> TypeStyle {
        TypeStyle::Exact
    }

    fn annotations(&self) -> TypeStyle {
        TypeStyle::Exact
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn tensor(&self, t: &Arc<TensorData>, out: &mut String) {
        let number = self.collected.tensors.get_index_of(&Arc::as_ptr(t).addr());
        let _ = write!(out, "tensor<{}>", number.unwrap_or(usize::MAX));
    }

    fn shared(&self, constant: &Constant, out: &mut String) -> bool {
        let address = super::collect::container(constant);
        let Some(number) = address.and_then(|a| self.collected.shared.get_index_of(&a)) else {
            return false;
        };
        let _ = write!(out, "value<{number}>");
        true
    }
}

struct Printer<'a> {
    ctx: &'a Context,
    module: &'a Module,
    style: Exact<'a>,
    /// The location of each storage's bytes, by storage number.
    places: Vec<Place>,
    options: ModulePrintOptions<'a>,
    out: String,
}

impl Printer<'_> {
    fn file(&mut self) {
        let _ = writeln!(self.out, "frazil module {VERSION}");
        if let Some(file) = self.options.tensor_file {
            self.out.push_str("tensors ");
            quoted(file, true, &mut self.out);
            if let Some(checksum) = self.options.tensor_checksum {
                let _ = write!(self.out, " crc32 \"{checksum:08x}\"");
            }
            self.out.push('\n');
        }
        let _ = writeln!(self.out, "root object<{}>", self.module.root.as_u32());
        self.types();
        let module = self.module;
        for class in module.unit.classes.values() {
            self.out.push('\n');
            self.class(class);
        }
        for (_, function) in module.unit.functions() {
            self.out.push_str("\nfunction ");
            self.name(function.name);
            self.schema(&function.schema);
            if self.ctx.name(function.schema.name) != last_component(self.ctx.name(function.name)) {
                self.out.push_str(" as ");
                self.name(function.schema.name);
            }
            self.out.push('\n');
            write_graph(&function.graph, PrintOptions::default(), &self.style, &mut self.out);
        }
        self.objects();
        self.data();
        for (keyword, name, bytes) in files(module) {
            self.extra(keyword, name, bytes);
        }
    }

    /// Prints a name, in quotes if it is not a plain name.
    fn name(&mut self, name: SymbolId) {
        push_name(self.ctx.name(name), &mut self.out);
    }

    fn ty(&mut self, ty: TypeId) {
        let _ = write!(self.out, "{}", display_type(self.ctx, ty, TypeStyle::Exact));
    }

    /// Prints the definitions of named types that are not classes.
    fn types(&mut self) {
        let collected = self.style.collected;
        if !collected.named_types.is_empty() {
            self.out.push('\n');
        }
        for &ty in &collected.named_types {
            match self.ctx.type_kind(ty) {
                TypeKind::Interface(name) => {
                    self.out.push_str("type ");
                    self.name(name);
                    self.out.push_str(" = interface\n");
                }
                TypeKind::NamedTuple(name, fields, types) => {
                    self.out.push_str("type ");
                    self.name(name);
                    self.out.push_str(" = NamedTuple(");
                    let fields = self.ctx.symbols(fields).iter().zip(self.ctx.types(types));
                    for (i, (&field, &ty)) in fields.enumerate() {
                        self.out.push_str(if i > 0 { ", " } else { "" });
                        self.name(field);
                        self.out.push_str(" : ");
                        self.ty(ty);
                    }
                    self.out.push_str(")\n");
                }
                _ => {}
            }
        }
    }

    fn class(&mut self, class: &ClassDef) {
        self.out.push_str(match class.kind {
            ClassKind::Module => "module ",
            ClassKind::Class => "class ",
            ClassKind::Interface => "interface ",
            ClassKind::ModuleInterface => "module_interface ",
            ClassKind::Enum => "enum ",
            ClassKind::NamedTuple => "namedtuple ",
        });
        self.name(class.name);
        self.out.push_str(" {\n");
        for (&name, attribute) in &class.attributes {
            self.out.push_str(match attribute.kind {
                AttributeKind::Plain => "  attribute ",
                AttributeKind::Parameter => "  parameter ",
                AttributeKind::Buffer => "  buffer ",
            });
            self.name(name);
            self.out.push_str(" : ");
            self.ty(attribute.ty);
            self.out.push('\n');
        }
        for (&name, constant) in &class.constants {
            // A member of an enumeration is defined by its value only here.
            let member = match constant {
                Constant::Enum(e) if e.class == class.name && *e.name == *self.ctx.name(name) => Some(&e.value),
                _ => None,
            };
            self.out
                .push_str(if member.is_some() { "  member " } else { "  constant " });
            let constant = member.unwrap_or(constant);
            self.name(name);
            self.out.push_str(" = ");
            value::constant(self.ctx, constant, &self.style, None, &mut self.out);
            self.out.push('\n');
        }
        for (&name, schema) in &class.signatures {
            self.out.push_str("  signature ");
            self.name(name);
            self.schema(schema);
            if schema.name != name {
                self.out.push_str(" as ");
                self.name(schema.name);
            }
            self.out.push('\n');
        }
        for (&name, &function) in &class.methods {
            self.out.push_str("  method ");
            self.name(name);
            self.out.push_str(" = ");
            self.name(self.module.unit.function(function).name);
            self.out.push('\n');
        }
        for (word, hooks) in [
            ("  forward_pre_hook ", &class.forward_pre_hooks),
            ("  forward_hook ", &class.forward_hooks),
        ] {
            for &hook in hooks {
                self.out.push_str(word);
                self.name(hook);
                self.out.push('\n');
            }
        }
        self.out.push_str("}\n");
    }

    /// Prints a signature: `(self : T, x : Tensor, *, n : int = 1, ...) -> (Tensor)`.
    fn schema(&mut self, schema: &FunctionSchema) {
        self.arguments(&schema.arguments, schema.is_vararg);
        self.out.push_str(" -> ");
        self.arguments(&schema.returns, schema.is_varret);
    }

    fn arguments(&mut self, arguments: &[Argument], and_more: bool) {
        self.out.push('(');
        let mut keyword_only = false;
        for (i, a) in arguments.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            if a.keyword_only && !keyword_only {
                keyword_only = true;
                self.out.push_str("*, ");
            }
            self.argument(a);
        }
        if and_more {
            self.out.push_str(if arguments.is_empty() { "..." } else { ", ..." });
        }
        self.out.push(')');
    }

    fn argument(&mut self, a: &Argument) {
        if a.name != frazil_ir::symbols::EMPTY {
            self.name(a.name);
            self.out.push_str(" : ");
        }
        self.ty(a.ty);
        if let Some(count) = a.broadcast {
            let _ = write!(self.out, " broadcast {count}");
        }
        if let Some(default) = &a.default {
            self.out.push_str(" = ");
            value::constant(self.ctx, default, &self.style, Some(a.ty), &mut self.out);
        }
    }

    fn objects(&mut self) {
        let module = self.module;
        for (id, object) in module.objects() {
            let _ = write!(self.out, "\nobject<{}> = ", id.as_u32());
            self.name(object.class);
            if let Some(state) = module.state(id) {
                self.out.push_str(" from ");
                let wanted = module
                    .class_of(id)
                    .and_then(|def| def.restored_from(self.ctx, &module.unit));
                value::constant(self.ctx, state, &self.style, wanted, &mut self.out);
                self.out.push('\n');
                continue;
            }
            self.out.push_str(" {\n");
            let mut attributes = module.unit.class(object.class).map(|c| c.attributes.iter());
            for (i, slot) in object.slots.iter().enumerate() {
                let attribute = attributes.as_mut().and_then(Iterator::next);
                self.out.push_str("  ");
                match attribute {
                    Some((&name, _)) => self.name(name),
                    None => {
                        let _ = write!(self.out, "{i}");
                    }
                }
                self.out.push_str(" = ");
                let wanted = attribute.map(|(_, a)| a.ty);
                value::constant(self.ctx, slot, &self.style, wanted, &mut self.out);
                self.out.push('\n');
            }
            self.out.push_str("}\n");
        }
        if !self.style.collected.shared.is_empty() {
            self.out.push('\n');
        }
        for (i, constant) in self.style.collected.shared.values().enumerate() {
            let _ = write!(self.out, "value<{i}> : ");
            let ty = constant.ty(self.ctx);
            let _ = write!(self.out, "{} = ", display_type(self.ctx, ty, TypeStyle::Exact));
            value::definition(self.ctx, constant, &self.style, ty, &mut self.out);
            self.out.push('\n');
        }
    }

    fn data(&mut self) {
        let collected = self.style.collected;
        if !collected.tensors.is_empty() {
            self.out.push('\n');
        }
        for (i, t) in collected.tensors.values().enumerate() {
            let storage = collected.storages.get_index_of(&Arc::as_ptr(&t.storage).addr());
            let storage = storage.unwrap_or(usize::MAX);
            let _ = write!(self.out, "tensor<{i}> = {}(", t.dtype.type_name());
            for n in &t.sizes {
                let _ = write!(self.out, "{n}, ");
            }
            let strides: Vec<_> = t.strides.iter().map(i64::to_string).collect();
            let _ = write!(
                self.out,
                "strides=[{}], requires_grad={}) ",
                strides.join(", "),
                u8::from(t.requires_grad)
            );
            if let Some(encoding) = &t.encoding {
                let _ = write!(self.out, "{} ", encoding.name());
                let parameters = element::encoding_parameters(self.ctx, encoding);
                value::constant(self.ctx, &parameters, &self.style, None, &mut self.out);
                self.out.push(' ');
            }
            match self.places.get(storage) {
                Some(Place::Numbers) => self.out.push_str(&element::show(t).unwrap_or_default()),
                Some(Place::Elided) => self.out.push_str("elided"),
                _ => {
                    let _ = write!(self.out, "storage<{storage}>");
                    if t.offset != 0 {
                        let _ = write!(self.out, " offset {}", t.offset);
                    }
                }
            }
            self.out.push('\n');
        }
        let mut first = true;
        for (i, s) in collected.storages.values().enumerate() {
            let place = self.places.get(i).copied().unwrap_or(Place::Elided);
            if !matches!(place, Place::Text | Place::File) {
                continue;
            }
            self.out.push_str(if std::mem::take(&mut first) { "\n" } else { "" });
            let bytes = s.storage.bytes();
            let _ = write!(self.out, "storage<{i}> = {} bytes", bytes.len());
            if s.storage.device().kind != DeviceKind::Cpu || s.storage.device().index.is_some() {
                let _ = write!(self.out, " on {}", s.storage.device());
            }
            if place == Place::File {
                let _ = writeln!(self.out, " in \"{}\"", storage_key(i));
            } else {
                self.out.push_str(" \"");
                element::push_hex(bytes, &mut self.out);
                self.out.push_str("\"\n");
            }
        }
    }

    fn extra(&mut self, keyword: &str, name: &str, bytes: &[u8]) {
        let _ = write!(self.out, "\n{keyword} ");
        quoted(name, true, &mut self.out);
        match std::str::from_utf8(bytes) {
            Ok(text) if is_file_inline(bytes) => {
                self.out.push_str(" = ");
                quoted(text, true, &mut self.out);
            }
            _ if self.options.tensor_file.is_some() => {
                let _ = write!(self.out, " = {} bytes in ", bytes.len());
                quoted(&file_key(keyword, name), true, &mut self.out);
            }
            _ => {
                let _ = write!(self.out, " = {} bytes \"", bytes.len());
                element::push_hex(bytes, &mut self.out);
                self.out.push('"');
            }
        }
        self.out.push('\n');
    }
}

/// Appends a name, in quotes if it is not a plain name.
fn push_name(name: &str, out: &mut String) {
    if crate::parse::cursor::is_plain_name(name) {
        out.push_str(name);
    } else {
        quoted(name, true, out);
    }
}
