//! Modules from source: `__init__` is run on a small part of Python, and what it leaves is the module.
//!
//! [`exec`] runs statements, [`eval`] expressions, [`builtins`] what Python and `torch` bring along; [`lower`] turns the objects into a
//! [`Module`](frazil_ir::Module) whose methods the front end compiles. What a constructor does beyond that is an error that says so.

mod builtins;
mod elements;
mod eval;
mod exec;
mod lower;
mod methods;
mod tensor;
mod value;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::annotation::dotted;
use super::objects::Objects;
use super::program::{BY_HAND, Program};
use super::source::SourceFile;
use super::{Result, library};
use tensor::Random;
use value::{FunctionRef, Py};

pub(crate) use lower::{MethodSource, MethodTable};
pub(crate) use value::ClassRef;

/// Most steps of statements and expressions that making a module may take.
const MAX_STEPS: usize = 500_000;

/// Calls nested more deeply than this are taken for endless recursion.
const MAX_CALLS: usize = 100;

/// Expressions and calls nested more deeply than this are refused: they are evaluated recursively.
const MAX_DEPTH: usize = 2000;

/// Longest list, string or range that a constructor may make.
const MAX_LENGTH: i64 = 1 << 20;

/// Runs constructors.
struct Maker<'m, 'p> {
    program: &'m mut Program<'p>,
    random: Random,
    steps: usize,
    calls: usize,
    depth: usize,
}

/// The variables of a function that runs.
struct Scope {
    file: Arc<SourceFile>,
    variables: HashMap<String, Py>,
    /// The class whose method runs, for `super()`.
    class: Option<Rc<ClassRef>>,
    this: Option<Py>,
}

/// Makes the module of a text by hand, if it has module classes: the value of the last top-level assignment that makes one
/// (`model = Net(3)`), else an object of the last class that can be made without arguments.
pub(crate) fn module(program: &mut Program<'_>, file: &Arc<SourceFile>) -> Result<Option<Objects>> {
    let mut maker = Maker {
        program,
        random: Random::new(),
        steps: 0,
        calls: 0,
        depth: 0,
    };
    let Some(root) = maker.root(file)? else { return Ok(None) };
    let Py::Object(root) = root else {
        return Ok(None);
    };
    lower::objects(maker.program, file, &root).map(Some)
}

/// Whether a class of `file` derives from `torch.nn.Module`, by whatever way.
pub(crate) fn is_module_class(program: &mut Program<'_>, file: &Arc<SourceFile>, statement: usize) -> Result<bool> {
    let class = match class_at(file, statement) {
        Some(class) => class,
        None => return Ok(false),
    };
    Ok(ancestry(program, &class)?.is_some())
}

fn class_at(file: &Arc<SourceFile>, statement: usize) -> Option<ClassRef> {
    let def = file.body().get(statement)?.as_class_def_stmt()?;
    let qualified = format!("{}.{}", file.qualifier?, def.name);
    Some(ClassRef {
        file: Arc::clone(file),
        statement,
        qualified: qualified.into(),
    })
}

