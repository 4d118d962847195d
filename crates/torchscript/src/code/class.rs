//! Printing of classes, interfaces, enumerations and NamedTuples.

use std::collections::HashSet;
use std::fmt::Write;

use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{AttributeKind, ClassDef, ClassKind, CompilationUnit, Constant, SymbolId, TypeId, literal};

use super::constants::write_constant;
use super::error::CodeError;
use super::function::{File, FunctionPrinter, PrinterContext, Tables};
use super::names::is_identifier;

type Result<T, E = CodeError> = std::result::Result<T, E>;

/// Prints `class`, with its methods, into `file`.
pub(super) fn print_class<'p>(
    context: PrinterContext<'p>,
    unit: &'p CompilationUnit,
    class: &'p ClassDef,
    tables: &mut Tables,
    file: &mut File,
) -> Result<()> {
    ClassPrinter {
        context,
        unit,
        tables,
        file,
    }
    .print(class)
}

struct ClassPrinter<'p, 'o> {
    context: PrinterContext<'p>,
    unit: &'p CompilationUnit,
    tables: &'o mut Tables,
    file: &'o mut File,
}

impl<'p> ClassPrinter<'p, '_> {
    fn print(&mut self, class: &'p ClassDef) -> Result<()> {
        let name = self.context.ctx.name(class.name);
        let base = match class.kind {
            ClassKind::Module => "(Module)",
            ClassKind::Class => "",
            ClassKind::Interface => "(Interface)",
            ClassKind::ModuleInterface => "(ModuleInterface)",
            ClassKind::Enum => "(Enum)",
            ClassKind::NamedTuple => "(NamedTuple)",
        };
        self.push(&format!("class {}{base}:\n", name.rsplit('.').next().unwrap_or(name)));
        match class.kind {
            ClassKind::Module | ClassKind::Class => self.members(class),
            ClassKind::Interface | ClassKind::ModuleInterface => {
                self.signatures(class);
                Ok(())
            }
            ClassKind::Enum => self.enumeration(class),
            ClassKind::NamedTuple => {
                for (&name, field) in &class.attributes {
                    self.push(&format!(
                        "  {} : {}\n",
                        self.context.ctx.name(name),
                        self.type_text(field.ty)
                    ));
                }
                Ok(())
            }
        }
    }

    fn members(&mut self, class: &'p ClassDef) -> Result<()> {
        if class.kind == ClassKind::Module {
            let of_kind = |kind: AttributeKind| {
                let attributes = class.attributes.iter().filter(move |(_, a)| a.kind == kind);
                attributes.map(|(name, _)| *name).collect::<Vec<_>>()
            };
            self.names("__parameters__", &of_kind(AttributeKind::Parameter));
            self.names("__buffers__", &of_kind(AttributeKind::Buffer));
            for (list, hooks) in [
                ("__forward_pre_hooks__", &class.forward_pre_hooks),
                ("__forward_hooks__", &class.forward_hooks),
            ] {
                if !hooks.is_empty() {
                    self.names(list, hooks);
                }
            }
        }
        let ctx = self.context.ctx;
        for (index, (&name, attribute)) in class.attributes.iter().enumerate() {
            self.tables.dependencies.add_type(ctx, self.context.unit, attribute.ty);
            let ty = self.type_text(attribute.ty);
            let name = ctx.name(name);
            if is_identifier(name) {
                self.push(&format!("  {name} : {ty}\n"));
                continue;
            }
            // The name of a submodule may be a number.
            if index == 0 {
                self.push("  __annotations__ = []\n");
            }
            self.push(&format!("  __annotations__[\"{name}\"] = {ty}\n"));
        }
        for (&name, value) in &class.constants {
            let mut line = format!("  {} : Final[{}] = ", ctx.name(name), self.type_text(value.ty(ctx)));
            write_constant(ctx, &mut self.tables.constants, value, &mut line)?;
            line.push('\n');
            self.push(&line);
        }
        // Hooks come behind the methods, each once.
        let hooks = class.forward_hooks.iter().chain(&class.forward_pre_hooks);
        let mut printed: HashSet<SymbolId> = hooks.clone().copied().collect();
        let methods = class.methods.keys().filter(|name| !printed.contains(*name));
        for &method in methods.collect::<Vec<_>>() {
            self.method(class, method)?;
        }
        for &hook in hooks {
            if printed.remove(&hook) {
                self.method(class, hook)?;
            }
        }
        Ok(())
    }

    fn names(&mut self, list: &str, names: &[SymbolId]) {
        let mut line = format!("  {list} = [");
        for &name in names {
            let _ = write!(line, "\"{}\", ", self.context.ctx.name(name));
        }
        line.push_str("]\n");
        self.push(&line);
    }

    fn method(&mut self, class: &ClassDef, name: SymbolId) -> Result<()> {
        let Some(id) = class.methods.get(&name) else {
            let ctx = self.context.ctx;
            return Err(CodeError::Unknown(format!(
                "{}.{}",
                ctx.name(class.name),
                ctx.name(name)
            )));
        };
        let function = self.unit.function(*id);
        FunctionPrinter::print(self.context, self.tables, self.file, function, true, 1)
    }

    fn signatures(&mut self, class: &ClassDef) {
        let ctx = self.context.ctx;
        for (&name, schema) in &class.signatures {
            let mut line = format!("  def {}(self", ctx.name(name));
            for argument in schema.arguments.iter().skip(1) {
                self.tables.dependencies.add_type(ctx, self.context.unit, argument.ty);
                let _ = write!(line, ", {}: {}", ctx.name(argument.name), self.type_text(argument.ty));
            }
            let result = schema
                .returns
                .first()
                .map_or(frazil_ir::types::NONE, |result| result.ty);
            self.tables.dependencies.add_type(ctx, self.context.unit, result);
            let _ = write!(line, ") -> {}:\n    pass\n", self.type_text(result));
            self.push(&line);
        }
    }

    fn enumeration(&mut self, class: &ClassDef) -> Result<()> {
        let ctx = self.context.ctx;
        for (&name, member) in &class.constants {
            let value = match member {
                Constant::Enum(member) => &member.value,
                other => other,
            };
            let mut line = format!("  {} = ", ctx.name(name));
            match value {
                // The table of constants is not there yet when classes are read, so text stays text.
                Constant::Str(text) => literal::quoted(text, false, &mut line),
                value => write_constant(ctx, &mut self.tables.constants, value, &mut line)?,
            }
            line.push('\n');
            self.push(&line);
        }
        Ok(())
    }

    fn type_text(&self, ty: TypeId) -> String {
        display_type(self.context.ctx, ty, TypeStyle::Annotation).to_string()
    }

    fn push(&mut self, text: &str) {
        self.file.body.push(None, text);
    }
}
