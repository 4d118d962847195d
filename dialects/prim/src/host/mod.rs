//! Operators on numbers, strings and containers: functions on values.
//!
//! Where TorchScript's runtime differs from Python (byte strings, `1 / 0`, `str(1.0)`), they do what the runtime does: programs
//! were recorded with it. `tests/host_operators.rs` compares with it and lists the exceptions.

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

/// Adds the host operators.
pub(crate) fn register(registry: &mut Registry) {
    for table in [
        arithmetic::HOST,
        math::HOST,
        lists::HOST,
        dicts::HOST,
        strings::HOST,
        format::HOST,
        profiling::HOST,
        queries::HOST,
    ] {
        registry.host(table);
    }
    registry.fixed_sizes(queries::FIXED_SIZES);
    for table in [dicts::KERNELS, lists::KERNELS, strings::KERNELS, queries::KERNELS] {
        registry.kernels(table);
    }
}
