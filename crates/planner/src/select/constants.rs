//! Constants: packed in the layouts of the kernels, and stored once for each layout.

use super::Builder;
use crate::kernel::WinogradWeights;
use crate::kernel::pack::{READ_BYTES, in_chunks, reader};
use crate::packed::{Form, PackedKey};
use crate::plan::{Buffer, Constants, align_up};
use crate::schedule::{Home, Slice};
use frazil_executor::memory::release;
use frazil_ir::TensorData;
use frazil_runtime::memory::OutOfMemory;
use frazil_tensor_ir::pattern::ConvClass;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The stored constants, with their places.
#[derive(Default)]
pub(super) struct Stored {
    places: FxHashMap<PackedKey, Home>,
    constants: Area,
    /// The constants that are converted when the code is loaded.
    sources: Area,
}

/// Constants in one memory area. They are written when the area is first read, after the compiler has released its memory.
#[derive(Default)]
struct Area {
    len: usize,
    packs: Vec<(Range<usize>, Pack)>,
}

/// Writes a packed constant over zeros.
type Pack = Box<dyn FnOnce(&mut [u8]) + Send>;

impl Area {
    fn add(&mut self, bytes: usize, pack: Pack) -> u64 {
        let first = align_up(self.len);
        self.len = first + bytes;
        self.packs.push((first..self.len, pack));
        first as u64
    }

    /// Returns all constants in one block of memory. They are packed one after the other, the largest first: packing is parallel by itself, temporary memory
    /// is needed for one constant at a time only, and the largest need most of it while little other memory is in use.
    fn write(mut self) -> Result<Constants, OutOfMemory> {
        self.packs.sort_by_key(|(range, _)| std::cmp::Reverse(range.len()));
        let largest = self.packs.first().map_or(0, |(range, _)| range.len());
        let count = self.packs.partition_point(|(range, _)| range.len() >= largest / 4);
        let small = self.packs.split_off(count);
        Constants::later(self.len, move |memory| {
            let mut write = |packs: Vec<(Range<usize>, Pack)>| {
                for (range, pack) in packs {
                    pack(&mut memory[range]);
                }
            };
            write(self.packs);
            // The allocator keeps the memory that packing large constants needed.
            release::after_packing(largest);
            write(small);
        })
    }
}

impl Stored {
    /// Returns the constants, and those that are converted when the code is loaded.
    pub(super) fn write(self) -> Result<(Constants, Constants), OutOfMemory> {
        Ok((self.constants.write()?, self.sources.write()?))
    }
}

impl Builder<'_> {
    /// Returns `data` in the layout `form`, which takes `bytes` bytes. Unless it is stored already, `pack` writes it over zeros. Constants with a common
    /// storage, such as a weight that is used in every iteration of an unrolled loop, are stored once.
    pub(super) fn stored(
        &mut self,
        data: &Arc<TensorData>,
        form: Form,
        bytes: usize,
        pack: impl FnOnce(&TensorData, &mut [u8]) + Send + 'static,
    ) -> Slice {
        let key = PackedKey::new(data, form);
        let home = self.placed(&key).unwrap_or_else(|| {
            let data = Arc::clone(data);
            let pack = Box::new(move |to: &mut [u8]| {
                pack(&data, to);
                data.storage.release();
            });
            let offset = self.stored.constants.add(bytes, pack);
            self.place(key, Buffer::Constant { offset }, Home::Constant(offset))
        });
        self.schedule.buffer(home)
    }

    /// Returns a constant of `bytes` bytes that is no tensor of the graph and is not shared with other plans. `write` writes it over zeros.
    pub(super) fn stored_unshared(&mut self, bytes: usize, write: impl FnOnce(&mut [u8]) + Send + 'static) -> Slice {
        let offset = self.stored.constants.add(bytes, Box::new(write));
        self.schedule.buffer(Home::Constant(offset))
    }

    /// Returns the place of a constant that this plan or an earlier one packs.
    fn placed(&mut self, key: &PackedKey) -> Option<Home> {
        if let Some(&home) = self.stored.places.get(key) {
            return Some(home);
        }
        let (constants, offset) = self.options.packed.as_ref()?.get(key)?;
        let shared = &mut self.schedule.shared;
        let known = shared.iter().position(|one| one.is_same(&constants));
        let index = known.unwrap_or_else(|| {
            shared.push(constants);
            shared.len() - 1
        });
        let index = u32::try_from(index).ok()?;
        let home = Home::Shared { index, offset };
        self.stored.places.insert(key.clone(), home);
        Some(home)
    }

    /// Records that a constant is at `home`, which is `buffer` in the plan.
    fn place(&mut self, key: PackedKey, buffer: Buffer, home: Home) -> Home {
        self.schedule.packed.push((key.clone(), buffer));
        self.stored.places.insert(key, home);
        home
    }

    /// Stores f32 elements as [`Builder::stored`] does.
    pub(super) fn stored_floats(
        &mut self,
        data: &Arc<TensorData>,
        form: Form,
        elements: usize,
        pack: impl FnOnce(&TensorData, &mut [f32]) + Send + 'static,
    ) -> Slice {
        self.stored(data, form, elements * 4, |data, to| {
            // Constants begin at multiples of 64 bytes.
            if let Ok(to) = bytemuck::try_cast_slice_mut(to) {
                pack(data, to);
            }
        })
    }

    /// Adds the result of `transformation` of the weights `data`, which runs when the code is loaded. `pack` stores the untransformed weights.
    pub(super) fn transformed(
        &mut self,
        data: &Arc<TensorData>,
        form: Form,
        transformation: WinogradWeights,
        pack: impl FnOnce(&TensorData, &mut [f32]) + Send + 'static,
    ) -> Slice {
        let key = PackedKey::new(data, form);
        let home = self.placed(&key).unwrap_or_else(|| {
            let data = Arc::clone(data);
            let pack = Box::new(move |to: &mut [u8]| {
                if let Ok(to) = bytemuck::try_cast_slice_mut(to) {
                    pack(&data, to);
                }
                data.storage.release();
            });
            let source = self.stored.sources.add(transformation.plain_bytes(), pack);
            let preparation = &mut self.schedule.preparation;
            let offset = preparation.bytes as u64;
            preparation.bytes = align_up(preparation.bytes + transformation.transformed_bytes());
            preparation.calls.push((
                transformation.into(),
                [Buffer::Constant { offset: source }, Buffer::Prepared { offset }],
            ));
            self.place(key, Buffer::Prepared { offset }, Home::Prepared(offset))
        });
        self.schedule.buffer(home)
    }
}

