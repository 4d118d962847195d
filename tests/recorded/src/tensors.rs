//! The tensors of a recorded case, in a `.safetensors` file.

use crate::RecordedError;
use frazil_runtime::Tensor;
use frazil_syntax::{TensorFile, TensorFileError, from_safetensors, to_safetensors};
use safetensors::tensor::TensorView;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::Path;

/// The tensors of a file, by key. They are read on demand, since a case's results may be much larger than its arguments.
#[derive(Default)]
pub struct Tensors {
    /// The open file; `None` if the case has none.
    file: Option<TensorFile>,
}

impl Tensors {
    /// Opens the file at `path`. A missing file has no tensors: a case without tensors needs none.
    ///
    /// # Errors
    /// If the file exists and cannot be read, or is not a `.safetensors` file.
    pub fn open(path: &Path) -> Result<Tensors, RecordedError> {
        match TensorFile::open(path) {
            Ok(file) => Ok(Tensors { file: Some(file) }),
            Err(TensorFileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(Tensors::default())
            }
            Err(TensorFileError::Io { path, source }) => Err(RecordedError::Read { path, source }),
            Err(TensorFileError::Format { path, source }) => Err(RecordedError::Tensors { path, source }),
        }
    }

    /// Opens `tensors.safetensors` in the folder of the case file `case`.
    ///
    /// # Errors
    /// See [`Tensors::open`].
    pub fn beside(case: &Path) -> Result<Tensors, RecordedError> {
        Tensors::open(&case.with_file_name("tensors.safetensors"))
    }

    /// Checks that `json` and the tensors were written together. Both contain the checksum of the tensors under the key `crc32`, if
    /// [`Results::finish`](crate::value::Results::finish) wrote them.
    ///
    /// # Errors
    /// If the checksums differ.
    pub fn check_pair(&self, json: &Json) -> Result<(), RecordedError> {
        let Some(said) = json.get(CHECKSUM) else { return Ok(()) };
        let found = self.file.as_ref().and_then(TensorFile::checksum).map(checksum_text);
        match said.as_str() == found.as_deref() {
            true => Ok(()),
            false => Err(RecordedError::OtherTensors {
                said: said.as_str().unwrap_or("no text").to_owned(),
                found: found.unwrap_or_else(|| "none".to_owned()),
            }),
        }
    }

    /// Returns a copy of the tensor with the key `key`.
    ///
    /// # Errors
    /// If there is none, if its dtype has no counterpart, or if the file has changed since it was opened.
    pub fn get(&self, key: &str) -> Result<Tensor, RecordedError> {
        let missing = || RecordedError::MissingTensor(key.to_owned());
        let file = self.file.as_ref().ok_or_else(missing)?;
        let info = file.info(key).ok_or_else(missing)?;
        let bytes = file.read(key).ok_or_else(missing)?;
        let bytes = bytes.map_err(|source| RecordedError::Read {
            path: file.file().path().to_owned(),
            source,
        })?;
        let dtype = from_safetensors(info.dtype)
            .ok_or_else(|| RecordedError::DType(key.to_owned(), format!("{:?}", info.dtype)))?;
        let sizes: Vec<i64> = info.shape.iter().map(|&n| n as i64).collect();
        Tensor::from_bytes(dtype, &sizes, &bytes).map_err(|source| RecordedError::Tensor {
            name: key.to_owned(),
            source,
        })
    }
}

/// The key of the checksum, both in the metadata of the tensors and in the JSON.
pub(crate) const CHECKSUM: &str = "crc32";

/// Returns a checksum as text, as the JSON contains it.
fn checksum_text(checksum: u32) -> String {
    format!("{checksum:08x}")
}

/// Returns the bytes of a `.safetensors` file with `tensors`, and the checksum in its metadata. The checksum covers all these bytes, with zeros in its place.
///
/// # Errors
/// If the format has no name for a dtype, or a tensor's elements cannot be copied.
pub fn to_file(tensors: &[(String, Tensor)]) -> Result<(Vec<u8>, String), RecordedError> {
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
    let unknown = checksum_text(0);
    let said = HashMap::from([(CHECKSUM.to_owned(), unknown.clone())]);
    let mut file = views
        .and_then(|views| safetensors::serialize(views, Some(said)))
        .map_err(|source| RecordedError::Tensors {
            path: "tensors.safetensors".into(),
            source,
        })?;
    let checksum = checksum_text(crc32fast::hash(&file));
    // A tensor cannot have this key, since the header describes tensors as objects.
    let place = format!("\"{CHECKSUM}\":\"{unknown}\"");
    let at = file.windows(place.len()).position(|bytes| bytes == place.as_bytes());
    let at = at.map(|at| at + place.len() - 1 - checksum.len());
    if let Some(slot) = at.and_then(|at| file.get_mut(at..at + checksum.len())) {
        slot.copy_from_slice(checksum.as_bytes());
    }
    Ok((file, checksum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        let (whole, _) = to_file(&whole).unwrap();
        let write = |bytes: &[u8]| std::fs::write(folder.path().join("tensors.safetensors"), bytes).unwrap();
        write(&whole);
        let read = Tensors::beside(&case).unwrap();
        for (name, values) in tensors {
            assert_eq!(read.get(name).unwrap().to_f64_vec(), values.map(f64::from));
        }
        assert!(read.get("c").is_err());
        // Truncating an open file is an error, and no signal.
        write(b"");
        assert!(matches!(read.get("a"), Err(RecordedError::Read { .. })));
        drop(read);
        // The checksum identifies the file.
        let one = [("a".to_owned(), Tensor::from_f32(&[1.0], &[1]).unwrap())];
        let (file, checksum) = to_file(&one).unwrap();
        write(&file);
        let read = Tensors::beside(&case).unwrap();
        assert_eq!(read.get("a").unwrap().to_f64_vec(), [1.0]);
        let pair = |said: &Json| read.check_pair(said);
        assert!(pair(&json!({ "crc32": checksum })).is_ok() && pair(&json!({})).is_ok());
        for other in [json!("00000000"), json!(1)] {
            let said = json!({ "crc32": other });
            assert!(matches!(pair(&said), Err(RecordedError::OtherTensors { .. })));
        }
        assert!(Tensors::default().check_pair(&json!({ "crc32": checksum })).is_err());
        drop(read);
        // The last byte is missing, the header is truncated, or it claims to be longer than the file.
        for damaged in [&whole[..whole.len() - 1], &whole[..4], &whole[..20], &[0xff; 64]] {
            write(damaged);
            assert!(matches!(Tensors::beside(&case), Err(RecordedError::Tensors { .. })));
        }
    }
}
