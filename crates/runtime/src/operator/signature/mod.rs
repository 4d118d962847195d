//! Signatures of methods, by which arguments of calls are checked and converted as PyTorch does for values from Python.

mod convert;

use crate::error::ExecError;
use crate::error::OpError;
use crate::value::Value;
use crate::value::import::Importer;
use crate::value::python_repr::repr;
use convert::{Converter, Mismatch};
use frazil_ir::arguments::{Assignment, AssignmentError, Parameter};
use frazil_ir::schema::{Argument, FunctionSchema, TypeHint};
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{Constant, Context, FunctionId, Module, ObjectId, TypeId, TypeKind};
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::Arc;

/// The signature of a module's method, which converts and checks the arguments of calls.
pub struct Signature {
    module: Arc<Module>,
    function: FunctionId,
    /// For each argument (without self), the kind of positional values that are accepted without conversion.
    plain: Vec<Plain>,
    /// Whether the signature is that of a plain function, with a `self` that is only a placeholder.
    is_function: bool,
}

/// The class of modules whose methods are plain functions. It has no attributes; all other classes of modules have at least `training`.
const FUNCTIONS: &str = "__torch__.Functions";

/// The kind of values that a parameter accepts unconverted, by which most arguments are checked without a comparison of types.
#[derive(Clone, Copy)]
enum Plain {
    Tensor,
    Int,
    Float,
    Bool,
    Str,
    /// Other types, which are compared for every value, and keyword-only arguments.
    Other,
}

impl Plain {
    fn of(kind: TypeKind) -> Plain {
        match kind {
            TypeKind::Tensor(_) => Plain::Tensor,
            TypeKind::Int => Plain::Int,
            TypeKind::Float => Plain::Float,
            TypeKind::Bool => Plain::Bool,
            TypeKind::Str => Plain::Str,
            _ => Plain::Other,
        }
    }

    fn takes(self, value: &Value) -> bool {
        matches!(
            (self, value),
            (Plain::Tensor, Value::Tensor(_))
                | (Plain::Int, Value::Int(_))
                | (Plain::Float, Value::Float(_))
                | (Plain::Bool, Value::Bool(_))
                | (Plain::Str, Value::Str(_))
        )
    }
}

/// An argument of a method as a parameter of calls with keywords.
struct Formal<'s> {
    ctx: &'s Context,
    argument: &'s Argument,
}

impl Parameter<&str> for Formal<'_> {
    fn is_named(&self, keyword: &&str) -> bool {
        self.ctx.name(self.argument.name) == *keyword
    }

    fn is_keyword_only(&self) -> bool {
        self.argument.keyword_only
    }

    fn has_default(&self) -> bool {
        self.argument.default.is_some()
    }
}

impl Signature {
    /// Returns the signature of the method at a dotted path (`forward`, or `encoder.forward` of a submodule); `None` if there is no such method.
    pub fn of_method(module: &Arc<Module>, path: &str) -> Option<Signature> {
        let (receiver, function) = module.method_at(path)?;
        Some(Signature::of_function(module, receiver, function))
    }

    /// Returns the signature of a method that is called on object `receiver`.
    pub fn of_function(module: &Arc<Module>, receiver: ObjectId, function: FunctionId) -> Signature {
        let arguments = &module.unit.function(function).schema.arguments;
        let plain = arguments.iter().skip(1);
        let plain = plain.map(|a| match a.keyword_only {
            true => Plain::Other,
            false => Plain::of(module.ctx().type_kind(a.ty)),
        });
        let plain = plain.collect();
        let class = module.class_of(receiver);
        let is_function = class.is_some_and(|c| c.attributes.is_empty() && module.ctx().name(c.name) == FUNCTIONS);
        Signature {
            module: Arc::clone(module),
            function,
            plain,
            is_function,
        }
    }

