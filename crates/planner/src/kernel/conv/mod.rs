//! Two-dimensional convolution into blocked layout: dense, grouped, pointwise, and the stem that reads plain NCHW.

mod groups;
mod kernel;
mod tile;
mod winograd;

pub use groups::{Grouping, channels_of_group};
pub use tile::ConvTile;
pub use winograd::{Winograd, WinogradWeights, tiles as winograd_tiles};

use super::pack::in_chunks;
use super::sizes::div_ceil;
use super::{Axis, BlockedShape, Epilogue, RowTiling};
use crate::target::Machine;
use frazil_tensor_ir::pattern::ConvShape;
use groups::place_of_weight;
use tile::{large_images, pointwise_rows};

/// How a convolution's input lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivationLayout<N = i64> {
    /// [`BlockedShape`], dense or with the given batch stride.
    Blocked {
        /// Elements from one image to the next.
        batch_stride: N,
    },
    /// Plain dense NCHW: the image that a model is given.
    Plain,
}

/// Where the results lie in the output image: `step` rows and columns apart, from where the output buffer starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StridedOutput<N = i64> {
    /// Height and width of the image.
    pub image: [N; 2],
    /// Distance of results.
    pub step: [i64; 2],
}

impl StridedOutput {
    /// An image that is all results.
    pub fn dense(image: [i64; 2]) -> StridedOutput {
        StridedOutput { image, step: [1, 1] }
    }
}

impl<N> StridedOutput<N> {
    /// True when the image is all results.
    pub fn is_dense(&self) -> bool {
        self.step == [1, 1]
    }
}

/// A convolution, f32. Buffers: input, packed weights ([`Conv::pack_weights`], which [`Conv::transformation`] has
/// transformed if there is one), epilogue operands, output (blocked).
///
/// `N` is `i64` where all numbers are known, and what stands for numbers in code elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv<N = i64> {
    /// Sizes.
    pub shape: ConvShape<N>,
    /// Layout of the input.
    pub input: ActivationLayout<N>,
    /// Output elements from one image to the next.
    pub output_batch_stride: N,
    /// Where results lie in an image.
    pub output: StridedOutput<N>,
    /// Channels in a block of the output, and of the input when that is blocked.
    pub block: i64,
    /// Register tile of the direct form.
    pub tile: ConvTile<N>,
    /// Winograd's form instead of the direct one.
    pub winograd: Option<Winograd>,
    /// Parts that Winograd's tasks divide the output channels into, besides the tiles of the image. Each part transforms the input for itself.
    pub channel_parts: N,
    /// Most rows into which the pixels of a pointwise convolution are divided.
    pub pointwise_rows: i64,
    /// Fused epilogue.
    pub epilogue: Epilogue,
}

impl<N> Conv<N> {
    /// The convolution with `f` of each of its numbers, in one order for all convolutions.
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

    /// True when the input is plain.
    pub fn has_plain_input(&self) -> bool {
        matches!(self.input, ActivationLayout::Plain)
    }

    /// Tiles of output channels.
    pub fn channel_tiles(&self) -> i64 {
        div_ceil(self.shape.out_channels, self.block * self.tile.vectors)
    }

    /// Tiles of output channels in Winograd's form.
    pub fn winograd_channel_tiles(&self) -> i64 {
        self.transformation().map_or(0, |w| w.channel_tiles())
    }

    /// Channels in one unit of the input's channel loop: the block, or all channels of a plain input's group.
    pub fn input_block(&self) -> i64 {
        match self.input {
            ActivationLayout::Plain => self.shape.in_channels,
            ActivationLayout::Blocked { .. } => self.block,
        }
    }

    /// What a tile of output channels reads.
    pub fn grouping(&self) -> Grouping {
        let width = self.block * self.tile.vectors;
        Grouping::of(&self.shape, width, self.input_block(), self.has_plain_input())
    }

    /// Elements of weights that are not packed.
    pub fn weight_elements(&self) -> i64 {
        let s = &self.shape;
        s.out_channels * (s.in_channels / s.groups.max(1)) * s.kernel[0] * s.kernel[1]
    }

    /// What turns packed weights into those that the kernel reads.
    pub fn transformation(&self) -> Option<WinogradWeights> {
        self.winograd.map(|form| WinogradWeights {
            form,
            in_channels: self.shape.in_channels,
            out_channels: self.shape.out_channels,
            block: self.block,
        })
    }
}

impl Conv {
    /// A convolution whose output, and input unless `plain_input`, is dense and blocked by the machine's lanes.
    pub fn new(shape: ConvShape, plain_input: bool, epilogue: Epilogue, machine: &Machine) -> Conv {
        Conv::with_output(
            shape,
            StridedOutput::dense(shape.output),
            plain_input,
            epilogue,
            machine,
        )
    }

    /// As [`Conv::new`], with results at some places of a larger image.
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

    /// The convolution with one of a few tiles, which do not depend much on the size of the images. It computes the same bits.
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

