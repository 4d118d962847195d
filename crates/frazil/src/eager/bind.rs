//! Which overload a call means, and what it gets: arguments by position and by name, defaults, and the conversions that Python's calls do.

use super::{Arg, Ops};
use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{Context, Device, TypeId, TypeKind, types};
use frazil_runtime::import::Importer;
use frazil_runtime::value::ListValue;
use frazil_runtime::{Operator, Registry, Scalar, Tensor, Value};
use std::sync::{Arc, OnceLock};

/// The overloads of an operator.
pub(super) struct Family {
    overloads: Vec<Overload>,
}

struct Overload {
    schema: Arc<FunctionSchema>,
    /// What arguments are when they are left out; `None` for those that may not be.
    defaults: Vec<Option<Value>>,
    /// What it does, looked up when it is first called.
    operator: OnceLock<Option<Operator>>,
}

/// A call with everything decided.
pub(super) struct Bound {
    pub operator: Operator,
    /// What was given for each argument of the schema; `None` for those that took their defaults.
    pub given: Vec<Option<Arg>>,
    /// All arguments as the operator takes them.
    pub values: Vec<Value>,
}

/// Why a call means no overload.
pub(super) enum NoMatch {
    /// Nothing says what the overload that fits does.
    NoSemantics(String),
    /// No overload fits; these are all.
    Arguments(Vec<String>),
}

/// How well an argument fits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Exact,
    Converted,
}

impl Family {
    pub(super) fn find(registry: &Registry, operator: &str) -> Option<Family> {
        let name = registry.ctx().find_symbol(operator)?;
        let mut importer = Importer::new();
        let overloads = registry.catalogue().overloads(name).map(|schema| Overload {
            defaults: schema
                .arguments
                .iter()
                .map(|a| importer.value(a.default.as_ref()?, None).ok())
                .collect(),
            schema,
            operator: OnceLock::new(),
        });
        let overloads: Vec<_> = overloads.collect();
        (!overloads.is_empty()).then_some(Family { overloads })
    }

    /// The first overload that fits exactly, else the first that fits with conversions.
    pub(super) fn bind(&self, ops: &Ops, positional: &[Arg], named: &[(&str, Arg)]) -> Result<Bound, NoMatch> {
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
        let operator = operator.clone().ok_or_else(|| NoMatch::NoSemantics(shown(overload)))?;
        let given = overload.given(ctx, positional, named);
        let values = given.iter().zip(&overload.schema.arguments).zip(&overload.defaults);
        let values = values.map(|((given, formal), default)| match given {
            Some(arg) => value(ctx, formal, arg),
            None => default.clone().unwrap_or_default(),
        });
        Ok(Bound {
            values: values.collect(),
            operator,
            given: given.into_iter().map(|arg| arg.cloned()).collect(),
        })
    }
}

impl Overload {
    /// What each argument is given.
    fn given<'a>(&self, ctx: &Context, positional: &'a [Arg], named: &'a [(&str, Arg)]) -> Vec<Option<&'a Arg>> {
        let each = |(i, formal): (usize, &Argument)| {
            let by_name = || named.iter().find(|(name, _)| *name == ctx.name(formal.name));
            positional.get(i).or_else(|| by_name().map(|(_, arg)| arg))
        };
        self.schema.arguments.iter().enumerate().map(each).collect()
    }

    fn fit(&self, ctx: &Context, positional: &[Arg], named: &[(&str, Arg)]) -> Option<Fit> {
        let formals = &self.schema.arguments;
        let free = formals.get(positional.len()..)?;
        let is_free = |name: &str| free.iter().any(|f| ctx.name(f.name) == name);
        let all_known = named.iter().all(|(name, _)| is_free(name));
        if !all_known || formals.iter().take(positional.len()).any(|f| f.keyword_only) {
            return None;
        }
        let mut worst = Fit::Exact;
        for ((given, formal), default) in self
            .given(ctx, positional, named)
            .iter()
            .zip(formals)
            .zip(&self.defaults)
        {
            match given {
                Some(arg) => worst = worst.max(fit(ctx, formal.ty, formal.broadcast.is_some(), arg)?),
                None => {
                    default.as_ref()?;
                }
            }
        }
        Some(worst)
    }
}

/// How `arg` fits an argument of type `ty`, where a number may stand for a list of it if `broadcast`.
fn fit(ctx: &Context, ty: TypeId, broadcast: bool, arg: &Arg) -> Option<Fit> {
    let exact = |holds: bool| holds.then_some(Fit::Exact);
    let converted = |holds: bool| holds.then_some(Fit::Converted);
    match (ctx.type_kind(ty), arg) {
        (TypeKind::Optional(_), Arg::Value(Value::None)) => Some(Fit::Exact),
        (TypeKind::Optional(element), _) => fit(ctx, element, broadcast, arg),
        (TypeKind::Tensor(_), Arg::Var(_)) => Some(Fit::Exact),
        // A tensor with one element is a number where one is asked for, unless an overload takes it as it is.
        (TypeKind::Number | TypeKind::Float | TypeKind::Bool, Arg::Var(var)) => converted(var.get().numel() == 1),
        (TypeKind::Int, Arg::Var(var)) => converted(is_integer(&var.get())),
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

/// What the operator gets for an argument that [`fit`]s.
fn value(ctx: &Context, formal: &Argument, arg: &Arg) -> Value {
    let repeated = formal.broadcast.unwrap_or(1) as usize;
    typed(ctx, formal.ty, repeated, arg)
}

fn typed(ctx: &Context, ty: TypeId, repeated: usize, arg: &Arg) -> Value {
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
        (TypeKind::List(element), Arg::Var(_) | Arg::Value(Value::Int(_) | Value::Float(_) | Value::Bool(_))) => {
            Value::List(ListValue::new(element, vec![typed(ctx, element, 1, arg); repeated]))
        }
        (TypeKind::Int | TypeKind::Float | TypeKind::Number | TypeKind::Bool, Arg::Var(var)) => {
            var.get().item().map(number).unwrap_or_default()
        }
        (TypeKind::Int | TypeKind::Float, Arg::Value(value)) => value.as_scalar().map_or(value.clone(), number),
        (TypeKind::Device, Arg::Value(Value::Str(text))) => Device::parse(text).map_or(Value::None, Value::Device),
        (_, Arg::Value(value)) => value.clone(),
        (_, Arg::Var(var)) => Value::Tensor(var.cell().clone()),
        // Only where the schema says nothing of the elements.
        (_, Arg::List(items)) => Value::tuple(items.iter().map(|item| typed(ctx, types::ANY, 1, item)).collect()),
    }
}
