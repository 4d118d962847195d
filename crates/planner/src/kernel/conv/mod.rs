//! Two-dimensional convolution into blocked layout: dense, grouped, pointwise, and the stem that reads plain NCHW.

mod groups;
mod kernel;
mod pack;
mod tile;
mod winograd;

pub use groups::{Grouping, channels_of_group};
pub use tile::ConvTile;
pub use winograd::{Winograd, WinogradWeights, tiles as winograd_tiles};

use super::sizes::div_ceil;
use super::{Axis, BlockedShape, Epilogue, RowTiling};
use crate::kernel::pack::reader;
use crate::target::Machine;
use frazil_tensor_ir::pattern::ConvShape;
use groups::place_of_weight;
use pack::TileLayout;
use tile::{large_images, pointwise_rows};

/// Layout of a convolution's input in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivationLayout<N = i64> {
    /// Channel blocks, see [`BlockedShape`].
    Blocked {
        /// Distance from one image to the next, in elements.
        batch_stride: N,
    },
    /// Dense NCHW, the layout in which a model receives images.
    Plain,
}

/// Positions of the results in a larger output image. The first result is stored where the output buffer starts; the others follow in steps of `step` rows and
/// columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StridedOutput<N = i64> {
    /// Height and width of the image.
    pub image: [N; 2],
    /// Distance between neighbouring results, in rows and in columns.
    pub step: [i64; 2],
}

impl StridedOutput {
    /// Returns the positions in an image that consists of results only.
    pub fn dense(image: [i64; 2]) -> StridedOutput {
        StridedOutput { image, step: [1, 1] }
    }
}

impl<N> StridedOutput<N> {
    /// Returns true if the image consists of results only.
    pub fn is_dense(&self) -> bool {
        self.step == [1, 1]
    }
}

/// A 2-D convolution of f32. Buffers: input, packed weights, epilogue operands, output (blocked). [`Conv::pack_weights`] packs the weights. If there is a
/// [`Conv::transformation`], it transforms the packed weights before the first call.
///
/// `N` is the type of the integers that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv<N = i64> {
    /// Sizes and groups.
    pub shape: ConvShape<N>,
    /// Layout of the input.
    pub input: ActivationLayout<N>,
    /// Distance from one output image to the next, in elements.
    pub output_batch_stride: N,
    /// Positions of the results in an output image.
    pub output: StridedOutput<N>,
    /// Number of channels in a block of the output, and of the input if it is blocked.
    pub block: i64,
    /// Register tile of the direct algorithm.
    pub tile: ConvTile<N>,
    /// Winograd's algorithm, in place of the direct one.
    pub winograd: Option<Winograd>,
    /// Number of parts into which Winograd's algorithm divides the output channels. Each group of tiles has one task for each part, which transforms the input
    /// again.
    pub channel_parts: N,
    /// Maximum number of rows into which the pixels of a pointwise convolution are divided.
    pub pointwise_rows: i64,
    /// Fused epilogue.
    pub epilogue: Epilogue,
}

impl<N> Conv<N> {
    /// Returns the convolution with `f` applied to each of its integers. The order is the same for all convolutions.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Conv<M> {
        Conv {
            shape: self.shape.map(f),
            input: match &self.input {
                ActivationLayout::Plain => ActivationLayout::Plain,
                ActivationLayout::Blocked { batch_stride } => ActivationLayout::Blocked {
                    batch_stride: f(batch_stride),
                },
            },
            output_batch_stride: f(&self.output_batch_stride),
            output: StridedOutput {
                image: self.output.image.each_ref().map(&mut *f),
                step: self.output.step,
            },
            block: self.block,
            tile: ConvTile {
                columns: self.tile.columns,
                vectors: self.tile.vectors,
                channel_blocks: f(&self.tile.channel_blocks),
                rows: f(&self.tile.rows),
            },
            winograd: self.winograd,
            channel_parts: f(&self.channel_parts),
            pointwise_rows: self.pointwise_rows,
            epilogue: self.epilogue.clone(),
        }
    }

    /// Returns true if the input is plain (NCHW).
    pub fn has_plain_input(&self) -> bool {
        matches!(self.input, ActivationLayout::Plain)
    }
}

