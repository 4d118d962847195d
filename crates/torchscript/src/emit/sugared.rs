//! Compile-time values: the meanings of names and attributes that are not values of the graph.

use frazil_ir::{DType, FunctionId, SymbolId, TypeId, ValueId};
use ruff_python_ast::StmtFunctionDef;

/// The meaning of an expression: a value, or something that exists only during compilation.
#[derive(Debug, Clone)]
pub(crate) enum Sugared<'f> {
    /// A value of the graph.
    Value(ValueId),
    /// A dotted name that is not a value by itself: `__torch__.torch.nn`, `torch.nn.functional`, `ops.prim`, `math`.
    Path(String),
    /// A class, enumeration, interface or NamedTuple.
    Type(TypeId),
    /// A function of the program.
    Function(FunctionId),
    /// One of several functions of the program.
    Alternatives(usize),
    /// A cast method such as `x.float()`: the tensor and the target dtype.
    TensorCast(ValueId, DType),
    /// `Class.__new__`: an object without attributes yet.
    New(TypeId),
    /// A method of an object.
    Method(ValueId, SymbolId),
    /// An operator, with the object of a method call (`x.relu`).
    Builtin(SymbolId, Option<ValueId>),
    /// A method without arguments whose result is known at compile time, such as the children of a container of
    /// modules.
    Known(Box<Sugared<'f>>),
    /// A special form.
    Special(Special),
    /// A nested function, for `fork` and `awaitable`.
    Closure(&'f StmtFunctionDef),
    /// A tuple whose elements need not be values.
    Tuple(Vec<Sugared<'f>>),
    /// An iterable.
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
    /// `torch.jit.is_scripting()` and other calls with a result that is known at compile time.
    Known(bool),
    UnwrapOptional,
    Warn,
    Assert,
    /// A marker in the library source for functions that PyTorch has only in Python. Its argument is PyTorch's error
    /// message.
    Unscriptable,
    /// `int(x)`, `float(x)`, `bool(x)`, `str(x)`, `complex(x)`.
    Cast(&'static str, TypeId),
}

/// An iterable of a loop or comprehension.
#[derive(Debug, Clone)]
pub(crate) enum Iterable<'f> {
    /// `range(end)`, or with start and step.
    Range {
        start: Option<ValueId>,
        end: ValueId,
        step: Option<ValueId>,
    },
    /// A statically known number of items: a tuple, the children of a container of modules.
    Static(Vec<Sugared<'f>>),
    /// A list, tensor, string or dictionary.
    Sequence(ValueId),
    /// `zip(x, y, ...)`; `enumerate(x)` is `zip(range(a very large number), x)`.
    Zip(Vec<Iterable<'f>>),
}
