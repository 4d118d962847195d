//! Errors as objects, and the border that no panic crosses.

use crate::memory::c_string;
use frazil::{CallError, Error};
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What kind of thing went wrong.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrazilErrorKind {
    /// There is no error.
    None = 0,
    /// The call itself is wrong: a pointer that is NULL, text that is no UTF-8, an index that names nothing.
    Argument = 1,
    /// A file could not be read or written.
    Io = 2,
    /// The input is malformed, or a call does not fit it: an unknown method, a tensor of another shape.
    Input = 3,
    /// Something that is not there, or cannot be done with this model or in this build.
    Unsupported = 4,
    /// The program raised an exception.
    Raised = 5,
    /// Anything else.
    Failed = 6,
    /// A bug in the compiler.
    Internal = 7,
    /// Another thread uses what runs one call at a time. Nothing has been run.
    Busy = 8,
}

/// An error: a kind and a message.
pub struct FrazilError {
    kind: FrazilErrorKind,
    message: CString,
}

impl FrazilError {
    pub(crate) fn new(kind: FrazilErrorKind, message: &str) -> FrazilError {
        FrazilError {
            kind,
            message: c_string(message),
        }
    }

    pub(crate) fn argument(message: &str) -> FrazilError {
        FrazilError::new(FrazilErrorKind::Argument, message)
    }

    #[cfg(not(feature = "codegen"))]
    pub(crate) fn no_codegen() -> FrazilError {
        FrazilError::new(
            FrazilErrorKind::Unsupported,
            "this build makes no native code: it lacks the feature `codegen`",
        )
    }
}

impl From<Error> for FrazilError {
    fn from(error: Error) -> FrazilError {
        let kind = match &error {
            Error::Io { .. } => FrazilErrorKind::Io,
            Error::Text(_) | Error::Load { .. } | Error::Pipeline(_) | Error::NoSuchMethod(_) => FrazilErrorKind::Input,
            #[cfg(feature = "codegen")]
            Error::NativeRun(_) => FrazilErrorKind::Input,
            #[cfg(feature = "codegen")]
            Error::Lower(_) => FrazilErrorKind::Unsupported,
            Error::Unsupported(_) | Error::Pass(_) => FrazilErrorKind::Unsupported,
            _ => FrazilErrorKind::Failed,
        };
        FrazilError::new(kind, &error.to_string())
    }
}

impl From<CallError> for FrazilError {
    fn from(error: CallError) -> FrazilError {
        match error {
            CallError::Raised(text) => FrazilError::new(FrazilErrorKind::Raised, &text),
            CallError::Failed(error) => error.into(),
        }
    }
}

/// Does `work`, and gives its error to the caller; a panic becomes one too. What was lent to work that panicked is as it was left, which is
/// safe: no unsafe code depends on its state.
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), FrazilError>) -> Option<Box<FrazilError>> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Box::new(error)),
        Err(payload) => {
            let text = (payload.downcast_ref::<&str>().copied())
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("no message");
            let message = format!("a bug in the compiler: {text}");
            // Dropping what was thrown may panic as well.
            std::mem::forget(payload);
            Some(Box::new(FrazilError::new(FrazilErrorKind::Internal, &message)))
        }
    }
}

/// The kind of an error; `FRAZIL_ERROR_KIND_NONE` for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_kind(error: Option<&FrazilError>) -> FrazilErrorKind {
    error.map_or(FrazilErrorKind::None, |error| error.kind)
}

/// The message of an error, which lives as long as the error; empty for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_message(error: Option<&FrazilError>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Frees an error.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_free(error: Option<Box<FrazilError>>) {
    drop(error);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let message = |error: Option<Box<FrazilError>>| {
            let error = error.expect("an error");
            (error.kind, error.message.into_string().expect("text"))
        };
        let (kind, text) = message(guarded(|| panic!("number {}", 7)));
        assert_eq!(kind, FrazilErrorKind::Internal);
        assert_eq!(text, "a bug in the compiler: number 7");
        assert!(guarded(|| Ok(())).is_none());
    }
}
