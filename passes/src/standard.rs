//! The list of the standard passes, those of this crate.

use crate::registry::PassRegistry;

impl PassRegistry {
    /// Returns a registry with the standard passes, those of this crate.
    pub fn standard() -> PassRegistry {
        let mut registry = PassRegistry::new();
        for info in [
            &crate::inline::INFO,
            &crate::freeze::INFO,
            &crate::optimize_frozen_graph::INFO,
            &crate::remove_dropout::INFO,
            &crate::eliminate_no_ops::INFO,
            &crate::concat_frozen_linear::INFO,
            &crate::fold_frozen_conv_bn::INFO,
            &crate::fold_frozen_conv_add_or_sub::INFO,
            &crate::fold_frozen_conv_mul_or_div::INFO,
            &crate::fold_frozen_linear_bn::INFO,
            &crate::optimize_for_inference::INFO,
            &crate::fuse_frozen_conv_add_relu::INFO,
            &crate::transpose_frozen_linear::INFO,
            &crate::constant_propagation::INFO,
            &crate::constant_propagation::IMMUTABLE,
            &crate::constant_pooling::INFO,
            &crate::peephole::INFO,
            &crate::propagate_shapes::INFO,
            &crate::cse::INFO,
            &crate::dce::INFO,
            &crate::peephole_list_idioms::INFO,
            &crate::peephole_dict_idioms::INFO,
            &crate::peephole_alias_sensitive::INFO,
            &crate::peephole_non_tensor::INFO,
            &crate::combine_concats::INFO,
            &crate::eliminate_concat_common_inputs::INFO,
            &crate::remove_mutation::INFO,
            &crate::remove_list_mutation::INFO,
            &crate::remove_tensor_mutation::INFO,
            &crate::remove_inplace_ops::INFO,
            &crate::loop_unrolling::INFO,
            &crate::constant_loop_unrolling::INFO,
            &crate::peel_loops::INFO,
            &crate::hoist_loop_invariants::INFO,
            &crate::refine_integer_values::INFO,
            &crate::lower_simple_tuples::INFO,
            &crate::lower_all_tuples::INFO,
            &crate::refine_tuple_types::INFO,
            &crate::inline_fork_wait::INFO,
            &crate::create_functional_graphs::INFO,
            &crate::inline_functional_graphs::INFO,
            &crate::batch_mm::INFO,
            &crate::fuse_linear::INFO,
            &crate::fuse_addmm::INFO,
            &crate::fuse_add_relu::INFO,
            &crate::decompose_ops::INFO,
            &crate::functional_to_inplace_activation::INFO,
            &crate::inplace_to_functional_activation::INFO,
            &crate::rewrite_patterns::INFO,
            &crate::use_variadic_op::INFO,
            &crate::normalize_ops::INFO,
            &crate::canonicalize::INFO,
            &crate::remove_exceptions::INFO,
            &crate::remove_expands::INFO,
            &crate::erase_shape_information::INFO,
            &crate::clear_profiling_information::INFO,
            &crate::clear_undefinedness::INFO,
            &crate::use_variadic_op::CAT,
            &crate::use_variadic_op::STACK,
            &crate::use_variadic_op::REMOVE_AND_CAT,
            &crate::use_variadic_op::REMOVE_AND_STACK,
        ] {
            registry.add(info);
        }
        registry
    }
}
