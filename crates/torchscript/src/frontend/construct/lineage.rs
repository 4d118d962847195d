//! The bases of classes, in the order in which methods are looked up.

use std::sync::Arc;

use ruff_python_ast::{Expr, StmtClassDef};
use ruff_text_size::Ranged;

use super::names::is_module_name;
use super::value::ClassRef;
use super::{Base, MAX_CALLS, Maker, find_class};
use crate::frontend::Result;
use crate::frontend::annotation::dotted;
use crate::frontend::program::Program;

/// Bases that give modules nothing.
const PLAIN_BASES: &[&str] = &[
    "object",
    "ABC",
    "abc.ABC",
    "Generic",
    "typing.Generic",
    "Protocol",
    "typing.Protocol",
];

/// Methods by which a class of the text would change what constructors do with its objects.
const HOOKS: &[&str] = &[
    "__delattr__",
    "__eq__",
    "__getattr__",
    "__getattribute__",
    "__init_subclass__",
    "__new__",
    "__setattr__",
];

/// A class in a line of bases.
#[derive(Clone)]
enum Link {
    Class(ClassRef),
    /// `nn.Module`
    Module,
}

impl Link {
    fn is(&self, other: &Link) -> bool {
        match (self, other) {
            (Link::Class(a), Link::Class(b)) => a.is(b),
            (Link::Module, Link::Module) => true,
            _ => false,
        }
    }
}

/// A base as a class says it.
enum Found {
    Link(Link),
    /// One that gives modules nothing.
    Plain,
    Unknown(String),
}

/// A class and its bases in Python's order (C3), if it is one of modules.
pub(super) fn ancestry(program: &mut Program<'_>, class: &ClassRef) -> Result<Option<Vec<ClassRef>>> {
    let Some(links) = linearised(program, class, 0)? else {
        return Ok(None);
    };
    if !links.iter().any(|link| matches!(link, Link::Module)) {
        return Ok(None);
    }
    let classes = links.into_iter().filter_map(|link| match link {
        Link::Class(class) => Some(class),
        Link::Module => None,
    });
    Ok(Some(classes.collect()))
}

/// `None` for interfaces, and for bases that have no order.
fn linearised(program: &mut Program<'_>, class: &ClassRef, depth: usize) -> Result<Option<Vec<Link>>> {
    let Some(def) = class.def() else { return Ok(None) };
    if is_interface(def) || depth > MAX_CALLS {
        return Ok(None);
    }
    let mut lines = Vec::new();
    let mut bases = Vec::new();
    for number in 0..def.bases().len() {
        let Found::Link(link) = base(program, class, number)? else {
            continue;
        };
        let line = match &link {
            Link::Class(base) => match linearised(program, base, depth + 1)? {
                Some(line) => line,
                None => return Ok(None),
            },
            Link::Module => vec![Link::Module],
        };
        lines.push(line);
        bases.push(link);
    }
    lines.push(bases);
    let merged = merge(lines);
    Ok(merged.map(|rest| std::iter::once(Link::Class(class.clone())).chain(rest).collect()))
}

/// Merges lines of bases: the next one is the first head of a line that is in no tail.
fn merge(mut lines: Vec<Vec<Link>>) -> Option<Vec<Link>> {
    let mut merged = Vec::new();
    loop {
        lines.retain(|line| !line.is_empty());
        if lines.is_empty() {
            return Some(merged);
        }
        let is_free = |head: &Link| !lines.iter().any(|line| line.iter().skip(1).any(|other| other.is(head)));
        let next = lines
            .iter()
            .filter_map(|line| line.first())
            .find(|head| is_free(head))?
            .clone();
        for line in &mut lines {
            if line.first().is_some_and(|head| head.is(&next)) {
                line.remove(0);
            }
        }
        merged.push(next);
    }
}

/// Whether the dotted name is one of the class that all modules derive from.
pub(super) fn is_module_path(path: &str) -> bool {
    matches!(
        path,
        "torch.nn.Module" | "torch.nn.modules.Module" | "torch.nn.modules.module.Module" | "Module"
    ) || is_script_module_path(path)
}

/// Whether a dotted name is that of `torch.jit.ScriptModule`, whose classes say which methods are compiled.
pub(crate) fn is_script_module_path(path: &str) -> bool {
    matches!(path, "torch.jit.ScriptModule" | "torch.jit._script.ScriptModule")
}

/// Whether a class is an interface of modules, and no class of them.
pub(super) fn is_interface(def: &StmtClassDef) -> bool {
    def.decorator_list
        .iter()
        .any(|d| dotted(&d.expression).is_some_and(|name| name.ends_with("interface")))
}

/// Base number `number` of a class.
fn base(program: &mut Program<'_>, class: &ClassRef, number: usize) -> Result<Found> {
    let file = Arc::clone(&class.file);
    let known = file
        .is_by_hand()
        .then(|| program.bases.get(&(class.statement, number)))
        .flatten();
    let name = match known {
        Some(Base::Class(class)) => return Ok(Found::Link(Link::Class(class.clone()))),
        Some(Base::Path(path)) => path.clone(),
        None => {
            let expr = class.def().and_then(|def| def.bases().get(number));
            let expr = match expr {
                Some(Expr::Subscript(subscript)) => Some(&*subscript.value),
                other => other,
            };
            match expr.and_then(dotted) {
                Some(name) => name,
                None => return Ok(Found::Unknown("this expression".to_owned())),
            }
        }
    };
    let name = file.expand(&name);
    if is_module_path(&name) {
        return Ok(Found::Link(Link::Module));
    }
    if PLAIN_BASES.contains(&name.as_str()) {
        return Ok(Found::Plain);
    }
    Ok(match find_class(program, &file, &name)? {
        // A class that stands for its own base by name is another one, which is not known.
        Some(found) if found.is(class) => Found::Unknown(name),
        Some(found) => Found::Link(Link::Class(found)),
        None => Found::Unknown(name),
    })
}

impl Maker<'_, '_> {
    /// Refuses objects of a class whose bases are not known, or that changes what attributes are.
    pub(super) fn check_class(&mut self, class: &ClassRef, chain: &[ClassRef], node: &impl Ranged) -> Result<()> {
        for class in chain.iter().filter(|class| class.file.is_by_hand()) {
            let Some(def) = class.def() else { continue };
            for (number, expr) in def.bases().iter().enumerate() {
                if let Found::Unknown(name) = base(self.program, class, number)? {
                    return self.beyond(&class.file, format!("the base class `{name}`"), expr);
                }
            }
            if let Some(hook) = HOOKS.iter().find(|hook| class.method(hook).is_some()) {
                return self.beyond(&class.file, format!("`{hook}` of a module"), def);
            }
        }
        // What comes behind `nn.Module` does not override it.
        let links = linearised(self.program, class, 0)?.unwrap_or_default();
        for link in links.iter().skip_while(|link| !matches!(link, Link::Module)) {
            let Link::Class(behind) = link else { continue };
            let methods = behind
                .def()
                .into_iter()
                .flat_map(|def| &def.body)
                .filter_map(|member| member.as_function_def_stmt());
            if let Some(method) = methods.into_iter().find(|method| is_module_name(&method.name)) {
                return self.beyond(
                    &behind.file,
                    format!("`{}` of a base behind `nn.Module`", method.name),
                    node,
                );
            }
        }
        Ok(())
    }
}
