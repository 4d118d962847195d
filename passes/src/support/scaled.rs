//! Weights scaled by a factor per output channel, computed when they are read. If only the compiler reads them, a model with folded batch norms needs no
//! second copy of its weights.

use super::fold::is_real;
use frazil_ir::{DType, Device, Source, Storage, TensorData, TensorError, contiguous_strides};
use half::{bf16, f16};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The weight tensor of a layer, with the layout of its output channels.
#[derive(Clone)]
pub struct Channels {
    /// The weight tensor.
    pub weight: Arc<TensorData>,
    /// The dimension of the weight that contains the output channels.
    pub dim: usize,
    /// Number of groups of a transposed convolution, whose output channels are numbered group by group.
    pub groups: usize,
}

impl Channels {
    /// Returns the number of output channels.
    pub fn count(&self) -> i64 {
        self.weight.sizes.get(self.dim).copied().unwrap_or(0) * self.groups as i64
    }

    /// Returns the number of adjacent elements that belong to one output channel.
    fn run(&self) -> usize {
        let inner = self.weight.sizes.get(self.dim + 1..).unwrap_or_default();
        inner.iter().product::<i64>() as usize
    }

    /// Returns the output channel of run number `run`, a run of adjacent elements.
    fn channel(&self, run: usize) -> usize {
        let size = |dim: usize| self.weight.sizes.get(dim).map_or(1, |&size| size.max(1) as usize);
        match self.dim {
            0 => run,
            // Transposed: rows are input channels, and the group of a row determines its output channels.
            _ => {
                let own = size(self.dim);
                let group_rows = (size(0) / self.groups.max(1)).max(1);
                run / own / group_rows * own + run % own
            }
        }
    }
}

/// A weight tensor multiplied per output channel. Products are computed in f64 and rounded once to the dtype.
struct Scaled {
    channels: Channels,
    /// One factor per output channel.
    scale: Vec<f64>,
    /// The bytes of all elements, once they have been read permanently.
    kept: OnceLock<Vec<u8>>,
}

/// Returns the weights with each output channel multiplied by its number in `scale`, as a contiguous tensor. `None` if the number of channels
/// differs, or the weights are not real.
pub fn scaled(channels: Channels, scale: &[f64]) -> Option<Arc<TensorData>> {
    let weight = channels.weight.clone();
    if !is_real(weight.dtype) || i64::try_from(scale.len()) != Ok(channels.count()) {
        return None;
    }
    let source = Scaled {
        channels,
        scale: scale.to_vec(),
        kept: OnceLock::new(),
    };
    let storage = Arc::new(Storage::of_source(Arc::new(source), Device::CPU));
    let strides = contiguous_strides(&weight.sizes);
    let tensor: Result<_, TensorError> = TensorData::new(weight.dtype, weight.sizes.clone(), strides, 0, storage);
    tensor.ok().map(Arc::new)
}

impl Scaled {
    /// Writes the elements from number `first` on to `bytes`.
    fn compute(&self, first: usize, bytes: &mut [u8]) {
        let weight = &self.channels.weight;
        match weight.is_contiguous() {
            true => weight.dense_bytes_to(first, bytes),
            false => {
                let start = first * weight.dtype.size();
                let all = weight.to_bytes();
                let elements = all.get(start..).unwrap_or_default();
                bytes.iter_mut().zip(elements).for_each(|(to, byte)| *to = *byte);
            }
        }
        match weight.dtype {
            DType::Double => self.each(bytes, first, |b, s| (f64::from_le_bytes(b) * s).to_le_bytes()),
            DType::Half => self.each(bytes, first, |b, s| {
                f16::from_f64(f16::from_le_bytes(b).to_f64() * s).to_le_bytes()
            }),
            DType::BFloat16 => self.each(bytes, first, |b, s| {
                bf16::from_f64(bf16::from_le_bytes(b).to_f64() * s).to_le_bytes()
            }),
            _ => self.each(bytes, first, |b, s| {
                ((f64::from(f32::from_le_bytes(b)) * s) as f32).to_le_bytes()
            }),
        }
    }

