//! Matmuls with a register tile of rows × vectors of columns. Elements of A are broadcast from where they are stored. B is packed in advance, or it is strided,
//! and the kernel copies it to packed panels or reads it in place.

mod rows;

use self::rows::{for_row_tiles, last_rows};
use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::epilogue::{self, Position};
use crate::emit::family::EmitKernel;
use crate::emit::function::{KernelFunction, prefetch_parts};
use frazil_planner::kernel::{Epilogue, EpilogueOperand, Gemm, GemmB, GemmBatch};
use frazil_planner::target::GemmParameters;

/// Returns true if the panels of B are prefetched. If each weight is used only once or twice, and the processor's own prefetcher loads it in time, prefetch
/// instructions take longer than the arithmetic.
fn wants_prefetch(gemm: &Gemm<Int<'_>>, parameters: &GemmParameters) -> bool {
    let few_rows = gemm.m.known().is_some_and(|m| m <= parameters.read_bound_rows);
    gemm.is_packed() && parameters.prefetch > 0 && !(few_rows && is_cached(gemm, parameters))
}

/// Returns true if the weights of the last call are expected to be still in the caches.
fn is_cached(gemm: &Gemm<Int<'_>>, parameters: &GemmParameters) -> bool {
    let weights = gemm.k.known().zip(gemm.n.known());
    weights.is_some_and(|(k, n)| 4 * k * n <= parameters.cached_bytes)
}

/// Start addresses of the current task's operands, and its rows and columns.
struct Task<'c> {
    a: Val<'c>,
    /// The task's first panel if B is packed, its first column if B is strided.
    b: Val<'c>,
    c: Val<'c>,
    operands: Vec<Val<'c>>,
    rows: Int<'c>,
    first_column: Int<'c>,
    columns: Int<'c>,
}

impl EmitKernel for Gemm {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        let gemm = self.map(&mut |n| function.number(*n));
        emit(function, &gemm);
    }

    /// Returns true unless B is packed. A multiply-add with a denormal takes as long as about a hundred others, and the softmax of attention scores, which are
    /// -100 at masked positions, results in many denormals. They are negligible in a sum. Matmuls with constant weights do not have such operands, and save the
    /// time for changing the mode of the processor.
    fn takes_denormals_for_zeros(&self) -> bool {
        !self.is_packed()
    }
}

/// Emits all tasks of `gemm`.
fn emit<'c>(kernel: &mut KernelFunction<'c>, gemm: &Gemm<Int<'c>>) {
    // Memory for a panel of B that the kernel packs, see `packs_panels`.
    let panel = packs_panels(gemm, &kernel.e.target.machine.gemm).then(|| {
        let bytes = kernel.e.mul(gemm.tile.k_block, gemm.tile_columns() * 4);
        kernel.e.stack(bytes)
    });
    kernel.for_each_task(|e, buffers, task| {
        let m_tasks = e.div_ceil(gemm.m, gemm.tile.m_task);
        let n_tasks = e.div_ceil(gemm.n, gemm.tile.n_task);
        // Tasks of one column block are adjacent, so that a thread keeps its part of B. `delinearize` does not use the first extent.
        let at = e.delinearize(task, &[Int::Const(0), n_tasks, m_tasks]);
        let task = locate(e, gemm, buffers, at[0], at[1], at[2]);
        match panel {
            None => product(e, gemm, &task),
            Some(panel) => product_with_panels(e, gemm, &task, panel),
        }
    });
}

/// Returns true if B is strided and reading it in place would be slow, because the elements of a row are not contiguous, or because rows are far apart and read
/// repeatedly.
fn packs_panels(gemm: &Gemm<Int<'_>>, parameters: &GemmParameters) -> bool {
    match gemm.b {
        GemmB::Packed => false,
        GemmB::Strided { n_stride, k_stride } => {
            let far = k_stride.known().is_none_or(|k| k > parameters.row_stride_in_place);
            let many_rows = gemm.m.known().is_none_or(|m| m >= 2 * gemm.tile.rows);
            n_stride.known() != Some(1) || (far && many_rows)
        }
    }
}

