//! Contractions by GEMM. A loop nest is recognised by its structure, whatever operator created it.
//!
//! A nest with body `in0 * in1` and a sum as reduction is one matmul for each index of its *batch* loops. The loops that only the first operand uses are the
//! rows, those that only the second one uses are the columns, and the reduction loops are the depth. An operand is packed first if its rows or depth have no
//! single stride, or if it is padded or of a half dtype. If there are too few rows or columns for packing to pay, [`Long`] multiplies without it.
//!
//! Matmuls, linear layers, and convolutions of any rank, stride, dilation and grouping are executed here. For convolutions, the packing is im2col.

use super::direct::Long;
use super::gemm::{GemmFloat, Matrix, gemm};
use super::loop_nest::finish_pass;
use super::nest::Nest;
use crate::error::EvalError;
use crate::error::TensorError;
use crate::memory::{self, OutOfMemory};
use crate::program::expr::{BinaryOp, Expr, ExprOp};
use crate::program::structured::{Combine, Structured};
use crate::shape::Dims;
use crate::shape::layout::contiguous_strides;
use crate::tensor::Tensor;
use crate::tensor::access::{Reader, Walk};
use crate::tensor::element::{Element, with_element};
use crate::tensor::lanes::{CHUNK, Lane, LaneKind, Lanes};
use crate::tensor::storage::AlignedBytes;
use crate::threads::parallel;
use frazil_ir::DType;
use rayon::prelude::*;
use std::borrow::Cow;

/// Maximum number of elements of a packed operand. The rows of a larger operand are processed in parts.
const MAX_PACKED: i64 = 1 << 24;
/// Overhead of a run of elements during packing, in units of copying one element.
const RUN_COST: i64 = 24;

/// Runs `s` as matmuls. Returns `None` if it is not a contraction.
pub(super) fn run(s: &Structured, nest: &Nest<'_>) -> Result<Option<Tensor>, EvalError> {
    let Some(kind) = product_lane(s) else { return Ok(None) };
    let Some(loops) = MatmulLoops::new(nest) else {
        return Ok(None);
    };
    let dtype = if kind == LaneKind::F32 {
        DType::Float
    } else {
        DType::Double
    };
    let mut acc = AlignedBytes::zeroed(Tensor::byte_size(dtype, &s.output.sizes)?).map_err(TensorError::from)?;
    let bare = s.is_outer_product();
    match kind {
        LaneKind::F32 => loops.run::<f32>(nest, &mut acc, bare.then_some(-0.0))?,
        _ => loops.run::<f64>(nest, &mut acc, bare.then_some(-0.0))?,
    }
    if s.finish.is_none() && s.output.dtype == dtype {
        return Ok(Some(Tensor::from_buffer(acc, dtype, &s.output.sizes)));
    }
    finish_pass(s, nest, &acc, dtype).map(Some)
}

/// Returns the lane kind of a nest that sums products of its two inputs in floating point; `None` for any other nest.
fn product_lane(s: &Structured) -> Option<LaneKind> {
    if s.combine != Some(Combine::Add) || s.inputs.len() != 2 {
        return None;
    }
    let kind = LaneKind::of(s.accumulate);
    let last = s.body.nodes().last()?;
    let ExprOp::Binary(BinaryOp::Mul, a, b) = last.op else {
        return None;
    };
    let operands = (input_behind(&s.body, a)?, input_behind(&s.body, b)?);
    let both = matches!(operands, (0, 1) | (1, 0));
    // The product's own rounding (to a half dtype) is not a GEMM's: such bodies cast their operands to Float first.
    let float = matches!(kind, LaneKind::F32 | LaneKind::F64) && LaneKind::of(last.dtype) == kind;
    (both && float).then_some(kind)
}

/// Returns the input of `e` that operation `id` reads, directly or through lossless casts.
fn input_behind(e: &Expr, id: u32) -> Option<u32> {
    let node = e.node(id);
    match node.op {
        ExprOp::Input(n) => Some(n),
        ExprOp::Cast(a) => {
            let from = e.node(a).dtype;
            let exact = from.is_floating_point() && matches!(node.dtype, DType::Float | DType::Double);
            (exact && from.size() <= node.dtype.size()).then(|| input_behind(e, a))?
        }
        _ => None,
    }
}

