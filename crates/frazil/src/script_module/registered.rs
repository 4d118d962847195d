//! Registering tensors that may be missing, and the names that registered things may have.

use crate::{Error, Model, Result};
use frazil_ir::{AttributeKind, Constant, TensorData, TypeId, types};
use std::sync::Arc;

impl Model {
    /// The type and content of an attribute that holds `tensor`: optional for a missing tensor, and where the attribute is so already.
    pub(super) fn optional_tensor(&self, name: &str, tensor: Option<TensorData>) -> (TypeId, Constant) {
        let ctx = self.session().ctx();
        let module = self.module();
        let class = module.class_of(module.root);
        let known = ctx.find_symbol(name).and_then(|name| class?.attributes.get(&name));
        let optional = ctx.optional_of(types::TENSOR);
        match tensor {
            Some(data) => {
                let is_optional = known.is_some_and(|attribute| attribute.ty == optional);
                let ty = if is_optional { optional } else { types::TENSOR };
                (ty, Constant::Tensor(Arc::new(data)))
            }
            // Code was compiled for an attribute that is always `None`, or may be.
            None => match known.map(|attribute| attribute.ty) {
                Some(types::NONE) => (types::NONE, Constant::None),
                _ => (optional, Constant::None),
            },
        }
    }
}

/// Checks the name of an attribute that is added.
///
/// # Errors
/// When it is empty or has a dot; the text is PyTorch's.
pub(super) fn check_name(kind: AttributeKind, name: &str) -> Result<()> {
    let what = match kind {
        AttributeKind::Parameter => "parameter",
        AttributeKind::Buffer => "buffer",
        AttributeKind::Plain => "attribute",
    };
    let problem = match name {
        "" => "can't be empty string \"\"",
        name if name.contains('.') => "can't contain \".\"",
        _ => return Ok(()),
    };
    Err(Error::Attribute(format!("{what} name {problem}")))
}
