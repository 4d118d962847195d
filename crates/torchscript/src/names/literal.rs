//! Evaluation of constant expressions.

use std::sync::Arc;

use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{Constant, Context, DType, Device, TupleConstant, TypeId, TypeKind, types};
use num_complex::Complex64;
use ruff_python_ast::{Expr, ExprCall, Number, UnaryOp};

use super::annotation::Annotations;
use super::definitions::Global;
use super::top::Bound;
use crate::error::Result;
use crate::source::{SourceFile, complex_sum, dotted, number, string_value};

/// Evaluation of constant expressions.
pub(crate) trait Constants: Annotations {
    /// Returns the value of a constant expression: a literal, or a container of constants.
    fn constant_expr(&mut self, file: &SourceFile, expr: &Expr, ty: Option<TypeId>) -> Result<Constant> {
        let kind = ty.map(|ty| self.ctx().type_kind(ty));
        let kind = match kind {
            Some(TypeKind::Optional(inner)) => Some(self.ctx().type_kind(inner)),
            other => other,
        };
        match self.definitions().bound_value(file, expr) {
            Some(Bound::Constant(constant) | Bound::Mutable(_, Some(constant))) if !expr.is_literal_expr() => {
                return Ok(fitted(self.ctx(), constant.clone(), ty));
            }
            _ => {}
        }
        let refused = match self.definitions().bound_value(file, expr) {
            Some(Bound::Refused(error)) => Some(error.clone()),
            _ => None,
        };
        let no_constant = || match &refused {
            Some(error) => error.clone(),
            None => file.error("constant", "a constant is expected here", expr),
        };
        let value = match expr {
            Expr::NoneLiteral(_) => Constant::None,
            Expr::BooleanLiteral(literal) => Constant::Bool(literal.value),
            Expr::StringLiteral(literal) => Constant::str(string_value(literal.value.to_str())),
            Expr::NumberLiteral(literal) => number(&literal.value).ok_or_else(no_constant)?,
            Expr::UnaryOp(op) if op.op == UnaryOp::USub => match &*op.operand {
                // The least integer is no literal without its sign.
                Expr::NumberLiteral(literal) if matches!(&literal.value, Number::Int(int) if int.as_u64() == Some(1 << 63)) => {
                    Constant::Int(i64::MIN)
                }
                operand => match self.constant_expr(file, operand, ty)? {
                    Constant::Int(i) => Constant::Int(i.wrapping_neg()),
                    Constant::Float(f) => Constant::Float(-f),
                    Constant::Complex(c) => Constant::Complex(-c),
                    _ => return Err(no_constant().into()),
                },
            },
            Expr::BinOp(_) => Constant::Complex(complex_sum(expr).ok_or_else(no_constant)?),
            Expr::Tuple(tuple) => {
                let element_types: Vec<TypeId> = match kind {
                    Some(TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements)) => {
                        self.ctx().types(elements).to_vec()
                    }
                    _ => Vec::new(),
                };
                let mut items = Vec::with_capacity(tuple.elts.len());
                for (index, item) in tuple.elts.iter().enumerate() {
                    items.push(self.constant_expr(file, item, element_types.get(index).copied())?);
                }
                match kind {
                    Some(TypeKind::Tuple(_)) if element_types.len() == items.len() => {
                        let ty = self.ctx().tuple_of(&element_types);
                        Constant::Tuple(Arc::new(TupleConstant { ty, items }))
                    }
                    // `padding: List[int] = (1, 1)`
                    Some(TypeKind::List(element)) => Constant::list(element, items),
                    _ => Constant::tuple(self.ctx(), items),
                }
            }
            Expr::List(list) => {
                let hint = match kind {
                    Some(TypeKind::List(element)) => Some(element),
                    _ => None,
                };
                let mut items = Vec::with_capacity(list.elts.len());
                for item in &list.elts {
                    items.push(self.constant_expr(file, item, hint)?);
                }
                let element = hint
                    .or_else(|| items.first().map(|item| item.ty(self.ctx())))
                    .unwrap_or(types::TENSOR);
                Constant::list(element, items)
            }
            Expr::Name(name) => match name.id.as_str() {
                "inf" => Constant::Float(f64::INFINITY),
                "nan" => Constant::Float(f64::NAN),
                "infj" => Constant::Complex(Complex64::new(0.0, f64::INFINITY)),
                "nanj" => Constant::Complex(Complex64::new(0.0, f64::NAN)),
                _ => return Err(no_constant().into()),
            },
            Expr::Attribute(_) => {
                let name = dotted(expr).ok_or_else(no_constant)?;
                match self.named_constant(file, &file.expand(&name))? {
                    Some(constant) => constant,
                    None => return Err(no_constant().into()),
                }
            }
            Expr::Call(call) => match (dotted(&call.func).as_deref(), &*call.arguments.args) {
                (Some("torch.device"), [Expr::StringLiteral(text)]) => {
                    Constant::Device(Device::parse(text.value.to_str()).ok_or_else(no_constant)?)
                }
                (Some("annotate" | "torch.jit.annotate"), [ty, value]) => {
                    let ty = self.annotation(file, ty)?;
                    self.constant_expr(file, value, Some(ty))?
                }
                (Some(name), _) => match self.global_of(file, name)? {
                    Some(Global::Type(ty)) => self.named_tuple(file, call, ty)?.ok_or_else(no_constant)?,
                    _ => return Err(no_constant().into()),
                },
                _ => return Err(no_constant().into()),
            },
            _ => return Err(no_constant().into()),
        };
        Ok(match (kind, value) {
            (Some(TypeKind::Float), Constant::Int(i)) => Constant::Float(i as f64),
            (_, value) => value,
        })
    }

    /// Returns the value of a constructor call of the NamedTuple type `ty`, such as `Point(1, y=2.)`. `None` if `ty` is not a NamedTuple type, or the arguments
    /// do not match its fields.
    fn named_tuple(&mut self, file: &SourceFile, call: &ExprCall, ty: TypeId) -> Result<Option<Constant>> {
        let TypeKind::NamedTuple(class, names, types) = self.ctx().type_kind(ty) else {
            return Ok(None);
        };
        let ctx = Arc::clone(self.ctx());
        let (names, types) = (ctx.symbols(names), ctx.types(types));
        let arguments = &call.arguments;
        let mut given: Vec<Option<&Expr>> = arguments.args.iter().map(Some).collect();
        if given.len() > names.len() {
            return Ok(None);
        }
        given.resize(names.len(), None);
        for keyword in &arguments.keywords {
            let field = keyword.arg.as_ref().map(|arg| ctx.symbol(arg));
            match names.iter().position(|&name| Some(name) == field) {
                Some(field) if given[field].is_none() => given[field] = Some(&keyword.value),
                _ => return Ok(None),
            }
        }
        let mut items = Vec::with_capacity(names.len());
        for ((&name, &field), value) in names.iter().zip(types).zip(given) {
            let default = || self.unit().class(class)?.constants.get(&name).cloned();
            let item = match value {
                Some(value) => Some(self.constant_expr(file, value, Some(field))?),
                None => default(),
            };
            match item {
                Some(item) if self.definitions().is_subtype(item.ty(&ctx), field) => items.push(item),
                _ => return Ok(None),
            }
        }
        Ok(Some(Constant::Tuple(Arc::new(TupleConstant { ty, items }))))
    }

    /// Returns the default value `expr` of the parameter `name`, converted to the parameter's type `ty`.
    fn default_value(&mut self, file: &SourceFile, expr: &Expr, name: &str, ty: TypeId) -> Result<Constant> {
        let mutable = match expr {
            Expr::List(_) | Expr::ListComp(_) => Some("list"),
            Expr::Dict(_) | Expr::DictComp(_) => Some("dict"),
            _ => match self.definitions().bound_value(file, expr) {
                Some(Bound::Mutable(class, _)) => Some(*class),
                _ => None,
            },
        };
        if let (Some(class), true) = (mutable, file.rules.is_source()) {
            let message = format!(
                "Mutable default parameters are not supported because Python binds them to the function and they persist across function calls.\n As a workaround, make the default None and instantiate the default parameter within the body of the function. Found <class '{class}'> on parameter {name}"
            );
            return Err(file.error("default", message, expr).into());
        }
        let value = self.constant_expr(file, expr, Some(ty))?;
        let found = value.ty(self.ctx());
        // An archive's defaults were checked when it was written.
        if file.rules.is_written() && !self.definitions().is_subtype(found, ty) {
            let ty = display_type(self.ctx(), ty, TypeStyle::Annotation);
            let message = format!("Expected a default value of type {ty} on parameter \"{name}\".");
            return Err(file.error("default", message, expr).into());
        }
        Ok(value)
    }

    /// Returns the value of the constant called `name`, such as `CONSTANTS.c3`, `__torch__.m.Color.RED`, `torch.float32`, `math.pi`.
    fn named_constant(&mut self, file: &SourceFile, name: &str) -> Result<Option<Constant>> {
        if let Some(index) = name.strip_prefix("CONSTANTS.c") {
            let constant = index
                .parse::<usize>()
                .ok()
                .and_then(|index| self.definitions().constants.get(index));
            return Ok(constant.cloned());
        }
        if let Some(constant) = library_constant(name) {
            return Ok(Some(constant));
        }
        let Some((class, member)) = name.rsplit_once('.') else {
            return Ok(None);
        };
        let Some(Global::Type(ty)) = self.global_of(file, class)? else {
            return Ok(None);
        };
        let TypeKind::Enum(class) = self.ctx().type_kind(ty) else {
            return Ok(None);
        };
        let member = self.ctx().symbol(member);
        Ok(self
            .unit()
            .class(class)
            .and_then(|class| class.constants.get(&member))
            .cloned())
    }

    /// Returns the value of a parameter's default in a function that is compiled with Python's rules.
    fn python_default(&mut self, file: &SourceFile, expr: &Expr) -> Result<Constant> {
        match self.definitions().bound_value(file, expr) {
            Some(Bound::Constant(known)) => Ok(known.clone()),
            Some(Bound::Refused(error)) => Err(error.clone().into()),
            _ => self.constant_expr(file, expr, None),
        }
    }
}

