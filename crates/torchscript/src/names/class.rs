//! Classes of source, and the methods of classes of modules, by their place in a file.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast::StmtClassDef;

use crate::source::{DefPath, SourceFile};

/// The place of a class statement, and the name of the class.
#[derive(Clone)]
pub(crate) struct ClassRef {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) statement: usize,
    pub(crate) qualified: Rc<str>,
}

impl ClassRef {
    /// Its definition.
    pub(crate) fn def(&self) -> Option<&StmtClassDef> {
        self.file.statement(self.statement)?.as_class_def_stmt()
    }

    /// Whether both are the same class.
    pub(crate) fn is(&self, other: &ClassRef) -> bool {
        self.statement == other.statement && self.qualified == other.qualified
    }

    /// Its name without the qualifier.
    pub(crate) fn simple(&self) -> &str {
        self.qualified.rsplit('.').next().unwrap_or_default()
    }
}

/// The base of a class of a source text, as it was when the class was defined.
#[derive(Clone)]
pub(crate) enum Base {
    Class(ClassRef),
    /// The dotted name of something that the text does not define.
    Path(String),
}

/// The methods of a class of modules that are compiled when code calls them, by name, with its children and attributes.
#[derive(Default)]
pub(crate) struct MethodTable {
    pub(crate) methods: HashMap<String, MethodSource>,
    /// The names of the methods that a name with several signatures (`@torch.jit._overload_method`) stands for.
    pub(crate) overloads: HashMap<String, Vec<String>>,
    /// The names of the children of a `ModuleList`, `Sequential`, `ModuleDict` or `ParameterList`, in order.
    pub(crate) children: Option<Vec<String>>,
    /// Attributes that are functions, with their dotted names.
    pub(crate) functions: HashMap<String, String>,
    /// Attributes that have no type in TorchScript, with the reason.
    pub(crate) unconverted: HashMap<String, String>,
    /// Functions that are called before (`true`) and after `forward`, in order.
    pub(crate) hooks: Vec<(bool, Arc<SourceFile>, usize)>,
}

/// The place of a method of a class of modules.
pub(crate) struct MethodSource {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) body: DefPath,
    /// The member of the class that declares its signature, if that is not the method itself.
    pub(crate) signature: Option<usize>,
}
