//! Linking of object files in memory to functions of this process: by [`Image`], or by a linker that the caller passes. A [`Library`] contains object files
//! that were compiled in advance.

mod image;
mod library;
mod loaded;

pub use image::{Image, is_sound};
pub use library::{Library, LibraryError, LibraryKey, write_library};
pub use loaded::LoadedObjects;

/// Error of loading machine code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("loading compiled code: {0}")]
pub struct LinkError(pub String);

/// Machine code that a [`Linker`] has loaded.
pub trait LinkedCode: Send + Sync + std::fmt::Debug {
    /// Returns the address of `symbol`.
    ///
    /// # Errors
    /// If there is no such symbol.
    fn lookup(&self, symbol: &str) -> Result<usize, LinkError>;
}

/// Function that loads object files with references to symbols of the process. The relocations of the object files have been validated.
pub type Linker = fn(&[&[u8]]) -> Result<Box<dyn LinkedCode>, LinkError>;

/// Machine code in this process.
#[derive(Debug)]
pub enum Code {
    /// Code of object files without references to symbols of the process.
    Image(Image),
    /// Code that a [`Linker`] has loaded.
    Linked(Box<dyn LinkedCode>),
}

impl Code {
    /// Loads object files. `linker` is used if they have references to symbols of the process.
    ///
    /// # Errors
    /// If they are damaged or not for this machine, a symbol is defined twice, or they need a linker and there is none.
    pub fn load(objects: &[impl AsRef<[u8]>], linker: Option<Linker>) -> Result<Code, LinkError> {
        let objects: Vec<&[u8]> = objects.iter().map(AsRef::as_ref).collect();
        if let Some(image) = Image::load(&objects) {
            return Ok(Code::Image(image));
        }
        // A linker writes to the places that relocations contain, so the relocations must be valid.
        if let Some(number) = objects.iter().position(|object| !is_sound(object)) {
            return Err(LinkError(format!("object {number} is damaged")));
        }
        match linker {
            Some(linker) => linker(&objects).map(Code::Linked),
            None => Err(LinkError(
                "an object refers to symbols of the process, and this program has no linker".to_owned(),
            )),
        }
    }

    /// Returns the address of `symbol`.
    ///
    /// # Errors
    /// If there is no such symbol.
    pub fn lookup(&self, symbol: &str) -> Result<usize, LinkError> {
        match self {
            Code::Image(image) => image
                .lookup(symbol)
                .ok_or_else(|| LinkError(format!("there is no symbol `{symbol}`"))),
            Code::Linked(code) => code.lookup(symbol),
        }
    }
}