/// A class and its bases down to `Module`, if it comes to that.
fn ancestry(program: &mut Program<'_>, class: &ClassRef) -> Result<Option<Vec<ClassRef>>> {
    let mut chain = vec![class.clone()];
    let mut current = class.clone();
    for _ in 0..MAX_CALLS {
        let Some(def) = current.def() else { return Ok(None) };
        let base = def.arguments.as_ref().and_then(|a| a.args.first()).and_then(dotted);
        let Some(base) = base else { return Ok(None) };
        let interface = def
            .decorator_list
            .iter()
            .any(|d| dotted(&d.expression).is_some_and(|name| name.ends_with("interface")));
        let base = current.file.expand(&base);
        if interface {
            return Ok(None);
        }
        if matches!(
            base.as_str(),
            "torch.nn.Module" | "torch.nn.modules.module.Module" | "Module"
        ) {
            return Ok(Some(chain));
        }
        let file = Arc::clone(&current.file);
        match find_class(program, &file, &base)? {
            Some(next) => {
                chain.push(next.clone());
                current = next;
            }
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// The class that `name` is in `file` or the library.
fn find_class(program: &mut Program<'_>, file: &Arc<SourceFile>, name: &str) -> Result<Option<ClassRef>> {
    let local = |file: &Arc<SourceFile>, name: &str| {
        let is = |s: &Stmt| matches!(s, Stmt::ClassDef(def) if def.name.as_str() == name);
        file.body().iter().rposition(is).and_then(|at| class_at(file, at))
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
    Ok(program.file(qualifier)?.and_then(|file| local(&file, simple)))
}

impl Maker<'_, '_> {
    fn root(&mut self, file: &Arc<SourceFile>) -> Result<Option<Py>> {
        let mut scope = Scope {
            file: Arc::clone(file),
            variables: HashMap::new(),
            class: None,
            this: None,
        };
        let mut root = None;
        let mut last = None;
        for (index, statement) in file.body().iter().enumerate() {
            match statement {
                Stmt::ClassDef(_) if is_module_class(self.program, file, index)? => last = Some(index),
                // Values at the top level are there for constructors, as far as they can be computed.
                Stmt::Assign(assign) if makes_module(self.program, file, &assign.value)? => {
                    let value = self.expr(&mut scope, &assign.value)?;
                    if matches!(value, Py::Object(_)) {
                        root = Some(value.clone());
                    }
                    self.assign(&mut scope, assign.targets.first(), value, statement)?;
                }
                _ => {}
            }
        }
        if root.is_some() {
            return Ok(root);
        }
        let Some(class) = last.and_then(|index| class_at(file, index)) else {
            return Ok(None);
        };
        self.instantiate(
            &class,
            Vec::new(),
            Vec::new(),
            file,
            &class.def().map_or_else(Default::default, Ranged::range),
        )
        .map(Some)
    }

    /// One step more, if that is allowed.
    fn step(&mut self, file: &SourceFile, node: &impl Ranged) -> Result<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(file.error("construct", "making the module takes too long", node).into());
        }
        Ok(())
    }

    /// The error about something that would need Python.
    fn beyond<T>(&self, file: &SourceFile, what: impl AsRef<str>, node: &impl Ranged) -> Result<T> {
        let message = format!("{} cannot be evaluated without Python", what.as_ref());
        Err(file.error("construct", message, node).into())
    }

    /// An error that Python would raise, too.
    fn fail<T>(&self, file: &SourceFile, message: impl Into<String>, node: &impl Ranged) -> Result<T> {
        Err(file.error("construct", message, node).into())
    }

    /// The function `name` at the top level of `file`.
    fn function(&self, file: &Arc<SourceFile>, name: &str) -> Option<FunctionRef> {
        let is = |s: &Stmt| matches!(s, Stmt::FunctionDef(def) if def.name.as_str() == name);
        let statement = file.body().iter().rposition(is)?;
        Some(FunctionRef {
            file: Arc::clone(file),
            statement,
            method: None,
            class: None,
        })
    }
}

/// Whether `value` is a call that makes a module: of a module class, perhaps with `.eval()` behind.
fn makes_module(program: &mut Program<'_>, file: &Arc<SourceFile>, value: &Expr) -> Result<bool> {
    let Expr::Call(call) = value else { return Ok(false) };
    if let Expr::Attribute(attribute) = &*call.func
        && attribute.value.is_call_expr()
    {
        return makes_module(program, file, &attribute.value);
    }
    let Some(name) = dotted(&call.func) else {
        return Ok(false);
    };
    let name = file.expand(&name);
    if matches!(name.as_str(), "torch.jit.script" | "torch.jit.freeze") {
        return match call.arguments.args.first() {
            Some(inner) => makes_module(program, file, inner),
            None => Ok(false),
        };
    }
    match find_class(program, file, &name)? {
        Some(class) => Ok(ancestry(program, &class)?.is_some()),
        None => Ok(false),
    }
}

/// Whether the text by hand has module classes.
pub(crate) fn has_modules(program: &mut Program<'_>, file: &Arc<SourceFile>) -> Result<bool> {
    if file.qualifier != Some(BY_HAND) {
        return Ok(false);
    }
    for index in 0..file.body().len() {
        if is_module_class(program, file, index)? {
            return Ok(true);
        }
    }
    Ok(false)
}
