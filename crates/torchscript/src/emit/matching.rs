//! Matching of calls with schemas: selection of the overload, and conversion of the arguments.
//!
//! Matching has no side effects: it returns the conversions, which the emitter then emits for the chosen overload. The rules are TorchScript's: overloads are
//! tried in the order of the catalogue, first without and then with implicit conversions.

use std::sync::Arc;

use frazil_ir::arguments::{Assignment, AssignmentError, Parameter};
use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::types::{Bindings, TypeStyle, display_type, match_formal, substitute};
use frazil_ir::{Constant, Context, Graph, SymbolId, TypeId, TypeKind, ValueId, symbols, types};

use crate::names::Definitions;

/// The source of one argument of a schema, in terms of the arguments of the call.
#[derive(Debug, Clone)]
pub(crate) enum ArgumentSource {
    /// A value that the call passes, with its conversion.
    Value(ValueId, Conversion),
    /// A number that the call passes, repeated the given number of times: `int[2]`.
    Repeat(ValueId, u32),
    /// The default of the schema's argument.
    Default(Constant),
    /// The remaining positional arguments of the call, as one list: `zeros(2, 3)`.
    List(TypeId, Vec<ArgumentSource>),
}

/// Conversion of a passed value to the type of the schema's argument.
#[derive(Debug, Clone)]
pub(crate) enum Conversion {
    /// No conversion.
    None,
    /// From a literal `[]` without a type to a list with the given element type.
    EmptyList(TypeId),
    /// From a tuple of equal element types to a list with the given element type.
    TupleToList(TypeId),
    /// Element-wise conversions of a tuple.
    Tuple(Vec<Conversion>),
    /// Conversion by the given operator, whose result has the given type.
    Operator(&'static str, TypeId),
}

/// A call that matches a schema.
#[derive(Debug, Clone)]
pub(crate) struct Matched {
    pub(crate) inputs: Vec<ArgumentSource>,
    /// Types of the results, with type variables replaced by the types they are bound to.
    pub(crate) returns: Vec<TypeId>,
    pub(crate) schema: Arc<FunctionSchema>,
}

/// The arguments that a call passes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments {
    pub(crate) object: Option<ValueId>,
    pub(crate) positional: Vec<ValueId>,
    pub(crate) keywords: Vec<(SymbolId, ValueId)>,
}

impl Arguments {
    /// Returns arguments that are all positional.
    pub(crate) fn of(positional: &[ValueId]) -> Arguments {
        Arguments {
            positional: positional.to_vec(),
            ..Arguments::default()
        }
    }
}

/// An argument of a schema as a parameter of calls in TorchScript.
#[derive(Clone, Copy)]
struct Formal<'s> {
    argument: &'s Argument,
    /// Another name of the argument: `input` for `self` of the operators of `aten`, as PyTorch's functions of these operators have it.
    alias: Option<SymbolId>,
}

impl Parameter<SymbolId> for Formal<'_> {
    fn is_named(&self, keyword: &SymbolId) -> bool {
        *keyword == self.argument.name || Some(*keyword) == self.alias
    }

    fn is_keyword_only(&self) -> bool {
        self.argument.keyword_only
    }

    fn has_default(&self) -> bool {
        self.argument.default.is_some()
    }
}

/// The reason why a schema does not accept the arguments of a call.
#[derive(Debug, Clone)]
pub(crate) enum Mismatch {
    /// The arguments cannot be assigned to the arguments of the schema. The name is that of the missing argument, or of the keyword argument.
    Assignment(AssignmentError, SymbolId),
    Type {
        argument: SymbolId,
        expected: TypeId,
        found: TypeId,
    },
    /// The type of the argument does not match the types bound to the type variables of the schema.
    Variable {
        argument: SymbolId,
        formal: TypeId,
        found: TypeId,
        bound: Option<(SymbolId, TypeId)>,
    },
    NoObject,
    Unbound,
}

