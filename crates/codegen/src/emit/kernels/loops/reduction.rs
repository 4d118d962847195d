//! The loops of a reduction.
//!
//! If the last reduction loop is vectorised, several vectors accumulate partial results: as many as there are full vectors in a row of the loop, up to a maximum.
//! A row's vectors are distributed among them in turn. At the end, the accumulators are combined in order, and then their lanes. Values are combined in the same
//! order whether the extent of the loop is a constant of the code or an argument.

use super::combine::{horizontal, identity, join};
use super::{Nest, Point, ahead};
use crate::emit::builder::{Emitter, Int, Val};
use frazil_runtime::structured::Combine;
use melior::ir::ValueLike;

/// Emits the code at the indices of reduction loops. It gets and returns the accumulators.
type Row<'r, 'c> = dyn Fn(&mut Emitter<'c>, &mut Vec<Int<'c>>, &[Val<'c>]) -> Vec<Val<'c>> + 'r;

/// Emits nested loops, the outermost first, and `row` inside of them.
fn rows<'c>(
    e: &mut Emitter<'c>,
    at: &mut Vec<Int<'c>>,
    loops: &[Int<'c>],
    acc: &[Val<'c>],
    row: &Row<'_, 'c>,
) -> Vec<Val<'c>> {
    let Some((&extent, inner)) = loops.split_first() else {
        return row(e, at, acc);
    };
    e.for_loop(0, extent, 1, acc, |e, i, acc| {
        at.push(i);
        let acc = rows(e, at, inner, acc, row);
        at.pop();
        acc
    })
}

impl<'c> Nest<'_, 'c> {
    /// Emits the reduction loops with one accumulator, and returns its final value.
    pub(super) fn reduce(
        &self,
        e: &mut Emitter<'c>,
        at: &mut Vec<Int<'c>>,
        (vector, mask): (Option<(usize, i64)>, Option<Val<'c>>),
        combine: Combine,
    ) -> Val<'c> {
        let dtype = self.stage.accumulate;
        let start = identity(e, combine, dtype, vector.map(|(_, lanes)| lanes));
        let element = |e: &mut Emitter<'c>, at: &mut Vec<Int<'c>>, acc: &[Val<'c>]| {
            let point = Point {
                at: at.clone(),
                vector,
                mask,
            };
            let value = self.body(e, &point);
            vec![join(e, combine, dtype, acc[0], value, point.lanes())]
        };
        rows(e, at, &self.stage.reduction, &[start], &element)[0]
    }

    /// Emits the reduction loops with the last one vectorised.
    pub(super) fn reduce_vectors(&self, e: &mut Emitter<'c>, at: &mut Vec<Int<'c>>, combine: Combine) -> Val<'c> {
        let (dtype, lanes) = (self.stage.accumulate, self.spec.lanes);
        let most = e.target.machine.loops.accumulators.max(1);
        let start = identity(e, combine, dtype, Some(lanes));
        let (extent, outer) = match self.stage.reduction.split_last() {
            Some((&extent, outer)) => (extent, outer),
            None => (Int::Const(0), &[][..]),
        };
        let sum = match extent.known() {
            Some(extent) => {
                let count = (extent / lanes).min(most).max(1);
                let row = |e: &mut Emitter<'c>, at: &mut Vec<Int<'c>>, acc: &[Val<'c>]| {
                    self.row_of_constant_extent(e, at, extent, combine, acc)
                };
                let acc = rows(e, at, outer, &vec![start; count as usize], &row);
                self.joined(e, combine, &acc)
            }
            None => {
                let fills_all = e.compare("sge", extent, most * lanes);
                let (mut at_many, mut at_few) = (at.clone(), at.clone());
                e.if_else(
                    fills_all,
                    &[start.r#type()],
                    |e| {
                        let row = |e: &mut Emitter<'c>, at: &mut Vec<Int<'c>>, acc: &[Val<'c>]| {
                            self.long_row(e, at, extent, combine, acc)
                        };
                        let acc = rows(e, &mut at_many, outer, &vec![start; most as usize], &row);
                        vec![self.joined(e, combine, &acc)]
                    },
                    |e| match outer {
                        [] => vec![self.only_short_row(e, &mut at_few, extent, combine, start)],
                        _ => {
                            vec![self.short_rows(e, &mut at_few, (extent, outer), combine, (start, (most - 1).max(1)))]
                        }
                    },
                )[0]
            }
        };
        horizontal(e, combine, dtype, sum, lanes)
    }

    /// Combines accumulators in order.
    fn joined(&self, e: &mut Emitter<'c>, combine: Combine, acc: &[Val<'c>]) -> Val<'c> {
        let mut sum = acc[0];
        for &other in &acc[1..] {
            sum = join(e, combine, self.stage.accumulate, sum, other, Some(self.spec.lanes));
        }
        sum
    }

    fn row_of_constant_extent(
        &self,
        e: &mut Emitter<'c>,
        at: &mut Vec<Int<'c>>,
        extent: i64,
        combine: Combine,
        acc: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let lanes = self.spec.lanes;
        let step = lanes * acc.len() as i64;
        let full = extent / step * step;
        let mut acc = self.full_steps(e, at, Int::Const(full), combine, acc);
        for i in (full..extent).step_by(lanes as usize) {
            let n = (i - full) as usize / lanes as usize % acc.len();
            let count = (extent - i < lanes).then_some(Int::Const(extent - i));
            acc[n] = self.join_vector(e, at, Int::Const(i), count, combine, acc[n]);
        }
        acc
    }

    /// Emits a row of at least one full vector for each accumulator.
    fn long_row(
        &self,
        e: &mut Emitter<'c>,
        at: &mut Vec<Int<'c>>,
        extent: Int<'c>,
        combine: Combine,
        acc: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let lanes = self.spec.lanes;
        let full = e.round_down(extent, acc.len() as i64 * lanes);
        let mut acc = self.full_steps(e, at, full, combine, acc);
        for (n, acc) in (0..).zip(&mut acc) {
            let i = e.add(full, n * lanes);
            let left = e.sub(extent, i);
            let (is_there, before) = (e.compare("sgt", left, 0), *acc);
            *acc = self.join_vector_if(e, at, is_there, (i, Some(left)), combine, before);
        }
        acc
    }

    /// Emits the only row of a reduction, if it has fewer full vectors than there are accumulators. Each vector is the value of one accumulator; the first one
    /// also has the last, incomplete vector.
    fn only_short_row(
        &self,
        e: &mut Emitter<'c>,
        at: &mut Vec<Int<'c>>,
        extent: Int<'c>,
        combine: Combine,
        start: Val<'c>,
    ) -> Val<'c> {
        let (dtype, lanes) = (self.stage.accumulate, self.spec.lanes);
        let full = e.round_down(extent, lanes);
        let sum = self.join_vector(e, at, Int::Const(0), Some(extent), combine, start);
        let rest = e.sub(extent, full);
        let [some, one] = [e.compare("sgt", rest, 0), e.compare("sgt", full, 0)];
        let has_tail = e.binary("arith.andi", some, one);
        let sum = self.join_vector_if(e, at, has_tail, (full, Some(rest)), combine, sum);
        e.for_loop(lanes, full, lanes, &[sum], |e, i, sum| {
            let value = self.join_vector(e, at, i, None, combine, start);
            vec![join(e, combine, dtype, sum[0], value, Some(lanes))]
        })[0]
    }

    /// Emits rows as [`Nest::only_short_row`] does, for several reduction loops. There are at most `most` full vectors in a row. `start` is the value of the
    /// accumulators before the first row.
    fn short_rows(
        &self,
        e: &mut Emitter<'c>,
        at: &mut Vec<Int<'c>>,
        (extent, outer): (Int<'c>, &[Int<'c>]),
        combine: Combine,
        (start, most): (Val<'c>, i64),
    ) -> Val<'c> {
        let (dtype, lanes) = (self.stage.accumulate, self.spec.lanes);
        let full = e.round_down(extent, lanes);
        let rest = e.sub(extent, full);
        let has_tail = e.compare("sgt", rest, 0);
        let is_full: Vec<Val<'c>> = (1..=most).map(|n| e.compare("sge", extent, n * lanes)).collect();
        let row = |e: &mut Emitter<'c>, at: &mut Vec<Int<'c>>, acc: &[Val<'c>]| {
            let vectors = (0..).zip(&is_full).zip(acc);
            let mut acc: Vec<Val<'c>> = vectors
                .map(|((n, &is_full), &acc)| {
                    self.join_vector_if(e, at, is_full, (Int::Const(n * lanes), None), combine, acc)
                })
                .collect();
            acc[0] = self.join_vector_if(e, at, has_tail, (full, Some(rest)), combine, acc[0]);
            acc
        };
        let acc = rows(e, at, outer, &vec![start; most as usize], &row);
        let mut sum = acc[0];
        for (&is_full, &other) in is_full.iter().zip(&acc).skip(1) {
            let before = sum;
            let with = |e: &mut Emitter<'c>| vec![join(e, combine, dtype, before, other, Some(lanes))];
            sum = e.if_else(is_full, &[before.r#type()], with, |_| vec![before])[0];
        }
        sum
    }

    /// Emits the iterations of the vectorised reduction loop up to `full`. Each of them updates all accumulators.
    fn full_steps(
        &self,
        e: &mut Emitter<'c>,
        at: &mut Vec<Int<'c>>,
        full: Int<'c>,
        combine: Combine,
        acc: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let (s, lanes, l) = (self.stage, self.spec.lanes, at.len());
        let step = lanes * acc.len() as i64;
        let abreast = if acc.len() as i64 % e.target.machine.loops.interleaved.max(1) == 0 {
            self.abreast(e)
        } else {
            1
        };
        let width = abreast * lanes;
        e.for_loop(0, full, step, acc, |e, i, acc| {
            ahead::fetch(e, &self.ahead, i, step);
            let mut next = Vec::new();
            for (n, side) in acc.chunks(abreast as usize).enumerate() {
                let i = e.add(i, n as i64 * width);
                at.push(i);
                let values = self.body(
                    e,
                    &Point {
                        at: at.clone(),
                        vector: Some((l, width)),
                        mask: None,
                    },
                );
                at.pop();
                for (j, &a) in (0..).zip(side) {
                    let value = match abreast {
                        1 => values,
                        _ => e.shuffle(values, values, j * lanes..(j + 1) * lanes),
                    };
                    next.push(join(e, combine, s.accumulate, a, value, Some(lanes)));
                }
            }
            next
        })
    }

    /// Combines `acc` with the vector at index `i` of the reduction loop, or with the first `count` lanes of the vector.
    fn join_vector(
        &self,
        e: &mut Emitter<'c>,
        at: &mut Vec<Int<'c>>,
        i: Int<'c>,
        count: Option<Int<'c>>,
        combine: Combine,
        acc: Val<'c>,
    ) -> Val<'c> {
        let (s, lanes, l) = (self.stage, self.spec.lanes, at.len());
        let mask = count.map(|count| e.mask(count, lanes));
        at.push(i);
        let mut value = self.body(
            e,
            &Point {
                at: at.clone(),
                vector: Some((l, lanes)),
                mask,
            },
        );
        at.pop();
        if let Some(mask) = mask {
            let nothing = identity(e, combine, s.accumulate, Some(lanes));
            value = e.select(mask, value, nothing);
        }
        join(e, combine, s.accumulate, acc, value, Some(lanes))
    }

    /// Emits the same as [`Nest::join_vector`], for the vector at `i` with `count` lanes, if `condition` holds at run time.
    fn join_vector_if(
        &self,
        e: &mut Emitter<'c>,
        at: &mut Vec<Int<'c>>,
        condition: Val<'c>,
        (i, count): (Int<'c>, Option<Int<'c>>),
        combine: Combine,
        acc: Val<'c>,
    ) -> Val<'c> {
        let join = |e: &mut Emitter<'c>| vec![self.join_vector(e, at, i, count, combine, acc)];
        e.if_else(condition, &[acc.r#type()], join, |_| vec![acc])[0]
    }
}
