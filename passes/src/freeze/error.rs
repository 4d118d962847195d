//! The error of freezing.

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
        /// The name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// Two attributes of the module share data, and an element of one is written while the other is read.
    #[error(
        "module contains attributes values that overlaps: an element of {container} is written, and shared with {other}"
    )]
    Overlap {
        /// Path of the attribute whose element is written.
        container: String,
        /// Path of the other one.
        other: String,
    },
    /// A kept method returns its own module.
    #[error("attempted to freeze a module that return itself")]
    ReturnsItself,
    /// A submodule is selected at run time.
    #[error("Freezing modules containing prim::ModuleContainerIndex is not supported")]
    ContainerIndex,
    /// An attribute is assigned on an object that is only known by an interface.
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
