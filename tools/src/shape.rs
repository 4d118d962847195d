//! Input shapes on the command line: `1x3x224x224`, `1x128:int64`, `zeros:2x10`.

use frazil_ir::DType;
use std::str::FromStr;

/// Dtype and sizes of an input, as in `--input-shape=1x3x224x224:float32`. An empty text is a zero-dimensional tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputShape {
    /// Element type; `float32` by default.
    pub dtype: DType,
    /// The sizes of the dimensions, in elements.
    pub sizes: Vec<i64>,
}

/// The reason why an input shape cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// A part of the text is not a size.
    #[error("`{0}` is not an extent: expected sizes such as 1x3x224x224")]
    Extent(String),
    /// A text is not a range of sizes.
    #[error(
        "`{0}` is not a range of sizes: expected NAME=LOW..HIGH, such as N=1..512, with a name of capital letters, digits and underscores, or ?"
    )]
    Range(String),
    /// `?` is a size without a range, or a range without a size.
    #[error("sizes `?` and their range belong together: give both, such as --input-shape='? x 64' --range '?=1..512'")]
    AnyRange,
    /// The text contains an unknown dtype.
    #[error("`{0}` is not a dtype: expected float32, float64, int64, bool, ...")]
    DType(String),
    /// A tensor of this shape would have more elements than memory can hold.
    #[error("`{0}` has too many elements")]
    TooLarge(String),
}

/// Maximum number of elements of a tensor: more than any machine's memory can hold, and far below an overflow.
const MAX_ELEMENTS: i64 = 1 << 40;

impl FromStr for InputShape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<InputShape, ShapeError> {
        let (sizes, dtype) = split_dtype(text)?;
        let extent = |part: &str| match part.parse::<i64>() {
            Ok(n) if n >= 0 => Ok(n),
            _ => Err(ShapeError::Extent(part.to_owned())),
        };
        let sizes: Vec<i64> = if sizes.is_empty() {
            Vec::new()
        } else {
            sizes.split('x').map(extent).collect::<Result<_, _>>()?
        };
        check_elements(text, &sizes)?;
        Ok(InputShape { dtype, sizes })
    }
}

/// Returns the sizes in `text`, and the dtype after a colon; `float32` by default.
pub(crate) fn split_dtype(text: &str) -> Result<(&str, DType), ShapeError> {
    let Some((sizes, name)) = text.split_once(':') else {
        return Ok((text, DType::Float));
    };
    let dtype = DType::from_python_name(name.trim()).ok_or_else(|| ShapeError::DType(name.to_owned()))?;
    Ok((sizes, dtype))
}

/// Checks that a tensor of these sizes, which `text` lists, is not too large.
pub(crate) fn check_elements(text: &str, sizes: &[i64]) -> Result<(), ShapeError> {
    let elements = sizes.iter().try_fold(1i64, |n, s| n.checked_mul(*s));
    match elements.filter(|n| *n <= MAX_ELEMENTS) {
        Some(_) => Ok(()),
        None => Err(ShapeError::TooLarge(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_parse() {
        let parse = |text: &str| text.parse::<InputShape>();
        assert_eq!(
            parse("1x3x224x224"),
            Ok(InputShape {
                dtype: DType::Float,
                sizes: vec![1, 3, 224, 224]
            })
        );
        assert_eq!(
            parse("2x0:int64"),
            Ok(InputShape {
                dtype: DType::Long,
                sizes: vec![2, 0]
            })
        );
        assert_eq!(
            parse(":bool"),
            Ok(InputShape {
                dtype: DType::Bool,
                sizes: vec![]
            })
        );
        assert_eq!(parse("1x-3"), Err(ShapeError::Extent("-3".into())));
        assert_eq!(parse("1x3:f99"), Err(ShapeError::DType("f99".into())));
        assert!(matches!(parse("9999999999x9999999999"), Err(ShapeError::TooLarge(_))));
    }
}
