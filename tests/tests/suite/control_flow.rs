//! Each kind of node that the interpreter runs itself, and each structural operator on containers, in the interpreter and natively, with values that
//! are known at compile time and with values that are only known at run time.
//!
//! The kinds come from the planner of the walker and from the registry: one without a case here fails the test.

mod cases;

use cases::CASES;
use frazil::ir::{AttributeValue, Graph};
use frazil::runtime::interp::Interpreter;
use frazil::{CallError, EngineKind, EngineOptions, Loaded, Model, Session, Tensor, Value};
use frazil_recorded::compare::{self, Tolerance};
use frazil_recorded::value::Outcome;
use frazil_recorded::workspace::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Kinds that do not occur in graphs of source functions, and the test that runs them.
const MADE_BY_PASSES: &[(&str, &str)] = &[
    (
        "prim::TensorExprGroup",
        "the native engine makes them of what it compiles in methods that it does not compile as a whole; crates/frazil/tests/suite/segments.rs",
    ),
    (
        "prim::FunctionalGraph",
        "create-functional-graphs makes them; passes/tests/suite/properties.rs runs them in the interpreter",
    ),
    (
        "prim::ModuleContainerIndex",
        "modules alone have such nodes; forms/interface_module_list of tests/fixtures/language runs one on both engines",
    ),
    ("prim::EnumValue.int", "one kind with its other overloads"),
    ("prim::EnumValue.float", "one kind with its other overloads"),
    ("prim::EnumValue.str", "one kind with its other overloads"),
];

/// Conditions and integers that are known when code is made, and such that are read from tensors.
const KNOWN: [(&str, &str); 2] = [("(n > 1)", "n"), ("bool((x > 0).any())", "int((x > 0).sum().item())")];

fn model(source: &str) -> Model {
    let file = if source.starts_with("graph(") {
        "case.ir"
    } else {
        "case.py"
    };
    let loaded = Session::new().load_bytes(Path::new(file), source.as_bytes().to_vec());
    let mut model = match loaded {
        Ok(Loaded::Model(model)) => model,
        Ok(graphs) if file == "case.ir" => graphs.to_model("forward").expect("there is one graph"),
        Ok(Loaded::Graphs(graphs)) => graphs.to_model(),
        Err(e) => panic!("{e}\n{source}"),
    };
    model.eval();
    model
}

fn arguments(positive: usize, n: i64) -> Vec<Value> {
    let x: Vec<f32> = (0..3)
        .map(|i| if i < positive { 0.3 + i as f32 } else { -1.7 })
        .collect();
    vec![
        Tensor::from_f32(&x, &[3]).expect("three elements").into(),
        Value::Int(n),
    ]
}

/// Collects the kinds of nodes in a graph, in its blocks and in the graphs of its forks.
fn kinds_of(graph: &Graph, found: &mut BTreeSet<String>) {
    for node in graph.all_nodes() {
        found.insert(graph.kind_name(node).to_owned());
        for attribute in graph.attributes(node) {
            if let AttributeValue::Graph(inner) = &attribute.value {
                kinds_of(inner, found);
            }
        }
    }
}

/// Runs a case in every way on several arguments, twice each, on instances with state. Adds errors to `wrong`.
fn run(name: &str, source: &str, found: &mut BTreeSet<String>, wrong: &mut Vec<String>) {
    let model = model(source);
    let module = model.module().clone();
    for (_, function) in module.unit.functions() {
        kinds_of(&function.graph, found);
    }
    let method = if source.contains("def f(") { "f" } else { "forward" };
    let plain = Interpreter::with_module(model.session().registry().clone(), module).expect("an instance");
    let mut engines = [EngineKind::Interpreter, EngineKind::Native].map(|kind| {
        let options = EngineOptions::default().kind(kind).methods(vec![method.to_owned()]);
        model.engine(&options).unwrap_or_else(|e| panic!("{name}: {e}"))
    });
    for (positive, n) in [(0, 0), (0, 3), (2, 1), (3, 2), (0, 0), (3, 2)] {
        let args = arguments(positive, n);
        let want = match plain.call(method, &args) {
            Ok(value) => Outcome::Value(value),
            Err(e) => Outcome::Raises {
                text: e.to_string(),
                user: true,
            },
        };
        for (engine, what) in engines.iter_mut().zip(["interpreter", "native"]) {
            let given = arguments(positive, n);
            let got = match engine.call(method, &given) {
                Ok(value) => Outcome::Value(value),
                Err(CallError::Raised(text)) => Outcome::Raises { text, user: true },
                Err(CallError::Failed(e)) => {
                    wrong.push(format!("{name}, {what}, {positive} positive, n = {n}: {e}"));
                    continue;
                }
            };
            let differs = same(&want, &got).or_else(|| {
                let (want, got) = (Outcome::Value(args[0].clone()), Outcome::Value(given[0].clone()));
                same(&want, &got).map(|what| format!("the argument after the call: {what}"))
            });
            if let Some(how) = differs {
                wrong.push(format!("{name}, {what} engine, {positive} positive, n = {n}: {how}"));
            }
        }
    }
    let notes = engines[1].notes();
    let interpreted = notes.iter().any(|note| note.contains("interpreter"));
    let case = name.split(',').next().unwrap_or_default();
    if interpreted != INTERPRETED.iter().any(|(listed, _)| *listed == case) {
        wrong.push(format!("{name}: the notes of the native engine are {notes:?}"));
    }
}

