//! Type annotations: Python expressions that name TorchScript types.

use frazil_ir::{TypeId, TypeKind, types};
use ruff_python_ast::{Expr, Operator};

use super::Result;
use super::program::Program;
use super::source::SourceFile;

impl Program<'_> {
    /// The type that the annotation `expr` of `file` names. Classes are looked up, and defined when they are met for the first time.
    pub(crate) fn annotation(&mut self, file: &SourceFile, expr: &Expr) -> Result<TypeId> {
        let unknown = |what: &str| file.error("unknown-type", format!("unknown type `{what}`"), expr);
        match expr {
            Expr::NoneLiteral(_) => Ok(types::NONE),
            Expr::StringLiteral(text) => {
                // `"Tensor"`: a forward reference.
                let parsed = ruff_python_parser::parse_expression(text.value.to_str());
                let parsed = parsed.map_err(|_| unknown(text.value.to_str()))?;
                match &*parsed.syntax().body {
                    Expr::StringLiteral(_) => Err(unknown(text.value.to_str()).into()),
                    inner => self.annotation(file, inner),
                }
            }
            Expr::Name(_) | Expr::Attribute(_) => {
                let name = dotted(expr).ok_or_else(|| unknown("expression"))?;
                match simple_type(&name) {
                    Some(kind) => Ok(self.ctx.type_of_kind(kind)),
                    None => self.class_type(file, expr, &name),
                }
            }
            Expr::BinOp(union) if union.op == Operator::BitOr => {
                let members = [
                    self.annotation(file, &union.left)?,
                    self.annotation(file, &union.right)?,
                ];
                Ok(self.union_of(&members))
            }
            Expr::Subscript(subscript) => {
                let head = dotted(&subscript.value).ok_or_else(|| unknown("expression"))?;
                let arguments: Vec<&Expr> = match &*subscript.slice {
                    Expr::Tuple(tuple) => tuple.elts.iter().collect(),
                    one => vec![one],
                };
                let mut parsed = Vec::with_capacity(arguments.len());
                for argument in &arguments {
                    parsed.push(self.annotation(file, argument)?);
                }
                let head = head.rsplit('.').next().unwrap_or_default();
                let ctx = &self.ctx;
                match (head, parsed.as_slice()) {
                    ("List" | "list", &[element]) => Ok(ctx.list_of(element)),
                    ("Optional", &[element]) => Ok(ctx.optional_of(element)),
                    ("Dict" | "dict", &[key, value]) => Ok(ctx.dict_of(key, value)),
                    ("Tuple" | "tuple", elements) => Ok(ctx.tuple_of(elements)),
                    ("Union", members) => Ok(self.union_of(members)),
                    ("Future", &[element]) => Ok(ctx.type_of_kind(TypeKind::Future(element))),
                    ("Await", &[element]) => Ok(ctx.type_of_kind(TypeKind::Await(element))),
                    ("RRef", &[element]) => Ok(ctx.type_of_kind(TypeKind::RRef(element))),
                    ("Final", &[element]) => Ok(element),
                    _ => Err(unknown(&format!("{head}[...]")).into()),
                }
            }
            // `Tuple[()]`: the subscript is an empty tuple and never gets here.
            _ => Err(unknown("expression").into()),
        }
    }

    /// The union of `members`; with `None` and one more it is an optional. A number is one of the three kinds of numbers.
    pub(crate) fn union_of(&self, members: &[TypeId]) -> TypeId {
        let ctx = &self.ctx;
        let mut flat: Vec<TypeId> = Vec::new();
        for &member in members {
            let inner: Vec<TypeId> = match ctx.type_kind(member) {
                TypeKind::Union(inner) => ctx.types(inner).to_vec(),
                TypeKind::Optional(inner) => vec![inner, types::NONE],
                TypeKind::Number => vec![types::INT, types::FLOAT, types::COMPLEX],
                _ => vec![member],
            };
            for ty in inner {
                if !flat.contains(&ty) {
                    flat.push(ty);
                }
            }
        }
        match *flat.as_slice() {
            [one] => one,
            [a, types::NONE] => ctx.optional_of(a),
            [types::NONE, a] => ctx.optional_of(a),
            _ => ctx.type_of_kind(TypeKind::Union(ctx.type_list(&flat))),
        }
    }
}

/// `a.b.c` as text, if the expression is that.
pub(crate) fn dotted(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(attribute) => {
            let mut text = dotted(&attribute.value)?;
            text.push('.');
            text.push_str(&attribute.attr.id);
            Some(text)
        }
        _ => None,
    }
}

/// Types that have a name of their own.
fn simple_type(name: &str) -> Option<TypeKind> {
    Some(match name.strip_prefix("torch.").unwrap_or(name) {
        "Tensor" => TypeKind::Tensor(frazil_ir::TensorType::ANY),
        "int" | "dtype" | "layout" | "memory_format" => TypeKind::Int,
        "float" => TypeKind::Float,
        "bool" => TypeKind::Bool,
        "complex" => TypeKind::Complex,
        "number" | "Scalar" => TypeKind::Number,
        "str" => TypeKind::Str,
        "NoneType" => TypeKind::None,
        "Any" | "typing.Any" => TypeKind::Any,
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
    })
}
