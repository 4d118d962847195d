//! Well-known names with fixed numbers, so that a node's kind is compared as an integer.

use crate::SymbolId;

macro_rules! well_known {
    ($($(#[$doc:meta])* $id:ident = $name:literal;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "variants are named as the constants they number")]
        enum Number { $($id,)* }
        $(
            #[doc = concat!("`", $name, "`")]
            pub const $id: SymbolId = SymbolId::well_known(Number::$id as u32);
        )*
        /// The well-known names in the order of their numbers.
        pub(crate) const WELL_KNOWN: &[&str] = &[$($name),*];
    };
}

well_known! {
    EMPTY = "";
    // prim: structure
    PRIM_PARAM = "prim::Param";
    PRIM_RETURN = "prim::Return";
    PRIM_CONSTANT = "prim::Constant";
    PRIM_IF = "prim::If";
    PRIM_LOOP = "prim::Loop";
    PRIM_GET_ATTR = "prim::GetAttr";
    PRIM_SET_ATTR = "prim::SetAttr";
    PRIM_CALL_METHOD = "prim::CallMethod";
    PRIM_CALL_FUNCTION = "prim::CallFunction";
    PRIM_CREATE_OBJECT = "prim::CreateObject";
    PRIM_RAISE_EXCEPTION = "prim::RaiseException";
    PRIM_PRINT = "prim::Print";
    PRIM_LIST_CONSTRUCT = "prim::ListConstruct";
    PRIM_LIST_UNPACK = "prim::ListUnpack";
    PRIM_TUPLE_CONSTRUCT = "prim::TupleConstruct";
    PRIM_TUPLE_UNPACK = "prim::TupleUnpack";
    PRIM_TUPLE_INDEX = "prim::TupleIndex";
    PRIM_TUPLE_SLICE = "prim::TupleSlice";
    PRIM_DICT_CONSTRUCT = "prim::DictConstruct";
    PRIM_UNCHECKED_CAST = "prim::unchecked_cast";
    PRIM_TENSOR_EXPR_GROUP = "prim::TensorExprGroup";
    PRIM_UNINITIALIZED = "prim::Uninitialized";
    PRIM_FORK = "prim::fork";
    PRIM_FORK_CLOSURE = "prim::forkClosure";
    PRIM_WAIT = "aten::wait";
    PRIM_ISINSTANCE = "prim::isinstance";
    PRIM_ENUM_NAME = "prim::EnumName";
    PRIM_ENUM_VALUE = "prim::EnumValue";
    PRIM_DTYPE = "prim::dtype";
    PRIM_DEVICE = "prim::device";
    PRIM_MODULE_CONTAINER_INDEX = "prim::ModuleContainerIndex";
    PRIM_DIFFERENTIABLE_GRAPH = "prim::DifferentiableGraph";
    PRIM_NUM_TO_TENSOR = "prim::NumToTensor";
    PRIM_ENTER = "prim::Enter";
    PRIM_EXIT = "prim::Exit";
    PRIM_FUNCTIONAL_GRAPH = "prim::FunctionalGraph";
    // attributes of nodes
    ATTR_VALUE = "value";
    ATTR_NAME = "name";
    ATTR_SUBGRAPH = "Subgraph";
    ATTR_TYPES = "types";
    // attributes of modules
    TRAINING = "training";
    FORWARD = "forward";
    SELF = "self";
    // aten operators that generic code handles
    ATEN_APPEND = "aten::append";
    ATEN_DROPOUT = "aten::dropout";
    ATEN_CONV1D = "aten::conv1d";
    ATEN_CONV2D = "aten::conv2d";
    ATEN_CONV3D = "aten::conv3d";
    ATEN_CONVOLUTION = "aten::_convolution";
    ATEN_BATCH_NORM = "aten::batch_norm";
    ATEN_WARN = "aten::warn";
    ATEN_FORMAT = "aten::format";
    // files of source ranges
    OF_TEXT = "<text>";
}

/// Returns whether `kind` is a structural node: control flow, constants, containers, attributes, calls. These neither read nor write elements of tensors.
pub fn is_structural(kind: SymbolId) -> bool {
    (Number::PRIM_PARAM as u32..=Number::PRIM_FUNCTIONAL_GRAPH as u32).contains(&kind.as_u32())
}

impl SymbolId {
    /// Returns the id that [`crate::Context::new`] assigns to the name at index `number` of the list above.
    const fn well_known(number: u32) -> SymbolId {
        SymbolId::new_const(number)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_what_a_context_gives() {
        let ctx = crate::Context::new();
        assert_eq!(ctx.name(super::PRIM_CONSTANT), "prim::Constant");
        assert_eq!(ctx.symbol("aten::format"), super::ATEN_FORMAT);
        assert_eq!(ctx.name(super::EMPTY), "");
        assert!(super::is_structural(super::PRIM_IF) && super::is_structural(super::PRIM_FUNCTIONAL_GRAPH));
        assert!(!super::is_structural(super::ATTR_VALUE) && !super::is_structural(super::EMPTY));
    }
}
