//! Operators on numbers, strings and containers against what PyTorch computed, raised and changed.
//!
//! `host_operators.jsonl` is made by `tools/fixtures/make_host_cases.py`, which says what its lines are.

#![allow(clippy::panic, reason = "helpers of tests fail loudly")]

use frazil_ir::schema::parse_schema;
use frazil_ir::{Context, Device, TypeId, TypeKind, types};
use frazil_runtime::call::invoke;
use frazil_runtime::registry::Lookup;
use frazil_runtime::value::{DictValue, Key, ListValue};
use frazil_runtime::{OpError, Registry, Value};
use indexmap::IndexMap;
use num_complex::Complex64;
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

fn float(json: &Json) -> f64 {
    match json.get("f").and_then(Json::as_str) {
        Some(text) => text.parse().expect("a float"),
        None => json.as_f64().expect("a float"),
    }
}

/// The value that `json` writes, as one of type `ty` where its own kind leaves that open.
fn value(ctx: &Context, json: &Json, ty: TypeId) -> Value {
    let ty = match ctx.type_kind(ty) {
        TypeKind::Optional(e) => e,
        _ => ty,
    };
    match json {
        Json::Null => Value::None,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) if n.is_f64() => Value::Float(float(json)),
        Json::Number(n) => Value::Int(n.as_i64().expect("an integer")),
        Json::String(s) => Value::str(s),
        Json::Array(items) => {
            let element = match ctx.type_kind(ty) {
                TypeKind::List(e) => e,
                _ => types::ANY,
            };
            let items = items.iter().map(|i| value(ctx, i, element)).collect();
            Value::List(ListValue::new(element, items))
        }
        Json::Object(o) => {
            let (kind, inner) = o.iter().next().expect("a kind");
            match kind.as_str() {
                "f" => Value::Float(float(json)),
                "c" => Value::Complex(Complex64::new(float(&inner[0]), float(&inner[1]))),
                "device" => Value::Device(Device::parse(inner.as_str().expect("text")).expect("a device")),
                "t" => {
                    let elements = match ctx.type_kind(ty) {
                        TypeKind::Tuple(list) => ctx.types(list).to_vec(),
                        _ => Vec::new(),
                    };
                    let of = |i: usize| elements.get(i).copied().unwrap_or(types::ANY);
                    let items = inner.as_array().expect("elements");
                    Value::tuple(items.iter().enumerate().map(|(i, v)| value(ctx, v, of(i))).collect())
                }
                "d" => {
                    let (k, v) = match ctx.type_kind(ty) {
                        TypeKind::Dict(k, v) => (k, v),
                        _ => (types::ANY, types::ANY),
                    };
                    let pairs = inner.as_array().expect("pairs").iter();
                    let entries: IndexMap<Key, Value> = pairs
                        .map(|p| (Key(value(ctx, &p[0], k)), value(ctx, &p[1], v)))
                        .collect();
                    Value::Dict(DictValue::new(k, v, entries))
                }
                other => panic!("unknown kind {other}"),
            }
        }
    }
}

fn same_float(got: f64, want: f64) -> bool {
    // The mathematical library is not PyTorch's: some units in the last place may differ.
    let close = (got - want).abs() <= 1e-13 * want.abs();
    close || got == want || (got.is_nan() && want.is_nan())
}

fn same(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Float(a), Value::Float(b)) => same_float(*a, *b),
        (Value::Complex(a), Value::Complex(b)) => {
            let scale = 1e-14 * b.norm();
            let near = |x: f64, y: f64| same_float(x, y) || (x - y).abs() <= scale;
            near(a.re, b.re) && near(a.im, b.im)
        }
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::None, Value::None) => true,
        (Value::Device(a), Value::Device(b)) => a == b,
        (Value::List(_), Value::List(_)) | (Value::Tuple(_), Value::Tuple(_)) => {
            let (a, b) = (got.items().unwrap_or_default(), want.items().unwrap_or_default());
            a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| same(x, y))
        }
        (Value::Dict(a), Value::Dict(b)) => {
            let entries =
                |d: &DictValue| d.with(|e| e.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect::<Vec<_>>());
            let (a, b) = (entries(a), entries(b));
            a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| same(&x.0, &y.0) && same(&x.1, &y.1))
        }
        _ => false,
    }
}

/// What is wrong with our outcome, if anything.
fn difference(
    ctx: &Context,
    got: Result<Vec<Value>, OpError>,
    args: &[Value],
    arg_types: &[TypeId],
    want: &Json,
) -> Option<String> {
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
            let wanted: Vec<Value> = want[0].as_array()?.iter().map(|v| value(ctx, v, types::ANY)).collect();
            if got.len() != wanted.len() || !got.iter().zip(&wanted).all(|(a, b)| same(a, b)) {
                return Some(format!("gave {got:?} instead of {wanted:?}"));
            }
            let after = want.get(1).and_then(Json::as_array)?;
            let after: Vec<Value> = after.iter().zip(arg_types).map(|(v, &t)| value(ctx, v, t)).collect();
            let unchanged = args.iter().zip(&after).all(|(a, b)| same(a, b));
            (!unchanged).then(|| format!("left {args:?} instead of {after:?}"))
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
            let json = case[0].as_array().expect("arguments");
            let args: Vec<Value> = json.iter().zip(&arg_types).map(|(a, &t)| value(&ctx, a, t)).collect();
            let shown = format!("{args:?}");
            let got = invoke(&ctx, &operator, &args, &outputs, &[]).map(|r| r.to_vec());
            let meant = MEANT
                .iter()
                .any(|(name, _)| op == *name || op.starts_with(&format!("{name}.")));
            if meant {
                continue;
            }
            if let Some(why) = difference(&ctx, got, &args, &arg_types, &case[1]) {
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
