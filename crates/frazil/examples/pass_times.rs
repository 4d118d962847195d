//! Measures passes and analyses, for `tools/bench_passes.py`: for each line on standard input runs the named analysis or pipeline once, with a
//! fresh copy of the graph or module in the file named on the command line, and writes its time.
//!
//! `alias-db` builds the analysis, `queries` evaluates its predicates for every node (whether it may be swapped with the previous one, whether its
//! operands are written, alias each other, or escape); `freeze` freezes the module; anything else is a pass pipeline. The answer is a line of JSON:
//! milliseconds of processor time, and nodes of the graph.

#![allow(clippy::print_stdout, reason = "a program for a script to read")]

use frazil::passes::{AliasDb, PassManager};
use frazil::{FreezeOptions, Session};
use frazil_ir::{Graph, ValueId};
use frazil_syntax::{ParseOptions, TextKind, parse_graph_with, sniff};
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which file?")?);
    let session = Session::new();
    let text = std::fs::read_to_string(&path)?;
    let is_module = sniff(&text) == Some(TextKind::Module);
    let graph = match is_module {
        true => Graph::new(session.ctx().clone()),
        false => parse_graph_with(session.ctx(), &text, ParseOptions::default())?.graph,
    };
    for line in std::io::stdin().lines() {
        let line = line?;
        let seconds = match (line.as_str(), is_module) {
            ("freeze", _) => freeze(&session, &path)?,
            ("alias-db", false) => timed(|| drop(AliasDb::new(&graph, session.registry().catalogue()))),
            ("queries", false) => queries(&session, &graph),
            (pipeline, false) => passes(&session, &graph, pipeline)?,
            (pipeline, true) => module_passes(&session, &path, pipeline)?,
        };
        // The number of nodes of a module is known to the caller.
        let (milliseconds, nodes) = (seconds * 1e3, if is_module { 0 } else { graph.node_capacity() });
        println!(r#"{{"ms": {milliseconds}, "nodes": {nodes}}}"#);
    }
    Ok(())
}

fn passes(session: &Session, graph: &Graph, pipeline: &str) -> Outcome<f64> {
    let manager = PassManager::from_pipeline(session.passes(), pipeline)?;
    let mut copy = graph.clone();
    let mut outcome = Ok(());
    let time = timed(|| outcome = manager.run_on_graph(&mut copy, &**session.registry()).map(drop));
    outcome?;
    Ok(time)
}

fn module_passes(session: &Session, path: &std::path::Path, pipeline: &str) -> Outcome<f64> {
    let manager = PassManager::from_pipeline(session.passes(), pipeline)?;
    let model = session.load(path)?;
    let mut module = frazil_ir::Module::clone(model.module());
    let mut outcome = Ok(());
    let time = timed(|| outcome = manager.run(&mut module, &**session.registry()).map(drop));
    outcome?;
    Ok(time)
}

fn freeze(session: &Session, path: &std::path::Path) -> Outcome<f64> {
    let model = session.load(path)?;
    let mut outcome = Ok(());
    let time = timed(|| outcome = model.freeze(&FreezeOptions::default()).map(drop));
    outcome?;
    Ok(time)
}

fn queries(session: &Session, graph: &Graph) -> f64 {
    let catalogue = session.registry().catalogue();
    let db = AliasDb::new(graph, catalogue);
    timed(|| {
        let mut yes = 0_usize;
        for node in graph.all_nodes() {
            let operands: Vec<ValueId> = graph.operands(node).collect();
            yes += usize::from(db.node_has_writers(graph, node)) + usize::from(db.escapes_scope(&operands));
            for pair in operands.windows(2) {
                yes +=
                    usize::from(db.may_alias(pair[0], pair[1])) + usize::from(db.may_contain_alias(pair[0], pair[1]));
            }
            if let Some(before) = graph.previous(node) {
                yes += usize::from(db.conflict(graph, before, node, catalogue));
            }
        }
        std::hint::black_box(yes);
    })
}

/// Returns the processor time of `work` in seconds, which hardly depends on other load of the machine.
fn timed(work: impl FnOnce()) -> f64 {
    let seconds = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let start = seconds();
    work();
    seconds() - start
}
