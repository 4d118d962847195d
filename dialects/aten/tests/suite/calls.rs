//! Operator calls of the recorded samples, operators inside composites included.

use frazil_ir::{Context, TypeId};
use frazil_recorded::case::{self, Case};
use frazil_recorded::value::value_from_json;
use frazil_recorded::workspace;
use frazil_runtime::call::{args_of, invoke};
use frazil_runtime::eval::eval_program;
use frazil_runtime::interp::{Interpreter, Observer};
use frazil_runtime::op::Operator;
use frazil_runtime::structured::{Combine, Step};
use frazil_runtime::value::Value;
use frazil_runtime::{OpError, Registry, Tensor};
use frazil_torchscript::{LoadOptions, load};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::random::copied;

/// The operators of both dialects.
pub fn registry() -> Arc<Registry> {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    Arc::new(registry)
}

thread_local! {
    /// The case that a thread runs.
    static RUNNING: RefCell<String> = const { RefCell::new(String::new()) };
}

struct Visitor<F>(F);

impl<F: Fn(&str, &Operator, &[Value]) + Send + Sync> Observer for Visitor<F> {
    fn operator(&self, operator: &Operator, arguments: &[Value]) {
        RUNNING.with_borrow(|case| (self.0)(case, operator, arguments));
    }
}

/// Runs the recorded samples of operators in the interpreter, those of the large corpus too where there is one, and calls `visit` with the case, the
/// operator and its arguments before each call of an operator. Returns the number of calls of cases.
pub fn each_recorded(
    registry: &Arc<Registry>,
    visit: impl Fn(&str, &Operator, &[Value]) + Send + Sync + 'static,
) -> usize {
    let mut folders = vec![workspace::fixtures().join("operators")];
    folders.extend(workspace::corpus().map(|corpus| corpus.join("ops")));
    let cases: Vec<Case> = folders
        .iter()
        .flat_map(|folder| case::operators(folder).expect("the cases can be read"))
        .collect();
    let visitor = Arc::new(Visitor(visit));
    let next = Mutex::new(cases.iter());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let ran = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut file = (PathBuf::new(), Default::default());
                loop {
                    let Some(case) = next.lock().expect("no panic holds the lock").next() else {
                        break;
                    };
                    if file.0 != case.folder {
                        file = (case.folder.clone(), case.tensors().expect("the tensors can be read"));
                    }
                    RUNNING.set(case.name.clone());
                    let calls = run(registry, case, &file.1, visitor.clone());
                    *ran.lock().expect("no panic holds the lock") += calls;
                }
            });
        }
    });
    ran.into_inner().expect("no panic holds the lock")
}

/// Makes the calls of a case. What they return is compared by other tests.
fn run(
    registry: &Arc<Registry>,
    case: &Case,
    tensors: &frazil_recorded::tensors::Tensors,
    observer: Arc<dyn Observer>,
) -> usize {
    let Ok(module) = load(&case.model, &LoadOptions::new(registry.ctx(), registry.catalogue())) else {
        return 0;
    };
    let Ok(interpreter) = Interpreter::with_module(registry.clone(), Arc::new(module)) else {
        return 0;
    };
    let interpreter = interpreter.with_observer(observer);
    let own = case.json["method"].as_str().unwrap_or("forward");
    let calls = case.json["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    for call in calls {
        let args = call["args"].as_array().into_iter().flatten();
        let args: Result<Vec<Value>, _> = args.map(|json| value_from_json(json, tensors)).collect();
        let method = call["method"].as_str().unwrap_or(own);
        // Calls that raise are recorded too.
        let _ = interpreter.call(method, &args.expect("recorded arguments can be read"));
    }
    calls.len()
}

/// The results of `op`'s program in the plain evaluator; `None` for an operator without a program, and where the entry refuses the arguments.
pub fn by_program(ctx: &Context, op: &Operator, args: &[Value]) -> Option<Result<Vec<Tensor>, String>> {
    let args: Vec<Value> = args.iter().map(copied).collect();
    let (arguments, cells) = args_of(ctx, op.schema(), &args);
    let program = op.program(&arguments).ok()??;
    let tensors: Vec<Tensor> = cells.iter().map(|c| c.get()).collect();
    Some(eval_program(&program, &tensors).map_err(|e| e.to_string()))
}

/// True when the program of a call adds numbers of floating point up.
pub fn sums(ctx: &Context, op: &Operator, args: &[Value]) -> bool {
    let (arguments, _) = args_of(ctx, op.schema(), args);
    let program = op.program(&arguments).ok().flatten();
    program.is_some_and(|program| {
        program.steps.iter().any(|step| match step {
            Step::Compute(s) => s.combine == Some(Combine::Add) && s.accumulate.is_floating_point(),
            Step::View(_) | Step::Gather(_) => false,
        })
    })
}

/// The results of `op` as the interpreter computes them, on copies of the arguments.
pub fn by_call(ctx: &Context, op: &Operator, args: &[Value]) -> Result<Vec<Tensor>, OpError> {
    let args: Vec<Value> = args.iter().map(copied).collect();
    let types: Vec<TypeId> = op.schema().returns.iter().map(|r| r.ty).collect();
    Ok(tensors_in(&invoke(ctx, op, &args, &types, &[])?))
}

/// The tensors in values, in order.
pub fn tensors_in(values: &[Value]) -> Vec<Tensor> {
    let mut found = Vec::new();
    let mut pending: Vec<Value> = values.iter().rev().cloned().collect();
    while let Some(value) = pending.pop() {
        match &value {
            Value::Tensor(cell) => found.push(cell.get()),
            Value::List(_) | Value::Tuple(_) => pending.extend(value.items().unwrap_or_default().into_iter().rev()),
            _ => {}
        }
    }
    found
}

/// The operator's name with its overload.
pub fn name_of(ctx: &Context, op: &Operator) -> String {
    op.schema().full_name(ctx)
}

/// What differed, by operator: the number of calls, and the first of them.
#[derive(Default)]
pub struct Differences(Mutex<std::collections::BTreeMap<String, (usize, String)>>);

impl Differences {
    /// Notes a difference.
    pub fn add(&self, operator: &str, what: String) {
        let mut all = self.0.lock().expect("no panic holds the lock");
        all.entry(operator.to_owned()).or_insert((0, what)).0 += 1;
    }

    /// Fails the test when there is one.
    pub fn assert_none(&self) {
        let all = self.0.lock().expect("no panic holds the lock");
        let lines: Vec<String> = all
            .iter()
            .map(|(op, (n, what))| format!("{op}: {n} calls, such as {what}"))
            .collect();
        assert!(
            lines.is_empty(),
            "{} operators differ:\n{}",
            lines.len(),
            lines.join("\n")
        );
    }
}
