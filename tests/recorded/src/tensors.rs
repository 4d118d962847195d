//! The `.safetensors` file beside a case.

use crate::RecordedError;
use frazil_runtime::Tensor;
use frazil_syntax::{from_safetensors, to_safetensors};
use memmap2::Mmap;
use safetensors::SafeTensors;
use safetensors::tensor::{Metadata, TensorView};
use std::fs::File;
use std::path::Path;

/// The tensors of a file, by key. Only those that are asked for are read: a case's results may be many times its arguments.
#[derive(Default)]
pub struct Tensors {
    /// `None` where there is no file.
    file: Option<Mapped>,
}

struct Mapped {
    map: Mmap,
    /// Bytes before the first element: the header and its length.
    start: usize,
    metadata: Metadata,
}

impl Tensors {
    /// Opens the file at `path`. A file that does not exist has no tensors: a case whose values are all plain needs none.
    ///
    /// # Errors
    /// When the file exists and cannot be read, or is not a `.safetensors` file.
    pub fn open(path: &Path) -> Result<Tensors, RecordedError> {
        let read = |source| RecordedError::Read {
            path: path.into(),
            source,
        };
        let format = |source| RecordedError::Tensors {
            path: path.into(),
            source,
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Tensors::default()),
            Err(source) => return Err(read(source)),
        };
        #[expect(unsafe_code, reason = "mapping a file has no safe form")]
        // SAFETY: the mapping is private to the value and only read. Somebody who truncates the file meanwhile causes a fault, as with every
        // mapped file.
        let map = unsafe { Mmap::map(&file) }.map_err(read)?;
        // Checks that the tensors fill the file.
        SafeTensors::deserialize(&map).map_err(format)?;
        let (header, metadata) = SafeTensors::read_metadata(&map).map_err(format)?;
        let start = size_of::<u64>() + header;
        Ok(Tensors {
            file: Some(Mapped { map, start, metadata }),
        })
    }

    /// Opens `tensors.safetensors` in the folder of the case file `case`.
    ///
    /// # Errors
    /// As [`Tensors::open`].
    pub fn beside(case: &Path) -> Result<Tensors, RecordedError> {
        Tensors::open(&case.with_file_name("tensors.safetensors"))
    }

    /// A copy of the tensor under `key`.
    ///
    /// # Errors
    /// When there is none, or its dtype has no counterpart.
    pub fn get(&self, key: &str) -> Result<Tensor, RecordedError> {
        let missing = || RecordedError::MissingTensor(key.to_owned());
        let Mapped { map, start, metadata } = self.file.as_ref().ok_or_else(missing)?;
        let info = metadata.info(key).ok_or_else(missing)?;
        let (from, to) = info.data_offsets;
        let bytes = map.get(start + from..start + to).ok_or_else(missing)?;
        let dtype = from_safetensors(info.dtype)
            .ok_or_else(|| RecordedError::DType(key.to_owned(), format!("{:?}", info.dtype)))?;
        let sizes: Vec<i64> = info.shape.iter().map(|&n| n as i64).collect();
        Tensor::from_bytes(dtype, &sizes, bytes).map_err(|source| RecordedError::Tensor {
            name: key.to_owned(),
            source,
        })
    }
}

/// The bytes of a `.safetensors` file that holds `tensors`.
///
/// # Errors
/// When the format has no name for a dtype, or a tensor's elements cannot be copied.
pub fn to_file(tensors: &[(String, Tensor)]) -> Result<Vec<u8>, RecordedError> {
    let mut rows = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        let dtype = to_safetensors(tensor.dtype())
            .ok_or_else(|| RecordedError::DType(name.clone(), tensor.dtype().to_string()))?;
        let shape: Vec<usize> = tensor.sizes().iter().map(|&n| n as usize).collect();
        let bytes = tensor.to_bytes().map_err(|source| RecordedError::Tensor {
            name: name.clone(),
            source,
        })?;
        rows.push((name.as_str(), dtype, shape, bytes));
    }
    let views = rows
        .iter()
        .map(|(name, dtype, shape, bytes)| Ok((*name, TensorView::new(*dtype, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, _>>();
    views
        .and_then(|views| safetensors::serialize(views, None))
        .map_err(|source| RecordedError::Tensors {
            path: "tensors.safetensors".into(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_read_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let case = folder.path().join("case.json");
        assert!(matches!(
            Tensors::beside(&case).unwrap().get("a"),
            Err(RecordedError::MissingTensor(_))
        ));
        let tensors = [("a", [1.0, 2.0]), ("b", [3.0, 4.0])];
        let whole = tensors.map(|(name, values)| (name.to_owned(), Tensor::from_f32(&values, &[2]).unwrap()));
        let whole = to_file(&whole).unwrap();
        let write = |bytes: &[u8]| std::fs::write(folder.path().join("tensors.safetensors"), bytes).unwrap();
        write(&whole);
        let read = Tensors::beside(&case).unwrap();
        for (name, values) in tensors {
            assert_eq!(read.get(name).unwrap().to_f64_vec(), values.map(f64::from));
        }
        assert!(read.get("c").is_err());
        drop(read);
        // The last byte is missing, the header is cut off, or says that it is longer than the file.
        for damaged in [&whole[..whole.len() - 1], &whole[..4], &whole[..20], &[0xff; 64]] {
            write(damaged);
            assert!(matches!(Tensors::beside(&case), Err(RecordedError::Tensors { .. })));
        }
    }
}
