//! Evaluation of NamedTuples: classes of the source text that derive from `NamedTuple`, and results of `collections.namedtuple`.

use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::arguments::{Assignment, AssignmentError, Parameter};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::arguments::Arguments;
use super::attributes::Member;
use super::maker::Maker;
use super::value::{Named, NamedClass, Py};
use crate::error::Result;
use crate::names::ClassRef;
use crate::source::parameters::assignment_message;
use crate::source::{SourceFile, dotted};

/// A field of a NamedTuple, which is a parameter of the class's constructor.
#[derive(Clone, Copy)]
struct Field<'c> {
    name: &'c str,
    default: Option<&'c Py>,
}

impl Parameter<String> for Field<'_> {
    fn is_named(&self, keyword: &String) -> bool {
        self.name == keyword
    }

    fn is_keyword_only(&self) -> bool {
        false
    }

    fn has_default(&self) -> bool {
        self.default.is_some()
    }
}

impl Maker<'_> {
    /// Returns the NamedTuple class that `class` defines; `None` if it is another kind of class.
    pub(super) fn named_class(&mut self, class: &ClassRef) -> Result<Option<Rc<NamedClass>>> {
        let Some(def) = class.def() else { return Ok(None) };
        let is_base = |base: &Expr| {
            let path = class.file.expand(&dotted(base).unwrap_or_default());
            matches!(path.as_str(), "NamedTuple" | "typing.NamedTuple")
        };
        if !matches!(def.bases(), [base] if is_base(base)) {
            return Ok(None);
        }
        let (mut fields, mut defaults) = (Vec::new(), Vec::new());
        for member in &def.body {
            let Stmt::AnnAssign(assign) = member else { continue };
            let Expr::Name(target) = &*assign.target else { continue };
            let name: Rc<str> = target.id.as_str().into();
            fields.push(Rc::clone(&name));
            if assign.value.is_some()
                && let Some(value) = self.class_value(class, &name)
            {
                defaults.push((name, value?));
            }
        }
        Ok(Some(Rc::new(NamedClass {
            name: class.simple().into(),
            fields,
            defaults,
            class: Some(class.clone()),
        })))
    }

    /// Evaluates `collections.namedtuple(name, fields, defaults=...)` and `NamedTuple(name, [(field, type), ...])`.
    pub(super) fn named_factory(&mut self, path: &str, arguments: &Arguments) -> Option<Py> {
        let Py::Str(name) = arguments.get(0, "typename")? else {
            return None;
        };
        let is_typed = path.ends_with("NamedTuple");
        let fields = arguments.get(1, if is_typed { "fields" } else { "field_names" })?;
        let fields: Vec<Rc<str>> = match fields {
            Py::Str(text) if !is_typed => {
                let names = text.split([',', ' ', '\t', '\n']).filter(|name| !name.is_empty());
                names.map(Rc::from).collect()
            }
            list => {
                let field = |item: Py| match (is_typed, item) {
                    (false, Py::Str(name)) => Some(name),
                    (true, Py::Tuple(pair)) => match pair.first() {
                        Some(Py::Str(name)) => Some(Rc::clone(name)),
                        _ => None,
                    },
                    _ => None,
                };
                list.items()?.into_iter().map(field).collect::<Option<_>>()?
            }
        };
        let defaults = match arguments.named("defaults") {
            None | Some(Py::None) => Vec::new(),
            Some(values) => {
                let values = values.items()?;
                let skipped = fields.len().checked_sub(values.len())?;
                fields.iter().skip(skipped).cloned().zip(values).collect()
            }
        };
        Some(Py::NamedClass(Rc::new(NamedClass {
            name: Rc::clone(name),
            fields,
            defaults,
            class: None,
        })))
    }

    /// Evaluates a call of a NamedTuple class, which creates a tuple.
    pub(super) fn make_named(
        &mut self,
        file: &SourceFile,
        class: &Rc<NamedClass>,
        positional: Vec<Py>,
        keywords: Vec<(String, Py)>,
        node: &impl Ranged,
    ) -> Result<Py> {
        let fault = |error: AssignmentError, field: &str| {
            let argument = error.keyword(&keywords).map_or(field, String::as_str);
            file.error("construct", assignment_message(&class.name, error, argument), node)
        };
        let fields = class.fields.iter().map(|name| Field {
            name,
            default: class
                .defaults
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value),
        });
        let mut call = Assignment::new(positional.len(), &keywords);
        let mut items = Vec::with_capacity(class.fields.len());
        for field in fields.clone() {
            let assigned = call.next(&field).map_err(|error| fault(error, field.name))?;
            items.extend(assigned.passed(&positional, &keywords).or(field.default).cloned());
        }
        call.finish(fields).map_err(|error| fault(error, ""))?;
        Ok(Py::Named(Rc::new(Named {
            class: Rc::clone(class),
            items: items.into(),
        })))
    }

    /// Evaluates `named.name`; returns `None` if the NamedTuple has no such attribute.
    pub(super) fn named_attribute(
        &mut self,
        file: &Arc<SourceFile>,
        named: &Rc<Named>,
        name: &str,
        node: &impl Ranged,
    ) -> Result<Option<Py>> {
        if let Some(value) = named.field(name) {
            return Ok(Some(value));
        }
        if name == "_fields" {
            return Ok(Some(named.class.field_names()));
        }
        let method = || Some(Py::Method(Box::new(Py::Named(Rc::clone(named))), name.into()));
        if matches!(name, "_asdict" | "_replace" | "count" | "index") {
            return Ok(method());
        }
        let Some(class) = named.class.class.clone() else {
            return Ok(None);
        };
        match self.inherited(std::slice::from_ref(&class), name)? {
            Some(Member::Method(_)) => Ok(method()),
            Some(Member::Static(function)) => Ok(Some(Py::Function(function))),
            Some(Member::Property(getter, _)) => {
                let this = Py::Named(Rc::clone(named));
                self.call_function(&getter, Some(this), Vec::new(), Vec::new(), node)
                    .map(Some)
            }
            Some(Member::Value(value)) => Ok(Some(value)),
            None if name.starts_with("__") => self.beyond(file, format!("the attribute `{name}` of a tuple"), node),
            None => Ok(None),
        }
    }

    /// Evaluates a call of a method of a NamedTuple.
    pub(super) fn call_named(
        &mut self,
        file: &Arc<SourceFile>,
        named: &Rc<Named>,
        method: &str,
        positional: Vec<Py>,
        keywords: Vec<(String, Py)>,
        node: &impl Ranged,
    ) -> Result<Py> {
        match method {
            "_asdict" if positional.is_empty() && keywords.is_empty() => {
                let names = named.class.fields.iter().map(|field| Py::Str(Rc::clone(field)));
                let pairs = names.zip(named.items.iter().cloned()).collect();
                return Ok(Py::dict(pairs));
            }
            "_replace" if positional.is_empty() => {
                let mut items = named.items.to_vec();
                for (name, value) in keywords {
                    let at = named.class.fields.iter().position(|field| **field == *name);
                    match at.and_then(|at| items.get_mut(at)) {
                        Some(slot) => *slot = value,
                        None => return self.fail(file, format!("Got unexpected field names: ['{name}']"), node),
                    }
                }
                return Ok(named.with(items));
            }
            _ => {}
        }
        if let Some(class) = named.class.class.clone()
            && let Some(Member::Method(function)) = self.inherited(std::slice::from_ref(&class), method)?
        {
            let this = Py::Named(Rc::clone(named));
            return self.call_function(&function, Some(this), positional, keywords, node);
        }
        self.beyond(file, format!("this call of `{method}`"), node)
    }

    /// Returns whether a NamedTuple is an instance of `class`, if that is a class of NamedTuples.
    pub(super) fn is_named_of(&mut self, named: &Named, class: &ClassRef) -> Result<Option<bool>> {
        let class = self.named_class(class)?;
        Ok(class.map(|class| class.is(&named.class)))
    }
}
