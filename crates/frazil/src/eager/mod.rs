//! Eager tensors: every operator of the catalogue is a method, with arguments by position and by name.
//!
//! ```
//! use frazil::{Session, Tensor};
//!
//! # fn main() -> Result<(), frazil::Error> {
//! let ops = Session::new().eager();
//! let x = ops.var(Tensor::from_f32(&[1.0, -2.0, 3.0, -4.0], &[2, 2])?);
//! let y = (x.relu().call()? * 2.0)?; // operators of Rust broadcast and promote as PyTorch's do
//! let sums = y.sum().dim([1]).keepdim(true).call()?; // arguments by name; the others have their defaults
//! assert_eq!(sums.get().to_f64_vec(), [2.0, 6.0]);
//! y.at(0)?.fill_(9).call()?; // a view: y changes
//! assert_eq!(y.get().to_f64_vec(), [9.0, 9.0, 6.0, 0.0]);
//! let [values, indices] = y.max().dim(1).call_tuple()?;
//! assert_eq!((values.get().to_f64_vec(), indices.get().to_i64_vec()), (vec![9.0, 6.0], vec![0, 0]));
//! # Ok(())
//! # }
//! ```
//!
//! - An [`Ops`] belongs to a [`Session`](crate::Session) and calls its operators, including those of embedders ([`Ops::start`]). It is cheap to clone.
//! - A [`Var`] is a tensor variable: clones are the same variable, views share its memory, and in-place methods change it.
//! - A method takes the arguments that all overloads of its operator require, and returns an [`OpCall`]. This takes the others by name, and [`OpCall::call`] or
//!   one of its variants runs it. The overload is chosen by the arguments, as in PyTorch.
//!
//! Calls in a traced function are recorded too; see [`Session::trace`](crate::Session::trace).

mod arg;
mod arithmetic;
mod bind;
mod call;
mod elements;
mod family;
mod index;
mod names;
mod operands;
pub(crate) mod outputs;
pub(crate) mod recorder;
mod start;
mod var;
pub(crate) mod warning;

pub use arg::Arg;
pub use call::OpCall;
pub use elements::Elements;
pub use index::Index;
pub use var::{Ops, Var};

include!(concat!(env!("OUT_DIR"), "/methods.rs"));
