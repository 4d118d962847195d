//! Shapes with ranges of sizes on the command line of `jit-opt`: `B x N:int64`, `B=1..8`.

use crate::shape::{ShapeError, check_elements, split_dtype};
#[cfg(feature = "codegen")]
use frazil::{InputSize, RangedInput, SizeRange};
use frazil_ir::DType;
use std::str::FromStr;

/// A size of an input on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeSize {
    /// A number of elements.
    Fixed(i64),
    /// A size with a name, which has a range.
    Named(String),
    /// `?`: a size without a name.
    Any,
}

/// Dtype and sizes of an input, some of which have names: `B x N x 256:float32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangedShape {
    /// Element type; `float32` by default.
    pub dtype: DType,
    /// The sizes of the dimensions.
    pub sizes: Vec<ShapeSize>,
}

impl RangedShape {
    /// Returns the sizes if all are numbers.
    pub fn fixed(&self) -> Option<Vec<i64>> {
        let size = |size: &ShapeSize| match size {
            ShapeSize::Fixed(size) => Some(*size),
            ShapeSize::Named(_) | ShapeSize::Any => None,
        };
        self.sizes.iter().map(size).collect()
    }
}

impl FromStr for RangedShape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<RangedShape, ShapeError> {
        let (sizes, dtype) = split_dtype(text)?;
        let size = |part: &str| match (part.trim(), part.trim().parse::<i64>()) {
            (_, Ok(n)) if n >= 0 => Ok(ShapeSize::Fixed(n)),
            ("?", _) => Ok(ShapeSize::Any),
            (name, _) if is_name(name) => Ok(ShapeSize::Named(name.to_owned())),
            _ => Err(ShapeError::Extent(part.to_owned())),
        };
        let sizes: Vec<ShapeSize> = match sizes.trim().is_empty() {
            true => Vec::new(),
            false => sizes.split('x').map(size).collect::<Result<_, _>>()?,
        };
        let shape = RangedShape { dtype, sizes };
        if let Some(sizes) = shape.fixed() {
            check_elements(text, &sizes)?;
        }
        Ok(shape)
    }
}

/// The range of a size: `B=1..8`. Both bounds are included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRange {
    /// The name; `?` for all sizes without names.
    pub name: String,
    /// The smallest size.
    pub low: i64,
    /// The largest size.
    pub high: i64,
}

impl FromStr for NamedRange {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<NamedRange, ShapeError> {
        let parts = text.split_once('=').and_then(|(name, range)| {
            let (low, high) = range.split_once("..")?;
            let size = |text: &str| text.trim().parse::<i64>().ok().filter(|n| *n >= 0);
            Some((name.trim(), size(low)?, size(high)?))
        });
        match parts {
            Some((name, low, high)) if low <= high && (name == "?" || is_name(name)) => {
                let name = name.to_owned();
                Ok(NamedRange { name, low, high })
            }
            _ => Err(ShapeError::Range(text.to_owned())),
        }
    }
}

/// Returns whether `text` is the name of a size.
fn is_name(text: &str) -> bool {
    let is_allowed = |c: char| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit();
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(is_allowed)
}

/// Returns the inputs and the ranges of their sizes. The sizes without names get the names `SIZE_0`, `SIZE_1`, ..., each with the range of `?`.
///
/// # Errors
/// If there are sizes without names, and `?` has no range, or the reverse.
#[cfg(feature = "codegen")]
pub fn ranged(shapes: &[RangedShape], ranges: &[NamedRange]) -> Result<(Vec<RangedInput>, Vec<SizeRange>), ShapeError> {
    let has_any = shapes.iter().any(|shape| shape.sizes.contains(&ShapeSize::Any));
    if has_any != ranges.iter().any(|range| range.name == "?") {
        return Err(ShapeError::AnyRange);
    }
    let mut without_names = 0;
    let mut size = |size: &ShapeSize| match size {
        ShapeSize::Fixed(size) => InputSize::Fixed(*size),
        ShapeSize::Named(name) => InputSize::Named(name.clone()),
        ShapeSize::Any => {
            without_names += 1;
            InputSize::Named(format!("SIZE_{}", without_names - 1))
        }
    };
    let inputs = shapes.iter().map(|shape| RangedInput {
        dtype: shape.dtype,
        sizes: shape.sizes.iter().map(&mut size).collect(),
    });
    let inputs = inputs.collect();
    let ranges = ranges.iter().flat_map(|range| {
        let NamedRange { name, low, high } = range.clone();
        let names = match name.as_str() {
            "?" => (0..without_names).map(|i| format!("SIZE_{i}")).collect(),
            _ => vec![name],
        };
        names.into_iter().map(move |name| SizeRange { name, low, high })
    });
    Ok((inputs, ranges.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_or_names() {
        let named = |name: &str| ShapeSize::Named(name.into());
        for text in ["B x N2 x ? x 64:int64", "BxN2x?x64:int64"] {
            let shape: RangedShape = text.parse().unwrap();
            assert_eq!(
                shape.sizes,
                [named("B"), named("N2"), ShapeSize::Any, ShapeSize::Fixed(64)]
            );
            assert_eq!((shape.dtype, shape.fixed()), (DType::Long, None));
        }
        let scalar: RangedShape = ":bool".parse().unwrap();
        assert_eq!(scalar.fixed(), Some(vec![]));
        for text in ["b", "2N", "B x", "_N", "??", "1x-3"] {
            assert!(
                matches!(text.parse::<RangedShape>(), Err(ShapeError::Extent(_))),
                "{text}"
            );
        }
        assert!(matches!(
            "9999999999x9999999999".parse::<RangedShape>(),
            Err(ShapeError::TooLarge(_))
        ));
    }

    #[test]
    fn ranges_include_both_bounds() {
        let range = |name: &str, low, high| NamedRange {
            name: name.into(),
            low,
            high,
        };
        assert_eq!("B=1..8".parse(), Ok(range("B", 1, 8)));
        assert_eq!("? = 0..0".parse(), Ok(range("?", 0, 0)));
        for text in [
            "B", "B=1", "B=1..", "B=8..1", "b=1..8", "=1..8", "B=-1..8", "B=1..=8", "B=1..8x",
        ] {
            assert_eq!(text.parse::<NamedRange>(), Err(ShapeError::Range(text.into())));
        }
    }

    #[test]
    #[cfg(feature = "codegen")]
    fn each_size_without_a_name_is_one_of_its_own() {
        let shapes = ["? x B".parse().unwrap(), "?".parse().unwrap()];
        let ranges = ["B=1..2".parse().unwrap(), "?=0..3".parse().unwrap()];
        assert_eq!(ranged(&shapes, &ranges[..1]), Err(ShapeError::AnyRange));
        assert_eq!(ranged(&[], &ranges), Err(ShapeError::AnyRange));
        let (inputs, ranges) = ranged(&shapes, &ranges).unwrap();
        let names = |sizes: &[InputSize]| sizes.iter().map(|s| format!("{s:?}")).collect::<String>();
        assert_eq!(names(&inputs[0].sizes), "Named(\"SIZE_0\")Named(\"B\")");
        assert_eq!(names(&inputs[1].sizes), "Named(\"SIZE_1\")");
        let ranges: Vec<_> = ranges.iter().map(|r| (r.name.as_str(), r.low, r.high)).collect();
        assert_eq!(ranges, [("B", 1, 2), ("SIZE_0", 0, 3), ("SIZE_1", 0, 3)]);
    }
}
