//! The Frazil IR: TorchScript's graphs, types, constants, modules and schemas, and the verifier.
//!
//! - [`Context`] interns names and types; ids of one context are compared as integers.
//! - [`Graph`] owns nodes, values and blocks and is edited through its methods, or built with a [`Builder`].
//! - [`Module`] is a tree of objects with the [`CompilationUnit`] of their classes' methods.
//! - [`schema::Catalogue`] contains the signatures of operators.
//!
//! This crate is independent of dialects, opens no files ([`FileBytes`] reads one that the caller has opened) and has no global state.
//!
//! ```
//! use frazil_ir::{Builder, Context, Graph, symbols, types};
//! use std::sync::Arc;
//!
//! let ctx = Arc::new(Context::new());
//! let mut graph = Graph::new(ctx.clone());
//! let x = graph.add_input(types::TENSOR);
//! let root = graph.root();
//! let mut b = Builder::at_end(&mut graph, root);
//! let one = b.constant(1);
//! let sum = b.op(ctx.symbol("aten::add"), &[x, x, one], types::TENSOR);
//! b.add_result(root, sum);
//! assert_eq!(graph.uses(x).count(), 2);
//! assert!(graph.verify(None).is_ok());
//! ```
#![forbid(unsafe_code)]

pub mod arguments;
pub mod attribute;
pub mod constant;
pub mod context;
pub mod diagnostic;
pub mod dtype;
mod file;
pub mod graph;
mod interface;
pub mod literal;
pub mod module;
pub mod names;
pub mod nesting;
pub mod promotion;
pub mod schema;
pub mod source;
mod stack;
pub mod symbols;
pub mod tensor;
pub mod types;
pub mod verify;

pub use attribute::{Attribute, AttributeValue};
pub use constant::{Constant, DictConstant, EnumConstant, ListConstant, ObjectId, TupleConstant};
pub use context::{Context, DimsId, SymbolId, SymbolListId, TypeId, TypeListId};
pub use diagnostic::{Diagnostic, Label, Severity};
pub use dtype::{DType, Device, DeviceKind};
pub use file::{FileBytes, FileRecord};
pub use graph::{
    BlockId, Builder, Change, Compaction, CopyMap, Definition, Graph, InsertPoint, NodeId, Use, ValueId, ValueName,
};
pub use module::{
    AttributeKind, ClassAttribute, ClassDef, ClassKind, CompilationUnit, Function, FunctionId, Module, Object,
    mangled_name,
};
pub use source::{SourceRange, SourceText, SourceTexts, Span};
pub use tensor::{Encoding, Shape, Source, Storage, TensorData, TensorError, contiguous_strides};
pub use types::{Dim, TensorType, TypeKind};
