//! The implementation of [`Kernel`] for loop nests.

use super::{Loops, Place, Read, Stage};
use crate::kernel::code::{constant, text};
use crate::kernel::describe::Infix;
use crate::kernel::{Kernel, Numbers};
use frazil_runtime::expr::{Expr, ExprOp};
use frazil_runtime::structured::Affine;
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

impl Kernel for Loops {
    fn family(&self) -> &'static str {
        "loops"
    }

    fn lanes(&self) -> i64 {
        self.lanes
    }

    fn phases(&self) -> SmallVec<[i64; 2]> {
        smallvec![self.tasks()]
    }

    fn operand_count(&self) -> usize {
        self.arguments.len()
    }

    fn may_alias_output(&self, operand: usize) -> bool {
        self.may_update_in_place(operand)
    }

    fn numbers(&self) -> Numbers {
        let mut numbers = Numbers::new();
        self.map(&mut |n| numbers.push(*n));
        numbers
    }

    fn code_text(&self, is_argument: &[bool]) -> String {
        let mut is_argument = is_argument.iter();
        let constants = self.map(&mut |n| constant(*n, is_argument.next()));
        // Stages without a reduction have no other loop to vectorise.
        let reductions = self.stages.iter().filter(|s| s.combine.is_some());
        let long_rows: Vec<bool> = reductions.map(|s| s.has_long_rows(self.lanes)).collect();
        text(format_args!("{constants:?} {long_rows:?}"))
    }

    fn flops(&self) -> i64 {
        self.stages.iter().map(|s| stage_flops(self, s)).sum()
    }

    fn bytes(&self) -> i64 {
        self.stages.iter().map(|s| stage_bytes(self, s)).sum()
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        writeln!(out, "  loops over {:?}", self.outer.as_slice())?;
        self.stages.iter().try_for_each(|s| describe_stage(out, s))
    }
}

fn describe_stage(out: &mut dyn Write, s: &Stage) -> fmt::Result {
    let place = |p: Place| match p {
        Place::Argument(n) => format!("arg{n}"),
        Place::Local(n) => format!("row{n}"),
    };
    write!(out, "    {:?}", s.inner.as_slice())?;
    if let Some(combine) = s.combine {
        let name = format!("{combine:?}").to_lowercase();
        write!(out, " {name} over {:?}", s.reduction.as_slice())?;
    }
    let names = |n: u32| match s.inputs.get(n as usize) {
        Some(r) => place(r.place),
        None => format!("in{n}"),
    };
    let kept = s.kept.as_ref().map(|k| place(k.output.place));
    if let (Some(kept), Some(k)) = (&kept, &s.kept) {
        write!(out, " of {kept} = {}", Infix(&k.body, &names))?;
    }
    let names = |n: u32| kept.clone().unwrap_or_else(|| names(n));
    write!(out, ": {} = ", place(s.output.place))?;
    match &s.finish {
        Some(finish) => {
            let finish_names = |n: u32| match n.checked_sub(1).and_then(|n| s.finish_inputs.get(n as usize)) {
                Some(r) => place(r.place),
                None => "acc".to_owned(),
            };
            writeln!(
                out,
                "{} where acc = {}",
                Infix(finish, &finish_names),
                Infix(&s.body, &names)
            )
        }
        None => writeln!(out, "{}", Infix(&s.body, &names)),
    }
}

fn stage_flops(k: &Loops, s: &Stage) -> i64 {
    let operations = |e: &Expr| {
        let counted = |op: &ExprOp| matches!(op, ExprOp::Unary(..) | ExprOp::Binary(..) | ExprOp::Fma(..));
        e.nodes().iter().filter(|n| counted(&n.op)).count() as i64
    };
    let results = k.tasks() * s.inner.iter().product::<i64>();
    let folded: i64 = s.reduction.iter().product();
    let join = i64::from(s.combine.is_some());
    let kept = s.kept.as_ref().map_or(0, |k| operations(&k.body));
    results * (folded * (kept + operations(&s.body) + join) + s.finish.as_ref().map_or(0, operations))
}

/// Returns the number of bytes that a stage reads and writes. Scratch memory stays in the cache, so it is not counted.
fn stage_bytes(k: &Loops, s: &Stage) -> i64 {
    let extents: Vec<i64> = k.outer.iter().chain(&s.inner).chain(&s.reduction).copied().collect();
    let moved = |place: Place, index: &Affine| match place {
        Place::Argument(n) => {
            let loops = index.coefficients.iter().zip(&extents).filter(|(c, _)| **c != 0);
            let size = k.arguments.get(n as usize).map_or(0, |d| d.size() as i64);
            loops.map(|(_, n)| n).product::<i64>() * size
        }
        Place::Local(_) => 0,
    };
    let read = |r: &Read| moved(r.place, &r.index);
    let reads: i64 = s.inputs.iter().chain(&s.finish_inputs).map(read).sum();
    reads + s.writes().map(|w| moved(w.place, &w.index)).sum::<i64>()
}