/// f32 elements, borrowed or copied.
pub(crate) enum Floats<'a> {
    /// Bytes at a sufficiently aligned address.
    Bytes(Cow<'a, [u8]>),
    /// A copy, because the original address is not sufficiently aligned.
    Copied(Vec<f32>),
}

impl std::ops::Deref for Floats<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Floats::Bytes(bytes) => bytemuck::try_cast_slice(bytes).unwrap_or_default(),
            Floats::Copied(values) => values,
        }
    }
}

impl<'a> From<Cow<'a, [u8]>> for Floats<'a> {
    fn from(bytes: Cow<'a, [u8]>) -> Floats<'a> {
        match bytemuck::try_cast_slice::<u8, f32>(&bytes) {
            Ok(_) => Floats::Bytes(bytes),
            Err(_) => Floats::Copied(bytemuck::pod_collect_to_vec(&bytes)),
        }
    }
}

/// Returns the elements of an f32 tensor in row-major order; borrowed if they are stored in this order.
pub(crate) fn floats(data: &TensorData) -> Floats<'_> {
    data.to_bytes().into()
}

/// Copies the elements of a tensor to `to` in row-major order.
pub(super) fn copy_in_order(data: &TensorData, to: &mut [u8]) {
    if !data.is_contiguous() {
        return to.copy_from_slice(&data.to_bytes());
    }
    // A chunk consists of whole elements, of at most 16 bytes.
    in_chunks(to, READ_BYTES, |i, to, _| {
        data.dense_bytes_to(i * (READ_BYTES / data.dtype.size()), to)
    });
}

/// Weights in a given order: those of a convolution as `[out_channels][in_channels / groups][kh][kw]`, others as [`Weights::in_order`] describes.
pub(super) enum Weights<'w> {
    /// The tensor has this order. Its elements are read when they are needed.
    Stored(&'w TensorData),
    /// The elements in this order.
    Gathered(Vec<f32>),
}

impl<'w> Weights<'w> {
    /// Returns the weights of `conv`, which are in `weight`.
    pub(super) fn of(conv: &ConvClass, weight: &'w TensorData) -> Weights<'w> {
        let s = &conv.shape;
        let (ci, co) = (s.in_channels / s.groups, s.out_channels / s.groups);
        let [gs, os, cs, ys, xs] = conv.weight_strides;
        let taps = s.kernel[0] * s.kernel[1];
        let in_order = [co * ci * taps, ci * taps, taps, s.kernel[1], 1];
        let extents = [s.groups, co, ci, s.kernel[0], s.kernel[1]];
        let count = s.out_channels * ci * taps;
        // The stride of a dimension of one element is arbitrary.
        let mut dimensions = extents.iter().zip(conv.weight_strides.iter().zip(in_order));
        let is_in_order = dimensions.all(|(&extent, (stride, in_order))| extent == 1 || *stride == in_order);
        if is_in_order && conv.weight_offset == 0 && count == weight.numel() && weight.is_contiguous() {
            return Weights::Stored(weight);
        }
        let values = floats(weight);
        let mut out = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        for o in 0..s.out_channels {
            for c in 0..ci {
                for y in 0..s.kernel[0] {
                    for x in 0..s.kernel[1] {
                        let at = conv.weight_offset + (o / co) * gs + (o % co) * os + c * cs + y * ys + x * xs;
                        out.push(values.get(at as usize).copied().unwrap_or(0.0));
                    }
                }
            }
        }
        Weights::Gathered(out)
    }

    /// Returns the elements of a tensor in row-major order.
    pub(super) fn in_order(data: &'w TensorData) -> Weights<'w> {
        match data.is_contiguous() {
            true => Weights::Stored(data),
            false => Weights::Gathered(floats(data).to_vec()),
        }
    }

    /// Copies the weights from number `first` on to `to`.
    pub(super) fn copy(&self, first: usize, to: &mut [f32]) {
        match self {
            Weights::Stored(weight) => weight.dense_bytes_to(first, bytemuck::cast_slice_mut(to)),
            Weights::Gathered(weights) => reader(weights)(first, to),
        }
    }

    /// Returns all weights.
    pub(super) fn all(&self) -> Floats<'_> {
        match self {
            Weights::Stored(weight) => floats(weight),
            Weights::Gathered(weights) => Floats::Bytes(Cow::Borrowed(bytemuck::cast_slice(weights))),
        }
    }
}
