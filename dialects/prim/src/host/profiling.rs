//! Marks for profilers around parts of a program: `with torch.profiler.record_function("name")`. Nobody listens here.

use frazil_ir::TypeKind;
use frazil_runtime::Tensor;
use frazil_runtime::op::{KernelFn, OpError, Results, one};
use frazil_runtime::value::{ObjectValue, Value};

pub(super) const HOST: &[(&str, KernelFn)] = &[
    // The record is an object of a class that C++ code registers; programs only hand it back.
    ("profiler::_record_function_enter_new", |c| {
        match c.output_types.first().map(|ty| c.ctx.type_kind(*ty)) {
            Some(TypeKind::Class(class)) => one(Value::Object(ObjectValue::new(class, Vec::new()))),
            _ => Err(OpError::raised("a record of a function is an object")),
        }
    }),
    // Before PyTorch 1.11 it was a tensor.
    ("profiler::_record_function_enter", |_| {
        one(Tensor::from_i64(&[0], &[1])?)
    }),
    ("profiler::_record_function_exit", |_| Ok(Results::new())),
];
