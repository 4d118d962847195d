//! Matmuls.

mod kernel;
mod tile;

pub use tile::{GemmTile, RowTiles};

use super::Epilogue;
use super::pack::in_chunks;
use super::sizes::div_ceil;
use crate::target::Machine;

/// One batch loop of a matmul: its extent, and what each operand advances by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmBatch<N = i64> {
    /// Number of products.
    pub extent: N,
    /// Stride of A.
    pub a: N,
    /// Stride of B. Must be 0 when B is packed.
    pub b: N,
    /// Stride of C.
    pub c: N,
}

/// The right operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GemmB<N = i64> {
    /// Weights in the layout of [`Gemm::pack_b`].
    Packed,
    /// `B[k][n]` at `k * k_stride + n * n_stride`: `n_stride == 1` is row-major, `k_stride == 1` is transposed.
    Strided {
        /// Distance of rows.
        k_stride: N,
        /// Distance of columns.
        n_stride: N,
    },
}

/// `C[m][n] = epilogue(Σ_k A[m][k] · B[k][n])`, f32, over the batch loops.
///
/// `N` is `i64` where all numbers are known, and what stands for numbers in code elsewhere.
///
/// Buffers: A, B, epilogue operands, C. C's columns are contiguous. A `Row` operand of the epilogue has M elements, a `Channel` operand N.
/// No buffer overlaps C.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm<N = i64> {
    /// Rows of A and C.
    pub m: N,
    /// Columns of B and C.
    pub n: N,
    /// Columns of A, rows of B.
    pub k: N,
    /// Batch loops, outermost first; empty for one product.
    pub batch: Vec<GemmBatch<N>>,
    /// Distance of A's rows.
    pub a_row_stride: N,
    /// Distance of A's columns: 1 for row-major, the row length for a transposed A.
    pub a_col_stride: N,
    /// The right operand.
    pub b: GemmB<N>,
    /// Distance of C's rows.
    pub c_row_stride: N,
    /// f32 lanes of a vector.
    pub lanes: i64,
    /// Blocking.
    pub tile: GemmTile<N>,
    /// Fused epilogue.
    pub epilogue: Epilogue,
}

impl<N> Gemm<N> {
    /// The product with `f` of each of its numbers, in one order for all products.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Gemm<M> {
        Gemm {
            m: f(&self.m),
            n: f(&self.n),
            k: f(&self.k),
            batch: self
                .batch
                .iter()
                .map(|b| GemmBatch {
                    extent: f(&b.extent),
                    a: f(&b.a),
                    b: f(&b.b),
                    c: f(&b.c),
                })
                .collect(),
            a_row_stride: f(&self.a_row_stride),
            a_col_stride: f(&self.a_col_stride),
            b: match &self.b {
                GemmB::Packed => GemmB::Packed,
                GemmB::Strided { k_stride, n_stride } => GemmB::Strided {
                    k_stride: f(k_stride),
                    n_stride: f(n_stride),
                },
            },
            c_row_stride: f(&self.c_row_stride),
            lanes: self.lanes,
            tile: GemmTile {
                rows: self.tile.rows,
                vectors: self.tile.vectors,
                k_block: f(&self.tile.k_block),
                m_task: f(&self.tile.m_task),
                n_task: f(&self.tile.n_task),
            },
            epilogue: self.epilogue.clone(),
        }
    }

    /// Columns of a register tile.
    pub fn tile_columns(&self) -> i64 {
        self.tile.vectors * self.lanes
    }

    /// True when B is packed.
    pub fn is_packed(&self) -> bool {
        matches!(self.b, GemmB::Packed)
    }
}

impl Gemm {
    /// `x · Wᵀ` with `x` row-major [m, k] and weights packed from [n, k] or [k, n].
    pub fn linear(m: i64, n: i64, k: i64, epilogue: Epilogue, machine: &Machine) -> Gemm {
        Gemm {
            m,
            n,
            k,
            batch: Vec::new(),
            a_row_stride: k,
            a_col_stride: 1,
            b: GemmB::Packed,
            c_row_stride: n,
            lanes: machine.vector.lanes,
            tile: GemmTile::choose(1, [m, n, k], machine),
            epilogue,
        }
    }

    /// Other blockings that may be faster, for a tuner to measure.
    pub fn alternatives(&self, machine: &Machine) -> Vec<Gemm> {
        let (sizes, k_block) = ([self.m, self.n, self.k], machine.gemm.k_block);
        let mut found: Vec<Gemm> = Vec::new();
        for vectors in 1..=4 {
            for chain in [k_block, k_block / 2, 2 * k_block] {
                let tile = GemmTile::with(self.batch_count(), sizes, machine, vectors, chain);
                let gemm = Gemm { tile, ..self.clone() };
                if gemm != *self && !found.contains(&gemm) {
                    found.push(gemm);
                }
            }
        }
        found
    }

    /// Number of products of the batch.
    pub fn batch_count(&self) -> i64 {
        self.batch.iter().map(|b| b.extent).product()
    }

    /// Rows of the last task of a column.
    pub fn last_rows(&self) -> i64 {
        self.m - (div_ceil(self.m, self.tile.m_task) - 1).max(0) * self.tile.m_task
    }

    /// Number of independent tasks: products × row blocks × column blocks.
    pub fn tasks(&self) -> i64 {
        self.batch_count() * div_ceil(self.m, self.tile.m_task) * div_ceil(self.n, self.tile.n_task)
    }

    /// True for a product of few rows with weights: each task has its own columns of them, and all rows.
    pub fn streams_weights(&self) -> bool {
        self.b == GemmB::Packed && self.batch_count() == 1 && self.m <= self.tile.m_task && 4 * self.m <= self.n
    }

    /// Packs B, whose element (k, n) is `weights[k * k_stride + n * n_stride]`, as `[n / NR][k][NR]` with NR the tile's
    /// columns; the last panel is padded with zeros.
    ///
    /// For a linear layer's weight [n, k]: `k_stride = 1`, `n_stride = k`.
    pub fn pack_b(&self, weights: &[f32], k_stride: i64, n_stride: i64) -> Vec<f32> {
        let mut packed = vec![0.0; self.packed_elements()];
        self.pack_b_into(weights, k_stride, n_stride, &mut packed);
        packed
    }

    /// Elements of packed B.
    pub fn packed_elements(&self) -> usize {
        let nr = self.tile_columns();
        (div_ceil(self.n, nr) * nr * self.k) as usize
    }

    /// [`Gemm::pack_b`] into zeros.
    pub fn pack_b_into(&self, weights: &[f32], k_stride: i64, n_stride: i64, packed: &mut [f32]) {
        let nr = self.tile_columns();
        in_chunks(packed, (nr * self.k) as usize, |panel, out| {
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
    }
}
