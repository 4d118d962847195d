//! Warnings of programs are events in both engines.
#![cfg(feature = "codegen")]

use frazil::{EngineKind, EngineOptions, Loaded, Session, Tensor};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Collects the texts of warnings.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Visit for Heard {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0
                .lock()
                .expect("no holder of the lock panics")
                .push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "frazil::warn"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn both_engines_emit_them_in_each_run() {
    let source = "
def f(x: Tensor):
    warnings.warn('before')
    y = x * 2
    if bool(y.sum() > 4):
        warnings.warn(f'the sum is {int(y.sum())}')
    return y
";
    for kind in [EngineKind::Native, EngineKind::Interpreter] {
        let heard = Heard::default();
        tracing::subscriber::with_default(heard.clone(), || {
            let loaded = Session::new().load_bytes(Path::new("net.py"), source.as_bytes().to_vec());
            let Loaded::Graphs(graphs) = loaded.expect("it compiles") else {
                panic!("a function is a graph");
            };
            let options = EngineOptions::default()
                .kind(kind)
                .strict(true)
                .methods(vec!["f".to_owned()]);
            let mut engine = graphs.to_model().engine(&options).expect("it can be run");
            for x in [1.0, 3.0, 3.0] {
                let x = Tensor::from_f32(&[x], &[1]).expect("one element");
                engine.call("f", &[x.into()]).expect("it runs");
            }
        });
        let heard = heard.0.lock().expect("no holder of the lock panics").clone();
        let expected = ["before", "before", "the sum is 6", "before", "the sum is 6"];
        assert_eq!(heard, expected, "{kind:?}");
    }
}