impl Mismatch {
    /// Returns the reason in PyTorch's words.
    pub(crate) fn describe(&self, ctx: &Context) -> String {
        let shown = |ty: TypeId| display_type(ctx, ty, TypeStyle::Annotation).to_string();
        match self {
            Mismatch::Assignment(error, name) => {
                let name = ctx.name(*name);
                match error {
                    AssignmentError::Missing => format!("Argument {name} not provided."),
                    AssignmentError::TooMany { accepted, passed } => {
                        format!("Expected at most {accepted} arguments but found {passed} positional arguments.")
                    }
                    AssignmentError::Unknown(_) => format!("Keyword argument {name} unknown."),
                    AssignmentError::Duplicate(_) => format!("Keyword argument {name} specified twice."),
                }
            }
            Mismatch::Type {
                argument,
                expected,
                found,
            } => format!(
                "Expected a value of type '{}' for argument '{}' but instead found type '{}'.",
                shown(*expected),
                ctx.name(*argument),
                shown(*found)
            ),
            Mismatch::Variable {
                argument,
                formal,
                found,
                bound,
            } => {
                let (formal, found) = (shown(*formal), shown(*found));
                let why = match bound {
                    Some((name, ty)) => format!(
                        "Type variable '{}' previously matched to type {} is matched to type {found}",
                        ctx.name(*name),
                        shown(*ty)
                    ),
                    None => format!("Cannot match {formal} to {found}"),
                };
                format!(
                    "Could not match type {found} to {formal} in argument '{}': {why}.",
                    ctx.name(*argument)
                )
            }
            Mismatch::NoObject => "Provided self argument not used in schema.".to_owned(),
            Mismatch::Unbound => "A type variable of what is returned cannot be inferred.".to_owned(),
        }
    }
}

/// The emitter's state on which overload resolution depends.
pub(crate) struct Matcher<'m> {
    pub(crate) definitions: &'m Definitions,
    pub(crate) graph: &'m Graph,
    /// Literals `[]` whose element type is not known yet.
    pub(crate) empty_lists: &'m std::collections::HashSet<ValueId>,
}

