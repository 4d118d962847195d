//! Submodules: called with their hooks in both engines, frozen and kept, and composed from parts of other models.

use frazil::ir::DType;
use frazil::{
    CallArguments, CallError, Engine, EngineKind, EngineOptions, FreezeOptions, HookOptions, MemberOptions, Model,
    SaveOptions, Session, Tensor, Value,
};
use std::path::{Path, PathBuf};

const KINDS: &[EngineKind] = match cfg!(feature = "codegen") {
    true => &[EngineKind::Interpreter, EngineKind::Native],
    false => &[EngineKind::Interpreter],
};

/// A module with hooks inside that PyTorch saved (tests/torch-pages/programs/objects.py), and the results of its parts for an input of one.
const CALLS: &[(&str, f64)] = &[
    ("", 47.0),
    ("forward", 47.0),
    ("sub", 47.0),
    ("sub.forward", 46.0),
    ("sub.inner", 23.0),
    ("sub.inner.forward", 2.0),
];

fn archive() -> PathBuf {
    let path = "../../tests/torch-pages/archives/objects-submodule_called_with_its_hooks-m.pt";
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn ones(count: i64) -> Value {
    Tensor::full(DType::Float, &[count], 1.0.into()).unwrap().into()
}

fn options(kind: EngineKind, methods: &[&str]) -> EngineOptions {
    EngineOptions::default()
        .kind(kind)
        .methods(methods.iter().map(|&name| name.to_owned()).collect())
}

fn first(result: Result<Value, CallError>) -> f64 {
    result.unwrap().as_tensor().unwrap().to_f64_vec()[0]
}

fn call(engine: &mut Engine, path: &str) -> f64 {
    first(match path {
        "" => engine.call_module(&[ones(1)]),
        path => engine.call(path, &[ones(1)]),
    })
}

fn source(session: &Session, text: &str) -> Model {
    let loaded = session.script(Path::new("net.py"), text, &[]).unwrap();
    loaded.model("used").unwrap().clone()
}

#[test]
fn a_call_of_a_submodule_runs_its_hooks_and_one_of_its_forward_does_not() {
    let model = Session::new().load(archive()).unwrap();
    for &kind in KINDS {
        let all: Vec<&str> = CALLS
            .iter()
            .map(|(path, _)| *path)
            .filter(|path| !path.is_empty())
            .collect();
        let mut engine = model.engine(&options(kind, &all)).unwrap();
        for (path, wanted) in CALLS {
            assert_eq!(call(&mut engine, path), *wanted, "{kind:?} {path}");
        }
        // One path is sufficient for calling the submodule and its method.
        for named in ["sub.inner", "sub.inner.forward"] {
            let mut engine = model.engine(&options(kind, &[named])).unwrap();
            assert_eq!(call(&mut engine, "sub.inner"), 23.0, "{kind:?} {named}");
            assert_eq!(call(&mut engine, "sub.inner.forward"), 2.0, "{kind:?} {named}");
            assert_eq!(call(&mut engine, ""), 47.0, "{kind:?} {named}");
        }
        let missing = engine.call("sub.nothing", &[ones(1)]).unwrap_err().to_string();
        assert!(missing.contains("no method `sub.nothing`"), "{missing}");
    }
}

#[test]
fn hooks_that_source_registers_run_where_the_submodule_is_called() {
    let model = source(
        &Session::new(),
        "
def before(self, args: Tuple[Tensor]) -> Tensor:
    return args[0] * 10

class Sub(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x: Tensor) -> Tensor:
        return self.sub(x)

model = Net()
model.sub.register_forward_pre_hook(before)
",
    );
    assert_eq!(model.root().get_submodule("sub").unwrap().method_names(), ["forward"]);
    for &kind in KINDS {
        let mut engine = model.engine(&options(kind, &["sub", "forward"])).unwrap();
        for (path, wanted) in [("", 11.0), ("sub", 11.0), ("sub.forward", 2.0)] {
            assert_eq!(call(&mut engine, path), wanted, "{kind:?} {path}");
        }
    }
}

#[test]
fn a_submodule_keeps_its_hooks_when_its_forward_is_preserved() {
    let session = Session::new();
    let model = session.load(archive()).unwrap();
    let mut freeze = FreezeOptions::default();
    freeze.freeze.preserve = vec!["sub.inner.forward".to_owned(), "sub.forward".to_owned()];
    let frozen = model.freeze(&freeze).unwrap();
    let saved = frozen.save_bytes(&SaveOptions::default()).unwrap();
    let again = session.load_bytes(Path::new("again.pt"), saved).unwrap();
    for model in [&frozen, again.model("used").unwrap()] {
        for &kind in KINDS {
            let mut engine = model.engine(&options(kind, &["sub", "sub.inner"])).unwrap();
            for (path, wanted) in CALLS {
                assert_eq!(call(&mut engine, path), *wanted, "{kind:?} {path}");
            }
        }
    }
}

#[cfg(feature = "codegen")]
#[test]
fn code_that_is_kept_does_not_forget_hooks() {
    let folder = tempfile::tempdir().unwrap();
    let run = |methods: &[&str], preserve: &[&str], path: &str| {
        let options = options(EngineKind::Native, methods)
            .cache_dir(Some(folder.path().join("cache")))
            .preserve(preserve.iter().map(|&name| name.to_owned()).collect());
        // Warnings about the file itself, which another process would not read.
        let mut engine = Session::new().engine(archive(), &options).unwrap();
        call(&mut engine, path)
    };
    for _ in 0..2 {
        for (path, wanted) in CALLS {
            assert_eq!(run(&["sub", "sub.inner"], &[], path), *wanted, "{path}");
            assert_eq!(run(&["sub.forward", "sub.inner.forward"], &[], path), *wanted, "{path}");
            assert_eq!(run(&["forward"], &["sub"], path), *wanted, "{path}");
        }
    }
}

const NET: &str = "
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((1,), 2.))
    def forward(self, x, k: int = 3):
        return x * self.w * k
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.same = self.sub
    def forward(self, x):
        return self.sub(x) + 1
