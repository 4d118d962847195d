//! Printing of values: attributes of nodes, slots of objects, defaults of arguments.

use super::tensor;
use crate::parse::value::fit_scalar;
use frazil_ir::literal::{self, quoted};
use frazil_ir::nesting::with_stack;
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{AttributeValue, Constant, Context, TensorData, TypeId, TypeKind};
use num_complex::Complex64;
use std::fmt::Write;
use std::sync::Arc;

/// The notation in which values are printed.
pub(crate) trait Style {
    /// Returns the notation of types in graphs.
    fn types(&self) -> TypeStyle;
    /// Returns the notation of types in annotations of values.
    fn annotations(&self) -> TypeStyle;
    /// Returns true if values must be read back unchanged.
    fn is_exact(&self) -> bool;
    /// Appends the text of a tensor.
    fn tensor(&self, t: &Arc<TensorData>, out: &mut String);
    /// Appends a reference to a shared list, dictionary or tuple. Returns false if it is not shared.
    fn shared(&self, constant: &Constant, out: &mut String) -> bool;
}

/// The notation that PyTorch prints.
#[derive(Default)]
pub(crate) struct Plain {
    /// Maximum number of elements of printed tensors. PyTorch's own limit applies, too.
    pub(crate) elide: Option<usize>,
}

impl Style for Plain {
    fn types(&self) -> TypeStyle {
        TypeStyle::Ir
    }

    fn annotations(&self) -> TypeStyle {
        TypeStyle::Annotation
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn tensor(&self, t: &Arc<TensorData>, out: &mut String) {
        let numel = t.sizes.iter().fold(1_i64, |n, size| n.saturating_mul(*size));
        let shown = match self.elide {
            Some(limit) if usize::try_from(numel).is_ok_and(|n| n > limit) => None,
            _ => tensor::show(t),
        };
        out.push_str(shown.as_deref().unwrap_or("<Tensor>"));
    }

    fn shared(&self, _: &Constant, _: &mut String) -> bool {
        false
    }
}

/// Appends the text of an attribute's value.
pub(crate) fn attribute(
    ctx: &Context,
    value: &AttributeValue,
    style: &dyn Style,
    wanted: Option<TypeId>,
    out: &mut String,
) {
    let values = Values { ctx, style };
    match value {
        // PyTorch stores these as integers and strings outside of containers.
        AttributeValue::Constant(Constant::Bool(b)) if !style.is_exact() => out.push(if *b { '1' } else { '0' }),
        AttributeValue::Constant(Constant::Device(d)) if !style.is_exact() => {
            let _ = write!(out, "\"{d}\"");
        }
        AttributeValue::Constant(c) => values.constant(c, wanted, out),
        AttributeValue::Type(ty) => {
            let _ = write!(out, "{}", display_type(ctx, *ty, style.types()));
        }
        AttributeValue::Types(types) => {
            out.push_str(if types.is_empty() && style.is_exact() {
                "types["
            } else {
                "["
            });
            for (i, ty) in types.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                let _ = write!(out, "{comma}{}", display_type(ctx, *ty, style.types()));
            }
            out.push(']');
        }
        AttributeValue::Graph(_) => out.push_str("<Graph>"),
        AttributeValue::Graphs(_) => out.push_str("[<Graphs>]"),
        AttributeValue::Elided(text) => out.push_str(text),
    }
}

/// Appends the text of a constant for which the reader expects the type `wanted`.
pub(crate) fn constant(ctx: &Context, value: &Constant, style: &dyn Style, wanted: Option<TypeId>, out: &mut String) {
    Values { ctx, style }.constant(value, wanted, out);
}

/// Appends the content of a shared list, dictionary or tuple of type `ty`.
pub(crate) fn definition(ctx: &Context, value: &Constant, style: &dyn Style, ty: TypeId, out: &mut String) {
    Values { ctx, style }.compound(value, Some(ty), out);
}

struct Values<'a> {
    ctx: &'a Context,
    style: &'a dyn Style,
}

