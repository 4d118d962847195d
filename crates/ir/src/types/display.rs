//! The text of types: the form in graphs (`int[]`, `Tensor?`), its lossless variant, and the form of annotations (`List[int]`).
//!
//! In PyTorch, types inside dictionaries and unions have another form than elsewhere. `Future[Tensor]` becomes `Future(Tensor)`, a NamedTuple becomes its
//! qualified name, and a tensor loses its refinement. [`TypeStyle::Ir`] does the same.

use super::{Dim, TensorType, TypeKind};
use crate::stack::with_stack;
use crate::{Context, DimsId, TypeId, types};
use std::fmt;

/// The notation in which a type is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeStyle {
    /// As in PyTorch's graphs: `int[]`, `Tensor?`, `Float(2, 3)`. Names of NamedTuples, interfaces and functions are lost.
    Ir,
    /// Lossless: as in graphs, but with qualified names of NamedTuples and interfaces, and `Function<name>` for
    /// functions.
    Exact,
    /// As in PyTorch's declarations of arguments: `__torch__.Pair?`, `Future(int)`, and tensors without refinement.
    Declared,
    /// As in source annotations: `List[int]`, `Optional[Tensor]`, `Tensor`.
    Annotation,
}

/// Returns the printed form of `ty`.
pub fn display_type(ctx: &Context, ty: TypeId, style: TypeStyle) -> impl fmt::Display + '_ {
    fmt::from_fn(move |f| match style {
        TypeStyle::Ir => ir(ctx, ty, f),
        TypeStyle::Exact => exact(ctx, ty, f),
        TypeStyle::Declared => inner(ctx, ty, f),
        TypeStyle::Annotation => annotation(ctx, ty, f),
    })
}

impl Context {
    /// Returns the type as printed graphs show it.
    pub fn show_type(&self, ty: TypeId) -> impl fmt::Display + '_ {
        display_type(self, ty, TypeStyle::Ir)
    }
}

type Out<'a, 'b> = &'a mut fmt::Formatter<'b>;
type Printer = fn(&Context, TypeId, Out<'_, '_>) -> fmt::Result;

fn list(ctx: &Context, types: &[TypeId], print: Printer, f: Out<'_, '_>) -> fmt::Result {
    for (i, &ty) in types.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        deeper(ctx, ty, print, f)?;
    }
    Ok(())
}

/// Prints a component type, one nesting level further.
fn deeper(ctx: &Context, ty: TypeId, print: Printer, f: Out<'_, '_>) -> fmt::Result {
    with_stack(|| print(ctx, ty, f))
}

fn bracketed(ctx: &Context, [open, close]: [&str; 2], types: &[TypeId], print: Printer, f: Out<'_, '_>) -> fmt::Result {
    f.write_str(open)?;
    list(ctx, types, print, f)?;
    f.write_str(close)
}

/// Prints the type of a value as PyTorch does in graphs.
fn ir(ctx: &Context, ty: TypeId, f: Out<'_, '_>) -> fmt::Result {
    match ctx.type_kind(ty) {
        TypeKind::Tensor(t) => tensor(ctx, &t, f),
        TypeKind::Future(e) => bracketed(ctx, ["Future[", "]"], &[e], ir, f),
        TypeKind::RRef(e) => bracketed(ctx, ["RRef[", "]"], &[e], ir, f),
        TypeKind::NamedTuple(_, names, types) => {
            f.write_str("NamedTuple(")?;
            for (i, (&name, &ty)) in ctx.symbols(names).iter().zip(ctx.types(types)).enumerate() {
                if i > 0 {
                    f.write_str(", ")?;
                }
                write!(f, "{} : ", ctx.name(name))?;
                deeper(ctx, ty, ir, f)?;
            }
            f.write_str(")")
        }
        _ => structured(ctx, ty, f, ir, inner),
    }
}

/// Prints a type inside a dictionary or a union as PyTorch does.
fn inner(ctx: &Context, ty: TypeId, f: Out<'_, '_>) -> fmt::Result {
    match ctx.type_kind(ty) {
        TypeKind::Future(e) => bracketed(ctx, ["Future(", ")"], &[e], inner, f),
        TypeKind::RRef(e) => bracketed(ctx, ["RRef(", ")"], &[e], inner, f),
        _ => structured(ctx, ty, f, inner, inner),
    }
}

fn exact(ctx: &Context, ty: TypeId, f: Out<'_, '_>) -> fmt::Result {
    match ctx.type_kind(ty) {
        TypeKind::Tensor(t) => tensor(ctx, &t, f),
        TypeKind::Future(e) => bracketed(ctx, ["Future[", "]"], &[e], exact, f),
        TypeKind::RRef(e) => bracketed(ctx, ["RRef[", "]"], &[e], exact, f),
        TypeKind::Interface(name) => f.write_str(ctx.name(name)),
        TypeKind::Function(name) if name != crate::symbols::EMPTY => write!(f, "Function<{}>", ctx.name(name)),
        _ => structured(ctx, ty, f, exact, exact),
    }
}