impl<N: Annotations + ?Sized> Constants for N {}

/// Returns the constant converted to type `ty`, if Python makes no distinction between both types.
fn fitted(ctx: &Context, constant: Constant, ty: Option<TypeId>) -> Constant {
    let kind = ty.map(|ty| match ctx.type_kind(ty) {
        TypeKind::Optional(inner) => ctx.type_kind(inner),
        other => other,
    });
    match (kind, constant) {
        (Some(TypeKind::Float), Constant::Int(i)) => Constant::Float(i as f64),
        (Some(TypeKind::List(element)), constant) if constant.items().is_some() => {
            let items = constant.items().unwrap_or_default().to_vec();
            let items = items.into_iter().map(|item| fitted(ctx, item, Some(element)));
            Constant::list(element, items.collect())
        }
        (Some(TypeKind::Tuple(elements)), constant) if constant.items().is_some() => {
            let elements = ctx.types(elements).to_vec();
            let items = constant.items().unwrap_or_default().to_vec();
            if elements.len() != items.len() {
                return constant;
            }
            let items = items
                .into_iter()
                .zip(elements)
                .map(|(item, ty)| fitted(ctx, item, Some(ty)));
            Constant::tuple(ctx, items.collect())
        }
        (_, constant) => constant,
    }
}

/// Returns the value of a constant of a library module. For example, `torch.float32` is the dtype's number.
pub(crate) fn library_constant(name: &str) -> Option<Constant> {
    Some(match name {
        "math.pi" => Constant::Float(std::f64::consts::PI),
        "math.e" => Constant::Float(std::f64::consts::E),
        "math.tau" => Constant::Float(std::f64::consts::TAU),
        "math.inf" | "torch.inf" => Constant::Float(f64::INFINITY),
        "math.nan" | "torch.nan" => Constant::Float(f64::NAN),
        "torch.pi" => Constant::Float(std::f64::consts::PI),
        "torch.strided" | "torch.contiguous_format" => Constant::Int(0),
        "torch.preserve_format" => Constant::Int(1),
        "torch.channels_last" => Constant::Int(2),
        "torch.channels_last_3d" => Constant::Int(3),
        _ => Constant::Int(DType::from_python_name(name.strip_prefix("torch.")?)?.code()),
    })
}