    /// Replaces each element in `bytes` by the result of `times` with its channel's factor. The first element has index `first`.
    fn each<const N: usize>(&self, bytes: &mut [u8], first: usize, times: impl Fn([u8; N], f64) -> [u8; N]) {
        let run = self.channels.run().max(1);
        let (mut at, mut rest) = (first, bytes);
        while !rest.is_empty() {
            let here = ((run - at % run) * N).min(rest.len());
            let (part, later) = rest.split_at_mut(here);
            let scale = self.scale.get(self.channels.channel(at / run)).copied().unwrap_or(1.0);
            for element in part.as_chunks_mut().0 {
                *element = times(*element, scale);
            }
            (at, rest) = (at + here / N, later);
        }
    }

    /// Returns the first element of `range`, which is in bytes; `None` if it does not consist of elements of the weights.
    fn first(&self, range: &Range<usize>) -> Option<usize> {
        let size = self.channels.weight.dtype.size();
        let whole = range.start.is_multiple_of(size) && range.end.is_multiple_of(size);
        (whole && range.start <= range.end && range.end <= self.len()).then_some(range.start / size)
    }
}

impl AsRef<[u8]> for Scaled {
    fn as_ref(&self) -> &[u8] {
        self.kept.get_or_init(|| {
            let mut all = vec![0; self.len()];
            self.compute(0, &mut all);
            all
        })
    }
}

impl Source for Scaled {
    fn len(&self) -> usize {
        self.channels.weight.numel() as usize * self.channels.weight.dtype.size()
    }

    fn read(&self, range: Range<usize>) -> Option<Cow<'_, [u8]>> {
        if let Some(kept) = self.kept.get() {
            return kept.get(range).map(Cow::Borrowed);
        }
        let first = self.first(&range)?;
        let mut bytes = vec![0; range.len()];
        self.compute(first, &mut bytes);
        Some(Cow::Owned(bytes))
    }

    fn read_to(&self, start: usize, to: &mut [u8]) -> Option<()> {
        let range = start..start.checked_add(to.len())?;
        match self.kept.get() {
            Some(kept) => to.copy_from_slice(kept.get(range)?),
            None => self.compute(self.first(&range)?, to),
        }
        Some(())
    }

    fn release(&self) {
        self.channels.weight.storage.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::DType;

    fn weight(sizes: &[i64], dtype: DType) -> Arc<TensorData> {
        let numbers = (1..=sizes.iter().product::<i64>()).map(|i| i as f32);
        let bytes = match dtype {
            DType::Half => numbers.flat_map(|v| f16::from_f32(v).to_le_bytes()).collect(),
            _ => numbers.flat_map(f32::to_le_bytes).collect(),
        };
        Arc::new(TensorData::contiguous(dtype, sizes, bytes).unwrap())
    }

    fn numbers(bytes: &[u8]) -> Vec<f32> {
        bytes
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect()
    }

    #[test]
    fn each_channel_has_its_factor() {
        let channels = |dim, groups, sizes: &[i64]| Channels {
            weight: weight(sizes, DType::Float),
            dim,
            groups,
        };
        let t = scaled(channels(0, 1, &[2, 3]), &[1.0, 10.0]).unwrap();
        assert_eq!(numbers(&t.to_bytes()), [1.0, 2.0, 3.0, 40.0, 50.0, 60.0]);
        assert_eq!(numbers(&t.dense_bytes(2..4)), [3.0, 40.0]);
        // Two groups of a transposed convolution: two rows of one channel, then two of another.
        let t = scaled(channels(1, 2, &[4, 1, 2]), &[1.0, 10.0]).unwrap();
        assert_eq!(numbers(&t.to_bytes()), [1.0, 2.0, 3.0, 4.0, 50.0, 60.0, 70.0, 80.0]);
        assert!(scaled(channels(0, 1, &[2, 3]), &[1.0]).is_none());
    }

    #[test]
    fn what_is_kept_is_what_is_read() {
        let half = Channels {
            weight: weight(&[3, 5], DType::Half),
            dim: 0,
            groups: 1,
        };
        let t = scaled(half, &[0.3, 1.0, 7.0]).unwrap();
        let read = t.to_bytes().into_owned();
        assert_eq!(t.storage.read(1..3), None, "half an element");
        let mut part = [0; 8];
        t.dense_bytes_to(2, &mut part);
        assert_eq!(read.get(4..12), Some(part.as_slice()));
        assert_eq!(t.storage.read_to(read.len() - 4, &mut part), None);
        t.storage.release();
        assert_eq!(t.storage.bytes(), read);
        assert_eq!(t.storage.read(4..12).as_deref(), read.get(4..12));
        assert_eq!(t.storage.read(4..40), None);
    }
}
