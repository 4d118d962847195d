//! Peak throughput of a GEMM on this processor.

use crate::{BackendOptions, compile};
use frazil_planner::kernel::{Epilogue, Gemm, Kernel};
use frazil_planner::plan::Plan;
use frazil_planner::target::Target;
use std::time::Instant;

/// Measures the throughput of a matmul whose operands stay in cache, on `threads` threads, in floating-point operations per second: the best of a few runs.
pub fn peak(target: &Target, threads: usize) -> f64 {
    let (m, n, k) = (96, 512, 384);
    let spec = Gemm::linear(m, n, k, Epilogue::none(), target.machine);
    let mut plan = Plan {
        name: "peak".to_owned(),
        ..Plan::default()
    };
    let weights = plan.constant(&vec![0.5f32; (n * k) as usize]);
    let port = |name: &str, rows: i64, columns: i64| frazil_planner::plan::Port {
        name: name.to_owned(),
        dtype: frazil_ir::DType::Float,
        shape: smallvec::smallvec![rows, columns],
    };
    plan.inputs.push(port("x", m, k));
    plan.outputs.push(port("y", m, n));
    let from = frazil_planner::plan::Buffer::Input { index: 0, offset: 0 };
    let to = frazil_planner::plan::Buffer::Output { index: 0, offset: 0 };
    let flops = spec.flops() as f64;
    plan.call(spec, [from, weights, to]);
    let options = BackendOptions {
        target: target.clone(),
        threads,
        ..BackendOptions::default()
    };
    let Ok(mut code) = compile(&plan, &options) else {
        return 0.0;
    };
    let x = vec![0u8; (m * k * 4) as usize];
    let mut y = vec![0u8; (m * n * 4) as usize];
    let mut best = f64::INFINITY;
    for _ in 0..50 {
        let start = Instant::now();
        if code.run(&[&x], &mut [&mut y]).is_err() {
            return 0.0;
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    flops / best
}