/// Cases whose method is not compiled as a whole, with the reason. All others are.
const INTERPRETED: &[(&str, &str)] = &[
    ("print", "compiled code prints nothing"),
    ("views_of_negatives", "programs do not say how the negatives are viewed"),
];

fn same(want: &Outcome, got: &Outcome) -> Option<String> {
    if let (Outcome::Raises { text: want, .. }, Outcome::Raises { text: got, .. }) = (want, got) {
        // The same message at the end, with any prefix.
        let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
        return (last(want) != last(got)).then(|| format!("{got:?} instead of {want:?}"));
    }
    compare::outcomes(want, got, Tolerance::EXACT)
        .err()
        .map(|e| e.to_string())
}

/// An exception of `__exit__` does not replace the one of the block, as in PyTorch; `__exit__` is called once.
#[test]
fn the_exception_of_a_block_is_raised() {
    let source = "
class Scope:
    def __init__(self, x: Tensor, fails: bool):
        self.x = x
        self.fails = fails
    def __enter__(self):
        return self.x
    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.x.add_(1)
        if self.fails:
            raise ValueError('at the end')

def f(x, n: int):
    with Scope(x, n > 0):
        with Scope(x, n > 1):
            if n < 3:
                raise ValueError('in the block')
    return x
";
    let model = model(source);
    for kind in [EngineKind::Interpreter, EngineKind::Native] {
        let options = EngineOptions::default().kind(kind).methods(vec!["f".to_owned()]);
        let mut engine = model.engine(&options).expect("an engine");
        for (n, last, exits) in [
            (0, "ValueError: in the block", 2.0),
            (1, "ValueError: in the block", 2.0),
            (2, "ValueError: in the block", 2.0),
            (3, "ValueError: at the end", 2.0),
        ] {
            let x = Tensor::from_f32(&[0.0], &[1]).expect("one element");
            let error = engine
                .call("f", &[x.clone().into(), Value::Int(n)])
                .expect_err("it raises");
            let text = error.to_string();
            assert!(
                text.lines().any(|line| line.contains(last)),
                "{kind:?}, n = {n}: {text}"
            );
            assert_eq!(x.to_f64_vec(), [exits], "{kind:?}, n = {n}");
        }
    }
}

#[test]
fn engines_agree_on_each_kind_of_node() {
    let mut wrong = Vec::new();
    let mut found = BTreeSet::new();
    for (name, source) in CASES {
        for (how, (condition, number)) in ["known", "unknown"].iter().zip(KNOWN) {
            run(
                &format!("{name}, {how}"),
                &replaced(source, condition, number),
                &mut found,
                &mut wrong,
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let session = Session::new();
    let structural = session
        .registry()
        .entries()
        .filter(|(_, entry)| entry.semantics().is_some())
        .map(|(name, _)| name.to_owned())
        .filter(|name| {
            let own = name.strip_prefix("prim::").unwrap_or_default();
            own.starts_with(|c: char| c.is_ascii_uppercase()) || own.starts_with("unchecked")
        });
    let by_passes: BTreeMap<&str, &str> = MADE_BY_PASSES.iter().copied().collect();
    let missing: Vec<String> = planned_kinds()
        .into_iter()
        .chain(structural)
        .filter(|kind| !found.contains(kind) && !by_passes.contains_key(kind.as_str()))
        .collect();
    assert!(missing.is_empty(), "no case has a node of these kinds: {missing:?}");
    let stale: Vec<&&str> = by_passes.keys().filter(|k| found.contains(**k)).collect();
    assert!(stale.is_empty(), "listed as without a case, and have one: {stale:?}");
}

/// Returns the source with the words `C` and `N` replaced.
fn replaced(source: &str, condition: &str, number: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in source.chars().chain(['\0']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        out.push_str(match word.as_str() {
            "C" => condition,
            "N" => number,
            other => other,
        });
        word.clear();
        out.push(c);
    }
    out.trim_end_matches('\0').to_owned()
}

/// Returns the kinds of nodes that the interpreter's planner handles by name.
fn planned_kinds() -> BTreeSet<String> {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a source of this repository");
    let symbols = read("crates/ir/src/symbols.rs");
    let names: BTreeMap<&str, &str> = symbols
        .lines()
        .filter_map(|line| line.trim().strip_suffix("\";")?.split_once(" = \""))
        .collect();
    let planner = read("crates/runtime/src/interp/plan.rs");
    let (_, action) = planner.split_once("fn action(").expect("the planner has `action`");
    let (action, _) = action.split_once("\n    fn ").expect("another function follows");
    let symbol = |rest: &str| {
        let end = rest
            .find(|c: char| !c.is_ascii_uppercase() && c != '_')
            .unwrap_or(rest.len());
        names.get(&rest[..end]).map(|name| (*name).to_owned())
    };
    let mut kinds: BTreeSet<String> = action
        .split("symbols::")
        .skip(1)
        .filter(|r| r.starts_with("PRIM_"))
        .filter_map(symbol)
        .collect();
    kinds.extend(
        action
            .split('"')
            .filter(|s| s.starts_with("prim::") && !s.contains(' '))
            .map(str::to_owned),
    );
    assert!(kinds.len() > 15, "{kinds:?}");
    kinds
}
