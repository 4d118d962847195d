//! State of the evaluation of a source text: variables, limits, errors.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast::Stmt;
use ruff_text_size::Ranged;

use super::globals::Globals;
use super::random::Random;
use super::value::{FunctionRef, Py};
use crate::error::{Result, SourceError};
use crate::names::{ClassRef, Names};
use crate::source::SourceFile;

/// The end of error messages about expressions that can only be evaluated by Python.
pub(super) const BEYOND: &str = "cannot be evaluated without Python";

/// Maximum number of executed statements and expressions, to which the length of the text in bytes is added.
pub(super) const MAX_STEPS: usize = 500_000;

/// Maximum work on elements of lists, strings and tensors, in units of 16 elements.
pub(super) const MAX_WORK: u64 = 1 << 30;

/// Maximum total size of the lists, strings and dictionaries that expressions create, in bytes.
pub(super) const MAX_BYTES: u64 = 1 << 29;

/// Maximum total size of the tensors that expressions create, in bytes. While the source text runs, an element takes eight bytes.
pub(super) const MAX_TENSOR_BYTES: u64 = 8 << 30;

/// Maximum nesting of calls. Deeper nesting is treated as infinite recursion.
pub(super) const MAX_CALLS: usize = 100;

/// Maximum nesting of expressions and calls, because evaluation is recursive.
pub(super) const MAX_DEPTH: usize = 2000;

/// Maximum length of a list, string or range that a constructor may create.
pub(super) const MAX_LENGTH: i64 = 1 << 20;

/// The evaluator of a source text: runs the top level, with its functions and constructors.
pub(super) struct Maker<'m> {
    pub(super) names: &'m mut dyn Names,
    pub(super) random: Random,
    pub(super) globals: Globals,
    /// Cached method resolution orders, keyed by the file and statement index of the class.
    pub(super) chains: HashMap<(Rc<str>, usize), Rc<[ClassRef]>>,
    /// The names of the local variables of each function, keyed by statement index and index of the method.
    pub(super) locals: HashMap<(usize, Option<usize>), Rc<BTreeSet<String>>>,
    /// Values of global names in files of the library.
    pub(super) library_values: HashMap<String, Py>,
    /// Whether the source text traces a module.
    pub(super) has_traces: bool,
    pub(super) steps: usize,
    pub(super) max_steps: usize,
    /// Work done so far, in units of [`MAX_WORK`].
    pub(super) work: u64,
    /// Bytes of the lists, strings and dictionaries created so far.
    pub(super) bytes: u64,
    /// Bytes of the tensors created so far.
    pub(super) tensor_bytes: u64,
    pub(super) calls: usize,
    pub(super) depth: usize,
}

/// The variables of a running function, class body or top level.
pub(super) struct Scope {
    pub(super) file: Arc<SourceFile>,
    pub(super) variables: HashMap<String, Py>,
    /// The class of the running method, for `super()`.
    pub(super) class: Option<Rc<ClassRef>>,
    pub(super) this: Option<Py>,
    /// Whether the scope is the top level, whose variables are the global variables.
    pub(super) is_top: bool,
    /// Whether the scope is that of a class body.
    pub(super) is_class: bool,
    /// Names that the function declares as `global`.
    pub(super) globals: HashSet<String>,
    /// The function that is running, if it is one of the source text.
    pub(super) function: Option<FunctionRef>,
}

impl Scope {
    /// Returns an empty scope for a function of `file`.
    pub(super) fn new(file: &Arc<SourceFile>) -> Scope {
        Scope {
            file: Arc::clone(file),
            variables: HashMap::new(),
            class: None,
            this: None,
            is_top: false,
            is_class: false,
            globals: HashSet::new(),
            function: None,
        }
    }
}

impl Maker<'_> {
    /// Counts a step. Returns an error if the limit on steps is exceeded.
    pub(super) fn step(&mut self, file: &SourceFile, node: &impl Ranged) -> Result<()> {
        self.steps += 1;
        if self.steps > self.max_steps {
            let message = format!("running the text takes more than {} steps", self.max_steps);
            return Err(file.error("budget", message, node).into());
        }
        Ok(())
    }

    /// Counts the elements and bytes of a computed value. Returns an error if a limit is exceeded.
    pub(super) fn charge(&mut self, file: &SourceFile, value: &Py, node: &impl Ranged) -> Result<()> {
        self.charge_work(file, value.weight() / 16, node)?;
        if let Py::Tensor(tensor) | Py::Parameter(tensor) = value {
            self.tensor_bytes = self.tensor_bytes.saturating_add(tensor.fresh_bytes());
            if self.tensor_bytes > MAX_TENSOR_BYTES {
                let message = format!("running the text makes tensors of more than {MAX_TENSOR_BYTES} bytes");
                return Err(file.error("budget", message, node).into());
            }
        }
        self.charge_bytes(file, value.fresh_bytes(), node)
    }

    /// Counts units of work. Returns an error if the limit on work is exceeded.
    pub(super) fn charge_work(&mut self, file: &SourceFile, units: u64, node: &impl Ranged) -> Result<()> {
        self.work = self.work.saturating_add(units);
        if self.work > MAX_WORK {
            let message = format!("running the text goes through more than {} elements", 16 * MAX_WORK);
            return Err(file.error("budget", message, node).into());
        }
        Ok(())
    }

    /// Counts bytes before a list, string or dictionary allocates them. Returns an error if the limit on bytes is exceeded.
    pub(super) fn charge_bytes(&mut self, file: &SourceFile, bytes: u64, node: &impl Ranged) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES {
            let message = format!("running the text makes lists and strings of more than {MAX_BYTES} bytes");
            return Err(file.error("budget", message, node).into());
        }
        Ok(())
    }

    /// Returns the error for an expression that can only be evaluated by Python.
    pub(super) fn beyond<T>(&self, file: &SourceFile, what: impl AsRef<str>, node: &impl Ranged) -> Result<T> {
        Err(self.beyond_error(file, what, node).into())
    }

    pub(super) fn beyond_error(
        &self,
        file: &SourceFile,
        what: impl AsRef<str>,
        node: &impl Ranged,
    ) -> Box<SourceError> {
        let message = format!("{} {}", what.as_ref(), BEYOND);
        file.error("construct", message, node)
    }

    /// Returns an error for code that would also fail in Python.
    pub(super) fn fail<T>(&self, file: &SourceFile, message: impl Into<String>, node: &impl Ranged) -> Result<T> {
        Err(file.error("construct", message, node).into())
    }

    /// Returns the error for an exception that the program raises, which always ends the run.
    pub(super) fn raise<T>(&self, file: &SourceFile, message: impl Into<String>, node: &impl Ranged) -> Result<T> {
        Err(file.error("raises", message, node).into())
    }

    /// Returns the global function `name` of a file of the library.
    pub(super) fn function(&self, file: &Arc<SourceFile>, name: &str) -> Option<FunctionRef> {
        let mut numbers = file.definitions(name).iter().rev().copied();
        let statement = numbers.find(|&number| matches!(file.statement(number), Some(Stmt::FunctionDef(_))))?;
        Some(FunctionRef {
            file: Arc::clone(file),
            statement,
            method: None,
            class: None,
            scripted: false,
        })
    }
}