/// Assignment of the loops of a nest to the dimensions of batched matmuls: batch (`outer`), rows, columns and depth.
struct MatmulLoops {
    outer: Vec<usize>,
    rows: Vec<usize>,
    columns: Vec<usize>,
    depth: Vec<usize>,
    out_strides: Dims,
}

impl MatmulLoops {
    fn new(nest: &Nest<'_>) -> Option<MatmulLoops> {
        let [a, b] = nest.inputs.as_slice() else { return None };
        let mut loops = MatmulLoops {
            outer: Vec::new(),
            rows: Vec::new(),
            columns: Vec::new(),
            depth: (nest.parallel..nest.extents.len()).collect(),
            out_strides: contiguous_strides(&nest.extents[..nest.parallel]),
        };
        for l in 0..nest.parallel {
            match (a.uses_loop(l), b.uses_loop(l)) {
                (true, false) => loops.rows.push(l),
                (false, true) => loops.columns.push(l),
                _ => loops.outer.push(l),
            }
        }
        // A lone dot product is summed more exactly by the general path.
        if loops.rows.is_empty() && loops.columns.is_empty() {
            return None;
        }
        let depth = extent_of(&loops.depth, &nest.extents);
        let MatmulLoops {
            outer,
            rows,
            columns,
            out_strides,
            ..
        } = &mut loops;
        for group in [rows, columns] {
            while group.len() > 1
                && (single_stride(group, &nest.extents, |l| out_strides[l]).is_none()
                    || extent_of(group, &nest.extents).saturating_mul(depth) > MAX_PACKED)
            {
                outer.push(group.remove(0));
            }
        }
        loops.outer.sort_unstable();
        Some(loops)
    }

