//! The text form of tensor graphs: printer and parser. `docs/tensor-ir.md` describes it operation by operation.
//!
//! ```
//! use frazil_tensor_ir::text::{parse, print};
//!
//! let text = "\
//! func @scale(%0: float32[2, 3]) {
//!   %1 = constant float32[3] [1.0, 2.0, 4.0]
//!   %2 = nest float32[2, 3] for d0 < 2, d1 < 3 {
//!     x0 = %0[d0, d1]
//!     x1 = %1[d1]
//!     v0: float32 = x0
//!     v1: float32 = x1
//!     v2: float32 = mul v0, v1
//!   }
//!   return %2
//! }
//! ";
//! let function = parse(text).map_err(|error| error.to_string())?;
//! assert_eq!(print(&function.name, &function.graph), text);
//! # Ok::<(), String>(())
//! ```

mod affine;
mod call;
mod extent;
mod file;
mod fragment;
mod lex;
mod names;
mod parse;
mod print;

pub use file::{FileError, external_constants, is_text_file, read_file, write_file};
pub use parse::{ConstantLookup, Function, ParseOptions, parse, parse_with};
pub use print::{PrintOptions, print, print_with};