model = Net()
";

#[test]
fn hooks_of_callers_run_around_the_calls_that_they_make() {
    let model = source(&Session::new(), NET);
    for &kind in KINDS {
        let mut engine = model.engine(&options(kind, &["forward", "sub", "same"])).unwrap();
        let of_sub = HookOptions::default().module("sub".to_owned());
        let before = engine
            .register_forward_pre_hook_with(&of_sub, |call| {
                let kwargs = vec![("k".to_owned(), Value::Int(5))];
                Ok(Some(CallArguments { kwargs, ..call.clone() }))
            })
            .unwrap();
        let doubled = |_: &CallArguments, y: &Value| {
            let y = y.as_tensor().unwrap().to_f64_vec()[0];
            Ok(Some(Tensor::full(DType::Float, &[1], (2.0 * y).into())?.into()))
        };
        let after = engine
            .register_forward_hook_with(&of_sub, move |call, y| doubled(call, y).map_err(CallError::Failed))
            .unwrap();
        // One object under two names.
        for path in ["sub", "same"] {
            assert_eq!(call(&mut engine, path), 20.0, "{kind:?} {path}");
        }
        assert_eq!(call(&mut engine, "sub.forward"), 6.0, "{kind:?}");
        assert_eq!(
            call(&mut engine, ""),
            7.0,
            "{kind:?}: compiled code runs no hooks of callers"
        );
        assert!(engine.remove_hook(before) && !engine.remove_hook(before));
        assert_eq!(call(&mut engine, "sub"), 12.0, "{kind:?}");
        assert!(engine.remove_hook(after));
        assert_eq!(call(&mut engine, "sub"), 6.0, "{kind:?}");
        let nowhere = HookOptions::default().module("head".to_owned());
        assert!(engine.register_forward_hook_with(&nowhere, |_, _| Ok(None)).is_err());
        let always = HookOptions::default().always_call(true);
        assert!(engine.register_forward_pre_hook_with(&always, |_| Ok(None)).is_err());
    }
}

