//! Loading of models onto a device: `torch.jit.load(path, map_location=device)`.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::script_module::{check_device, replace_tensors};
use crate::session::Session;
use frazil_ir::{Device, DeviceKind, Encoding, Module, Storage, TensorData};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

impl Session {
    /// Loads a model as [`load`](Self::load) does, and moves all tensors of the module to a device (the argument `map_location`). Tensors that the archive
    /// places on another device are moved to the host; those on `meta` have no elements. `None` leaves them unchanged. [`parse_device`](crate::parse_device)
    /// reads names of devices.
    ///
    /// ```
    /// # use frazil::{Session, ir::{Device, DeviceKind}};
    /// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// # let path = folder.path().join("net.py");
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n def forward(self, x): return self.fc(x)\n";
    /// # std::fs::write(&path, source).map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// let model = Session::new().load_on(&path, Some(Device::CPU))?;
    /// assert!(model.root().get_parameter("fc.weight").is_ok());
    /// let cuda = Device { kind: DeviceKind::Cuda, index: None };
    /// assert!(Session::new().load_on(&path, Some(cuda)).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`load`](Self::load); also if the device does not exist.
    pub fn load_on(&self, path: impl AsRef<Path>, map_location: Option<Device>) -> Result<Model> {
        let Some(device) = map_location else {
            return self.load(path);
        };
        check_target(device)?;
        self.load(path)?.map_location(device)
    }
}

fn check_target(device: Device) -> Result<()> {
    if device.kind == DeviceKind::Cuda {
        return Err(Error::Unsupported(
                "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, \
                 please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
                    .to_owned(),
            ));
    }
    check_device(device)
}

impl Model {
    /// Returns the model with all tensors on a device, as [`Session::load_on`] loads it.
    ///
    /// ```
    /// use frazil::ir::Device;
    ///
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
    /// assert_eq!(model.map_location(Device::CPU)?.root().method_names(), ["forward"]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device does not exist.
    pub fn map_location(&self, device: Device) -> Result<Model> {
        check_target(device)?;
        let mut model = self.clone();
        let mut moved: HashMap<*const Storage, Arc<Storage>> = HashMap::new();
        let is_elsewhere = |t: &TensorData| {
            let from = t.storage.device().kind;
            // Tensors on `meta` have no elements to move.
            from != device.kind && from != DeviceKind::Meta && !t.encoding.as_deref().is_some_and(Encoding::is_sparse)
        };
        let mut module = Module::clone(model.module());
        replace_tensors(&mut module, |t| {
            let storage = is_elsewhere(t).then(|| {
                let new = moved.entry(Arc::as_ptr(&t.storage));
                new.or_insert_with(|| Arc::new(on(&t.storage, device))).clone()
            })?;
            Some(Arc::new(TensorData {
                storage,
                ..TensorData::clone(t)
            }))
        });
        // An unchanged module still has the content of the file.
        if !moved.is_empty() {
            *model.module_mut() = module;
        }
        Ok(model)
    }
}

fn on(storage: &Storage, device: Device) -> Storage {
    match device.kind {
        DeviceKind::Meta => Storage::new(Arc::new(Vec::new()), device),
        _ => storage.with_device(device),
    }
}
