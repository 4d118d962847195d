//! Reading and writing of NumPy's `.npy` files as tensors.

use crate::Failure;
use frazil_ir::{DType, contiguous_strides};
use frazil_runtime::Tensor;
use npyz::{NpyFile, Order};
use std::path::Path;

/// NumPy's type codes without the byte order, with the corresponding dtypes.
const DTYPES: [(&str, DType); 11] = [
    ("f2", DType::Half),
    ("f4", DType::Float),
    ("f8", DType::Double),
    ("i8", DType::Long),
    ("i4", DType::Int),
    ("i2", DType::Short),
    ("i1", DType::Char),
    ("u1", DType::Byte),
    ("b1", DType::Bool),
    ("c8", DType::ComplexFloat),
    ("c16", DType::ComplexDouble),
];

/// Reads the array in the file at `path`. As with `torch.from_numpy`, an array in Fortran order keeps its strides.
///
/// # Errors
/// If the file cannot be read, is not an array, or has a dtype without counterpart.
pub fn read_npy(path: &Path) -> Result<Tensor, Failure> {
    let bytes = std::fs::read(path).map_err(|e| Failure::io("read", path, e))?;
    let bad = |what: String| Failure::Other(format!("{}: {what}", path.display()));
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err(bad("this is not an array in numpy's format (.npy)".into()));
    }
    let file = NpyFile::new(bytes.as_slice()).map_err(|e| bad(format!("the header cannot be read: {e}")))?;
    let descr = file.dtype().descr();
    let descr = descr.trim_matches('\'');
    let (order, name) = descr.split_at_checked(1).unwrap_or((descr, ""));
    let known = DTYPES.iter().find(|(known, _)| *known == name);
    let (_, dtype) = known.ok_or_else(|| {
        let known: Vec<String> = DTYPES.iter().map(|(_, dtype)| dtype.python_name().to_owned()).collect();
        bad(format!(
            "dtype {descr} is not supported: convert the array to one of {}",
            known.join(", ")
        ))
    })?;
    let sizes: Vec<i64> = file.shape().iter().map(|&n| n as i64).collect();
    let elements = usize::try_from(file.len()).ok();
    let size = elements.and_then(|n| n.checked_mul(dtype.size()));
    // The data follows the header; npyz has checked the header.
    let data = size.and_then(|size| bytes.get(bytes.len().checked_sub(size)?..));
    let data = data.ok_or_else(|| bad("the file is shorter than its shape says".into()))?;
    let swapped = (order == ">").then(|| swapped(*dtype, data));
    let data = swapped.as_deref().unwrap_or(data);
    let failed = |e: frazil_runtime::TensorError| bad(e.to_string());
    match file.order() {
        Order::C => Tensor::from_bytes(*dtype, &sizes, data).map_err(failed),
        Order::Fortran => {
            let reversed: Vec<i64> = sizes.iter().rev().copied().collect();
            let dense = Tensor::from_bytes(*dtype, &reversed, data).map_err(failed)?;
            let strides = fortran_strides(&sizes);
            Tensor::from_storage(dense.storage().clone(), *dtype, &sizes, &strides, 0).map_err(failed)
        }
    }
}

/// Returns big-endian elements in little-endian byte order.
fn swapped(dtype: DType, data: &[u8]) -> Vec<u8> {
    let number = match dtype.is_complex() {
        true => dtype.size() / 2,
        false => dtype.size(),
    };
    data.chunks(number)
        .flat_map(|number| number.iter().rev().copied())
        .collect()
}

/// Returns the strides, in elements, of an array in Fortran order, whose first dimension is innermost.
fn fortran_strides(sizes: &[i64]) -> Vec<i64> {
    let reversed: Vec<i64> = sizes.iter().rev().copied().collect();
    contiguous_strides(&reversed).iter().rev().copied().collect()
}

/// Returns the bytes of a `.npy` file with the elements of `tensor`. As in NumPy, they are in Fortran order if the tensor is stored in that order.
///
/// # Errors
/// If the dtype has no counterpart in NumPy.
pub fn npy_bytes(tensor: &Tensor) -> Result<Vec<u8>, Failure> {
    let dtype = tensor.dtype();
    let known = DTYPES.iter().find(|(_, known)| *known == dtype);
    let (name, _) = known.ok_or_else(|| {
        Failure::Other(format!("a tensor of {dtype} cannot be written as .npy: numpy has no such dtype; convert it to torch.float32 in the model"))
    })?;
    let failed = |e: frazil_runtime::TensorError| Failure::Other(e.to_string());
    // Conjugate and negative bits are not written.
    let tensor = &tensor.resolved().map_err(failed)?;
    let order = if dtype.size() == 1 { '|' } else { '<' };
    let sizes = tensor.sizes();
    let is_fortran = sizes.len() > 1
        && tensor.numel() > 0
        && tensor.strides() == fortran_strides(sizes)
        && tensor.strides() != contiguous_strides(sizes).as_slice();
    let data = match is_fortran {
        true => {
            let reversed: Vec<i64> = sizes.iter().rev().copied().collect();
            let strides: Vec<i64> = tensor.strides().iter().rev().copied().collect();
            Tensor::from_storage(tensor.storage().clone(), dtype, &reversed, &strides, tensor.offset())
                .and_then(|t| t.to_bytes())
                .map_err(failed)?
        }
        false => tensor.to_bytes().map_err(failed)?,
    };
    let extents: Vec<String> = sizes.iter().map(i64::to_string).collect();
    let shape = match extents.as_slice() {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    };
    let is_fortran = if is_fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{order}{name}', 'fortran_order': {is_fortran}, 'shape': {shape}, }}");
    // The data begins at a multiple of 64 bytes.
    const BEFORE: usize = 10;
    header += &" ".repeat(63 - (BEFORE + header.len()) % 64);
    header.push('\n');
    let length =
        u16::try_from(header.len()).map_err(|_| Failure::Other("the tensor has too many dimensions".into()))?;
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend(length.to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(data);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_written_and_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.npy");
        for dtype in DTYPES.map(|(_, dtype)| dtype) {
            let tensor = Tensor::from_i64(&[1, 0, 3, 4, 5, 6], &[2, 3])
                .and_then(|t| t.to_dtype(dtype))
                .expect("fits");
            let turned = Tensor::from_storage(tensor.storage().clone(), dtype, &[3, 2], &[1, 3], 0).expect("fits");
            for tensor in [tensor, turned] {
                let bytes = npy_bytes(&tensor).expect("numpy has it");
                assert_eq!((bytes.len() - 6 * dtype.size()) % 64, 0);
                std::fs::write(&path, bytes).expect("can be written");
                let read = read_npy(&path).expect("can be read");
                assert_eq!(
                    (read.dtype(), read.sizes(), read.strides()),
                    (dtype, tensor.sizes(), tensor.strides())
                );
                assert_eq!(read.to_bytes().ok(), tensor.to_bytes().ok());
            }
        }
    }

    #[test]
    fn dtypes_without_counterpart_are_refused() {
        let tensor = Tensor::zeros(DType::BFloat16, &[2]).expect("fits");
        assert!(npy_bytes(&tensor).is_err_and(|e| e.to_string().contains("torch.bfloat16")));
    }
}