#[test]
fn hooks_with_always_call_see_how_far_the_call_came() {
    use std::sync::{Arc, Mutex};
    let model = source(&Session::new(), NET);
    let mut engine = model.engine(&options(EngineKind::Interpreter, &["forward"])).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let always = HookOptions::default().always_call(true);
    let log = |name: &'static str| {
        let seen = Arc::clone(&seen);
        move |call: &CallArguments, result: &Value| {
            let result = result.as_tensor().map(|t| t.to_f64_vec()[0]);
            seen.lock().unwrap().push((name, call.args.len(), result));
            Ok(None)
        }
    };
    engine.register_forward_hook_with(&always, log("first")).unwrap();
    engine
        .register_forward_hook_with(&HookOptions::default(), |_, _| Err(CallError::Raised("no".to_owned())))
        .unwrap();
    engine
        .register_forward_hook_with(&HookOptions::default(), log("not called"))
        .unwrap();
    engine.register_forward_hook_with(&always, log("last")).unwrap();
    assert!(engine.call_module(&[ones(1)]).is_err());
    assert_eq!(
        std::mem::take(&mut *seen.lock().unwrap()),
        [("first", 1, Some(7.0)), ("last", 1, Some(7.0))]
    );
    // The arguments do not fit: nothing was computed.
    assert!(engine.call_module(&[]).is_err());
    assert_eq!(
        std::mem::take(&mut *seen.lock().unwrap()),
        [("first", 0, None), ("last", 0, None)]
    );
}

#[test]
fn modules_of_one_class_come_to_differ() {
    let session = Session::new();
    let mut model = source(
        &session,
        "
class Act(nn.Module):
    def __init__(self, by: int):
        super().__init__()
        self.by = by
    def forward(self, x):
        return x * self.by
class Block(nn.Module):
    def __init__(self, by: int):
        super().__init__()
        self.act = Act(by)
    def forward(self, x):
        return self.act(x) + 1
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block(2)
        self.b = Block(3)
    def forward(self, x):
        return self.a(x) * 10 + self.b(x) * self.b.act.by
model = Net()
",
    );
    let other = source(
        &session,
        "class Act(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.by = 7\n    def forward(self, x):\n        return x - self.by\nmodel = Act()\n",
    );
    let run = |model: &Model, path: &str| {
        let results: Vec<f64> = KINDS
            .iter()
            .map(|&kind| call(&mut model.engine(&options(kind, &["forward", path])).unwrap(), path))
            .collect();
        assert!(results.iter().all(|r| *r == results[0]), "{results:?}");
        results[0]
    };
    assert_eq!(run(&model, "forward"), 30.0 + 12.0);
    // Another class, which has the members that the code uses.
    model.set_submodule("b.act", &other).unwrap();
    assert_eq!(run(&model, "forward"), 30.0 + (1.0 - 7.0 + 1.0) * 7.0);
    assert_eq!(run(&model, "a"), 3.0);
    // A class without the member, and one with another signature.
    let before = model.root().to_string();
    for text in [
        "class None_(nn.Module):\n    def forward(self, x):\n        return x\nmodel = None_()\n",
        "class Two(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.by = 7\n    def forward(self, x, y):\n        return x\nmodel = Two()\n",
    ] {
        let unfit = source(&session, text);
        assert!(model.set_submodule("b.act", &unfit).is_err());
        assert_eq!(model.root().to_string(), before);
    }
    model
        .submodule_mut("a")
        .unwrap()
        .register_attribute("more", &Value::Int(1))
        .unwrap();
    assert!(model.root().has_attribute("a.more") && !model.root().has_attribute("b.more"));
    let bytes = model.save_bytes(&SaveOptions::default()).unwrap();
    let again = session.load_bytes(Path::new("again.pt"), bytes).unwrap();
    let again = again.model("used").unwrap();
    assert_eq!(run(again, "forward"), 30.0 + (1.0 - 7.0 + 1.0) * 7.0);
    assert_eq!(again.root().to_string(), before);
    // A module cannot contain itself.
    let copy = model.clone();
    assert!(model.set_submodule("a.self", copy.root()).is_err());
    assert!(
        model
            .set_submodule("b.act.up", copy.root().get_submodule("b").unwrap())
            .is_err()
    );
    // A part of another model is copied with its contents, and nothing else.
    let mut holder = source(&session, NET);
    holder
        .add_module("block", copy.root().get_submodule("b").unwrap())
        .unwrap();
    holder
        .define("def with_block(self, x):\n    return self.block(x)\n")
        .unwrap();
    assert_eq!(run(&holder, "with_block"), 1.0 - 7.0 + 1.0);
    let names: Vec<String> = holder
        .root()
        .named_modules()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["", "sub", "block", "block.act"]);
}

