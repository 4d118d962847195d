//! Conversions of modules: devices, dtypes and memory formats, with the names and errors of `torch.nn.Module.to`.

use crate::error::{Error, Result};
use frazil_ir::{DType, Device, DeviceKind, TensorData};
use frazil_runtime::Tensor;
use frazil_runtime::layout::channels_last_strides;

/// The arguments of `Module.to`. Properties that are `None` do not change.
///
/// ```
/// use frazil::{Conversion, MemoryFormat, Tensor, ir::{DType, Device}};
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
/// # def forward(self, x): return self.fc(x)\n";
/// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// model.to(DType::Half)?; // model.to(torch.float16)
/// model.to(Device::CPU)?; // model.to("cpu")
/// model.to((Device::CPU, DType::Double))?; // model.to("cpu", torch.float64)
/// model.to(&Tensor::from_f32(&[0.0], &[1])?)?; // model.to(tensor): its dtype and device
/// model.to(MemoryFormat::ChannelsLast)?; // model.to(memory_format=torch.channels_last)
/// model.to(Conversion { dtype: Some(DType::Double), non_blocking: true, ..Conversion::default() })?;
/// assert_eq!(model.root().get_parameter("fc.bias")?.dtype(), DType::Double);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversion {
    /// The target device: the CPU, or `meta`, whose tensors have no elements.
    pub device: Option<Device>,
    /// The target dtype of floating-point and complex tensors.
    pub dtype: Option<DType>,
    /// The target memory format of tensors with four or five dimensions.
    pub memory_format: Option<MemoryFormat>,
    /// Ignored. All conversions are synchronous; PyTorch has this argument, too.
    pub non_blocking: bool,
    /// Must be false, as in PyTorch, where only tensors have this option.
    pub copy: bool,
}

impl From<DType> for Conversion {
    fn from(dtype: DType) -> Conversion {
        Conversion {
            dtype: Some(dtype),
            ..Conversion::default()
        }
    }
}

impl From<Device> for Conversion {
    fn from(device: Device) -> Conversion {
        Conversion {
            device: Some(device),
            ..Conversion::default()
        }
    }
}

impl From<(Device, DType)> for Conversion {
    fn from((device, dtype): (Device, DType)) -> Conversion {
        Conversion {
            device: Some(device),
            ..Conversion::from(dtype)
        }
    }
}

impl From<&Tensor> for Conversion {
    fn from(tensor: &Tensor) -> Conversion {
        Conversion::from((Device::CPU, tensor.dtype()))
    }
}

impl From<MemoryFormat> for Conversion {
    fn from(format: MemoryFormat) -> Conversion {
        Conversion {
            memory_format: Some(format),
            ..Conversion::default()
        }
    }
}

/// A memory format of tensors: `torch.memory_format`.
///
/// See [`Conversion`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFormat {
    /// Row-major strides: `torch.contiguous_format`.
    Contiguous,
    /// The strides that the tensor has: `torch.preserve_format`.
    Preserve,
    /// The channels of `[batch, channels, height, width]` are innermost: `torch.channels_last`.
    ChannelsLast,
    /// The channels of `[batch, channels, depth, height, width]` are innermost: `torch.channels_last_3d`.
    ChannelsLast3d,
}

impl MemoryFormat {
    /// Returns the format with this name in `torch`, such as `channels_last`.
    ///
    /// ```
    /// use frazil::MemoryFormat;
    ///
    /// assert_eq!(MemoryFormat::from_python_name("channels_last"), Some(MemoryFormat::ChannelsLast));
    /// ```
    pub fn from_python_name(name: &str) -> Option<MemoryFormat> {
        Some(match name {
            "contiguous_format" => MemoryFormat::Contiguous,
            "preserve_format" => MemoryFormat::Preserve,
            "channels_last" => MemoryFormat::ChannelsLast,
            "channels_last_3d" => MemoryFormat::ChannelsLast3d,
            _ => return None,
        })
    }

    /// Returns the strides of the tensor in this memory format; `None` if its strides do not change.
    pub(super) fn strides(self, data: &TensorData) -> Result<Option<Vec<i64>>> {
        let found = suggested(&data.sizes, &data.strides);
        let rank = match self {
            MemoryFormat::Preserve => return Ok(None),
            MemoryFormat::Contiguous => {
                let strides = frazil_ir::contiguous_strides(&data.sizes);
                return Ok((found != self).then(|| strides.to_vec()));
            }
            MemoryFormat::ChannelsLast => 4,
            MemoryFormat::ChannelsLast3d => 5,
        };
        if found == self {
            return Ok(None);
        }
        if data.sizes.len() != rank {
            return Err(Error::Unsupported(format!(
                "required rank {rank} tensor to use {} format",
                if rank == 4 { "channels_last" } else { "channels_last_3d" }
            )));
        }
        Ok(Some(channels_last_strides(&data.sizes).to_vec()))
    }
}

