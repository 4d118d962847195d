//! Errors of freezing.

/// The reason why a module cannot be frozen, in PyTorch's words if it has the same error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FreezeError {
    /// The module is in training mode.
    #[error(
        "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
    )]
    Training,
    /// A preserved name is neither attribute nor method.
    #[error("Unknown name: {name}{}", listed(known))]
    UnknownName {
        /// The preserved name.
        name: String,
        /// The names of the module's attributes and methods.
        known: Vec<String>,
    },
    /// Two attributes of the module share memory: an element of one attribute is written, and the other attribute is read.
    #[error(
        "module contains attributes values that overlaps: an element of {container} is written, and shared with {other}"
    )]
    Overlap {
        /// Path of the attribute whose element is written.
        container: String,
        /// Path of the other attribute, which shares the element's memory.
        other: String,
    },
    /// A preserved method returns the module itself.
    #[error("attempted to freeze a module that return itself")]
    ReturnsItself,
    /// A submodule is selected by an index that is only known at run time.
    #[error("Freezing modules containing prim::ModuleContainerIndex is not supported")]
    ContainerIndex,
    /// An attribute of an object is assigned whose type is an interface.
    #[error("Freezing does not support SetAttr on an interface type. SetAttr is attempted on '{0}'")]
    SetAttrOnInterface(String),
}

fn listed(known: &[String]) -> String {
    if known.is_empty() {
        String::new()
    } else {
        format!(" (there are: {})", known.join(", "))
    }
}
