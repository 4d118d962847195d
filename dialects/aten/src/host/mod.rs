//! Operators on numbers, strings and containers: functions on values.

mod arithmetic;
mod dicts;
mod lists;
mod queries;
mod strings;

use frazil_runtime::Registry;

/// Adds the host operators.
pub(crate) fn register(registry: &mut Registry) {
    registry.host(arithmetic::HOST);
    registry.host(lists::HOST);
    registry.host(dicts::HOST);
    registry.host(strings::HOST);
    registry.host(queries::HOST);
    registry.kernels(dicts::KERNELS);
    registry.kernels(queries::KERNELS);
    registry.kernels(lists::KERNELS);
}
