//! Overload resolution and binding of arguments: by position and by name, with defaults and the conversions of Python calls.

use super::{Arg, Ops};
use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{Context, Device, TypeId, TypeKind, types};
use frazil_runtime::call::Given;
use frazil_runtime::import::Importer;
use frazil_runtime::value::ListValue;
use frazil_runtime::{Operator, Registry, Scalar, Tensor, Value};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// The overloads of an operator, to which calls are bound.
pub(super) struct Family {
    overloads: Vec<Overload>,
}

pub(super) struct Overload {
    schema: Arc<FunctionSchema>,
    formals: Vec<Formal>,
    /// Number of arguments up to and including the last required one.
    required: usize,
    /// Number of leading arguments that may be positional.
    positional: usize,
    pub(super) output_types: SmallVec<[TypeId; 2]>,
    /// The overload with its semantics, looked up at the first call.
    operator: OnceLock<Option<Operator>>,
}

/// A formal argument of an overload.
struct Formal {
    name: Box<str>,
    ty: TypeId,
    is_tensor: bool,
    /// The default value; `None` if the argument is required.
    default: Option<Value>,
}

/// The positional arguments of a call.
pub(super) type Positional<'a> = SmallVec<[Arg<'a>; 3]>;

/// The reason why no overload matches a call.
pub(super) enum NoMatch {
    /// An overload matches, but has no semantics.
    NoSemantics(String),
    /// No overload accepts the arguments; lists the schemas of all overloads.
    Arguments(Vec<String>),
}

/// How well an argument matches a formal argument. A smaller value is a better match.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Exact,
    Converted,
}

impl Family {
    pub(super) fn find(registry: &Registry, operator: &str) -> Option<Family> {
        let name = registry.ctx().find_symbol(operator)?;
        let mut importer = Importer::new();
        let overloads = registry.catalogue().overloads(name);
        let overloads: Vec<_> = overloads
            .map(|schema| Overload::new(registry.ctx(), schema, &mut importer))
            .collect();
        (!overloads.is_empty()).then_some(Family { overloads })
    }

    /// Returns the first overload that matches exactly, or else the first overload that matches with conversions, with its operator.
    pub(super) fn bind(
        &self,
        ops: &Ops,
        positional: &[Arg<'_>],
        named: &[(&str, Arg<'_>)],
    ) -> Result<(&Overload, &Operator), NoMatch> {
        let ctx = ops.registry().ctx();
        let mut best: Option<(Fit, &Overload)> = None;
        for overload in &self.overloads {
            match overload.fit(ctx, positional, named) {
                Some(Fit::Exact) => {
                    best = Some((Fit::Exact, overload));
                    break;
                }
                Some(fit) if best.is_none() => best = Some((fit, overload)),
                _ => {}
            }
        }
        let shown = |o: &Overload| o.schema.display(ctx).to_string();
        let (_, overload) = best.ok_or_else(|| NoMatch::Arguments(self.overloads.iter().map(shown).collect()))?;
        let operator = overload
            .operator
            .get_or_init(|| ops.registry().operator_of(Arc::clone(&overload.schema)));
        let operator = operator.as_ref().ok_or_else(|| NoMatch::NoSemantics(shown(overload)))?;
        Ok((overload, operator))
    }
}

impl Overload {
    fn new(ctx: &Context, schema: Arc<FunctionSchema>, importer: &mut Importer) -> Overload {
        let formal = |a: &Argument| Formal {
            name: ctx.name(a.name).into(),
            ty: a.ty,
            is_tensor: matches!(ctx.type_kind(a.ty), TypeKind::Tensor(_)),
            default: a.default.as_ref().and_then(|d| importer.value(d, None).ok()),
        };
        let formals: Vec<Formal> = schema.arguments.iter().map(formal).collect();
        Overload {
            required: formals.iter().rposition(|f| f.default.is_none()).map_or(0, |i| i + 1),
            positional: schema.arguments.iter().take_while(|a| !a.keyword_only).count(),
            output_types: schema.returns.iter().map(|r| r.ty).collect(),
            operator: OnceLock::new(),
            formals,
            schema,
        }
    }

    /// Returns the keyword argument that is passed for formal argument number `i`.
    fn by_name<'a, 'b>(&self, i: usize, named: &'a [(&str, Arg<'b>)]) -> Option<&'a Arg<'b>> {
        let name = &self.formals.get(i)?.name;
        named.iter().find(|(n, _)| *n == &**name).map(|(_, arg)| arg)
    }

    /// Returns the value passed for each formal argument; `None` where the default is used.
    pub(super) fn given<'a>(&self, positional: &[Arg<'a>], named: &[(&str, Arg<'a>)]) -> Vec<Option<Arg<'a>>> {
        let each = |i| positional.get(i).or_else(|| self.by_name(i, named)).cloned();
        (0..self.formals.len()).map(each).collect()
    }

    /// Converts all arguments to the types of the schema. They must match the overload.
    pub(super) fn args<'f>(
        &'f self,
        ctx: &Context,
        positional: &'f [Arg<'_>],
        named: &'f [(&str, Arg<'_>)],
    ) -> SmallVec<[Given<'f>; 4]> {
        let mut args = SmallVec::new();
        for (i, (formal, argument)) in self.formals.iter().zip(&self.schema.arguments).enumerate() {
            let given = positional.get(i).or_else(|| self.by_name(i, named));
            args.push(match (given, &formal.default) {
                (Some(arg), _) => match arg.as_cell() {
                    Some(cell) if formal.is_tensor => Given::Tensor(cell),
                    _ => Given::Made(value(ctx, argument, arg)),
                },
                (None, Some(default)) => Given::Value(default),
                (None, None) => Given::Made(Value::None),
            });
        }
        args
    }

    fn fit(&self, ctx: &Context, positional: &[Arg<'_>], named: &[(&str, Arg<'_>)]) -> Option<Fit> {
        if positional.len() > self.positional || (named.is_empty() && positional.len() < self.required) {
            return None;
        }
        let mut worst = Fit::Exact;
        let mut meet = |i: usize, arg: &Arg<'_>| -> Option<()> {
            let formal = self.formals.get(i)?;
            if !(formal.is_tensor && arg.as_cell().is_some()) {
                let broadcast = self.schema.arguments.get(i)?.broadcast.is_some();
                worst = worst.max(fit(ctx, formal.ty, broadcast, arg)?);
            }
            Some(())
        };
        for (i, arg) in positional.iter().enumerate() {
            meet(i, arg)?;
        }
        if !named.is_empty() {
            let free = self.formals.get(positional.len()..)?;
            if !named.iter().all(|(name, _)| free.iter().any(|f| *name == &*f.name)) {
                return None;
            }
            for (i, formal) in self.formals.iter().enumerate().skip(positional.len()) {
                match self.by_name(i, named) {
                    Some(arg) => meet(i, arg)?,
                    None if formal.default.is_none() => return None,
                    None => {}
                }
            }
        }
        Some(worst)
    }
}

/// Returns how well `arg` matches an argument of type `ty`. With `broadcast`, a number also matches a list of numbers.
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

/// Converts an argument to the type of the formal argument, which it must match (see [`fit`]).
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
