//! Sliding windows: the taps of an output, and the tiles of a row of outputs.

use super::builder::{Emitter, Int};
use frazil_planner::kernel::{Axis, BlockedShape, RowBorder, RowEnd, RowTiling, Tiles};
use std::ops::Range;

/// Returns the range `lo..hi` of the taps of output `y` that lie inside the input.
pub fn taps<'c>(e: &mut Emitter<'c>, axis: &Axis<Int<'c>>, y: Int<'c>) -> (Int<'c>, Int<'c>) {
    let start = e.linear([(axis.stride, y)], -axis.padding);
    let lo = match axis.padding {
        0 => Int::Const(0),
        _ => {
            let above = e.sub(axis.dilation - 1, start);
            let above = e.max(above, 0);
            let above = e.div(above, axis.dilation);
            e.min(above, axis.kernel)
        }
    };
    let last = known(axis).map(|a| {
        (
            (a.output - 1) * a.stride - a.padding + (a.kernel - 1) * a.dilation,
            a.input,
        )
    });
    let hi = match last {
        Some((last, input)) if last < input => axis.kernel,
        _ => {
            let end = e.add(axis.input, axis.dilation - 1);
            let below = e.sub(end, start);
            let below = e.max(below, 0);
            let below = e.div(below, axis.dilation);
            e.min(below, axis.kernel)
        }
    };
    (lo, hi)
}

/// Returns the distances between rows and between channel blocks of blocked images, in elements.
pub fn strides<'c>(e: &mut Emitter<'c>, images: &BlockedShape<Int<'c>>) -> [Int<'c>; 2] {
    let row = e.mul(images.width, images.block);
    [row, e.mul(row, images.height)]
}

/// Returns the axis, if its extents are constants of the code.
pub fn known(axis: &Axis<Int<'_>>) -> Option<Axis> {
    Some(Axis {
        kernel: axis.kernel.known()?,
        stride: axis.stride,
        padding: axis.padding,
        dilation: axis.dilation,
        input: axis.input.known()?,
        output: axis.output.known()?,
    })
}

/// Returns the range of outputs all of whose taps lie inside the input: the first one, and the end. See [`Axis::interior`].
pub fn interior<'c>(e: &mut Emitter<'c>, axis: &Axis<Int<'c>>) -> (Int<'c>, Int<'c>) {
    if let Some(axis) = known(axis) {
        let inside = axis.interior();
        return (Int::Const(inside.start), Int::Const(inside.end));
    }
    let last_tap = e.sub(axis.kernel, 1);
    let last_tap = e.mul(last_tap, axis.dilation);
    let starts = e.sub(axis.input, last_tap);
    let starts = e.add(starts, axis.padding);
    let starts = e.max(starts, 0);
    let end = e.div_ceil(starts, axis.stride);
    let end = e.min(end, axis.output);
    let first = (axis.padding.max(0) + axis.stride - 1) / axis.stride;
    let first = e.min(first, axis.output);
    let exist = e.compare("slt", first, end);
    let [first, end, output] = [first, end, axis.output].map(|n| e.int(n));
    let first = e.select(exist, first, output);
    (Int::Dyn(first), Int::Dyn(e.select(exist, end, output)))
}

/// A tile of a row of outputs.
pub struct RowTile<'c> {
    /// The first output of the tile.
    pub x: Int<'c>,
    /// Number of outputs of the tile.
    pub width: i64,
    /// Number of leading outputs that an earlier tile has stored.
    pub stored: Int<'c>,
    /// If the tile has taps outside of the input, an axis of constant extents and an output on it. A tile at this output has the same taps inside the input.
    pub border: Option<(Axis, i64)>,
}

impl RowTile<'_> {
    /// Returns the outputs of the tile whose tap `k` lies inside the input, as a range relative to the first output.
    pub fn valid(&self, k: i64) -> Range<i64> {
        match &self.border {
            None => 0..self.width,
            Some((axis, x)) => axis.valid(*x, self.width, k),
        }
    }
}

/// Emits `body` for the tiles of a row. All tiles have the width of `tiling`, except that the last tile of a row of constant length may be narrower. Returns
/// false and emits nothing if a row of constant length has more than `most` border tiles, or if any tile of another row may be at the border.
pub fn for_each_tile<'c>(
    e: &mut Emitter<'c>,
    axis: &Axis<Int<'c>>,
    (tiling, most): (RowTiling, usize),
    body: impl Fn(&mut Emitter<'c>, RowTile<'c>),
) -> bool {
    let width = tiling.width;
    let Some(known) = known(axis) else {
        return for_each_tile_of(e, axis, tiling, body);
    };
    let Some(Tiles { interior, border }) = known.tiles(width, most) else {
        return false;
    };
    let tile = |x, width, border| RowTile {
        x,
        width,
        stored: Int::Const(0),
        border,
    };
    e.for_each(interior.start, interior.end, width, |e, x| {
        body(e, tile(x, width, None))
    });
    for (x, width) in border {
        body(e, tile(Int::Const(x), width, Some((known, x))));
    }
    true
}