fn locate<'c>(
    e: &mut Emitter<'c>,
    gemm: &Gemm<Int<'c>>,
    buffers: &[Val<'c>],
    product: Int<'c>,
    n_task: Int<'c>,
    m_task: Int<'c>,
) -> Task<'c> {
    let extents: Vec<Int<'c>> = gemm.batch.iter().map(|b| b.extent).collect();
    let at = e.delinearize(product, &extents);
    let offset = |e: &mut Emitter<'c>, stride: &dyn Fn(&GemmBatch<Int<'c>>) -> Int<'c>| {
        e.linear(gemm.batch.iter().map(stride).zip(at.iter().copied()), 0)
    };
    let (a, b, c) = (offset(e, &|s| s.a), offset(e, &|s| s.b), offset(e, &|s| s.c));
    let (t, last) = (&gemm.tile, buffers.len() - 1);
    let first_row = e.mul(m_task, t.m_task);
    let first_column = e.mul(n_task, t.n_task);
    let left = e.sub(gemm.m, first_row);
    let rows = match t.m_task.divides(gemm.m) {
        true => t.m_task,
        false => e.min(left, t.m_task),
    };
    let left = e.sub(gemm.n, first_column);
    let columns = match t.n_task.divides(gemm.n) {
        true => t.n_task,
        false => e.min(left, t.n_task),
    };
    let a_row = e.mul(first_row, gemm.a_row_stride);
    let a = e.add(a, a_row);
    let c_row = e.mul(first_row, gemm.c_row_stride);
    let c_at = e.add(c, c_row);
    let c_at = e.add(c_at, first_column);
    let b_column = match gemm.b {
        // Panels of `tile_columns` follow each other at k · tile_columns elements: column n begins at k · n.
        GemmB::Packed => e.mul(first_column, gemm.k),
        GemmB::Strided { n_stride, .. } => e.mul(first_column, n_stride),
    };
    let b = e.add(b, b_column);
    let operands = gemm.epilogue.operands.iter().zip(&buffers[2..last]);
    let operands = operands
        .map(|(kind, &base)| match kind {
            EpilogueOperand::Elementwise => e.f32_offset(base, c_at),
            EpilogueOperand::Channel => e.f32_offset(base, first_column),
            EpilogueOperand::Row => e.f32_offset(base, first_row),
            EpilogueOperand::Scalar => base,
        })
        .collect();
    let a = e.f32_offset(buffers[0], a);
    let b = e.f32_offset(buffers[1], b);
    let c = e.f32_offset(buffers[last], c_at);
    Task {
        a,
        b,
        c,
        operands,
        rows,
        first_column,
        columns,
    }
}

/// Emits a task that reads B in place. The loops are k blocks → rows → columns, or columns → k blocks → rows if packed weights are read in the order of memory.
fn product<'c>(e: &mut Emitter<'c>, gemm: &Gemm<Int<'c>>, task: &Task<'c>) {
    let nr = gemm.tile_columns();
    let at = |e: &mut Emitter<'c>, (row, rows): (Int<'c>, i64), column: Int<'c>, (k0, length): (Int<'c>, Int<'c>)| {
        let (b, b_row) = match gemm.b {
            GemmB::Packed => {
                let panel = e.mul(column, gemm.k);
                let k = e.mul(k0, nr);
                (e.add(panel, k), Int::Const(nr))
            }
            GemmB::Strided { k_stride, .. } => {
                let k = e.mul(k0, k_stride);
                (e.add(k, column), k_stride)
            }
        };
        let tile_at = Tile {
            row,
            rows,
            column,
            k0,
            length,
            b: e.f32_offset(task.b, b),
            b_row,
            masked_b: !gemm.is_packed(),
        };
        tile(e, gemm, task, tile_at);
    };
    if in_order_of_weights(gemm, &e.target.machine.gemm) {
        e.for_each(0, task.columns, nr, |e, column| {
            for_k_blocks(e, gemm, |e, k0, length| {
                for_row_tiles(e, gemm, task, |e, row, rows| at(e, (row, rows), column, (k0, length)));
            });
        });
        return;
    }
    for_k_blocks(e, gemm, |e, k0, length| {
        for_row_tiles(e, gemm, task, |e, row, rows| {
            e.for_each(0, task.columns, nr, |e, column| {
                at(e, (row, rows), column, (k0, length))
            });
        });
    });
}

