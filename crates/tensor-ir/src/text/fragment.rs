//! Fragments of printed text: lists, shapes, numbers and strings.

use frazil_runtime::expr::Number;
use frazil_runtime::structured::TensorShape;
use std::fmt::{self, Display, Formatter};

/// Items with commas between them.
pub(super) struct Commas<I>(pub I);

impl<I: Clone + IntoIterator<Item: Display>> Display for Commas<I> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.clone().into_iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            item.fmt(f)?;
        }
        Ok(())
    }
}

/// dtype and sizes: `float32[2, 3]`.
pub(super) struct ShapeText<'a>(pub &'a TensorShape);

impl Display for ShapeText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.0.dtype.python_name(), Commas(&self.0.sizes))
    }
}

/// A number, printed so that parsing returns the same number.
pub(super) struct NumberText(pub Number);

impl Display for NumberText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Number::Int(i) => write!(f, "{i}"),
            Number::Float(x) if x.is_nan() => f.write_str("nan"),
            // `Debug` prints the fewest digits that are read as the same number, with a point or an exponent.
            Number::Float(x) => write!(f, "{x:?}"),
        }
    }
}

/// A string in quotes, with the escapes of JSON.
pub(super) struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quoted = serde_json::to_string(self.0).map_err(|_| fmt::Error)?;
        f.write_str(&quoted)
    }
}
