//! Parameters of Python functions, and the errors of calls whose arguments do not fit them.

use frazil_ir::arguments::{AssignmentError, Parameter};
use ruff_python_ast::{Expr, ParameterWithDefault, Parameters};
use ruff_text_size::{Ranged, TextRange};

/// A parameter of a Python function, other than `*args` and `**kwargs`.
#[derive(Clone, Copy)]
pub(crate) struct PythonParameter<'d> {
    parameter: &'d ParameterWithDefault,
    passing: Passing,
}

/// The ways in which arguments may be passed for a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    Positional,
    Both,
    Keyword,
}

impl<'d> PythonParameter<'d> {
    /// Returns the parameters of a function in order.
    pub(crate) fn all(parameters: &'d Parameters) -> impl Iterator<Item = PythonParameter<'d>> {
        let each = |list: &'d [ParameterWithDefault], passing| {
            let parameters = list.iter();
            parameters.map(move |parameter| PythonParameter { parameter, passing })
        };
        each(&parameters.posonlyargs, Passing::Positional)
            .chain(each(&parameters.args, Passing::Both))
            .chain(each(&parameters.kwonlyargs, Passing::Keyword))
    }

    /// Returns the name of the parameter.
    pub(crate) fn name(self) -> &'d str {
        self.parameter.parameter.name.as_str()
    }

    /// Returns the expression of the default.
    pub(crate) fn default(self) -> Option<&'d Expr> {
        self.parameter.default.as_deref()
    }
}

impl Ranged for PythonParameter<'_> {
    fn range(&self) -> TextRange {
        self.parameter.range()
    }
}

impl<K: AsRef<str>> Parameter<K> for PythonParameter<'_> {
    fn is_named(&self, keyword: &K) -> bool {
        self.passing != Passing::Positional && self.name() == keyword.as_ref()
    }

    fn is_keyword_only(&self) -> bool {
        self.passing == Passing::Keyword
    }

    fn has_default(&self) -> bool {
        self.parameter.default.is_some()
    }
}

/// Returns the error message for a call of the Python function `function`. `argument` is the name of the argument that is missing, or of the keyword argument
/// that cannot be assigned.
pub(crate) fn assignment_message(function: &str, error: AssignmentError, argument: &str) -> String {
    match error {
        AssignmentError::Missing => format!("{function}() is missing the argument '{argument}'"),
        AssignmentError::TooMany { .. } => format!("{function}() is given too many arguments"),
        AssignmentError::Unknown(_) => format!("{function}() has no argument '{argument}'"),
        AssignmentError::Duplicate(_) => format!("{function}() got multiple values for argument '{argument}'"),
    }
}
