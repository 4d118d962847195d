//! Fusion of a stage that stores a row into the reduction that reads it next. The reduction computes the row, and stores it for stages that read it again:
//! softmax's exponentials are summed while they are in registers. This saves one loop, and one load per element.

use crate::kernel::{Kept, Loops, Place, Stage};
use frazil_runtime::structured::Affine;

/// Fuses each stage of `loops` that stores a row with the next stage, if that reduces just this row.
pub(super) fn keep_rows(loops: &mut Loops) {
    let mut at = 0;
    while let Some([row, fold]) = loops.stages.get(at..at + 2) {
        match joined(loops, row, fold) {
            Some(stage) => {
                loops.stages.splice(at..at + 2, [stage]);
            }
            None => at += 1,
        }
    }
}

/// Returns the reduction that also computes the row.
fn joined(loops: &Loops, row: &Stage, fold: &Stage) -> Option<Stage> {
    let Place::Local(number) = row.output.place else {
        return None;
    };
    let [read] = fold.inputs.as_slice() else { return None };
    let same_loops = row.combine.is_none() && fold.inner.is_empty() && row.inner == fold.reduction;
    let same_elements = read.place == row.output.place
        && read.index == row.output.index
        && read.guards.is_empty()
        && read.indirect.is_empty();
    // Between the two nothing is rounded or converted that is not in one.
    let same_dtype = row.finish.is_none()
        && row.accumulate == fold.accumulate
        && loops.locals.get(number as usize).map(|l| l.dtype) == Some(row.accumulate);
    let first = fold.combine.is_some() && fold.kept.is_none();
    if !(same_loops && same_elements && same_dtype && first) {
        return None;
    }
    Some(Stage {
        inputs: row.inputs.clone(),
        kept: Some(Kept {
            body: row.body.clone(),
            output: row.output.clone(),
        }),
        indices: longer(&row.indices, &fold.indices)?.to_vec(),
        ..fold.clone()
    })
}

/// Returns the list that starts with the other one, if one does.
fn longer<'a>(one: &'a [Affine], two: &'a [Affine]) -> Option<&'a [Affine]> {
    match one.len() < two.len() {
        true => two.starts_with(one).then_some(two),
        false => one.starts_with(two).then_some(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Local, Read, Write};
    use frazil_ir::DType;
    use frazil_runtime::expr::Expr;
    use frazil_runtime::structured::{Combine, Dims};

    fn affine(coefficients: &[i64]) -> Affine {
        Affine {
            coefficients: coefficients.into(),
            offset: 0,
        }
    }

    /// A row of 8 stored in the first local, its sum in the second.
    fn row_and_sum() -> Loops {
        let identity = || Expr::identity(DType::Float);
        let local = |n, index: &[i64]| Write {
            place: Place::Local(n),
            index: affine(index),
        };
        let source = Read::new(Place::Argument(0), affine(&[8, 1]));
        let row = Stage::pointwise([8].as_slice().into(), vec![source], identity(), local(0, &[0, 1]));
        let again = Read::new(Place::Local(0), affine(&[0, 1]));
        let sum = Stage {
            reduction: [8].as_slice().into(),
            combine: Some(Combine::Add),
            ..Stage::pointwise(Dims::new(), vec![again], identity(), local(1, &[0, 0]))
        };
        let of = |elements| Local {
            dtype: DType::Float,
            elements,
        };
        Loops {
            outer: [4].as_slice().into(),
            arguments: vec![DType::Float],
            locals: vec![of(8), of(1)],
            stages: vec![row, sum],
            lanes: 8,
        }
    }

    #[test]
    fn a_fold_makes_the_row_it_reads() {
        let mut loops = row_and_sum();
        keep_rows(&mut loops);
        let [stage] = loops.stages.as_slice() else {
            panic!("{} stages", loops.stages.len())
        };
        let kept = stage.kept.as_ref().expect("the row is stored");
        assert_eq!(
            (kept.output.place, stage.output.place),
            (Place::Local(0), Place::Local(1))
        );
        assert_eq!(stage.inputs[0].place, Place::Argument(0));
    }

    #[test]
    fn a_fold_of_another_order_or_dtype_stays() {
        let mut backwards = row_and_sum();
        backwards.stages[1].inputs[0].index = Affine {
            offset: 7,
            ..affine(&[0, -1])
        };
        let mut rounded = row_and_sum();
        rounded.locals[0].dtype = DType::Half;
        for mut loops in [backwards, rounded] {
            keep_rows(&mut loops);
            assert_eq!(loops.stages.len(), 2);
        }
    }
}
