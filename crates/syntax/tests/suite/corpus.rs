//! Everything that PyTorch printed for the corpus is parsed, verified, and printed back byte for byte.

use frazil_ir::Context;
use frazil_syntax::{parse_graph, print_graph, render};
use std::sync::Arc;

/// Returns the first difference of the texts.
fn difference(a: &str, b: &str) -> String {
    a.lines()
        .zip(b.lines())
        .enumerate()
        .find(|(_, (x, y))| x != y)
        .map_or("one is longer".to_owned(), |(i, (x, y))| {
            format!("line {}:\n  {x}\n  {y}", i + 1)
        })
}

#[test]
fn printed_graphs_of_the_corpus_round_trip() {
    let Some(corpus) = frazil_recorded::workspace::corpus() else {
        return;
    };
    let mut failures = Vec::new();
    let mut read = 0;
    let mut folders: Vec<_> = std::fs::read_dir(corpus.join("ir"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    folders.sort();
    for folder in folders.iter().filter(|f| f.is_dir()) {
        for file in ["graph.ir", "inlined.ir", "frozen.ir"] {
            let path = folder.join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            read += 1;
            match parse_graph(&Arc::new(Context::new()), &text) {
                Err(e) => failures.push(render(&path.display().to_string(), &text, &e.diagnostics, false)),
                Ok(parsed) => {
                    let printed = print_graph(&parsed.graph);
                    if printed != text {
                        failures.push(format!("{}: {}", path.display(), difference(&text, &printed)));
                    }
                    if !parsed.warnings.is_empty() {
                        failures.push(format!("{}: {:?}", path.display(), parsed.warnings));
                    }
                    if let Err(e) = parsed.graph.verify(None) {
                        failures.push(format!("{}: {e}", path.display()));
                    }
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {read} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(read >= 180, "only {read} files");
}
