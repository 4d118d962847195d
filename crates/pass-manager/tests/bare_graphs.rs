//! An IR without modules, environment, and errors of its own; and the spans of passes.
//!
//! This is a binary with one test, since `tracing` caches for the whole process whether a span is enabled.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use frazil_pass_manager::{AnyPass, GraphPass, Ir, NoModules, PassContext, PassError, PassManager};
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[derive(Clone, Copy, Debug)]
struct Text;

impl Ir for Text {
    type Graph = String;
    type Module = NoModules;
    type Environment = ();
    type Lookups = ();
    type VerifyError = Infallible;
    type Error = Infallible;

    fn verify(_graph: &String, (): &()) -> Result<(), Infallible> {
        Ok(())
    }

    fn node_count(graph: &String) -> usize {
        graph.len()
    }

    /// Texts only become shorter.
    fn revision(graph: &String) -> u64 {
        graph.len() as u64
    }
}

/// Removes the last character.
struct Pop;

impl GraphPass<Text> for Pop {
    fn run(&self, graph: &mut String, cx: &mut PassContext<'_, Text>) -> Result<(), PassError<Text>> {
        if graph.len() > 1 && cx.rewrite("characters removed") {
            graph.pop();
        }
        Ok(())
    }
}

/// Records the names and fields of spans.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = span.metadata().name().to_owned();
        span.record(&mut Fields(&mut text));
        self.0.lock().unwrap().push(text);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn graphs_need_no_module_and_passes_have_spans() {
    let mut graph = "abc".to_owned();
    let mut manager = PassManager::new().with("pop", AnyPass::graph(Pop));
    manager.verify_each(true);
    let spans = Spans::default();
    let run = || manager.run_on_graph(&mut graph, &()).unwrap();
    let report = tracing::subscriber::with_default(spans.clone(), run);
    assert_eq!((graph.as_str(), report.statistics[0].2), ("ab", 1));
    assert_eq!(*spans.0.lock().unwrap(), [r#"pass name="pop""#]);
}
