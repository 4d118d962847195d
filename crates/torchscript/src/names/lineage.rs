//! Method resolution orders: the bases of classes in the order in which members are looked up.

use std::sync::Arc;

use ruff_python_ast::{Expr, StmtClassDef};

use super::class::{Base, ClassRef};
use super::resolve::Names;
use crate::error::Result;
use crate::library;
use crate::source::{SourceFile, dotted};

/// Maximum number of classes in a chain of bases.
const MAX_BASES: usize = 100;

/// Dotted names of bases that add no members to a class of modules.
const PLAIN_BASES: &[&str] = &[
    "object",
    "ABC",
    "abc.ABC",
    "Generic",
    "typing.Generic",
    "Protocol",
    "typing.Protocol",
];

/// A class in the method resolution order of a class of modules.
#[derive(Clone)]
pub(crate) enum Ancestor {
    Class(ClassRef),
    /// `nn.Module`
    Module,
}

impl Ancestor {
    fn is(&self, other: &Ancestor) -> bool {
        match (self, other) {
            (Ancestor::Class(a), Ancestor::Class(b)) => a.is(b),
            (Ancestor::Module, Ancestor::Module) => true,
            _ => false,
        }
    }
}

/// A base of a class after its name has been resolved.
pub(crate) enum FoundBase {
    Class(Ancestor),
    /// A base that adds no members to a class of modules.
    Plain,
    /// The name of a base that is defined neither in the file nor in the library.
    Unknown(String),
}

/// Returns the method resolution order (C3) of a class of modules; `None` for other classes.
pub(crate) fn ancestry(names: &mut dyn Names, class: &ClassRef) -> Result<Option<Vec<ClassRef>>> {
    let Some(links) = linearised(names, class, 0)? else {
        return Ok(None);
    };
    if !links.iter().any(|link| matches!(link, Ancestor::Module)) {
        return Ok(None);
    }
    let classes = links.into_iter().filter_map(|link| match link {
        Ancestor::Class(class) => Some(class),
        Ancestor::Module => None,
    });
    Ok(Some(classes.collect()))
}

/// Returns the method resolution order of a class; `None` for interfaces, and if the bases have no consistent order. `depth` is the number of derived classes.
pub(crate) fn linearised(names: &mut dyn Names, class: &ClassRef, depth: usize) -> Result<Option<Vec<Ancestor>>> {
    let Some(def) = class.def() else { return Ok(None) };
    if is_interface(def) || depth > MAX_BASES {
        return Ok(None);
    }
    let mut lines = Vec::new();
    let mut bases = Vec::new();
    for number in 0..def.bases().len() {
        let FoundBase::Class(link) = base(names, class, number)? else {
            continue;
        };
        let line = match &link {
            Ancestor::Class(base) => match linearised(names, base, depth + 1)? {
                Some(line) => line,
                None => return Ok(None),
            },
            Ancestor::Module => vec![Ancestor::Module],
        };
        lines.push(line);
        bases.push(link);
    }
    lines.push(bases);
    let merged = merge(lines);
    Ok(merged.map(|rest| std::iter::once(Ancestor::Class(class.clone())).chain(rest).collect()))
}

/// Merges lists of bases by C3: the next class is the first head of a list that is in no tail.
fn merge(mut lines: Vec<Vec<Ancestor>>) -> Option<Vec<Ancestor>> {
    let mut merged = Vec::new();
    loop {
        lines.retain(|line| !line.is_empty());
        if lines.is_empty() {
            return Some(merged);
        }
        let is_free = |head: &Ancestor| !lines.iter().any(|line| line.iter().skip(1).any(|other| other.is(head)));
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

/// Returns whether the dotted name denotes `torch.nn.Module`.
pub(crate) fn is_module_path(path: &str) -> bool {
    matches!(
        path,
        "torch.nn.Module" | "torch.nn.modules.Module" | "torch.nn.modules.module.Module" | "Module"
    ) || is_script_module_path(path)
}

/// Returns whether the dotted name denotes `torch.jit.ScriptModule`, whose subclasses mark the methods to be compiled.
pub(crate) fn is_script_module_path(path: &str) -> bool {
    matches!(path, "torch.jit.ScriptModule" | "torch.jit._script.ScriptModule")
}

/// Returns whether a class is an interface of modules, as opposed to a class of modules.
pub(crate) fn is_interface(def: &StmtClassDef) -> bool {
    def.decorator_list
        .iter()
        .any(|d| dotted(&d.expression).is_some_and(|name| name.ends_with("interface")))
}

/// Resolves base number `number` of a class.
pub(crate) fn base(names: &mut dyn Names, class: &ClassRef, number: usize) -> Result<FoundBase> {
    let file = Arc::clone(&class.file);
    let known = file
        .rules
        .is_source()
        .then(|| names.definitions().bases.get(&(class.statement, number)))
        .flatten();
    let name = match known {
        Some(Base::Class(class)) => return Ok(FoundBase::Class(Ancestor::Class(class.clone()))),
        Some(Base::Path(path)) => path.clone(),
        None => {
            let expr = class.def().and_then(|def| def.bases().get(number));
            let expr = match expr {
                Some(Expr::Subscript(subscript)) => Some(&*subscript.value),
                other => other,
            };
            match expr.and_then(dotted) {
                Some(name) => name,
                None => return Ok(FoundBase::Unknown("this expression".to_owned())),
            }
        }
    };
    let name = file.expand(&name);
    if is_module_path(&name) {
        return Ok(FoundBase::Class(Ancestor::Module));
    }
    if PLAIN_BASES.contains(&name.as_str()) {
        return Ok(FoundBase::Plain);
    }
    Ok(match find_class(names, &file, &name)? {
        // A class that stands for its own base by name is another one, which is not known.
        Some(found) if found.is(class) => FoundBase::Unknown(name),
        Some(found) => FoundBase::Class(Ancestor::Class(found)),
        None => FoundBase::Unknown(name),
    })
}

/// Returns whether the class at statement number `statement` of `file` derives from `torch.nn.Module`, directly or
/// indirectly.
pub(crate) fn is_module_class(names: &mut dyn Names, file: &Arc<SourceFile>, statement: usize) -> Result<bool> {
    let class = match class_at(file, statement) {
        Some(class) => class,
        None => return Ok(false),
    };
    Ok(ancestry(names, &class)?.is_some())
}

/// Returns the class statement with index `statement` in `file`; `None` if that statement defines no class.
pub(crate) fn class_at(file: &Arc<SourceFile>, statement: usize) -> Option<ClassRef> {
    let def = file.statement(statement)?.as_class_def_stmt()?;
    let qualified = format!("{}.{}", file.rules.qualifier()?, def.name);
    Some(ClassRef {
        file: Arc::clone(file),
        statement,
        qualified: qualified.into(),
    })
}

/// Returns the class `name` of `file`, or else the class `name` of the library.
pub(crate) fn find_class(names: &mut dyn Names, file: &Arc<SourceFile>, name: &str) -> Result<Option<ClassRef>> {
    let local = |file: &Arc<SourceFile>, name: &str| {
        let numbers = file.definitions(name).iter().rev();
        numbers.copied().find_map(|number| class_at(file, number))
    };
    if let Some(class) = local(file, name) {
        return Ok(Some(class));
    }
    let Some(qualified) = library::name_of(name) else {
        return Ok(None);
    };
    let Some((qualifier, simple)) = qualified.rsplit_once('.') else {
        return Ok(None);
    };
    Ok(names.file(qualifier)?.and_then(|file| local(&file, simple)))
}
