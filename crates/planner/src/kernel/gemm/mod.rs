//! Matmul kernels.

mod kernel;
mod tile;

pub use tile::{AnyRows, GemmTile, RowTiles};

use super::Epilogue;
use super::pack::{READ_BYTES, in_chunks, reader, transpose};
use super::sizes::div_ceil;
use crate::target::Machine;

/// One batch loop of a matmul: its extent, and the strides of the operands in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmBatch<N = i64> {
    /// Number of iterations.
    pub extent: N,
    /// Stride of A.
    pub a: N,
    /// Stride of B. Must be 0 when B is packed.
    pub b: N,
    /// Stride of C.
    pub c: N,
}

/// The right operand of the matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GemmB<N = i64> {
    /// Weights in the layout of [`Gemm::pack_b`].
    Packed,
    /// `B[k][n]` is element `k * k_stride + n * n_stride`. B is row-major if `n_stride == 1`, and transposed if `k_stride == 1`.
    Strided {
        /// Distance between rows, in elements.
        k_stride: N,
        /// Distance between columns, in elements.
        n_stride: N,
    },
}

/// A batched matmul of f32 with an epilogue: `C[m][n] = epilogue(Σ_k A[m][k] · B[k][n])` for each index of the batch loops.
///
/// `N` is the type of the integers that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
///
/// Buffers: A, B, epilogue operands, C. The elements of a row of C are contiguous. A `Row` operand of the epilogue has M elements, a `Channel` operand N
/// elements. No buffer overlaps C.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm<N = i64> {
    /// Number of rows of A and C.
    pub m: N,
    /// Number of columns of B and C.
    pub n: N,
    /// Number of columns of A and of rows of B.
    pub k: N,
    /// Batch loops, outermost first; empty for a single matmul.
    pub batch: Vec<GemmBatch<N>>,
    /// Distance between rows of A, in elements.
    pub a_row_stride: N,
    /// Distance between columns of A, in elements: 1 if A is row-major, the length of a stored row if A is transposed.
    pub a_col_stride: N,
    /// The right operand of the matmul.
    pub b: GemmB<N>,
    /// Distance between rows of C, in elements.
    pub c_row_stride: N,
    /// Number of f32 lanes of a vector.
    pub lanes: i64,
    /// Register and cache blocking.
    pub tile: GemmTile<N>,
    /// Fused epilogue.
    pub epilogue: Epilogue,
}

impl<N> Gemm<N> {
    /// Returns the matmul with `f` applied to each of its integers. The order is the same for all matmuls.
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

    /// Returns the number of columns of a register tile.
    pub fn tile_columns(&self) -> i64 {
        self.tile.vectors * self.lanes
    }

    /// Returns true if B is packed.
    pub fn is_packed(&self) -> bool {
        matches!(self.b, GemmB::Packed)
    }
}

impl Gemm {
    /// Returns the matmul `x · Wᵀ` of a linear layer. `x` is row-major, `[m, k]`; the weights are packed from `[n, k]` or `[k, n]`.
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

    /// Returns the matmul with other blockings that may be faster, for a tuner to measure.
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

    /// Returns the number of matmuls in the batch.
    pub fn batch_count(&self) -> i64 {
        self.batch.iter().map(|b| b.extent).product()
    }

    /// Returns the number of rows of the last task among the tasks with the same columns.
    pub fn last_rows(&self) -> i64 {
        self.m - (div_ceil(self.m, self.tile.m_task) - 1).max(0) * self.tile.m_task
    }

    /// Returns the number of independent tasks: matmuls of the batch × row blocks × column blocks.
    pub fn tasks(&self) -> i64 {
        self.batch_count() * div_ceil(self.m, self.tile.m_task) * div_ceil(self.n, self.tile.n_task)
    }

    /// Returns true for a single matmul of few rows with packed weights. Each task computes all rows of its columns, so that only one task reads each weight.
    pub fn streams_weights(&self) -> bool {
        self.b == GemmB::Packed && self.batch_count() == 1 && self.m <= self.tile.m_task && 4 * self.m <= self.n
    }

    /// Packs B, whose element (k, n) is `weights[k * k_stride + n * n_stride]`, as `[n / NR][k][NR]`. NR is the number of columns of a register tile. The last
    /// panel is padded with zeros.
    ///
    /// For the weight `[n, k]` of a linear layer, `k_stride` is 1 and `n_stride` is `k`.
    pub fn pack_b(&self, weights: &[f32], k_stride: i64, n_stride: i64) -> Vec<f32> {
        let mut packed = vec![0.0; self.packed_elements()];
        self.pack_b_into(reader(weights), k_stride, n_stride, &mut packed);
        packed
    }

    /// Returns the number of elements of packed B.
    pub fn packed_elements(&self) -> usize {
        let nr = self.tile_columns();
        (div_ceil(self.n, nr) * nr * self.k) as usize
    }

    /// Packs B as [`Gemm::pack_b`] does, into `packed`, which must consist of zeros. `read` copies the weights from an element on, and is called on several threads. If
    /// the columns of B follow each other in the weights, only the elements of a few panels are in memory at a time.
    pub fn pack_b_into(
        &self,
        read: impl Fn(usize, &mut [f32]) + Sync,
        k_stride: i64,
        n_stride: i64,
        packed: &mut [f32],
    ) {
        let nr = self.tile_columns();
        // Elements from the first one of column `first` to the last one of the `columns` columns.
        let range = |first: i64, columns: i64| {
            let start = first * n_stride;
            let end = start + (columns - 1) * n_stride + (self.k - 1) * k_stride + 1;
            start as usize..end.max(start) as usize
        };
        let is_by_column = k_stride == 1 && n_stride >= self.k;
        let all = (!is_by_column).then(|| {
            let range = range(0, self.n);
            let mut all = vec![0.0; range.len()];
            let part = READ_BYTES / 4;
            in_chunks(&mut all, part, |i, to, _| read(range.start + i * part, to));
            all
        });
        in_chunks(packed, (nr * self.k) as usize, |panel, out, memory| {
            let first = panel as i64 * nr;
            let columns = nr.min(self.n - first);
            let range = range(first, columns);
            let mut pack = |weights: &[f32]| self.pack_panel(weights, [k_stride, n_stride], columns, out);
            match &all {
                Some(all) => pack(all.get(range).unwrap_or_default()),
                None => {
                    memory.resize(range.len(), 0.0);
                    read(range.start, memory);
                    pack(memory);
                }
            }
        });
    }

    /// Packs `columns` columns of B into one panel. `weights` begins with the first element of the first column. `strides` are those of k and n.
    fn pack_panel(&self, weights: &[f32], strides: [i64; 2], columns: i64, panel: &mut [f32]) {
        let (nr, columns) = (self.tile_columns() as usize, columns as usize);
        let [k_stride, n_stride] = strides.map(|stride| stride as usize);
        if k_stride == 1 && n_stride != 1 {
            let places: Vec<usize> = (0..panel.len()).step_by(nr).collect();
            return transpose(weights, n_stride, columns, &places, panel);
        }
        for (row, out) in panel.chunks_mut(nr).enumerate() {
            let from = weights.get(row * k_stride..).unwrap_or_default();
            match n_stride {
                1 => out
                    .iter_mut()
                    .zip(from)
                    .take(columns)
                    .for_each(|(out, from)| *out = *from),
                _ => {
                    let from = from.iter().step_by(n_stride.max(1));
                    out.iter_mut()
                        .zip(from)
                        .take(columns)
                        .for_each(|(out, from)| *out = *from);
                }
            }
        }
    }
}
