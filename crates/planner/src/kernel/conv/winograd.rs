//! Winograd's minimal filtering for 3×3 convolutions: fewer multiplications at the cost of transforms.

use super::pack::TileLayout;
use crate::kernel::code::{image_constant, text};
use crate::kernel::sizes::div_ceil;
use crate::kernel::{ConvShape, Kernel, Numbers};
use crate::target::Machine;
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

/// Blocking of F(m×m, 3×3): a tile of m × m outputs is computed from (m+2) × (m+2) inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Winograd {
    /// m, the number of outputs of a tile in each direction: 2, as accurate as direct convolution, or 4, which loses one and a half decimal digits.
    pub outputs: i64,
    /// Number of tiles in a group. They are the columns of the group's register tile.
    pub columns: i64,
    /// Number of vectors of output channels of the register tile.
    pub vectors: i64,
}

impl Winograd {
    /// Returns a blocking of F(2×2, 3×3) if it is expected to be faster than direct convolution.
    pub fn choose(shape: &ConvShape, machine: &Machine) -> Option<Winograd> {
        let (vector, ports, parameters) = (machine.vector, &machine.ports, &machine.winograd);
        let applies = shape.kernel == [3, 3] && shape.stride == [1, 1] && shape.dilation == [1, 1] && shape.groups == 1;
        let tiles = tiles(shape, 2);
        if !applies || tiles < parameters.tiles || shape.in_channels < vector.lanes || shape.out_channels < vector.lanes
        {
            return None;
        }
        // Cycles per tile: multiply-adds and transforms, compared with the multiply-adds of the direct algorithm.
        let (blocks_in, blocks_out) = (
            div_ceil(shape.in_channels, vector.lanes),
            div_ceil(shape.out_channels, vector.lanes),
        );
        let steps = (shape.in_channels * blocks_out) as f64 / ports.fma;
        let used = (shape.output[0] * shape.output[1]) as f64 / tiles as f64;
        let transforms = parameters.transform_cycles * (blocks_in + blocks_out) as f64;
        if 16.0 * steps + transforms > parameters.worthwhile_ratio * 9.0 * used * steps {
            return None;
        }
        let mut best = None;
        for vectors in 1..=4 {
            if blocks_out % vectors != 0 {
                continue;
            }
            let most = ((vector.registers - vectors - 1) / vectors).min(parameters.tile_columns);
            for columns in 1..=most.min(tiles * shape.batch) {
                if Self::input_elements(shape, 2, columns, vector.lanes) * 4 > parameters.input_bytes {
                    break;
                }
                // Vectors of weights come from L2 or further away.
                let weight_bytes = (4 * vectors * vector.lanes) as f64;
                let cycles = ports
                    .tile_step(columns, vectors)
                    .max(weight_bytes / parameters.weight_bytes_per_cycle);
                let cost = cycles * (div_ceil(tiles * shape.batch, columns) * (blocks_out / vectors)) as f64;
                if best.is_none_or(|(c, _)| cost < c) {
                    best = Some((
                        cost,
                        Winograd {
                            outputs: 2,
                            columns,
                            vectors,
                        },
                    ));
                }
            }
        }
        // With many input channels, only few tiles fit a task. Each task reads all weights, so loading them is the bottleneck.
        let direct = 9.0 / ports.fma * (shape.output[0] * shape.output[1] * shape.batch * blocks_out) as f64;
        let (_, form) = best.filter(|(cost, _)| 16.0 * cost <= parameters.worthwhile_ratio * direct)?;
        Some(form)
    }

    /// Returns m + 2, the number of inputs of a tile in each direction.
    pub fn inputs(&self) -> i64 {
        self.outputs + 2
    }

    /// Returns the number of elements of a task's transformed input.
    pub fn input_elements(shape: &ConvShape, outputs: i64, columns: i64, block: i64) -> i64 {
        (outputs + 2) * (outputs + 2) * div_ceil(shape.in_channels, block) * block * columns
    }

    /// Returns the number of groups of tiles. A group is one task, or several tasks with [`Conv::channel_parts`](super::Conv::channel_parts).
    pub fn groups(&self, shape: &ConvShape) -> i64 {
        div_ceil(shape.batch * tiles(shape, self.outputs), self.columns)
    }

    /// Returns the estimated time of a task for transforming its input, relative to its time for one tile of output channels.
    pub fn input_share(&self, shape: &ConvShape, machine: &Machine) -> f64 {
        let transform = machine.winograd.transform_cycles;
        let positions = self.inputs() * self.inputs();
        let products = (positions * shape.in_channels * self.vectors) as f64 / machine.ports.fma;
        let blocks = div_ceil(shape.in_channels, machine.vector.lanes) as f64;
        transform * blocks / (products + transform * self.vectors as f64)
    }

