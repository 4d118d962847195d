//! Sugared values: the compile-time meanings of names and expressions, which need not be values of the graph.

use frazil_ir::{DType, FunctionId, SymbolId, TypeId, ValueId};
use ruff_python_ast::StmtFunctionDef;

/// The meaning of an expression: a value of the graph, or something that exists only during compilation.
#[derive(Debug, Clone)]
pub(crate) enum Sugared<'f> {
    /// A value of the graph.
    Value(ValueId),
    /// A dotted name that denotes a module or namespace: `__torch__.torch.nn`, `torch.nn.functional`, `ops.prim`, `math`.
    Path(String),
    /// A class, enumeration, interface or NamedTuple.
    Type(TypeId),
    /// A function of the program.
    Function(FunctionId),
    /// An overloaded function: index of the functions in [`Definitions::alternatives`](crate::names::Definitions::alternatives).
    Alternatives(usize),
    /// A cast method such as `x.float`: the tensor and the target dtype.
    TensorCast(ValueId, DType),
    /// `Class.__new__`: creates an object whose attributes are not set yet.
    New(TypeId),
    /// A method of an object: object and name.
    Method(ValueId, SymbolId),
    /// An operator, with the object if it is called as a method (`x.relu`).
    Builtin(SymbolId, Option<ValueId>),
    /// A method without arguments whose result is known at compile time, such as the children of a container of
    /// modules.
    Known(Box<Sugared<'f>>),
    /// A special form, such as `isinstance` or `annotate`, whose call is not compiled as an ordinary call.
    Special(Special),
    /// A nested function definition, for `fork` and `awaitable`.
    Closure(&'f StmtFunctionDef),
    /// A tuple whose elements need not be values of the graph.
    Tuple(Vec<Sugared<'f>>),
    /// An iterable that is not a value of the graph.
    Iterable(Box<Iterable<'f>>),
}

/// Special forms: calls whose arguments are not simply evaluated and passed.
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
    /// A call whose result is known at compile time, such as `torch.jit.is_scripting()`.
    Known(bool),
    UnwrapOptional,
    Warn,
    Assert,
    /// A marker in the library source for functions that PyTorch has only in Python. Its argument is PyTorch's error
    /// message.
    Unscriptable,
    /// A cast to a Python type: `int(x)`, `float(x)`, `bool(x)`, `str(x)`, `complex(x)`.
    Cast(&'static str, TypeId),
}

/// An iterable over which a loop or comprehension iterates.
#[derive(Debug, Clone)]
pub(crate) enum Iterable<'f> {
    /// `range(end)`, or `range` with start and step.
    Range {
        start: Option<ValueId>,
        end: ValueId,
        step: Option<ValueId>,
    },
    /// Items that are known statically: of a tuple, or the children of a container of modules.
    Static(Vec<Sugared<'f>>),
    /// A value of the graph: a list, tensor, string or dictionary.
    Sequence(ValueId),
    /// `zip(x, y, ...)`; `enumerate(x)` is `zip(range(a very large number), x)`.
    Zip(Vec<Iterable<'f>>),
}
