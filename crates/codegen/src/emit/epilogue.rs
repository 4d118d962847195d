//! Emission of fused epilogues.

use super::builder::{Emitter, Int, Val};
use super::expr::{ExprEmitter, Values};
use frazil_planner::kernel::{Epilogue, EpilogueOperand};

/// The position of one vector of results.
pub struct Position<'c> {
    /// Row of the matmul; unused elsewhere.
    pub row: Int<'c>,
    /// Offset of the vector's first element in a `Channel` operand.
    pub channel: Int<'c>,
    /// Offset of the vector's first element in the output, and in `Elementwise` operands.
    pub element: Int<'c>,
    /// Mask of the valid lanes; `None` if all lanes are valid.
    pub mask: Option<Val<'c>>,
}

/// Applies `epilogue` to a tile of accumulators, `vectors` per row, and stores the results into `output`, except for the rows before row `first`. `at` returns
/// the position of vector v of row r.
///
/// A costly epilogue does not fit into the registers beside the accumulators. So these are stored on the stack, and the epilogue is applied to one row at a
/// time.
pub fn finish<'c>(
    e: &mut Emitter<'c>,
    epilogue: &Epilogue,
    (operands, output): (&[Val<'c>], Val<'c>),
    (acc, vectors, lanes): (&[Val<'c>], i64, i64),
    first: Int<'c>,
    at: impl Fn(&mut Emitter<'c>, Int<'c>, i64) -> Position<'c>,
) {
    let result = |e: &mut Emitter<'c>, r: Int<'c>, v: i64, value: Val<'c>| {
        let at = at(e, r, v);
        (apply(e, epilogue, operands, value, lanes, &at), at)
    };
    if !epilogue.is_costly() {
        from_row(e, acc, vectors, first, |e, r, v, value| {
            let (value, at) = result(e, Int::Const(r), v, value);
            store(e, value, output, at.element, at.mask);
        });
        return;
    }
    let waiting = e.stack(acc.len() as i64 * lanes * 4);
    for (i, &value) in acc.iter().enumerate() {
        let address = e.f32_offset(waiting, i as i64 * lanes);
        e.store(value, address, 4);
    }
    e.for_each(first, acc.len() as i64 / vectors, 1, |e, r| {
        let row = e.mul(r, vectors * lanes);
        let row = e.f32_offset(waiting, row);
        for v in 0..vectors {
            let address = e.f32_offset(row, v * lanes);
            let value = e.load_vector(address, lanes);
            let (value, at) = result(e, r, v, value);
            let address = e.f32_offset(output, at.element);
            match at.mask {
                None => e.store(value, address, 4),
                Some(mask) => e.store_masked(value, address, mask),
            }
        }
    });
}

/// Emits `body` for each accumulator of a tile, `vectors` a row, without the rows before row `first`.
pub fn from_row<'c>(
    e: &mut Emitter<'c>,
    acc: &[Val<'c>],
    vectors: i64,
    first: Int<'c>,
    body: impl Fn(&mut Emitter<'c>, i64, i64, Val<'c>),
) {
    for (r, row) in (0..).zip(acc.chunks(vectors as usize)) {
        let all = |e: &mut Emitter<'c>| {
            for (v, &value) in (0..).zip(row) {
                body(e, r, v, value);
            }
        };
        match first {
            Int::Const(first) if r < first => {}
            Int::Const(_) => all(e),
            first => {
                let wanted = e.compare("sle", first, r);
                e.if_then(wanted, all);
            }
        }
    }
}

/// Applies `epilogue` to the accumulator `acc`, a vector of `lanes` f32. `operands` are the addresses of the epilogue's operands.
pub fn apply<'c>(
    e: &mut Emitter<'c>,
    epilogue: &Epilogue,
    operands: &[Val<'c>],
    acc: Val<'c>,
    lanes: i64,
    at: &Position<'c>,
) -> Val<'c> {
    let mut values = vec![acc];
    for (kind, &base) in epilogue.operands.iter().zip(operands) {
        values.push(match kind {
            EpilogueOperand::Scalar => e.load_broadcast(base, lanes),
            EpilogueOperand::Row => {
                let address = e.f32_offset(base, at.row);
                e.load_broadcast(address, lanes)
            }
            EpilogueOperand::Channel => load(e, base, at.channel, lanes, at.mask),
            EpilogueOperand::Elementwise => load(e, base, at.element, lanes, at.mask),
        });
    }
    ExprEmitter::new(e, Some(lanes)).emit(&epilogue.expr, &mut Values(&values))
}

fn load<'c>(e: &mut Emitter<'c>, base: Val<'c>, index: Int<'c>, lanes: i64, mask: Option<Val<'c>>) -> Val<'c> {
    let address = e.f32_offset(base, index);
    match mask {
        None => e.load_vector(address, lanes),
        Some(mask) => e.load_masked(address, mask, lanes),
    }
}

/// Stores a vector of results at element `index` of `base`; with a mask, only the lanes of `mask`.
pub fn store<'c>(e: &mut Emitter<'c>, value: Val<'c>, base: Val<'c>, index: Int<'c>, mask: Option<Val<'c>>) {
    let address = e.f32_offset(base, index);
    match mask {
        None => e.store(value, address, 4),
        Some(mask) => e.store_masked_at(value, address, mask, 4),
    }
}
