//! In-place conversions of a module's tensors (dtype, device, memory format), gradient flags and training mode.

use super::conversion::{check_device, tensor_type};
use super::rewrite::replace_tensors;
use super::{Conversion, ScriptModuleMut};
use crate::error::{Error, Result};
use crate::model::Model;
use frazil_ir::{AttributeKind, Constant, DType, Device, DeviceKind, ObjectId, Storage, TensorData};
use frazil_runtime::export::Exporter;
use frazil_runtime::import::Importer;
use frazil_runtime::layout::is_non_overlapping_and_dense;
use std::collections::HashMap;
use std::sync::Arc;

/// Options of [`Model::to_empty`].
///
/// ```
/// use frazil::{ToEmpty, ir::Device};
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
/// # def forward(self, x): return self.fc(x)\n";
/// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// model.to_empty(Device::CPU)?;
/// model.to_empty(ToEmpty { recurse: false, ..ToEmpty::from(Device::CPU) })?; // of `fc` nothing
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToEmpty {
    /// The target device; `None` keeps the device of each tensor.
    pub device: Option<Device>,
    /// Whether the tensors of submodules are converted, too.
    pub recurse: bool,
}

impl From<Device> for ToEmpty {
    fn from(device: Device) -> ToEmpty {
        ToEmpty {
            device: Some(device),
            recurse: true,
        }
    }
}

/// The tensor that replaces another one; `None` to keep that.
type Change = Result<Option<TensorData>>;

