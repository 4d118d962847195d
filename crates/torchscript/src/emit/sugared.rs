//! Values that exist only while code is compiled: what names and attributes can stand for besides values of the graph.

use frazil_ir::{DType, FunctionId, SymbolId, TypeId, ValueId};
use ruff_python_ast::StmtFunctionDef;

/// What an expression stands for.
#[derive(Debug, Clone)]
pub(crate) enum Sugared<'f> {
    /// A value of the graph.
    Value(ValueId),
    /// A dotted name that is no value yet: `__torch__.torch.nn`, `torch.nn.functional`, `ops.prim`, `math`.
    Path(String),
    /// A class, enumeration, interface or NamedTuple.
    Type(TypeId),
    /// A function of the program.
    Function(FunctionId),
    /// One of several functions of the program.
    Alternatives(usize),
    /// `x.float()` and its kin: the tensor, and what its elements become.
    TensorCast(ValueId, DType),
    /// `Class.__new__`: an object without attributes yet.
    New(TypeId),
    /// A method of an object.
    Method(ValueId, SymbolId),
    /// An operator, with the object that it was reached through (`x.relu`).
    Builtin(SymbolId, Option<ValueId>),
    /// What a method without arguments gives that is known without calling it: the children of a container of modules.
    Known(Box<Sugared<'f>>),
    /// A form with rules of its own.
    Special(Special),
    /// A nested function, for `fork` and `awaitable`.
    Closure(&'f StmtFunctionDef),
    /// Several things side by side, of which some are no values.
    Tuple(Vec<Sugared<'f>>),
    /// What a `for` or comprehension goes through.
    Iterable(Box<Iterable<'f>>),
}

/// Forms whose arguments are not simply evaluated and passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Annotate,
    UncheckedCast,
    Uninitialized,
    Isinstance,
    Getattr,
    Hasattr,
    Fork,
    Awaitable,
    Wait,
    Print,
    Range,
    Enumerate,
    Zip,
    List,
    Tuple,
    Dict,
    /// `torch.jit.is_scripting()` and others whose answer is known while code is compiled.
    Known(bool),
    UnwrapOptional,
    Warn,
    Assert,
    /// Where the library says in whose words PyTorch refuses what it has only for Python.
    Unscriptable,
    /// `int(x)`, `float(x)`, `bool(x)`, `str(x)`, `complex(x)`.
    Cast(&'static str, TypeId),
}

/// A thing to iterate over.
#[derive(Debug, Clone)]
pub(crate) enum Iterable<'f> {
    /// `range(end)`, or with start and step.
    Range {
        start: Option<ValueId>,
        end: ValueId,
        step: Option<ValueId>,
    },
    /// A known number of things: a tuple, the children of a container of modules.
    Static(Vec<Sugared<'f>>),
    /// A list, tensor, string or dictionary.
    Sequence(ValueId),
    /// `zip(x, y, ...)`; `enumerate(x)` is `zip(range(a very large number), x)`.
    Zip(Vec<Iterable<'f>>),
}
