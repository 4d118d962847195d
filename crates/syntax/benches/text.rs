//! Benchmarks of reading and printing graphs, by number of nodes.

#![allow(missing_docs, reason = "criterion's macros make public items")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use frazil_ir::Context;
use frazil_syntax::{parse_graph, print_graph};
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

/// Returns a graph like those of traced models: constants, views and operators with source ranges, some control flow.
fn text(nodes: usize) -> String {
    let mut out =
        String::from("graph(%x.1 : Float(8, 64, strides=[64, 1], requires_grad=0, device=cpu),\n      %c : bool):\n");
    let mut value = "x.1".to_owned();
    for i in 0..nodes / 10 {
        let n = 10 * i + 2;
        let _ = write!(
            out,
            "  %{n} : int = prim::Constant[value={i}]()\n  \
             %{a} : float = prim::Constant[value=0.5]() # model.py:{i}:8\n  \
             %shape.{i} : int[] = prim::Constant[value=[1, 2, {i}]]()\n  \
             %{b} : Tensor = aten::add(%{value}, %x.1, %{n}) # model.py:{i}:8\n  \
             %w.{i} : Float(64, 3, 7, 7, strides=[147, 49, 7, 1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()\n  \
             %y.{i} : Tensor = aten::conv2d(%{b}, %w.{i}, %{b}, %shape.{i}, %shape.{i}, %shape.{i}, %{n}) # model.py:{i}:12\n  \
             %{d} : Tensor = prim::If(%c) # model.py:{i}:4\n    block0():\n      \
             %{e} : Tensor = aten::relu(%y.{i}) # model.py:{i}:16\n      -> (%{e})\n    block1():\n      \
             %{f} : Tensor = aten::mul(%y.{i}, %{a})\n      -> (%{f})\n  \
             %z.{i} : Tensor[] = prim::ListConstruct(%{d}, %{b})\n",
            a = n + 1,
            b = n + 2,
            d = n + 3,
            e = n + 4,
            f = n + 5,
        );
        value = format!("{}", n + 3);
    }
    let _ = writeln!(out, "  return (%{value})");
    out
}

fn benches(c: &mut Criterion) {
    if let Some(path) = std::env::var_os("FRAZIL_BENCH_TEXT") {
        // For comparisons with other parsers.
        let _ = std::fs::write(path, text(200_000));
    }
    for nodes in [2_000, 200_000] {
        let text = text(nodes);
        let mut group = c.benchmark_group("text");
        group.throughput(Throughput::Elements(nodes as u64)).sample_size(10);
        group.bench_with_input(BenchmarkId::new("parse", nodes), &text, |b, text| {
            b.iter(|| parse_graph(&Arc::new(Context::new()), black_box(text)).is_ok());
        });
        let Ok(parsed) = parse_graph(&Arc::new(Context::new()), &text) else {
            return;
        };
        group.bench_with_input(BenchmarkId::new("print", nodes), &parsed.graph, |b, graph| {
            b.iter(|| print_graph(black_box(graph)).len());
        });
        group.finish();
    }
}

criterion_group!(text_form, benches);
criterion_main!(text_form);