/// Prints the types with the same structure in both graph styles. `element` prints the components of lists, optionals and tuples, `inner` all other
/// components.
fn structured(ctx: &Context, ty: TypeId, f: Out<'_, '_>, element: Printer, inner: Printer) -> fmt::Result {
    match ctx.type_kind(ty) {
        TypeKind::Number => f.write_str("Scalar"),
        TypeKind::Optional(e) => {
            deeper(ctx, e, element, f)?;
            f.write_str("?")
        }
        TypeKind::List(e) => {
            deeper(ctx, e, element, f)?;
            f.write_str("[]")
        }
        TypeKind::Tuple(es) => bracketed(ctx, ["(", ")"], ctx.types(es), element, f),
        TypeKind::Dict(k, v) => bracketed(ctx, ["Dict(", ")"], &[k, v], inner, f),
        TypeKind::Union(es) => bracketed(ctx, ["Union(", ")"], &union_members(ctx.types(es)), inner, f),
        TypeKind::Await(e) => bracketed(ctx, ["Await(", ")"], &[e], inner, f),
        TypeKind::Enum(name) => write!(f, "Enum<{}>", ctx.name(name)),
        TypeKind::Interface(name) => {
            let name = ctx.name(name);
            write!(f, "InterfaceType<{}>", name.rsplit('.').next().unwrap_or(name))
        }
        other => plain(ctx, other, f),
    }
}

/// Returns the members of a union as they are printed. If `int`, `float` and `complex` are all members, they are printed as one word at the end.
fn union_members(members: &[TypeId]) -> Vec<TypeId> {
    const NUMBERS: [TypeId; 3] = [types::INT, types::FLOAT, types::COMPLEX];
    if !NUMBERS.iter().all(|number| members.contains(number)) {
        return members.to_vec();
    }
    let others = members.iter().copied().filter(|member| !NUMBERS.contains(member));
    others.chain([types::NUMBER]).collect()
}

/// Prints a type whose notation is the same in all styles.
fn plain(ctx: &Context, kind: TypeKind, f: Out<'_, '_>) -> fmt::Result {
    f.write_str(match kind {
        TypeKind::Any => "Any",
        TypeKind::Int => "int",
        TypeKind::Float => "float",
        TypeKind::Bool => "bool",
        TypeKind::Complex => "complex",
        TypeKind::Number => "number",
        TypeKind::Str => "str",
        TypeKind::None => "NoneType",
        TypeKind::Device => "Device",
        TypeKind::Generator => "Generator",
        TypeKind::Stream => "Stream",
        TypeKind::Storage => "Storage",
        TypeKind::QScheme => "QScheme",
        TypeKind::Function(_) => "Function",
        TypeKind::Capsule => "Capsule",
        TypeKind::AnyList => "list",
        TypeKind::AnyTuple => "tuple",
        TypeKind::AnyClass => "AnyClassType",
        TypeKind::AnyEnum => "AnyEnumType",
        TypeKind::Class(name) | TypeKind::Interface(name) | TypeKind::Enum(name) | TypeKind::Var(name) => {
            ctx.name(name)
        }
        TypeKind::NamedTuple(name, ..) => ctx.name(name),
        // The two styles print structured types themselves.
        TypeKind::Tensor(_) => "Tensor",
        TypeKind::Optional(_) => "Optional",
        TypeKind::List(_) => "List",
        TypeKind::Dict(..) => "Dict",
        TypeKind::Tuple(_) => "Tuple",
        TypeKind::Union(_) => "Union",
        TypeKind::Future(_) => "Future",
        TypeKind::Await(_) => "Await",
        TypeKind::RRef(_) => "RRef",
    })
}

fn annotation(ctx: &Context, ty: TypeId, f: Out<'_, '_>) -> fmt::Result {
    let kind = ctx.type_kind(ty);
    let arguments: &[TypeId] = match &kind {
        TypeKind::Optional(e) | TypeKind::List(e) | TypeKind::Future(e) | TypeKind::Await(e) | TypeKind::RRef(e) => {
            std::slice::from_ref(e)
        }
        TypeKind::Dict(k, v) => &[*k, *v],
        TypeKind::Tuple(es) if ctx.types(*es).is_empty() => return f.write_str("Tuple[()]"),
        TypeKind::Tuple(es) => ctx.types(*es),
        // Printed graphs do not contain the name, and an empty name is not an annotation.
        TypeKind::NamedTuple(crate::symbols::EMPTY, _, es) => {
            return bracketed(ctx, ["Tuple[", "]"], ctx.types(*es), annotation, f);
        }
        TypeKind::Union(es) => {
            return bracketed(ctx, ["Union[", "]"], &union_members(ctx.types(*es)), annotation, f);
        }
        _ => return plain(ctx, kind, f),
    };
    plain(ctx, kind, f)?;
    f.write_str("[")?;
    list(ctx, arguments, annotation, f)?;
    f.write_str("]")
}

