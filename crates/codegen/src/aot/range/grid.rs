//! The sizes that a library for ranges serves: every combination of the named sizes.

use super::error::RangeError;
use smallvec::SmallVec;

/// Maximum number of combinations of sizes. Each is planned when the library is made, in a few milliseconds.
pub const MOST_POINTS: usize = 1 << 16;

/// A size that callers of the library choose: its name, and its smallest and largest values (inclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The name: capital letters, digits and underscores, a letter first.
    pub name: String,
    /// The smallest size, at least 0.
    pub low: i64,
    /// The largest size.
    pub high: i64,
}

/// The values of all named sizes, in the order of the ranges.
pub type Sizes = SmallVec<[i64; 4]>;

/// All combinations of the sizes in some ranges, in row-major order. A *point* is the index of a combination.
#[derive(Clone, Debug)]
pub struct Grid {
    ranges: Vec<SizeRange>,
    points: usize,
}

impl Grid {
    /// Returns the combinations of sizes in `ranges`.
    ///
    /// # Errors
    /// If a name is invalid, a range is empty or has negative sizes, two ranges have the same name, or there are more than [`MOST_POINTS`] combinations.
    pub fn new(ranges: Vec<SizeRange>) -> Result<Grid, RangeError> {
        let mut points = 1usize;
        for (i, range) in ranges.iter().enumerate() {
            let SizeRange { name, low, high } = range;
            if !is_name(name) {
                return Err(RangeError::Name(name.clone()));
            }
            if *low < 0 || high < low {
                let (name, low, high) = (name.clone(), *low, *high);
                return Err(RangeError::Bounds { name, low, high });
            }
            if ranges.iter().take(i).any(|other| other.name == *name) {
                return Err(RangeError::TwoRanges(name.clone()));
            }
            let count = high.abs_diff(*low).saturating_add(1);
            points = points.saturating_mul(usize::try_from(count).unwrap_or(usize::MAX));
        }
        match points {
            0..=MOST_POINTS => Ok(Grid { ranges, points }),
            _ => Err(RangeError::TooManyPoints {
                points,
                most: MOST_POINTS,
            }),
        }
    }

    /// Returns the ranges.
    pub fn ranges(&self) -> &[SizeRange] {
        &self.ranges
    }

    /// Returns the number of combinations.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Returns the sizes of `point`. The last size changes fastest.
    pub fn sizes(&self, point: usize) -> Sizes {
        let mut rest = i64::try_from(point).unwrap_or(i64::MAX);
        let mut sizes: Sizes = self
            .ranges
            .iter()
            .rev()
            .map(|range| {
                let count = range.high - range.low + 1;
                let size = range.low + rest % count;
                rest /= count;
                size
            })
            .collect();
        sizes.reverse();
        sizes
    }

    /// Returns the sizes of `point` as text for messages, such as `B=2, N=128`.
    pub fn describe(&self, point: usize) -> String {
        let sizes = self.sizes(point);
        let named = self.ranges.iter().zip(&sizes).map(|(r, s)| format!("{}={s}", r.name));
        named.collect::<Vec<_>>().join(", ")
    }
}

/// Returns true if `name` can be part of the macro names in the generated C header.
fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit();
    name.chars().all(is_allowed) && name.starts_with(|c: char| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(name: &str, low: i64, high: i64) -> SizeRange {
        let name = name.to_owned();
        SizeRange { name, low, high }
    }

    #[test]
    fn points_are_all_combinations() {
        let grid = Grid::new(vec![range("B", 1, 2), range("N", 0, 2)]).unwrap();
        let all: Vec<_> = (0..grid.points()).map(|p| grid.sizes(p).to_vec()).collect();
        assert_eq!(all, [[1, 0], [1, 1], [1, 2], [2, 0], [2, 1], [2, 2]].map(Vec::from));
        assert_eq!(grid.describe(4), "B=2, N=1");
    }

    #[test]
    fn bad_ranges_are_refused() {
        let error = |ranges: Vec<SizeRange>| Grid::new(ranges).map(|g| g.points()).unwrap_err();
        assert!(matches!(error(vec![range("B", 3, 2)]), RangeError::Bounds { .. }));
        for name in ["", "b", "1", "_B", "B*/", "\u{c4}"] {
            assert!(matches!(error(vec![range(name, 1, 2)]), RangeError::Name(_)), "{name}");
        }
        assert!(matches!(error(vec![range("B", -1, 2)]), RangeError::Bounds { .. }));
        assert!(matches!(
            error(vec![range("B", 1, 2), range("B", 1, 2)]),
            RangeError::TwoRanges(_)
        ));
        assert!(matches!(
            error(vec![range("B", 0, 65536)]),
            RangeError::TooManyPoints { points: 65537, .. }
        ));
        assert!(matches!(
            error(vec![range("B", 0, i64::MAX), range("N", 0, i64::MAX)]),
            RangeError::TooManyPoints { .. }
        ));
        assert_eq!(Grid::new(vec![range("B", 1, 65536)]).unwrap().points(), MOST_POINTS);
    }
}
