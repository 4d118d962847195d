//! Profiling annotations in a program, which are ignored: `with torch.profiler.record_function("name")`.

use frazil_ir::TypeKind;
use frazil_runtime::Tensor;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{OpError, Results, one};
use frazil_runtime::value::{ObjectValue, Value};

pub(super) const ENTRIES: &[Row] = &[
    // The record is an object of a class that C++ code registers; programs only hand it back.
    (
        "profiler::_record_function_enter_new",
        Entry::on_values(|c| match c.output_types.first().map(|ty| c.ctx.type_kind(*ty)) {
            Some(TypeKind::Class(class)) => one(Value::Object(ObjectValue::new(class, Vec::new()))),
            _ => Err(OpError::raised("a record of a function is an object")),
        }),
    ),
    // Before PyTorch 1.11 it was a tensor.
    (
        "profiler::_record_function_enter",
        Entry::on_values(|_| one(Tensor::from_i64(&[0], &[1])?)),
    ),
    (
        "profiler::_record_function_exit",
        Entry::on_values(|_| Ok(Results::new())),
    ),
];
