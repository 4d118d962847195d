//! Constants: packed as kernels want them, and stored once in each form.

use super::Builder;
use crate::kernel::{ConvShape, Winograd};
use crate::plan::Buffer;
use crate::schedule::{Home, Slice};
use frazil_ir::{DType, Shape, TensorData};
use std::collections::HashMap;
use std::sync::Arc;

/// The form that a constant is stored in, with all that its packing depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Its elements in row-major order.
    Plain,
    /// `count` elements from `first` on, padded with zeros to whole blocks of `block`.
    Channels { first: i64, count: i64, block: i64 },
    /// The right operand of a matrix product: its strides, n, k, and the columns of a panel.
    Gemm {
        offset: i64,
        strides: [i64; 2],
        sizes: [i64; 2],
        columns: i64,
    },
    /// The weights of a convolution, which is depthwise when there are no vectors.
    Conv {
        offset: i64,
        strides: [i64; 5],
        shape: ConvShape,
        block: i64,
        vectors: i64,
        plain_input: bool,
        winograd: Option<Winograd>,
    },
}

/// Which elements a constant has: its storage, and how it lies there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Elements {
    dtype: DType,
    storage: usize,
    offset: i64,
    sizes: Shape,
    strides: Shape,
}

/// What is stored already.
#[derive(Debug, Default)]
pub(super) struct Stored(HashMap<(Elements, Form), u64>);

impl Builder<'_> {
    /// `data` in the form `form`, which `pack` makes of it unless it is there already. Constants of one storage, as the uses of a weight
    /// in the iterations of a loop are, have one copy.
    pub(super) fn stored<T: bytemuck::NoUninit>(
        &mut self,
        data: &TensorData,
        form: Form,
        pack: impl FnOnce(&TensorData) -> Vec<T>,
    ) -> Slice {
        let elements = Elements {
            dtype: data.dtype,
            // The graph keeps it alive.
            storage: Arc::as_ptr(&data.storage).cast::<()>() as usize,
            offset: data.offset,
            sizes: data.sizes.clone(),
            strides: data.strides.clone(),
        };
        let Builder { stored, schedule, .. } = self;
        let offset = stored.0.entry((elements, form)).or_insert_with(|| {
            let place = schedule.constants.push(&pack(data));
            match place {
                Buffer::Constant { offset } => offset,
                _ => 0,
            }
        });
        schedule.buffer(Home::Constant(*offset))
    }
}

/// The elements in row-major order, of a tensor of f32.
pub(super) fn floats(data: &TensorData) -> Vec<f32> {
    bytemuck::pod_collect_to_vec(&data.to_bytes())
}
