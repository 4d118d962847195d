//! Operators whose meaning has changed. Code of an older format version gets the old meaning.
//!
//! For each such operator, PyTorch has TorchScript code with the old semantics. Ours is in `upgraders.py`. `aten::gelu` has changed, too (version 10), but only
//! gained an argument whose default is the old meaning.

use frazil_ir::{TypeKind, ValueId};
use ruff_text_size::Ranged;

use super::Emitter;
use super::matching::Arguments;
use super::sugared::Sugared;
use crate::error::Result;
use crate::names::Global;
use crate::versions;

/// Qualifier of the functions that [`UPGRADERS`] defines.
pub(crate) const QUALIFIER: &str = "__torch__.frazil_upgraders";

/// The file name of [`UPGRADERS`] in source ranges.
pub(crate) const FILE: &str = "upgraders.py";

/// Source of the functions that implement operators with the semantics of older format versions.
pub(crate) const UPGRADERS: &str = include_str!("upgraders.py");

/// Returns the name of the function that implements the old version of operator `name`, if it has one.
fn upgrader(name: &str, second_is_tensor: bool, has_out: bool) -> Option<&'static str> {
    Some(match (name, second_is_tensor) {
        // A tensor that is there has its dtype already.
        ("aten::full", _) if has_out => return None,
        ("aten::linspace", _) if has_out => "linspace_out_7",
        ("aten::logspace", _) if has_out => "logspace_out_8",
        ("aten::div", true) => "div_tensor_3",
        ("aten::div", false) => "div_scalar_3",
        ("aten::div_", true) => "div__tensor_3",
        ("aten::div_", false) => "div__scalar_3",
        ("aten::full", _) => "full_4",
        ("aten::linspace", _) => "linspace_7",
        ("aten::logspace", _) => "logspace_8",
        _ => return None,
    })
}

impl<'f> Emitter<'_, 'f> {
    /// Emits a call with the old meaning of operator `name`, if that meaning has changed since the code's format
    /// version.
    pub(super) fn upgraded(
        &mut self,
        name: &str,
        arguments: &Arguments,
        node: &impl Ranged,
    ) -> Result<Option<ValueId>> {
        let mut given = arguments
            .object
            .iter()
            .chain(&arguments.positional)
            .map(|&value| self.kind_of(value));
        let (first, second) = (given.next(), given.next());
        let is_tensor = |kind: Option<TypeKind>| matches!(kind, Some(TypeKind::Tensor(_)));
        // The functions themselves speak of the operators of today.
        if *self.file.name == *FILE {
            return Ok(None);
        }
        let has_out = arguments
            .keywords
            .iter()
            .any(|(keyword, _)| self.names.ctx().name(*keyword) == "out");
        let Some(function) = upgrader(name, is_tensor(second), has_out) else {
            return Ok(None);
        };
        if versions::changed_in(name).is_none_or(|version| self.names.definitions().version >= version) {
            return Ok(None);
        }
        let changed = match name {
            // Division of numbers was always true division, and a rounding mode says it all.
            "aten::div" | "aten::div_" => is_tensor(first) && second.is_some() && arguments.keywords.is_empty(),
            // The overloads that take tensors are younger than the change.
            "aten::linspace" | "aten::logspace" => !is_tensor(first) && !is_tensor(second),
            _ => true,
        };
        if !changed {
            return Ok(None);
        }
        let Some(Global::Function(id)) = self.names.global(&format!("{QUALIFIER}.{function}"))? else {
            return Ok(None);
        };
        let mut arguments = arguments.clone();
        if let Some(object) = arguments.object.take() {
            arguments.positional.insert(0, object);
        }
        let called = self.call_sugared(Sugared::Function(id), arguments, node)?;
        self.value(called, node).map(Some)
    }
}
