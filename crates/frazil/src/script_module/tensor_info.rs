//! Metadata of tensors in a module.

use super::ScriptModule;
use crate::error::{Error, Result};
use frazil_ir::{Constant, DType, Device};

/// Metadata of a tensor of a module. It also exists for tensors of the device `meta`, which have no elements.
///
/// ```
/// use frazil::ir::{Device, DeviceKind};
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
/// # def forward(self, x): return self.fc(x)\n";
/// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// model.to(Device { kind: DeviceKind::Meta, index: None })?;
/// let weight = model.root().tensor_info("fc.weight")?;
/// assert_eq!((&weight.sizes[..], weight.device.kind, weight.requires_grad), (&[1, 2][..], DeviceKind::Meta, true));
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// Element type.
    pub dtype: DType,
    /// Size of each dimension, in elements.
    pub sizes: Vec<i64>,
    /// Stride of each dimension, in elements.
    pub strides: Vec<i64>,
    /// The device of the tensor; for a tensor of an archive, the device when it was saved.
    pub device: Device,
    /// The `requires_grad` flag: true for trainable parameters.
    pub requires_grad: bool,
}

impl ScriptModule<'_> {
    /// Returns the metadata of the tensor at a dotted path: a parameter, a buffer, or a plain attribute. Its elements are not read.
    ///
    /// See [`TensorInfo`] for an example.
    ///
    /// # Errors
    /// If there is no such tensor.
    pub fn tensor_info(self, path: &str) -> Result<TensorInfo> {
        let (owner, name) = self.owner(path)?;
        match owner.slot(name) {
            Some((_, Constant::Tensor(t))) => Ok(TensorInfo {
                dtype: t.dtype,
                sizes: t.sizes.to_vec(),
                strides: t.strides.to_vec(),
                device: t.storage.device(),
                requires_grad: t.requires_grad,
            }),
            Some(_) => Err(Error::Attribute(format!("`{name}` is not a tensor"))),
            None => Err(owner.missing(name)),
        }
    }
}
