//! The flag `requires_grad` of parameters, for archives. There is no autograd.

use crate::tensor::Tensor;

impl Tensor {
    /// Returns true for trainable parameters (`Tensor.requires_grad`). There is no autograd: the flag is stored for archives, and views and results of
    /// operators do not have it.
    pub fn requires_grad(&self) -> bool {
        self.requires_grad
    }

    /// Returns the same tensor with the given value of [`Tensor::requires_grad`].
    #[must_use]
    pub fn with_requires_grad(&self, requires_grad: bool) -> Tensor {
        let mut tensor = self.clone();
        tensor.requires_grad = requires_grad;
        tensor
    }
}
