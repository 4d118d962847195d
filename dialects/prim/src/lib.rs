//! The prim dialect: constants, containers, attributes and queries.
//!
//! Nodes that need the interpreter itself (control flow, calls, attributes of objects, exceptions) are in
//! `frazil_runtime::interp`; everything here is a function on values.

mod containers;
mod numbers;
mod on_values;
mod queries;

use frazil_runtime::Registry;

/// The schemas of PyTorch's operators.
const CATALOGUE: &str = include_str!("schemas.txt");

/// Schemas of the operators that PyTorch checks by hand and that are not in its catalogue.
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

/// Registers the schemas and entries of this dialect.
pub fn register(registry: &mut Registry) {
    registry.add_tested_schemas(CATALOGUE);
    registry.add_tested_schemas(STRUCTURAL);
    on_values::register(registry);
    for table in [containers::ENTRIES, numbers::ENTRIES, queries::ENTRIES] {
        registry.register_all(table);
    }
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
