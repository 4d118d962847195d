//! Winograd's minimal filtering for 3×3 convolutions: fewer multiplications for the price of transforms.

use super::ConvShape;
use super::gemm::div_ceil;
use crate::target::VectorUnit;
use rayon::prelude::*;

/// Largest transformed input that a task keeps on its stack.
const MAX_INPUT_BYTES: i64 = 512 * 1024;
/// Fewest tiles for which reading the transformed weights, which are 16/9 of the plain ones, pays.
const MIN_TILES: i64 = 32;

/// Blocking of F(m×m, 3×3): outputs are computed in tiles of m × m from (m+2) × (m+2) inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Winograd {
    /// m: 2, as accurate as direct convolution, or 4, which loses a digit and a half.
    pub outputs: i64,
    /// Tiles of a task, which are the columns of its register tile.
    pub columns: i64,
    /// Vectors of output channels of the register tile.
    pub vectors: i64,
}

impl Winograd {
    /// A blocking of F(2×2, 3×3), when that is expected to be faster than direct convolution.
    pub fn choose(shape: &ConvShape, vector: VectorUnit) -> Option<Winograd> {
        let applies = shape.kernel == [3, 3] && shape.stride == [1, 1] && shape.dilation == [1, 1] && shape.groups == 1;
        let tiles = tiles(shape, 2);
        if !applies || tiles < MIN_TILES || shape.in_channels < vector.lanes || shape.out_channels < vector.lanes {
            return None;
        }
        // Cycles a tile: multiply-adds, against those of the direct form, and the transforms.
        let (blocks_in, blocks_out) = (
            div_ceil(shape.in_channels, vector.lanes),
            div_ceil(shape.out_channels, vector.lanes),
        );
        let steps = (shape.in_channels * blocks_out) as f64 / 2.0;
        let used = (shape.output[0] * shape.output[1]) as f64 / tiles as f64;
        if 16.0 * steps + 45.0 * (blocks_in + blocks_out) as f64 > 0.9 * 9.0 * used * steps {
            return None;
        }
        let mut best = None;
        for vectors in 1..=4 {
            if blocks_out % vectors != 0 {
                continue;
            }
            let most = ((vector.registers - vectors - 1) / vectors).min(28);
            for columns in 1..=most.min(tiles * shape.batch) {
                if Self::input_elements(shape, 2, columns, vector.lanes) * 4 > MAX_INPUT_BYTES {
                    break;
                }
                let fma = (columns * vectors) as f64;
                let loads = (columns + vectors) as f64;
                // A vector of weights comes from L2 or further: about eight bytes a cycle are to be had.
                let cycles = (fma / 2.0)
                    .max(loads / 2.0)
                    .max(4.0)
                    .max((vectors * vector.lanes) as f64 / 2.0 / 1.5);
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
        best.map(|(_, w)| w)
    }

    /// m + 2: inputs of a tile in each direction.
    pub fn inputs(&self) -> i64 {
        self.outputs + 2
    }

    /// Elements of a task's transformed input.
    pub(crate) fn input_elements(shape: &ConvShape, outputs: i64, columns: i64, block: i64) -> i64 {
        (outputs + 2) * (outputs + 2) * div_ceil(shape.in_channels, block) * block * columns
    }

    /// Number of tasks.
    pub fn tasks(&self, shape: &ConvShape) -> i64 {
        div_ceil(shape.batch * tiles(shape, self.outputs), self.columns)
    }

    /// The matrices Bᵀ (input), G (weights) and Aᵀ (output), row by row.
    pub(crate) fn matrices(&self) -> [Vec<Vec<f64>>; 3] {
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
            ],
        }
    }

    /// Transforms weights `[out][in][3][3]` to `[channel tile][position][in][vectors · block]`, position being the (m+2)² of a tile.
    pub(crate) fn pack_weights(&self, shape: &ConvShape, block: i64, weights: &[f32]) -> Vec<f32> {
        let [_, g, _] = self.matrices();
        let (n, width, channels) = (
            self.inputs() as usize,
            (block * self.vectors) as usize,
            shape.in_channels as usize,
        );
        let (tiles, outputs) = (
            (shape.out_channels as usize).div_ceil(width),
            shape.out_channels as usize,
        );
        let mut packed = vec![0.0; tiles * n * n * channels * width];
        let tile_elements = (n * n * channels * width).max(1);
        packed
            .par_chunks_mut(tile_elements)
            .enumerate()
            .for_each(|(tile, packed)| {
                let first = tile * width;
                for c in 0..channels {
                    for o in first..outputs.min(first + width) {
                        let at = (o * channels + c) * 9;
                        let Some(w) = weights.get(at..at + 9) else { continue };
                        // G w, then that times Gᵀ.
                        for (i, row) in g.iter().enumerate() {
                            let half: [f64; 3] = std::array::from_fn(|x| {
                                row.iter().enumerate().map(|(y, a)| a * f64::from(w[y * 3 + x])).sum()
                            });
                            for (j, column) in g.iter().enumerate() {
                                let sum: f64 = column.iter().zip(half).map(|(b, h)| b * h).sum();
                                packed[((i * n + j) * channels + c) * width + o - first] = sum as f32;
                            }
                        }
                    }
                }
            });
        packed
    }
}

/// Output tiles of one image.
pub(crate) fn tiles(shape: &ConvShape, outputs: i64) -> i64 {
    div_ceil(shape.output[0], outputs) * div_ceil(shape.output[1], outputs)
}
