//! Conversions at the boundary: text, arrays, and results.

use crate::FrazilError;
use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;

/// The place where a function writes the handle that it returns.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<Option<Box<T>>>>;

/// Makes a value and writes it as a handle.
pub(crate) fn give<T>(out: Out<'_, T>, make: impl FnOnce() -> Result<T, FrazilError>) -> Result<(), FrazilError> {
    let out = place(out)?;
    out.write(Some(Box::new(make()?)));
    Ok(())
}

/// Checks the place where a function writes its result.
pub(crate) fn place<T>(out: Option<&mut MaybeUninit<T>>) -> Result<&mut MaybeUninit<T>, FrazilError> {
    out.ok_or_else(|| null("the place for the result"))
}

/// Writes a plain value.
pub(crate) fn put<T>(out: Option<&mut MaybeUninit<T>>, value: T) -> Result<(), FrazilError> {
    place(out)?.write(value);
    Ok(())
}

/// Writes text that the caller frees with [`frazil_string_free`].
pub(crate) fn give_text(
    out: Option<&mut MaybeUninit<*mut c_char>>,
    make: impl FnOnce() -> Result<String, FrazilError>,
) -> Result<(), FrazilError> {
    let out = place(out)?;
    out.write(c_string(&make()?).into_raw());
    Ok(())
}

/// Returns the object that a handle points to, or an error for NULL.
pub(crate) fn get<'a, T: ?Sized>(handle: Option<&'a T>, what: &str) -> Result<&'a T, FrazilError> {
    handle.ok_or_else(|| null(what))
}

/// Returns the object that a handle points to, for modification, or an error for NULL.
pub(crate) fn get_mut<'a, T>(handle: Option<&'a mut T>, what: &str) -> Result<&'a mut T, FrazilError> {
    handle.ok_or_else(|| null(what))
}

pub(crate) fn null(what: &str) -> FrazilError {
    FrazilError::argument(&format!("{what} is NULL"))
}

/// Returns the text that a caller's pointer points to.
///
/// # Safety
/// `text` is NULL or points to bytes that end with a zero and are not modified during `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, FrazilError> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: not NULL, and the caller guarantees the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| FrazilError::argument(&format!("{what} is not UTF-8")))
}

/// Returns the text that a caller's pointer points to, or `None` for NULL.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(given: *const c_char, what: &str) -> Result<Option<&'a str>, FrazilError> {
    match given.is_null() {
        true => Ok(None),
        // SAFETY: the caller follows the rules.
        false => unsafe { text(given, what) }.map(Some),
    }
}

/// Returns the texts in a caller's array.
///
/// # Safety
/// `first` is NULL or points to `len` texts, each valid for [`text`].
pub(crate) unsafe fn texts<'a>(
    first: *const *const c_char,
    len: usize,
    what: &str,
) -> Result<Vec<&'a str>, FrazilError> {
    // SAFETY: the caller follows the rules.
    let each = unsafe { array(first, len, what) }?;
    // SAFETY: as above.
    each.iter().map(|&one| unsafe { text(one, what) }).collect()
}

/// Returns the array that a caller's pointer points to.
///
/// # Safety
/// `first` is NULL or points to `len` elements that are not modified during `'a`.
pub(crate) unsafe fn array<'a, T>(first: *const T, len: usize, what: &str) -> Result<&'a [T], FrazilError> {
    if len == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(null(what));
    }
    if !first.is_aligned()
        || len
            .checked_mul(size_of::<T>())
            .is_none_or(|bytes| bytes > isize::MAX as usize)
    {
        return Err(FrazilError::argument(&format!("{what} is no array of {len} elements")));
    }
    // SAFETY: not NULL, aligned, of a possible length, and the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(first, len) })
}

/// Converts `text` for C. It ends at the first zero byte.
pub(crate) fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// Frees text that a function returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: by the rules it came from `CString::into_raw`, in `give_text`.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Returns the version of the compiler: `0.1.0`. The caller does not free it.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}
