//! Sliding windows: the taps of a window that are inside the input.

use super::builder::{Emitter, Int};
use std::ops::Range;

/// One dimension of a sliding window.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Number of taps.
    pub kernel: i64,
    /// Distance of the windows of successive outputs, in input elements.
    pub stride: i64,
    /// Number of elements before the input that the first window covers.
    pub padding: i64,
    /// Distance of successive taps, in input elements.
    pub dilation: i64,
    /// Extent of the input.
    pub input: i64,
    /// Extent of the output.
    pub output: i64,
}

/// The outputs of one dimension, in tiles of equal width.
pub struct Tiles {
    /// The tiles all of whose taps are inside the input: from the start of the first to the end of the last.
    pub interior: Range<i64>,
    /// Start and width of the other tiles; the last one may be narrower.
    pub border: Vec<(i64, i64)>,
}

impl Axis {
    /// Returns the taps `lo..hi` of output `y` that are inside the input.
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

    /// Returns true if tap `k` of output `x` is inside the input.
    pub fn is_inside(&self, x: i64, k: i64) -> bool {
        (0..self.input).contains(&(x * self.stride - self.padding + k * self.dilation))
    }

    /// Returns the outputs among `x..x + count` whose tap `k` is inside the input, counted from `x`.
    pub fn valid(&self, x: i64, count: i64, k: i64) -> Range<i64> {
        // Output x + j reads at `at` + j · stride.
        let at = x * self.stride - self.padding + k * self.dilation;
        let first = div_ceil(-at, self.stride).clamp(0, count);
        let end = div_ceil(self.input - at, self.stride).clamp(0, count);
        match first < end {
            true => first..end,
            false => count..count,
        }
    }

    /// Returns the outputs all of whose taps are inside the input.
    pub fn interior(&self) -> Range<i64> {
        if self.kernel == 0 {
            return 0..self.output;
        }
        let width = (self.kernel - 1) * self.dilation;
        let first = div_ceil(self.padding, self.stride).clamp(0, self.output);
        let end = div_ceil(self.input - width + self.padding, self.stride).clamp(0, self.output);
        match first < end {
            true => first..end,
            false => self.output..self.output,
        }
    }

    /// Splits the outputs into tiles of `width`. Returns `None` if more than `most` of them are not interior.
    pub fn tiles(&self, width: i64, most: usize) -> Option<Tiles> {
        let (full, tail) = (self.output / width, self.output % width);
        let inside = self.interior();
        let (first, end) = (div_ceil(inside.start, width), inside.end / width);
        let (first, end) = if first < end { (first, end) } else { (full, full) };
        let others = first + (full - end) + i64::from(tail > 0);
        if usize::try_from(others).is_ok_and(|n| n > most) {
            return None;
        }
        let mut border: Vec<(i64, i64)> = (0..first).chain(end..full).map(|i| (i * width, width)).collect();
        if tail > 0 {
            border.push((full * width, tail));
        }
        Some(Tiles {
            interior: first * width..end * width,
            border,
        })
    }
}

/// `a / b` rounded up; `b` is positive.
fn div_ceil(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every axis of small numbers, against the definition.
    #[test]
    fn ranges_are_those_of_the_definition() {
        let mut axes = Vec::new();
        for kernel in 1..4 {
            for stride in 1..4 {
                for padding in -1..4 {
                    for dilation in 1..3 {
                        for input in 1..8 {
                            for output in [1, 3, 6] {
                                axes.push(Axis {
                                    kernel,
                                    stride,
                                    padding,
                                    dilation,
                                    input,
                                    output,
                                });
                            }
                        }
                    }
                }
            }
        }
        for a in axes {
            let whole = |x: i64| (0..a.kernel).all(|k| a.is_inside(x, k));
            let interior: Vec<i64> = (0..a.output).filter(|&x| whole(x)).collect();
            assert_eq!(a.interior().collect::<Vec<_>>(), interior, "{a:?}");
            for (x, k) in (0..a.output).flat_map(|x| (0..a.kernel).map(move |k| (x, k))) {
                let count = a.output - x;
                let valid: Vec<i64> = (0..count).filter(|j| a.is_inside(x + j, k)).collect();
                assert_eq!(a.valid(x, count, k).collect::<Vec<_>>(), valid, "{a:?} {x} {k}");
            }
            let Tiles { interior, border } = a.tiles(2, 100).unwrap();
            let tiles = interior.step_by(2).map(|x| (x, 2)).chain(border.iter().copied());
            let mut all: Vec<i64> = tiles.flat_map(|(x, n)| x..x + n).collect();
            all.sort_unstable();
            assert_eq!(all, (0..a.output).collect::<Vec<_>>(), "{a:?}");
            for (x, n) in &border {
                assert!(*n < 2 || !(*x..x + n).all(whole), "{a:?} {x}");
            }
        }
    }

    #[test]
    fn wide_rows_take_no_time() {
        let wide = Axis {
            kernel: 3,
            stride: 1,
            padding: 1,
            dilation: 1,
            input: 1 << 34,
            output: 1 << 34,
        };
        assert_eq!(wide.interior(), 1..(1 << 34) - 1);
        assert_eq!(wide.tiles(8, 6).unwrap().border.len(), 2);
        let outside = Axis { input: 1, ..wide };
        assert!(outside.tiles(8, 6).is_none());
    }
}