    /// Runs the matmuls, which add their products to zeros, or to the given initial value.
    fn run<'a, T: GemmFloat + Lane>(
        &self,
        nest: &Nest<'a>,
        acc: &mut AlignedBytes,
        start: Option<T>,
    ) -> Result<(), EvalError> {
        let extents = &nest.extents;
        let [a, b] = nest.inputs.as_slice() else {
            return Err(EvalError::Malformed("a product of two operands"));
        };
        let out: &mut [T] = bytemuck::try_cast_slice_mut(acc.as_mut_slice())
            .map_err(|_| EvalError::Malformed("an accumulator that is not aligned"))?;
        if let Some(start) = start {
            out.fill(start);
        }
        let outer_count = extent_of(&self.outer, extents) as usize;
        if out.is_empty() || outer_count == 0 {
            return Ok(());
        }
        let k = extent_of(&self.depth, extents) as usize;
        let side = |reader, loops| self.side(reader, loops, extents);
        let (rows, columns) = (side(a, &self.rows), side(b, &self.columns));
        let (short, long) = if rows.count < columns.count {
            (&rows, &columns)
        } else {
            (&columns, &rows)
        };
        let direct = Some(Long {
            reader: long.reader,
            loops: long.loops,
            depth: &self.depth,
            extents,
        })
        .filter(|d| long.stride == 1 && short.stride >= 0 && d.suits::<T>(short.count, long.count, k));
        // An operand that no outer loop moves is prepared once.
        let shared = |side: &Side<'_, 'a>| {
            let moved = self.outer.iter().any(|&l| side.reader.uses_loop(l));
            (!moved)
                .then(|| Operand::<T>::new(side, &self.depth, extents, &[]))
                .transpose()
        };
        let packs = |side: &Side<'_, 'a>| direct.is_none() || std::ptr::eq(side, short);
        let prepare = |side: &Side<'_, 'a>| match packs(side) {
            true => shared(side).map_err(TensorError::from),
            false => Ok(None),
        };
        let (shared_rows, shared_columns) = (prepare(&rows)?, prepare(&columns)?);
        let product = |index: usize, out: &mut [T], offset: i64, threads: bool| {
            let fixed = self.outer_index(index, extents);
            let prepared = |shared, side| -> Result<_, TensorError> {
                Ok(match shared {
                    Some(operand) => Cow::Borrowed(operand),
                    None => Cow::Owned(Operand::<T>::new(side, &self.depth, extents, &fixed)?),
                })
            };
            let matrix = Matrix {
                offset,
                row_stride: rows.stride,
                column_stride: columns.stride,
            };
            if let Some(direct) = &direct {
                let shared = if std::ptr::eq(short, &rows) {
                    &shared_rows
                } else {
                    &shared_columns
                };
                let factors = prepared(shared.as_ref(), short)?;
                let out = out.get_mut(offset as usize..).unwrap_or_default();
                let shape = (short.count, long.count, short.stride);
                direct.add_products(shape, (factors.slice(), factors.matrix), &fixed, out);
                return Ok(());
            }
            let (lhs, rhs) = (
                prepared(shared_rows.as_ref(), &rows)?,
                prepared(shared_columns.as_ref(), &columns)?,
            );
            let done = gemm(
                (rows.count, columns.count, k),
                (out, matrix),
                (lhs.slice(), lhs.matrix),
                (rhs.slice(), rhs.matrix.transposed()),
                threads,
            );
            if done {
                Ok(())
            } else {
                Err(EvalError::Malformed("a product's operand leaves its tensor"))
            }
        };
        let leading = self.outer.iter().copied().eq(0..self.outer.len());
        if leading && outer_count > 1 {
            let chunk = out.len() / outer_count;
            let parts = out.par_chunks_mut(chunk).enumerate();
            return parallel(|| parts.try_for_each(|(i, out)| product(i, out, 0, false)));
        }
        let multiplications = rows.count.saturating_mul(columns.count).saturating_mul(k);
        let threads = multiplications > ::gemm::get_threading_threshold();
        let mut each = || {
            (0..outer_count).try_for_each(|i| {
                let offsets = self.outer_index(i, extents);
                let offset = offsets.iter().map(|&(l, at)| at * self.out_strides[l]).sum();
                product(i, out, offset, threads)
            })
        };
        match threads {
            true => parallel(each),
            false => each(),
        }
    }

    fn side<'n, 'a>(&self, reader: &'n Reader<'a>, loops: &'n [usize], extents: &[i64]) -> Side<'n, 'a> {
        Side {
            reader,
            loops,
            count: extent_of(loops, extents) as usize,
            stride: single_stride(loops, extents, |l| self.out_strides[l]).unwrap_or(1),
        }
    }

    /// Returns loop and index of each outer loop in iteration number `index` of the outer loops together.
    fn outer_index(&self, index: usize, extents: &[i64]) -> Vec<(usize, i64)> {
        let mut rest = index as i64;
        let mut fixed = Vec::with_capacity(self.outer.len());
        for &l in self.outer.iter().rev() {
            fixed.push((l, rest % extents[l].max(1)));
            rest /= extents[l].max(1);
        }
        fixed
    }
}

/// An operand of the matmuls, and the loops that only this operand uses: the rows or the columns.
struct Side<'n, 'a> {
    reader: &'n Reader<'a>,
    loops: &'n [usize],
    count: usize,
    /// The stride between results of neighbouring rows (or columns), in elements.
    stride: i64,
}

fn extent_of(loops: &[usize], extents: &[i64]) -> i64 {
    loops.iter().fold(1, |n, &l| n.saturating_mul(extents[l]))
}

/// Returns the stride with which a group of loops can be treated as a single loop; `None` if there is none.
fn single_stride(group: &[usize], extents: &[i64], stride: impl Fn(usize) -> i64) -> Option<i64> {
    let coalesces = group.windows(2).all(|w| stride(w[0]) == stride(w[1]) * extents[w[1]]);
    coalesces.then(|| group.last().map_or(1, |&l| stride(l)))
}

