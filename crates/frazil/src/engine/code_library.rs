//! Code libraries: kernels that were compiled in advance, so that first calls compile little or nothing.

use crate::error::{Error, Result};
use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;
use tracing::warn;

/// The library that the feature `precompiled` includes. `make codes` writes it.
#[cfg(feature = "precompiled")]
const EMBEDDED: Option<&[u8]> = Some(include_bytes!(env!("FRAZIL_CODES")));
#[cfg(not(feature = "precompiled"))]
const EMBEDDED: Option<&[u8]> = None;

/// Kernels that were compiled in advance, for all processors with AVX2 or AVX-512. Clones share them.
///
/// The code of a library takes sizes as arguments. Engines use it for the shapes that share code ([`FusionStrategy`](crate::FusionStrategy)). Results are
/// bit-equal to those of code that is compiled for the call. [`CodeLibraryBuilder`](crate::CodeLibraryBuilder) makes a library.
///
/// A library contains machine code, which runs with the rights of the program. Open only libraries that you trust.
///
/// ```
/// use frazil::{CodeLibrary, CodeLibraryBuilder, EngineOptions, FusionStrategy, Tensor, Value};
///
/// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return (x + 1).relu()\n", &[])?.to_model("f")?;
/// let arguments = |n: usize| -> frazil::Result<[Value; 1]> { Ok([Tensor::from_f32(&vec![1.0; n], &[n as i64])?.into()]) };
/// let mut builder = CodeLibraryBuilder::new();
/// builder.add(&mut model.engine(&EngineOptions::default())?, "forward", &arguments(10)?)?;
/// let library = CodeLibrary::open(builder.compile()?)?;
/// let strategy = FusionStrategy { static_shapes: 0 };
/// let options = EngineOptions::default().fusion_strategy(strategy).code_library(Some(library));
/// let mut engine = model.engine(&options)?;
/// engine.call("forward", &arguments(25)?)?;
/// assert!(engine.notes().iter().any(|note| note == "forward: 0 kernels compiled, 1 from the code library"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CodeLibrary(pub(crate) frazil_codegen::CodeLibrary);

impl CodeLibrary {
    /// Opens a library in memory.
    ///
    /// See [`CodeLibrary`] for an example.
    ///
    /// # Errors
    /// If another version of this crate made the library, or the library is damaged.
    pub fn open(bytes: impl Into<Cow<'static, [u8]>>) -> Result<CodeLibrary> {
        let library = frazil_codegen::CodeLibrary::open(bytes).map_err(frazil_codegen::backend::CompileError::from)?;
        Ok(CodeLibrary(library))
    }

    /// Reads a library from a file.
    ///
    /// ```
    /// assert!(frazil::CodeLibrary::read("nowhere".as_ref()).is_err());
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, and the errors of [`CodeLibrary::open`].
    pub fn read(path: &Path) -> Result<CodeLibrary> {
        let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
        CodeLibrary::open(bytes)
    }

    /// Returns the library that is a part of this program: the library of `make codes` if the feature `precompiled` is enabled, otherwise none.
    ///
    /// ```
    /// assert!(frazil::CodeLibrary::embedded().is_none_or(|library| !library.is_empty()));
    /// ```
    pub fn embedded() -> Option<CodeLibrary> {
        /// The library, which is opened once: its index has a hash.
        static OPENED: OnceLock<Option<CodeLibrary>> = OnceLock::new();
        let open = || match CodeLibrary::open(EMBEDDED?) {
            Ok(library) => Some(library),
            Err(error) => {
                warn!(target: "frazil::library", "kernels are compiled: {error}");
                None
            }
        };
        OPENED.get_or_init(open).clone()
    }

    /// Returns the number of kernels in the library.
    ///
    /// See [`CodeLibraryBuilder`](crate::CodeLibraryBuilder) for an example.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the library has no kernels.
    ///
    /// See [`CodeLibraryBuilder`](crate::CodeLibraryBuilder) for an example.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
