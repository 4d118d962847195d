//! Freezing a frozen module changes nothing, and copies no weights.
//!
//! Runs on the archives of `tests/fixtures` and of the large corpus.

use frazil_ir::{Constant, Context, Graph, Module, Storage, symbols};
use frazil_passes::{FreezeOptions, freeze_module};
use frazil_runtime::Registry;
use frazil_runtime::interp::state;
use frazil_syntax::equal_modules;
use frazil_torchscript::{LoadOptions, SaveOptions, load, load_bytes, save_bytes};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns all `model.pt` below the folders.
fn archives() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/models")];
    folders.extend(frazil_recorded::workspace::corpus().map(|corpus| corpus.join("models")));
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok());
    let models = entries.flatten().map(|entry| entry.unwrap().path().join("model.pt"));
    let mut found: Vec<PathBuf> = models.filter(|path| path.exists()).collect();
    found.sort();
    found
}

fn registry() -> Arc<Registry> {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    Arc::new(registry)
}

fn options(registry: &Registry) -> LoadOptions<'_> {
    LoadOptions::new(registry.ctx(), registry.catalogue())
}

/// Returns the module in the archive, after restoring its objects.
fn module(archive: &Path, registry: &Arc<Registry>) -> Module {
    let module = Arc::new(load(archive, &options(registry)).unwrap());
    let restored = state::restore(&module, registry).unwrap();
    restored.unwrap_or_else(|| Module::clone(&module))
}

/// Returns the names that the case beside the archive preserves.
fn preserved(archive: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(archive.with_file_name("case.json")).unwrap();
    let case: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names = case["preserve"].as_array().into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn graphs(module: &Module) -> impl Iterator<Item = &Graph> {
    module.unit.functions().map(|(_, function)| &function.graph)
}

/// Returns the number of nodes of each kind in the module. Constants are not counted: an archive has lists of constants in place of constant lists.
fn kinds(module: &Module) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for graph in graphs(module) {
        for node in graph.all_nodes() {
            if graph.kind(node) != symbols::PRIM_CONSTANT {
                *kinds.entry(graph.kind_name(node).to_owned()).or_default() += 1;
            }
        }
    }
    kinds
}

/// Returns the bytes of each constant tensor in a graph, sorted and without duplicates.
fn constants(module: &Module) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for graph in graphs(module) {
        for node in graph.all_nodes() {
            if let Some(Constant::Tensor(t)) = graph.constant_of(node) {
                found.push(t.storage.bytes().to_vec());
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Models with embedding bags that have fewer nodes after freezing when they are read from the frozen archive: without offsets that
/// only branches that raise would use. The first time the nodes are those of PyTorch.
const LEAVE_LESS_BEHIND_ARCHIVES: &[&str] = &["dlrm_script", "text_classifier_script"];

#[test]
fn freezing_twice_changes_nothing() {
    let mut failures = Vec::new();
    for path in archives() {
        let registry = registry();
        let module = module(&path, &registry);
        for optimize_numerics in [true, false] {
            let mut freeze = FreezeOptions::default().optimize_numerics(optimize_numerics);
            freeze.freeze.preserve = preserved(&path);
            let mut fail = |what: String| {
                failures.push(format!("{}, numerics {optimize_numerics}: {what}", path.display()));
            };
            let frozen = freeze_module(&module, &freeze, &*registry).unwrap();
            match freeze_module(&frozen, &freeze, &*registry) {
                Ok(again) => {
                    if let Err(difference) = equal_modules(&frozen, &again) {
                        fail(difference.to_string());
                    }
                }
                Err(e) => fail(e.to_string()),
            }
            // The same after saving and loading.
            let bytes = save_bytes(&frozen, registry.catalogue(), &SaveOptions::default()).unwrap();
            let loaded = load_bytes(bytes, &options(&registry)).unwrap();
            match freeze_module(&loaded, &freeze, &*registry) {
                Ok(again) => {
                    let known = LEAVE_LESS_BEHIND_ARCHIVES
                        .iter()
                        .any(|name| path.parent().is_some_and(|p| p.ends_with(name)));
                    if kinds(&again) != kinds(&frozen) && !known {
                        let (a, b) = (kinds(&frozen), kinds(&again));
                        let all = a.keys().chain(b.keys()).filter(|kind| a.get(*kind) != b.get(*kind));
                        let differ: BTreeMap<_, _> = all.map(|kind| (kind, (a.get(kind), b.get(kind)))).collect();
                        fail(format!("behind an archive: {differ:?}"));
                    }
                    if constants(&again) != constants(&frozen) {
                        fail("behind an archive: other tensors".to_owned());
                    }
                }
                Err(e) => fail(format!("behind an archive: {e}")),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Weights that no folding changes are constants on the attributes' storages.
#[test]
fn weights_are_shared() {
    let mut shared = 0;
    for path in archives() {
        let registry = registry();
        let module = module(&path, &registry);
        let mut storages: HashSet<*const Storage> = HashSet::new();
        let mut collect = |value: &Constant| {
            let mut work = vec![value];
            while let Some(value) = work.pop() {
                match value {
                    Constant::Tensor(t) => {
                        storages.insert(Arc::as_ptr(&t.storage));
                    }
                    Constant::Dict(d) => work.extend(d.entries.iter().map(|(_, v)| v)),
                    _ => work.extend(value.items().unwrap_or_default()),
                }
            }
        };
        module
            .objects()
            .for_each(|(_, object)| object.slots.iter().for_each(&mut collect));
        let mut freeze = FreezeOptions::default().optimize_numerics(false);
        freeze.freeze.preserve = preserved(&path);
        let frozen = freeze_module(&module, &freeze, &*registry).unwrap();
        for graph in graphs(&frozen) {
            for node in graph.all_nodes() {
                let name = graph.output(node).and_then(|v| graph.value_name(v));
                let name = name.map_or_else(String::new, |n| n.display(graph.ctx()).to_string());
                // The names of constants are derived from the attributes'.
                if let (Some(Constant::Tensor(t)), true) = (graph.constant_of(node), name.starts_with("self.")) {
                    assert!(
                        storages.contains(&Arc::as_ptr(&t.storage)),
                        "{}: {name} was copied",
                        path.display()
                    );
                    shared += 1;
                }
            }
        }
        for (_, object) in frozen.objects() {
            for value in &object.slots {
                if let Constant::Tensor(t) = value {
                    assert!(
                        storages.contains(&Arc::as_ptr(&t.storage)),
                        "{}: an attribute was copied",
                        path.display()
                    );
                }
            }
        }
    }
    assert!(shared > 0, "no weight was seen");
}
