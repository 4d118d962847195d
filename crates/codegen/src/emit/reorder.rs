//! Layout changes. One side of each copy is contiguous.

use super::Kernel;
use super::builder::{Emitter, Int, Val};
use crate::kernel::{BlockedShape, CopyChannels, Reorder, ReorderDirection};

/// Emits all tasks.
pub fn emit(kernel: &mut Kernel<'_>, spec: &Reorder) {
    let s = &spec.blocked;
    let pixels = s.height * s.width;
    kernel.for_each_task(|e, buffers, task| {
        let at = e.delinearize(task, &[s.batch, s.channel_blocks()]);
        let blocked = e.linear([(s.batch_stride, at[0]), (s.plane_elements(), at[1])], 0);
        let plain = e.linear([(s.channels * pixels, at[0]), (s.block * pixels, at[1])], 0);
        let first = e.mul(at[1], s.block);
        let left = e.sub(s.channels, first);
        let lanes = if s.channels % s.block == 0 {
            Int::Const(s.block)
        } else {
            e.min(left, s.block)
        };
        match spec.direction {
            ReorderDirection::ToBlocked => {
                let (from, to) = (e.f32_offset(buffers[0], plain), e.f32_offset(buffers[1], blocked));
                copy_planes(e, lanes, pixels, (from, pixels, 1), (to, 1, s.block));
                let f32_zero = e.f32_constant(0.0, None);
                e.for_each(lanes, s.block, 1, |e, lane| {
                    e.for_each(0, pixels, 1, |e, p| {
                        let offset = e.linear([(1, lane), (s.block, p)], 0);
                        let address = e.f32_offset(to, offset);
                        e.store(f32_zero, address, 4);
                    });
                });
            }
            ReorderDirection::ToPlain => {
                let (from, to) = (e.f32_offset(buffers[0], blocked), e.f32_offset(buffers[1], plain));
                copy_planes(e, lanes, pixels, (from, 1, s.block), (to, pixels, 1));
            }
        }
    });
}

/// Emits all tasks.
pub fn emit_copy(kernel: &mut Kernel<'_>, spec: &CopyChannels) {
    kernel.for_each_task(|e, buffers, task| {
        let at = e.delinearize(task, &[spec.input.batch, spec.count]);
        let (from, to) = (e.add(at[1], spec.from), e.add(at[1], spec.to));
        let from = channel_offset(e, &spec.input, at[0], from);
        let to = channel_offset(e, &spec.output, at[0], to);
        let (from, to) = (e.f32_offset(buffers[0], from), e.f32_offset(buffers[1], to));
        let pixels = spec.input.height * spec.input.width;
        copy_planes(
            e,
            Int::Const(1),
            pixels,
            (from, 0, spec.input.block),
            (to, 0, spec.output.block),
        );
    });
}

/// Offset of the first element of a channel.
fn channel_offset<'c>(e: &mut Emitter<'c>, s: &BlockedShape, image: Int<'c>, channel: Int<'c>) -> Int<'c> {
    let (block, lane) = (e.div(channel, s.block), e.rem(channel, s.block));
    e.linear([(s.batch_stride, image), (s.plane_elements(), block), (1, lane)], 0)
}

/// Copies `channels` × `pixels` elements; each side is an address, the distance of channels and the distance of pixels.
fn copy_planes<'c>(
    e: &mut Emitter<'c>,
    channels: Int<'c>,
    pixels: i64,
    from: (Val<'c>, i64, i64),
    to: (Val<'c>, i64, i64),
) {
    let f32 = e.f32();
    e.for_each(0, channels, 1, |e, c| {
        e.for_each(0, pixels, 1, |e, p| {
            let offset = e.linear([(from.1, c), (from.2, p)], 0);
            let address = e.f32_offset(from.0, offset);
            let value = e.load(address, f32, 4);
            let offset = e.linear([(to.1, c), (to.2, p)], 0);
            let address = e.f32_offset(to.0, offset);
            e.store(value, address, 4);
        });
    });
}