impl ScriptModuleMut<'_> {
    /// Converts this module and everything below it, as [`Model::to`] does.
    ///
    /// See [`ScriptModuleMut`] for an example.
    ///
    /// # Errors
    /// The errors of [`Model::to`].
    pub fn to(&mut self, target: impl Into<Conversion>) -> Result<()> {
        let target = target.into();
        if target.copy {
            return Err(Error::Unsupported(".to() does not accept copy argument".to_owned()));
        }
        if let Some(dtype) = target.dtype.filter(|dtype| !is_differentiable(*dtype)) {
            return Err(Error::Unsupported(format!(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.{}",
                dtype.python_name()
            )));
        }
        target.device.map_or(Ok(()), check_device)?;
        self.convert(true, |t| converted(t, &target))
    }

    /// Converts this module and everything below it, as [`Model::to_type`] does.
    ///
    /// ```
    /// # use frazil::ir::DType;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.submodule_mut("fc")?.to_type(DType::Double)?;
    /// assert_eq!(model.root().get_parameter("fc.bias")?.dtype(), DType::Double);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::to_type`].
    pub fn to_type(&mut self, dtype: DType) -> Result<()> {
        self.convert(true, |t| with_dtype(t, dtype))
    }

    /// Converts this module and everything below it, as [`Model::to_type_named`] does.
    ///
    /// See [`to_type`](Self::to_type) for an example.
    ///
    /// # Errors
    /// The errors of [`Model::to_type_named`].
    pub fn to_type_named(&mut self, name: &str) -> Result<()> {
        self.to_type(tensor_type(name)?)
    }

    /// Converts this module and everything below it, as [`Model::half`] does.
    ///
    /// See [`to_type`](Self::to_type) for an example.
    ///
    /// # Errors
    /// If a tensor cannot be converted.
    pub fn half(&mut self) -> Result<()> {
        self.convert_floats(DType::Half)
    }

    /// Converts this module and everything below it, as [`Model::bfloat16`] does.
    ///
    /// See [`to_type`](Self::to_type) for an example.
    ///
    /// # Errors
    /// If a tensor cannot be converted.
    pub fn bfloat16(&mut self) -> Result<()> {
        self.convert_floats(DType::BFloat16)
    }

    /// Converts this module and everything below it, as [`Model::float`] does.
    ///
    /// See [`to_type`](Self::to_type) for an example.
    ///
    /// # Errors
    /// If a tensor cannot be converted.
    pub fn float(&mut self) -> Result<()> {
        self.convert_floats(DType::Float)
    }

    /// Converts this module and everything below it, as [`Model::double`] does.
    ///
    /// See [`to_type`](Self::to_type) for an example.
    ///
    /// # Errors
    /// If a tensor cannot be converted.
    pub fn double(&mut self) -> Result<()> {
        self.convert_floats(DType::Double)
    }

    fn convert_floats(&mut self, dtype: DType) -> Result<()> {
        self.convert(true, |t| match t.dtype.is_floating_point() {
            true => with_dtype(t, dtype),
            false => Ok(None),
        })
    }

    /// Allocates memory for this module and everything below it, as [`Model::to_empty`] does.
    ///
    /// See [`ToEmpty`] for an example.
    ///
    /// # Errors
    /// The errors of [`Model::to_empty`].
    pub fn to_empty(&mut self, target: impl Into<ToEmpty>) -> Result<()> {
        let target = target.into();
        target.device.map_or(Ok(()), check_device)?;
        self.convert(target.recurse, |t| {
            let device = target.device.unwrap_or(t.storage.device());
            let strides = dense_strides(t);
            Ok(Some(match device.kind {
                DeviceKind::Meta => on_meta(t.dtype, t, &strides)?,
                _ => {
                    let flat = frazil_runtime::Tensor::zeros(t.dtype, &[t.numel()])?;
                    Exporter::new().tensor(&flat.as_strided(&t.sizes, &strides, 0)?)?
                }
            }))
        })
    }

    /// Sets the gradient flags of this module and everything below it, as [`Model::requires_grad_`] does.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.a = nn.Linear(2, 2)\n  self.b = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.b(self.a(x))\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.submodule_mut("a")?.requires_grad_(false)?;
    /// assert!(!model.root().get_parameter("a.weight")?.requires_grad());
    /// assert!(model.root().get_parameter("b.weight")?.requires_grad());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::requires_grad_`].
    pub fn requires_grad_(&mut self, requires_grad: bool) -> Result<()> {
        let mut changed = HashMap::new();
        for (_, t) in self.view().named_tensors(AttributeKind::Parameter, true) {
            note_grad(t, requires_grad, &mut changed)?;
        }
        replace(self.model, &changed);
        Ok(())
    }

    /// Replaces parameters and buffers as `Module._apply` does, all of them or none. A parameter is replaced in all references to it; a buffer only in its own
    /// attribute.
    fn convert(&mut self, recurse: bool, mut change: impl FnMut(&Arc<TensorData>) -> Change) -> Result<()> {
        let mut parameters: HashMap<*const TensorData, Arc<TensorData>> = HashMap::new();
        let mut buffers: Vec<(ObjectId, usize, Arc<TensorData>)> = Vec::new();
        for (_, module) in self.view().modules(recurse) {
            for (index, (_, kind, value)) in module.slots().enumerate() {
                let Constant::Tensor(t) = value else { continue };
                let is_done = parameters.contains_key(&Arc::as_ptr(t));
                if kind == AttributeKind::Plain || is_done && kind == AttributeKind::Parameter {
                    continue;
                }
                let Some(mut new) = change(t)? else { continue };
                new.requires_grad = t.requires_grad;
                if kind == AttributeKind::Buffer {
                    buffers.push((module.id(), index, Arc::new(new)));
                    continue;
                }
                if new.requires_grad && !is_differentiable(new.dtype) {
                    return Err(Error::Unsupported(
                        "data set to a tensor that requires gradients must be floating point or complex dtype"
                            .to_owned(),
                    ));
                }
                parameters.insert(Arc::as_ptr(t), Arc::new(new));
            }
        }
        replace(self.model, &parameters);
        for (object, index, new) in buffers {
            self.model.module_mut().object_mut(object).slots[index] = Constant::Tensor(new);
        }
        Ok(())
    }
}

impl Model {
    /// Converts parameters and buffers (`Module.to`) to a device, a dtype, both, those of a tensor, or a memory format; see [`Conversion`]. A dtype applies
    /// to floating-point and complex tensors; others keep theirs. Gradient flags of parameters do not change.
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
    /// If the dtype is neither floating-point nor complex, the device does not exist, the memory format requires another number of dimensions, or tensors
    /// without elements would have to get some (see [`to_empty`](Self::to_empty)). The model is then unchanged.
    pub fn to(&mut self, target: impl Into<Conversion>) -> Result<()> {
        self.root_mut().to(target)
    }

    /// Converts every parameter and buffer to `dtype` (`Module.type`).
    ///
    /// ```
    /// # use frazil::ir::DType;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert!(model.to_type(DType::Int).is_err()); // integers have no gradients
    /// model.requires_grad_(false)?;
    /// model.to_type(DType::Int)?;
    /// assert_eq!(model.root().get_parameter("fc.bias")?.dtype(), DType::Int);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a tensor cannot be converted, or if parameters that require gradients would become neither floating-point nor
    /// complex.
    pub fn to_type(&mut self, dtype: DType) -> Result<()> {
        self.root_mut().to_type(dtype)
    }

