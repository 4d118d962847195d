//! Calls of operators that have no program: their kernels run between those that are compiled.
//!
//! Such a kernel sorts, scatters or draws boxes together; the sizes of what it gives follow from the sizes of what it is given, so that
//! everything around it can be compiled. Its results lie one after the other in one buffer.

use crate::alignment::align_up;
use crate::spec::ResultSpec;
use frazil_ir::{Attribute, Context, TypeId, contiguous_strides};
use frazil_runtime::call::invoke;
use frazil_runtime::op::Operator;
use frazil_runtime::storage::AlignedBytes;
use frazil_runtime::structured::{TensorId, TensorShape};
use frazil_runtime::value::Value;
use frazil_runtime::{Storage, Tensor};
use std::fmt;
use std::sync::Arc;

/// One call of an operator.
#[derive(Clone)]
pub struct RuntimeCall {
    /// What is called, as its functional form.
    pub op: Operator,
    /// Names and types of the graph that it comes from.
    pub ctx: Arc<Context>,
    /// Its arguments; [`ResultSpec::Tensor`] is a number of [`RuntimeCall::inputs`].
    pub arguments: Vec<ResultSpec>,
    /// The tensors that it is given.
    pub inputs: Vec<TensorId>,
    /// Their dtypes and sizes.
    pub input_shapes: Vec<TensorShape>,
    /// dtype and sizes of each result; none are known of a call that a method waits for.
    pub results: Vec<TensorShape>,
    /// Types of the node's outputs.
    pub output_types: Vec<TypeId>,
    /// The node's attributes.
    pub attributes: Vec<Attribute>,
}

impl fmt::Debug for RuntimeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuntimeCall({}, {:?})", self.name(), self.inputs)
    }
}

/// Calls are equal when they are one.
impl PartialEq for RuntimeCall {
    fn eq(&self, other: &RuntimeCall) -> bool {
        std::ptr::eq(self, other)
    }
}

impl RuntimeCall {
    /// The operator's name with its overload.
    pub fn name(&self) -> String {
        self.op.schema().full_name(&self.ctx)
    }

    /// Where result `index` begins, in bytes; one past the last result, where the results end.
    pub fn offset(&self, index: usize) -> usize {
        let bytes = |s: &TensorShape| align_up(s.numel().max(0) as usize * s.dtype.size());
        self.results.iter().take(index).map(bytes).sum()
    }

    /// Bytes of all results, and of one more after them, which is zero: that the call has not raised.
    pub fn bytes(&self) -> usize {
        self.offset(self.results.len()) + 1
    }

    /// Runs the operator on its inputs.
    ///
    /// # Errors
    /// What the operator raises; in words.
    pub fn values(&self, inputs: &[Value]) -> Result<Vec<Value>, String> {
        let arguments: Vec<Value> = self.arguments.iter().map(|a| a.value(inputs)).collect();
        let results = invoke(&self.ctx, &self.op, &arguments, &self.output_types, &self.attributes);
        results.map(Vec::from_iter).map_err(|e| format!("{}: {e}", self.name()))
    }

    /// Runs the operator on the bytes of its inputs, dense, and writes its results to `output`.
    ///
    /// # Errors
    /// What the operator raises; in words.
    pub fn run(&self, inputs: &[&[u8]], output: &mut [u8]) -> Result<(), String> {
        let tensor = |(bytes, shape): (&&[u8], &TensorShape)| {
            let storage = Storage::from_owned(AlignedBytes::copied(bytes)?);
            let strides = contiguous_strides(&shape.sizes);
            Tensor::from_storage(storage, shape.dtype, &shape.sizes, &strides, 0).map(Value::from)
        };
        let tensors = inputs
            .iter()
            .zip(&self.input_shapes)
            .map(tensor)
            .collect::<Result<Vec<_>, _>>();
        let results = self.values(&tensors.map_err(|e| e.to_string())?)?;
        let other = || format!("{} gave other results than for other elements", self.name());
        if results.len() != self.results.len() {
            return Err(other());
        }
        for (i, (value, shape)) in results.iter().zip(&self.results).enumerate() {
            let tensor = value.as_tensor().ok_or_else(other)?;
            let dense = tensor.contiguous().map_err(|e| e.to_string())?;
            if dense.dtype() != shape.dtype || dense.sizes() != shape.sizes.as_slice() {
                return Err(other());
            }
            let width = shape.dtype.size();
            let (first, length) = (dense.offset() as usize * width, dense.numel() as usize * width);
            let bytes = dense.storage().bytes();
            let from = bytes.get(first..first + length).ok_or_else(other)?;
            let at = self.offset(i);
            output.get_mut(at..at + length).ok_or_else(other)?.copy_from_slice(from);
        }
        if let Some(raised) = output.get_mut(self.offset(results.len())) {
            *raised = 0;
        }
        Ok(())
    }
}
