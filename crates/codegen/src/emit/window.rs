//! Sliding windows: which taps of a window lie inside the input.

use super::builder::{Emitter, Int};
use std::ops::Range;

/// One dimension of a sliding window.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Taps.
    pub kernel: i64,
    /// Input elements between two outputs.
    pub stride: i64,
    /// Elements before the input that the first window covers.
    pub padding: i64,
    /// Input elements between two taps.
    pub dilation: i64,
    /// Extent of the input.
    pub input: i64,
    /// Extent of the output.
    pub output: i64,
}

impl Axis {
    /// The taps `lo..hi` of output `y` that lie inside the input.
    pub fn taps<'c>(&self, e: &mut Emitter<'c>, y: Int<'c>) -> (Int<'c>, Int<'c>) {
        let last = (self.output - 1) * self.stride - self.padding + (self.kernel - 1) * self.dilation;
        let start = e.linear([(self.stride, y)], -self.padding);
        let lo = match self.padding {
            0 => Int::Const(0),
            _ => {
                let above = e.sub(self.dilation - 1, start);
                let above = e.max(above, 0);
                let above = e.div(above, self.dilation);
                e.min(above, self.kernel)
            }
        };
        let hi = match last < self.input {
            true => Int::Const(self.kernel),
            false => {
                let below = e.sub(self.input + self.dilation - 1, start);
                let below = e.max(below, 0);
                let below = e.div(below, self.dilation);
                e.min(below, self.kernel)
            }
        };
        (lo, hi)
    }

    /// True when tap `k` of output `x` lies inside the input.
    pub fn is_inside(&self, x: i64, k: i64) -> bool {
        (0..self.input).contains(&(x * self.stride - self.padding + k * self.dilation))
    }

    /// Which of the outputs `x..x + count` have tap `k` inside the input, counted from `x`.
    pub fn valid(&self, x: i64, count: i64, k: i64) -> Range<i64> {
        let inside = |j: &i64| self.is_inside(x + j, k);
        let first = (0..count).find(inside).unwrap_or(count);
        let last = (first..count).take_while(inside).last().map_or(first, |j| j + 1);
        first..last
    }

    /// True when all taps of the outputs `x..x + count` lie inside the input.
    pub fn is_interior(&self, x: i64, count: i64) -> bool {
        (0..self.kernel).all(|k| self.valid(x, count, k) == (0..count))
    }

    /// The outputs of which all taps lie inside.
    pub fn interior(&self) -> Range<i64> {
        let first = (0..self.output)
            .find(|x| self.is_interior(*x, 1))
            .unwrap_or(self.output);
        let end = (first..self.output)
            .find(|x| !self.is_interior(*x, 1))
            .unwrap_or(self.output);
        first..end
    }

    /// Splits the outputs into tiles of `width`: those that are interior, as one range of starts to be looped over, and the others
    /// (start, width), a narrower last one among them.
    pub fn tiles(&self, width: i64) -> (Range<i64>, Vec<(i64, i64)>) {
        let (full, tail) = (self.output / width, self.output % width);
        let first = (0..full).find(|i| self.is_interior(i * width, width)).unwrap_or(full);
        let end = (first..full)
            .find(|i| !self.is_interior(i * width, width))
            .unwrap_or(full);
        let mut border: Vec<(i64, i64)> = (0..first).chain(end..full).map(|i| (i * width, width)).collect();
        if tail > 0 {
            border.push((full * width, tail));
        }
        (first * width..end * width, border)
    }
}
