//! Calls of operators without a program: their kernels run between compiled kernels.
//!
//! Such a kernel sorts, scatters, or suppresses overlapping boxes. The sizes of its results follow from the sizes of its inputs, so that
//! everything around it can be compiled. Its results are stored in one buffer, one after the other.

use crate::alignment::{ALIGNMENT, align_up};
use crate::spec::ResultSpec;
use frazil_ir::{Attribute, Context, DType, TypeId, contiguous_strides};
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
    /// The operator, in its functional form.
    pub op: Operator,
    /// The context of the operator's names and types.
    pub ctx: Arc<Context>,
    /// The arguments. The number in [`ResultSpec::Tensor`] is an index into [`RuntimeCall::inputs`].
    pub arguments: Vec<ResultSpec>,
    /// The tensors among the arguments.
    pub inputs: Vec<TensorId>,
    /// dtype and sizes of each of `inputs`.
    pub input_shapes: Vec<TensorShape>,
    /// dtype and sizes of each result. Empty for a call between two segments, whose results may have any sizes.
    pub results: Vec<TensorShape>,
    /// The types of the results.
    pub output_types: Vec<TypeId>,
    /// The attributes of the node that is called.
    pub attributes: Vec<Attribute>,
}

impl fmt::Debug for RuntimeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuntimeCall({}, {:?})", self.name(), self.inputs)
    }
}

/// Calls are compared by identity.
impl PartialEq for RuntimeCall {
    fn eq(&self, other: &RuntimeCall) -> bool {
        std::ptr::eq(self, other)
    }
}

impl RuntimeCall {
    /// Returns the operator's name with its overload.
    pub fn name(&self) -> String {
        self.op.schema().full_name(&self.ctx)
    }

    /// Returns [`bytes`](Self::bytes); `None` if the number does not fit 63 bits.
    pub fn checked_bytes(&self) -> Option<usize> {
        let mut total = 1usize;
        for shape in &self.results {
            let mut bytes = shape.dtype.size();
            for &extent in &shape.sizes {
                bytes = bytes.checked_mul(usize::try_from(extent.max(0)).ok()?)?;
            }
            total = total.checked_add(bytes.checked_next_multiple_of(ALIGNMENT)?)?;
        }
        i64::try_from(total).is_ok().then_some(total)
    }

    /// Returns dtype and sizes of the tensor that contains all results as bytes.
    pub fn shape(&self) -> TensorShape {
        TensorShape {
            dtype: DType::Byte,
            sizes: smallvec::smallvec![self.bytes() as i64],
        }
    }

    /// Returns the offset of result `index` in bytes; for the number of results, the offset after the last one.
    pub fn offset(&self, index: usize) -> usize {
        let bytes = |s: &TensorShape| align_up(s.numel().max(0) as usize * s.dtype.size());
        self.results.iter().take(index).map(bytes).sum()
    }

    /// Returns the number of bytes of all results, plus one. The byte after the results is always 0: the call has not raised an exception.
    pub fn bytes(&self) -> usize {
        self.offset(self.results.len()) + 1
    }

    /// Runs the operator on its inputs.
    ///
    /// # Errors
    /// The message of the operator's exception.
    pub fn values(&self, inputs: &[Value]) -> Result<Vec<Value>, String> {
        let arguments: Vec<Value> = self.arguments.iter().map(|a| a.value(inputs)).collect();
        let results = invoke(&self.ctx, &self.op, &arguments, &self.output_types, &self.attributes);
        results.map(Vec::from_iter).map_err(|e| format!("{}: {e}", self.name()))
    }

    /// Runs the operator on the bytes of its inputs, dense, and writes its results to `output`.
    ///
    /// # Errors
    /// The message of the operator's exception.
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
