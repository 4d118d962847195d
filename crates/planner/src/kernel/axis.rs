//! Sliding windows along one dimension: the taps that lie inside the input, and the tiles of a row of outputs.

use super::ConvShape;
use smallvec::SmallVec;
use std::ops::Range;

/// One dimension of a sliding window.
///
/// `N` is the type of sizes that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
#[derive(Clone, Copy, Debug)]
pub struct Axis<N = i64> {
    /// Number of taps.
    pub kernel: N,
    /// Distance between the windows of neighbouring outputs, in input elements.
    pub stride: i64,
    /// Padding: the first window starts this many elements before the input.
    pub padding: i64,
    /// Distance between neighbouring taps, in input elements.
    pub dilation: i64,
    /// Number of input elements.
    pub input: N,
    /// Number of outputs.
    pub output: N,
}

/// The outputs of one dimension, divided into tiles of one width.
pub struct Tiles {
    /// The outputs of the interior tiles, all of whose taps lie inside the input.
    pub interior: Range<i64>,
    /// Start and width of each border tile, that is, of each tile that is not interior. The last tile may be narrower.
    pub border: Vec<(i64, i64)>,
}

impl<N: Copy + From<i64>> Axis<N> {
    /// Returns the axis of a convolution over rows if `dimension` is 0, and over columns if it is 1.
    pub fn of(shape: &ConvShape<N>, dimension: usize) -> Axis<N> {
        Axis {
            kernel: N::from(shape.kernel[dimension]),
            stride: shape.stride[dimension],
            padding: shape.padding[dimension],
            dilation: shape.dilation[dimension],
            input: shape.input[dimension],
            output: shape.output[dimension],
        }
    }
}

impl Axis {
    /// Returns true if tap `k` of output `x` lies inside the input.
    pub fn is_inside(&self, x: i64, k: i64) -> bool {
        (0..self.input).contains(&(x * self.stride - self.padding + k * self.dilation))
    }

    /// Returns those outputs among `x..x + count` whose tap `k` lies inside the input, as a range relative to `x`.
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

    /// Returns the outputs all of whose taps lie inside the input.
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

    /// Divides the outputs into tiles of `width` outputs. Returns `None` if the number of border tiles, which have taps outside of the input or are narrower,
    /// exceeds `most`.
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

    /// Returns the number of elements after the input that the last window covers. It is negative if the window ends before the input does.
    fn overhang(&self) -> i64 {
        let last = (self.output - 1) * self.stride - self.padding + (self.kernel - 1) * self.dilation;
        last + 1 - self.input
    }
}

/// Division of a row of outputs into tiles, for code that takes the length of rows as an argument.
///
/// All tiles have the same width, so that the code needs no narrower tiles. If the length is not a multiple of the width, a tile overlaps the previous tile,
/// and does not store the outputs that the previous tile has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowTiling {
    /// Number of outputs of a tile. At most the number of outputs of a row.
    pub width: i64,
    /// Maximum number of elements after the input row that the last window covers; not negative. Depending on the length of the row, the last window may cover
    /// fewer of them, by less than the stride.
    pub overhang: i64,
    /// The tiles that read outside of the input.
    pub border: RowBorder,
}

/// The tiles of a [`RowTiling`] that have taps outside of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowBorder {
    /// No tile has taps outside of the input.
    Nowhere,
    /// The first tile, before the input, and the last tile, after the input; or the only tile of the row.
    Ends,
    /// Any tile, so that the code checks each read.
    Anywhere,
}

/// The ends of a row that a tile contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEnd {
    /// The start of the row.
    First,
    /// The end of the row.
    Last,
    /// Both: the tile is the whole row.
    Both,
}

impl RowTiling {
    /// Returns the tiling of `axis` with tiles of at most `width` outputs.
    pub fn of(axis: &Axis, width: i64) -> RowTiling {
        let width = width.min(axis.output).max(1);
        let (padding, most_overhang) = match axis.kernel {
            0 => (0, 0),
            _ => {
                // The overhang is rounded up to the padding plus or minus a multiple of the stride, so that rows of different lengths have the same tiling.
                let further = (axis.padding - axis.overhang()).div_euclid(axis.stride);
                (axis.padding.max(0), axis.padding - further * axis.stride)
            }
        };
        let overhang = most_overhang.max(0);
        // Numbers of outputs that read before the input, and after it.
        let (before, after) = (div_ceil(padding, axis.stride), div_ceil(overhang, axis.stride));
        let (most, left) = (before.max(after), axis.output - 2 * width);
        // With two overlapping tiles, neither may contain outputs that read beyond the other end. With more tiles, the outputs that read beyond an end must all
        // be in the tile at this end.
        let is_apart = match left < 0 {
            true => axis.output >= width + most,
            false => width >= most && (left == 0 || left >= before),
        };
        RowTiling {
            width,
            overhang,
            border: match most {
                0 => RowBorder::Nowhere,
                _ if axis.output <= width || is_apart => RowBorder::Ends,
                _ => RowBorder::Anywhere,
            },
        }
    }

    /// Returns the possible numbers of elements after the row that the last window covers, in descending order, for windows `stride` elements apart. 0 includes
    /// windows that end before the row does.
    pub fn overhangs(&self, stride: i64) -> impl Iterator<Item = i64> {
        let least = (self.overhang - stride + 1).max(0);
        (least..=self.overhang).rev()
    }

