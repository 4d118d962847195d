//! Overload resolution and binding of arguments: by position and by name, with defaults and the conversions of Python calls.

use super::family::{Family, Overload};
use super::{Arg, Ops};
use frazil_ir::arguments::Assignment;
use frazil_ir::schema::Argument;
use frazil_ir::{Context, Device, TypeId, TypeKind, types};
use frazil_runtime::call::Given;
use frazil_runtime::value::ListValue;
use frazil_runtime::{Operator, Scalar, Tensor, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// Arguments by position.
pub(super) type Positional<'a> = SmallVec<[Arg<'a>; 3]>;

/// The reason why no overload matches a call.
pub(super) enum NoMatch {
    /// The overload that fits has no semantics.
    NoSemantics(String),
    /// No overload fits; the schemas of all are listed.
    Arguments(Vec<String>),
}

/// The quality of a match.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Exact,
    Converted,
}

/// A call that has been matched with an overload.
pub(super) struct Bound<'f, 'c, 'a> {
    pub(super) overload: &'f Overload,
    pub(super) operator: &'f Operator,
    /// The argument of the call for each argument of the schema; `None` for those that have their defaults.
    given: SmallVec<[Option<&'c Arg<'a>>; 8]>,
}

impl Family {
    /// Matches a call with the first overload that fits exactly, else with the first that fits with conversions.
    pub(super) fn bind<'c, 'a>(
        &self,
        ops: &Ops,
        positional: &'c [Arg<'a>],
        named: &'c [(&'a str, Arg<'a>)],
    ) -> Result<Bound<'_, 'c, 'a>, NoMatch> {
        let ctx = ops.registry().ctx();
        let mut best = None;
        for overload in &self.overloads {
            match overload.fit(ctx, positional, named) {
                Some((Fit::Exact, given)) => {
                    best = Some((overload, given));
                    break;
                }
                Some((Fit::Converted, given)) if best.is_none() => best = Some((overload, given)),
                _ => {}
            }
        }
        let shown = |o: &Overload| o.schema.display(ctx).to_string();
        let (overload, given) = best.ok_or_else(|| NoMatch::Arguments(self.overloads.iter().map(shown).collect()))?;
        let operator = overload
            .operator
            .get_or_init(|| ops.registry().operator_of(Arc::clone(&overload.schema)));
        let operator = operator.as_ref().ok_or_else(|| NoMatch::NoSemantics(shown(overload)))?;
        Ok(Bound {
            overload,
            operator,
            given,
        })
    }
}

impl<'a> Bound<'_, '_, 'a> {
    /// Returns the value of each argument, `None` for those that have their defaults.
    pub(super) fn given(&self) -> Vec<Option<Arg<'a>>> {
        self.given.iter().map(|given| given.cloned()).collect()
    }

    /// Converts all arguments for the operator.
    pub(super) fn args(&self, ctx: &Context) -> SmallVec<[Given<'_>; 4]> {
        let formals = self.overload.formals.iter().zip(&self.overload.schema.arguments);
        let args = self.given.iter().zip(formals);
        let args = args.map(|(given, (formal, argument))| match (given, &formal.default) {
            (Some(arg), _) => match arg.as_cell() {
                Some(cell) if formal.is_tensor => Given::Tensor(cell),
                _ => Given::Made(value(ctx, argument, arg)),
            },
            (None, Some(default)) => Given::Value(default),
            (None, None) => Given::Made(Value::None),
        });
        args.collect()
    }
}

impl Overload {
    /// Assigns the arguments of a call to those of the schema. Returns `None` if the overload does not accept them.
    fn fit<'c, 'a>(
        &self,
        ctx: &Context,
        positional: &'c [Arg<'a>],
        named: &'c [(&'a str, Arg<'a>)],
    ) -> Option<(Fit, SmallVec<[Option<&'c Arg<'a>>; 8]>)> {
        // Most overloads that do not fit are refused before types are compared.
        if positional.len() > self.positional {
            return None;
        }
        let mut worst = Fit::Exact;
        let mut given = SmallVec::with_capacity(self.formals.len());
        let mut call = Assignment::new(positional.len(), named);
        for (formal, argument) in self.formals.iter().zip(&self.schema.arguments) {
            let arg = call.next(formal).ok()?.passed(positional, named);
            if let Some(arg) = arg
                && !(formal.is_tensor && arg.as_cell().is_some())
            {
                worst = worst.max(fit(ctx, formal.ty, argument.broadcast.is_some(), arg)?);
            }
            given.push(arg);
        }
        call.finish(&self.formals).ok()?;
        Some((worst, given))
    }
}