/// Returns true if packed weights are read in the order of memory. With few rows, weights are loaded from memory while the tiles compute. In this order, a tile
/// prefetches the weights that are read next.
fn in_order_of_weights(gemm: &Gemm<Int<'_>>, parameters: &GemmParameters) -> bool {
    let few_rows = |gemm: &Gemm| 2 * gemm.m <= parameters.streamed_rows * gemm.lanes;
    known(gemm).is_some_and(|gemm| gemm.streams_weights() && few_rows(&gemm))
}

/// Returns the matmul, if all of its integers are constants of the code.
fn known(gemm: &Gemm<Int<'_>>) -> Option<Gemm> {
    let mut all = true;
    let known = gemm.map(&mut |n| {
        all &= n.known().is_some();
        n.known().unwrap_or(1)
    });
    all.then_some(known)
}

/// Emits a task that copies B panel by panel into `panel`. The loops are k blocks → columns → copy → rows.
fn product_with_panels<'c>(e: &mut Emitter<'c>, gemm: &Gemm<Int<'c>>, task: &Task<'c>, panel: Val<'c>) {
    let nr = gemm.tile_columns();
    for_k_blocks(e, gemm, |e, k0, length| {
        e.for_each(0, task.columns, nr, |e, column| {
            pack_panel(e, gemm, task, panel, (column, k0, length));
            for_row_tiles(e, gemm, task, |e, row, rows| {
                let tile_at = Tile {
                    row,
                    rows,
                    column,
                    k0,
                    length,
                    b: panel,
                    b_row: Int::Const(nr),
                    masked_b: false,
                };
                tile(e, gemm, task, tile_at);
            });
        });
    });
}

/// Copies a panel of B into `panel`: the tile's columns from `column` on, of `length` rows from row `k0` on. The values in columns beyond N are arbitrary.
fn pack_panel<'c>(
    e: &mut Emitter<'c>,
    gemm: &Gemm<Int<'c>>,
    task: &Task<'c>,
    panel: Val<'c>,
    (column, k0, length): (Int<'c>, Int<'c>, Int<'c>),
) {
    let GemmB::Strided { k_stride, n_stride } = gemm.b else {
        return;
    };
    let (nr, lanes) = (gemm.tile_columns(), gemm.lanes);
    let first = e.mul(k0, k_stride);
    let b = e.f32_offset(task.b, first);
    if n_stride.known() == Some(1) {
        let masks = column_masks(e, gemm, task, column);
        let b = e.f32_offset(b, column);
        e.for_each(0, length, 1, |e, k| {
            let (from, to) = (e.mul(k, k_stride), e.mul(k, nr));
            let (from, to) = (e.f32_offset(b, from), e.f32_offset(panel, to));
            for v in 0..gemm.tile.vectors {
                let address = e.f32_offset(from, v * lanes);
                let row = match masks.get(v as usize) {
                    Some(&mask) => e.load_masked(address, mask, lanes),
                    None => e.load_vector(address, lanes),
                };
                let address = e.f32_offset(to, v * lanes);
                e.store(row, address, 4);
            }
        });
        return;
    }
    // Columns beyond N are copies of the last column.
    let source = |e: &mut Emitter<'c>, n: Int<'c>| {
        let n = e.add(column, n);
        let end = e.sub(task.columns, 1);
        let n = e.min(n, end);
        let offset = e.mul(n, n_stride);
        e.f32_offset(b, offset)
    };
    let squares = match k_stride.known() {
        Some(1) => e.round_down(length, lanes),
        _ => Int::Const(0),
    };
    e.for_each(0, nr, lanes, |e, n| {
        let columns: Vec<Val<'c>> = (0..lanes)
            .map(|j| {
                let n = e.add(n, j);
                source(e, n)
            })
            .collect();
        let to = e.f32_offset(panel, n);
        e.for_each(0, squares, lanes, |e, k| {
            let mut rows = Vec::new();
            for &column in &columns {
                let address = e.f32_offset(column, k);
                rows.push(e.load_vector(address, lanes));
            }
            let offset = e.mul(k, nr);
            let to = e.f32_offset(to, offset);
            for (i, row) in e.transpose(rows).into_iter().enumerate() {
                let address = e.f32_offset(to, i as i64 * nr);
                e.store(row, address, 4);
            }
        });
    });
    let f32 = e.f32();
    e.for_each(0, nr, 1, |e, n| {
        let from = source(e, n);
        let to = e.f32_offset(panel, n);
        e.for_each(squares, length, 1, |e, k| {
            let offset = e.mul(k, k_stride);
            let address = e.f32_offset(from, offset);
            let value = e.load(address, f32, 4);
            let offset = e.mul(k, nr);
            let address = e.f32_offset(to, offset);
            e.store(value, address, 4);
        });
    });
}

