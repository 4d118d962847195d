//! Objects of classes other than modules, values with a TorchScript type, and local variables of functions.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::AttributeKind;
use indexmap::IndexMap;
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::attributes::Member;
use super::maker::{Maker, Scope};
use super::mentions::Mentions;
use super::value::{Attribute, ObjectRef, Py, PyObject};
use crate::error::Result;
use crate::names::{Annotations, ClassRef};
use crate::source::shared;
use crate::source::{SourceFile, dotted};

/// Special methods that change how a class accesses the attributes of its objects.
const HOOKS: &[&str] = &[
    "__delattr__",
    "__getattr__",
    "__getattribute__",
    "__init_subclass__",
    "__new__",
    "__setattr__",
];

impl Maker<'_> {
    /// Creates an object of a class of the source text that is no class of modules.
    pub(super) fn instance(
        &mut self,
        class: &ClassRef,
        positional: Vec<Py>,
        keywords: Vec<(String, Py)>,
        file: &Arc<SourceFile>,
        node: &impl Ranged,
    ) -> Result<Py> {
        if let Some(named) = self.named_class(class)? {
            return self.make_named(file, &named, positional, keywords, node);
        }
        let is_plain = |class: &ClassRef| {
            let def = class.def()?;
            let mut bases = def.bases().iter().map(|base| dotted(base).unwrap_or_default());
            let keywords = def
                .arguments
                .as_ref()
                .is_none_or(|arguments| arguments.keywords.is_empty());
            // Such decorators leave the class as it is.
            let is_left = |name: &str| name == "script" || name == "torch.jit.script";
            let mut decorators = def
                .decorator_list
                .iter()
                .map(|d| dotted(&d.expression).unwrap_or_default());
            let plain = bases.all(|base| base == "object") && keywords && decorators.all(|name| is_left(&name));
            Some(plain && class.file.rules.is_source() && HOOKS.iter().all(|hook| class.method(hook).is_none()))
        };
        if is_plain(class) != Some(true) {
            return self.beyond(file, "an object of a class that is no module", node);
        }
        let object = shared(RefCell::new(PyObject {
            attributes: IndexMap::new(),
            ..PyObject::new(class.clone())
        }));
        let this = Py::Instance(Rc::clone(&object));
        match self.inherited(std::slice::from_ref(class), "__init__")? {
            Some(Member::Method(init)) => {
                self.call_function(&init, Some(this.clone()), positional, keywords, node)?;
            }
            Some(_) => return self.beyond(file, format!("`__init__` of `{}`", class.simple()), node),
            None if positional.is_empty() && keywords.is_empty() => {}
            None => return self.fail(file, format!("{}() takes no arguments", class.simple()), node),
        }
        Ok(this)
    }

    /// Returns an attribute of an object that is not a module.
    pub(super) fn field(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        name: &str,
        node: &impl Ranged,
    ) -> Result<Option<Py>> {
        if name.starts_with("__") {
            return self.beyond(file, format!("the attribute `{name}` of an object"), node);
        }
        let class = object.borrow().class.clone();
        let of_class = self.inherited(std::slice::from_ref(&class), name)?;
        let this = Py::Instance(Rc::clone(object));
        if let Some(Member::Property(getter, _)) = &of_class {
            return self
                .call_function(getter, Some(this), Vec::new(), Vec::new(), node)
                .map(Some);
        }
        if let Some(own) = object.borrow().attributes.get(name) {
            return Ok(Some(own.value.clone()));
        }
        Ok(match of_class {
            Some(Member::Method(_)) => Some(Py::Method(Box::new(this), name.into())),
            Some(Member::Static(function)) => Some(Py::Function(function)),
            Some(Member::Value(Py::Function(_) | Py::Path(_))) => {
                return self.beyond(file, format!("`{name}`, a function that a class body assigns,"), node);
            }
            Some(Member::Value(value)) => Some(value),
            Some(Member::Property(..)) | None => None,
        })
    }

    /// Sets an attribute of an object that is not a module.
    pub(super) fn set_field(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        name: &str,
        value: Py,
        node: &impl Ranged,
    ) -> Result<()> {
        let class = object.borrow().class.clone();
        if let Some(Member::Property(..)) = self.inherited(std::slice::from_ref(&class), name)? {
            return self.beyond(file, format!("setting the property `{name}`"), node);
        }
        let kind = AttributeKind::Plain;
        object
            .borrow_mut()
            .attributes
            .insert(name.to_owned(), Attribute { value, kind });
        Ok(())
    }

    /// Calls a method of an object that is not a module.
    pub(super) fn call_field(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        name: &str,
        positional: Vec<Py>,
        keywords: Vec<(String, Py)>,
        call: &ExprCall,
    ) -> Result<Py> {
        let class = object.borrow().class.clone();
        match self.inherited(std::slice::from_ref(&class), name)? {
            Some(Member::Method(method)) => {
                let this = Py::Instance(Rc::clone(object));
                self.call_function(&method, Some(this), positional, keywords, call)
            }
            _ => self.beyond(file, format!("this call of `{name}`"), call),
        }
    }

    /// Evaluates `torch.jit.Attribute(value, type)` and `torch.jit.annotate(type, value)`. Their type arguments are no values here.
    pub(super) fn typed(&mut self, scope: &mut Scope, call: &ExprCall) -> Result<Option<Py>> {
        let path = self.path_of(scope, &call.func).unwrap_or_default();
        let names = match path.as_str() {
            "torch.jit.Attribute" => ["value", "type"],
            "torch.jit.annotate" => ["the_type", "the_value"],
            _ => return Ok(None),
        };
        let file = Arc::clone(&scope.file);
        let given: Vec<Option<&Expr>> = names
            .iter()
            .enumerate()
            .map(|(index, name)| call.arguments.find_argument_value(name, index))
            .collect();
        let (2, &[Some(first), Some(second)]) = (call.arguments.len(), given.as_slice()) else {
            return self.fail(&file, format!("`{path}` takes a value and a type"), call);
        };
        if path == "torch.jit.annotate" {
            self.names.annotation(&file, first)?;
            return self.expr(scope, second).map(Some);
        }
        let value = self.expr(scope, first)?;
        let ty = self.names.annotation(&file, second)?;
        Ok(Some(Py::Typed(Box::new(value), ty)))
    }

    /// Returns whether `name` is a local variable of the current function that has not been assigned.
    pub(super) fn is_local(&mut self, scope: &Scope, name: &str) -> bool {
        let Some(function) = scope.function.as_ref().filter(|_| !scope.is_top && !scope.is_class) else {
            return false;
        };
        let key = (function.statement, function.method);
        let known = self.locals.entry(key).or_insert_with(|| {
            let body = function.def().map_or(&[][..], |def| def.body.as_slice());
            let mut names = std::collections::BTreeSet::new();
            let mut global = std::collections::BTreeSet::new();
            for statement in body {
                let mentions = Mentions::of(statement);
                global.extend(declared_global(statement));
                names.extend(mentions.stored);
            }
            names.retain(|name| !global.contains(name));
            Rc::new(names)
        });
        known.contains(name) && !scope.globals.contains(name)
    }
}

/// Returns the names that `statement`, or a statement nested in it, declares global.
fn declared_global(statement: &ruff_python_ast::Stmt) -> Vec<String> {
    use ruff_python_ast::visitor::{Visitor, walk_stmt};
    #[derive(Default)]
    struct Names(Vec<String>);
    impl<'a> Visitor<'a> for Names {
        fn visit_stmt(&mut self, statement: &'a ruff_python_ast::Stmt) {
            if let ruff_python_ast::Stmt::Global(global) = statement {
                self.0.extend(global.names.iter().map(ToString::to_string));
            }
            walk_stmt(self, statement);
        }
    }
    let mut names = Names::default();
    names.visit_stmt(statement);
    names.0
}
