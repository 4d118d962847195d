//! Warnings of the tracer about code that a trace cannot represent.

use std::fmt;

/// The kind of a tracer's warning.
///
/// See [`TracerWarning`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A value was used outside of the trace: a branch or a number may depend on it.
    Value,
    /// A write to memory that other tensors share is recorded out of place.
    SharedWrite,
    /// The trace and the function return different results, or the trace returns different results each time.
    Different,
    /// The function calls operators that draw random numbers.
    Random,
}

/// A warning that a trace may be wrong.
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
    /// The kind of the warning.
    pub kind: WarningKind,
    /// Source location in the traced program, such as `src/main.rs:10`. Empty if the warning concerns the whole
    /// program.
    pub place: String,
    /// The text of the warning.
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