    /// Other ways to compute the same that may be faster, for a tuner to measure: the tiles that are estimated to be nearly as good, fewer and
    /// more rows a task, and the direct form in the place of Winograd's.
    pub fn alternatives(&self, machine: &Machine) -> Vec<Conv> {
        let plain_input = self.has_plain_input();
        let flat = self.has_joined_rows();
        let mut tiles: Vec<_> = ConvTile::estimates(&self.shape, plain_input, flat, machine).collect();
        tiles.sort_by(|a, b| a.0.total_cmp(&b.0));
        let nearly = tiles.first().map_or(0.0, |best| best.0 * 1.25);
        tiles.retain(|t| t.0 <= nearly);
        // The best few of each width.
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

    /// The input as a blocked tensor; `None` when it is plain.
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

    /// The output.
    pub fn output_shape(&self) -> BlockedShape {
        let [height, width] = self.output.image;
        let dense = BlockedShape::dense(self.shape.batch, self.shape.out_channels, height, width, self.block);
        BlockedShape {
            batch_stride: self.output_batch_stride,
            ..dense
        }
    }

    /// Number of independent tasks: images × channel tiles × row blocks, or groups of Winograd's tiles × parts of the channels.
    pub fn tasks(&self) -> i64 {
        if let Some(w) = &self.winograd {
            return w.groups(&self.shape) * self.channel_parts;
        }
        let [rows, _] = self.rows_and_columns(self.shape.output);
        self.shape.batch * self.channel_tiles() * div_ceil(rows, self.tile.rows)
    }

    /// The extents that the kernel loops over for an image of `[height, width]`: a pointwise convolution does not care where
    /// rows end, so its rows are as long as its tiles like, and the last may be shorter.
    pub fn rows_and_columns(&self, [height, width]: [i64; 2]) -> [i64; 2] {
        match self.has_joined_rows() {
            true => pointwise_rows(height * width, self.tile.columns, self.pointwise_rows),
            false => [height, width],
        }
    }

    /// True when units are accumulated in several groups, whose sums are added one after the other.
    pub fn has_groups_of_units(&self) -> bool {
        self.grouping().units() > self.tile.channel_blocks
    }

    /// How code that takes the sizes of images as arguments divides a row into tiles.
    pub fn row_tiling(&self) -> RowTiling {
        let [input, output] = [self.shape.input, self.shape.output].map(|image| self.rows_and_columns(image)[1]);
        let columns = Axis {
            input,
            output,
            ..Axis::of(&self.shape, 1)
        };
        RowTiling::of(&columns, self.tile.columns)
    }

    /// True when rows of the image may be joined and split as tiles like.
    pub fn has_joined_rows(&self) -> bool {
        self.shape.is_pointwise() && self.output.is_dense()
    }

    /// Packs weights `[out_channels][in_channels / groups][kh][kw]` as
    /// `[channel tile][unit][kh][kw][channel of unit][tile.vectors · block output channels]`, zero where there is no such channel;
    /// for Winograd's form as [`WinogradWeights`] has them, not transformed. Units are blocks of the input, or parts of groups.
    pub fn pack_weights(&self, weights: &[f32]) -> Vec<f32> {
        let mut packed = vec![0.0; self.packed_elements()];
        self.pack_into(weights, &mut packed);
        packed
    }

    /// Elements of packed weights.
    pub fn packed_elements(&self) -> usize {
        if let Some(w) = self.transformation() {
            return w.plain_bytes() / 4;
        }
        let grouping = self.grouping();
        let tile = grouping.units() * self.shape.kernel[0] * self.shape.kernel[1] * grouping.channels();
        (self.channel_tiles() * tile * self.block * self.tile.vectors) as usize
    }

    /// [`Conv::pack_weights`] into zeros.
    pub fn pack_into(&self, weights: &[f32], packed: &mut [f32]) {
        if let Some(w) = self.transformation() {
            return w.pack_into(weights, packed);
        }
        let s = &self.shape;
        let [kh, kw] = s.kernel;
        let ci = s.in_channels / s.groups.max(1);
        let (width, grouping) = (self.block * self.tile.vectors, self.grouping());
        let of_unit = grouping.channels();
        let tile_elements = (grouping.units() * kh * kw * of_unit * width) as usize;
        in_chunks(packed, tile_elements, |t, packed| {
            let t = t as i64;
            for o in t * width..((t + 1) * width).min(s.out_channels) {
                for i in 0..ci {
                    let (unit, channel) = place_of_weight(s, grouping, (width, self.input_block()), o, i);
                    for tap in 0..kh * kw {
                        let to = ((unit * kh * kw + tap) * of_unit + channel) * width + (o - t * width);
                        if let Some(&w) = weights.get(((o * ci + i) * kh * kw + tap) as usize) {
                            packed[to as usize] = w;
                        }
                    }
                }
            }
        });
    }
}
