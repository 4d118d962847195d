//! Operators on scalars, strings and containers: functions on values.
//!
//! Where TorchScript's runtime differs from Python (byte strings, `1 / 0`, `str(1.0)`), these follow the runtime, with which
//! programs were recorded. `tests/value_operators.rs` compares with it and lists the exceptions.

mod arithmetic;
mod dicts;
mod format;
mod hash;
mod lists;
mod math;
mod profiling;
mod queries;
mod slices;
mod strings;

use frazil_runtime::Registry;

/// Registers the operators on scalars, strings and containers.
pub(crate) fn register(registry: &mut Registry) {
    for table in [
        arithmetic::ENTRIES,
        math::ENTRIES,
        lists::ENTRIES,
        dicts::ENTRIES,
        strings::ENTRIES,
        format::ENTRIES,
        profiling::ENTRIES,
        queries::ENTRIES,
    ] {
        registry.register_all(table);
    }
}
