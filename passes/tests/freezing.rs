//! Freezing real archives: node kinds and remaining attributes against PyTorch's frozen graphs.
//!
//! Runs over the corpus that `FRAZIL_CORPUS` names; without it there is nothing to compare.

use frazil_ir::{Context, Graph, Module, symbols};
use frazil_passes::{FreezeOptions, freeze_module};
use frazil_runtime::Registry;
use frazil_torchscript::{LoadOptions, load};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn corpus() -> Option<PathBuf> {
    std::env::var_os("FRAZIL_CORPUS").map(PathBuf::from)
}

fn registry() -> Registry {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    registry
}

fn kinds(graph: &Graph) -> BTreeMap<String, i64> {
    let mut out = BTreeMap::new();
    for node in graph.all_nodes() {
        *out.entry(graph.kind_name(node).to_owned()).or_default() += 1;
    }
    out
}

fn frozen(path: &Path, numerics: bool, preserve: Vec<String>) -> Result<Module, Box<dyn std::error::Error>> {
    let registry = registry();
    let module = load(
        path,
        &LoadOptions {
            ctx: registry.ctx(),
            catalogue: registry.catalogue(),
        },
    )?;
    let mut options = FreezeOptions {
        optimize_numerics: numerics,
        ..FreezeOptions::default()
    };
    options.freeze.preserve = preserve;
    let once = freeze_module(&module, &options, &registry)?;
    for (_, f) in once.unit.functions() {
        f.graph.verify(Some(registry.catalogue()))?;
    }
    Ok(once)
}

#[test]
#[ignore = "prints a table of differences over the whole corpus; run by hand"]
fn differences_from_pytorch() {
    let Some(corpus) = corpus() else { return };
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut names: Vec<_> = std::fs::read_dir(corpus.join("models"))
        .unwrap()
        .filter_map(Result::ok)
        .collect();
    names.sort_by_key(|e| e.file_name());
    let (mut equal, mut all) = (0, 0);
    for entry in names {
        let name = entry.file_name().into_string().unwrap();
        let path = entry.path().join("model.pt");
        if !path.exists() || !name.contains(&only) {
            continue;
        }
        let Ok(golden) = std::fs::read_to_string(corpus.join("ir").join(&name).join("freeze.json")) else {
            continue;
        };
        let golden: serde_json::Value = serde_json::from_str(&golden).unwrap();
        let case: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(entry.path().join("case.json")).unwrap()).unwrap();
        let preserve = case["preserve"].as_array().map_or(Vec::new(), |p| {
            p.iter().filter_map(|s| s.as_str().map(str::to_owned)).collect()
        });
        all += 1;
        let start = std::time::Instant::now();
        let mut lines = Vec::new();
        for (key, numerics) in [("kinds", true), ("kinds_without_optimize_numerics", false)] {
            match frozen(&path, numerics, preserve.clone()) {
                Err(e) => lines.push(format!("{key}: {e}")),
                Ok(module) => {
                    let Some(forward) = module.method_function(symbols::FORWARD) else {
                        continue;
                    };
                    if std::env::var_os("PRINT").is_some() && numerics {
                        println!("{}", frazil_syntax::print_graph(&forward.graph));
                    }
                    let ours = kinds(&forward.graph);
                    let theirs: BTreeMap<String, i64> = serde_json::from_value(golden[key].clone()).unwrap_or_default();
                    let mut diff = Vec::new();
                    for k in ours
                        .keys()
                        .chain(theirs.keys())
                        .collect::<std::collections::BTreeSet<_>>()
                    {
                        let (a, b) = (ours.get(k).copied().unwrap_or(0), theirs.get(k).copied().unwrap_or(0));
                        if a != b {
                            diff.push(format!("{k} {a}/{b}"));
                        }
                    }
                    if !diff.is_empty() {
                        lines.push(format!("{key}: {}", diff.join(", ")));
                    }
                    if numerics {
                        let left: Vec<_> = module
                            .objects()
                            .filter_map(|(id, _)| module.class_of(id))
                            .flat_map(|c| c.attributes.keys().map(|n| module.ctx().name(*n).to_owned()))
                            .collect();
                        let want = golden["remaining_attributes"].as_array().map_or(0, Vec::len);
                        if left.len() != want {
                            lines.push(format!("attributes: {left:?} / {}", golden["remaining_attributes"]));
                        }
                    }
                }
            }
        }
        equal += usize::from(lines.is_empty());
        println!(
            "{name} ({:?}){}",
            start.elapsed(),
            lines.iter().map(|l| format!("\n    {l}")).collect::<String>()
        );
    }
    println!("{equal} of {all} agree");
}
