//! Objects that define their archived state: `__getstate__` and `__setstate__`.

use frazil::{EngineKind, EngineOptions, Error, FreezeOptions, Loaded, Model, SaveOptions, Session, Value};
use frazil_runtime::interp::{ErrorKind, state::StateError};
use frazil_syntax::equal_modules;
use std::path::Path;

/// Returns the model of a source text after saving and loading: `setstate` is the body of its `__setstate__`.
fn reloaded(setstate: &str) -> Result<Model, Error> {
    let text = format!(
        "\
import torch
from typing import Dict, List, Tuple

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.times = 0
        self.weight = torch.ones(2)

    @torch.jit.export
    def __getstate__(self) -> Tuple[int, torch.Tensor]:
        return self.times, self.weight * 2.0

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, torch.Tensor]):
{}
    def forward(self, x: torch.Tensor):
        return x + self.weight, self.times
",
        setstate.lines().map(|l| format!("        {l}\n")).collect::<String>()
    );
    let source = Session::new().load_bytes(Path::new("net.py"), text.into_bytes())?;
    load(&source.model("saved")?.save_bytes(&SaveOptions::default())?)
}

fn load(archive: &[u8]) -> Result<Model, Error> {
    let loaded = Session::new().load_bytes(Path::new("net.pt"), archive.to_vec())?;
    match loaded {
        Loaded::Model(model) => Ok(model),
        Loaded::Graphs(_) => panic!("an archive holds a module"),
    }
}

const COUNTS: &str = "self.times = state[0] + 1\nself.weight = state[1] / 2.0\nself.training = False";

fn run(model: &Model, kind: EngineKind) -> (f64, i64) {
    let options = EngineOptions::default().kind(kind);
    let x = frazil::Tensor::from_f32(&[10.0, 20.0], &[2]).unwrap();
    let result = model
        .engine(&options)
        .unwrap()
        .call("forward", &[Value::from(x)])
        .unwrap();
    let items = result.items().unwrap();
    let sum = items[0].as_tensor().unwrap().to_vec::<f32>()[0];
    (f64::from(sum), items[1].as_int().unwrap())
}

#[test]
fn what_runs_and_what_is_frozen_has_restored_itself() {
    let model = reloaded(COUNTS).unwrap();
    assert_eq!(run(&model, EngineKind::Interpreter), (11.0, 1));
    let frozen = model.freeze(&FreezeOptions::default()).unwrap();
    assert_eq!(run(&frozen, EngineKind::Interpreter), (11.0, 1));
    let (piped, _) = model.run_passes("dce,freeze,dce", &Default::default()).unwrap();
    assert_eq!(run(&piped, EngineKind::Interpreter), (11.0, 1));
    assert_eq!(
        model.restored().unwrap().root().attribute("times").unwrap().as_int(),
        Some(1)
    );
}

#[test]
fn archives_that_are_only_rewritten_keep_the_states_that_they_have() {
    let model = reloaded(COUNTS).unwrap();
    let again = load(&model.save_bytes(&SaveOptions::default()).unwrap()).unwrap();
    equal_modules(model.module(), again.module()).unwrap();
    assert_eq!(run(&again, EngineKind::Interpreter), (11.0, 1));

    // `__getstate__` runs again for an object that has restored itself.
    let saved = model.restored().unwrap().save_bytes(&SaveOptions::default()).unwrap();
    assert_eq!(run(&load(&saved).unwrap(), EngineKind::Interpreter), (11.0, 2));
    let mut engine = model.engine(&EngineOptions::default()).unwrap();
    assert!(engine.snapshot().unwrap().module().states().next().is_none());
}

/// Returns the reason why a model with this `__setstate__` cannot be frozen.
fn refused(setstate: &str) -> StateError {
    match reloaded(setstate).unwrap().freeze(&FreezeOptions::default()) {
        Err(Error::State(error)) => error,
        other => panic!("{setstate}: {:?}", other.map(drop)),
    }
}

#[test]
fn states_that_do_not_restore_an_object_are_refused() {
    let unset = refused("self.times = state[0]\nself.training = False");
    assert!(
        matches!(&unset, StateError::Unset { attribute, .. } if attribute == "weight"),
        "{unset}"
    );
    // PyTorch's message.
    assert!(
        unset.to_string().ends_with(
            "The field 'weight' was left uninitialized after '__setstate__', but expected a value of type 'Tensor'"
        ),
        "{unset}"
    );

    let kind = |error: &StateError| match error {
        StateError::Run { source, .. } => source.kind.clone(),
        other => panic!("{other}"),
    };
    let raised = refused("raise ValueError('no')");
    assert!(
        matches!(kind(&raised), ErrorKind::Raised { class, .. } if class == "ValueError"),
        "{raised}"
    );
    let endless = refused("while True:\n    self.times = 1");
    assert_eq!(kind(&endless), ErrorKind::Limit);
}

#[test]
fn one_method_alone_is_a_method_like_any_other() {
    let text = "\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.times = 3
        self.training = False

    @torch.jit.export
    def __setstate__(self, state: int):
        self.times = state

    def forward(self, x: torch.Tensor):
        return x, self.times
";
    let source = Session::new().load_bytes(Path::new("net.py"), text.into()).unwrap();
    let saved = source
        .model("saved")
        .unwrap()
        .save_bytes(&SaveOptions::default())
        .unwrap();
    let model = load(&saved).unwrap();
    assert!(model.module().states().next().is_none());
    assert_eq!(run(&model, EngineKind::Interpreter).1, 3);
}

#[test]
fn freezing_keeps_whole_what_restores_itself_by_operators_without_semantics() {
    let model = reloaded("self.times = state[0]\nself.training = False\nself.weight = state[1].to_mkldnn()").unwrap();
    assert!(matches!(
        model.restored(),
        Err(Error::State(StateError::Run { source, .. })) if matches!(source.kind, ErrorKind::Missing(_))
    ));
    let frozen = model.freeze(&FreezeOptions::default()).unwrap();
    let again = load(&frozen.save_bytes(&SaveOptions::default()).unwrap()).unwrap();
    for model in [frozen, again] {
        let module = model.module();
        assert_eq!(module.states().map(|(id, _)| id).collect::<Vec<_>>(), [module.root]);
        let graph = model.graph("forward").unwrap();
        let reads = graph
            .all_nodes()
            .into_iter()
            .filter(|n| graph.kind_name(*n) == "prim::GetAttr")
            .count();
        assert_eq!(reads, 2);
    }
}
