//! Signatures of the methods of classes that C++ code registers. Archives refer to such classes and do not define them.

use frazil_ir::schema::{Argument, FunctionSchema, parse_schema};
use frazil_ir::{Context, SymbolId, TypeId, TypeKind, symbols};

/// Prefix of the qualified names of classes that C++ code registers.
pub(crate) const FOREIGN_CLASSES: &str = "__torch__.torch.classes.";

/// For each class that PyTorch registers, the signatures (without the object) of the methods that modules call.
const METHODS: &[(&str, &[&str])] = &[
    (
        "quantized.LinearPackedParamsBase",
        &["unpack() -> ((Tensor, Tensor?))", "bias() -> Tensor?"],
    ),
    ("quantized.Conv2dPackedParamsBase", CONVOLUTION),
    ("quantized.Conv3dPackedParamsBase", CONVOLUTION),
    (
        "quantized.EmbeddingPackedParamsBase",
        &["unpack() -> Tensor", "bit_rate() -> int", "version() -> int"],
    ),
];

/// Returns the class of the packed weights of a quantised layer for the attribute `_packed_params`.
///
/// Archives of PyTorch 1.4 and before declare this attribute as a tensor, but use it as the class of later versions.
pub(crate) fn packed_parameters(ctx: &Context, layer: SymbolId, attribute: &str) -> Option<TypeId> {
    if attribute != "_packed_params" {
        return None;
    }
    let parts: Vec<&str> = ctx.name(layer).split('.').collect();
    let parts: Vec<&str> = parts
        .into_iter()
        .filter(|part| *part != "ao" && !part.starts_with("___torch_mangle_"))
        .collect();
    let class = match parts.join(".").strip_prefix("__torch__.torch.nn.")? {
        "quantized.modules.linear.LinearPackedParams"
        | "quantized.modules.linear.Linear"
        | "quantized.dynamic.modules.linear.Linear" => "Linear",
        "quantized.modules.conv.Conv2d" | "intrinsic.quantized.modules.conv_relu.ConvReLU2d" => "Conv2d",
        "quantized.modules.conv.Conv3d" | "intrinsic.quantized.modules.conv_relu.ConvReLU3d" => "Conv3d",
        _ => return None,
    };
    Some(ctx.class(&format!("{FOREIGN_CLASSES}quantized.{class}PackedParamsBase")))
}

const CONVOLUTION: &[&str] = &[
    "unpack() -> ((Tensor, Tensor?))",
    "weight() -> Tensor",
    "bias() -> Tensor?",
    "stride() -> int[]",
    "padding() -> int[]",
    "output_padding() -> int[]",
    "dilation() -> int[]",
    "groups() -> int",
    "transpose() -> bool",
];

/// Returns the signature of a method of a class that C++ code registers, including the object.
pub(crate) fn foreign_method(ctx: &Context, class: SymbolId, method: SymbolId) -> Option<FunctionSchema> {
    let name = ctx.name(class).strip_prefix(FOREIGN_CLASSES)?;
    let (_, methods) = METHODS.iter().find(|(known, _)| *known == name)?;
    let is_wanted = |text: &&&str| text.split('(').next() == Some(ctx.name(method));
    let mut schema = parse_schema(ctx, methods.iter().find(is_wanted)?).ok()?;
    let this = ctx.type_of_kind(TypeKind::Class(class));
    schema.arguments.insert(0, Argument::plain(symbols::SELF, this));
    Some(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_a_signature() {
        let ctx = Context::new();
        for (class, methods) in METHODS {
            let class = ctx.symbol(&format!("{FOREIGN_CLASSES}{class}"));
            for text in *methods {
                let method = ctx.symbol(text.split('(').next().unwrap());
                let schema = foreign_method(&ctx, class, method).unwrap();
                assert_eq!((schema.arguments.len(), schema.returns.len()), (1, 1), "{text}");
            }
            assert!(foreign_method(&ctx, class, ctx.symbol("other")).is_none());
        }
    }
}
