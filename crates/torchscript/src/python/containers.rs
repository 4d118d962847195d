//! Evaluation of `Sequential`, `ModuleList`, `ModuleDict`, `ParameterList` and `ParameterDict`: elements, slices, iteration.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast::CmpOp;
use ruff_text_size::Ranged;

use super::attributes::set_attribute;
use super::compare::{compared, is_among};
use super::elements;
use super::maker::{Maker, Scope};
use super::operators::sliced;
use super::value::{ObjectRef, Py, PyObject};
use crate::error::Result;
use crate::source::SourceFile;
use crate::source::shared;

/// A kind of container of modules or parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Sequential,
    ModuleList,
    ParameterList,
    ModuleDict,
    ParameterDict,
}

impl Container {
    fn is_dict(self) -> bool {
        matches!(self, Container::ModuleDict | Container::ParameterDict)
    }
}

impl Maker<'_> {
    /// Returns the kind of container that `object` is; `None` for other modules.
    pub(super) fn container(&mut self, object: &ObjectRef) -> Result<Option<Container>> {
        let chain = self.chain(object)?;
        Ok(chain.iter().find_map(|class| {
            match class.qualified.strip_prefix("__torch__.torch.nn.modules.container.")? {
                "Sequential" => Some(Container::Sequential),
                "ModuleList" => Some(Container::ModuleList),
                "ParameterList" => Some(Container::ParameterList),
                "ModuleDict" => Some(Container::ModuleDict),
                "ParameterDict" => Some(Container::ParameterDict),
                _ => None,
            }
        }))
    }

    /// Returns the children of a container with their names.
    pub(super) fn held(&mut self, object: &ObjectRef) -> Result<Option<Vec<(String, Py)>>> {
        let Some(kind) = self.container(object)? else {
            return Ok(None);
        };
        let object = object.borrow();
        let is_held = |value: &Py| match kind {
            Container::ParameterList | Container::ParameterDict => matches!(value, Py::Parameter(_)),
            _ => matches!(value, Py::Object(_)),
        };
        let held = object.attributes.iter().filter(|(_, a)| is_held(&a.value));
        Ok(Some(held.map(|(name, a)| (name.clone(), a.value.clone())).collect()))
    }

    /// Returns the items over which `value` iterates, if they are known. An iterator is exhausted afterwards.
    pub(super) fn items(&mut self, value: &Py) -> Option<Vec<Py>> {
        let Py::Object(object) = value else {
            return value.items();
        };
        if self.defines(object, &["__iter__", "__getitem__"]).ok()? {
            return None;
        }
        let is_dict = self.container(object).ok()??.is_dict();
        let held = self.held(object).ok()??;
        let item = |(name, value): (String, Py)| if is_dict { Py::str(name) } else { value };
        Some(held.into_iter().map(item).collect())
    }

    /// Evaluates `len(value)`.
    pub(super) fn length(&mut self, value: &Py) -> Option<i64> {
        let length = match value {
            Py::List(items) => items.borrow().len(),
            Py::Tuple(items) | Py::Size(items) => items.len(),
            Py::Named(named) => named.items.len(),
            Py::Dict(items) => items.borrow().len(),
            Py::Set(items, _) => items.borrow().len(),
            Py::Str(text) => text.chars().count(),
            Py::Tensor(tensor) | Py::Parameter(tensor) => return tensor.sizes().first().copied(),
            Py::Object(object) if !self.defines(object, &["__len__"]).ok()? => self.held(object).ok()??.len(),
            _ => return None,
        };
        Some(length as i64)
    }

    /// Returns whether `value` counts as true, or an error if only Python can decide.
    pub(super) fn truth(&mut self, file: &SourceFile, value: &Py, node: &impl Ranged) -> Result<bool> {
        let known = match value {
            Py::Object(object) if self.defines(object, &["__bool__", "__len__"])? => None,
            Py::Object(object) => Some(self.held(object)?.is_none_or(|held| !held.is_empty())),
            other => other.truth(),
        };
        match known {
            Some(known) => Ok(known),
            None => self.beyond(file, format!("whether this {} is true", value.type_name()), node),
        }
    }

    /// Returns whether the value of an expression counts as true, or an error if only Python can decide.
    pub(super) fn test(&mut self, scope: &mut Scope, expr: &ruff_python_ast::Expr) -> Result<bool> {
        let value = self.expr(scope, expr)?;
        self.truth(&Arc::clone(&scope.file), &value, expr)
    }

    /// Evaluates the comparison `left op right`.
    pub(super) fn comparison(
        &mut self,
        file: &SourceFile,
        op: CmpOp,
        left: &Py,
        right: &Py,
        node: &impl Ranged,
    ) -> Result<Py> {
        let is_tensor = |value: &Py| matches!(value, Py::Tensor(_) | Py::Parameter(_));
        let is_number = |value: &Py| value.as_f64().is_some();
        let by_element =
            is_tensor(left) && (is_tensor(right) || is_number(right)) || is_number(left) && is_tensor(right);
        let found = match (op, right) {
            (CmpOp::In | CmpOp::NotIn, Py::Object(object)) => {
                let known = !self.defines(object, &["__contains__", "__iter__", "__getitem__"])?;
                let items = self.items(right).filter(|_| known);
                items.and_then(|items| Some(Py::Bool(is_among(&items, left)? == (op == CmpOp::In))))
            }
            (CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn, _) => compared(op, left, right).map(Py::Bool),
            _ if by_element => elements::compared(op, left, right).map(Py::Tensor),
            _ => compared(op, left, right).map(Py::Bool),
        };
        match found {
            Some(value) => Ok(value),
            None => self.beyond(file, "this comparison", node),
        }
    }

    /// Returns the name of the child at `index` of a container.
    fn child_name(&mut self, file: &SourceFile, object: &ObjectRef, index: &Py, node: &impl Ranged) -> Result<String> {
        if self.defines(object, &["__getitem__", "__setitem__", "__delitem__", "__len__"])? {
            return self.beyond(file, "this subscript", node);
        }
        let (Some(kind), Some(held)) = (self.container(object)?, self.held(object)?) else {
            return self.beyond(file, "this subscript", node);
        };
        match (kind.is_dict(), index) {
            (true, Py::Str(name)) => Ok(name.to_string()),
            (false, Py::Int(at)) => {
                let length = held.len() as i64;
                let at = if *at < 0 { at + length } else { *at };
                match usize::try_from(at).ok().and_then(|at| held.get(at)) {
                    Some((name, _)) => Ok(name.clone()),
                    None => self.fail(file, "index out of range", node),
                }
            }
            _ => self.beyond(file, "this subscript", node),
        }
    }

    /// Evaluates `container[index]`, a child.
    pub(super) fn child(
        &mut self,
        file: &SourceFile,
        object: &ObjectRef,
        index: &Py,
        node: &impl Ranged,
    ) -> Result<Py> {
        let name = self.child_name(file, object, index, node)?;
        let found = object.borrow().attributes.get(&name).map(|a| a.value.clone());
        match found {
            Some(value) => Ok(value),
            None => self.fail(file, format!("KeyError: '{name}'"), node),
        }
    }

    /// Executes the assignment `container[index] = value`.
    pub(super) fn set_child(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        index: &Py,
        value: Py,
        node: &impl Ranged,
    ) -> Result<()> {
        let name = self.child_name(file, object, index, node)?;
        let kind = self.container(object)?;
        // Only parameters and modules are supported; in PyTorch, parameter containers also convert tensors to parameters.
        let fits = match kind {
            Some(Container::ParameterList | Container::ParameterDict) => matches!(value, Py::Parameter(_)),
            _ => matches!(value, Py::Object(_)),
        };
        if !fits {
            return self.beyond(file, format!("a {} in this container", value.type_name()), node);
        }
        self.set_member(file, object, &name, value, node)
    }

    /// Evaluates `container[start:end]`, which is a container of the same class.
    pub(super) fn children_between(
        &mut self,
        file: &SourceFile,
        object: &ObjectRef,
        bounds: [Option<i64>; 3],
        node: &impl Ranged,
    ) -> Result<Py> {
        let class = object.borrow().class.clone();
        let kind = self.container(object)?;
        let (Some(kind @ (Container::Sequential | Container::ModuleList)), Some(held), false) =
            (kind, self.held(object)?, class.file.rules.is_source())
        else {
            return self.beyond(file, "this slice", node);
        };
        let Some(picked) = sliced(&held, bounds) else {
            return self.fail(file, "slice step cannot be zero", node);
        };
        let mut slice = PyObject::new(class);
        for (number, (name, module)) in picked.into_iter().enumerate() {
            // A `ModuleList` is numbered anew.
            let name = match kind {
                Container::Sequential => name,
                _ => number.to_string(),
            };
            if let Err(message) = set_attribute(&mut slice, &name, module) {
                return self.fail(file, message, node);
            }
        }
        Ok(Py::Object(shared(RefCell::new(slice))))
    }

    /// Calls `append`, `extend`, `update`, or a method that returns a view of a dictionary. Returns `None` for other methods.
    pub(super) fn container_method(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        name: &str,
        argument: Option<&Py>,
        node: &impl Ranged,
    ) -> Result<Option<Py>> {
        let (Some(kind), Some(held)) = (self.container(object)?, self.held(object)?) else {
            return Ok(None);
        };
        let this = Py::Object(Rc::clone(object));
        Ok(Some(match (name, argument, kind.is_dict()) {
            ("append", Some(child), false) => {
                self.add_child(file, object, held.len(), child, node)?;
                this
            }
            ("extend", Some(children), false) => {
                let Some(children) = self.items(children) else {
                    return Ok(None);
                };
                for (number, child) in children.iter().enumerate() {
                    self.add_child(file, object, held.len() + number, child, node)?;
                }
                this
            }
            ("update", Some(Py::Dict(children)), true) => {
                for (name, child) in children.borrow().clone() {
                    self.set_child(file, object, &name, child, node)?;
                }
                Py::None
            }
            ("items", None, true) => Py::list(
                held.into_iter()
                    .map(|(name, value)| Py::tuple(vec![Py::str(name), value]))
                    .collect(),
            ),
            ("keys", None, true) => Py::list(held.into_iter().map(|(name, _)| Py::str(name)).collect()),
            ("values", None, true) => Py::list(held.into_iter().map(|(_, value)| value).collect()),
            _ => return Ok(None),
        }))
    }

    fn add_child(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        number: usize,
        child: &Py,
        node: &impl Ranged,
    ) -> Result<()> {
        let is_list_of_parameters = self.container(object)? == Some(Container::ParameterList);
        let fits = match child {
            Py::Parameter(_) => is_list_of_parameters,
            Py::Object(_) => !is_list_of_parameters,
            _ => false,
        };
        if !fits {
            return self.beyond(file, format!("a {} in this container", child.type_name()), node);
        }
        self.set_member(file, object, &number.to_string(), child.clone(), node)
    }
}