/// Prints a tensor type as `torch/csrc/jit` does: `Tensor`, `Float(2, *, strides=[3, 1], requires_grad=0, device=cpu)`.
fn tensor(ctx: &Context, t: &TensorType, f: Out<'_, '_>) -> fmt::Result {
    match (t.dtype, t.sizes) {
        (None, _) => f.write_str("Tensor")?,
        (Some(d), Some(_)) => f.write_str(d.type_name())?,
        (Some(d), None) => write!(f, "{}Tensor", d.type_name())?,
    }
    let mut open = "(";
    if let Some(sizes) = t.sizes {
        f.write_str("(")?;
        open = ", ";
        if ctx.dims(sizes).is_empty() {
            open = "";
        }
        dims(ctx, sizes, f)?;
        if let Some(strides) = t.strides
            && !ctx.dims(sizes).is_empty()
            && ctx.dims(strides).len() == ctx.dims(sizes).len()
            && ctx.dims(strides).iter().all(|d| matches!(d, Dim::Known(_)))
        {
            write!(f, "{open}strides=[")?;
            dims(ctx, strides, f)?;
            f.write_str("]")?;
            open = ", ";
        }
    }
    if let Some(grad) = t.requires_grad {
        write!(f, "{open}requires_grad={}", u8::from(grad))?;
        open = ", ";
    }
    if let Some(device) = t.device {
        write!(f, "{open}device={device}")?;
        open = ", ";
    }
    if t.sizes.is_some() || open == ", " {
        f.write_str(")")?;
    }
    f.write_str(if t.undefined == Some(true) { "[Undefined]" } else { "" })
}

fn dims(ctx: &Context, list: DimsId, f: Out<'_, '_>) -> fmt::Result {
    for (i, dim) in ctx.dims(list).iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        match dim {
            Dim::Unknown => f.write_str("*")?,
            Dim::Known(n) => write!(f, "{n}")?,
            Dim::Symbolic(n) => write!(f, "SS({n})")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Device};

    #[test]
    fn types_print_as_pytorch_prints_them() {
        let ctx = Context::new();
        let show = |ty| ctx.show_type(ty).to_string();
        assert_eq!(show(types::TENSOR), "Tensor");
        assert_eq!(show(ctx.list_of(types::INT)), "int[]");
        assert_eq!(show(ctx.optional_of(ctx.list_of(types::TENSOR))), "Tensor[]?");
        assert_eq!(show(ctx.dict_of(types::STR, types::TENSOR)), "Dict(str, Tensor)");
        assert_eq!(show(ctx.tuple_of(&[types::TENSOR, types::FLOAT])), "(Tensor, float)");
        assert_eq!(
            show(ctx.tensor_of(DType::Float, &[2, 3], &[3, 1], false)),
            "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"
        );
        let known = TensorType {
            dtype: Some(DType::Float),
            device: Some(Device::CPU),
            ..TensorType::ANY
        };
        let ranked = TensorType {
            sizes: Some(ctx.dim_list(&[Dim::Unknown, Dim::Known(4)])),
            ..known
        };
        assert_eq!(
            show(ctx.type_of_kind(TypeKind::Tensor(ranked))),
            "Float(*, 4, device=cpu)"
        );
        let point = ctx.type_of_kind(TypeKind::NamedTuple(
            ctx.symbol("__torch__.P"),
            ctx.symbol_list(&[ctx.symbol("x")]),
            ctx.type_list(&[types::INT]),
        ));
        assert_eq!(show(ctx.list_of(point)), "NamedTuple(x : int)[]");
        assert_eq!(show(ctx.dict_of(types::INT, point)), "Dict(int, __torch__.P)");
        let future = ctx.type_of_kind(TypeKind::Future(types::TENSOR));
        assert_eq!(show(future), "Future[Tensor]");
        assert_eq!(show(ctx.dict_of(types::STR, future)), "Dict(str, Future(Tensor))");
        let interface = ctx.type_of_kind(TypeKind::Interface(ctx.symbol("__torch__.m.I")));
        assert_eq!(show(interface), "InterfaceType<I>");
        let exact = |ty| display_type(&ctx, ty, TypeStyle::Exact).to_string();
        assert_eq!(exact(ctx.list_of(point)), "__torch__.P[]");
        assert_eq!(exact(interface), "__torch__.m.I");
        let zero = ctx.tensor_of(DType::Long, &[], &[], false);
        assert_eq!(show(zero), "Long(requires_grad=0, device=cpu)");
    }

    #[test]
    fn annotations_are_python() {
        let ctx = Context::new();
        let show = |ty| display_type(&ctx, ty, TypeStyle::Annotation).to_string();
        let nested = ctx.dict_of(types::STR, ctx.list_of(ctx.optional_of(types::INT)));
        assert_eq!(show(nested), "Dict[str, List[Optional[int]]]");
        assert_eq!(show(ctx.tuple_of(&[])), "Tuple[()]");
        let union = |members| show(ctx.type_of_kind(TypeKind::Union(ctx.type_list(members))));
        assert_eq!(union(&[types::INT, types::STR]), "Union[int, str]");
        assert_eq!(
            union(&[types::INT, types::STR, types::FLOAT, types::COMPLEX]),
            "Union[str, number]"
        );
        assert_eq!(show(ctx.tensor_of(DType::Float, &[1], &[1], false)), "Tensor");
    }
}
