//! The aten dialect: tensor operators, each defined once.

use frazil_runtime::Registry;

/// Adds the dialect's schemas and entries.
pub fn register(registry: &mut Registry) {
    registry.add_schemas(include_str!("schemas/aten.txt"));
}
