//! Inputs from the command line: `.npy` files, or tensors of zeros.

use crate::Failure;
use crate::shape::InputShape;
use frazil_ir::DType;
use frazil_runtime::Tensor;
use npyz::{NpyFile, Order};
use std::path::Path;
use std::str::FromStr;

/// One `--input`: `x.npy`, or `zeros:1x3x224x224[:dtype]`, `ones:...`.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file.
    File(std::path::PathBuf),
    /// A tensor with all elements equal.
    Fill(f64, InputShape),
}

impl FromStr for Input {
    type Err = crate::shape::ShapeError;

    fn from_str(text: &str) -> Result<Input, Self::Err> {
        for (prefix, value) in [("zeros:", 0.0), ("ones:", 1.0)] {
            if let Some(shape) = text.strip_prefix(prefix) {
                return Ok(Input::Fill(value, shape.parse()?));
            }
        }
        Ok(Input::File(text.into()))
    }
}

impl Input {
    /// The tensor.
    ///
    /// # Errors
    /// When the file cannot be read or has a dtype without counterpart.
    pub fn tensor(&self) -> Result<Tensor, Failure> {
        match self {
            Input::File(path) => read_npy(path),
            Input::Fill(value, shape) => Tensor::full(shape.dtype, &shape.sizes, frazil_runtime::Scalar::Float(*value))
                .map_err(|e| Failure::Other(e.to_string())),
        }
    }
}

fn read_npy(path: &Path) -> Result<Tensor, Failure> {
    let bytes = std::fs::read(path).map_err(|e| Failure::io("read", path, e))?;
    let file = NpyFile::new(bytes.as_slice()).map_err(|e| Failure::io("read", path, e))?;
    let bad = |what: String| Failure::Other(format!("{}: {what}", path.display()));
    let descr = file.dtype().descr();
    let descr = descr.trim_matches('\'');
    let dtype = match descr {
        "<f4" => DType::Float,
        "<f8" => DType::Double,
        "<f2" => DType::Half,
        "<i8" => DType::Long,
        "<i4" => DType::Int,
        "<i2" => DType::Short,
        "|i1" => DType::Char,
        "|u1" => DType::Byte,
        "|b1" => DType::Bool,
        "<c8" => DType::ComplexFloat,
        "<c16" => DType::ComplexDouble,
        other => return Err(bad(format!("dtype {other} is not supported"))),
    };
    if file.order() == Order::Fortran && file.shape().len() > 1 {
        return Err(bad(
            "the array is in Fortran order; save numpy.ascontiguousarray of it".into()
        ));
    }
    let sizes: Vec<i64> = file.shape().iter().map(|&n| n as i64).collect();
    let size = file.len() as usize * dtype.size();
    // The data is what follows the header; npyz has checked the header.
    let data = bytes.len().checked_sub(size).and_then(|start| bytes.get(start..));
    let data = data.ok_or_else(|| bad("the file is shorter than its shape says".into()))?;
    Tensor::from_bytes(dtype, &sizes, data).map_err(|e| bad(e.to_string()))
}

/// The bytes of a `.npy` file with the elements of `tensor`.
///
/// # Errors
/// When the dtype has no counterpart in numpy.
pub fn npy_bytes(tensor: &Tensor) -> Result<Vec<u8>, Failure> {
    let shape: Vec<u64> = tensor.sizes().iter().map(|&n| n as u64).collect();
    let mut out = Vec::new();
    let failed = |e: std::io::Error| Failure::io("write", Path::new("a .npy file"), e);
    macro_rules! write {
        ($values:expr) => {{
            use npyz::WriterBuilder;
            let options = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut out);
            let mut writer = options.begin_nd().map_err(failed)?;
            writer.extend($values).map_err(failed)?;
            writer.finish().map_err(failed)?;
        }};
    }
    match tensor.dtype() {
        DType::Float => write!(tensor.to_vec::<f32>()),
        DType::Double => write!(tensor.to_vec::<f64>()),
        DType::Long => write!(tensor.to_vec::<i64>()),
        DType::Int => write!(tensor.to_vec::<i32>()),
        DType::Short => write!(tensor.to_vec::<i16>()),
        DType::Char => write!(tensor.to_vec::<i8>()),
        DType::Byte => write!(tensor.to_vec::<u8>()),
        DType::Bool => write!(tensor.to_vec::<u8>().into_iter().map(|b| b != 0)),
        other => return Err(Failure::Other(format!("a tensor of {other} cannot be written as .npy"))),
    }
    Ok(out)
}
