//! Operator schemas: names, arguments, defaults, mutation and aliasing, in PyTorch's own notation.

mod catalogue;
mod parse;
mod properties;

use crate::{Constant, Context, SymbolId, TypeId};
use smallvec::SmallVec;
use std::fmt;

pub use catalogue::{Catalogue, CatalogueError, Resolution, ReturnTypes};
pub use parse::{SchemaError, parse_schema};
pub use properties::{Activation, Alias, AliasUse, Determinism, Observes, Properties, ResultRank, Totality};

/// The signature of an operator's overload, or of a function or method.
#[derive(Clone, Debug)]
pub struct FunctionSchema {
    /// The operator: `aten::add`.
    pub name: SymbolId,
    /// The overload, without the dot: `Tensor`; empty for the unnamed one.
    pub overload: SymbolId,
    /// The arguments in order.
    pub arguments: Vec<Argument>,
    /// The results in order.
    pub returns: Vec<Argument>,
    /// True if any further arguments may follow (`aten::format`).
    pub is_vararg: bool,
    /// True if the results are unspecified (`prim::ConstantChunk`).
    pub is_varret: bool,
}

/// An argument or a result.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The name of the argument; empty for most results.
    pub name: SymbolId,
    /// The type of the argument. Names that only schemas use (`SymInt`, `ScalarType`, `Layout`, `MemoryFormat`) are `int`, as in graphs.
    pub ty: TypeId,
    /// The length of `int[2]`: a single number is converted to a list of this length with equal elements.
    pub broadcast: Option<u32>,
    /// The default, if the argument is optional.
    pub default: Option<Constant>,
    /// True for arguments after the `*`.
    pub keyword_only: bool,
    /// Aliasing and mutation of the argument or result itself.
    pub alias: Option<AliasInfo>,
    /// Aliasing and mutation of the elements of a container: `Tensor(a)[]`.
    pub element_alias: Option<AliasInfo>,
    /// The name of the type in the schema, if it is more precise than `ty`: `ScalarType`, `MemoryFormat` or `Layout`.
    pub hint: TypeHint,
}

impl Argument {
    /// Returns an argument without default, alias annotation and hint.
    pub fn plain(name: SymbolId, ty: TypeId) -> Argument {
        Argument {
            name,
            ty,
            broadcast: None,
            default: None,
            keyword_only: false,
            alias: None,
            element_alias: None,
            hint: TypeHint::None,
        }
    }
}

/// The meaning of an argument's type that its [`TypeId`] does not express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TypeHint {
    /// The [`TypeId`] says it all.
    #[default]
    None,
    /// `ScalarType`: an `int` that is PyTorch's code of a dtype ([`DType::code`](crate::DType::code)).
    ScalarType,
    /// `Layout`: an `int` that is PyTorch's code of a tensor layout, such as `torch.strided`.
    Layout,
    /// `MemoryFormat`: an `int` that is PyTorch's code of a memory format, such as `torch.channels_last`.
    MemoryFormat,
    /// `Tensor`, by default, because the parameter has no annotation in the source.
    Inferred,
}

/// The annotation `(a!)`, `(a -> *)`, `(*)`: which values may alias, and which are written.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AliasInfo {
    /// Alias sets on entry; values that have a set in common may alias.
    pub before: SmallVec<[AliasSet; 1]>,
    /// Alias sets after the operator has run, if an arrow specifies different ones (`a -> *`: the value is stored somewhere).
    pub after: SmallVec<[AliasSet; 1]>,
    /// True with an exclamation mark: the operator writes to the value.
    pub is_write: bool,
}

/// One alias set in an annotation of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AliasSet {
    /// A named set, meaningful within its schema.
    Named(SymbolId),
    /// `*`: anything.
    Wildcard,
}

/// Appends the default value of an argument, as PyTorch prints it in messages.
fn write_default(f: &mut fmt::Formatter<'_>, default: &Constant) -> fmt::Result {
    match default {
        Constant::None => f.write_str("None"),
        Constant::Bool(true) => f.write_str("True"),
        Constant::Bool(false) => f.write_str("False"),
        Constant::Int(value) => write!(f, "{value}"),
        Constant::Float(value) => {
            let mut text = String::new();
            crate::literal::double(*value, &mut text);
            f.write_str(&text)
        }
        Constant::Str(text) => write!(f, "\"{text}\""),
        other => match other.items() {
            Some(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    write_default(f, item)?;
                }
                f.write_str("]")
            }
            None => f.write_str("…"),
        },
    }
}

impl FunctionSchema {
    /// Returns the argument called `name` and its index.
    pub fn argument(&self, name: SymbolId) -> Option<(usize, &Argument)> {
        self.arguments.iter().enumerate().find(|(_, a)| a.name == name)
    }

    /// Returns true if the operator writes to one of its arguments.
    pub fn is_mutable(&self) -> bool {
        let writes = |a: &Option<AliasInfo>| a.as_ref().is_some_and(|a| a.is_write);
        self.arguments
            .iter()
            .any(|a| writes(&a.alias) || writes(&a.element_alias))
    }

    /// Returns the operator with its overload: `aten::add.Tensor`.
    pub fn full_name(&self, ctx: &Context) -> String {
        match ctx.name(self.overload) {
            "" => ctx.name(self.name).to_owned(),
            overload => format!("{}.{overload}", ctx.name(self.name)),
        }
    }

    /// Returns a short printed form for messages: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha) -> Tensor`.
    pub fn display<'a>(&'a self, ctx: &'a Context) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            write!(f, "{}(", self.full_name(ctx))?;
            let mut keyword_only = false;
            for (i, a) in self.arguments.iter().enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                if a.keyword_only && !keyword_only {
                    keyword_only = true;
                    f.write_str("*, ")?;
                }
                let ty = ctx.show_type(a.ty).to_string();
                match (a.broadcast, ty.strip_suffix("[]")) {
                    (Some(count), Some(element)) => write!(f, "{element}[{count}] {}", ctx.name(a.name))?,
                    _ => write!(f, "{ty} {}", ctx.name(a.name))?,
                }
                if let Some(default) = &a.default {
                    f.write_str("=")?;
                    write_default(f, default)?;
                }
            }
            f.write_str(match (self.is_vararg, self.arguments.is_empty()) {
                (true, false) => ", ...) -> ",
                (true, true) => "...) -> ",
                (false, _) => ") -> ",
            })?;
            match self.returns.as_slice() {
                _ if self.is_varret => f.write_str("..."),
                [one] => match ctx.show_type(one.ty).to_string() {
                    tuple if tuple.starts_with('(') => write!(f, "({tuple})"),
                    ty => f.write_str(&ty),
                },
                many => {
                    f.write_str("(")?;
                    for (i, a) in many.iter().enumerate() {
                        write!(f, "{}{}", if i > 0 { ", " } else { "" }, ctx.show_type(a.ty))?;
                    }
                    f.write_str(")")
                }
            }
        })
    }
}
