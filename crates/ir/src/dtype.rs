//! Element types and devices, with PyTorch's names and codes.

use std::fmt;

/// The element type of a tensor: PyTorch's `ScalarType`.
///
/// The discriminants are the numbers that TorchScript uses for dtypes in graphs and archives
/// (`aten::to(%x, 6, ...)` converts to `Float`), so they must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DType {
    /// `torch.uint8`
    Byte = 0,
    /// `torch.int8`
    Char = 1,
    /// `torch.int16`
    Short = 2,
    /// `torch.int32`
    Int = 3,
    /// `torch.int64`
    Long = 4,
    /// `torch.float16`
    Half = 5,
    /// `torch.float32`
    Float = 6,
    /// `torch.float64`
    Double = 7,
    /// `torch.complex32`
    ComplexHalf = 8,
    /// `torch.complex64`
    ComplexFloat = 9,
    /// `torch.complex128`
    ComplexDouble = 10,
    /// `torch.bool`
    Bool = 11,
    /// `torch.qint8`; storage only.
    QInt8 = 12,
    /// `torch.quint8`; storage only.
    QUInt8 = 13,
    /// `torch.qint32`; storage only.
    QInt32 = 14,
    /// `torch.bfloat16`
    BFloat16 = 15,
}

impl DType {
    /// Every dtype, in the order of PyTorch's codes.
    pub const ALL: [DType; 16] = [
        DType::Byte,
        DType::Char,
        DType::Short,
        DType::Int,
        DType::Long,
        DType::Half,
        DType::Float,
        DType::Double,
        DType::ComplexHalf,
        DType::ComplexFloat,
        DType::ComplexDouble,
        DType::Bool,
        DType::QInt8,
        DType::QUInt8,
        DType::QInt32,
        DType::BFloat16,
    ];

    /// Returns the dtype with PyTorch's integer code `code`, as in graphs (`dtype=6`).
    pub fn from_code(code: i64) -> Option<DType> {
        usize::try_from(code).ok().and_then(|i| Self::ALL.get(i).copied())
    }

    /// Returns PyTorch's integer code of this dtype.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// Returns the name in printed tensor types: `Float(2, 3)`.
    pub fn type_name(self) -> &'static str {
        match self {
            DType::Byte => "Byte",
            DType::Char => "Char",
            DType::Short => "Short",
            DType::Int => "Int",
            DType::Long => "Long",
            DType::Half => "Half",
            DType::Float => "Float",
            DType::Double => "Double",
            DType::ComplexHalf => "ComplexHalf",
            DType::ComplexFloat => "ComplexFloat",
            DType::ComplexDouble => "ComplexDouble",
            DType::Bool => "Bool",
            DType::QInt8 => "QInt8",
            DType::QUInt8 => "QUInt8",
            DType::QInt32 => "QInt32",
            DType::BFloat16 => "BFloat16",
        }
    }

    /// Returns the Python name without its module: `float32` for `torch.float32`.
    pub fn python_name(self) -> &'static str {
        match self {
            DType::Byte => "uint8",
            DType::Char => "int8",
            DType::Short => "int16",
            DType::Int => "int32",
            DType::Long => "int64",
            DType::Half => "float16",
            DType::Float => "float32",
            DType::Double => "float64",
            DType::ComplexHalf => "complex32",
            DType::ComplexFloat => "complex64",
            DType::ComplexDouble => "complex128",
            DType::Bool => "bool",
            DType::QInt8 => "qint8",
            DType::QUInt8 => "quint8",
            DType::QInt32 => "qint32",
            DType::BFloat16 => "bfloat16",
        }
    }

    /// Returns the dtype whose [`type_name`](Self::type_name) is `name`.
    pub fn from_type_name(name: &str) -> Option<DType> {
        Self::ALL.into_iter().find(|d| d.type_name() == name)
    }

    /// Returns the dtype whose [`python_name`](Self::python_name) is `name`, aliases (`half`, `long`) included.
    pub fn from_python_name(name: &str) -> Option<DType> {
        let name = match name {
            "half" => "float16",
            "float" => "float32",
            "double" => "float64",
            "short" => "int16",
            "int" => "int32",
            "long" => "int64",
            "cfloat" => "complex64",
            "cdouble" => "complex128",
            other => other,
        };
        Self::ALL.into_iter().find(|d| d.python_name() == name)
    }

    /// Returns the size of one element in bytes.
    pub fn size(self) -> usize {
        match self {
            DType::Byte | DType::Char | DType::Bool | DType::QInt8 | DType::QUInt8 => 1,
            DType::Short | DType::Half | DType::BFloat16 => 2,
            DType::Int | DType::Float | DType::ComplexHalf | DType::QInt32 => 4,
            DType::Long | DType::Double | DType::ComplexFloat => 8,
            DType::ComplexDouble => 16,
        }
    }

    /// Returns true for the real floating-point dtypes.
    pub fn is_floating_point(self) -> bool {
        matches!(self, DType::Half | DType::BFloat16 | DType::Float | DType::Double)
    }

    /// Returns true for the complex dtypes.
    pub fn is_complex(self) -> bool {
        matches!(self, DType::ComplexHalf | DType::ComplexFloat | DType::ComplexDouble)
    }

    /// Returns true for the integer dtypes; false for `Bool` and the quantised dtypes.
    pub fn is_integral(self) -> bool {
        matches!(
            self,
            DType::Byte | DType::Char | DType::Short | DType::Int | DType::Long
        )
    }

    /// Returns true for the quantised dtypes, whose tensors can be stored but not computed with.
    pub fn is_quantized(self) -> bool {
        matches!(self, DType::QInt8 | DType::QUInt8 | DType::QInt32)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "torch.{}", self.python_name())
    }
}

/// The device of a tensor. Frazil computes on the CPU; other devices are stored so that archives can be written unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Device {
    /// The type of the device: CPU, CUDA or meta.
    pub kind: DeviceKind,
    /// The index of the device (`cuda:1`), if it has one.
    pub index: Option<u16>,
}

/// Device types that occur in TorchScript archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum DeviceKind {
    /// The CPU: `cpu`.
    #[default]
    Cpu,
    /// An NVIDIA GPU: `cuda`.
    Cuda,
    /// The device of tensors without data: `meta`.
    Meta,
}

impl Device {
    /// The CPU, without an index.
    pub const CPU: Device = Device {
        kind: DeviceKind::Cpu,
        index: None,
    };

    /// Parses a device in PyTorch's notation: `cpu`, `cuda`, `cuda:1`, `meta`.
    pub fn parse(text: &str) -> Option<Device> {
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, Some(index.parse().ok()?)),
            None => (text, None),
        };
        let kind = match kind {
            "cpu" => DeviceKind::Cpu,
            "cuda" => DeviceKind::Cuda,
            "meta" => DeviceKind::Meta,
            _ => return None,
        };
        Some(Device { kind, index })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Meta => "meta",
        })?;
        match self.index {
            Some(i) => write!(f, ":{i}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_round_trip() {
        for d in DType::ALL {
            assert_eq!(DType::from_code(d.code()), Some(d));
            assert_eq!(DType::from_type_name(d.type_name()), Some(d));
            assert_eq!(DType::from_python_name(d.python_name()), Some(d));
        }
        assert_eq!(DType::from_code(-1), None);
        assert_eq!(DType::from_code(16), None);
    }

    #[test]
    fn devices_parse_as_printed() {
        for text in ["cpu", "cuda:1", "meta", "cpu:0"] {
            assert_eq!(Device::parse(text).map(|d| d.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Device::parse("tpu"), None);
        assert_eq!(Device::parse("cuda:x"), None);
    }
}
