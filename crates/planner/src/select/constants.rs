//! Constants: packed as kernels want them, and stored once in each form.

use super::Builder;
use crate::kernel::WinogradWeights;
use crate::packed::{Form, PackedKey};
use crate::plan::{Buffer, Constants, align_up};
use crate::schedule::{Home, Slice};
use frazil_executor::memory::release;
use frazil_ir::TensorData;
use frazil_runtime::memory::OutOfMemory;
use frazil_tensor_ir::pattern::ConvClass;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The stored constants, with their places.
#[derive(Default)]
pub(super) struct Stored {
    places: HashMap<PackedKey, Home>,
    constants: Area,
    /// The constants that are transformed when the code is loaded.
    sources: Area,
}

/// Constants with places in one area. They are written when the area is first read, after the compiler has released its memory.
#[derive(Default)]
struct Area {
    len: usize,
    packs: Vec<(Range<usize>, Pack)>,
}

/// Writes a constant over zeros.
type Pack = Box<dyn FnOnce(&mut [u8]) + Send>;

impl Area {
    fn add(&mut self, bytes: usize, pack: Pack) -> u64 {
        let first = align_up(self.len);
        self.len = first + bytes;
        self.packs.push((first..self.len, pack));
        first as u64
    }

    /// All of them in one piece of memory. One is packed after the other, which takes threads by itself: what packing needs besides is
    /// never there for two. It is the most for the largest, which come first, while little else is there.
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
    /// The constants, and what is transformed.
    pub(super) fn write(self) -> Result<(Constants, Constants), OutOfMemory> {
        Ok((self.constants.write()?, self.sources.write()?))
    }
}

impl Builder<'_> {
    /// `data` in the form `form`, of `bytes` bytes, which `pack` writes over zeros unless it is there already. Constants of one storage, as the
    /// uses of a weight in the iterations of a loop are, have one copy.
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

    /// As [`Builder::stored`], of f32.
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

    /// Adds the result of `transformation` on the weights `data`, which runs when the code is loaded. `pack` stores the weights.
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

/// Elements of f32.
pub(crate) enum Floats<'a> {
    /// At an address that suits them.
    Bytes(Cow<'a, [u8]>),
    /// At another one than they were.
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

/// The elements in row-major order, of a tensor of f32; where they lie, if they lie so.
pub(crate) fn floats(data: &TensorData) -> Floats<'_> {
    let bytes = data.to_bytes();
    match bytemuck::try_cast_slice::<u8, f32>(&bytes) {
        Ok(_) => Floats::Bytes(bytes),
        Err(_) => Floats::Copied(bytemuck::pod_collect_to_vec(&bytes)),
    }
}

/// The weights as `[out_channels][in_channels / groups][kh][kw]`; where they lie, if they lie so.
pub(super) fn gather_weights<'w>(conv: &ConvClass, weight: &'w TensorData) -> Floats<'w> {
    let values = floats(weight);
    let s = &conv.shape;
    let (ci, co) = (s.in_channels / s.groups, s.out_channels / s.groups);
    let [gs, os, cs, ys, xs] = conv.weight_strides;
    let taps = s.kernel[0] * s.kernel[1];
    let in_order = [co * ci * taps, ci * taps, taps, s.kernel[1], 1];
    let count = usize::try_from(s.out_channels * ci * taps);
    if conv.weight_offset == 0 && conv.weight_strides == in_order && count == Ok(values.len()) {
        return values;
    }
    let mut out = Vec::with_capacity(values.len());
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
    Floats::Copied(out)
}
