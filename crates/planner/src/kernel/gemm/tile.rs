//! Blockings of matmuls.

use super::super::sizes::div_ceil;
use crate::target::Machine;

/// Number of rows for which the time of incomplete tiles is negligible.
const MANY: i64 = 1 << 12;

/// Register and cache blocking of a matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmTile<N = i64> {
    /// Number of rows of a register tile.
    pub rows: i64,
    /// Number of vectors of columns of a register tile.
    pub vectors: i64,
    /// Number of terms of a sum that are accumulated in registers before they are added to the result in memory.
    pub k_block: N,
    /// Number of rows of a task.
    pub m_task: N,
    /// Number of columns of a task; a multiple of the columns of a register tile.
    pub n_task: N,
}

impl GemmTile {
    /// Returns the blocking for `products` matmuls of m × n × k whose register tiles are estimated to take the least time.
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

    /// Returns a blocking as [`GemmTile::choose`] does, but with a register tile that does not depend on sizes that vary between plans. These are the number of
    /// rows, and the number of columns if B is not packed. A single row with packed weights has a tile of its own if the weights are expected to stay in the
    /// caches. Larger weights are read from memory, which takes as long with the tile of more rows, and they are packed once for all numbers of rows.
    pub fn for_any_size(products: i64, [m, n, k]: [i64; 3], is_packed: bool, machine: &Machine) -> GemmTile {
        if m <= 1 && is_packed && 4 * n * k <= machine.gemm.cached_bytes {
            return GemmTile::choose(products, [m, n, k], machine);
        }
        /// Number of columns that a strided B is expected to have or to be a multiple of: the width of a head of attention.
        const HEAD: i64 = 64;
        let columns = if is_packed { n } else { HEAD };
        let vectors = GemmTile::choose(products, [MANY, columns, k], machine).vectors;
        // At least the columns of one tile: incomplete tiles are masked.
        let n = n.max(if is_packed { 0 } else { vectors * machine.vector.lanes });
        GemmTile::for_any_rows(products, [m, n, k], machine, vectors)
    }

    /// Returns a blocking as [`GemmTile::choose`] does, but with a register tile that does not depend on the number of rows. So packed weights have the same
    /// layout for any number of rows.
    pub fn for_columns(products: i64, [m, n, k]: [i64; 3], machine: &Machine) -> GemmTile {
        let vectors = GemmTile::choose(products, [MANY, n, k], machine).vectors;
        GemmTile::for_any_rows(products, [m, n, k], machine, vectors)
    }

    /// Returns a blocking with register tiles of `vectors` vectors of columns, and of the largest height that the registers allow.
    fn for_any_rows(products: i64, [m, n, k]: [i64; 3], machine: &Machine, vectors: i64) -> GemmTile {
        let rows = (machine.vector.registers - vectors - 1) / vectors;
        let rows = rows.min(machine.gemm.tile_rows).max(1);
        let sized = GemmTile::with(products, [m, n, k], machine, vectors, machine.gemm.k_block);
        GemmTile {
            rows,
            m_task: div_ceil(sized.m_task, rows) * rows,
            ..sized
        }
    }

    /// Returns the estimated cycles of one step of k for `m` rows, with the columns of one register tile.
    fn time(&self, m: i64, machine: &Machine) -> f64 {
        let step = |rows: i64| step(rows, self.vectors, machine);
        let task = |rows: i64| {
            let t = self.row_tiles(rows);
            let rest = if t.rest > 0 { step(t.rest) } else { 0.0 };
            t.full as f64 * step(self.rows) + t.shorter as f64 * step(self.rows - 1) + rest
        };
        let full = (div_ceil(m, self.m_task) - 1).max(0);
        full as f64 * task(self.m_task) + task(m - full * self.m_task)
    }

