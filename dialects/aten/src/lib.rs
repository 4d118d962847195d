//! The aten dialect: tensor operators, each defined once.
//!
//! Entries are in table files, one family per file; `frazil_runtime::op` describes entries and the functions derived from them.

mod composite;
mod tensor;

use frazil_runtime::Registry;

/// The schemas of PyTorch's operators, one text for each namespace.
const CATALOGUE: [&str; 5] = [
    include_str!("schemas/aten.txt"),
    include_str!("schemas/prims.txt"),
    include_str!("schemas/quantized.txt"),
    include_str!("schemas/torchvision.txt"),
    // All other schemas: profiling, collectives, backends.
    include_str!("schemas/others.txt"),
];

/// Registers the schemas and entries of this dialect.
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
    use frazil_ir::schema::{Determinism, FunctionSchema};
    use frazil_runtime::Entry;
    use frazil_runtime::entry::Role;
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

    fn full() -> Registry {
        let mut registry = Registry::new(Arc::new(frazil_ir::Context::new()));
        register(&mut registry);
        // Passes turn tensor operators into operators whose schemas are there.
        frazil_prim::register(&mut registry);
        registry
    }

    /// Returns the operator and, if the row's name has one, the overload to which the row applies.
    fn parts(name: &str) -> (&str, Option<&str>) {
        match name.split_once('.') {
            Some((operator, overload)) => (operator, Some(overload)),
            None => (name, None),
        }
    }

    fn is_known(registry: &Registry, name: &str) -> bool {
        let (operator, overload) = parts(name);
        let Some(symbol) = registry.ctx().find_symbol(operator) else {
            return false;
        };
        match overload {
            Some(overload) => registry.catalogue().get(symbol, overload).is_some(),
            None => registry.catalogue().contains(symbol),
        }
    }

    /// Entries are looked up by name, so a misspelt one would never be used.
    #[test]
    fn every_name_has_a_schema() {
        let registry = full();
        let aliases = registry.entries().flat_map(|(_, e)| e.alias_names());
        let names = registry.entries().map(|(n, _)| n).chain(aliases.map(|(n, _)| *n));
        let unknown: Vec<&str> = names.filter(|n| !is_known(&registry, n)).collect();
        assert!(unknown.is_empty(), "no schema for {unknown:?}");
    }

    /// Checks that every entry with properties of semantics belongs to an operator that has semantics: in this row, in the operator's row, or in source.
    #[test]
    fn every_fact_belongs_to_semantics() {
        let registry = full();
        let mut without = Vec::new();
        for (name, entry) in registry.entries() {
            if entry.traits() == Entry::new().traits() && !entry.is_eager() && entry.alias_names().is_empty() {
                continue;
            }
            let (operator, overload) = parts(name);
            let symbol = registry.ctx().symbol(operator);
            let overloads = registry.catalogue().overloads(symbol);
            let mut of_row = overloads.filter(|s| overload.is_none_or(|o| registry.ctx().name(s.overload) == o));
            if !of_row.any(|schema| registry.operator_of(schema).is_some()) {
                without.push(name);
            }
        }
        assert!(without.is_empty(), "no semantics for {without:?}");
    }

    #[test]
    fn names_within_facts_resolve() {
        let registry = full();
        for (name, entry) in registry.entries() {
            let (operator, overload) = parts(name);
            let traits = entry.traits();
            if let Some(variant) = traits.tensor_variant {
                let found = registry.find(variant.operator, variant.overload);
                assert!(found.is_some(), "{name}: {variant:?}");
            }
            if let Some(variant) = traits.scalar_variant {
                let [own, other] = [overload.unwrap_or_default(), variant.overload].map(|o| registry.find(operator, o));
                let (own, other) = (own.expect("an overload"), other.expect("an overload"));
                let [own, other] = [&own, &other].map(|op| &op.schema().arguments);
                assert_eq!(own.len(), other.len(), "{name}");
                assert_ne!(own[variant.position].ty, frazil_ir::types::TENSOR, "{name}");
                assert_eq!(other[variant.position].ty, frazil_ir::types::TENSOR, "{name}");
            }
            if let Determinism::RandomIf(switch) = entry.properties().determinism {
                let symbol = registry.ctx().symbol(operator);
                let mut overloads = registry.catalogue().overloads(symbol);
                let has = |s: &FunctionSchema| s.argument(registry.ctx().symbol(switch)).is_some();
                assert!(overloads.any(|s| has(&s)), "{name} has no argument '{switch}'");
            }
        }
        for role in [
            Role::Item,
            Role::TensorOf,
            Role::Select,
            Role::Index,
            Role::Stack,
            Role::Concat,
        ] {
            assert!(registry.with_role(role).is_some(), "{role:?}");
        }
    }

    /// A second row for a name would override the first one. Rows on values are in the other dialect.
    #[test]
    fn rows_are_unique() {
        let mut names: Vec<&str> = tensor::rows().chain(composite::ENTRIES).map(|(n, _)| *n).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// An alias with a row of its own would hide the row of its operator.
    #[test]
    fn aliases_are_no_rows_unless_their_arguments_differ() {
        let registry = full();
        let rows: Vec<&str> = registry.entries().map(|(n, _)| parts(n).0).collect();
        let aliases = registry.entries().flat_map(|(_, e)| e.alias_names());
        let both: Vec<&str> = aliases.map(|(n, _)| *n).filter(|n| rows.contains(n)).collect();
        // Their arguments are called `axis0` and `axis1`.
        assert_eq!(both, ["aten::swapaxes"]);
    }
}
