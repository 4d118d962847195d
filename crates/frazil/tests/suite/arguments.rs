//! Checks the conversion of arguments, and the hooks of calls, against recordings of PyTorch in tests/fixtures/calls.

use frazil::{CallError, Engine, EngineKind, EngineOptions, Model, Session, Value};
use frazil_recorded::compare::{self, Tolerance};
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::value_from_json;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const KINDS: [EngineKind; 2] = [EngineKind::Interpreter, EngineKind::Native];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/calls")
        .join(name)
}

fn recorded(name: &str) -> Vec<Json> {
    serde_json::from_str(&std::fs::read_to_string(fixture(name)).unwrap()).unwrap()
}

fn engine(model: &Model, kind: EngineKind) -> Engine {
    let all = model.root().method_names();
    let options = EngineOptions::default()
        .kind(kind)
        .methods(all.iter().map(|name| (*name).to_owned()).collect());
    model.engine(&options).unwrap()
}

/// Returns a recorded value; its tensors are inline.
fn from_json(json: &Json) -> Value {
    value_from_json(json, &Tensors::default()).unwrap()
}

fn same(got: &Value, recorded: &Json) -> bool {
    compare::values(&from_json(recorded), got, Tolerance::new(1e-5, 1e-5)).is_ok()
}

/// Makes a recorded call of a method or of the module. Returns the difference from PyTorch's result.
fn difference(engine: &mut Engine, call: &Json) -> Option<String> {
    let args: Vec<Value> = call["args"].as_array().unwrap().iter().map(from_json).collect();
    let named = call.get("kwargs").and_then(Json::as_object).into_iter().flatten();
    let named: Vec<(&str, Value)> = named.map(|(name, value)| (name.as_str(), from_json(value))).collect();
    let result = match call.get("method") {
        Some(method) => engine.call_with(method.as_str().unwrap(), &args, &named),
        None => engine.call_module_with(&args, &named),
    };
    match (result, call.get("raises").and_then(Json::as_str)) {
        (Ok(value), None) if same(&value, &call["result"]) => None,
        (Err(CallError::Raised(text)), Some(raises)) if text == format!("RuntimeError: {raises}") => None,
        (result, _) => Some(format!("{call}\n  gives {result:?}")),
    }
}

#[test]
fn arguments_are_those_of_the_signature() {
    let session = Session::new();
    let models = BTreeMap::from([
        ("source", session.load(fixture("arguments.py")).unwrap()),
        ("archive", session.load(fixture("arguments.pt")).unwrap()),
    ]);
    calls_agree(&models, &recorded("arguments.json"));
}

#[test]
fn messages_write_types_defaults_and_values_as_pytorch_does() {
    let session = Session::new();
    let frazil::Loaded::Graphs(function) = session.load_any(&fixture("function.py")).unwrap() else {
        panic!("functions are no module");
    };
    let models = BTreeMap::from([
        ("declarations", session.load(fixture("declarations.py")).unwrap()),
        ("function", function.to_model()),
    ]);
    calls_agree(&models, &recorded("declarations.json"));
}

fn calls_agree(models: &BTreeMap<&str, Model>, calls: &[Json]) {
    for kind in KINDS {
        let mut engines: BTreeMap<&str, Engine> = models.iter().map(|(&of, model)| (of, engine(model, kind))).collect();
        let wrong: Vec<String> = calls
            .iter()
            .filter_map(|call| difference(engines.get_mut(call["of"].as_str().unwrap()).unwrap(), call))
            .collect();
        assert!(
            wrong.is_empty(),
            "{kind:?}: {} of {} calls\n{}",
            wrong.len(),
            calls.len(),
            wrong.join("\n")
        );
    }
}

#[test]
fn hooks_have_the_signatures_and_names_that_pytorch_asks_for() {
    let mut wrong = Vec::new();
    for case in recorded("hook_signatures.json") {
        let source = case["source"].as_str().unwrap();
        let loaded = Session::new().script(Path::new("hooked.py"), source, &[]);
        let right = match (&loaded, case.get("error").and_then(Json::as_str)) {
            (Ok(_), None) => true,
            (Err(error), Some(text)) => error.to_string().contains(text),
            _ => false,
        };
        if !right {
            wrong.push(format!("{case:#}\n  gives {:?}", loaded.err().map(|e| e.to_string())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn hooks_run_where_the_module_is_called() {
    for kind in KINDS {
        let mut engines = BTreeMap::new();
        let mut wrong = Vec::new();
        for call in recorded("hooks.json") {
            let archive = call["archive"].as_str().unwrap().to_owned();
            let engine = engines.entry(archive).or_insert_with_key(|archive| {
                let model = Session::new().load(fixture(&format!("hooks_{archive}.pt"))).unwrap();
                engine(&model, kind)
            });
            wrong.extend(difference(engine, &call));
        }
        assert!(wrong.is_empty(), "{kind:?}\n{}", wrong.join("\n"));
    }
}

/// PyTorch drops the hooks of the outermost module on freezing; here a call returns the same result before and after.
#[test]
fn hooks_run_where_a_frozen_module_is_called() {
    let calls = recorded("hooks.json");
    for (archive, kind) in ["net", "scaled", "after", "number"]
        .iter()
        .flat_map(|a| KINDS.map(|k| (a, k)))
    {
        let model = Session::new().load(fixture(&format!("hooks_{archive}.pt"))).unwrap();
        let frozen = model.freeze(&frazil::FreezeOptions::default()).unwrap();
        let mut engine = engine(&frozen, kind);
        let of_module = calls
            .iter()
            .filter(|c| c["archive"] == **archive && c.get("method").is_none() && c.get("result").is_some());
        let wrong: Vec<String> = of_module.filter_map(|call| difference(&mut engine, call)).collect();
        assert!(wrong.is_empty(), "{kind:?}\n{}", wrong.join("\n"));
    }
}

/// Stored code is found before the archive is read: with hooks, the code of `forward` is not that of the module.
#[test]
#[cfg(feature = "codegen")]
fn kept_code_neither_forgets_hooks_nor_takes_other_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let calls = recorded("hooks.json");
    let others = recorded("arguments.json");
    // No code is stored for files that were changed just now.
    let copy = |name: &str| {
        let path = folder.path().join(name);
        std::fs::copy(fixture(name), &path).unwrap();
        path
    };
    let paths = [copy("hooks_scaled.pt"), copy("arguments.pt")];
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let options = ["forward", "li"].map(|method| {
        EngineOptions::default()
            .cache_dir(Some(folder.path().join("cache")))
            .methods(vec![method.to_owned()])
    });
    let scaled: Vec<&Json> = calls.iter().filter(|c| c["archive"] == "scaled").collect();
    let lists: Vec<&Json> = others.iter().filter(|c| c["method"] == "li").collect();
    for _ in 0..2 {
        // A new engine for each call, so that none has read the archive for a previous one.
        for call in scaled.iter().rev() {
            let mut engine = Session::new().engine(&paths[0], &options[0]).unwrap();
            assert_eq!(difference(&mut engine, call), None);
        }
        for call in lists
            .iter()
            .filter(|c| c["of"] == "source" || c.get("result").is_some())
        {
            let mut engine = Session::new().engine(&paths[1], &options[1]).unwrap();
            assert_eq!(difference(&mut engine, call), None);
        }
    }
}
