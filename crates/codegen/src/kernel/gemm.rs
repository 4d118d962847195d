//! Matrix products.

use super::Epilogue;
use super::pack::in_stretches;
use crate::target::VectorUnit;
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
            tile: GemmTile::choose(1, [m, n, k], vector),
            epilogue,
        }
    }

    /// Other blockings that may be faster, for a tuner to measure.
    pub fn alternatives(&self, vector: VectorUnit) -> Vec<Gemm> {
        let sizes = [self.m, self.n, self.k];
        let mut found: Vec<Gemm> = Vec::new();
        for vectors in 1..=4 {
            for chain in [384, 192, 768] {
                let tile = GemmTile::with(self.batch_count(), sizes, vector, vectors, chain);
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

/// Bytes of A's block, which stays in L2 while a column block of B passes by.
const A_BYTES: i64 = 320 << 10;
/// Tasks that keep a few threads evenly busy.
const WANTED_TASKS: i64 = 8;
/// Columns of a task at most: its block of B stays in L2 while the rows pass by.
const MAX_COLUMNS: i64 = 256;

impl GemmTile {
    /// A blocking for `products` products of m × n × k: the one whose register tiles are estimated to take the least time.
    pub fn choose(products: i64, sizes: [i64; 3], vector: VectorUnit) -> GemmTile {
        let with = |vectors| GemmTile::with(products, sizes, vector, vectors, 384);
        // Few rows need many columns to hide the latency of the multiply-adds; few registers leave no choice.
        if sizes[0] <= 4 {
            return with(4);
        }
        if !is_wide(vector) {
            return with(2);
        }
        let time = |tile: &GemmTile| tile.time(sizes[0]) * div_ceil(sizes[1], tile.vectors * vector.lanes) as f64;
        let [two, three, four] = [2, 3, 4].map(with);
        [three, four]
            .into_iter()
            .fold(two, |best, next| match time(&next) < time(&best) {
                true => next,
                false => best,
            })
    }

    /// Estimated cycles that a step of k takes for `m` rows of one tile's columns.
    fn time(&self, m: i64) -> f64 {
        // Two multiply-adds and two loads start in a cycle; a chain of one accumulator takes four cycles a step. Elements of A come from L1,
        // and rows of them displace each other there; those of B come from L2. Where another core thread shares both, they decide.
        let step = |rows: i64| {
            let (fma, loads) = ((rows * self.vectors) as f64, (rows + self.vectors) as f64);
            (fma / 2.0).max(loads / 2.0).max(4.0) + 0.4 * rows as f64 + 1.1 * self.vectors as f64
        };
        let task = |rows: i64| {
            let t = self.row_tiles(rows);
            let rest = if t.rest > 0 { step(t.rest) } else { 0.0 };
            t.full as f64 * step(self.rows) + t.shorter as f64 * step(self.rows - 1) + rest
        };
        let full = (div_ceil(m, self.m_task) - 1).max(0);
        full as f64 * task(self.m_task) + task(m - full * self.m_task)
    }

    /// The blocking with register tiles of at most so many vectors of columns, and chains of at most so many multiply-adds.
    fn with(products: i64, [m, n, k]: [i64; 3], vector: VectorUnit, vectors: i64, chain: i64) -> GemmTile {
        // Accumulators, one vector a column of B, and one broadcast must fit the registers.
        let vectors = vectors.min(div_ceil(n, vector.lanes)).max(1);
        let most = (vector.registers - vectors - 1) / vectors;
        let most = most.min(if is_wide(vector) { 14 } else { 6 }).max(1);
        let k_block = k.clamp(1, chain);
        let m = m.max(1);
        let m_tasks = div_ceil(m, (A_BYTES / (4 * k_block)).max(most));
        // Tiles of a task, then their rows: tiles of this height and of one row less cover the last task; see `row_tiles`.
        let tiles = div_ceil(div_ceil(m, m_tasks), most);
        let rows = div_ceil(m, m_tasks * tiles);
        let nr = vectors * vector.lanes;
        let panels = div_ceil(n, nr).max(1);
        let fewest = div_ceil(panels, MAX_COLUMNS / nr);
        let n_tasks = div_ceil(WANTED_TASKS, products.max(1) * m_tasks).max(fewest);
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

/// Whether there are registers for tiles of several shapes.
fn is_wide(vector: VectorUnit) -> bool {
    vector.registers >= 32
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

    #[test]
    fn tiles_do_not_exceed_the_columns_by_much() {
        for (n, vectors) in [(768, 3), (1152, 3), (256, 2), (64, 2), (32, 2), (16, 1)] {
            let tile = GemmTile::choose(1, [128, n, 768], VectorUnit::AVX512);
            assert_eq!(tile.vectors, vectors, "{n} columns: {tile:?}");
        }
    }

    #[test]
    fn tiles_cover_all_rows() {
        for vector in [VectorUnit::AVX512, VectorUnit::AVX2] {
            for m in (1..600).chain([1000, 1024, 4096]) {
                let tile = GemmTile::choose(1, [m, 768, 768], vector);
                let gemm = Gemm {
                    tile,
                    ..Gemm::linear(m, 768, 768, Epilogue::none(), vector)
                };
                let last = gemm.last_rows();
                assert!(
                    tile.m_task % tile.rows == 0 && last >= 1 && last <= tile.m_task,
                    "{m}: {tile:?}"
                );
                let registers = tile.vectors * (tile.rows + 1) + 1;
                assert!(registers <= vector.registers, "{m}: {registers} registers, {tile:?}");
                let t = tile.row_tiles(last);
                let covered = t.full * tile.rows + t.shorter * (tile.rows - 1) + t.rest;
                assert_eq!(covered, last, "{m}: {tile:?}");
            }
        }
    }
}
