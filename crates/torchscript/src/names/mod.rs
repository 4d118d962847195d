//! Names and definitions: the interface of a program to the modules that compile it.
//!
//! [`Definitions`] contains the functions, classes and constants known so far. [`Names`] resolves a name, and defines a function or class on first use.
//! [`Annotations`] and [`Constants`] evaluate type annotations and constant expressions.

mod alternatives;
mod annotation;
mod class;
mod definitions;
mod foreign;
mod lineage;
mod literal;
mod modules;
mod objects;
mod resolve;
mod top;
mod toplevel;
mod traced;
mod union;
mod variants;

pub(crate) use alternatives::{Alternatives, choice};
pub(crate) use annotation::{Annotations, broadcast};
pub(crate) use class::{Base, ClassRef, MethodSource, MethodTable};
pub(crate) use definitions::{BodyState, Definitions, Global};
pub(crate) use foreign::{FOREIGN_CLASSES, foreign_method, packed_parameters};
pub(crate) use lineage::{
    Ancestor, FoundBase, ancestry, base, class_at, find_class, is_interface, is_module_class, is_module_path,
    is_script_module_path, linearised,
};
pub(crate) use literal::{Constants, library_constant};
pub(crate) use objects::Objects;
pub(crate) use resolve::Names;
pub(crate) use top::{Bound, TopName};
pub(crate) use traced::{TracedFunction, Traces};
pub(crate) use union::joined_or_union;
