//! Warnings of the tracer.

use std::fmt;

/// What a tracer warns of.
///
/// See [`TracerWarning`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A value left the trace: a branch or a number may depend on it.
    Value,
    /// A write to memory that other tensors refer to is recorded out of place.
    SharedWrite,
    /// The trace and the function give different results, or the trace gives different ones each time.
    Different,
    /// There are random operators.
    Random,
}

/// Something about a trace that may be wrong.
///
/// ```
/// # use frazil::{Session, Tensor, eager::Var, trace::{TraceOptions, WarningKind}};
/// # let session = Session::new();
/// let function = |x: &[Var]| if x[0].is_true()? { x[0].neg().call() } else { x[0].abs().call() };
/// let trace = session.trace(function, &[Tensor::from_f32(&[1.0], &[1])?], &TraceOptions::default())?;
/// assert_eq!(trace.warnings[0].kind, WarningKind::Value);
/// assert!(trace.warnings[0].text.starts_with("a tensor becomes a boolean"));
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracerWarning {
    /// What kind of thing.
    pub kind: WarningKind,
    /// Where it is in the traced program: `src/main.rs:10`. Empty when it is about the whole.
    pub place: String,
    /// What it is.
    pub text: String,
}

impl fmt::Display for TracerWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.text)
    }
}
