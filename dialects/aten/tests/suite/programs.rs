//! Prepared calls against the plain evaluator. A call of few elements runs on a tape or as one expression over staged operands (`prepared.rs` and
//! `eval/tape.rs` of frazil-runtime); it has to return what its program returns, bit by bit, however often it was called before. Only sums may differ, by
//! the order of their terms: a tape adds pairwise in doubles, while the evaluator multiplies matrices in blocks of their own dtype, and adds along outer
//! loops one term after the other.

use frazil_recorded::bits::{Within, difference};
use frazil_recorded::random::Random;
use frazil_runtime::op::{Operator, Variant};
use frazil_runtime::value::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::{Differences, by_call, by_program, each_recorded, name_of, registry, sums};
use crate::random::like;

/// By so many units in the last place of the largest element sums may differ. Terms of both signs cancel.
const UNITS_OF_SUMS: f64 = 32.0;

/// Calls that have to be compared at least: fewer, and the samples do not reach the programs.
const CALLS: usize = 3000;

#[test]
fn prepared_calls_return_what_programs_return() {
    let registry = registry();
    let shared: Arc<(Differences, AtomicUsize)> = Arc::default();
    let (state, operators) = (shared.clone(), registry.clone());
    each_recorded(&registry, move |case, op, args| {
        let (differences, compared) = &*state;
        let ctx = operators.ctx();
        if op.sees_strides() || op.variant() == Variant::Out {
            return;
        }
        // The values do not depend on the order in which threads take the cases.
        let mut seed = DefaultHasher::new();
        (case, name_of(ctx, op)).hash(&mut seed);
        let mut random = Random::new(seed.finish());
        let variants = [
            args.to_vec(),
            like(&mut random, args, false),
            like(&mut random, args, true),
        ];
        for args in variants {
            // The second call finds what the first one prepared.
            for round in ["first", "second"] {
                let Some(want) = by_program(ctx, op, &args) else { return };
                compared.fetch_add(1, Ordering::Relaxed);
                if let Some(what) = differs(ctx, op, &args, want) {
                    differences.add(&name_of(ctx, op), format!("{round} call in {case}: {what}"));
                }
            }
        }
    });
    let (differences, compared) = &*shared;
    differences.assert_none();
    let compared = compared.load(Ordering::Relaxed);
    assert!(compared >= CALLS, "only {compared} calls were compared");
}

fn differs(
    ctx: &frazil_ir::Context,
    op: &Operator,
    args: &[Value],
    want: Result<Vec<frazil_runtime::Tensor>, String>,
) -> Option<String> {
    match (want, by_call(ctx, op, args)) {
        (Ok(mut want), Ok(got)) => {
            if op.variant() == Variant::InPlace {
                let first = got.first()?;
                want.truncate(1);
                want = want.iter().filter_map(|t| t.to_dtype(first.dtype()).ok()).collect();
            }
            let within = if sums(ctx, op, args) {
                Within::Units(UNITS_OF_SUMS)
            } else {
                Within::Bits
            };
            difference(&want, &got, within)
        }
        (Err(_), Err(_)) => None,
        // Writing in place may refuse what the functional form returns.
        (Ok(_), Err(_)) if op.variant() == Variant::InPlace => None,
        (Ok(_), Err(e)) => Some(format!("it raises {e}")),
        (Err(e), Ok(_)) => Some(format!("the program raises {e}")),
    }
}
