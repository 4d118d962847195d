//! Representations of the traced function's values in the traced graph.

use super::{Noted, Result, Tracing};
use frazil_ir::{ValueId, types};
use frazil_runtime::Value;
use frazil_runtime::value::TensorCell;

impl Tracing<'_> {
    /// Returns the value of the traced graph that represents `value`; a new constant if there is none.
    pub(super) fn noted(&mut self, value: &Value, noted: &Noted) -> Result<ValueId> {
        match (value, noted) {
            (Value::Int(_), Noted::Int(known)) => Ok(*known),
            (Value::Tensor(cell), _) => self.tensor(cell),
            (Value::List(list), noted) => {
                let element = list.element;
                let mut items = Vec::new();
                for (index, item) in list.items().iter().enumerate() {
                    let known = match noted {
                        Noted::Ints(all) => all.get(index).copied().flatten(),
                        _ => None,
                    };
                    items.push(match known {
                        Some(known) => known,
                        None => self.noted(item, &Noted::Constant)?,
                    });
                }
                Ok(self.builder().list(element, &items))
            }
            (Value::Tuple(tuple), _) => {
                let mut items = Vec::new();
                for item in tuple.items.iter() {
                    items.push(self.noted(item, &Noted::Constant)?);
                }
                Ok(self.builder().tuple(&items))
            }
            (Value::Dict(_), _) => Err("an operator or function that is compiled takes a dictionary".to_owned()),
            (Value::Object(object), _) => self.module_of(object.address()),
            (value, _) => self.constant(value),
        }
    }

    pub(super) fn constant(&mut self, value: &Value) -> Result<ValueId> {
        let constant = self.exporter.constant(value).map_err(|e| e.to_string())?;
        Ok(self.builder().constant(constant))
    }

    /// Returns the current value of a tensor in the traced graph: a recorded value, an attribute, or else a constant.
    pub(super) fn tensor(&mut self, cell: &TensorCell) -> Result<ValueId> {
        if let Some((value, _)) = self.tensors.get(&cell.address()) {
            return Ok(*value);
        }
        let value = match self.attributes.get(&cell.address()).copied() {
            Some((owner, name)) => {
                let owner = self.module_of(owner)?;
                let value = self.builder().get_attr(owner, name, types::TENSOR);
                if self.parameters.contains(&cell.address()) {
                    self.gradients.insert(value);
                }
                value
            }
            None => self.constant(&Value::Tensor(cell.clone()))?,
        };
        self.define(cell, value);
        Ok(value)
    }

    /// Returns the traced value of the module at an address, which is read from its parent module.
    pub(super) fn module_of(&mut self, address: usize) -> Result<ValueId> {
        if let Some(&known) = self.objects.get(&address) {
            return Ok(known);
        }
        let Some(&(owner, name, ty)) = self.modules.get(&address) else {
            return Err(
                "an operator or function that is compiled takes an object that is no part of the module".to_owned(),
            );
        };
        let owner = self.module_of(owner)?;
        let value = self.builder().get_attr(owner, name, ty);
        self.objects.insert(address, value);
        Ok(value)
    }

    pub(super) fn define(&mut self, cell: &TensorCell, value: ValueId) {
        self.tensors.insert(cell.address(), (value, cell.clone()));
    }
}
