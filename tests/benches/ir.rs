//! The IR core by graph size: building, walking, rewriting, cloning and compacting.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use frazil_ir::{Builder, Context, Graph, NodeId, ValueId, types};

/// Nodes of a large network after inlining, and of a graph that strains caches.
const SIZES: [usize; 2] = [2_000, 200_000];

/// A straight line of additions, each of two values among the last 64.
fn chain(ctx: &Arc<Context>, nodes: usize) -> Graph {
    let add = ctx.symbol("aten::add");
    let mut graph = Graph::new(ctx.clone());
    let x = graph.add_input(types::TENSOR);
    let root = graph.root();
    let mut values: Vec<ValueId> = vec![x];
    let mut builder = Builder::at_end(&mut graph, root);
    // A small linear congruential generator: the same graph in every run.
    let mut state = 1_u32;
    let mut recent = |values: &[ValueId]| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        values[values.len() - 1 - (state >> 16) as usize % values.len().min(64)]
    };
    for _ in 0..nodes {
        let operands = [recent(&values), recent(&values)];
        values.push(builder.op(add, &operands, types::TENSOR));
    }
    graph.add_result(root, values[values.len() - 1]);
    graph
}

/// Forwards every seventh node's first operand to its users and erases it.
fn forward_every_seventh(graph: &mut Graph) {
    let nodes: Vec<NodeId> = graph.nodes(graph.root()).step_by(7).collect();
    for node in nodes {
        if let (Some(output), Some(operand)) = (graph.output(node), graph.operand(node, 0)) {
            graph.replace_all_uses_with(output, operand);
            graph.erase(node);
        }
    }
}

fn benches(criterion: &mut Criterion) {
    let ctx = Arc::new(Context::new());
    let mut group = criterion.benchmark_group("ir");
    for nodes in SIZES {
        group.throughput(Throughput::Elements(nodes as u64));
        let graph = chain(&ctx, nodes);
        group.bench_function(BenchmarkId::new("build", nodes), |bencher| {
            bencher.iter(|| chain(&ctx, nodes))
        });
        group.bench_function(BenchmarkId::new("walk operands", nodes), |bencher| {
            bencher.iter(|| {
                let operands = graph.nodes(graph.root()).flat_map(|node| graph.operands(node));
                operands.for_each(|value| _ = black_box(graph.ty(value)));
            });
        });
        group.bench_function(BenchmarkId::new("clone", nodes), |bencher| {
            bencher.iter(|| graph.clone())
        });
        group.bench_function(BenchmarkId::new("verify", nodes), |bencher| {
            bencher.iter(|| graph.verify(None).is_ok())
        });
        group.bench_function(BenchmarkId::new("replace and erase", nodes), |bencher| {
            bencher.iter_batched_ref(|| graph.clone(), forward_every_seventh, BatchSize::LargeInput);
        });
        group.bench_function(BenchmarkId::new("compact", nodes), |bencher| {
            let mut edited = graph.clone();
            forward_every_seventh(&mut edited);
            bencher.iter_batched_ref(|| edited.clone(), Graph::compact, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(group, benches);
criterion_main!(group);