/// Emits the loop over blocks of k: full blocks in a loop, then the rest. `body` receives the first k of a block and the length of the block.
fn for_k_blocks<'c>(e: &mut Emitter<'c>, gemm: &Gemm<Int<'c>>, body: impl Fn(&mut Emitter<'c>, Int<'c>, Int<'c>)) {
    let block = gemm.tile.k_block;
    let (Some(k), Some(k_block)) = (gemm.k.known(), block.known()) else {
        // At least one block, which stores zeros if there are no terms.
        let end = e.max(gemm.k, 1);
        return e.for_each(0, end, block, |e, k0| {
            let left = e.sub(gemm.k, k0);
            let length = e.min(left, block);
            body(e, k0, length);
        });
    };
    let full = k / k_block * k_block;
    e.for_each(0, full, k_block, |e, k0| body(e, k0, block));
    if k > full || k == 0 {
        body(e, Int::Const(full), Int::Const(k - full));
    }
}

/// Returns the number of steps of k in one iteration of the inner loop: one if the distance between columns of A is not known.
fn unroll(gemm: &Gemm<Int<'_>>, parameters: &GemmParameters) -> i64 {
    match gemm.a_col_stride.known() {
        Some(_) => parameters.unroll.max(1),
        None => 1,
    }
}

/// Returns the number of rows of A that are addressed by one pointer, which the inner loop increments.
///
/// If the distance between rows is not known, a pointer and the distance are the addresses of three rows: x86 multiplies an index by 1 or 2, and the steps of k
/// are constant displacements. From a pointer to the first row alone, LLVM computes the address of each row from that of the row before: that takes an
/// instruction and a register for each row.
fn rows_of_pointer(gemm: &Gemm<Int<'_>>) -> i64 {
    const WITH_INDEX: i64 = 3;
    match gemm.a_row_stride.known() {
        Some(_) => gemm.tile.rows.max(1),
        None => WITH_INDEX,
    }
}

/// One register tile, for one block of k.
struct Tile<'c> {
    row: Int<'c>,
    rows: i64,
    column: Int<'c>,
    k0: Int<'c>,
    length: Int<'c>,
    /// Address of the first row of B in this block, at this column.
    b: Val<'c>,
    /// Distance between rows of B, in elements.
    b_row: Int<'c>,
    /// Whether reads of B are masked, so that no column beyond N is read.
    masked_b: bool,
}

