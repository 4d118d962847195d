//! Packed constants: weights in the layouts that kernels read, which the plans of a process share.
//!
//! A plan packs its weights in the layouts that its kernels read. Plans for other shapes need most of them in the same layouts. So an engine stores packed
//! constants in [`PackedConstants`], and later plans use the memory of earlier ones.

use frazil_executor::memory::Constants;
use frazil_executor::program::Buffer;
use frazil_ir::{DType, Shape, Storage, TensorData};
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The layout of a packed constant, with all parameters of its packing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// The elements in row-major order.
    Plain,
    /// `count` elements from element `first` on, padded with zeros to whole blocks of `block` elements.
    Channels { first: i64, count: i64, block: i64 },
    /// The right operand of a matmul: its offset and strides in elements, its sizes n and k, and the number of columns of a panel.
    Gemm {
        offset: i64,
        strides: [i64; 2],
        sizes: [i64; 2],
        columns: i64,
    },
    /// A layout of a kernel family that is not one of Frazil's own, identified by a text.
    Added(String),
    /// The weights of a convolution, or of a depthwise convolution if `vectors` is 0. The layout does not depend on the sizes of images.
    Conv {
        offset: i64,
        strides: [i64; 5],
        /// Numbers of input and output channels.
        channels: [i64; 2],
        groups: i64,
        kernel: [i64; 2],
        block: i64,
        vectors: i64,
        plain_input: bool,
        /// The numbers of outputs and vectors of [`Winograd`](crate::kernel::Winograd).
        winograd: Option<[i64; 2]>,
    },
}

/// Identity of a constant's storage: its address. It does not keep the storage alive, but as long as it exists, no other storage has the same address.
#[derive(Clone, Debug)]
struct StorageId(Weak<Storage>);

impl PartialEq for StorageId {
    fn eq(&self, other: &StorageId) -> bool {
        Weak::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for StorageId {}

impl Hash for StorageId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ptr().hash(state);
    }
}

/// A constant in a packed layout: its storage, its offset, sizes and strides in the storage, and the layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PackedKey {
    dtype: DType,
    storage: StorageId,
    offset: i64,
    sizes: Shape,
    strides: Shape,
    form: Form,
}

impl PackedKey {
    pub(crate) fn new(data: &TensorData, form: Form) -> PackedKey {
        PackedKey {
            dtype: data.dtype,
            storage: StorageId(Arc::downgrade(&data.storage)),
            offset: data.offset,
            sizes: data.sizes.clone(),
            strides: data.strides.clone(),
            form,
        }
    }

    /// Returns true if the constant is still in use outside of packed constants.
    fn is_alive(&self) -> bool {
        self.storage.0.strong_count() > 0
    }
}

/// The constants that plans have packed, keyed by the tensors from which they were packed. Clones share them.
///
/// An entry is removed by the next [`PackedConstants::add`] after its tensor has been dropped. Constants that a plan computes for its shape are dropped with
/// the plan.
#[derive(Clone, Debug, Default)]
pub struct PackedConstants {
    places: Arc<Mutex<FxHashMap<PackedKey, (Constants, u64)>>>,
}

impl PackedConstants {
    /// Returns the memory that contains a constant, and the offset of the constant's first byte there.
    pub(crate) fn get(&self, key: &PackedKey) -> Option<(Constants, u64)> {
        self.lock().get(key).cloned()
    }

    /// Adds the constants that a plan has packed. `packed` are their keys and their places, in the plan's `constants` or in `prepared`, the results of its
    /// preparation.
    pub fn add(&self, packed: &[(PackedKey, Buffer)], constants: &Constants, prepared: &Constants) {
        let mut places = self.lock();
        places.retain(|key, _| key.is_alive());
        for (key, buffer) in packed.iter().filter(|(key, _)| key.is_alive()) {
            let (memory, offset) = match *buffer {
                Buffer::Constant { offset } => (constants, offset),
                Buffer::Prepared { offset } => (prepared, offset),
                Buffer::Input { .. } | Buffer::Output { .. } | Buffer::Workspace { .. } | Buffer::Shared { .. } => {
                    continue;
                }
            };
            places.entry(key.clone()).or_insert_with(|| (memory.clone(), offset));
        }
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<PackedKey, (Constants, u64)>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_found_as_long_as_their_tensors_exist() {
        let tensor = |values: &[f32; 2]| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            TensorData::contiguous(DType::Float, &[2], bytes).unwrap()
        };
        let (kept, dropped) = (tensor(&[1.0, 2.0]), tensor(&[3.0, 4.0]));
        let [key, other] = [&kept, &dropped].map(|data| PackedKey::new(data, Form::Plain));
        let mut constants = Constants::default();
        let places = [&kept, &dropped].map(|data| Buffer::Constant {
            offset: constants.push(&data.to_bytes()),
        });
        let packed = [(key.clone(), places[0]), (other.clone(), places[1])];
        let all = PackedConstants::default();
        all.add(&packed, &constants, &Constants::default());
        assert_eq!(all.get(&other).map(|(_, offset)| offset), Some(64));
        // Equal elements elsewhere are another constant, and so is another form.
        assert!(all.get(&PackedKey::new(&tensor(&[1.0, 2.0]), Form::Plain)).is_none());
        assert!(all.get(&PackedKey::new(&kept, Form::Added("a".to_owned()))).is_none());
        drop(dropped);
        all.add(&packed, &constants, &Constants::default());
        assert!(all.get(&other).is_none());
        let (memory, offset) = all.get(&key).expect("it exists");
        assert_eq!(memory.bytes()[offset as usize..][..8], *kept.to_bytes());
    }
}
