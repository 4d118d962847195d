//! Operators on numbers, strings and containers against what PyTorch computed, raised and changed.
//!
//! `host_operators.jsonl` is made by `tests/generate/fixtures/make_host_cases.py`, which says what its lines are.

#![allow(clippy::panic, reason = "helpers of tests fail loudly")]

use frazil_ir::schema::parse_schema;
use frazil_ir::{Context, TypeId};
use frazil_recorded::compare::{self, Tolerance};
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::value_from_json;
use frazil_runtime::call::invoke;
use frazil_runtime::registry::Lookup;
use frazil_runtime::{OpError, Registry, Value};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// Texts of PyTorch's own failures, which are no part of the language.
const ACCIDENTS: &[&str] = &[
    "INTERNAL ASSERT",
    "basic_string",
    "cannot be converted",
    "vector::",
    "sto",
    "Invalid number of inputs",
    "required keyword attribute",
];

/// Differences on purpose: operators, and why.
const MEANT: &[(&str, &str)] = &[
    ("aten::Complex", "PyTorch cuts integers to 32 bits"),
    ("aten::divmod.float_int", "PyTorch computes with 32 bits"),
    ("aten::divmod.int_float", "PyTorch computes with 32 bits"),
    (
        "aten::isidentifier",
        "PyTorch takes names with digits and underscores for none",
    ),
    ("aten::Float.str", "PyTorch reads hexadecimal numbers, Python does not"),
    ("aten::sort.float", "where NaN comes to lie when the order is reversed"),
    ("aten::device", "texts of the errors"),
];

fn main_registry() -> Registry {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    registry
}

fn type_of(ctx: &Context, text: &str) -> TypeId {
    let schema = parse_schema(ctx, &format!("a::b({text} x) -> ()")).expect("a type");
    schema.arguments[0].ty
}

/// The mathematical library is not PyTorch's: some units in the last place may differ.
const TOLERANCE: Tolerance = Tolerance::new(1e-13, 0.0);

/// Recorded values; their tensors are in line.
fn values(json: &Json) -> Vec<Value> {
    let items = json.as_array().expect("a list of values").iter();
    items
        .map(|item| value_from_json(item, &Tensors::default()).expect("a value"))
        .collect()
}

/// The first difference between two lists of values.
fn first_difference(got: &[Value], want: &[Value]) -> Option<String> {
    if got.len() != want.len() {
        return Some(format!("{} values instead of {}", got.len(), want.len()));
    }
    let mut pairs = want.iter().zip(got);
    pairs.find_map(|(want, got)| compare::values(want, got, TOLERANCE).err().map(|e| e.to_string()))
}

/// What is wrong with our outcome, if anything.
fn difference(got: Result<Vec<Value>, OpError>, args: &[Value], want: &Json) -> Option<String> {
    match (got, want) {
        (Err(e), _) if e.is_unsupported() => Some(format!("unsupported: {e}")),
        (Err(e), Json::String(text)) => {
            let text = text.trim();
            let accident = ACCIDENTS.iter().any(|a| text.contains(a)) || text.is_empty();
            let said = e.to_string();
            (!accident && !said.contains(text)).then(|| format!("raised '{said}' instead of '{text}'"))
        }
        (Err(e), _) => Some(format!("raised '{e}' instead of giving {want}")),
        (Ok(_), Json::String(text)) if ACCIDENTS.iter().any(|a| text.contains(a)) => None,
        (Ok(got), Json::String(text)) => Some(format!("gave {got:?} instead of raising '{text}'")),
        (Ok(got), want) => {
            if let Some(difference) = first_difference(&got, &values(&want[0])) {
                return Some(format!("gave {got:?}: {difference}"));
            }
            let after = want.get(1)?;
            first_difference(args, &values(after)).map(|difference| format!("left {args:?}: {difference}"))
        }
    }
}

#[test]
fn host_operators_do_what_pytorch_does() {
    let registry = main_registry();
    let ctx = registry.ctx().clone();
    let mut failures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut cases = 0;
    for line in include_str!("host_operators.jsonl").lines() {
        let group: Json = serde_json::from_str(line).expect("a line of JSON");
        let op = group["op"].as_str().expect("an operator");
        let start = op.find("::").expect("a namespace") + 2;
        let name = ctx.symbol(&op[..op[start..].find('.').map_or(op.len(), |i| start + i)]);
        let arg_types: Vec<TypeId> = group["types"]
            .as_array()
            .expect("types")
            .iter()
            .map(|t| type_of(&ctx, t.as_str().expect("a type")))
            .collect();
        let key = format!("{op}{}", group["types"]);
        let operator = match registry.lookup_types(name, &arg_types) {
            Lookup::Found(found) => found,
            Lookup::NoSemantics(schema) => {
                failures
                    .entry(key)
                    .or_default()
                    .push(format!("no semantics for {}", schema.full_name(&ctx)));
                continue;
            }
            Lookup::NoOverload | Lookup::Unknown => {
                failures.entry(key).or_default().push("no such overload".to_string());
                continue;
            }
        };
        let outputs: Vec<TypeId> = operator.schema().returns.iter().map(|r| r.ty).collect();
        for case in group["cases"].as_array().expect("cases") {
            cases += 1;
            let args = values(&case[0]);
            let shown = format!("{args:?}");
            let got = invoke(&ctx, &operator, &args, &outputs, &[]).map(|r| r.to_vec());
            let meant = MEANT
                .iter()
                .any(|(name, _)| op == *name || op.starts_with(&format!("{name}.")));
            if meant {
                continue;
            }
            if let Some(why) = difference(got, &args, &case[1]) {
                failures.entry(key.clone()).or_default().push(format!("{shown}: {why}"));
            }
        }
    }
    let mut report = String::new();
    for (op, why) in &failures {
        let _ = writeln!(report, "{op}: {} cases", why.len());
        for line in why.iter().take(3) {
            let _ = writeln!(report, "    {line}");
        }
    }
    assert!(cases > 5000, "only {cases} cases");
    assert!(
        failures.is_empty(),
        "{} of {cases} cases differ:\n{report}",
        failures.values().map(Vec::len).sum::<usize>()
    );
}

/// Entries are found by name; a misspelt one would never be used.
#[test]
fn every_entry_has_a_schema() {
    let registry = main_registry();
    let known = |name: &str| {
        let start = name.find("::").map_or(0, |i| i + 2);
        let (operator, overload) = match name[start..].split_once('.') {
            Some((base, overload)) => (&name[..start + base.len()], Some(overload)),
            None => (name, None),
        };
        let Some(symbol) = registry.ctx().find_symbol(operator) else {
            return false;
        };
        match overload {
            Some(overload) => registry.catalogue().get(symbol, overload).is_some(),
            None => registry.catalogue().contains(symbol),
        }
    };
    let names = registry.entries().map(|(n, _)| n).chain(registry.host_operators());
    let unknown: Vec<&str> = names.filter(|n| !known(n)).collect();
    assert!(unknown.is_empty(), "no schema for {unknown:?}");
}
