//! Changes of layout: plain to blocked and back, and copies of channel ranges.

use super::code::image_constant;
use super::describe::blocked;
use super::{BlockedShape, Kernel, Numbers};
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

/// Which way a [`Reorder`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReorderDirection {
    /// Dense NCHW to blocked; padding lanes become zero.
    ToBlocked,
    /// Blocked to dense NCHW.
    ToPlain,
}

/// Plain to blocked layout or back, f32. Buffers: input, output.
///
/// `N` is `i64` where all numbers are known, and what stands for numbers in code elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Reorder<N = i64> {
    /// Which way.
    pub direction: ReorderDirection,
    /// The blocked side.
    pub blocked: BlockedShape<N>,
}

impl<N> Reorder<N> {
    /// The reorder with `f` of each of its numbers, in one order for all reorders.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Reorder<M> {
        Reorder {
            direction: self.direction,
            blocked: self.blocked.map(f),
        }
    }
}

impl Reorder {
    /// Number of independent tasks: images × channel blocks.
    pub fn tasks(&self) -> i64 {
        self.blocked.batch * self.blocked.channel_blocks()
    }
}

/// Copies channels of one blocked tensor to others of another: one part of `cat` or `chunk` along channels when its
/// boundaries are not multiples of the block. (When they are, pass the larger tensor's offset and batch stride to the kernel that
/// writes or reads, and copy nothing.) Buffers: input, output. Output channels outside of the range keep their values.
///
/// `N` is `i64` where all numbers are known, and what stands for numbers in code elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyChannels<N = i64> {
    /// The source.
    pub input: BlockedShape<N>,
    /// The destination; same batch, height, width and block.
    pub output: BlockedShape<N>,
    /// First source channel.
    pub from: i64,
    /// First destination channel.
    pub to: i64,
    /// Number of channels.
    pub count: i64,
}

impl<N> CopyChannels<N> {
    /// The copy with `f` of each of its numbers, in one order for all copies.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> CopyChannels<M> {
        CopyChannels {
            input: self.input.map(f),
            output: self.output.map(f),
            from: self.from,
            to: self.to,
            count: self.count,
        }
    }
}

impl CopyChannels {
    /// Number of independent tasks: images × channels.
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

    fn code_text(&self, is_argument: &[bool]) -> String {
        let mut is_argument = is_argument.iter();
        let constants = self.map(&mut |n| image_constant(*n, is_argument.next()));
        format!("{constants:?}")
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

    fn code_text(&self, is_argument: &[bool]) -> String {
        let mut is_argument = is_argument.iter();
        let constants = self.map(&mut |n| image_constant(*n, is_argument.next()));
        format!("{constants:?}")
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