impl<N: From<i64>> Conv<N> {
    /// Returns the convolution with the numbers of input and output channels `channels`, as far as they are known.
    #[must_use]
    pub fn with_channels(mut self, channels: [Option<i64>; 2]) -> Conv<N> {
        let [inputs, outputs] = channels.map(|n| n.map(N::from));
        self.shape.in_channels = inputs.unwrap_or(self.shape.in_channels);
        self.shape.out_channels = outputs.unwrap_or(self.shape.out_channels);
        self
    }
}

impl Conv {
    /// Returns the numbers of input and output channels, each if it is a constant of all code for this convolution. Both are if there are groups, which determine
    /// the code; and the number of channels of a plain input is, because the loop over them is unrolled.
    pub fn constant_channels(&self) -> [Option<i64>; 2] {
        let (s, has_groups) = (&self.shape, self.shape.groups > 1);
        [
            (has_groups || self.has_plain_input()).then_some(s.in_channels),
            has_groups.then_some(s.out_channels),
        ]
    }

    /// Returns the number of tiles of output channels in the direct algorithm.
    pub fn channel_tiles(&self) -> i64 {
        div_ceil(self.shape.out_channels, self.block * self.tile.vectors)
    }

    /// Returns the number of tiles of output channels in Winograd's algorithm; 0 if the convolution does not use it.
    pub fn winograd_channel_tiles(&self) -> i64 {
        self.transformation().map_or(0, |w| w.channel_tiles())
    }

    /// Returns the number of channels in a block of the input; a plain input is one block.
    pub fn input_block(&self) -> i64 {
        match self.input {
            ActivationLayout::Plain => self.shape.in_channels,
            ActivationLayout::Blocked { .. } => self.block,
        }
    }

    /// Returns the assignment of input channels to the lanes of a tile of output channels.
    pub fn grouping(&self) -> Grouping {
        let width = self.block * self.tile.vectors;
        Grouping::of(&self.shape, width, self.input_block(), self.has_plain_input())
    }

    /// Returns the number of weights before packing.
    pub fn weight_elements(&self) -> i64 {
        let s = &self.shape;
        s.out_channels * (s.in_channels / s.groups.max(1)) * s.kernel[0] * s.kernel[1]
    }

    /// Returns the transformation of packed weights to those that the kernel reads; `None` if the kernel reads packed weights.
    pub fn transformation(&self) -> Option<WinogradWeights> {
        self.winograd.map(|form| WinogradWeights {
            form,
            in_channels: self.shape.in_channels,
            out_channels: self.shape.out_channels,
            block: self.block,
        })
    }

    /// Returns a convolution with a dense, blocked output. The input is dense, too: NCHW if `plain_input` is true, otherwise blocked. A block has as many
    /// channels as the machine's vectors have lanes.
    pub fn new(shape: ConvShape, plain_input: bool, epilogue: Epilogue, machine: &Machine) -> Conv {
        Conv::with_output(
            shape,
            StridedOutput::dense(shape.output),
            plain_input,
            epilogue,
            machine,
        )
    }

    /// Returns a convolution as [`Conv::new`] does, with results at the positions `output` of a larger image.
    pub fn with_output(
        shape: ConvShape,
        output: StridedOutput,
        plain_input: bool,
        epilogue: Epilogue,
        machine: &Machine,
    ) -> Conv {
        let block = machine.vector.lanes;
        let input_shape = BlockedShape::dense(shape.batch, shape.in_channels, shape.input[0], shape.input[1], block);
        let input = match plain_input {
            true => ActivationLayout::Plain,
            false => ActivationLayout::Blocked {
                batch_stride: input_shape.batch_stride,
            },
        };
        let [height, width] = output.image;
        let dense = BlockedShape::dense(shape.batch, shape.out_channels, height, width, block);
        let flat = shape.is_pointwise() && output.is_dense();
        let tile = ConvTile::choose(&shape, plain_input, flat, machine);
        let winograd = match plain_input || !output.is_dense() {
            true => None,
            false => Winograd::choose(&shape, machine),
        };
        Conv {
            shape,
            input,
            output_batch_stride: dense.batch_stride,
            output,
            block,
            tile,
            winograd,
            channel_parts: 1,
            pointwise_rows: machine.conv.pointwise_rows,
            epilogue,
        }
    }