    /// Returns the complete arguments (without self) of a call with positional arguments `args` and keyword arguments `named`. Arguments are converted as in
    /// PyTorch. Arguments that are not passed have their defaults.
    ///
    /// # Errors
    /// PyTorch's exceptions with its messages: when an argument has another type, is unknown, duplicate or missing, or there are too many.
    pub fn bind<'a>(&self, args: &'a [Value], named: &[(&str, Value)]) -> Result<Cow<'a, [Value]>, ExecError> {
        let fits = || args.iter().zip(&self.plain).all(|(value, plain)| plain.takes(value));
        if named.is_empty() && args.len() == self.plain.len() && fits() {
            return Ok(Cow::Borrowed(args));
        }
        self.bind_each(args, named).map(Cow::Owned)
    }

    fn schema(&self) -> &FunctionSchema {
        &self.module.unit.function(self.function).schema
    }

    fn ctx(&self) -> &Context {
        self.module.ctx()
    }

    /// Returns the number of leading arguments that are hidden from the caller: 1 for a plain function with a placeholder `self`, otherwise 0.
    fn hidden(&self) -> usize {
        usize::from(self.is_function)
    }

    /// Returns the text of a type as in PyTorch's declarations.
    fn declared_type(&self, ty: TypeId) -> String {
        display_type(self.ctx(), ty, TypeStyle::Declared).to_string()
    }

    /// Returns the method's name without its class.
    fn name(&self) -> &str {
        let name = self.ctx().name(self.schema().name);
        name.rsplit('.').next().unwrap_or(name)
    }

    fn bind_each(&self, args: &[Value], named: &[(&str, Value)]) -> Result<Vec<Value>, ExecError> {
        let all = &self.schema().arguments;
        // A method's own object is one of those that are counted.
        let (count, most) = (1 + args.len() + named.len() - self.hidden(), all.len() - self.hidden());
        if count > most {
            return Err(self.raised(format!(
                "{}() expected at most {most} argument(s) but received {count} argument(s). Declaration: {}",
                self.name(),
                self.declaration()
            )));
        }
        let formal = |argument| Formal {
            ctx: self.ctx(),
            argument,
        };
        let mut out = Vec::with_capacity(self.plain.len());
        let mut call = Assignment::new(args.len(), named);
        for (position, argument) in all.iter().enumerate().skip(1) {
            // PyTorch refuses the call before it looks for the remaining arguments; `finish` returns the error.
            if argument.keyword_only && !call.unassigned().is_empty() {
                break;
            }
            let name = self.ctx().name(argument.name);
            let assigned = call.next(&formal(argument));
            let assigned = assigned.map_err(|error| self.unassignable(error, name))?;
            out.push(match (assigned.passed(args, named), &argument.default) {
                (Some(value), _) => self.converted(position, argument, value)?,
                (None, Some(default)) => self.default_value(default)?,
                (None, None) => return Err(self.unassignable(AssignmentError::Missing, name)),
            });
        }
        let finished = call.finish(all.iter().skip(self.hidden()).map(formal));
        finished.map_err(|error| self.unassignable(error, error.keyword(named).copied().unwrap_or_default()))?;
        Ok(out)
    }

    fn default_value(&self, default: &Constant) -> Result<Value, ExecError> {
        let value = Importer::new().value(default, Some(&self.module));
        Ok(value.map_err(OpError::from)?)
    }

    fn raised(&self, message: String) -> ExecError {
        ExecError::raised("RuntimeError", message)
    }

    /// Returns PyTorch's error for arguments that cannot be assigned. `argument` is the name of the argument that is missing, or of the keyword argument.
    fn unassignable(&self, error: AssignmentError, argument: &str) -> ExecError {
        let (name, declaration) = (self.name(), self.declaration());
        self.raised(match error {
            AssignmentError::Missing => {
                format!("{name}() is missing value for argument '{argument}'. Declaration: {declaration}")
            }
            AssignmentError::TooMany { accepted, passed } => {
                // The method's own object is counted.
                let own = 1 - self.hidden();
                format!(
                    "{name}() takes {} positional argument(s) but {} was/were given.  Declaration: {declaration}",
                    own + accepted,
                    own + passed
                )
            }
            AssignmentError::Unknown(_) => {
                format!("Unknown keyword argument '{argument}' for operator '{name}'. Schema: {declaration}")
            }
            AssignmentError::Duplicate(_) => format!(
                "Argument '{argument}' specified both as positional and keyword argument. Schema: {declaration}"
            ),
        })
    }

    fn converted(&self, position: usize, argument: &Argument, value: &Value) -> Result<Value, ExecError> {
        let converter = Converter {
            ctx: self.ctx(),
            unit: &self.module.unit,
        };
        let mismatch = match converter.convert(value, argument.ty) {
            Ok(None) => return Ok(value.clone()),
            Ok(Some(converted)) => return Ok(converted),
            Err(mismatch) => mismatch,
        };
        let ctx = self.ctx();
        let details = match mismatch {
            Mismatch::Type => String::new(),
            Mismatch::Details(text) => format!("\nCast error details: {text}"),
            Mismatch::Whole(text) => return Err(self.raised(text)),
        };
        let name = ctx.name(argument.name);
        // Of an enumeration alone PyTorch writes another form than of one in a container.
        let style = match ctx.type_kind(argument.ty) {
            TypeKind::Enum(_) => TypeStyle::Declared,
            _ => TypeStyle::Annotation,
        };
        let wanted = display_type(ctx, argument.ty, style);
        let is_inferred = argument.hint == TypeHint::Inferred;
        let mut text = format!(
            "{}() Expected a value of type '{wanted}{}' for argument '{name}' but instead found type '{}'.\n",
            self.name(),
            if is_inferred { " (inferred)" } else { "" },
            convert::python_type(ctx, value)
        );
        if is_inferred {
            let _ = writeln!(
                text,
                "Inferred '{name}' to be of type 'Tensor' because it was not annotated with an explicit type."
            );
        }
        let value = repr(ctx, value);
        let declaration = self.declaration();
        let _ = write!(
            text,
            "Position: {}\nValue: {value}\nDeclaration: {declaration}{details}",
            position - self.hidden()
        );
        Err(self.raised(text))
    }

    /// Returns the signature as PyTorch prints it: `forward(__torch__.Net self, Tensor x, int n=3) -> Tensor`.
    pub fn declaration(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| {
            let (ctx, schema) = (self.ctx(), self.schema());
            write!(f, "{}(", self.name())?;
            let mut by_name_only = false;
            for (i, argument) in schema.arguments.iter().skip(self.hidden()).enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                if argument.keyword_only && !by_name_only {
                    by_name_only = true;
                    f.write_str("*, ")?;
                }
                write!(f, "{} {}", self.declared_type(argument.ty), ctx.name(argument.name))?;
                if let Some(default) = &argument.default {
                    f.write_str("=")?;
                    self.write_default(f, default, argument.ty)?;
                }
            }
            f.write_str(") -> ")?;
            match schema.returns.as_slice() {
                [one] => {
                    let text = self.declared_type(one.ty);
                    // Parentheses alone would stand for several results.
                    match text.starts_with('(') {
                        true => write!(f, "({text})"),
                        false => f.write_str(&text),
                    }
                }
                many => {
                    let each: Vec<String> = many.iter().map(|r| self.declared_type(r.ty)).collect();
                    write!(f, "({})", each.join(", "))
                }
            }
        })
    }

    fn write_default(&self, f: &mut fmt::Formatter<'_>, default: &Constant, ty: TypeId) -> fmt::Result {
        let kind = match self.ctx().type_kind(ty) {
            TypeKind::Optional(inner) => self.ctx().type_kind(inner),
            other => other,
        };
        match default {
            Constant::Str(text) if kind == TypeKind::Str => {
                let mut quoted = String::new();
                frazil_ir::literal::quoted(text, false, &mut quoted);
                f.write_str(&quoted)
            }
            Constant::List(list) if list.element == frazil_ir::types::INT && list.items.len() > 1 => {
                let ints: Vec<_> = list.items.iter().map(Constant::as_int).collect();
                match ints.iter().all(|i| Some(i) == ints.first()) {
                    true => self.write_plain_default(f, list.items.first().unwrap_or(&Constant::None)),
                    false => self.write_plain_default(f, default),
                }
            }
            other => self.write_plain_default(f, other),
        }
    }

    fn write_plain_default(&self, f: &mut fmt::Formatter<'_>, default: &Constant) -> fmt::Result {
        match self.default_value(default) {
            Ok(value) => f.write_str(&crate::value::format::str_of(self.ctx(), &value)),
            Err(_) => f.write_str("..."),
        }
    }
}
