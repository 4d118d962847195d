//! Changing what a module is made of: dtypes, the training flag, gradients.

use super::rewrite::replace_tensors;
use crate::{Error, Model, Result};
use frazil_ir::{AttributeKind, Constant, DType, ObjectId, TensorData};
use frazil_runtime::export::Exporter;
use frazil_runtime::import::Importer;
use std::collections::HashMap;
use std::sync::Arc;

impl Model {
    /// Converts floating-point and complex parameters and buffers to `dtype` (`Module.to`). Other dtypes stay.
    ///
    /// ```
    /// # use frazil::ir::DType;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.to(DType::Double)?;
    /// assert_eq!(model.root().get_parameter("fc.bias")?.dtype(), DType::Double);
    /// assert!(model.to(DType::Int).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `dtype` is neither floating-point nor complex.
    pub fn to(&mut self, dtype: DType) -> Result<()> {
        if !dtype.is_floating_point() && !dtype.is_complex() {
            return Err(Error::Unsupported(format!(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.{}",
                dtype.python_name()
            )));
        }
        self.convert(dtype, |t| t.dtype.is_floating_point() || t.dtype.is_complex())
    }

    /// Converts every parameter and buffer to `dtype` (`Module.type`).
    ///
    /// ```
    /// # use frazil::ir::DType;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.to_type(DType::Int)?;
    /// assert_eq!(model.root().get_parameter("fc.bias")?.dtype(), DType::Int);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a tensor cannot be converted.
    pub fn to_type(&mut self, dtype: DType) -> Result<()> {
        self.convert(dtype, |_| true)
    }

    /// Converts floating-point parameters and buffers to `torch.float16` (`Module.half`).
    ///
    /// ```
    /// # use frazil::ir::DType;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.half()?; // likewise `bfloat16`, `float` and `double`
    /// assert_eq!(model.root().get_parameter("fc.bias")?.dtype(), DType::Half);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a tensor cannot be converted.
    pub fn half(&mut self) -> Result<()> {
        self.convert(DType::Half, |t| t.dtype.is_floating_point())
    }

    /// Converts floating-point parameters and buffers to `torch.bfloat16` (`Module.bfloat16`).
    ///
    /// See [`half`](Self::half) for an example.
    ///
    /// # Errors
    /// When a tensor cannot be converted.
    pub fn bfloat16(&mut self) -> Result<()> {
        self.convert(DType::BFloat16, |t| t.dtype.is_floating_point())
    }

    /// Converts floating-point parameters and buffers to `torch.float32` (`Module.float`).
    ///
    /// See [`half`](Self::half) for an example.
    ///
    /// # Errors
    /// When a tensor cannot be converted.
    pub fn float(&mut self) -> Result<()> {
        self.convert(DType::Float, |t| t.dtype.is_floating_point())
    }

    /// Converts floating-point parameters and buffers to `torch.float64` (`Module.double`).
    ///
    /// See [`half`](Self::half) for an example.
    ///
    /// # Errors
    /// When a tensor cannot be converted.
    pub fn double(&mut self) -> Result<()> {
        self.convert(DType::Double, |t| t.dtype.is_floating_point())
    }

    fn convert(&mut self, dtype: DType, wanted: impl Fn(&TensorData) -> bool) -> Result<()> {
        self.map_state(|t| {
            if t.dtype == dtype || !wanted(t) {
                return Ok(None);
            }
            let converted = Importer::new().tensor(t)?.get().to_dtype(dtype)?;
            let mut data = Exporter::new().tensor(&converted)?;
            // Only floating-point and complex tensors can have gradients.
            data.requires_grad = t.requires_grad && (dtype.is_floating_point() || dtype.is_complex());
            Ok(Some(Arc::new(data)))
        })
    }

    /// Says of every parameter whether it would have gradients (`Module.requires_grad_`): carried for archives.
    ///
    /// ```
    /// # use frazil::{EngineKind, EngineOptions};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.requires_grad_(false)?;
    /// let text = frazil::Loaded::Model(model).ir_text(None);
    /// assert!(!text.contains("requires_grad=1"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn requires_grad_(&mut self, requires_grad: bool) -> Result<()> {
        let parameters = self.state_of(AttributeKind::Parameter);
        self.replace(parameters, |t| {
            Ok((t.requires_grad != requires_grad).then(|| {
                Arc::new(TensorData {
                    requires_grad,
                    ..TensorData::clone(t)
                })
            }))
        })
    }

    /// Sets the training flag of the module and everything below it (`Module.train`). Modules without one, such as frozen ones, stay
    /// as they are.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.eval();
    /// assert!(!model.root().get_submodule("fc")?.is_training());
    /// model.train(true);
    /// assert!(model.root().get_submodule("fc")?.is_training());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn train(&mut self, mode: bool) {
        let objects: Vec<ObjectId> = self.root().named_modules().iter().map(|(_, m)| m.id()).collect();
        let training = self.session().ctx().symbol("training");
        let module = self.module_mut();
        for object in objects {
            module.set_attribute(object, training, Constant::Bool(mode));
        }
    }

    /// [`train(false)`](Self::train) (`Module.eval`).
    ///
    /// See [`train`](Self::train) for an example.
    pub fn eval(&mut self) {
        self.train(false);
    }

    /// Replaces parameters and buffers as `Module._apply` does.
    fn map_state(&mut self, change: impl FnMut(&Arc<TensorData>) -> Result<Option<Arc<TensorData>>>) -> Result<()> {
        let mut state = self.state_of(AttributeKind::Parameter);
        state.extend(self.state_of(AttributeKind::Buffer));
        self.replace(state, change)
    }

    fn state_of(&self, kind: AttributeKind) -> Vec<Arc<TensorData>> {
        let named = self.root().named_tensors(kind, true);
        named.into_iter().map(|(_, t)| t.clone()).collect()
    }

    /// Replaces tensors wherever the module refers to them: who shares a parameter still does. All or nothing.
    fn replace(
        &mut self,
        tensors: Vec<Arc<TensorData>>,
        mut change: impl FnMut(&Arc<TensorData>) -> Result<Option<Arc<TensorData>>>,
    ) -> Result<()> {
        let mut changed: HashMap<*const TensorData, Arc<TensorData>> = HashMap::new();
        for t in &tensors {
            if let Some(new) = change(t)? {
                changed.insert(Arc::as_ptr(t), new);
            }
        }
        replace_tensors(self.module_mut(), |t| changed.get(&Arc::as_ptr(t)).cloned());
        Ok(())
    }
}
