//! References to classes and methods of source files.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast::StmtClassDef;

use crate::source::{DefPath, SourceFile};

/// A reference to a class statement in a source file, with the name of the class.
#[derive(Clone)]
pub(crate) struct ClassRef {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) statement: usize,
    pub(crate) qualified: Rc<str>,
}

impl ClassRef {
    /// Returns the class statement.
    pub(crate) fn def(&self) -> Option<&StmtClassDef> {
        self.file.statement(self.statement)?.as_class_def_stmt()
    }

    /// Returns whether both references are to the same class.
    pub(crate) fn is(&self, other: &ClassRef) -> bool {
        self.statement == other.statement && self.qualified == other.qualified
    }

    /// Returns the unqualified name of the class.
    pub(crate) fn simple(&self) -> &str {
        self.qualified.rsplit('.').next().unwrap_or_default()
    }
}

/// A base of a class in a source text, as evaluated when the class was defined.
#[derive(Clone)]
pub(crate) enum Base {
    Class(ClassRef),
    /// A base by its dotted name, which the source text does not define.
    Path(String),
}

/// The methods of a class of modules by name, and its children and attributes. Methods are compiled when code calls them.
#[derive(Default)]
pub(crate) struct MethodTable {
    pub(crate) methods: HashMap<String, MethodSource>,
    /// For each method with several signatures (`@torch.jit._overload_method`), the names of its overloads.
    pub(crate) overloads: HashMap<String, Vec<String>>,
    /// For a `ModuleList`, `Sequential`, `ModuleDict` or `ParameterList`, the names of its children in order.
    pub(crate) children: Option<Vec<String>>,
    /// Dotted names of the functions that are values of attributes, by attribute.
    pub(crate) functions: HashMap<String, String>,
    /// Attributes whose values have no TorchScript type, with the reason.
    pub(crate) unconverted: HashMap<String, String>,
    /// Hooks of `forward` in order: whether the hook runs before `forward`, and the function with its file and statement index.
    pub(crate) hooks: Vec<(bool, Arc<SourceFile>, usize)>,
}

/// A reference to the source of a method in a class of modules.
pub(crate) struct MethodSource {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) body: DefPath,
    /// Index of the class member that declares the signature, if the body is in a different member.
    pub(crate) signature: Option<usize>,
}
