//! Small tensors are printed as by PyTorch. `data/tensors.txt` contains PyTorch's output; `data/make_tensors.py` generates it.

use frazil_ir::{Builder, Context, DType, Graph, TensorData};
use frazil_syntax::{parse_graph, print_graph};
use std::sync::Arc;

#[test]
fn tensors_print_as_pytorch_prints_them() {
    let mut failures = Vec::new();
    let lines = include_str!("data/tensors.txt").lines();
    for (number, line) in lines.enumerate() {
        let [dtype, sizes, hex, text] = line.splitn(4, '|').collect::<Vec<_>>()[..] else {
            panic!("line {}", number + 1);
        };
        let dtype = DType::from_type_name(dtype).unwrap();
        let sizes: Vec<i64> = sizes
            .split(',')
            .filter(|s| !s.is_empty())
            .map(|s| s.parse().unwrap())
            .collect();
        let bytes = (0..hex.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
            .collect();
        let ctx = Arc::new(Context::new());
        let mut graph = Graph::new(ctx.clone());
        let root = graph.root();
        Builder::at_end(&mut graph, root).constant(Arc::new(TensorData::contiguous(dtype, &sizes, bytes).unwrap()));
        let printed = print_graph(&graph);
        if !printed.contains(&format!("[value={text}]()")) {
            failures.push(format!("line {}: {text:?}\n{printed}", number + 1));
        }
        // Whether it is read as data or kept as text, it is printed back unchanged.
        let back = parse_graph(&Arc::new(Context::new()), &printed).unwrap_or_else(|e| panic!("{printed}\n{e}"));
        assert_eq!(print_graph(&back.graph), printed);
    }
    assert!(
        failures.is_empty(),
        "{} lines:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
