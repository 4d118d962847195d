//! The prim dialect: constants, containers, attributes and queries.
//!
//! What needs the interpreter itself (control flow, calls, attributes of objects, exceptions) lives in
//! `frazil_runtime::interp`; everything here is a function on values.

mod containers;
mod host;
mod numbers;
mod queries;

use frazil_runtime::Registry;

/// The schemas of PyTorch's catalogue.
const CATALOGUE: &str = include_str!("schemas.txt");

/// Schemas of the operators that PyTorch checks by hand and whose catalogue has no line for them.
const STRUCTURAL: &str = "\
prim::Constant() -> ...
prim::If(bool cond) -> ...
prim::Loop(int max_trip_count, bool cond, ...) -> ...
prim::GetAttr(AnyClassType self) -> Any
prim::CallMethod(AnyClassType self, ...) -> ...
prim::CallFunction(...) -> ...
prim::fork(...) -> ...
prim::isinstance(Any self) -> bool
prim::ListConstruct(...) -> ...
prim::ListUnpack(...) -> ...
prim::TupleConstruct(...) -> ...
prim::TupleSlice(...) -> ...
prim::DictConstruct(...) -> ...
";

/// Adds the dialect's schemas and entries.
pub fn register(registry: &mut Registry) {
    registry.add_tested_schemas(CATALOGUE);
    registry.add_tested_schemas(STRUCTURAL);
    host::register(registry);
    registry.kernels(containers::KERNELS);
    registry.kernels(queries::KERNELS);
    registry.kernels(numbers::KERNELS);
    registry.fixed_sizes(queries::FIXED_SIZES);
    registry.pointwise("prim::abs", numbers::ABS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn every_schema_parses() {
        let mut registry = Registry::new(Arc::new(frazil_ir::Context::new()));
        register(&mut registry);
        registry.catalogue().check().expect("all lines parse");
    }
}
