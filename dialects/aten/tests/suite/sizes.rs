//! Runs without elements against runs with them. Specialisation calls operators on tensors that have sizes, strides and storages only; what it
//! learns so has to hold of every real call.

use frazil_ir::TypeId;
use frazil_runtime::call::{args_of, invoke, result_strides};
use frazil_runtime::layout::contiguous_strides;
use frazil_runtime::op::{Operator, Semantics, Variant};
use frazil_runtime::value::{ListValue, Value};
use frazil_runtime::{Registry, Storage, Tensor};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::calls::{Differences, by_call, each_recorded, name_of, registry, tensors_in};

/// Calls that have to be compared at least, and operators of fixed sizes among them.
const CALLS: usize = 2000;
const FIXED: usize = 25;

#[derive(Default)]
struct State {
    differences: Differences,
    calls: AtomicUsize,
    fixed: Mutex<BTreeSet<String>>,
}

#[test]
fn runs_without_elements_have_the_sizes_of_real_ones() {
    let registry = registry();
    let shared = Arc::new(State::default());
    let (state, operators) = (shared.clone(), registry.clone());
    each_recorded(&registry, move |case, op, args| {
        if op.variant() != Variant::Functional || op.schema().is_mutable() || op.is_random() {
            return;
        }
        if let Some(what) = check(&operators, op, args, &state) {
            state
                .differences
                .add(&name_of(operators.ctx(), op), format!("{case}: {what}"));
        }
    });
    shared.differences.assert_none();
    let calls = shared.calls.load(Ordering::Relaxed);
    assert!(calls >= CALLS, "only {calls} calls were compared");
    let fixed = shared.fixed.lock().expect("no panic holds the lock");
    assert!(
        fixed.len() >= FIXED,
        "only {} operators of fixed sizes: {fixed:?}",
        fixed.len()
    );
}

fn check(registry: &Registry, op: &Operator, args: &[Value], state: &State) -> Option<String> {
    let ctx = registry.ctx();
    let real = by_call(ctx, op, args).ok()?;
    if let Semantics::Pointwise(_) | Semantics::Program(..) = op.semantics() {
        let (arguments, cells) = args_of(ctx, op.schema(), args);
        let Ok(Some(program)) = op.program(&arguments) else {
            return None;
        };
        state.calls.fetch_add(1, Ordering::Relaxed);
        let all = program.shapes();
        let shapes: Vec<_> = program.outputs.iter().map(|&id| all.get(id.index())).collect();
        let operands: Vec<Tensor> = cells.iter().map(|c| c.get()).collect();
        let told = shapes.into_iter().map(|shape| {
            let shape = shape?;
            Some((
                shape.dtype,
                shape.sizes.to_vec(),
                result_strides(op, &operands, &shape.sizes),
            ))
        });
        let told: Option<Vec<_>> = told.collect();
        let told = told?;
        if told.len() != real.len() {
            return Some(format!("{} results instead of {}", told.len(), real.len()));
        }
        return told.iter().zip(&real).find_map(|((dtype, sizes, strides), real)| {
            let fits = *dtype == real.dtype() && sizes == real.sizes();
            if !fits {
                return Some(format!(
                    "{dtype}{sizes:?} instead of {}{:?}",
                    real.dtype(),
                    real.sizes()
                ));
            }
            let strides = strides.as_ref().filter(|_| !op.sees_strides() && real.numel() > 1)?;
            (strides.as_slice() != real.strides())
                .then(|| format!("strides {strides:?} instead of {:?}", real.strides()))
        });
    }
    let Semantics::Kernel(_) = op.semantics() else {
        return None;
    };
    let stated = stated_strides(op, args, &real);
    let Some((without, storages)) = without_elements(args) else {
        return stated;
    };
    let types: Vec<TypeId> = op.schema().returns.iter().map(|r| r.ty).collect();
    let results = invoke(ctx, op, &without, &types, &[]);
    let touched = storages.iter().fold(false, |any, s| s.take_touched() | any);
    if touched && !op.has_fixed_sizes() {
        // A graph break: native code knows the sizes of the results, and their strides from the entry alone.
        return stated;
    }
    let Ok(results) = results else {
        return stated;
    };
    let results = tensors_in(&results);
    state.calls.fetch_add(1, Ordering::Relaxed);
    if op.has_fixed_sizes() && touched {
        state
            .fixed
            .lock()
            .expect("no panic holds the lock")
            .insert(name_of(ctx, op));
    }
    let shown = |all: &[Tensor]| -> Vec<String> {
        all.iter()
            .map(|t| format!("{}{:?}, strides {:?}", t.dtype(), t.sizes(), t.strides()))
            .collect()
    };
    let (told, real) = (shown(&results), shown(&real));
    (told != real).then(|| format!("{told:?} instead of {real:?}"))
}

/// The first new result whose strides are not those that the operator's entry states.
fn stated_strides(op: &Operator, args: &[Value], real: &[Tensor]) -> Option<String> {
    let operands: Vec<Tensor> = tensors_in(args);
    real.iter().find_map(|t| {
        let is_new = !operands.iter().any(|o| o.shares_storage(t));
        let stated = result_strides(op, &operands, t.sizes()).unwrap_or_else(|| contiguous_strides(t.sizes()));
        (is_new && t.numel() > 1 && stated.as_slice() != t.strides())
            .then(|| format!("strides {:?}, and the entry states {stated:?}", t.strides()))
    })
}

/// The arguments with tensors that have no elements; `None` where no argument is a tensor.
fn without_elements(args: &[Value]) -> Option<(Vec<Value>, Vec<Arc<Storage>>)> {
    let mut storages = Vec::new();
    let without = args.iter().map(|arg| emptied(arg, &mut storages)).collect();
    (!storages.is_empty()).then_some((without, storages))
}

fn emptied(value: &Value, storages: &mut Vec<Arc<Storage>>) -> Value {
    match value {
        Value::Tensor(cell) => {
            let t = cell.get();
            let storage = Storage::unknown(t.storage().len());
            storages.push(storage.clone());
            let like = Tensor::from_storage(storage, t.dtype(), t.sizes(), t.strides(), t.offset());
            like.expect("it fits as the original does").with_marks(t.marks()).into()
        }
        Value::List(list) => {
            let items = list.items().iter().map(|v| emptied(v, storages)).collect();
            Value::List(ListValue::new(list.element, items))
        }
        other => other.clone(),
    }
}
