//! Type annotations: Python expressions that denote TorchScript types.

use frazil_ir::nesting::{MAX_NESTING, with_stack};
use frazil_ir::{TypeId, TypeKind, types};
use ruff_python_ast::{Expr, Operator};
use ruff_text_size::Ranged;

use super::definitions::Global;
use super::foreign::FOREIGN_CLASSES;
use super::resolve::Names;
use crate::error::{LoadError, Result};
use crate::library;
use crate::source::{SourceFile, dotted};

/// Evaluation of type annotations.
pub(crate) trait Annotations: Names {
    /// Returns the type that the annotation `expr` of `file` denotes. Classes are looked up, and defined on first use.
    fn annotation(&mut self, file: &SourceFile, expr: &Expr) -> Result<TypeId> {
        self.bounded_annotation(file, expr, false)
    }

    /// Returns the type in an `isinstance` test, where `list` without an element type means any list.
    fn annotation_or_bare(&mut self, file: &SourceFile, expr: &Expr) -> Result<TypeId> {
        self.bounded_annotation(file, expr, true)
    }

    fn bounded_annotation(&mut self, file: &SourceFile, expr: &Expr, bare: bool) -> Result<TypeId> {
        let ty = with_stack(|| self.annotation_inner(file, expr, bare))?;
        if self.definitions().ctx.type_nesting(ty) > MAX_NESTING {
            let message = format!("types are nested more than {MAX_NESTING} levels deep");
            return Err(file.error("nesting", message, expr).into());
        }
        Ok(ty)
    }

    /// Returns the type that a text denotes, which is in a comment or string at `node`.
    fn annotation_text(&mut self, file: &SourceFile, text: &str, node: &impl Ranged) -> Result<TypeId> {
        let unknown = || file.error("unknown-type", format!("Unknown type name '{text}'"), node);
        let deep = text.bytes().filter(|byte| matches!(byte, b'[' | b'(' | b'|')).count()
            > self.definitions().stack.parser_levels();
        let parsed = (!deep)
            .then(|| ruff_python_parser::parse_expression(text))
            .and_then(Result::ok)
            .ok_or_else(unknown)?;
        match &*parsed.syntax().body {
            Expr::StringLiteral(_) => Err(unknown().into()),
            inner => self.annotation(file, inner).map_err(|error| match error {
                // Places inside of the text are none of the file.
                LoadError::Source(inner) => file
                    .error(inner.diagnostic.code, inner.diagnostic.message.clone(), node)
                    .into(),
                other => other,
            }),
        }
    }

    fn annotation_inner(&mut self, file: &SourceFile, expr: &Expr, bare: bool) -> Result<TypeId> {
        let unknown = |what: &str| file.error("unknown-type", format!("Unknown type name '{what}'"), expr);
        match expr {
            Expr::NoneLiteral(_) => Ok(types::NONE),
            // `"Tensor"`: a forward reference.
            Expr::StringLiteral(text) => self.annotation_text(file, text.value.to_str(), expr),
            Expr::Name(_) | Expr::Attribute(_) => {
                let written = dotted(expr).ok_or_else(|| unknown("expression"))?;
                let name = file.expand(&written);
                match simple_type(&name) {
                    Some(TypeKind::AnyList | TypeKind::AnyTuple) if file.rules.is_source() && !bare => {
                        let list = written.to_lowercase().ends_with("list");
                        let example = if list { "List[int]" } else { "Tuple[int]" };
                        let message = format!(
                            "Attempted to use {} without a contained type. Please add a contained type, e.g. {example}",
                            if list { "List" } else { "Tuple" }
                        );
                        Err(file.error("unknown-type", message, expr).into())
                    }
                    Some(kind) => Ok(self.definitions().ctx.type_of_kind(kind)),
                    None if matches!(
                        name.as_str(),
                        "typing.Dict" | "Dict" | "dict" | "typing.Optional" | "Optional"
                    ) =>
                    {
                        let head = written.rsplit('.').next().unwrap_or_default();
                        let (head, example) = match head {
                            "Optional" => ("Optional", "Optional[int]"),
                            _ => ("Dict", "Dict[str, int]"),
                        };
                        let message = format!(
                            "Attempted to use {head} without contained types. Please add contained type, e.g. {example}"
                        );
                        Err(file.error("unknown-type", message, expr).into())
                    }
                    None => self.class_type(file, expr, &name),
                }
            }
            Expr::BinOp(union) if union.op == Operator::BitOr => {
                let members = [
                    self.annotation(file, &union.left)?,
                    self.annotation(file, &union.right)?,
                ];
                Ok(self.definitions().union_of(&members))
            }
            Expr::Subscript(subscript) => {
                let head = dotted(&subscript.value).ok_or_else(|| unknown("expression"))?;
                let head = file.expand(&head);
                let arguments: Vec<&Expr> = match &*subscript.slice {
                    Expr::Tuple(tuple) => tuple.elts.iter().collect(),
                    one => vec![one],
                };
                let mut parsed = Vec::with_capacity(arguments.len());
                for argument in &arguments {
                    parsed.push(self.annotation(file, argument)?);
                }
                let head = head.rsplit('.').next().unwrap_or_default();
                let ctx = &self.definitions().ctx;
                match (head, parsed.as_slice()) {
                    ("List" | "list" | "BroadcastingList1" | "BroadcastingList2" | "BroadcastingList3", &[element]) => {
                        Ok(ctx.list_of(element))
                    }
                    ("Optional", &[element]) => Ok(match ctx.type_kind(element) {
                        TypeKind::Union(_) | TypeKind::None => self.definitions().union_of(&[element, types::NONE]),
                        _ => ctx.optional_of(element),
                    }),
                    ("Dict" | "dict", &[key, value]) => {
                        let is_key = matches!(
                            ctx.type_kind(key),
                            TypeKind::Int
                                | TypeKind::Float
                                | TypeKind::Complex
                                | TypeKind::Bool
                                | TypeKind::Str
                                | TypeKind::Device
                                | TypeKind::Tensor(_)
                        );
                        if !is_key && file.rules.is_source() {
                            let message = format!(
                                "Cannot create dict for key type '{}', only int, float, complex, Tensor, device and string keys are supported",
                                ctx.show_type(key)
                            );
                            return Err(file.error("unknown-type", message, expr).into());
                        }
                        Ok(ctx.dict_of(key, value))
                    }
                    ("Tuple" | "tuple", elements) => Ok(ctx.tuple_of(elements)),
                    ("Union", members) => Ok(self.definitions().union_of(members)),
                    ("Future", &[element]) => Ok(ctx.type_of_kind(TypeKind::Future(element))),
                    ("Await", &[element]) => Ok(ctx.type_of_kind(TypeKind::Await(element))),
                    ("RRef", &[element]) => Ok(ctx.type_of_kind(TypeKind::RRef(element))),
                    ("Final", &[element]) => Ok(element),
                    _ => Err(file
                        .error("unknown-type", format!("Unknown type constructor {head}"), expr)
                        .into()),
                }
            }
            Expr::NumberLiteral(_) | Expr::BooleanLiteral(_) => {
                let message = "Expression of type const cannot be used in a type expression";
                Err(file.error("unknown-type", message, expr).into())
            }
            // `Tuple[()]`: the subscript is an empty tuple and never gets here.
            _ => Err(unknown("expression").into()),
        }
    }

