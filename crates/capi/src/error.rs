//! Errors as objects, and the boundary that no panic crosses.

use crate::memory::c_string;
use frazil::{CallError, Error, ErrorClass};
use frazil_rt::gate;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The kind of an error.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrazilErrorKind {
    /// There is no error.
    None = 0,
    /// The call itself is wrong: a NULL pointer, text that is not UTF-8, an index out of range.
    Argument = 1,
    /// A file could not be read or written.
    Io = 2,
    /// The input is malformed, or a call does not fit it: an unknown method, a tensor of another shape.
    Input = 3,
    /// Not supported: unavailable for this model or in this build.
    Unsupported = 4,
    /// The program raised an exception.
    Raised = 5,
    /// Anything else.
    Failed = 6,
    /// A bug in the compiler.
    Internal = 7,
    /// The object runs one call at a time, and another thread uses it. Nothing has been run.
    Busy = 8,
    /// A limit of the session was exceeded, or the allowance for reading an archive of its size.
    Limit = 9,
    /// The work was interrupted.
    Interrupted = 10,
}

/// An error: a kind, a message, and the places in source or text that it refers to.
#[derive(Debug)]
pub struct FrazilError {
    kind: FrazilErrorKind,
    message: CString,
    places: Vec<CString>,
}

impl FrazilError {
    pub(crate) fn new(kind: FrazilErrorKind, message: &str) -> FrazilError {
        FrazilError {
            kind,
            message: c_string(message),
            places: Vec::new(),
        }
    }

    pub(crate) fn argument(message: &str) -> FrazilError {
        FrazilError::new(FrazilErrorKind::Argument, message)
    }

    /// Returns an error because the call does not fit the model.
    pub(crate) fn input(error: &impl ToString) -> FrazilError {
        FrazilError::new(FrazilErrorKind::Input, &error.to_string())
    }

    fn at(mut self, places: Vec<String>) -> FrazilError {
        self.places = places.iter().map(|place| c_string(place)).collect();
        self
    }

    #[cfg(not(feature = "codegen"))]
    pub(crate) fn no_codegen() -> FrazilError {
        FrazilError::new(
            FrazilErrorKind::Unsupported,
            "this build makes no native code: it lacks the feature `codegen`",
        )
    }
}

impl fmt::Display for FrazilError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message.to_string_lossy())
    }
}

/// The error of a callback passes through the compiler and is returned to the caller unchanged.
impl std::error::Error for FrazilError {}

fn kind_of(class: ErrorClass) -> FrazilErrorKind {
    match class {
        ErrorClass::Io => FrazilErrorKind::Io,
        ErrorClass::Input => FrazilErrorKind::Input,
        ErrorClass::Unsupported => FrazilErrorKind::Unsupported,
        ErrorClass::Raised => FrazilErrorKind::Raised,
        ErrorClass::Limit => FrazilErrorKind::Limit,
        ErrorClass::Interrupted => FrazilErrorKind::Interrupted,
        _ => FrazilErrorKind::Failed,
    }
}

impl From<Error> for FrazilError {
    fn from(error: Error) -> FrazilError {
        match error {
            Error::Other(other) => match other.downcast::<FrazilError>() {
                Ok(own) => *own,
                Err(other) => FrazilError::new(FrazilErrorKind::Failed, &other.to_string()),
            },
            error => FrazilError::new(kind_of(error.class()), &error.to_string()).at(error.places()),
        }
    }
}

impl From<CallError> for FrazilError {
    fn from(error: CallError) -> FrazilError {
        let places = error.places();
        match error {
            CallError::Raised(text) => FrazilError::new(FrazilErrorKind::Raised, &text).at(places),
            CallError::Failed(error) => error.into(),
        }
    }
}

impl From<FrazilError> for Error {
    fn from(error: FrazilError) -> Error {
        Error::Other(Box::new(error))
    }
}

impl From<FrazilError> for CallError {
    fn from(error: FrazilError) -> CallError {
        match error.kind {
            FrazilErrorKind::Raised => CallError::Raised(error.to_string()),
            _ => CallError::Failed(error.into()),
        }
    }
}

/// Runs `work` and converts its error for the caller; a panic is converted too. State that `work` modified before it panicked is kept,
/// which is safe: no unsafe code depends on it.
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), FrazilError>) -> Option<Box<FrazilError>> {
    let inside = match gate::enter() {
        Ok(inside) => inside,
        Err(torn) => return Some(Box::new(FrazilError::new(FrazilErrorKind::Failed, &torn.to_string()))),
    };
    let done = catch_unwind(AssertUnwindSafe(work));
    drop(inside);
    match done {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Box::new(error)),
        Err(payload) => {
            let text = (payload.downcast_ref::<&str>().copied())
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("no message");
            let message = format!("a bug in the compiler: {text}");
            // Dropping the payload of the panic may panic as well.
            std::mem::forget(payload);
            Some(Box::new(FrazilError::new(FrazilErrorKind::Internal, &message)))
        }
    }
}

/// Returns the kind of an error; `FRAZIL_ERROR_KIND_NONE` for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_kind(error: Option<&FrazilError>) -> FrazilErrorKind {
    error.map_or(FrazilErrorKind::None, |error| error.kind)
}

/// Returns the message of an error, which lives as long as the error; empty for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_message(error: Option<&FrazilError>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Returns the number of places in source or text that an error refers to; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_place_count(error: Option<&FrazilError>) -> usize {
    error.map_or(0, |error| error.places.len())
}

/// Returns place number `index` that an error refers to, as `file:line:column`, the innermost call first. It lives as long as the error; NULL if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_place(error: Option<&FrazilError>, index: usize) -> *const c_char {
    let place = error.and_then(|error| error.places.get(index));
    place.map_or(std::ptr::null(), |place| place.as_ptr())
}

/// Returns a new error, for a callback that fails: with kind `FRAZIL_ERROR_KIND_RAISED`, the program raises there. The compiler frees an error that a
/// callback returns. Text that is NULL or not UTF-8 means no message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_error_new(kind: i32, message: *const c_char) -> Box<FrazilError> {
    let kind = match kind {
        1 => FrazilErrorKind::Argument,
        2 => FrazilErrorKind::Io,
        3 => FrazilErrorKind::Input,
        4 => FrazilErrorKind::Unsupported,
        5 => FrazilErrorKind::Raised,
        7 => FrazilErrorKind::Internal,
        8 => FrazilErrorKind::Busy,
        _ => FrazilErrorKind::Failed,
    };
    let text = match message.is_null() {
        true => "",
        // SAFETY: not NULL, and the caller follows the rules.
        false => unsafe { CStr::from_ptr(message) }.to_str().unwrap_or_default(),
    };
    Box::new(FrazilError::new(kind, text))
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
