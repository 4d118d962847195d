//! Depthwise convolution in blocked layout.

use super::code::{image_constant, text};
use super::cost::images;
use super::describe::windows;
use super::sizes::{balanced, div_ceil};
use super::{Axis, BlockedShape, ConvShape, Epilogue, Kernel, Numbers, RowTiling};
use crate::target::Machine;
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

/// A depthwise convolution ([`ConvShape::is_depthwise`]) of f32, with blocked input and output.
///
/// Buffers: input, packed weights ([`Depthwise::pack_weights`]), epilogue operands, output.
///
/// `N` is the type of the integers that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
#[derive(Clone, Debug, PartialEq)]
pub struct Depthwise<N = i64> {
    /// Sizes and groups.
    pub shape: ConvShape<N>,
    /// Distance from one input image to the next, in elements.
    pub input_batch_stride: N,
    /// Distance from one output image to the next, in elements.
    pub output_batch_stride: N,
    /// Number of channels in a block.
    pub block: i64,
    /// Number of output columns of a register tile.
    pub columns: i64,
    /// Number of output rows of a task.
    pub rows: N,
    /// Fused epilogue.
    pub epilogue: Epilogue,
}

impl<N: Copy> Depthwise<N> {
    /// Returns the convolution with `f` applied to each of its integers. The order is the same for all convolutions.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Depthwise<M> {
        Depthwise {
            shape: self.shape.map(f),
            input_batch_stride: f(&self.input_batch_stride),
            output_batch_stride: f(&self.output_batch_stride),
            block: self.block,
            columns: self.columns,
            rows: f(&self.rows),
            epilogue: self.epilogue.clone(),
        }
    }

    /// Returns the shape of the input.
    pub fn input_shape(&self) -> BlockedShape<N> {
        self.images(self.shape.input, self.input_batch_stride)
    }

    /// Returns the shape of the output.
    pub fn output_shape(&self) -> BlockedShape<N> {
        self.images(self.shape.output, self.output_batch_stride)
    }

    fn images(&self, [height, width]: [N; 2], batch_stride: N) -> BlockedShape<N> {
        BlockedShape {
            batch: self.shape.batch,
            channels: self.shape.out_channels,
            height,
            width,
            block: self.block,
            batch_stride,
        }
    }
}

impl Depthwise {
    /// Returns a depthwise convolution of dense tensors. A block has as many channels as the machine's vectors have lanes.
    pub fn new(shape: ConvShape, epilogue: Epilogue, machine: &Machine) -> Depthwise {
        let (block, parameters) = (machine.vector.lanes, &machine.window);
        let dense = |[h, w]: [i64; 2]| BlockedShape::dense(shape.batch, shape.in_channels, h, w, block).batch_stride;
        Depthwise {
            shape,
            input_batch_stride: dense(shape.input),
            output_batch_stride: dense(shape.output),
            block,
            columns: balanced(shape.output[1], parameters.depthwise_columns).min(shape.output[1].max(1)),
            rows: shape.output[0].min(parameters.depthwise_rows).max(1),
            epilogue,
        }
    }

    /// Returns the convolution with one of a few tiles, so that convolutions of images of many sizes share code. Its results are bit-equal.
    #[must_use]
    pub fn for_any_size(self, machine: &Machine) -> Depthwise {
        // Each row of a tile loads its weights once.
        let time = |columns: i64| (columns + 1) as f64;
        let axis = Axis::of(&self.shape, 1);
        Depthwise {
            columns: RowTiling::choose(&axis, machine.window.depthwise_columns, time),
            ..self
        }
    }

    /// Returns the number of independent tasks: images × channel blocks × row blocks.
    pub fn tasks(&self) -> i64 {
        self.shape.batch * self.output_shape().channel_blocks() * div_ceil(self.shape.output[0], self.rows)
    }

    /// Returns the division of a row into tiles, for code that takes the sizes of images as arguments.
    pub fn row_tiling(&self) -> RowTiling {
        RowTiling::of(&Axis::of(&self.shape, 1), self.columns)
    }

    /// Packs weights `[channels][1][kh][kw]` as `[channel block][kh][kw][block]`, with zeros in padding lanes.
    pub fn pack_weights(&self, weights: &[f32]) -> Vec<f32> {
        let mut packed = vec![0.0; self.packed_elements()];
        self.pack_into(weights, &mut packed);
        packed
    }

    /// Returns the number of elements of packed weights.
    pub fn packed_elements(&self) -> usize {
        let taps = self.shape.kernel[0] * self.shape.kernel[1];
        (self.output_shape().padded_channels() * taps) as usize
    }

    /// Packs weights as [`Depthwise::pack_weights`] does, into `packed`, which must consist of zeros.
    pub fn pack_into(&self, weights: &[f32], packed: &mut [f32]) {
        let taps = self.shape.kernel[0] * self.shape.kernel[1];
        for c in 0..self.shape.out_channels {
            for tap in 0..taps {
                let to = ((c / self.block) * taps + tap) * self.block + c % self.block;
                if let Some(&w) = weights.get((c * taps + tap) as usize) {
                    packed[to as usize] = w;
                }
            }
        }
    }
}

impl Kernel for Depthwise {
    fn family(&self) -> &'static str {
        "depthwise"
    }

    fn lanes(&self) -> i64 {
        self.block
    }

    fn phases(&self) -> SmallVec<[i64; 2]> {
        smallvec![self.tasks()]
    }

    fn operand_count(&self) -> usize {
        3 + self.epilogue.operands.len()
    }

    fn epilogue(&self) -> Option<&Epilogue> {
        Some(&self.epilogue)
    }

    fn may_alias_output(&self, operand: usize) -> bool {
        self.epilogue.is_elementwise(operand, 2)
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
        let mut constants = self.map(&mut |n| image_constant(*n, is_argument.next()));
        // The row tiling contains the columns of a tile, and there are as many groups as channels.
        (constants.columns, constants.shape.groups) = (0, 0);
        text(format_args!("{constants:?} {:?}", self.row_tiling()))
    }

    fn flops(&self) -> i64 {
        2 * self.shape.macs()
    }

    fn bytes(&self) -> i64 {
        let weights = self.shape.out_channels * self.shape.kernel[0] * self.shape.kernel[1];
        images(&self.shape, weights, &self.epilogue)
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        write!(out, "  depthwise conv ")?;
        windows(out, &self.shape)?;
        writeln!(out, ", blocks of {}, {} columns", self.block, self.columns)
    }
}