    /// Converts as [`to_type`](Self::to_type) does, by the name of a tensor type: `torch.DoubleTensor`.
    ///
    /// ```
    /// # use frazil::ir::DType;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.to_type_named("torch.DoubleTensor")?;
    /// assert_eq!(model.root().get_parameter("fc.bias")?.dtype(), DType::Double);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`tensor_type`](crate::tensor_type) and [`to_type`](Self::to_type).
    pub fn to_type_named(&mut self, name: &str) -> Result<()> {
        self.root_mut().to_type_named(name)
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
    /// If a tensor cannot be converted.
    pub fn half(&mut self) -> Result<()> {
        self.root_mut().half()
    }

    /// Converts floating-point parameters and buffers to `torch.bfloat16` (`Module.bfloat16`).
    ///
    /// See [`half`](Self::half) for an example.
    ///
    /// # Errors
    /// If a tensor cannot be converted.
    pub fn bfloat16(&mut self) -> Result<()> {
        self.root_mut().bfloat16()
    }

    /// Converts floating-point parameters and buffers to `torch.float32` (`Module.float`).
    ///
    /// See [`half`](Self::half) for an example.
    ///
    /// # Errors
    /// If a tensor cannot be converted.
    pub fn float(&mut self) -> Result<()> {
        self.root_mut().float()
    }

    /// Converts floating-point parameters and buffers to `torch.float64` (`Module.double`).
    ///
    /// See [`half`](Self::half) for an example.
    ///
    /// # Errors
    /// If a tensor cannot be converted.
    pub fn double(&mut self) -> Result<()> {
        self.root_mut().double()
    }

    /// Allocates new memory for parameters and buffers on a device, without copying their elements (`Module.to_empty`). It is filled with zeros; PyTorch leaves
    /// it uninitialised.
    ///
    /// ```
    /// # use frazil::ir::{Device, DeviceKind};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let state = model.state_dict()?;
    /// model.to(Device { kind: DeviceKind::Meta, index: None })?; // no elements
    /// assert!(model.to(Device::CPU).is_err());
    /// model.to_empty(Device::CPU)?;
    /// model.load_state_dict(&state, true)?;
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device does not exist, or there is not enough memory.
    pub fn to_empty(&mut self, target: impl Into<ToEmpty>) -> Result<()> {
        self.root_mut().to_empty(target)
    }

    /// Sets the `requires_grad` flag of every parameter (`Module.requires_grad_`), which [`Tensor::requires_grad`](crate::Tensor::requires_grad)
    /// returns, and archives store. There is no autograd.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert!(model.root().get_parameter("fc.bias")?.requires_grad());
    /// model.requires_grad_(false)?;
    /// assert!(!model.root().get_parameter("fc.bias")?.requires_grad());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the flag is set for a parameter that is neither floating-point nor complex.
    pub fn requires_grad_(&mut self, requires_grad: bool) -> Result<()> {
        self.root_mut().requires_grad_(requires_grad)
    }

    /// Sets the `requires_grad` flag of one tensor (`Tensor.requires_grad_`): the parameter or buffer at a dotted path.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.set_requires_grad("fc.bias", false)?;
    /// assert!(!model.root().get_parameter("fc.bias")?.requires_grad());
    /// assert!(model.root().get_parameter("fc.weight")?.requires_grad());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such tensor, or the flag is set for one that is neither floating-point nor complex.
    pub fn set_requires_grad(&mut self, path: &str, requires_grad: bool) -> Result<()> {
        let (owner, name) = self.root().owner(path)?;
        let mut changed = HashMap::new();
        match owner.slot(name) {
            Some((_, Constant::Tensor(t))) => note_grad(t, requires_grad, &mut changed)?,
            Some(_) => return Err(Error::Attribute(format!("`{name}` is not a tensor"))),
            None => return Err(owner.missing(name)),
        }
        replace(self, &changed);
        Ok(())
    }

    /// Sets the training flag of the module and everything below it (`Module.train`). Modules without a flag, such as frozen ones,
    /// are not changed.
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
        self.root_mut().train(mode);
    }

    /// Clears the training flag, as [`train(false)`](Self::train) does (`Module.eval`).
    ///
    /// See [`train`](Self::train) for an example.
    pub fn eval(&mut self) {
        self.train(false);
    }

    /// Does nothing (`Module.zero_grad`), since tensors have no gradients.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self): super().__init__()\n def forward(self, x): return x\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.zero_grad();
    /// model.share_memory();
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn zero_grad(&self) {}

    /// Does nothing (`Module.share_memory`): clones of a model, and engines on other threads, already share its weights. Other processes share the pages of a
    /// mapped archive.
    ///
    /// See [`zero_grad`](Self::zero_grad) for an example.
    pub fn share_memory(&self) {}
}

