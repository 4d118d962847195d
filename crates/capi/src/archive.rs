//! Archives with extra files, and in memory.

use crate::memory::{array, get, give, give_text, put, text};
use crate::{FrazilError, FrazilModel, error::guarded};
use frazil::{Loaded, SaveOptions};
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Bytes that a function returned.
pub struct FrazilBytes(pub(crate) Arc<[u8]>);

/// A file that an archive contains beside the model.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FrazilExtraFile {
    /// Its name.
    pub name: *const c_char,
    /// The content of the file.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
}

/// Options for writing an archive with these files.
///
/// # Safety
/// The caller follows the rules.
unsafe fn save_options(files: *const FrazilExtraFile, len: usize) -> Result<SaveOptions, FrazilError> {
    // SAFETY: the caller follows the rules.
    let files = unsafe { array(files, len, "the files") }?;
    let mut extra_files = BTreeMap::new();
    for file in files {
        // SAFETY: as above.
        let (name, bytes) = unsafe {
            let name = text(file.name, "the name of a file")?;
            (name, array(file.data, file.len, "the content of a file")?)
        };
        extra_files.insert(name.to_owned(), Arc::from(bytes));
    }
    Ok(SaveOptions::default().extra_files(extra_files))
}

/// Writes the model as a `.pt` archive with extra files, beside those that it was loaded with or in place of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_save_with(
    model: Option<&FrazilModel>,
    path: *const c_char,
    files: *const FrazilExtraFile,
    len: usize,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let (path, options) = unsafe { (text(path, "the path")?, save_options(files, len)?) };
        Ok(model.to_model()?.save(path, &options)?)
    })
}

/// Returns the model as a `.pt` archive in memory, with extra files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_save_bytes(
    model: Option<&FrazilModel>,
    files: *const FrazilExtraFile,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilBytes>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let options = unsafe { save_options(files, len) }?;
        give(out, || Ok(FrazilBytes(model.to_model()?.save_bytes(&options)?.into())))
    })
}

/// Returns the extra files that a model was loaded with, in order.
fn extra_files(model: &FrazilModel) -> Vec<(&str, &Arc<[u8]>)> {
    match &model.0 {
        Loaded::Model(model) => {
            let files = model.module().extra_files.iter();
            files.map(|(name, bytes)| (name.as_str(), bytes)).collect()
        }
        Loaded::Graphs(_) => Vec::new(),
    }
}

/// Returns the number of extra files that a model was loaded with.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_extra_file_count(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<FrazilError>> {
    guarded(|| put(out, extra_files(get(model, "the model")?).len()))
}

/// Returns the name of extra file number `index` of a model.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_extra_file_name(
    model: Option<&FrazilModel>,
    index: usize,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let files = extra_files(get(model, "the model")?);
        let (name, _) = files
            .get(index)
            .ok_or_else(|| FrazilError::argument(&format!("there is no file {index}: there are {}", files.len())))?;
        give_text(out, || Ok((*name).to_owned()))
    })
}

/// Returns the content of an extra file of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_extra_file(
    model: Option<&FrazilModel>,
    name: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilBytes>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        let files = extra_files(model);
        let found = files.iter().find(|(file, _)| *file == name);
        let (_, bytes) = found.ok_or_else(|| FrazilError::input(&format!("the model has no extra file `{name}`")))?;
        give(out, || Ok(FrazilBytes(Arc::clone(bytes))))
    })
}

/// Returns the bytes, which live as long as their handle; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_bytes_data(bytes: Option<&FrazilBytes>) -> *const u8 {
    bytes.map_or(std::ptr::null(), |bytes| bytes.0.as_ptr())
}

/// Returns the number of bytes that there are; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_bytes_len(bytes: Option<&FrazilBytes>) -> usize {
    bytes.map_or(0, |bytes| bytes.0.len())
}

/// Frees bytes.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_bytes_free(bytes: Option<Box<FrazilBytes>>) {
    drop(bytes);
}