impl Matcher<'_> {
    /// Returns the match of the first of `schemas` that accepts these arguments.
    pub(crate) fn choose(
        &self,
        schemas: &[Arc<FunctionSchema>],
        arguments: &Arguments,
    ) -> Result<Matched, Vec<(Arc<FunctionSchema>, Mismatch)>> {
        let mut failures = Vec::new();
        // A lone schema is not tried without conversions first.
        let rounds: &[bool] = if schemas.len() == 1 { &[true] } else { &[false, true] };
        for &conversions in rounds {
            failures.clear();
            for schema in schemas {
                match self.try_schema(schema, arguments, conversions) {
                    Ok(matched) => return Ok(matched),
                    Err(mismatch) => failures.push((Arc::clone(schema), mismatch)),
                }
            }
        }
        Err(failures)
    }

    fn try_schema<'s>(
        &self,
        schema: &'s Arc<FunctionSchema>,
        given: &Arguments,
        conversions: bool,
    ) -> Result<Matched, Mismatch> {
        let ctx = &self.definitions.ctx;
        // A dtype is an int to TorchScript, so that `x.view(3)` could be meant by both; PyTorch blocks this overload.
        if ctx.name(schema.name) == "aten::view" && ctx.name(schema.overload) == "dtype" {
            return Err(Mismatch::Unbound);
        }
        let is_aten = ctx.name(schema.name).starts_with("aten::");
        let input = ctx.find_symbol("input").filter(|_| is_aten);
        let formal = |argument: &'s Argument| Formal {
            argument,
            alias: input.filter(|_| argument.name == symbols::SELF),
        };
        let mut bindings = Bindings::default();
        let mut inputs = Vec::with_capacity(schema.arguments.len());
        let mut object = given.object;
        let mut call = Assignment::new(given.positional.len(), &given.keywords);
        for (index, argument) in schema.arguments.iter().enumerate() {
            if argument.name == symbols::SELF
                && let Some(object) = object.take()
            {
                inputs.push(self.match_argument(argument, object, conversions, &mut bindings)?);
                continue;
            }
            if conversions && self.takes_rest_as_list(schema, index, argument) {
                let rest = given.positional.get(call.unassigned()).unwrap_or_default();
                if let Some(list) = self.rest_as_list(argument, rest, &mut bindings)? {
                    inputs.push(list);
                    call.take_positional();
                    continue;
                }
            }
            let assigned = call.next(&formal(argument));
            let assigned = assigned.map_err(|error| Mismatch::Assignment(error, argument.name))?;
            inputs.push(
                match (assigned.passed(&given.positional, &given.keywords), &argument.default) {
                    (Some(&value), _) => self.match_argument(argument, value, conversions, &mut bindings)?,
                    // A function of a program states one number, of which the call makes a list.
                    (None, Some(Constant::List(list)))
                        if argument.broadcast.is_some() && !ctx.name(schema.name).contains("::") =>
                    {
                        let items = list.items.iter().cloned().map(ArgumentSource::Default).collect();
                        ArgumentSource::List(list.element, items)
                    }
                    (None, Some(default)) => ArgumentSource::Default(default.clone()),
                    (None, None) => return Err(Mismatch::Assignment(AssignmentError::Missing, argument.name)),
                },
            );
        }
        if object.is_some() {
            return Err(Mismatch::NoObject);
        }
        if schema.is_vararg {
            let rest = given.positional.get(call.take_positional()).unwrap_or_default();
            inputs.extend(rest.iter().map(|&value| ArgumentSource::Value(value, Conversion::None)));
        }
        call.finish(schema.arguments.iter().map(formal)).map_err(|error| {
            let keyword = error.keyword(&given.keywords).copied();
            Mismatch::Assignment(error, keyword.unwrap_or(symbols::EMPTY))
        })?;
        let returns: Option<Vec<TypeId>> = schema
            .returns
            .iter()
            .map(|result| substitute(ctx, result.ty, &bindings))
            .collect();
        let returns = returns.ok_or(Mismatch::Unbound)?;
        Ok(Matched {
            inputs,
            returns,
            schema: Arc::clone(schema),
        })
    }

    /// Returns whether the remaining positional arguments may form a list: `zeros(2, 3)` for `zeros(int[] size)`.
    fn takes_rest_as_list(&self, schema: &FunctionSchema, index: usize, argument: &Argument) -> bool {
        if argument.keyword_only {
            return false;
        }
        let is_last = schema.arguments.get(index + 1).is_none_or(|next| next.keyword_only);
        let TypeKind::List(element) = self.definitions.ctx.type_kind(argument.ty) else {
            return false;
        };
        is_last && argument.broadcast.is_none() && !matches!(self.definitions.ctx.type_kind(element), TypeKind::Var(_))
    }

    fn rest_as_list(
        &self,
        argument: &Argument,
        rest: &[ValueId],
        bindings: &mut Bindings,
    ) -> Result<Option<ArgumentSource>, Mismatch> {
        let ctx = &self.definitions.ctx;
        let TypeKind::List(element) = ctx.type_kind(argument.ty) else {
            return Ok(None);
        };
        let Some(&first) = rest.first() else { return Ok(None) };
        let first_type = self.graph.ty(first);
        if matches!(ctx.type_kind(first_type), TypeKind::List(_)) || self.tuple_fits(first_type, element) {
            return Ok(None);
        }
        let formal = Argument {
            ty: element,
            ..argument.clone()
        };
        let items: Result<Vec<ArgumentSource>, Mismatch> = rest
            .iter()
            .map(|&value| self.match_argument(&formal, value, true, bindings))
            .collect();
        Ok(Some(ArgumentSource::List(element, items?)))
    }

    fn match_argument(
        &self,
        argument: &Argument,
        value: ValueId,
        conversions: bool,
        bindings: &mut Bindings,
    ) -> Result<ArgumentSource, Mismatch> {
        let ctx = &self.definitions.ctx;
        let found = self.graph.ty(value);
        let mismatch = |expected| Mismatch::Type {
            argument: argument.name,
            expected,
            found,
        };
        let unwrapped = unwrap_optional(ctx, argument.ty);
        if let (Some(count), TypeKind::List(element)) = (argument.broadcast, ctx.type_kind(unwrapped))
            && element == found
            && matches!(found, types::INT | types::FLOAT)
        {
            return Ok(ArgumentSource::Repeat(value, count));
        }
        let concrete = if has_variables(ctx, argument.ty) {
            if self.empty_lists.contains(&value)
                && let TypeKind::List(element) = ctx.type_kind(argument.ty)
                && let Some(element) = substitute(ctx, element, bindings)
            {
                // The open list takes the type that other arguments have given to the variable.
                return Ok(ArgumentSource::Value(value, Conversion::EmptyList(element)));
            }
            let mut trial = bindings.clone();
            // Whether a class implements an interface is not for `match_formal` to know.
            let lacks = match ctx.type_kind(argument.ty) {
                TypeKind::Var(name) => bindings.get(name).is_some_and(|bound| {
                    matches!(ctx.type_kind(bound), TypeKind::Interface(_)) && !self.definitions.is_subtype(found, bound)
                }),
                _ => false,
            };
            if lacks || !match_formal(ctx, argument.ty, found, &mut trial) {
                let bound = match ctx.type_kind(argument.ty) {
                    TypeKind::Var(name) => bindings.get(name).map(|ty| (name, ty)),
                    _ => None,
                };
                return Err(Mismatch::Variable {
                    argument: argument.name,
                    formal: argument.ty,
                    found,
                    bound,
                });
            }
            *bindings = trial;
            substitute(ctx, argument.ty, bindings).ok_or(Mismatch::Unbound)?
        } else {
            argument.ty
        };
        let open = self.empty_lists.contains(&value);
        let (conversion, result) = self.convert(found, open, concrete, conversions);
        if self.definitions.is_subtype(result, concrete) {
            Ok(ArgumentSource::Value(value, conversion))
        } else {
            Err(mismatch(concrete))
        }
    }

    /// Returns the conversion from type `found` to type `wanted`, if there is one, and the resulting type.
    pub(crate) fn convert(&self, found: TypeId, open: bool, wanted: TypeId, implicit: bool) -> (Conversion, TypeId) {
        let ctx = &self.definitions.ctx;
        let found_kind = ctx.type_kind(found);
        if let TypeKind::Optional(inner) = ctx.type_kind(wanted)
            && !matches!(found_kind, TypeKind::Optional(_) | TypeKind::None)
        {
            return self.convert(found, open, inner, implicit);
        }
        if let (true, TypeKind::List(element)) = (open, ctx.type_kind(wanted)) {
            return (Conversion::EmptyList(element), wanted);
        }
        if let TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements) = found_kind {
            let elements = ctx.types(elements);
            match ctx.type_kind(unwrap_optional(ctx, wanted)) {
                TypeKind::List(element) if self.tuple_fits(found, element) => {
                    return (Conversion::TupleToList(element), ctx.list_of(element));
                }
                TypeKind::Tuple(wanted_elements)
                    if wanted_elements_len(ctx, wanted_elements) == elements.len()
                        && !self.definitions.is_subtype(found, wanted) =>
                {
                    let parts: Vec<(Conversion, TypeId)> = elements
                        .iter()
                        .zip(ctx.types(wanted_elements))
                        .map(|(&element, &wanted)| self.convert(element, false, wanted, implicit))
                        .collect();
                    let ty = ctx.tuple_of(&parts.iter().map(|(_, ty)| *ty).collect::<Vec<_>>());
                    return (Conversion::Tuple(parts.into_iter().map(|(part, _)| part).collect()), ty);
                }
                _ => {}
            }
        }
        if !implicit {
            return (Conversion::None, found);
        }
        let operator = match (found_kind, wanted) {
            (TypeKind::Tensor(_), types::FLOAT) => "aten::FloatImplicit",
            (TypeKind::Tensor(_), types::INT) => "aten::IntImplicit",
            (TypeKind::Tensor(_), types::COMPLEX) => "aten::ComplexImplicit",
            (TypeKind::Tensor(_), types::NUMBER) => "aten::ScalarImplicit",
            (TypeKind::Number, types::FLOAT) => "aten::Float",
            (TypeKind::Number, types::INT) => "aten::Int",
            (TypeKind::Number, types::COMPLEX) => "aten::Complex",
            (TypeKind::Bool, types::FLOAT) => "aten::Float",
            (TypeKind::Bool, types::INT) => "aten::Int",
            // A bool is no Scalar: it becomes an int, with an int's part in promotion.
            (TypeKind::Bool, types::NUMBER) => return (Conversion::Operator("aten::Int", types::INT), types::INT),
            (TypeKind::Str, types::DEVICE) => "aten::device",
            _ => return (Conversion::None, found),
        };
        (Conversion::Operator(operator, wanted), wanted)
    }

    fn tuple_fits(&self, tuple: TypeId, element: TypeId) -> bool {
        match self.definitions.ctx.type_kind(tuple) {
            TypeKind::Tuple(items) | TypeKind::NamedTuple(_, _, items) => self
                .definitions
                .ctx
                .types(items)
                .iter()
                .all(|&item| self.definitions.is_subtype(item, element)),
            _ => false,
        }
    }
}

fn wanted_elements_len(ctx: &Context, elements: frazil_ir::TypeListId) -> usize {
    ctx.types(elements).len()
}

/// Returns `T` for the type `T?`; any other type unchanged.
pub(crate) fn unwrap_optional(ctx: &Context, ty: TypeId) -> TypeId {
    match ctx.type_kind(ty) {
        TypeKind::Optional(inner) => inner,
        _ => ty,
    }
}

fn has_variables(ctx: &Context, ty: TypeId) -> bool {
    match ctx.type_kind(ty) {
        TypeKind::Var(_) => true,
        TypeKind::Optional(e) | TypeKind::List(e) | TypeKind::Future(e) | TypeKind::Await(e) | TypeKind::RRef(e) => {
            has_variables(ctx, e)
        }
        TypeKind::Dict(k, v) => has_variables(ctx, k) || has_variables(ctx, v),
        TypeKind::Tuple(es) => ctx.types(es).iter().any(|&e| has_variables(ctx, e)),
        _ => false,
    }
}