impl Values<'_> {
    fn constant(&self, value: &Constant, wanted: Option<TypeId>, out: &mut String) {
        // A scalar that would be read as another type.
        if self.style.is_exact()
            && let Some(ty) = wanted
            && fit_scalar(self.ctx, value, ty).is_some()
        {
            let _ = write!(
                out,
                "annotate({}, ",
                display_type(self.ctx, value.ty(self.ctx), TypeStyle::Exact)
            );
            self.constant(value, None, out);
            out.push(')');
            return;
        }
        match value {
            Constant::None => out.push_str("None"),
            Constant::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
            Constant::Int(i) => literal::integer(*i, out),
            Constant::Float(f) => self.float(*f, out),
            Constant::Complex(c) => self.complex(*c, out),
            Constant::Str(text) => quoted(text, self.style.is_exact(), out),
            Constant::Device(d) => {
                let _ = write!(out, "torch.device(\"{d}\")");
            }
            Constant::Tensor(t) => self.style.tensor(t, out),
            Constant::Enum(e) => {
                let _ = write!(out, "{}.{}", self.ctx.name(e.class), e.name);
            }
            Constant::Function(name) => {
                let _ = write!(out, "function<{}>", self.ctx.name(*name));
            }
            Constant::Object(id) => {
                let _ = write!(out, "object<{}>", id.as_u32());
            }
            compound if self.style.shared(compound, out) => {}
            compound => with_stack(|| self.compound(compound, wanted, out)),
        }
    }

    /// Appends a list, dictionary or tuple, with an annotation if the reader could not infer its type.
    fn compound(&self, value: &Constant, wanted: Option<TypeId>, out: &mut String) {
        let ty = value.ty(self.ctx);
        let wanted = wanted.map(|w| match self.ctx.type_kind(w) {
            TypeKind::Optional(e) => e,
            _ => w,
        });
        let annotate = if self.style.is_exact() {
            wanted != Some(ty)
        } else {
            self.pytorch_annotates(value)
        };
        if annotate {
            let _ = write!(
                out,
                "annotate({}, ",
                display_type(self.ctx, ty, self.style.annotations())
            );
        }
        let child = |ty| self.style.is_exact().then_some(ty);
        match value {
            // PyTorch does not print the elements of lists of tensors. An empty list of unknown type need not be one.
            Constant::List(l)
                if !self.style.is_exact()
                    && self.ctx.is_tensor(l.element)
                    && (wanted.is_some() || !l.items.is_empty()) =>
            {
                out.push_str("[<Tensors>]");
            }
            Constant::List(l) => self.items("[", "]", &l.items, &|_| child(l.element), out),
            Constant::Tuple(t) => {
                let elements = match self.ctx.type_kind(t.ty) {
                    TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es) => self.ctx.types(es),
                    _ => &[],
                };
                let wanted = |i: usize| elements.get(i).copied().and_then(child);
                self.items("(", if t.items.len() == 1 { ",)" } else { ")" }, &t.items, &wanted, out);
            }
            Constant::Dict(d) => {
                // PyTorch writes no space after the comma of a dictionary's annotation.
                if annotate && !self.style.is_exact() {
                    out.pop();
                }
                out.push('{');
                for (i, (k, v)) in d.entries.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    self.constant(k, child(d.key), out);
                    out.push_str(": ");
                    self.constant(v, child(d.value), out);
                }
                out.push('}');
            }
            _ => {}
        }
        if annotate {
            out.push(')');
        }
    }

    /// Returns whether PyTorch annotates the value: empty containers, and lists of optional or mixed types.
    fn pytorch_annotates(&self, value: &Constant) -> bool {
        match value {
            Constant::List(l) if self.ctx.is_tensor(l.element) => false,
            Constant::List(l) => l.items.is_empty() || self.is_vague(l.element),
            Constant::Dict(d) => d.entries.is_empty() || self.is_vague(d.value),
            _ => false,
        }
    }

    /// Returns whether `ty` cannot be inferred from the elements of a value.
    fn is_vague(&self, ty: TypeId) -> bool {
        matches!(
            self.ctx.type_kind(ty),
            TypeKind::Optional(_) | TypeKind::Union(_) | TypeKind::Any | TypeKind::Interface(_)
        )
    }

    fn items(
        &self,
        open: &str,
        close: &str,
        items: &[Constant],
        wanted: &dyn Fn(usize) -> Option<TypeId>,
        out: &mut String,
    ) {
        out.push_str(open);
        for (i, item) in items.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            self.constant(item, wanted(i), out);
        }
        out.push_str(close);
    }

    fn float(&self, value: f64, out: &mut String) {
        if self.style.is_exact() {
            literal::exact_double(value, out);
        } else {
            literal::double(value, out);
        }
    }

    fn complex(&self, value: Complex64, out: &mut String) {
        self.float(value.re, out);
        let negative = value.im.is_sign_negative() && (self.style.is_exact() || value.im != 0.0);
        out.push(if negative { '-' } else { '+' });
        self.float(value.im.abs(), out);
        out.push('j');
    }
}
