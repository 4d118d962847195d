//! Operators on objects, which call special methods such as `__add__`.

use frazil_ir::{Constant, SymbolId, TypeKind, ValueId};
use ruff_text_size::Ranged;

use super::Emitter;
use super::matching::Arguments;
use crate::error::Result;

/// Returns the special method that implements `operator`, if objects may define it.
fn method(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "aten::add" => "__add__",
        "aten::sub" => "__sub__",
        "aten::mul" => "__mul__",
        "aten::matmul" => "__matmul__",
        "aten::div" => "__truediv__",
        "aten::floordiv" => "__floordiv__",
        "aten::remainder" => "__mod__",
        "aten::pow" => "__pow__",
        "aten::neg" => "__neg__",
        "aten::bitwise_not" => "__invert__",
        "aten::eq" => "__eq__",
        "aten::ne" => "__ne__",
        "aten::lt" => "__lt__",
        "aten::le" => "__le__",
        "aten::gt" => "__gt__",
        "aten::ge" => "__ge__",
        "aten::__and__" => "__and__",
        "aten::__or__" => "__or__",
        "aten::__xor__" => "__xor__",
        "aten::__lshift__" => "__lshift__",
        "aten::__rshift__" => "__rshift__",
        "aten::__contains__" => "__contains__",
        "aten::__getitem__" => "__getitem__",
        "aten::_set_item" => "__setitem__",
        "aten::Delete" => "__delitem__",
        "aten::len" => "__len__",
        "aten::Bool" => "__bool__",
        "aten::Int" => "__int__",
        "aten::Float" => "__float__",
        "aten::Complex" => "__complex__",
        "aten::str" => "__str__",
        "prim::abs" => "__abs__",
        "aten::hash" => "__hash__",
        "aten::round" => "__round__",
        _ => return None,
    })
}

/// Returns the operators that PyTorch emits for a number before a tensor, such as `1 - x`, and whether the number becomes the last operand.
fn number_first(operator: &str) -> Option<(Option<&'static str>, &'static str)> {
    Some(match operator {
        "aten::add" => (None, "aten::add"),
        "aten::mul" => (None, "aten::mul"),
        "aten::sub" => (Some("aten::neg"), "aten::add"),
        "aten::div" => (Some("aten::reciprocal"), "aten::mul"),
        "aten::lt" => (None, "aten::gt"),
        "aten::le" => (None, "aten::ge"),
        "aten::gt" => (None, "aten::lt"),
        "aten::ge" => (None, "aten::le"),
        "aten::eq" => (None, "aten::eq"),
        "aten::ne" => (None, "aten::ne"),
        _ => return None,
    })
}

impl<'f> Emitter<'_, 'f> {
    /// Emits an operator on a number and a tensor in that order, by an operator on the tensor and the number.
    pub(super) fn number_first(
        &mut self,
        operator: &str,
        arguments: &Arguments,
        node: &impl Ranged,
    ) -> Result<Option<ValueId>> {
        let (&[number, tensor], None, true) = (
            arguments.positional.as_slice(),
            arguments.object,
            arguments.keywords.is_empty(),
        ) else {
            return Ok(None);
        };
        let is_number = matches!(
            self.kind_of(number),
            TypeKind::Int | TypeKind::Float | TypeKind::Complex | TypeKind::Number
        );
        let (true, TypeKind::Tensor(_), Some((first, then))) =
            (is_number, self.kind_of(tensor), number_first(operator))
        else {
            return Ok(None);
        };
        let tensor = match first {
            Some(first) => self.builtin(first, Arguments::of(&[tensor]), node)?,
            None => tensor,
        };
        self.builtin(then, Arguments::of(&[tensor, number]), node).map(Some)
    }

    /// Emits the length of a container of modules, or the test whether it has a child with a given name. Both are constants.
    fn container_operator(
        &mut self,
        operator: &str,
        names: &[String],
        arguments: &Arguments,
        node: &impl Ranged,
    ) -> Result<Option<ValueId>> {
        self.locate(node);
        let key = arguments.positional.get(1).and_then(|&key| self.graph.constant(key));
        Ok(match (operator, key) {
            ("aten::len", _) => Some(self.literal(Constant::Int(names.len() as i64))),
            ("aten::__contains__", Some(Constant::Str(key))) => {
                let has = names.iter().any(|name| **name == *key);
                Some(self.constant(Constant::Bool(has)))
            }
            _ => None,
        })
    }

    /// Returns whether the length of a container of modules is computed by a call. It is outside of the container's own
    /// code.
    fn has_length(&mut self, class: SymbolId) -> Result<bool> {
        let is_own = self.file.rules.qualifier().is_some_and(|q| q.ends_with(".container"));
        Ok(!is_own && self.names.module_method(class, "__len__")?.is_some())
    }

    /// Emits an operator on an object as a call of its special method.
    pub(super) fn magic(
        &mut self,
        operator: &str,
        arguments: &Arguments,
        node: &impl Ranged,
    ) -> Result<Option<ValueId>> {
        let (Some(&object), Some(name)) = (arguments.positional.first(), method(operator)) else {
            return Ok(None);
        };
        if arguments.object.is_some() || !matches!(self.kind_of(object), TypeKind::Class(_) | TypeKind::Interface(_)) {
            return Ok(None);
        }
        if let TypeKind::Class(class) = self.kind_of(object)
            && let Some(names) = self.names.definitions().container(class).map(<[String]>::to_vec)
            && !(operator == "aten::len" && self.has_length(class)?)
        {
            return self.container_operator(operator, &names, arguments, node);
        }
        let rest = Arguments {
            object: None,
            positional: arguments.positional.iter().skip(1).copied().collect(),
            keywords: arguments.keywords.clone(),
        };
        let name = self.names.ctx().symbol(name);
        self.call_method(object, name, rest, node).map(Some)
    }
}
