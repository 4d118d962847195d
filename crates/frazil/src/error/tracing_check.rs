//! The error of a trace that fails its check.

use std::fmt;

/// A trace that differs for other inputs.
///
/// ```
/// # use frazil::{Error, Session, Tensor, eager::Var, trace::TraceOptions};
/// let options = TraceOptions::default().check_inputs(vec![vec![Tensor::from_f32(&[-1.0], &[1])?]]);
/// let function = |x: &[Var]| if x[0].is_true()? && x[0].to_vec()[0] > 0.0 { x[0].neg().call() } else { x[0].abs().call() };
/// let refused = Session::new().trace(function, &[Tensor::from_f32(&[1.0], &[1])?], &options);
/// assert!(matches!(refused, Err(Error::TracingCheck(error)) if error.graph_diff.is_some()));
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TracingCheckError {
    /// The difference between the two graphs, if they differ.
    pub graph_diff: Option<String>,
    /// The first constant tensor that differs, if one does.
    pub constant_diff: Option<String>,
    /// The description of any other error.
    pub what: Option<String>,
}

impl fmt::Display for TracingCheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Tracing failed sanity checks!")?;
        if let Some(what) = &self.what {
            writeln!(f, "{what}")?;
        }
        if let Some(diff) = &self.graph_diff {
            writeln!(f, "ERROR: Graphs differed across invocations!\n{}", indent(diff))?;
        }
        if let Some(diff) = &self.constant_diff {
            writeln!(
                f,
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates that the tracer has encountered \
                 untraceable code.\n{}",
                indent(diff)
            )?;
        }
        Ok(())
    }
}

/// Returns `text` with a tab at the start of each line.
pub(crate) fn indent(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("\t{line}")).collect();
    lines.join("\n")
}
