//! Operators defined in TorchScript source over other operators.
//!
//! A function `mse_loss` defines `aten::mse_loss`, a function `gru__input` the overload `aten::gru.input`. Functions take the
//! schema's arguments, all of them, and call operators only: not one another.

use frazil_ir::schema::Catalogue;
use frazil_ir::{Graph, symbols};
use frazil_runtime::registry::{CompiledGraphs, Composites, Registry};
use frazil_torchscript::{LoadOptions, compile_source};
use indexmap::IndexMap;
use std::sync::Arc;

/// The sources, by subject.
const SOURCES: [(&str, &str); 4] = [
    ("losses.py", include_str!("losses.py")),
    ("recurrent.py", include_str!("recurrent.py")),
    ("linear_algebra.py", include_str!("linear_algebra.py")),
    ("layers.py", include_str!("layers.py")),
];

/// The functions that a source defines.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("def ")?.split('(').next())
}

/// Adds the operators.
pub(crate) fn register(registry: &mut Registry) {
    let named = |f: &str| (format!("aten::{}", f.replace("__", ".")), f.to_string());
    registry.composites(Composites {
        functions: SOURCES
            .iter()
            .flat_map(|(_, text)| functions(text))
            .map(named)
            .collect(),
        compile,
    });
}

fn compile(catalogue: &Catalogue) -> CompiledGraphs {
    let mut graphs = IndexMap::new();
    for (file, text) in SOURCES {
        let options = LoadOptions {
            ctx: catalogue.ctx(),
            catalogue,
        };
        let unit = compile_source(file, text, &options).map_err(|e| e.to_string())?;
        for (_, function) in unit.functions() {
            let mut graph = function.graph.clone();
            spread_results(&mut graph);
            let name = catalogue.ctx().name(function.name);
            let name = name.strip_prefix("__torch__.").unwrap_or(name);
            graphs.insert(name.to_string(), Arc::new(graph));
        }
    }
    Ok(graphs)
}

/// A function gives several results as a tuple, an operator as several outputs.
fn spread_results(graph: &mut Graph) {
    let results: Vec<_> = graph.outputs().collect();
    if let [only] = results.as_slice()
        && let Some(node) = graph.defining_node(*only)
        && graph.kind(node) == symbols::PRIM_TUPLE_CONSTRUCT
    {
        let items: Vec<_> = graph.operands(node).collect();
        let root = graph.root();
        graph.set_results(root, &items);
    }
}
