//! Conversions between the plain and the blocked layout, and copies of channel ranges.

use super::code::{image_constant, text};
use super::describe::blocked;
use super::{BlockedShape, Kernel, Numbers};
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

/// Direction of a [`Reorder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReorderDirection {
    /// From dense NCHW to blocked. Padding lanes become zero.
    ToBlocked,
    /// From blocked to dense NCHW.
    ToPlain,
}

/// Conversion of f32 between the plain and the blocked layout. Buffers: input, output.
///
/// `N` is the type of sizes that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
#[derive(Clone, Debug, PartialEq)]
pub struct Reorder<N = i64> {
    /// Direction of the conversion.
    pub direction: ReorderDirection,
    /// Shape of the blocked tensor.
    pub blocked: BlockedShape<N>,
}

impl<N> Reorder<N> {
    /// Returns the conversion with `f` applied to each of its sizes. The order is the same for all conversions.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Reorder<M> {
        Reorder {
            direction: self.direction,
            blocked: self.blocked.map(f),
        }
    }
}

impl Reorder {
    /// Returns the number of channels in the last block if it is not full, otherwise 0. It is a constant of the code.
    pub fn rest(&self) -> i64 {
        self.blocked.channels % self.blocked.block
    }

    /// Returns the number of independent tasks: images × channel blocks.
    pub fn tasks(&self) -> i64 {
        self.blocked.batch * self.blocked.channel_blocks()
    }
}

/// Copies channels of one blocked tensor to channels of another. Buffers: input, output. Output channels outside of the range keep their values.
///
/// The copy implements one part of `cat` or `chunk` along channels whose boundaries are not multiples of the block. If they are, no copy is necessary: the
/// kernel that reads or writes the part gets the offset and the batch stride of the larger tensor.
///
/// `N` is the type of sizes that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyChannels<N = i64> {
    /// Shape of the source.
    pub input: BlockedShape<N>,
    /// Shape of the destination, with the source's batch, height, width and block.
    pub output: BlockedShape<N>,
    /// First source channel.
    pub from: N,
    /// First destination channel.
    pub to: N,
    /// Number of channels.
    pub count: N,
}

impl<N> CopyChannels<N> {
    /// Returns the copy with `f` applied to each of its sizes. The order is the same for all copies.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> CopyChannels<M> {
        CopyChannels {
            input: self.input.map(f),
            output: self.output.map(f),
            from: f(&self.from),
            to: f(&self.to),
            count: f(&self.count),
        }
    }
}

impl CopyChannels {
    /// Returns the number of independent tasks: images × channels.
    pub fn tasks(&self) -> i64 {
        self.input.batch * self.count
    }
}

impl Kernel for Reorder {
    fn family(&self) -> &'static str {
        "reorder"
    }

    fn lanes(&self) -> i64 {
        self.blocked.block
    }

    fn phases(&self) -> SmallVec<[i64; 2]> {
        smallvec![self.tasks()]
    }

    fn operand_count(&self) -> usize {
        2
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
        text(format_args!("{constants:?} {}", self.rest()))
    }

    fn flops(&self) -> i64 {
        0
    }

    fn bytes(&self) -> i64 {
        8 * self.blocked.elements()
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        let way = match self.direction {
            ReorderDirection::ToBlocked => "plain to blocked",
            ReorderDirection::ToPlain => "blocked to plain",
        };
        writeln!(out, "  reorder {way}, {}", blocked(&self.blocked))
    }
}

impl Kernel for CopyChannels {
    fn family(&self) -> &'static str {
        "copy_channels"
    }

    fn lanes(&self) -> i64 {
        self.input.block
    }

    fn phases(&self) -> SmallVec<[i64; 2]> {
        smallvec![self.tasks()]
    }

    fn operand_count(&self) -> usize {
        2
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
        text(format_args!("{constants:?}"))
    }

    fn flops(&self) -> i64 {
        0
    }

    fn bytes(&self) -> i64 {
        8 * self.input.batch * self.count * self.input.height * self.input.width
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        writeln!(
            out,
            "  copy channels {}..{} of {} to {}.. of {}",
            self.from,
            self.from + self.count,
            blocked(&self.input),
            self.to,
            blocked(&self.output)
        )
    }
}