    /// Returns the class, enumeration, interface or NamedTuple that a dotted name denotes.
    fn class_type(&mut self, file: &SourceFile, node: &impl Ranged, name: &str) -> Result<TypeId> {
        let qualified = match file.rules.qualifier() {
            Some(qualifier) if !name.starts_with("__torch__.") => format!("{qualifier}.{name}"),
            _ => name.to_owned(),
        };
        if self.definitions().defining.contains(&qualified) {
            let message = format!("the NamedTuple `{name}` contains itself");
            return Err(file.error("cyclic-class", message, node).into());
        }
        let mut found = self.global(&qualified)?;
        // Another file of the library, by its dotted name.
        if let (None, true, Some(path)) = (
            found,
            self.definitions().rules.is_written(),
            library::name_of(name).filter(|_| name.contains('.')),
        ) {
            found = self.global(&path)?;
        }
        match found {
            Some(Global::Type(ty)) => Ok(ty),
            // Classes that C++ code registers are opaque here.
            None if name.starts_with(FOREIGN_CLASSES) => Ok(self.definitions().ctx.class(name)),
            _ => Err(file
                .error("unknown-type", format!("Unknown type name '{name}'"), node)
                .into()),
        }
    }
}

impl<N: Names + ?Sized> Annotations for N {}

/// Returns the length of the list that a single number may represent: 2 for `BroadcastingList2[int]`, also inside `Optional`.
pub(crate) fn broadcast(expr: &Expr) -> Option<u32> {
    let Expr::Subscript(subscript) = expr else { return None };
    let head = dotted(&subscript.value)?;
    match head.rsplit('.').next()?.strip_prefix("BroadcastingList") {
        Some(count) => count.parse().ok(),
        None => match &*subscript.slice {
            inner @ Expr::Subscript(_) if head.ends_with("Optional") => broadcast(inner),
            _ => None,
        },
    }
}

/// Returns the type called `name`, if it is a type without arguments such as `int`.
fn simple_type(name: &str) -> Option<TypeKind> {
    Some(
        match name
            .strip_prefix("torch.")
            .or(name.strip_prefix("typing."))
            .unwrap_or(name)
        {
            "Tensor" => TypeKind::Tensor(frazil_ir::TensorType::ANY),
            "int" | "dtype" | "layout" | "memory_format" => TypeKind::Int,
            "float" => TypeKind::Float,
            "bool" => TypeKind::Bool,
            "complex" => TypeKind::Complex,
            "number" | "Scalar" | "numbers.Number" => TypeKind::Number,
            "str" => TypeKind::Str,
            "NoneType" => TypeKind::None,
            "Any" => TypeKind::Any,
            "Device" | "device" => TypeKind::Device,
            "Generator" => TypeKind::Generator,
            "Stream" => TypeKind::Stream,
            "Storage" => TypeKind::Storage,
            "QScheme" | "qscheme" => TypeKind::QScheme,
            "Capsule" => TypeKind::Capsule,
            "AnyList" | "List" | "list" => TypeKind::AnyList,
            "AnyTuple" | "Tuple" | "tuple" => TypeKind::AnyTuple,
            "AnyClassType" => TypeKind::AnyClass,
            "AnyEnumType" => TypeKind::AnyEnum,
            _ => return None,
        },
    )
}
