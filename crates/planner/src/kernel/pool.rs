//! Pooling in blocked layout.

use super::code::image_constant;
use super::cost::operands;
use super::describe::{blocked, by};
use super::{BlockedShape, Epilogue, Kernel, Numbers};
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

/// What is computed over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// The largest element; NaN wins. Padding is −∞.
    Max,
    /// The mean over the window's elements that lie inside the input, or inside the input with its padding
    /// (`count_include_pad`), or the sum divided by `divisor`.
    Average {
        /// Count padding as zeros. What lies outside of the padded input is never counted (`ceil_mode`).
        count_include_pad: bool,
        /// `divisor_override`.
        divisor: Option<i64>,
    },
}

/// Pooling, f32, blocked layout in and out. Global average pooling has a kernel of the input's size.
///
/// Buffers: input, epilogue operands, output.
///
/// `N` is `i64` where all numbers are known, and what stands for numbers in code elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool<N = i64> {
    /// What is computed.
    pub kind: PoolKind,
    /// The input.
    pub input: BlockedShape<N>,
    /// The output; same batch, channels and block.
    pub output: BlockedShape<N>,
    /// Window height and width.
    pub kernel: [N; 2],
    /// Stride.
    pub stride: [i64; 2],
    /// Padding above and to the left, and the padding below and to the right that `count_include_pad` counts.
    pub padding: [i64; 2],
    /// Dilation (max pooling).
    pub dilation: [i64; 2],
    /// Fused epilogue.
    pub epilogue: Epilogue,
}

impl<N> Pool<N> {
    /// The pooling with `f` of each of its numbers, in one order for all poolings.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Pool<M> {
        Pool {
            kind: self.kind,
            input: self.input.map(f),
            output: self.output.map(f),
            kernel: self.kernel.each_ref().map(f),
            stride: self.stride,
            padding: self.padding,
            dilation: self.dilation,
            epilogue: self.epilogue.clone(),
        }
    }
}

impl Pool {
    /// Number of independent tasks: images × channel blocks × output rows.
    pub fn tasks(&self) -> i64 {
        self.input.batch * self.input.channel_blocks() * self.output.height
    }
}

impl Kernel for Pool {
    fn family(&self) -> &'static str {
        "pool"
    }

    fn lanes(&self) -> i64 {
        self.input.block
    }

    fn phases(&self) -> SmallVec<[i64; 2]> {
        smallvec![self.tasks()]
    }

    fn operand_count(&self) -> usize {
        2 + self.epilogue.operands.len()
    }

    fn epilogue(&self) -> Option<&Epilogue> {
        Some(&self.epilogue)
    }

    fn may_alias_output(&self, operand: usize) -> bool {
        self.epilogue.is_elementwise(operand, 1)
    }

    fn numbers(&self) -> Numbers {
        let mut numbers = Numbers::new();
        self.map(&mut |n| numbers.push(*n));
        numbers
    }

    fn code_text(&self, is_argument: &[bool]) -> String {
        let mut is_argument = is_argument.iter();
        let constants = self.map(&mut |n| image_constant(*n, is_argument.next()));
        format!("{constants:?}")
    }

    fn flops(&self) -> i64 {
        let o = &self.output;
        o.batch * o.channels * o.height * o.width * self.kernel[0] * self.kernel[1]
    }

    fn bytes(&self) -> i64 {
        let results = self.output.elements();
        4 * (self.input.elements() + results) + operands(&self.epilogue, results, self.output.channels)
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        let kind = match self.kind {
            PoolKind::Max => "max",
            PoolKind::Average { divisor: Some(1), .. } => "sum",
            PoolKind::Average { .. } => "average",
        };
        writeln!(
            out,
            "  {kind} pool {} -> {}, kernel {}, stride {}, padding {}",
            blocked(&self.input),
            by([self.output.height, self.output.width]),
            by(self.kernel),
            by(self.stride),
            by(self.padding)
        )
    }
}
