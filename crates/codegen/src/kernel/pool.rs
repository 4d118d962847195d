//! Pooling in blocked layout.

use super::{BlockedShape, Epilogue};

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
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// What is computed.
    pub kind: PoolKind,
    /// The input.
    pub input: BlockedShape,
    /// The output; same batch, channels and block.
    pub output: BlockedShape,
    /// Window height and width.
    pub kernel: [i64; 2],
    /// Stride.
    pub stride: [i64; 2],
    /// Padding above and to the left, and the padding below and to the right that `count_include_pad` counts.
    pub padding: [i64; 2],
    /// Dilation (max pooling).
    pub dilation: [i64; 2],
    /// Fused epilogue.
    pub epilogue: Epilogue,
}

impl Pool {
    /// Number of independent tasks: images × channel blocks × output rows.
    pub fn tasks(&self) -> i64 {
        self.input.batch * self.input.channel_blocks() * self.output.height
    }
}