#[test]
fn layers_of_other_sizes_replace_one_another() {
    let session = Session::new();
    let layer = |text: &str| source(&session, &format!("model = {text}\n"));
    let mut model = layer("nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))");
    let wide = layer("nn.Linear(3, 5)");
    model.set_submodule("2", &wide).unwrap();
    assert!(matches!(model.root().attribute("2.out_features"), Ok(Value::Int(5))));
    assert!(matches!(model.root().attribute("0.out_features"), Ok(Value::Int(3))));
    let conv = layer("nn.Conv1d(1, 2, 2, stride=2)");
    let mut convs = layer("nn.Sequential(nn.Conv1d(1, 1, 1), nn.Conv1d(1, 1, 1))");
    convs.set_submodule("1", &conv).unwrap();
    let sizes = |model: &Model, input: &[i64]| {
        let x = Tensor::full(DType::Float, input, 1.0.into()).unwrap();
        let mut all = Vec::new();
        for &kind in KINDS {
            let mut engine = model.engine(&options(kind, &["forward"])).unwrap();
            let y = engine.call_module(&[x.clone().into()]).unwrap();
            all.push(y.as_tensor().unwrap().sizes().to_vec());
        }
        all
    };
    assert!(sizes(&model, &[4, 2]).iter().all(|s| s == &[4, 5]));
    assert!(sizes(&convs, &[1, 1, 6]).iter().all(|s| s == &[1, 2, 3]));
    // Also layers of another kind.
    convs.set_submodule("0", &layer("nn.Identity()")).unwrap();
    assert!(sizes(&convs, &[1, 1, 6]).iter().all(|s| s == &[1, 2, 3]));
    assert_eq!(convs.root().get_submodule("0").unwrap().original_name(), "Identity");
}

#[test]
fn members_are_listed_with_the_options_of_pytorch() {
    let model = source(&Session::new(), NET);
    let root = model.root();
    let names = |options: &MemberOptions| -> Vec<String> {
        root.named_parameters(options)
            .unwrap()
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    };
    assert_eq!(names(&MemberOptions::default()), ["sub.w"]);
    let all = MemberOptions::default().remove_duplicate(false);
    assert_eq!(names(&all), ["sub.w", "same.w"]);
    assert_eq!(
        names(&all.clone().prefix("net".to_owned())),
        ["net.sub.w", "net.same.w"]
    );
    assert!(names(&MemberOptions::own()).is_empty());
    let memo = [root.get_submodule("sub").unwrap().id()].into();
    let without = MemberOptions::default().memo(memo);
    assert_eq!(root.named_modules_with(&without).unwrap().len(), 1);
    assert!(names(&without).is_empty());
}

/// Every level contains the next one twice, so the number of paths is exponential.
#[test]
fn endless_lists_and_texts_are_bounded() {
    let session = Session::new();
    let leaf = "class Leaf(nn.Module):\n    def forward(self, x):\n        return x\nmodel = Leaf()\n";
    let mut model = source(&session, leaf);
    for level in 0..30 {
        let text = leaf.replace("Leaf", &format!("Level{level}"));
        let mut above = source(&session, &text);
        above.add_module("a", &model).unwrap();
        let same = above.clone();
        above.add_module("b", same.root().get_submodule("a").unwrap()).unwrap();
        model = above;
    }
    assert_eq!(model.root().named_modules().len(), 31);
    let all = MemberOptions::default().remove_duplicate(false);
    let refused = model.root().named_modules_with(&all).err().map(|e| e.to_string());
    assert!(refused.is_some_and(|text| text.contains("paths")));
    assert!(model.root().to_string().ends_with(')'));
}
