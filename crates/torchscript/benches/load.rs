//! Loading archives, from the file to compiled graphs, and writing them to memory. With `FRAZIL_CORPUS` set, models of the corpus as well.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "criterion's macros make undocumented items; a bench may fail loudly"
)]

#[path = "../tests/suite/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group, criterion_main};
use frazil_torchscript::{LoadOptions, SaveOptions, load, save_bytes};

fn loading(c: &mut Criterion) {
    let (ctx, catalogue) = common::catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/models");
    let mut archives = vec![("residual_cnn", fixtures.join("residual_cnn/model.pt"))];
    if let Some(corpus) = std::env::var_os("FRAZIL_CORPUS").map(PathBuf::from) {
        for name in ["resnet18_script", "mobilenet_v2_script", "bert_2l_256_trace"] {
            archives.push((name, corpus.join("models").join(name).join("model.pt")));
        }
    }
    for (name, path) in archives {
        c.bench_function(&format!("load/{name}"), |b| b.iter(|| load(&path, &options).unwrap()));
        let module = load(&path, &options).unwrap();
        c.bench_function(&format!("save/{name}"), |b| {
            b.iter(|| save_bytes(&module, &catalogue, &SaveOptions::default()).unwrap());
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = loading
}
criterion_main!(benches);
