//! Reading of tensors in archives: their storages, and the parameters of quantised tensors.

use std::sync::Arc;

use frazil_ir::{Constant, DType, Device, DeviceKind, Encoding, Shape, Storage, TensorData, types};

use super::Reader;
use crate::archive::{ArchiveError, PickleId, PickleValue, SharedBytes};
use crate::error::Result;

/// PyTorch's codes of sparse layouts.
const SPARSE_COO: i64 = 1;
const SPARSE_CSR: i64 = 2;

impl Reader<'_> {
    /// Reads `_rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks)`.
    pub(super) fn tensor(&mut self, id: PickleId, arguments: &[PickleId]) -> Result<TensorData> {
        let &[storage, offset, sizes, strides, ref rest @ ..] = arguments else {
            return Err(self.unexpected(id, "a tensor's storage, offset, sizes and strides"));
        };
        // Hooks, of which there are none, and what the elements are of what lies in the storage.
        if let Some(&metadata) = rest.get(2)
            && matches!(self.pickle.value(metadata), PickleValue::Dict(bits) if !bits.is_empty())
        {
            return Err(self.unexpected(metadata, "a tensor whose conjugate and negative bits are resolved"));
        }
        let (storage, dtype) = self.storage(storage)?;
        let offset = self.int(offset)?;
        let (sizes, strides) = (self.shape(sizes)?, self.shape(strides)?);
        let mut tensor =
            TensorData::new(dtype, sizes, strides, offset, storage).map_err(|error| ArchiveError::Unexpected {
                entry: self.entry.to_owned(),
                offset: self.pickle.offset(id),
                expected: "a tensor that lies within its storage".into(),
                found: error.to_string(),
            })?;
        tensor.requires_grad = matches!(
            rest.first().map(|&flag| self.pickle.value(flag)),
            Some(PickleValue::Bool(true))
        );
        Ok(tensor)
    }

    /// Reads `_rebuild_qtensor(storage, offset, sizes, strides, quantizer, requires_grad, hooks)`.
    pub(super) fn quantized_tensor(&mut self, id: PickleId, arguments: &[PickleId], depth: usize) -> Result<Constant> {
        let &[storage, offset, sizes, strides, quantizer, ref rest @ ..] = arguments else {
            return Err(self.unexpected(id, "a quantised tensor's storage, offset, sizes, strides and quantizer"));
        };
        let plain: Vec<PickleId> = [storage, offset, sizes, strides]
            .into_iter()
            .chain(rest.iter().copied())
            .collect();
        let mut tensor = self.tensor(id, &plain)?;
        tensor.encoding = Some(Arc::new(self.quantizer(quantizer, depth)?));
        Ok(Constant::Tensor(Arc::new(tensor)))
    }

    /// Reads `_rebuild_sparse_tensor(layout, sizes, requires_grad, parts..., hooks)`. The parts are indices and values, or rows, columns and values.
    pub(super) fn sparse_tensor(&mut self, id: PickleId, arguments: &[PickleId], depth: usize) -> Result<Constant> {
        let expected = "a sparse tensor's layout, sizes and parts";
        let &[layout, sizes, requires_grad, ref parts @ ..] = arguments else {
            return Err(self.unexpected(id, expected));
        };
        let layout = self.int(layout)?;
        let sizes = self.shape(sizes)?;
        let mut part = |id| match self.value(id, types::TENSOR, depth + 1)? {
            Constant::Tensor(tensor) => Ok(tensor),
            _ => Err(self.unexpected(id, "a tensor")),
        };
        let encoding = match (layout, parts) {
            (SPARSE_COO, &[indices, values, ..]) => Encoding::SparseCoo {
                indices: part(indices)?,
                values: part(values)?,
            },
            (SPARSE_CSR, &[rows, columns, values, ..]) => Encoding::SparseCsr {
                rows: part(rows)?,
                columns: part(columns)?,
                values: part(values)?,
            },
            _ => return Err(self.unexpected(id, expected)),
        };
        let dtype = encoding.tensors().last().map_or(DType::Float, |values| values.dtype);
        let tensor = TensorData::sparse(dtype, sizes, encoding);
        let mut tensor = tensor.map_err(|error| self.unexpected(id, format!("{expected}: {error}")))?;
        tensor.requires_grad = matches!(self.pickle.value(requires_grad), PickleValue::Bool(true));
        Ok(Constant::Tensor(Arc::new(tensor)))
    }

    /// Reads the quantisation parameters: `(qscheme, scale, zero point)` or `(qscheme, scales, zero points, axis)`.
    fn quantizer(&mut self, id: PickleId, depth: usize) -> Result<Encoding> {
        let expected = "a quantization scheme with its parameters";
        let parts = self.pickle.elements(id).unwrap_or_default();
        let scheme = parts.first().and_then(|&scheme| self.pickle.global(scheme));
        match (scheme, parts) {
            (Some((_, "per_tensor_affine")), &[_, scale, zero_point]) => Ok(Encoding::PerTensor {
                scale: match self.pickle.value(scale) {
                    PickleValue::Float(scale) => *scale,
                    _ => return Err(self.unexpected(scale, "a float")),
                },
                zero_point: self.int(zero_point)?,
            }),
            (
                Some((_, scheme @ ("per_channel_affine" | "per_channel_affine_float_qparams"))),
                &[_, scales, zero_points, axis],
            ) => {
                let mut tensor = |id| match self.value(id, types::TENSOR, depth + 1)? {
                    Constant::Tensor(tensor) => Ok(tensor),
                    _ => Err(self.unexpected(id, "a tensor")),
                };
                Ok(Encoding::PerChannel {
                    scales: tensor(scales)?,
                    zero_points: tensor(zero_points)?,
                    axis: self.int(axis)?,
                    float_zero_points: scheme.ends_with("float_qparams"),
                })
            }
            _ => Err(self.unexpected(id, expected)),
        }
    }

    fn int(&self, id: PickleId) -> Result<i64> {
        self.pickle.int(id).ok_or_else(|| self.unexpected(id, "an integer"))
    }

    fn shape(&self, id: PickleId) -> Result<Shape> {
        let items = self
            .pickle
            .elements(id)
            .ok_or_else(|| self.unexpected(id, "a tuple of integers"))?;
        items.iter().map(|&item| self.int(item)).collect()
    }

    /// Reads the tuple for a storage: `("storage", torch.FloatStorage, key, device, number of elements)`.
    fn storage(&mut self, id: PickleId) -> Result<(Arc<Storage>, DType)> {
        let PickleValue::Persistent(reference) = self.pickle.value(id) else {
            return Err(self.unexpected(id, "a reference to a storage"));
        };
        let expected = "a storage reference (\"storage\", type, key, device, length)";
        let Some(&[tag, class, key, device, length]) = self.pickle.elements(*reference) else {
            return Err(self.unexpected(*reference, expected));
        };
        let (Some("storage"), Some(key), Some((_, class_name))) =
            (self.pickle.str(tag), self.pickle.str(key), self.pickle.global(class))
        else {
            return Err(self.unexpected(*reference, expected));
        };
        let dtype = class_name.strip_suffix("Storage").and_then(DType::from_type_name);
        let dtype = dtype.ok_or_else(|| self.unexpected(class, "a storage type"))?;
        let length = self.int(length)?;
        if let Some(known) = self.storages.get(key) {
            return Ok((Arc::clone(known), dtype));
        }
        let device = self.pickle.str(device).and_then(Device::parse).unwrap_or(Device::CPU);
        let record = format!("{}/{key}", self.folder);
        let (bytes, range) = if length == 0 && !self.archive.contains(&record) {
            (SharedBytes::from(Vec::new()), 0..0)
        } else {
            self.archive.bytes(&record)?
        };
        // Tensors of the device `meta` have no data.
        if device.kind == DeviceKind::Meta {
            let storage = Arc::new(Storage::new(Arc::new(Vec::new()), device));
            self.storages.insert(key.to_owned(), Arc::clone(&storage));
            return Ok((storage, dtype));
        }
        let needed = u64::try_from(length)
            .ok()
            .and_then(|n| n.checked_mul(dtype.size() as u64));
        if needed.is_none_or(|needed| needed > range.len() as u64) {
            return Err(ArchiveError::Entry {
                entry: record,
                offset: range.start as u64,
                reason: format!("it has {} bytes, too few for {length} elements of {dtype}", range.len()),
            }
            .into());
        }
        let start = range.start as u64;
        let storage = bytes.storage(range, device).ok_or_else(|| ArchiveError::Entry {
            entry: record,
            offset: start,
            reason: "it reaches beyond the end of the file".into(),
        })?;
        let storage = Arc::new(storage);
        self.storages.insert(key.to_owned(), Arc::clone(&storage));
        Ok((storage, dtype))
    }
}