    /// Returns the width of tiles for `axis`: one of a few widths of at most `most` outputs, so that little code serves rows of any length. `time` returns the
    /// estimated time of a tile of the given width, in any unit.
    pub fn choose(axis: &Axis, most: i64, time: impl Fn(i64) -> f64) -> i64 {
        /// Maximum time with the chosen width, relative to the fastest width. The largest such width is chosen: with fewer widths in use, less code is
        /// compiled.
        const WORTHWHILE: f64 = 1.08;
        // Each width is about five sevenths of the previous one: 14, 10, 7, 5, 4, 3, 2, 1.
        let narrower = |width: &i64| (*width > 1).then_some((10 * width + 7) / 14);
        let widths = std::iter::successors(Some(most.max(1)), narrower);
        let fitting = widths.filter(|width| *width <= axis.output);
        let is_tiled = |width: i64| RowTiling::of(axis, width).border != RowBorder::Anywhere;
        let time_of_row = |width: i64| (axis.output.max(0) as f64 / width as f64).ceil() * time(width);
        let candidate = |width| (width, is_tiled(width), time_of_row(width));
        let candidates: SmallVec<[(i64, bool, f64); 8]> = fitting.map(candidate).collect();
        let is_any_tiled = candidates.iter().any(|(_, is_tiled, _)| *is_tiled);
        let allowed = || candidates.iter().filter(|(_, is_tiled, _)| *is_tiled || !is_any_tiled);
        let least = allowed().map(|(.., time)| *time).fold(f64::INFINITY, f64::min);
        let chosen = allowed().find(|(.., time)| *time <= WORTHWHILE * least);
        chosen.map_or(1, |(width, ..)| *width)
    }

    /// Returns an axis of known extents, and the first output of a tile on it. The tile has the same taps inside the input as the tile at `end` of a row whose
    /// last window covers `overhang` elements after the input. The axis has the stride, padding and dilation of `axis`, and `kernel` taps.
    pub fn example<N>(&self, axis: &Axis<N>, kernel: i64, (end, overhang): (RowEnd, i64)) -> (Axis, i64) {
        /// Number of outputs of a row whose two ends have no tile in common.
        const MANY: i64 = 1 << 30;
        let output = match end {
            RowEnd::Both => self.width,
            RowEnd::First | RowEnd::Last => MANY,
        };
        let known = Axis {
            kernel,
            stride: axis.stride,
            padding: axis.padding,
            dilation: axis.dilation,
            input: (output - 1) * axis.stride - axis.padding + (kernel - 1) * axis.dilation + 1 - overhang,
            output,
        };
        let x = match end {
            RowEnd::First | RowEnd::Both => 0,
            RowEnd::Last => MANY - self.width,
        };
        (known, x)
    }
}

/// Returns `a / b`, rounded up. `b` must be positive.
fn div_ceil(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small_axes() -> Vec<Axis> {
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
        axes
    }

    /// Every axis of small numbers, against the definition.
    #[test]
    fn ranges_are_those_of_the_definition() {
        for a in small_axes() {
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

    #[test]
    fn few_widths_serve_all_rows() {
        let mut widths = std::collections::BTreeSet::new();
        for output in 1..300 {
            let axis = Axis {
                kernel: 3,
                stride: 1,
                padding: 1,
                dilation: 1,
                input: output,
                output,
            };
            let width = RowTiling::choose(&axis, 14, |width| width as f64 + 0.5);
            let tiling = RowTiling::of(&axis, width);
            assert_ne!(tiling.border, RowBorder::Anywhere, "{output}: {tiling:?}");
            // At most two sevenths are computed twice.
            assert!(
                (output + width - 1) / width * width * 7 <= output * 9,
                "{output}: {width}"
            );
            widths.insert(width);
        }
        assert!(widths.len() <= 8, "{widths:?}");
    }

    /// Each tile of a tiling has the taps inside that the tiling says, whatever the length.
    #[test]
    fn tiles_have_the_taps_of_their_ends() {
        let mut borders = std::collections::HashMap::new();
        for axis in small_axes() {
            for output in 1..12 {
                // As many elements after the input as before it, or fewer.
                for further in 0..=2 {
                    let window = (axis.kernel - 1) * axis.dilation + 1;
                    let input = (output - 1) * axis.stride - 2 * axis.padding + window + further;
                    let a = Axis { output, input, ..axis };
                    for width in (1..=output.min(4)).filter(|_| input > 0) {
                        let tiling = RowTiling::of(&a, width);
                        *borders.entry(format!("{:?}", tiling.border)).or_insert(0) += 1;
                        let check = |x: i64, end: Option<RowEnd>| {
                            for (j, k) in (0..width).flat_map(|j| (0..a.kernel).map(move |k| (j, k))) {
                                let inside = end.is_none_or(|end| {
                                    let overhang = a.overhang().max(0);
                                    assert!(tiling.overhangs(a.stride).any(|o| o == overhang), "{a:?} {tiling:?}");
                                    let (known, first) = tiling.example(&a, a.kernel, (end, overhang));
                                    known.is_inside(first + j, k)
                                });
                                assert_eq!(a.is_inside(x + j, k), inside, "{a:?} {tiling:?} {x} {j} {k}");
                            }
                        };
                        match tiling.border {
                            RowBorder::Nowhere => (0..=output - width).for_each(|x| check(x, None)),
                            RowBorder::Ends if output == width => check(0, Some(RowEnd::Both)),
                            RowBorder::Ends => {
                                check(0, Some(RowEnd::First));
                                check(output - width, Some(RowEnd::Last));
                                let middle = (width..output - width).step_by(width as usize);
                                middle.for_each(|x| check(x.min(output - 2 * width), None));
                            }
                            RowBorder::Anywhere => {}
                        }
                    }
                }
            }
        }
        assert!(borders.values().all(|n| *n > 50) && borders.len() >= 3, "{borders:?}");
    }
}
