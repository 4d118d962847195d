//! Matrix products.

use super::Epilogue;
use crate::target::VectorUnit;
use rayon::prelude::*;

/// One batch loop of a matrix product: its extent, and what each operand advances by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmBatch {
    /// Number of products.
    pub extent: i64,
    /// Stride of A.
    pub a: i64,
    /// Stride of B. Must be 0 when B is packed.
    pub b: i64,
    /// Stride of C.
    pub c: i64,
}

/// The right operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GemmB {
    /// Weights in the layout of [`Gemm::pack_b`].
    Packed,
    /// `B[k][n]` at `k * k_stride + n * n_stride`: `n_stride == 1` is row-major, `k_stride == 1` is transposed.
    Strided {
        /// Distance of rows.
        k_stride: i64,
        /// Distance of columns.
        n_stride: i64,
    },
}

/// Register and cache blocking of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmTile {
    /// Rows of a register tile.
    pub rows: i64,
    /// Vectors of columns of a register tile.
    pub vectors: i64,
    /// Length of a chain of multiply-adds before it is added to the result.
    pub k_block: i64,
    /// Rows of a task.
    pub m_task: i64,
    /// Columns of a task; a multiple of the tile's columns.
    pub n_task: i64,
}

/// `C[m][n] = epilogue(Σ_k A[m][k] · B[k][n])`, f32, over the batch loops.
///
/// Buffers: A, B, epilogue operands, C. C's columns are contiguous. A `Row` operand of the epilogue has M elements, a `Channel` operand N.
/// No buffer overlaps C.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    /// Rows of A and C.
    pub m: i64,
    /// Columns of B and C.
    pub n: i64,
    /// Columns of A, rows of B.
    pub k: i64,
    /// Batch loops, outermost first; empty for one product.
    pub batch: Vec<GemmBatch>,
    /// Distance of A's rows.
    pub a_row_stride: i64,
    /// Distance of A's columns: 1 for row-major, the row length for a transposed A.
    pub a_col_stride: i64,
    /// The right operand.
    pub b: GemmB,
    /// Distance of C's rows.
    pub c_row_stride: i64,
    /// f32 lanes of a vector.
    pub lanes: i64,
    /// Blocking.
    pub tile: GemmTile,
    /// Fused epilogue.
    pub epilogue: Epilogue,
}

impl Gemm {
    /// `x · Wᵀ` with `x` row-major [m, k] and weights packed from [n, k] or [k, n].
    pub fn linear(m: i64, n: i64, k: i64, epilogue: Epilogue, vector: VectorUnit) -> Gemm {
        Gemm {
            m,
            n,
            k,
            batch: Vec::new(),
            a_row_stride: k,
            a_col_stride: 1,
            b: GemmB::Packed,
            c_row_stride: n,
            lanes: vector.lanes,
            tile: GemmTile::choose(m, n, k, vector),
            epilogue,
        }
    }

    /// Number of products of the batch.
    pub fn batch_count(&self) -> i64 {
        self.batch.iter().map(|b| b.extent).product()
    }

    /// Columns of a register tile.
    pub fn tile_columns(&self) -> i64 {
        self.tile.vectors * self.lanes
    }

    /// Number of independent tasks: products × row blocks × column blocks.
    pub fn tasks(&self) -> i64 {
        self.batch_count() * div_ceil(self.m, self.tile.m_task) * div_ceil(self.n, self.tile.n_task)
    }

    /// Packs B, whose element (k, n) is `weights[k * k_stride + n * n_stride]`, as `[n / NR][k][NR]` with NR the tile's
    /// columns; the last panel is padded with zeros.
    ///
    /// For a linear layer's weight [n, k]: `k_stride = 1`, `n_stride = k`.
    pub fn pack_b(&self, weights: &[f32], k_stride: i64, n_stride: i64) -> Vec<f32> {
        let nr = self.tile_columns();
        let mut packed = vec![0.0; (div_ceil(self.n, nr) * nr * self.k) as usize];
        packed
            .par_chunks_mut((nr * self.k).max(1) as usize)
            .enumerate()
            .for_each(|(panel, out)| {
                let first = panel as i64 * nr;
                for column in 0..nr.min(self.n - first) {
                    for k in 0..self.k {
                        let from = k * k_stride + (first + column) * n_stride;
                        if let Some(&w) = weights.get(from as usize) {
                            out[(k * nr + column) as usize] = w;
                        }
                    }
                }
            });
        packed
    }
}

impl GemmTile {
    /// A blocking for an m × n × k product.
    pub fn choose(m: i64, n: i64, k: i64, vector: VectorUnit) -> GemmTile {
        let wide = vector.registers >= 32;
        // Accumulators, one vector a column of B, and one broadcast must fit the registers.
        // Few rows need many columns to hide the latency of the multiply-adds.
        let wanted = if m <= 4 { 4 } else { 2 };
        let vectors = wanted.min(div_ceil(n, vector.lanes)).max(1);
        let most = if wide { 28 / vectors } else { 12 / vectors };
        let most = most.min(if wide { 14 } else { 6 });
        let rows = if m <= most { m.max(1) } else { balanced(m, most) };
        let nr = vectors * vector.lanes;
        let m_task = if m <= 4 * rows {
            m.max(1)
        } else {
            div_ceil(96, rows) * rows
        };
        let n_task = nr * (256 / nr).clamp(1, div_ceil(n, nr).max(1));
        GemmTile {
            rows,
            vectors,
            k_block: k.clamp(1, 384),
            m_task,
            n_task,
        }
    }
}

/// The tile extent not above `most` that covers `m` with the fewest tiles; of those one without a remainder, or the smallest.
pub(super) fn balanced(m: i64, most: i64) -> i64 {
    let low = (most / 2).max(1);
    (low..=most)
        .min_by_key(|&r| (div_ceil(m, r), m % r != 0, r))
        .unwrap_or(most)
}

/// ⌈a / b⌉ for a ≥ 0, b > 0.
pub(super) fn div_ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}
