//! The list of the passes of this crate.

use crate::pass::TorchScript;
use crate::registry::PassInfo;
use frazil_pass_manager::StandardPasses;

static PASSES: &[&PassInfo] = &[
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
];

impl StandardPasses for TorchScript {
    fn passes() -> &'static [&'static PassInfo] {
        PASSES
    }
}

#[cfg(test)]
mod tests {
    use crate::PassRegistry;

    #[test]
    fn declarations_are_complete() {
        for info in PassRegistry::standard().passes() {
            assert!(
                info.name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            );
            assert!(!info.summary.is_empty() && info.summary.ends_with('.'), "{}", info.name);
            assert!(!info.before.is_empty() && !info.after.is_empty(), "{}", info.name);
            let defaults = info.default_options();
            for option in info.options {
                assert!(
                    defaults.get(option.name).is_some(),
                    "the default of {} of {} does not parse",
                    option.name,
                    info.name
                );
            }
            let _ = info.build(&defaults);
        }
    }
}