/// Emits `body` for the tiles of a row as [`for_each_tile`] does, if an extent of the axis is an argument of the code.
fn for_each_tile_of<'c>(
    e: &mut Emitter<'c>,
    axis: &Axis<Int<'c>>,
    tiling: RowTiling,
    body: impl Fn(&mut Emitter<'c>, RowTile<'c>),
) -> bool {
    let width = tiling.width;
    let tile = |x, stored, border| RowTile {
        x,
        width,
        stored,
        border,
    };
    let inside = |e: &mut Emitter<'c>, begin: Int<'c>, end: Int<'c>| {
        for_each_overlapping(e, (begin, end), width, |e, x, stored| body(e, tile(x, stored, None)));
    };
    // Windows with borders have a known number of taps.
    let kernel = match (tiling.border, axis.kernel.known()) {
        (RowBorder::Nowhere, _) => {
            inside(e, Int::Const(0), axis.output);
            return true;
        }
        (RowBorder::Ends, Some(kernel)) => kernel,
        _ => return false,
    };
    let at_end = |e: &mut Emitter<'c>, x: Int<'c>, stored: Int<'c>, end: (RowEnd, i64)| {
        body(e, tile(x, stored, Some(tiling.example(axis, kernel, end))));
    };
    let none = Int::Const(0);
    let one = |e: &mut Emitter<'c>| {
        for_overhang(e, axis, (tiling, kernel), |e, overhang| {
            at_end(e, none, none, (RowEnd::Both, overhang));
        });
    };
    let apart = |e: &mut Emitter<'c>| {
        at_end(e, none, none, (RowEnd::First, tiling.overhang));
        let x = e.sub(axis.output, width);
        inside(e, Int::Const(width), x);
        let stored = e.sub(width, x);
        let stored = e.max(stored, 0);
        for_overhang(e, axis, (tiling, kernel), |e, overhang| {
            at_end(e, x, stored, (RowEnd::Last, overhang));
        });
    };
    match axis.output {
        Int::Const(output) if output <= width => one(e),
        Int::Const(_) => apart(e),
        output => {
            let is_one = e.compare("eq", output, width);
            let then = |e: &mut Emitter<'c>, tiles: &dyn Fn(&mut Emitter<'c>)| {
                tiles(e);
                Vec::new()
            };
            e.if_else(is_one, &[], |e| then(e, &one), |e| then(e, &apart));
        }
    }
    true
}

/// Emits `body` for each possible overhang of rows, with a condition so that only the code for the overhang of `axis` runs.
fn for_overhang<'c>(
    e: &mut Emitter<'c>,
    axis: &Axis<Int<'c>>,
    (tiling, kernel): (RowTiling, i64),
    body: impl Fn(&mut Emitter<'c>, i64),
) {
    if tiling.overhangs(axis.stride).count() == 1 {
        return body(e, tiling.overhang);
    }
    let last_start = e.sub(axis.output, 1);
    let last_end = (kernel - 1) * axis.dilation + 1 - axis.padding;
    let last_end = e.linear([(axis.stride, last_start)], last_end);
    let overhang = e.sub(last_end, axis.input);
    for value in tiling.overhangs(axis.stride) {
        // Windows that end before the input does read the same taps as windows that end with it.
        let predicate = if value == 0 { "sle" } else { "eq" };
        let is_this = e.compare(predicate, overhang, value);
        e.if_then(is_this, |e| body(e, value));
    }
}

/// Emits `body` for tiles of `width` outputs from `begin` to `end`. `body` receives the first output of a tile, and the number of leading outputs that the
/// previous tile has stored. The last tile ends at `end`. It may overlap the previous tile, or start before `begin`.
pub fn for_each_overlapping<'c>(
    e: &mut Emitter<'c>,
    (begin, end): (Int<'c>, Int<'c>),
    width: i64,
    body: impl Fn(&mut Emitter<'c>, Int<'c>, Int<'c>),
) {
    let last = e.sub(end, width);
    e.for_each(begin, end, width, |e, own| {
        let x = e.min(own, last);
        let stored = e.sub(own, x);
        body(e, x, stored);
    });
}
