//! Objects of classes of a model.

use crate::arrays::Kind;
use crate::errors::attribute_error;
use crate::value::Values;
use frazil::Model;
use frazil::ir::types::{TypeStyle, display_type};
use frazil::runtime::value::ObjectValue;
use pyo3::prelude::*;

/// An object of a class that the model defines, as an argument or result of methods. Its attributes can be read and set.
///
/// >>> import frazil
/// >>> unit = frazil.script("""
/// ... class Point:
/// ...     def __init__(self, x: int):
/// ...         self.x = x
/// ... def make(x: int):
/// ...     return Point(x)
/// ... """, name="make")
/// >>> point = unit(3)
/// >>> point.x = 4
/// >>> point.x
/// 4
#[pyclass(frozen, module = "frazil", name = "Object")]
pub(crate) struct Object {
    model: Model,
    value: ObjectValue,
    kind: Kind,
}

impl Object {
    pub(crate) fn new(model: Model, value: ObjectValue, kind: Kind) -> Object {
        Object { model, value, kind }
    }

    pub(crate) fn value(&self) -> &ObjectValue {
        &self.value
    }

    /// Returns the names of the object's attributes.
    fn names(&self) -> Vec<&str> {
        let module = self.model.module();
        let class = module.unit.class(self.value.class());
        let names = class.into_iter().flat_map(|class| class.attributes.keys());
        names.map(|name| module.ctx().name(*name)).collect()
    }

    fn slot(&self, name: &str) -> PyResult<usize> {
        let found = self.names().iter().position(|known| *known == name);
        found.ok_or_else(|| attribute_error(format!("{} has no attribute `{name}`", self.class_name())))
    }

    fn class_name(&self) -> &str {
        let name = self.model.module().ctx().name(self.value.class());
        name.rsplit('.').next().unwrap_or(name)
    }
}

#[pymethods]
impl Object {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = self.value.slot(self.slot(name)?).unwrap_or_default();
        Values::new(py, &self.model, self.kind).write(value)
    }

    fn __setattr__(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let slot = self.slot(name)?;
        let mut values = Values::new(value.py(), &self.model, self.kind);
        let value = values.read(value)?;
        let ctx = self.model.module().ctx();
        let class = self.model.module().unit.class(self.value.class());
        let expected = class.and_then(|c| c.attributes.get_index(slot)).map(|(_, a)| a.ty);
        let value = expected.map_or(value.clone(), |ty| values.fitted(value, ty));
        let found = value.ty(ctx);
        if let Some(expected) = expected.filter(|&ty| !frazil::ir::types::is_subtype(ctx, found, ty)) {
            let text = |ty| display_type(ctx, ty, TypeStyle::Annotation).to_string();
            return Err(crate::errors::type_error(format!(
                "attribute `{name}`: expected a value of type {}, not {}",
                text(expected),
                text(found)
            )));
        }
        self.value.set_slot(slot, value);
        Ok(())
    }

    fn __dir__(&self) -> Vec<&str> {
        self.names()
    }

    fn __repr__(&self) -> String {
        format!("<frazil.Object of class {}>", self.class_name())
    }
}
