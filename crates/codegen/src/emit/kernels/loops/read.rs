//! Reads with guards, masks, and addressing by values.

use super::{Nest, Point};
use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::expr::{self, ExprEmitter};
use frazil_ir::DType;
use frazil_planner::kernel::{Guard, Read};
use frazil_runtime::expr::Number;
use frazil_runtime::structured::Affine;

impl<'c> Nest<'_, 'c> {
    /// Returns the value of `reads[n]` in every lane of the point, in the type in which values of its dtype are computed.
    pub(super) fn read(&self, e: &mut Emitter<'c>, reads: &[Read<Int<'c>>], n: usize, point: &Point<'c>) -> Val<'c> {
        let read = &reads[n];
        let dtype = self.dtype(read.place);
        let mut further = Int::Const(0);
        for indirect in &read.indirect {
            let value = self.index_value(e, reads, indirect.input as usize, point, indirect.extent);
            let term = e.mul(value, indirect.stride);
            further = e.add(further, term);
        }
        match point.vector {
            Some((_, lanes)) if point.is_uniform(&read.index) => {
                let value = self.read_scalar(e, read, dtype, point, further);
                e.broadcast(value, lanes)
            }
            Some((_, lanes)) => self.read_vector(e, read, dtype, point, further, lanes),
            None => self.read_scalar(e, read, dtype, point, further),
        }
    }

    fn read_scalar(
        &self,
        e: &mut Emitter<'c>,
        read: &Read<Int<'c>>,
        dtype: DType,
        point: &Point<'c>,
        further: Int<'c>,
    ) -> Val<'c> {
        let guards: Vec<_> = read.guards.iter().collect();
        guarded(e, &guards, dtype, read.fill, point, None, |e| {
            let address = self.address(e, read.place, &read.index, point, further);
            let ty = e.ty(expr::storage_type(dtype));
            let value = e.load(address, ty, dtype.size() as i64);
            ExprEmitter::new(e, None).from_storage(value, dtype)
        })
    }

    fn read_vector(
        &self,
        e: &mut Emitter<'c>,
        read: &Read<Int<'c>>,
        dtype: DType,
        point: &Point<'c>,
        further: Int<'c>,
        lanes: i64,
    ) -> Val<'c> {
        // Guards that are the same for all lanes become a branch, other guards a mask.
        let (uniform, varying): (Vec<_>, Vec<_>) = read.guards.iter().partition(|g| point.is_uniform(&g.index));
        let mut mask = point.mask;
        for guard in varying {
            let inside = lanes_inside(e, point, &guard.index, guard.extent, lanes);
            mask = Some(mask.map_or(inside, |m| e.binary("arith.andi", m, inside)));
        }
        guarded(e, &uniform, dtype, read.fill, point, Some(lanes), |e| {
            let address = self.address(e, read.place, &read.index, point, further);
            let value = match mask {
                None => {
                    let ty = e.shaped(expr::storage_type(dtype), Some(lanes));
                    e.load(address, ty, dtype.size() as i64)
                }
                Some(mask) => {
                    let fill = ExprEmitter::new(e, Some(lanes)).constant(read.fill, dtype);
                    let fill = ExprEmitter::new(e, Some(lanes)).to_storage(fill, dtype);
                    e.load_masked_or(address, mask, fill, dtype.size() as i64)
                }
            };
            ExprEmitter::new(e, Some(lanes)).from_storage(value, dtype)
        })
    }

    /// Returns the value of an integer operand that is the same in all lanes. If it is negative, `extent` is added once; then it is clamped to `0..extent`.
    fn index_value(
        &self,
        e: &mut Emitter<'c>,
        reads: &[Read<Int<'c>>],
        n: usize,
        point: &Point<'c>,
        extent: Int<'c>,
    ) -> Int<'c> {
        let point = Point {
            at: point.at.clone(),
            vector: None,
            mask: None,
        };
        let value = self.read(e, reads, n, &point);
        let dtype = self.dtype(reads[n].place);
        let value = Int::Dyn(ExprEmitter::new(e, None).cast(value, dtype, DType::Long));
        let wrapped = e.add(value, extent);
        let negative = e.compare("slt", value, 0);
        let (wrapped, plain) = (e.int(wrapped), e.int(value));
        let value = Int::Dyn(e.select(negative, wrapped, plain));
        let value = e.max(value, 0);
        let last = e.sub(extent, 1);
        e.min(value, last)
    }
}

/// Returns true if `read` permits vectorising loop `l`. The values that address it must be the same in all lanes. If its index is the same in all lanes, so
/// must be its guards.
pub(super) fn lanes_agree(reads: &[Read<Int<'_>>], read: &Read<Int<'_>>, l: usize) -> bool {
    let stays = |a: &Affine<Int<'_>>| a.coefficients[l].known() == Some(0);
    let still = |r: &Read<Int<'_>>| stays(&r.index) && r.guards.iter().all(|g| stays(&g.index));
    let indices = read.indirect.iter().all(|x| still(&reads[x.input as usize]));
    indices && (!stays(&read.index) || still(read))
}

/// Emits `value` if all guards hold, and otherwise the constant `fill`.
fn guarded<'c>(
    e: &mut Emitter<'c>,
    guards: &[&Guard<Int<'c>>],
    dtype: DType,
    fill: Number,
    point: &Point<'c>,
    lanes: Option<i64>,
    value: impl FnOnce(&mut Emitter<'c>) -> Val<'c>,
) -> Val<'c> {
    let mut condition = None;
    for guard in guards {
        let index = point.linear(e, &guard.index);
        // One unsigned comparison tests both bounds.
        let inside = e.compare("ult", index, guard.extent);
        condition = Some(match condition {
            None => inside,
            Some(c) => e.binary("arith.andi", c, inside),
        });
    }
    let Some(condition) = condition else { return value(e) };
    let ty = e.shaped(expr::element_type(dtype).unwrap_or("i64"), lanes);
    e.if_else(
        condition,
        &[ty],
        |e| vec![value(e)],
        |e| vec![ExprEmitter::new(e, lanes).constant(fill, dtype)],
    )[0]
}

/// Returns the value of `index` in each lane, as a vector of i64.
pub(super) fn lane_indices<'c>(e: &mut Emitter<'c>, point: &Point<'c>, index: &Affine<Int<'c>>, lanes: i64) -> Val<'c> {
    let base = point.linear(e, index);
    let base = e.int(base);
    let base = e.broadcast(base, lanes);
    let numbers = |e: &mut Emitter<'c>, step: i64| {
        let steps: Vec<String> = (0..lanes).map(|i| (i * step).to_string()).collect();
        e.constant(&format!("dense<[{}]> : vector<{lanes}xi64>", steps.join(", ")))
    };
    let steps = match point.step(index) {
        Int::Const(step) => numbers(e, step),
        Int::Dyn(step) => {
            let (numbers, step) = (numbers(e, 1), e.broadcast(step, lanes));
            e.binary("arith.muli", numbers, step)
        }
    };
    e.binary("arith.addi", base, steps)
}

/// Returns the mask of the lanes with `0 <= index < extent`.
fn lanes_inside<'c>(
    e: &mut Emitter<'c>,
    point: &Point<'c>,
    index: &Affine<Int<'c>>,
    extent: Int<'c>,
    lanes: i64,
) -> Val<'c> {
    let indices = lane_indices(e, point, index, lanes);
    let extent = match extent {
        Int::Const(extent) => e.constant(&format!("dense<{extent}> : vector<{lanes}xi64>")),
        Int::Dyn(extent) => e.broadcast(extent, lanes),
    };
    e.cmpi("ult", indices, extent, Some(lanes))
}