    /// Returns the convolution with one of a few tiles, so that convolutions of images of many sizes share code. Its results are bit-equal.
    #[must_use]
    pub fn for_any_size(self, machine: &Machine) -> Conv {
        let (plain_input, flat) = (self.has_plain_input(), self.has_joined_rows());
        let own = self.winograd;
        Conv {
            tile: ConvTile::for_any_size(&self.shape, plain_input, flat, machine),
            winograd: own.map(|own| Winograd::choose(&large_images(&self.shape), machine).unwrap_or(own)),
            ..self
        }
    }

    /// Returns variants that may be faster, for a tuner to measure: tiles with a slightly longer estimated time, fewer and more rows per task, and the direct
    /// algorithm in place of Winograd's.
    pub fn alternatives(&self, machine: &Machine) -> Vec<Conv> {
        let plain_input = self.has_plain_input();
        let flat = self.has_joined_rows();
        let mut tiles: Vec<_> = ConvTile::estimates(&self.shape, plain_input, flat, machine).collect();
        tiles.sort_by(|a, b| a.0.total_cmp(&b.0));
        let nearly = tiles.first().map_or(0.0, |best| best.0 * 1.25);
        tiles.retain(|t| t.0 <= nearly);
        // The best two tiles of each width.
        let mut of_width = [0; 5];
        tiles.retain(|&(_, _, vectors)| {
            let count = &mut of_width[vectors.clamp(0, 4) as usize];
            *count += 1;
            *count <= 2
        });
        let mut found: Vec<Conv> = Vec::new();
        let mut propose = |tile: ConvTile| {
            let conv = Conv {
                tile,
                winograd: None,
                ..self.clone()
            };
            if conv != *self && !found.contains(&conv) {
                found.push(conv);
            }
        };
        for (_, columns, vectors) in tiles {
            let tile = ConvTile::of(&self.shape, plain_input, flat, machine, columns, vectors);
            propose(tile);
            for rows in [tile.rows / 2, tile.rows * 2] {
                if rows >= 1 && rows <= self.rows_and_columns(self.shape.output)[0] {
                    propose(ConvTile { rows, ..tile });
                }
            }
        }
        found
    }

    /// Returns the shape of a blocked input; `None` if the input is plain.
    pub fn input_shape(&self) -> Option<BlockedShape> {
        let s = &self.shape;
        match self.input {
            ActivationLayout::Plain => None,
            ActivationLayout::Blocked { batch_stride } => Some(BlockedShape {
                batch_stride,
                ..BlockedShape::dense(s.batch, s.in_channels, s.input[0], s.input[1], self.block)
            }),
        }
    }

    /// Returns the shape of the output images.
    pub fn output_shape(&self) -> BlockedShape {
        let [height, width] = self.output.image;
        let dense = BlockedShape::dense(self.shape.batch, self.shape.out_channels, height, width, self.block);
        BlockedShape {
            batch_stride: self.output_batch_stride,
            ..dense
        }
    }

    /// Returns the number of independent tasks: images × channel tiles × row blocks, or with Winograd's algorithm groups of tiles × parts of the channels.
    pub fn tasks(&self) -> i64 {
        if let Some(w) = &self.winograd {
            return w.groups(&self.shape) * self.channel_parts;
        }
        let [rows, _] = self.rows_and_columns(self.shape.output);
        self.shape.batch * self.channel_tiles() * div_ceil(rows, self.tile.rows)
    }