    /// Returns the blocking with register tiles of at most `vectors` vectors of columns, and with sums of at most `chain` terms in registers.
    pub(super) fn with(products: i64, [m, n, k]: [i64; 3], machine: &Machine, vectors: i64, chain: i64) -> GemmTile {
        let (vector, parameters) = (machine.vector, &machine.gemm);
        // The accumulators, the vectors of one row of B and one broadcast value must fit into the registers.
        let vectors = vectors.min(div_ceil(n, vector.lanes)).max(1);
        let most = (vector.registers - vectors - 1) / vectors;
        let most = most.min(parameters.tile_rows).max(1);
        let k_block = k.clamp(1, chain.max(1));
        let m = m.max(1);
        let m_tasks = div_ceil(m, (parameters.a_block_bytes / (4 * k_block)).max(most));
        // The number of tiles of a task, then their height: tiles of this height and of one row less cover the last task; see `row_tiles`.
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
}

/// Returns the estimated cycles of one step of k of a register tile.
fn step(rows: i64, vectors: i64, machine: &Machine) -> f64 {
    let parameters = &machine.gemm;
    machine.ports.tile_step(rows, vectors)
        + parameters.row_cycles * rows as f64
        + parameters.vector_cycles * vectors as f64
}

impl<N> GemmTile<N> {
    /// Divides `count` rows of a task into tiles. If possible, tiles of [`GemmTile::rows`] rows and then tiles of one row less cover all rows. Otherwise, one
    /// smaller tile follows the full ones.
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

impl<N> GemmTile<N> {
    /// Returns how code divides a number of rows that is its argument: into full tiles, and smaller ones for the remaining rows.
    pub fn any_rows(&self, machine: &Machine) -> AnyRows {
        /// Largest ratio of the times of several smaller tiles and of one tile. Code for one more height is worth more.
        const MOST: f64 = 1.15;
        let step = |rows: i64| step(rows, self.vectors, machine);
        let time = |heights: Vec<i64>| heights.into_iter().map(step).sum::<f64>();
        let with = |smaller: i64| AnyRows {
            full: self.rows,
            smaller,
            fewest: 1,
        };
        let suffices =
            |smaller: &i64| (smaller + 1..self.rows).all(|n| time(with(*smaller).smaller_tiles(n)) <= MOST * step(n));
        // Two tiles of at least half the height compute one row more than a full tile has.
        let division = with((self.rows / 2 + 1..self.rows).find(suffices).unwrap_or(self.rows));
        // The latency of multiply-adds makes tiles of few rows slow.
        let is_few = |rest: &i64| step(self.rows) + step(*rest) > time(division.smaller_tiles(self.rows + rest));
        AnyRows {
            fewest: 1 + (1..self.rows).take_while(is_few).count() as i64,
            ..division
        }
    }
}

/// Division of any number of rows into tiles; see [`GemmTile::any_rows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyRows {
    /// Number of rows of a full tile.
    pub full: i64,
    /// Largest number of rows of the tiles after the full ones.
    pub smaller: i64,
    /// Fewest rows that smaller tiles compute after all full ones. If fewer remain, smaller tiles compute those of the last full tile, too.
    pub fewest: i64,
}

impl AnyRows {
    /// Returns the number of rows of each tile.
    pub fn tiles(&self, rows: i64) -> Vec<i64> {
        let full = rows / self.full;
        let is_few = (1..self.fewest).contains(&(rows % self.full));
        let full = (full - i64::from(is_few)).max(0);
        let smaller = self.smaller_tiles(rows - full * self.full);
        (0..full).map(|_| self.full).chain(smaller).collect()
    }

    /// Returns the number of rows of each smaller tile for `rows` rows: as few tiles as possible, with almost the same number of rows.
    fn smaller_tiles(&self, rows: i64) -> Vec<i64> {
        let tiles = div_ceil(rows, self.smaller);
        (0..tiles).map(|i| rows / tiles + i64::from(i < rows % tiles)).collect()
    }
}

/// Division of the rows of a task into tiles; see [`GemmTile::row_tiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTiles {
    /// Number of tiles of full height.
    pub full: i64,
    /// Number of tiles with one row less.
    pub shorter: i64,
    /// Number of rows of one more tile; 0 if there is none.
    pub rest: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Epilogue, Gemm};
    use crate::target::{AVX2, SAPPHIRE_RAPIDS, ZEN4};
    use std::collections::HashSet;

    #[test]
    fn tiles_do_not_exceed_the_columns_by_much() {
        for (n, vectors) in [(768, 3), (1152, 3), (256, 2), (64, 2), (32, 2), (16, 1)] {
            let tile = GemmTile::choose(1, [128, n, 768], &SAPPHIRE_RAPIDS);
            assert_eq!(tile.vectors, vectors, "{n} columns: {tile:?}");
        }
    }

    #[test]
    fn tiles_for_any_size_are_few() {
        for machine in [&SAPPHIRE_RAPIDS, &ZEN4, &AVX2] {
            for (is_packed, most) in [(true, 2), (false, 1)] {
                let sizes = (1..300).map(|size| [size, if is_packed { 768 } else { size }, 64]);
                let tiles = sizes.map(|sizes| GemmTile::for_any_size(8, sizes, is_packed, machine));
                let forms: HashSet<[i64; 2]> = tiles.map(|tile| [tile.rows, tile.vectors]).collect();
                assert!(forms.len() <= most, "{forms:?}");
            }
        }
    }

    #[test]
    fn packed_weights_have_one_layout() {
        for machine in [&SAPPHIRE_RAPIDS, &ZEN4, &AVX2] {
            for n in [1, 10, 64, 256, 768, 1000] {
                let tiles = (0..300).map(|m| GemmTile::for_columns(1, [m, n, 64], machine));
                let tiles: HashSet<[i64; 2]> = tiles.map(|tile| [tile.rows, tile.vectors]).collect();
                assert_eq!(tiles.len(), 1, "{n} columns: {tiles:?}");
            }
        }
    }

    /// Any number of rows takes little longer than its part of the time of full tiles, or than one tile of its own.
    #[test]
    fn any_number_of_rows_has_suitable_tiles() {
        for machine in [&SAPPHIRE_RAPIDS, &ZEN4, &AVX2] {
            for n in [64, 256, 768] {
                let tile = GemmTile::for_columns(1, [128, n, 256], machine);
                let division = tile.any_rows(machine);
                let step = |rows: i64| step(rows, tile.vectors, machine);
                for rows in 0..4 * tile.rows {
                    let tiles = division.tiles(rows);
                    assert_eq!(tiles.iter().sum::<i64>(), rows, "{division:?}");
                    let fits = |height: i64| height == tile.rows || (1..=division.smaller).contains(&height);
                    assert!(
                        tiles.iter().all(|&height| fits(height)),
                        "{rows}: {tiles:?}, {division:?}"
                    );
                    let part = step(tile.rows) * rows as f64 / tile.rows as f64;
                    let own = if rows <= tile.rows { step(rows) } else { 0.0 };
                    let time: f64 = tiles.iter().map(|&height| step(height)).sum();
                    assert!(time <= 1.3 * part.max(own), "{rows}: {tiles:?}, {time}, not {part}");
                }
            }
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
