//! Matrix products.

use super::Epilogue;
use super::pack::in_stretches;
use crate::target::Machine;
use serde::{Deserialize, Serialize};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

    /// Columns of a register tile.
    pub fn tile_columns(&self) -> i64 {
        self.tile.vectors * self.lanes
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
    pub(crate) fn pack_b_into(&self, weights: &[f32], k_stride: i64, n_stride: i64, packed: &mut [f32]) {
        let nr = self.tile_columns();
        in_stretches(packed, (nr * self.k) as usize, |panel, out| {
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

impl GemmTile {
    /// A blocking for `products` products of m × n × k: the one whose register tiles are estimated to take the least time.
    pub fn choose(products: i64, sizes: [i64; 3], machine: &Machine) -> GemmTile {
        let parameters = &machine.gemm;
        let with = |vectors| GemmTile::with(products, sizes, machine, vectors, parameters.k_block);
        // Few rows need many columns to hide the latency of the multiply-adds.
        if sizes[0] <= parameters.few_rows {
            return with(parameters.few_rows_vectors);
        }
        let columns = |tile: &GemmTile| tile.vectors * machine.vector.lanes;
        let time = |tile: &GemmTile| tile.time(sizes[0], machine) * div_ceil(sizes[1], columns(tile)) as f64;
        let tiles = parameters.tile_vectors.iter().map(|&vectors| with(vectors));
        let best = tiles.reduce(|best, next| match time(&next) < time(&best) {
            true => next,
            false => best,
        });
        best.unwrap_or_else(|| with(1))
    }

    /// Estimated cycles that a step of k takes for `m` rows of one tile's columns.
    fn time(&self, m: i64, machine: &Machine) -> f64 {
        let (row, vector) = (machine.gemm.row_cycles, machine.gemm.vector_cycles);
        let step =
            |rows: i64| machine.ports.tile_step(rows, self.vectors) + row * rows as f64 + vector * self.vectors as f64;
        let task = |rows: i64| {
            let t = self.row_tiles(rows);
            let rest = if t.rest > 0 { step(t.rest) } else { 0.0 };
            t.full as f64 * step(self.rows) + t.shorter as f64 * step(self.rows - 1) + rest
        };
        let full = (div_ceil(m, self.m_task) - 1).max(0);
        full as f64 * task(self.m_task) + task(m - full * self.m_task)
    }

    /// The blocking with register tiles of at most so many vectors of columns, and chains of at most so many multiply-adds.
    fn with(products: i64, [m, n, k]: [i64; 3], machine: &Machine, vectors: i64, chain: i64) -> GemmTile {
        let (vector, parameters) = (machine.vector, &machine.gemm);
        // Accumulators, one vector a column of B, and one broadcast must fit the registers.
        let vectors = vectors.min(div_ceil(n, vector.lanes)).max(1);
        let most = (vector.registers - vectors - 1) / vectors;
        let most = most.min(parameters.tile_rows).max(1);
        let k_block = k.clamp(1, chain.max(1));
        let m = m.max(1);
        let m_tasks = div_ceil(m, (parameters.a_block_bytes / (4 * k_block)).max(most));
        // Tiles of a task, then their rows: tiles of this height and of one row less cover the last task; see `row_tiles`.
        let tiles = div_ceil(div_ceil(m, m_tasks), most);
        let rows = div_ceil(m, m_tasks * tiles);
        let nr = vectors * vector.lanes;
        let panels = div_ceil(n, nr).max(1);
        let fewest = div_ceil(panels, (parameters.task_columns / nr).max(1));
        let n_tasks = div_ceil(parameters.tasks, products.max(1) * m_tasks).max(fewest);
        // A multiple of four divides well among a few threads.
        let n_tasks = if n_tasks > 1 { div_ceil(n_tasks, 4) * 4 } else { 1 };
        GemmTile {
            rows,
            vectors,
            k_block,
            m_task: rows * tiles,
            n_task: nr * div_ceil(panels, n_tasks),
        }
    }

    /// How `count` rows of a task are done: so many tiles of [`GemmTile::rows`], then so many of one row less if that comes out even, then
    /// the rest in one tile.
    pub fn row_tiles(&self, count: i64) -> RowTiles {
        let tiles = div_ceil(count, self.rows);
        let shorter = tiles * self.rows - count;
        match shorter <= tiles && self.rows > 1 {
            true => RowTiles {
                full: tiles - shorter,
                shorter,
                rest: 0,
            },
            false => RowTiles {
                full: count / self.rows,
                shorter: 0,
                rest: count % self.rows,
            },
        }
    }
}

/// See [`GemmTile::row_tiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTiles {
    /// Tiles of full height.
    pub full: i64,
    /// Tiles of one row less.
    pub shorter: i64,
    /// Rows of one more tile, if not 0.
    pub rest: i64,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{AVX2, SAPPHIRE_RAPIDS, ZEN4};

    #[test]
    fn tiles_do_not_exceed_the_columns_by_much() {
        for (n, vectors) in [(768, 3), (1152, 3), (256, 2), (64, 2), (32, 2), (16, 1)] {
            let tile = GemmTile::choose(1, [128, n, 768], &SAPPHIRE_RAPIDS);
            assert_eq!(tile.vectors, vectors, "{n} columns: {tile:?}");
        }
    }

    #[test]
    fn tiles_cover_all_rows() {
        for machine in [&SAPPHIRE_RAPIDS, &ZEN4, &AVX2] {
            for m in (1..600).chain([1000, 1024, 4096]) {
                let tile = GemmTile::choose(1, [m, 768, 768], machine);
                let gemm = Gemm {
                    tile,
                    ..Gemm::linear(m, 768, 768, Epilogue::none(), machine)
                };
                let last = gemm.last_rows();
                assert!(
                    tile.m_task % tile.rows == 0 && last >= 1 && last <= tile.m_task,
                    "{m}: {tile:?}"
                );
                let registers = tile.vectors * (tile.rows + 1) + 1;
                assert!(
                    registers <= machine.vector.registers,
                    "{m}: {registers} registers, {tile:?}"
                );
                let t = tile.row_tiles(last);
                let covered = t.full * tile.rows + t.shorter * (tile.rows - 1) + t.rest;
                assert_eq!(covered, last, "{m}: {tile:?}");
            }
        }
    }
}