/// Returns the format that matches the strides of a tensor. If several do, the choice is that of
/// `Tensor.suggest_memory_format`.
fn suggested(sizes: &[i64], strides: &[i64]) -> MemoryFormat {
    let order: &[usize] = match sizes.len() {
        4 => &[1, 3, 2, 0],
        5 => &[1, 4, 3, 2, 0],
        _ => return MemoryFormat::Contiguous,
    };
    let mut least = 0;
    for &dim in order {
        let (size, stride) = (sizes[dim], strides[dim]);
        // The stride of a dimension of extent 1 is arbitrary, but one batch of images with one channel is row-major.
        if strides[1] == 0 || size == 0 || stride < least || dim == 0 && least == strides[1] {
            return MemoryFormat::Contiguous;
        }
        least = stride.saturating_mul(size.max(1));
    }
    match sizes.len() {
        4 => MemoryFormat::ChannelsLast,
        _ => MemoryFormat::ChannelsLast3d,
    }
}

/// Device types that PyTorch supports, as its error message lists them. Of these, only the CPU and `meta` are supported here.
const KINDS: &str = "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone";

/// Returns the device with a name (`torch.device("cpu")`): `cpu`, `cpu:0`, `meta`, `cuda:1`.
///
/// ```
/// use frazil::{ir::Device, parse_device};
///
/// assert_eq!(parse_device("cpu")?, Device::CPU);
/// assert!(parse_device("nowhere").is_err_and(|e| e.to_string().contains("device type at start of device string: nowhere")));
/// # Ok::<(), frazil::Error>(())
/// ```
///
/// # Errors
/// If the text is not a name of a device, or names one that PyTorch supports and Frazil does not.
pub fn parse_device(text: &str) -> Result<Device> {
    if text.is_empty() {
        return Err(Error::Unsupported("Device string must not be empty".to_owned()));
    }
    let invalid = || Error::Unsupported(format!("Invalid device string: '{text}'"));
    let (kind, index) = match text.split_once(':') {
        Some((kind, index)) => (kind, Some(index)),
        None => (text, None),
    };
    if kind.is_empty() || !kind.chars().all(|c| c.is_ascii_alphabetic() || c == '_') {
        return Err(invalid());
    }
    if let Some(index) = index {
        let digits = !index.is_empty() && index.chars().all(|c| c.is_ascii_digit());
        if !digits || index.len() > 1 && index.starts_with('0') {
            return Err(invalid());
        }
    }
    if !KINDS.split(", ").any(|known| known == kind) {
        return Err(Error::Unsupported(format!(
            "Expected one of {KINDS} device type at start of device string: {kind}"
        )));
    }
    Device::parse(text).ok_or_else(|| no_device(kind))
}

/// Returns the error for an unsupported device.
pub(super) fn no_device(kind: &str) -> Error {
    Error::Unsupported(format!(
        "there is no device {kind}: tensors are on the host (cpu), or have no elements (meta)"
    ))
}

/// Returns an error for a device on which tensors cannot be placed.
pub(crate) fn check_device(device: Device) -> Result<()> {
    match device.kind {
        DeviceKind::Cpu | DeviceKind::Meta => Ok(()),
        DeviceKind::Cuda => Err(no_device("cuda")),
    }
}

/// Returns the dtype of a PyTorch tensor type, such as `torch.DoubleTensor`.
///
/// ```
/// use frazil::{ir::DType, tensor_type};
///
/// assert_eq!(tensor_type("torch.DoubleTensor")?, DType::Double);
/// assert!(tensor_type("DoubleTensor").is_err_and(|e| e.to_string() == "invalid type: 'DoubleTensor'"));
/// # Ok::<(), frazil::Error>(())
/// ```
///
/// # Errors
/// If it is not the name of a type, or one of another device.
pub fn tensor_type(name: &str) -> Result<DType> {
    let known = |name: &str| {
        let name = name.strip_suffix("Tensor")?;
        DType::from_type_name(name).filter(|dtype| !dtype.is_quantized())
    };
    let rest = name.strip_prefix("torch.");
    if let Some(dtype) = rest.and_then(known) {
        return Ok(dtype);
    }
    match rest.and_then(|rest| rest.split_once('.')) {
        Some((device, rest)) if known(rest).is_some() => Err(no_device(device)),
        _ => Err(Error::Unsupported(format!("invalid type: '{name}'"))),
    }
}
