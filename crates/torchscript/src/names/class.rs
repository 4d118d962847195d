//! References to classes and methods of source files.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast::StmtClassDef;

use crate::source::{DefPath, SourceFile};

/// A reference to a class statement, and the name of the class.
#[derive(Clone)]
pub(crate) struct ClassRef {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) statement: usize,
    pub(crate) qualified: Rc<str>,
}

impl ClassRef {
    /// Returns the class definition.
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

/// The base of a class of a source text, evaluated when the class was defined.
#[derive(Clone)]
pub(crate) enum Base {
    Class(ClassRef),
    /// A dotted name that the text does not define.
    Path(String),
}

/// The methods of a class of modules by name, with its children and attributes. Methods are compiled when code calls
/// them.
#[derive(Default)]
pub(crate) struct MethodTable {
    pub(crate) methods: HashMap<String, MethodSource>,
    /// For each method with several signatures (`@torch.jit._overload_method`), the names of its overloads.
    pub(crate) overloads: HashMap<String, Vec<String>>,
    /// The names of the children of a `ModuleList`, `Sequential`, `ModuleDict` or `ParameterList`, in order.
    pub(crate) children: Option<Vec<String>>,
    /// Attributes that are functions, with their dotted names.
    pub(crate) functions: HashMap<String, String>,
    /// Attributes that have no type in TorchScript, with the reason.
    pub(crate) unconverted: HashMap<String, String>,
    /// Functions to be called before (`true`) or after (`false`) `forward`, in order.
    pub(crate) hooks: Vec<(bool, Arc<SourceFile>, usize)>,
}

/// A reference to a method of a class of modules.
pub(crate) struct MethodSource {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) body: DefPath,
    /// Index of the class member that declares the signature, if the body is another member.
    pub(crate) signature: Option<usize>,
}
