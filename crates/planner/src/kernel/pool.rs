//! Pooling in blocked layout.

use super::code::{image_constant, text};
use super::cost::operands;
use super::describe::{blocked, by};
use super::{BlockedShape, Epilogue, Kernel, Numbers};
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

/// The function that is computed over a window. `N` is the type of divisors, see [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind<N = i64> {
    /// The largest element, or NaN if an element is NaN. Padding counts as −∞.
    Max,
    /// The mean of the window's elements inside the input, or inside the padded input (`count_include_pad`), or the sum divided by `divisor`.
    Average {
        /// Counts padding as zeros. Positions outside of the padded input, which `ceil_mode` allows, are never counted.
        count_include_pad: bool,
        /// The number by which the sum is divided, if it is the same for all windows.
        divisor: Option<N>,
    },
}

/// Pooling of f32, with blocked input and output. For global average pooling, the window has the size of the input.
///
/// Buffers: input, epilogue operands, output.
///
/// `N` is the type of sizes that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool<N = i64> {
    /// The function over a window.
    pub kind: PoolKind<N>,
    /// Shape of the input.
    pub input: BlockedShape<N>,
    /// Shape of the output, with the input's batch, channels and block.
    pub output: BlockedShape<N>,
    /// Window height and width.
    pub kernel: [N; 2],
    /// Vertical and horizontal distance between windows, in input elements.
    pub stride: [i64; 2],
    /// Padding above and to the left. `count_include_pad` also counts as much padding below and to the right.
    pub padding: [i64; 2],
    /// Vertical and horizontal dilation of the window, for max pooling.
    pub dilation: [i64; 2],
    /// Fused epilogue.
    pub epilogue: Epilogue,
}

impl<N> PoolKind<N> {
    fn map<M>(&self, f: impl FnMut(&N) -> M) -> PoolKind<M> {
        match self {
            PoolKind::Max => PoolKind::Max,
            PoolKind::Average {
                count_include_pad,
                divisor,
            } => PoolKind::Average {
                count_include_pad: *count_include_pad,
                divisor: divisor.as_ref().map(f),
            },
        }
    }
}

impl<N> Pool<N> {
    /// Returns the pooling with `f` applied to each of its sizes and to the divisor. The order is the same for all poolings of one kind.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Pool<M> {
        Pool {
            kind: self.kind.map(&mut *f),
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

impl<N: From<i64>> Pool<N> {
    /// Returns the pooling with the window `kernel`, if it is known.
    #[must_use]
    pub fn with_kernel(self, kernel: Option<[i64; 2]>) -> Pool<N> {
        match kernel {
            Some(kernel) => Pool {
                kernel: kernel.map(N::from),
                ..self
            },
            None => self,
        }
    }
}

impl Pool {
    /// Returns the window's height and width if they are constants of all code for this pooling, so that the code unrolls the taps. They are not if the window has
    /// the size of the input, because the window then changes with the input.
    pub fn constant_kernel(&self) -> Option<[i64; 2]> {
        (self.kernel != [self.input.height, self.input.width]).then_some(self.kernel)
    }

    /// Returns the number of independent tasks: images × channel blocks × output rows.
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

    fn can_be_argument(&self, _number: i64) -> bool {
        true
    }

    fn code_text(&self, is_argument: &[bool]) -> String {
        let mut is_argument = is_argument.iter();
        let constants = self.map(&mut |n| image_constant(*n, is_argument.next()));
        let constants = constants.with_kernel(self.constant_kernel());
        text(format_args!("{constants:?}"))
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