    /// Returns the numbers of rows and columns over which the kernel loops for an image of `[height, width]`. A pointwise convolution may divide the pixels
    /// into rows of any length, so the length suits the tiles, and the last row may be shorter.
    pub fn rows_and_columns(&self, [height, width]: [i64; 2]) -> [i64; 2] {
        match self.has_joined_rows() {
            true => pointwise_rows(height * width, self.tile.columns, self.pointwise_rows),
            false => [height, width],
        }
    }

    /// Returns the largest power of two that divides the number of input channels and of a block, which limits the unrolling of the loop over channels.
    pub fn channel_step(&self) -> i64 {
        let common = (self.shape.in_channels | self.block).max(1);
        1 << common.trailing_zeros()
    }

    /// Returns a divisor of [`Conv::channel_step`] for code that takes the number of input channels as an argument: a whole block, 4 or 1. Other divisors would
    /// make the code of rare numbers of channels slightly faster, but no other kernel could use it.
    pub fn channel_step_of_arguments(&self) -> i64 {
        match self.channel_step() {
            step if step == self.block => step,
            4.. => 4,
            _ => 1,
        }
    }

    /// Returns the division of a row into tiles, for code that takes the sizes of images as arguments.
    pub fn row_tiling(&self) -> RowTiling {
        let [input, output] = [self.shape.input, self.shape.output].map(|image| self.rows_and_columns(image)[1]);
        let columns = Axis {
            input,
            output,
            ..Axis::of(&self.shape, 1)
        };
        RowTiling::of(&columns, self.tile.columns)
    }

    /// Returns true if the rows of the image may be joined, and divided again to suit the tiles.
    pub fn has_joined_rows(&self) -> bool {
        self.shape.is_pointwise() && self.output.is_dense()
    }

    /// Packs weights `[out_channels][in_channels / groups][kh][kw]` as `[channel tile][unit][kh][kw][channel of unit][tile.vectors · block output channels]`,
    /// with zeros for channels that do not exist. Units are blocks of the input, or parts of groups, see [`Grouping`]. For Winograd's algorithm, packs the
    /// weights as [`WinogradWeights`] expects them, not transformed.
    pub fn pack_weights(&self, weights: &[f32]) -> Vec<f32> {
        let mut packed = vec![0.0; self.packed_elements()];
        self.pack_into(&reader(weights), &mut packed);
        packed
    }

    /// Returns the number of elements of packed weights.
    pub fn packed_elements(&self) -> usize {
        if let Some(w) = self.transformation() {
            return w.plain_bytes() / 4;
        }
        let grouping = self.grouping();
        let tile = grouping.units() * self.shape.kernel[0] * self.shape.kernel[1] * grouping.channels();
        (self.channel_tiles() * tile * self.block * self.tile.vectors) as usize
    }

    /// Packs weights as [`Conv::pack_weights`] does, into `packed`, which must consist of zeros. `read` copies the weights, in row-major order, from an element
    /// on. It is called on several threads.
    pub fn pack_into(&self, read: &(impl Fn(usize, &mut [f32]) + Sync), packed: &mut [f32]) {
        if let Some(w) = self.transformation() {
            return w.pack_into(read, packed);
        }
        let s = &self.shape;
        let taps = s.kernel[0] * s.kernel[1];
        let (width, grouping) = (self.block * self.tile.vectors, self.grouping());
        let of_unit = grouping.channels();
        let layout = TileLayout {
            out_channels: s.out_channels as usize,
            in_channels: (s.in_channels / s.groups.max(1)) as usize,
            taps: taps as usize,
            width: width as usize,
            elements: (grouping.units() * taps * of_unit * width) as usize,
            tap_stride: (of_unit * width) as usize,
            has_groups: s.groups > 1,
        };
        let place = |o: usize, i: usize| {
            let (unit, channel) = place_of_weight(s, grouping, (width, self.input_block()), o as i64, i as i64);
            ((unit * taps * of_unit + channel) * width) as usize
        };
        layout.pack(read, place, packed);
    }
}
