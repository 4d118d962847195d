//! Runtime calls as kernels.

use super::Kernel;
use smallvec::SmallVec;
use std::fmt::{self, Write};

/// A runtime call: an operator that the interpreter's kernel executes, so that no code is generated. Buffers: the inputs, and one buffer with all results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeCallKernel {
    /// Index in [`Plan::runtime_calls`](crate::plan::Plan::runtime_calls).
    pub number: u32,
    /// Number of inputs.
    pub inputs: u32,
}

impl Kernel for RuntimeCallKernel {
    fn family(&self) -> &'static str {
        "host"
    }

    fn lanes(&self) -> i64 {
        1
    }

    fn phases(&self) -> SmallVec<[i64; 2]> {
        SmallVec::new()
    }

    fn operand_count(&self) -> usize {
        self.inputs as usize + 1
    }

    fn runtime_call(&self) -> Option<u32> {
        Some(self.number)
    }

    fn flops(&self) -> i64 {
        0
    }

    fn bytes(&self) -> i64 {
        0
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        writeln!(out, "  runtime call")
    }
}