    /// Returns the matrices Bᵀ (input), G (weights), Aᵀ (output), and the left inverse of G, each as a list of rows.
    pub fn matrices(&self) -> [Vec<Vec<f64>>; 4] {
        let rows = |r: &[&[f64]]| r.iter().map(|x| x.to_vec()).collect::<Vec<_>>();
        match self.outputs {
            4 => [
                rows(&[
                    &[4., 0., -5., 0., 1., 0.],
                    &[0., -4., -4., 1., 1., 0.],
                    &[0., 4., -4., -1., 1., 0.],
                    &[0., -2., -1., 2., 1., 0.],
                    &[0., 2., -1., -2., 1., 0.],
                    &[0., 4., 0., -5., 0., 1.],
                ]),
                rows(&[
                    &[1. / 4., 0., 0.],
                    &[-1. / 6., -1. / 6., -1. / 6.],
                    &[-1. / 6., 1. / 6., -1. / 6.],
                    &[1. / 24., 1. / 12., 1. / 6.],
                    &[1. / 24., -1. / 12., 1. / 6.],
                    &[0., 0., 1.],
                ]),
                rows(&[
                    &[1., 1., 1., 1., 1., 0.],
                    &[0., 1., -1., 2., -2., 0.],
                    &[0., 1., 1., 4., 4., 0.],
                    &[0., 1., -1., 8., -8., 1.],
                ]),
                rows(&[
                    &[4., 0., 0., 0., 0., 0.],
                    &[0., -3., 3., 0., 0., 0.],
                    &[0., 0., 0., 0., 0., 1.],
                ]),
            ],
            _ => [
                rows(&[
                    &[1., 0., -1., 0.],
                    &[0., 1., 1., 0.],
                    &[0., -1., 1., 0.],
                    &[0., 1., 0., -1.],
                ]),
                rows(&[&[1., 0., 0.], &[0.5, 0.5, 0.5], &[0.5, -0.5, 0.5], &[0., 0., 1.]]),
                rows(&[&[1., 1., 1., 0.], &[0., 1., -1., -1.]]),
                rows(&[&[1., 0., 0., 0.], &[0., 1., -1., 0.], &[0., 0., 0., 1.]]),
            ],
        }
    }
}

/// Transformation of weights for Winograd's algorithm. It runs when the code is loaded, because transformed weights take more memory than plain weights.
///
/// Plain weights are `[channel tile][in][3][3][vectors · block]`, as packed by [`Conv::pack_weights`](super::Conv::pack_weights). Transformed weights are
/// `[channel tile][position][in][vectors · block]`, with the (m+2)² positions of a tile. Buffers: plain weights, transformed weights.
///
/// `N` is the type of the integers that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WinogradWeights<N = i64> {
    /// Blocking of the convolution.
    pub form: Winograd,
    /// Number of input channels.
    pub in_channels: N,
    /// Number of output channels.
    pub out_channels: N,
    /// Number of channels of a block: the lanes of a vector.
    pub block: i64,
}

impl<N> WinogradWeights<N> {
    /// Returns the transformation with `f` applied to the numbers of channels, in one order.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> WinogradWeights<M> {
        WinogradWeights {
            form: self.form,
            in_channels: f(&self.in_channels),
            out_channels: f(&self.out_channels),
            block: self.block,
        }
    }

    /// Returns the number of output channels of a register tile.
    pub fn width(&self) -> i64 {
        self.block * self.form.vectors
    }
}

impl WinogradWeights {
    /// Returns the number of tiles of output channels. The last tile may be padded.
    pub fn channel_tiles(&self) -> i64 {
        div_ceil(self.out_channels, self.width())
    }

    /// Returns the number of independent tasks: one for each pair of a tile of output channels and an input channel.
    pub fn tasks(&self) -> i64 {
        self.channel_tiles() * self.in_channels
    }

    /// Packs weights `[out][in][3][3]` as plain weights into `packed`, which must consist of zeros. `read` copies the weights, in row-major order, from an
    /// element on. It is called on several threads.
    pub fn pack_into(&self, read: &(impl Fn(usize, &mut [f32]) + Sync), packed: &mut [f32]) {
        let (width, channels) = (self.width() as usize, self.in_channels as usize);
        let layout = TileLayout {
            out_channels: self.out_channels as usize,
            in_channels: channels,
            taps: 9,
            width,
            elements: channels * 9 * width,
            tap_stride: width,
            has_groups: false,
        };
        layout.pack(read, |_, i| i * 9 * width, packed);
    }

    /// Returns the size of the plain weights in bytes.
    pub fn plain_bytes(&self) -> usize {
        (self.tasks() * 9 * self.width() * 4) as usize
    }

    /// Returns the size of the transformed weights in bytes.
    pub fn transformed_bytes(&self) -> usize {
        let positions = self.form.inputs() * self.form.inputs();
        (self.tasks() * positions * self.width() * 4) as usize
    }
}

/// Returns the number of tiles of `outputs` × `outputs` outputs in one image.
pub fn tiles(shape: &ConvShape, outputs: i64) -> i64 {
    div_ceil(shape.output[0], outputs) * div_ceil(shape.output[1], outputs)
}

impl Kernel for WinogradWeights {
    fn family(&self) -> &'static str {
        "winograd_weights"
    }

    fn lanes(&self) -> i64 {
        self.block
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
        let mut constants = self.map(&mut |n| image_constant(*n, is_argument.next()));
        // The transformation does not depend on the number of tiles.
        constants.form.columns = 0;
        text(format_args!("{constants:?}"))
    }

    fn flops(&self) -> i64 {
        0
    }

    fn bytes(&self) -> i64 {
        (self.plain_bytes() + self.transformed_bytes()) as i64
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        writeln!(
            out,
            "  winograd weights F({0}x{0}, 3x3), {1}x{2} channels, {3} at a time",
            self.form.outputs,
            self.out_channels,
            self.in_channels,
            self.width()
        )
    }
}
