//! Classes of the modules that a source text creates, whose methods are compiled when code calls them.

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::{ClassDef, FunctionId, SymbolId, TypeKind};
use ruff_python_ast::Stmt;

use super::SourceProgram;
use crate::error::Result;
use crate::names::{Base, ClassRef, Global, MethodSource, MethodTable, Names, is_script_module_path};
use crate::source::DefPath;
use crate::source::decorators::{self, Marker};

impl SourceProgram<'_> {
    /// Defines a class of modules with the methods of `chain`: its Python class and the bases of that class. `forward` and exported methods are scheduled for
    /// compilation.
    pub(super) fn add_module_class(
        &mut self,
        class: ClassDef,
        chain: &[ClassRef],
        mut table: MethodTable,
    ) -> Result<()> {
        let name = class.name;
        let ty = self.definitions.ctx.type_of_kind(TypeKind::Class(name));
        self.definitions.globals.insert(name, Global::Type(ty));
        self.definitions.unit.classes.insert(name, class);
        let mut wanted = Vec::new();
        let is_traced = self.definitions.traces.context.classes.contains(&name);
        let is_old = chain.iter().any(|class| self.derives_from_script_module(class));
        for class in chain {
            let Some(def) = class.def() else { continue };
            let mut signatures: HashMap<&str, Vec<usize>> = HashMap::new();
            // Of several methods of one name, the last one is there.
            let mut last: HashMap<(&str, bool), usize> = HashMap::new();
            for (index, member) in def.body.iter().enumerate() {
                if let Stmt::FunctionDef(method) = member {
                    let marker = decorators::marker(&class.file, method).unwrap_or(Marker::Plain);
                    if marker != Marker::Overload {
                        last.insert((method.name.as_str(), matches!(marker, Marker::Setter(_))), index);
                    }
                }
            }
            for (index, member) in def.body.iter().enumerate() {
                let Stmt::FunctionDef(method) = member else { continue };
                let marker = decorators::marker(&class.file, method).unwrap_or(Marker::Plain);
                let is_setter = matches!(marker, Marker::Setter(_));
                if decorators::is_left_property(&class.file, method) {
                    continue;
                }
                if marker != Marker::Overload && last.get(&(method.name.as_str(), is_setter)) != Some(&index) {
                    continue;
                }
                let is_script_method = decorators::is_script_method(&class.file, method);
                let method = match &marker {
                    Marker::Overload => {
                        signatures.entry(method.name.as_str()).or_default().push(index);
                        continue;
                    }
                    Marker::Property => format!("__{}_getter", method.name),
                    Marker::Setter(property) => format!("__{property}_setter"),
                    _ => method.name.to_string(),
                };
                if method == "__init__" || table.methods.contains_key(&method) || table.overloads.contains_key(&method)
                {
                    continue;
                }
                let source = |signature| MethodSource {
                    file: Arc::clone(&class.file),
                    body: DefPath {
                        statement: class.statement,
                        method: Some(index),
                    },
                    signature,
                };
                if let Some(signatures) = signatures.remove(method.as_str()) {
                    // All of them are compiled, under the names that PyTorch gives them.
                    let mut names = Vec::new();
                    for (number, signature) in signatures.into_iter().enumerate() {
                        let name = format!("{method}__{number}");
                        table.methods.insert(name.clone(), source(Some(signature)));
                        names.push(name);
                    }
                    wanted.extend_from_slice(&names);
                    table.overloads.insert(method, names);
                    continue;
                }
                let is_entry = match is_old || is_traced {
                    // Such classes say which methods are compiled.
                    true => is_script_method || (is_traced && marker == Marker::Export),
                    false => method == "forward" || marker == Marker::Export,
                };
                if is_entry {
                    wanted.push(method.clone());
                }
                table.methods.insert(method, source(None));
            }
        }
        let hooks = std::mem::take(&mut table.hooks);
        self.definitions.modules.insert(name, table);
        for method in wanted {
            self.module_method(name, &method)?;
        }
        self.define_hooks(name, ty, hooks)
    }

    /// Returns whether `torch.jit.ScriptModule` is a base of `class`.
    fn derives_from_script_module(&self, class: &ClassRef) -> bool {
        let count = class.def().map_or(0, |def| def.bases().len());
        class.file.rules.is_source()
            && (0..count).any(|number| {
                matches!(self.definitions.bases.get(&(class.statement, number)), Some(Base::Path(path)) if is_script_module_path(path))
            })
    }

    /// Returns method `method` of a class. A method of a module is defined on first use.
    pub(super) fn find_module_method(&mut self, class: SymbolId, method: &str) -> Result<Option<FunctionId>> {
        let symbol = self.definitions.ctx.symbol(method);
        if self.definitions.traces.context.classes.contains(&class) {
            // A traced module has the methods that were traced, and those that are exported.
            let exported = self
                .definitions
                .python_method(class, method)
                .is_none_or(|(file, path)| {
                    let marker = path.def(&file).map(|def| decorators::marker(&file, def));
                    matches!(marker, Some(Ok(Marker::Export)))
                });
            if let Some(id) = self.definitions.unit.method(class, symbol) {
                return Ok(Some(id));
            }
            if !exported {
                return Ok(None);
            }
        }
        if let Some(id) = self
            .definitions
            .unit
            .method(class, symbol)
            .or_else(|| self.definitions.static_method(class, symbol))
        {
            let has_method = self
                .definitions
                .modules
                .get(&class)
                .is_some_and(|table| table.methods.contains_key(method));
            if has_method {
                // The class has a hook of this name, which was defined because nothing called the method so far.
                return Err(self.hook_collides(class, id));
            }
            return Ok(Some(id));
        }
        let Some(MethodSource { file, body, signature }) = self
            .definitions
            .modules
            .get_mut(&class)
            .and_then(|table| table.methods.remove(method))
        else {
            return Ok(None);
        };
        let member = |index: Option<usize>| match file.statement(body.statement) {
            Some(Stmt::ClassDef(class)) => class.body.get(index?).and_then(Stmt::as_function_def_stmt),
            _ => None,
        };
        let Some(def) = member(signature.or(body.method)) else {
            return Ok(None);
        };
        let full = self
            .definitions
            .ctx
            .symbol(&format!("{}.{method}", self.definitions.ctx.name(class)));
        let is_static = decorators::marker(&file, def)? == Marker::Static;
        let this = (!is_static).then(|| self.definitions.ctx.type_of_kind(TypeKind::Class(class)));
        let id = self.define_function(&file, def, body, full, this)?;
        if is_static {
            self.definitions.statics.insert((class, symbol), id);
        } else if let Some(class) = self.definitions.unit.classes.get_mut(&class) {
            class.methods.insert(symbol, id);
        }
        Ok(Some(id))
    }
}