fn tile<'c>(e: &mut Emitter<'c>, gemm: &Gemm<Int<'c>>, task: &Task<'c>, t: Tile<'c>) {
    let lanes = gemm.lanes;
    let vectors = gemm.tile.vectors;
    let masks = match t.masked_b {
        true => column_masks(e, gemm, task, t.column),
        false => Vec::new(),
    };
    let a = e.mul(t.row, gemm.a_row_stride);
    let a_k = e.mul(t.k0, gemm.a_col_stride);
    let a = e.add(a, a_k);
    let a = e.f32_offset(task.a, a);
    let of_pointer = rows_of_pointer(gemm);
    let mut carried = Vec::new();
    for first in (0..t.rows).step_by(of_pointer as usize) {
        let offset = e.mul(gemm.a_row_stride, first);
        let address = e.f32_offset(a, offset);
        // Otherwise, LLVM computes this pointer from the one before in each iteration.
        carried.push(if first > 0 { e.base(address) } else { address });
    }
    let pointers = carried.len();
    let zero = e.f32_constant(0.0, Some(lanes));
    carried.resize(pointers + (t.rows * vectors) as usize, zero);
    let step = |e: &mut Emitter<'c>, b: Val<'c>, k: i64, carried: &mut [Val<'c>]| {
        let mut columns = Vec::new();
        for v in 0..vectors {
            let at = e.linear([(t.b_row, Int::Const(k))], v * lanes);
            let address = e.f32_offset(b, at);
            columns.push(match masks.get(v as usize) {
                Some(&mask) => e.load_masked(address, mask, lanes),
                None => e.load_vector(address, lanes),
            });
        }
        let (pointers, acc) = carried.split_at_mut(pointers);
        for r in 0..t.rows {
            let row = (gemm.a_row_stride, Int::Const(r % of_pointer));
            let at = e.linear([row, (gemm.a_col_stride, Int::Const(k))], 0);
            let address = e.f32_offset(pointers[(r / of_pointer) as usize], at);
            let x = e.load_broadcast(address, lanes);
            for v in 0..vectors {
                let i = (r * vectors + v) as usize;
                acc[i] = e.fma(x, columns[v as usize], acc[i]);
            }
        }
    };
    // Emits `count` steps, and then increments the pointers.
    let steps = |e: &mut Emitter<'c>, b: Val<'c>, count: i64, carried: &[Val<'c>]| {
        let mut carried = carried.to_vec();
        for k in 0..count {
            step(e, b, k, &mut carried);
        }
        let distance = e.mul(gemm.a_col_stride, count);
        for pointer in &mut carried[..pointers] {
            *pointer = e.f32_offset(*pointer, distance);
            if gemm.a_row_stride.known().is_none() {
                // Otherwise, LLVM has a register for each row and a common index. Then it loads all of B at once, to have the register of that address, and
                // spills the sums.
                *pointer = e.base(*pointer);
            }
        }
        carried
    };
    let parameters = &e.target.machine.gemm;
    let (unroll, line_elements) = (unroll(gemm, parameters), e.target.machine.caches.line_elements());
    let full = e.round_down(t.length, unroll);
    let prefetch = wants_prefetch(gemm, parameters);
    let far = next_block(e, gemm, &t);
    let mut carried = e.for_loop(0, full, unroll, &carried, |e, k, carried| {
        let kb = e.mul(k, t.b_row);
        let b = e.f32_offset(t.b, kb);
        if prefetch {
            for line in 0..unroll * vectors * lanes / line_elements {
                let address = e.f32_offset(b, parameters.prefetch + line * line_elements);
                e.prefetch(address, 3);
            }
        }
        if let Some((far, parts)) = far {
            // B is packed, so its rows have the distance of the panel's rows.
            let b_row = gemm.tile_columns();
            let offset = e.mul(k, b_row / parts);
            let far = e.f32_offset(far, offset);
            for line in 0..div_ceil(unroll * b_row / line_elements, parts) {
                let address = e.f32_offset(far, line * line_elements);
                e.prefetch(address, 2);
            }
        }
        steps(e, b, unroll, carried)
    });
    match (full.known(), t.length.known()) {
        (Some(full), Some(length)) => {
            let b = e.mul(t.b_row, full);
            let b = e.f32_offset(t.b, b);
            carried = steps(e, b, length - full, &carried);
        }
        _ => {
            carried = e.for_loop(full, t.length, 1, &carried, |e, k, carried| {
                let kb = e.mul(k, t.b_row);
                let b = e.f32_offset(t.b, kb);
                steps(e, b, 1, carried)
            });
        }
    }
    let acc = &carried[pointers..];
    finish(e, gemm, task, &t, acc);
}

