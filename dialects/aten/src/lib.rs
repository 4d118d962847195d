//! The aten dialect: tensor operators, each defined once.
//!
//! Entries stand in table files, one family a file; `frazil_runtime::op` says what an entry is and what follows from it.

mod composite;
mod tensor;

use frazil_runtime::Registry;

/// The schemas of PyTorch's catalogue, by namespace.
const CATALOGUE: [&str; 5] = [
    include_str!("schemas/aten.txt"),
    include_str!("schemas/prims.txt"),
    include_str!("schemas/quantized.txt"),
    include_str!("schemas/torchvision.txt"),
    // What is left: profiling, collectives, backends.
    include_str!("schemas/others.txt"),
];

/// Adds the dialect's schemas and entries.
pub fn register(registry: &mut Registry) {
    for schemas in CATALOGUE {
        registry.add_tested_schemas(schemas);
    }
    tensor::register(registry);
    composite::register(registry);
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

    #[test]
    fn every_source_compiles() {
        let mut registry = Registry::new(Arc::new(frazil_ir::Context::new()));
        register(&mut registry);
        frazil_prim::register(&mut registry);
        registry.check_composites().expect("sources compile");
    }

    /// Entries are found by name; a misspelt one would never be used.
    #[test]
    fn every_entry_has_a_schema() {
        let mut registry = Registry::new(Arc::new(frazil_ir::Context::new()));
        register(&mut registry);
        // What passes make of tensor operators has its schemas there.
        frazil_prim::register(&mut registry);
        let known = |name: &str| {
            let (operator, overload) = match name.rsplit_once('.') {
                Some((operator, overload)) => (operator, Some(overload)),
                None => (name, None),
            };
            let Some(symbol) = registry.ctx().find_symbol(operator) else {
                return false;
            };
            match overload {
                Some(overload) => registry.catalogue().get(symbol, overload).is_some(),
                None => registry.catalogue().contains(symbol),
            }
        };
        let names = registry
            .entries()
            .map(|(n, _)| n)
            .chain(registry.host_operators())
            .chain(registry.composite_operators())
            .chain(registry.alias_names());
        let unknown: Vec<&str> = names.filter(|n| !known(n)).collect();
        assert!(unknown.is_empty(), "no schema for {unknown:?}");
    }
}