/// Returns whether tensors of the dtype can have gradients.
fn is_differentiable(dtype: DType) -> bool {
    dtype.is_floating_point() || dtype.is_complex()
}

/// Records a tensor with the flag `requires_grad`, unless the tensor already has this value of the flag.
fn note_grad(
    t: &Arc<TensorData>,
    requires_grad: bool,
    changed: &mut HashMap<*const TensorData, Arc<TensorData>>,
) -> Result<()> {
    if t.requires_grad == requires_grad {
        return Ok(());
    }
    if requires_grad && !is_differentiable(t.dtype) {
        return Err(Error::Unsupported(
            "only Tensors of floating point dtype can require gradients".to_owned(),
        ));
    }
    let new = TensorData {
        requires_grad,
        ..TensorData::clone(t)
    };
    changed.insert(Arc::as_ptr(t), Arc::new(new));
    Ok(())
}

/// Replaces tensors in all places where the model refers to them.
fn replace(model: &mut Model, changed: &HashMap<*const TensorData, Arc<TensorData>>) {
    if !changed.is_empty() {
        replace_tensors(model.module_mut(), |t| changed.get(&Arc::as_ptr(t)).cloned());
    }
}

/// Returns whether a tensor is on the device `meta`, without elements. (Sparse tensors have their elements in other tensors.)
pub(super) fn is_meta(t: &TensorData) -> bool {
    t.storage.device().kind == DeviceKind::Meta && !t.encoding.as_deref().is_some_and(frazil_ir::Encoding::is_sparse)
}

/// Converts a tensor as `Tensor.to` does with the arguments of `Module.to`.
fn converted(t: &Arc<TensorData>, target: &Conversion) -> Change {
    let dtype = target.dtype.filter(|_| is_differentiable(t.dtype)).unwrap_or(t.dtype);
    let format = target.memory_format.filter(|_| matches!(t.sizes.len(), 4 | 5));
    let strides = format.map_or(Ok(None), |format| format.strides(t))?;
    let from = t.storage.device();
    let to = target.device.unwrap_or(from);
    if from.kind == to.kind && dtype == t.dtype && strides.is_none() {
        return Ok(None);
    }
    if t.encoding.is_some() {
        return Err(encoded(t));
    }
    if is_meta(t) && to.kind != DeviceKind::Meta {
        return Err(Error::Unsupported(
            "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device."
                .to_owned(),
        ));
    }
    let strides = strides.unwrap_or_else(|| dense_strides(t));
    match to.kind {
        DeviceKind::Meta => Ok(Some(on_meta(dtype, t, &strides)?)),
        _ => copied(t, dtype, &strides).map(Some),
    }
}

/// Converts a tensor as `Tensor.type` does, without changing its device.
fn with_dtype(t: &Arc<TensorData>, dtype: DType) -> Change {
    if t.dtype == dtype {
        return Ok(None);
    }
    if t.encoding.is_some() {
        return Err(encoded(t));
    }
    let strides = dense_strides(t);
    match is_meta(t) {
        true => Ok(Some(on_meta(dtype, t, &strides)?)),
        false => copied(t, dtype, &strides).map(Some),
    }
}

fn encoded(t: &TensorData) -> Error {
    let name = t.encoding.as_deref().map_or("", |encoding| encoding.name());
    Error::Unsupported(format!("tensors of {name} cannot be converted"))
}

/// Returns the strides of a dense copy in which the dimensions have the same order in memory.
fn dense_strides(t: &TensorData) -> Vec<i64> {
    match is_non_overlapping_and_dense(&t.sizes, &t.strides) {
        true => t.strides.to_vec(),
        false => frazil_ir::contiguous_strides(&t.sizes).to_vec(),
    }
}

fn copied(t: &Arc<TensorData>, dtype: DType, strides: &[i64]) -> Result<TensorData> {
    let tensor = Importer::new().tensor(t)?.get().to_dtype(dtype)?;
    Ok(Exporter::new().tensor(&tensor.with_strides(strides)?)?)
}

/// Returns a tensor on the device `meta` with the sizes of `t` and the given strides.
fn on_meta(dtype: DType, t: &TensorData, strides: &[i64]) -> Result<TensorData> {
    let device = Device {
        kind: DeviceKind::Meta,
        index: None,
    };
    let storage = Arc::new(Storage::new(Arc::new(Vec::new()), device));
    TensorData::new(dtype, t.sizes.clone(), strides, 0, storage).map_err(|e| Error::Unsupported(e.to_string()))
}
