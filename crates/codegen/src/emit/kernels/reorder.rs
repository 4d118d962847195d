//! Layout changes. One side of each copy is contiguous.

use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::family::EmitKernel;
use crate::emit::function::KernelFunction;
use frazil_planner::kernel::{BlockedShape, CopyChannels, Reorder, ReorderDirection};

impl EmitKernel for Reorder {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        emit(function, self);
    }
}

/// Emits all tasks.
fn emit<'c>(kernel: &mut KernelFunction<'c>, spec: &Reorder) {
    let s = &spec.blocked;
    let pixels = s.height * s.width;
    let (whole_blocks, rest) = (s.channels / s.block, s.channels % s.block);
    kernel.for_each_task(|e, buffers, task| {
        let at = e.delinearize(task, &[s.batch, s.channel_blocks()]);
        let blocked = e.linear([(s.batch_stride, at[0]), (s.plane_elements(), at[1])], 0);
        let plain = e.linear([(s.channels * pixels, at[0]), (s.block * pixels, at[1])], 0);
        let (from, to) = match spec.direction {
            ReorderDirection::ToBlocked => (plain, blocked),
            ReorderDirection::ToPlain => (blocked, plain),
        };
        let (from, to) = (e.f32_offset(buffers[0], from), e.f32_offset(buffers[1], to));
        let block = |e: &mut Emitter<'c>, channels| reorder_block(e, spec, channels, from, to);
        match (whole_blocks, rest) {
            (_, 0) => block(e, s.block),
            (0, _) => block(e, rest),
            _ => {
                let is_whole = e.compare("slt", at[1], whole_blocks);
                let then = |e: &mut Emitter<'c>, channels| {
                    block(e, channels);
                    Vec::new()
                };
                e.if_else(is_whole, &[], |e| then(e, s.block), |e| then(e, rest));
            }
        }
    });
}

/// Reorders a block with so many channels, as many pixels at a time as a block has lanes.
fn reorder_block<'c>(e: &mut Emitter<'c>, spec: &Reorder, channels: i64, from: Val<'c>, to: Val<'c>) {
    let (block, pixels) = (spec.blocked.block, spec.blocked.height * spec.blocked.width);
    let rest = pixels % block;
    let tile = |e: &mut Emitter<'c>, first: Int<'c>, count: i64| {
        let plain = Rows {
            count: channels,
            distance: pixels,
            lanes: count,
        };
        let blocked = Rows {
            count,
            distance: block,
            lanes: block,
        };
        let pixel = e.mul(first, block);
        match spec.direction {
            ReorderDirection::ToBlocked => {
                let (from, to) = (e.f32_offset(from, first), e.f32_offset(to, pixel));
                transpose(e, block, (from, plain), (to, blocked));
            }
            ReorderDirection::ToPlain => {
                let (from, to) = (e.f32_offset(from, pixel), e.f32_offset(to, first));
                transpose(e, block, (from, blocked), (to, plain));
            }
        }
    };
    e.for_each(0, pixels - rest, block, |e, first| tile(e, first, block));
    if rest > 0 {
        tile(e, Int::Const(pixels - rest), rest);
    }
}

/// Rows of a small matrix in memory: how many there are, how far apart, and how many elements of each.
struct Rows {
    count: i64,
    distance: i64,
    lanes: i64,
}

/// Transposes a matrix of at most `block` by `block`; what is written beyond the one that is read is zero.
fn transpose<'c>(e: &mut Emitter<'c>, block: i64, (from, read): (Val<'c>, Rows), (to, write): (Val<'c>, Rows)) {
    let zero = e.f32_constant(0.0, Some(block));
    let mask = (read.lanes < block).then(|| e.mask(Int::Const(read.lanes), block));
    let rows = (0..block).map(|row| {
        if row >= read.count {
            return zero;
        }
        let address = e.f32_offset(from, Int::Const(row * read.distance));
        match mask {
            Some(mask) => e.load_masked(address, mask, block),
            None => e.load_vector(address, block),
        }
    });
    let rows = rows.collect();
    let columns = e.transpose(rows);
    let mask = (write.lanes < block).then(|| e.mask(Int::Const(write.lanes), block));
    for (row, column) in (0..write.count).zip(columns) {
        let address = e.f32_offset(to, Int::Const(row * write.distance));
        match mask {
            Some(mask) => e.store_masked(column, address, mask),
            None => e.store(column, address, 4),
        }
    }
}

impl EmitKernel for CopyChannels {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        emit_copy(function, self);
    }
}

/// Emits all tasks.
fn emit_copy(kernel: &mut KernelFunction<'_>, spec: &CopyChannels) {
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