/// Returns how well `arg` fits an argument of type `ty`. With `broadcast`, a number also fits a list of numbers.
fn fit(ctx: &Context, ty: TypeId, broadcast: bool, arg: &Arg<'_>) -> Option<Fit> {
    let exact = |holds: bool| holds.then_some(Fit::Exact);
    let converted = |holds: bool| holds.then_some(Fit::Converted);
    match (ctx.type_kind(ty), arg) {
        (TypeKind::Optional(_), Arg::Value(Value::None)) => Some(Fit::Exact),
        (TypeKind::Optional(element), _) => fit(ctx, element, broadcast, arg),
        (TypeKind::Tensor(_), _) if arg.as_cell().is_some() => Some(Fit::Exact),
        // A tensor with one element fits a number, unless an overload accepts the tensor itself.
        (TypeKind::Number | TypeKind::Float | TypeKind::Bool, arg) if arg.as_cell().is_some() => {
            converted(arg.as_cell()?.get().numel() == 1)
        }
        (TypeKind::Int, arg) if arg.as_cell().is_some() => converted(is_integer(&arg.as_cell()?.get())),
        (TypeKind::List(element), Arg::List(items)) => {
            let mut worst = Fit::Exact;
            for item in items {
                worst = worst.max(fit(ctx, element, false, item)?);
            }
            Some(worst)
        }
        (TypeKind::List(element), _) if broadcast => fit(ctx, element, false, arg).map(|_| Fit::Converted),
        (TypeKind::Device, Arg::Value(Value::Str(text))) => converted(Device::parse(text).is_some()),
        (TypeKind::Float, Arg::Value(Value::Int(_))) => Some(Fit::Converted),
        (TypeKind::Number, Arg::Value(value)) => exact(value.as_scalar().is_some()),
        (TypeKind::Int, Arg::Value(Value::Bool(_))) => Some(Fit::Converted),
        (TypeKind::Any | TypeKind::Var(_), _) => Some(Fit::Converted),
        (_, Arg::Value(value)) => exact(types::is_subtype(ctx, value.ty(ctx), ty)),
        _ => None,
    }
}

fn is_integer(tensor: &Tensor) -> bool {
    tensor.numel() == 1 && tensor.dtype().is_integral()
}

/// Converts an argument that [`fit`]s for the operator.
fn value(ctx: &Context, formal: &Argument, arg: &Arg<'_>) -> Value {
    let repeated = formal.broadcast.unwrap_or(1) as usize;
    typed(ctx, formal.ty, repeated, arg)
}

fn typed(ctx: &Context, ty: TypeId, repeated: usize, arg: &Arg<'_>) -> Value {
    let number = |scalar: Scalar| match ctx.type_kind(ty) {
        TypeKind::Int => Value::Int(scalar.as_i64()),
        TypeKind::Float => Value::Float(scalar.as_f64()),
        TypeKind::Bool => Value::Bool(scalar.as_bool()),
        _ => scalar.into(),
    };
    match (ctx.type_kind(ty), arg) {
        (TypeKind::Optional(_), Arg::Value(Value::None)) => Value::None,
        (TypeKind::Optional(element), _) => typed(ctx, element, repeated, arg),
        (TypeKind::List(element), Arg::List(items)) => {
            let items = items.iter().map(|item| typed(ctx, element, 1, item)).collect();
            Value::List(ListValue::new(element, items))
        }
        (
            TypeKind::List(element),
            Arg::Borrowed(_)
            | Arg::Var(_)
            | Arg::Value(Value::Tensor(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_)),
        ) => Value::List(ListValue::new(element, vec![typed(ctx, element, 1, arg); repeated])),
        (
            TypeKind::Int | TypeKind::Float | TypeKind::Number | TypeKind::Bool,
            Arg::Borrowed(_) | Arg::Var(_) | Arg::Value(Value::Tensor(_)),
        ) => {
            let one = arg.as_cell().and_then(|cell| cell.get().item().ok());
            one.map(number).unwrap_or_default()
        }
        (TypeKind::Int | TypeKind::Float, Arg::Value(value)) => value.as_scalar().map_or(value.clone(), number),
        (TypeKind::Device, Arg::Value(Value::Str(text))) => Device::parse(text).map_or(Value::None, Value::Device),
        (_, Arg::Value(value)) => value.clone(),
        (_, Arg::Borrowed(var)) => Value::Tensor(var.cell().clone()),
        (_, Arg::Var(var)) => Value::Tensor(var.cell().clone()),
        // Only if the schema does not state the element type.
        (_, Arg::List(items)) => Value::tuple(items.iter().map(|item| typed(ctx, types::ANY, 1, item)).collect()),
    }
}
