//! Conversions between layouts, which transpose small matrices in registers, and copies of channels.

use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::family::EmitKernel;
use crate::emit::function::KernelFunction;
use crate::emit::window::strides;
use frazil_planner::kernel::{BlockedShape, CopyChannels, Reorder, ReorderDirection};

impl EmitKernel for Reorder {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        let spec = self.map(&mut |n| function.number(*n));
        emit(function, &spec, self.rest());
    }
}

/// Emits all tasks. The last block of channels has `rest` channels, or is full if this is 0.
fn emit<'c>(kernel: &mut KernelFunction<'c>, spec: &Reorder<Int<'c>>, rest: i64) {
    let (s, e) = (&spec.blocked, &mut kernel.e);
    let pixels = e.mul(s.height, s.width);
    let (image, plane) = (e.mul(pixels, s.channels), e.mul(pixels, s.block));
    let (blocks, whole_blocks) = (e.div_ceil(s.channels, s.block), e.div(s.channels, s.block));
    kernel.for_each_task(|e, buffers, task| {
        let at = e.delinearize(task, &[s.batch, blocks]);
        let blocked = e.linear([(s.batch_stride, at[0]), (plane, at[1])], 0);
        let plain = e.linear([(image, at[0]), (plane, at[1])], 0);
        let (from, to) = match spec.direction {
            ReorderDirection::ToBlocked => (plain, blocked),
            ReorderDirection::ToPlain => (blocked, plain),
        };
        let (from, to) = (e.f32_offset(buffers[0], from), e.f32_offset(buffers[1], to));
        let block = |e: &mut Emitter<'c>, channels| reorder_block(e, spec, (pixels, channels), from, to);
        match (whole_blocks, rest) {
            (_, 0) => block(e, s.block),
            (Int::Const(0), _) => block(e, rest),
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

/// Emits the conversion of one block of `channels` channels and `pixels` pixels. Each step converts as many pixels as a block has channels.
fn reorder_block<'c>(
    e: &mut Emitter<'c>,
    spec: &Reorder<Int<'c>>,
    (pixels, channels): (Int<'c>, i64),
    from: Val<'c>,
    to: Val<'c>,
) {
    let block = spec.blocked.block;
    let tile = |e: &mut Emitter<'c>, first: Int<'c>, count: Int<'c>| {
        let plain = Rows {
            count: Int::Const(channels),
            distance: pixels,
            lanes: count,
        };
        let blocked = Rows {
            count,
            distance: Int::Const(block),
            lanes: Int::Const(block),
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
    let whole = e.round_down(pixels, block);
    e.for_each(0, whole, block, |e, first| tile(e, first, Int::Const(block)));
    match e.sub(pixels, whole) {
        Int::Const(0) => {}
        rest @ Int::Const(_) => tile(e, whole, rest),
        rest => {
            let has_rest = e.compare("ne", rest, 0);
            e.if_then(has_rest, |e| tile(e, whole, rest));
        }
    }
}

/// Rows of a small matrix in memory: their number, their distance in elements, and the number of elements of each.
struct Rows<'c> {
    count: Int<'c>,
    distance: Int<'c>,
    lanes: Int<'c>,
}

impl<'c> Rows<'c> {
    /// Returns the mask of the elements of a row; `None` if a row has `block` elements.
    fn mask(&self, e: &mut Emitter<'c>, block: i64) -> Option<Val<'c>> {
        (self.lanes.known() != Some(block)).then(|| e.mask(self.lanes, block))
    }

    /// Returns whether the matrix has row `row`; `None` if the number of rows is a constant of the code.
    fn has(&self, e: &mut Emitter<'c>, row: i64) -> Option<Val<'c>> {
        self.count.known().is_none().then(|| e.compare("sgt", self.count, row))
    }
}

/// Emits the transposition of a matrix of at most `block` × `block` elements. Elements that are written beyond the matrix that is read are zero.
fn transpose<'c>(e: &mut Emitter<'c>, block: i64, (from, read): (Val<'c>, Rows<'c>), (to, write): (Val<'c>, Rows<'c>)) {
    let zero = e.f32_constant(0.0, Some(block));
    let mask = read.mask(e, block);
    let rows = (0..block).map(|row| {
        if read.count.known().is_some_and(|count| row >= count) {
            return zero;
        }
        let offset = e.mul(read.distance, row);
        let address = e.f32_offset(from, offset);
        let load = |e: &mut Emitter<'c>| match mask {
            Some(mask) => e.load_masked(address, mask, block),
            None => e.load_vector(address, block),
        };
        match read.has(e, row) {
            None => load(e),
            Some(exists) => {
                let ty = e.f32_vector(block);
                e.if_else(exists, &[ty], |e| vec![load(e)], |_| vec![zero])[0]
            }
        }
    });
    let rows = rows.collect();
    let columns = e.transpose(rows);
    let mask = write.mask(e, block);
    for (row, column) in (0..write.count.known().unwrap_or(block)).zip(columns) {
        let offset = e.mul(write.distance, row);
        let address = e.f32_offset(to, offset);
        let store = |e: &mut Emitter<'c>| match mask {
            Some(mask) => e.store_masked(column, address, mask),
            None => e.store(column, address, 4),
        };
        match write.has(e, row) {
            None => store(e),
            Some(exists) => e.if_then(exists, store),
        }
    }
}

impl EmitKernel for CopyChannels {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        let spec = self.map(&mut |n| function.number(*n));
        emit_copy(function, &spec);
    }
}

/// Emits all tasks.
fn emit_copy<'c>(kernel: &mut KernelFunction<'c>, spec: &CopyChannels<Int<'c>>) {
    let (input, output, e) = (&spec.input, &spec.output, &mut kernel.e);
    let ([_, from_plane], [_, to_plane]) = (strides(e, input), strides(e, output));
    let pixels = e.mul(input.height, input.width);
    kernel.for_each_task(|e, buffers, task| {
        let at = e.delinearize(task, &[input.batch, spec.count]);
        let (from, to) = (e.add(at[1], spec.from), e.add(at[1], spec.to));
        let from = channel_offset(e, (input, from_plane), at[0], from);
        let to = channel_offset(e, (output, to_plane), at[0], to);
        let (from, to) = (e.f32_offset(buffers[0], from), e.f32_offset(buffers[1], to));
        let f32 = e.f32();
        e.for_each(0, pixels, 1, |e, p| {
            let offset = e.mul(p, input.block);
            let address = e.f32_offset(from, offset);
            let value = e.load(address, f32, 4);
            let offset = e.mul(p, output.block);
            let address = e.f32_offset(to, offset);
            e.store(value, address, 4);
        });
    });
}

/// Returns the offset of the first element of a channel, in elements. Blocks of channels are `plane` elements apart.
fn channel_offset<'c>(
    e: &mut Emitter<'c>,
    (s, plane): (&BlockedShape<Int<'c>>, Int<'c>),
    image: Int<'c>,
    channel: Int<'c>,
) -> Int<'c> {
    let (block, lane) = (e.div(channel, s.block), e.rem(channel, s.block));
    e.linear([(s.batch_stride, image), (plane, block), (Int::Const(1), lane)], 0)
}