/// An operand of one matmul: rows (or columns) by depth, in place or packed.
#[derive(Clone)]
struct Operand<'a, T> {
    in_place: &'a [T],
    packed: Vec<T>,
    matrix: Matrix,
}

impl<'a, T: GemmFloat + Lane> Operand<'a, T> {
    fn new(
        &Side {
            reader, loops: rows, ..
        }: &Side<'_, 'a>,
        depth: &[usize],
        extents: &[i64],
        fixed: &[(usize, i64)],
    ) -> Result<Operand<'a, T>, OutOfMemory> {
        let strides =
            single_stride(rows, extents, |l| reader.stride(l)).zip(single_stride(depth, extents, |l| reader.stride(l)));
        if let Some((row_stride, column_stride)) = strides
            && reader.is_in_bounds()
            && reader.dtype() == T::DTYPE
        {
            let offset = reader.base() + fixed.iter().map(|&(l, at)| at * reader.stride(l)).sum::<i64>();
            return Ok(Operand {
                in_place: reader.raw(),
                packed: Vec::new(),
                matrix: Matrix {
                    offset,
                    row_stride,
                    column_stride,
                },
            });
        }
        // The side on which copying an element costs less runs innermost: runs have a price, which long ones share among many
        // elements, and steps leave cache lines. A convolution's rows are longer than its kernel is wide.
        let cost = |group: &[usize]| {
            group.last().map_or(i64::MAX, |&l| {
                let step = if reader.stride(l).abs() <= 1 { 1 } else { 4 };
                step * RUN_COST + RUN_COST * RUN_COST / extents[l].max(1)
            })
        };
        let rows_inner = cost(rows) < cost(depth);
        let order: Vec<usize> = if rows_inner {
            [depth, rows].concat()
        } else {
            [rows, depth].concat()
        };
        let small = reader.restricted(&order, fixed);
        let small_extents: Dims = order.iter().map(|&l| extents[l]).collect();
        let zeros: Dims = smallvec::smallvec![0; order.len()];
        let walk = Walk {
            extents: &small_extents,
            first: 0,
            end: order.len(),
            fixed: &zeros,
        };
        let (m, k) = (extent_of(rows, extents), extent_of(depth, extents));
        let mut packed = memory::filled(m.saturating_mul(k) as usize, T::ZERO)?;
        with_element!(reader.dtype(), E => {
            pack::<E, T>(&small, &walk, &mut packed);
        });
        let (row_stride, column_stride) = if rows_inner { (1, m) } else { (k, 1) };
        Ok(Operand {
            in_place: &[],
            packed,
            matrix: Matrix {
                offset: 0,
                row_stride,
                column_stride,
            },
        })
    }

    fn slice(&self) -> &[T] {
        if self.packed.is_empty() {
            self.in_place
        } else {
            &self.packed
        }
    }
}

/// Packs elements: by copying if they are stored in the type `T`, otherwise by conversion through lanes.
fn pack<E: Element, T: Lane>(reader: &Reader<'_>, walk: &Walk<'_>, packed: &mut [T]) {
    // Long runs: each one starts with a division of its index.
    const RUN: usize = 1 << 14;
    let pack = |(i, target): (usize, &mut [T])| {
        let start = i * RUN;
        if <E::Lane as Lane>::DTYPE == T::DTYPE
            && let Ok(same) = bytemuck::try_cast_slice_mut::<T, E::Lane>(target)
        {
            reader.read_into::<E>(walk, start, same);
            return;
        }
        // f32 lanes that are multiplied in f64.
        let (mut lanes, mut converted) = (Lanes::new(E::DTYPE), Lanes::new(T::DTYPE));
        for (part, target) in target.chunks_mut(CHUNK).enumerate() {
            reader.read(walk, start + part * CHUNK, target.len(), &mut lanes);
            converted.convert_from(&lanes, E::DTYPE, T::DTYPE);
            target.copy_from_slice(T::of(&converted));
        }
    };
    if packed.len() <= RUN {
        pack((0, packed));
    } else {
        let parts = packed.par_chunks_mut(RUN).enumerate();
        parallel(|| parts.for_each(pack));
    }
}
