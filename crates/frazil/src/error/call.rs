//! Errors of calls of an engine.

use super::Error;
use frazil_runtime::interp::{ErrorKind, ExecError};

/// The reason why a call returned no result.
///
/// ```
/// # use frazil::{CallError, Value};
/// # let source = "def f(x: int):\n    assert x > 0, 'too small'\n    return x\n";
/// # let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
/// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
/// # let mut engine = model.engine(&options)?;
/// let refused = engine.call("forward", &[Value::Int(0)]);
/// assert!(matches!(refused, Err(CallError::Raised(text)) if text.contains("too small")));
/// assert!(matches!(engine.call("backward", &[]), Err(CallError::Failed(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The program raised an exception, as it would in PyTorch: the class and the message.
    #[error("{0}")]
    Raised(String),
    /// The call failed for a reason outside of the program.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl CallError {
    /// Returns the source locations where the call stopped, each `file:line:column`, the innermost first. Empty if none is known.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "def f(x: int):\n    assert x > 0, 'too small'\n    return x\n";
    /// # let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// let refused = engine.call("forward", &[Value::Int(0)]); // `assert x > 0` in line 2 of `f.py`
    /// assert_eq!(refused.err().map(|e| e.places()), Some(vec!["f.py:2:4".to_owned()]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn places(&self) -> Vec<String> {
        match self {
            CallError::Raised(text) => {
                let lines = text.lines().rev().map_while(|line| line.strip_prefix("  at "));
                let mut places: Vec<String> = lines.map(str::to_owned).collect();
                places.reverse();
                places
            }
            CallError::Failed(error) => error.places(),
        }
    }
}

impl From<ExecError> for CallError {
    fn from(e: ExecError) -> CallError {
        match &e.kind {
            ErrorKind::Raised { .. } => CallError::Raised(e.to_string()),
            _ => CallError::Failed(Error::Run(e)),
        }
    }
}
