//! Changes of layout: plain to blocked and back, and copies of channel ranges.

use super::describe::blocked;
use super::{BlockedShape, Kernel};
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
#[derive(Clone, Debug, PartialEq)]
pub struct Reorder {
    /// Which way.
    pub direction: ReorderDirection,
    /// The blocked side.
    pub blocked: BlockedShape,
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
#[derive(Clone, Debug, PartialEq)]
pub struct CopyChannels {
    /// The source.
    pub input: BlockedShape,
    /// The destination; same batch, height, width and block.
    pub output: BlockedShape,
    /// First source channel.
    pub from: i64,
    /// First destination channel.
    pub to: i64,
    /// Number of channels.
    pub count: i64,
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