/// Returns the part of the next block of B that tile `t` prefetches: its address, and the number of parts. Each tile of a column prefetches one part while it
/// computes. Returns `None` if prefetching is not worthwhile.
fn next_block<'c>(e: &mut Emitter<'c>, gemm: &Gemm<Int<'c>>, t: &Tile<'c>) -> Option<(Val<'c>, i64)> {
    let nr = gemm.tile_columns();
    let (machine, parameters) = (e.target.machine, &e.target.machine.gemm);
    let passes = match (last_rows(gemm), gemm.tile.m_task.known()) {
        (Some(rows), _) => {
            let tiles = gemm.tile.row_tiles(rows);
            Some(tiles.full + tiles.shorter)
        }
        // The maximum; with fewer tiles, some parts are not prefetched.
        (None, Some(m_task)) => Some(m_task / gemm.tile.rows),
        (None, None) => None,
    };
    let lines = unroll(gemm, parameters) * nr / machine.caches.line_elements();
    let parts = match passes {
        Some(passes) => prefetch_parts(machine, passes, lines),
        // At most one line in each iteration.
        None => lines.max(1).unsigned_abs().next_power_of_two().cast_signed(),
    };
    // A single tile has the time to prefetch a whole block only if it waits for memory.
    let many_rows = gemm.m.known().is_none_or(|m| m > parameters.read_bound_rows);
    let worth = parts > 1 || many_rows && !is_cached(gemm, parameters);
    if !gemm.is_packed() || !worth {
        return None;
    }
    // The next rows of the panel. After the last rows, the first rows of the panel that the loops read next at this place.
    let columns = match in_order_of_weights(gemm, parameters) {
        true => Int::Const(nr),
        false => gemm.tile.n_task,
    };
    let block = gemm.tile.k_block;
    let within = e.mul(block, nr);
    let panels = e.mul(columns, gemm.k);
    let next = match (gemm.k.known().zip(block.known()), t.k0) {
        (Some((k, block)), k0) => {
            let last_start = (k - 1).max(0) / block * block;
            let across = e.sub(panels, last_start * nr);
            match k0 {
                Int::Const(k0) if k0 == last_start => across,
                Int::Const(_) => within,
                k0 => {
                    let is_last = e.compare("eq", k0, last_start);
                    let (across, within) = (e.int(across), e.int(within));
                    Int::Dyn(e.select(is_last, across, within))
                }
            }
        }
        (None, k0) => {
            let after = e.add(k0, block);
            let is_last = e.compare("sge", after, gemm.k);
            let read = e.mul(k0, nr);
            let across = e.sub(panels, read);
            let (across, within) = (e.int(across), e.int(within));
            Int::Dyn(e.select(is_last, across, within))
        }
    };
    let tile = e.div(t.row, gemm.tile.rows);
    let pass = e.rem(tile, parts);
    let elements = e.mul(t.length, nr);
    let of_part = e.div(elements, parts);
    let mut part = e.linear([(of_part, pass), (Int::Const(1), next)], 0);
    if passes.is_none() {
        // Tiles after those that have prefetched all parts prefetch what they read.
        let has_part = e.compare("slt", tile, parts);
        let (next, own) = (e.int(part), e.int(Int::Const(0)));
        part = Int::Dyn(e.select(has_part, next, own));
    }
    Some((e.f32_offset(t.b, part), parts))
}

/// Adds the sums of this block to those of earlier blocks in C. After the last block, applies the epilogue.
///
/// Without AVX-512, accesses with masks are slow (see [`Emitter::store_masked`]), and masks need registers. So there is code for tiles whose columns all exist.
/// A costly epilogue is not repeated; its stores test their masks.
fn finish<'c>(e: &mut Emitter<'c>, gemm: &Gemm<Int<'c>>, task: &Task<'c>, t: &Tile<'c>, acc: &[Val<'c>]) {
    let nr = gemm.tile_columns();
    let column = e.add(task.first_column, t.column);
    let left = e.sub(gemm.n, column);
    let is_whole = Int::Const(nr).divides(gemm.n) || left.known().is_some_and(|left| left >= nr);
    if is_whole {
        return finish_columns(e, gemm, task, t, acc, &[]);
    }
    if left.known().is_some() || e.target.has_avx512() || gemm.epilogue.is_costly() {
        let masks = masks_of(e, gemm, left);
        return finish_columns(e, gemm, task, t, acc, &masks);
    }
    let all = e.compare("sge", left, nr);
    let whole = |e: &mut Emitter<'c>| {
        finish_columns(e, gemm, task, t, acc, &[]);
        Vec::new()
    };
    let masked = |e: &mut Emitter<'c>| {
        // Tiles begin at multiples of their columns, so this is the last one. Constant masks need no registers.
        let rest = gemm.n.known().map_or(left, |n| Int::Const(n % nr));
        let masks = masks_of(e, gemm, rest);
        finish_columns(e, gemm, task, t, acc, &masks);
        Vec::new()
    };
    e.if_else(all, &[], whole, masked);
}

/// Finishes a tile as [`finish`] does; with masks, only the columns in them.
fn finish_columns<'c>(
    e: &mut Emitter<'c>,
    gemm: &Gemm<Int<'c>>,
    task: &Task<'c>,
    t: &Tile<'c>,
    acc: &[Val<'c>],
    masks: &[Val<'c>],
) {
    let lanes = gemm.lanes;
    let vectors = gemm.tile.vectors;
    let position = |e: &mut Emitter<'c>, r: Int<'c>, v: i64| {
        let row = e.add(t.row, r);
        let channel = e.add(t.column, v * lanes);
        let element = e.mul(row, gemm.c_row_stride);
        Position {
            row,
            channel,
            element: e.add(element, channel),
            mask: masks.get(v as usize).copied(),
        }
    };
    let partial = |e: &mut Emitter<'c>, first: bool, last: bool| {
        let mut sums = acc.to_vec();
        for (i, sum) in sums.iter_mut().enumerate().filter(|_| !first) {
            let at = position(e, Int::Const(i as i64 / vectors), i as i64 % vectors);
            let address = e.f32_offset(task.c, at.element);
            let before = match at.mask {
                None => e.load_vector(address, lanes),
                Some(mask) => e.load_masked(address, mask, lanes),
            };
            *sum = e.binary("arith.addf", before, *sum);
        }
        let none = Epilogue::none();
        let (epilogue, operands) = match last {
            true => (&gemm.epilogue, task.operands.as_slice()),
            false => (&none, &[][..]),
        };
        epilogue::finish(
            e,
            epilogue,
            (operands, task.c),
            (&sums, vectors, lanes),
            Int::Const(0),
            position,
        );
    };
    let (Some(k), Some(block)) = (gemm.k.known(), gemm.tile.k_block.known()) else {
        // Any block may be the first one, the last one, or both.
        let after = e.add(t.k0, gemm.tile.k_block);
        let is_first = e.compare("eq", t.k0, 0);
        let is_last = e.compare("sge", after, gemm.k);
        let with = |e: &mut Emitter<'c>, first: bool| {
            e.if_else(
                is_last,
                &[],
                |e| {
                    partial(e, first, true);
                    Vec::new()
                },
                |e| {
                    partial(e, first, false);
                    Vec::new()
                },
            );
            Vec::new()
        };
        e.if_else(is_first, &[], |e| with(e, true), |e| with(e, false));
        return;
    };
    // Whether this is the first or last block is known statically except inside the loop of full blocks.
    let last_start = (k - 1).max(0) / block * block;
    match t.k0 {
        Int::Const(k0) => partial(e, k0 == 0, k0 == last_start),
        k0 => {
            let is_first = e.compare("eq", k0, 0);
            let is_last = e.compare("eq", k0, last_start);
            e.if_else(
                is_first,
                &[],
                |e| {
                    partial(e, true, false);
                    Vec::new()
                },
                |e| {
                    e.if_else(
                        is_last,
                        &[],
                        |e| {
                            partial(e, false, true);
                            Vec::new()
                        },
                        |e| {
                            partial(e, false, false);
                            Vec::new()
                        },
                    );
                    Vec::new()
                },
            );
        }
    }
}

/// Returns a mask for each vector of the tile, with the lanes that are columns of C. Empty if all lanes always are.
fn column_masks<'c>(e: &mut Emitter<'c>, gemm: &Gemm<Int<'c>>, task: &Task<'c>, column: Int<'c>) -> Vec<Val<'c>> {
    if Int::Const(gemm.tile_columns()).divides(gemm.n) {
        return Vec::new();
    }
    let column = e.add(task.first_column, column);
    let left = e.sub(gemm.n, column);
    masks_of(e, gemm, left)
}

/// Returns a mask for each vector of a tile of which the first `columns` columns exist.
fn masks_of<'c>(e: &mut Emitter<'c>, gemm: &Gemm<Int<'c>>, columns: Int<'c>) -> Vec<Val<'c>> {
    let mut masks = Vec::new();
    for v in 0..gemm.tile.vectors {
        let left = e.sub(columns, v * gemm.lanes);
        masks.push(e.mask(left, gemm.lanes));
    }
    masks
}

fn div_ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b.max(1)
}
