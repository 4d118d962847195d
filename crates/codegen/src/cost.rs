//! What a kernel has to do: arithmetic and memory traffic, counted from its spec.

use crate::kernel::{Epilogue, EpilogueOperand, KernelSpec, Loops, Place, Read, Stage};
use frazil_runtime::expr::{Expr, ExprOp};
use frazil_runtime::structured::Affine;

/// Floating-point operations of a call: two for each multiply-add of a contraction, one for each step of a scalar body.
pub fn flops(spec: &KernelSpec) -> i64 {
    match spec {
        KernelSpec::Gemm(k) => 2 * k.batch_count() * k.m * k.n * k.k,
        KernelSpec::Conv(k) => 2 * k.shape.macs(),
        KernelSpec::Depthwise(k) => 2 * k.shape.macs(),
        KernelSpec::Pool(k) => {
            let o = &k.output;
            o.batch * o.channels * o.height * o.width * k.kernel[0] * k.kernel[1]
        }
        KernelSpec::WinogradWeights(_) | KernelSpec::Reorder(_) | KernelSpec::CopyChannels(_) | KernelSpec::Host(_) => {
            0
        }
        KernelSpec::Loops(k) => k.stages.iter().map(|s| stage_flops(k, s)).sum(),
    }
}

fn stage_flops(k: &Loops, s: &Stage) -> i64 {
    let operations = |e: &Expr| {
        let counted = |op: &ExprOp| matches!(op, ExprOp::Unary(..) | ExprOp::Binary(..) | ExprOp::Fma(..));
        e.nodes().iter().filter(|n| counted(&n.op)).count() as i64
    };
    let results = k.tasks() * s.inner.iter().product::<i64>();
    let folded: i64 = s.reduction.iter().product();
    let join = i64::from(s.combine.is_some());
    let kept = s.kept.as_ref().map_or(0, |k| operations(&k.body));
    results * (folded * (kept + operations(&s.body) + join) + s.finish.as_ref().map_or(0, operations))
}

/// Bytes that a call reads and writes when it touches every element once; what it reads again comes from a cache.
pub fn bytes(spec: &KernelSpec) -> i64 {
    match spec {
        KernelSpec::Gemm(k) => {
            let batch = |moves: &dyn Fn(&crate::kernel::GemmBatch) -> i64| {
                let loops = k.batch.iter().filter(|b| moves(b) != 0);
                loops.map(|b| b.extent).product::<i64>()
            };
            let (a, b, c) = (batch(&|b| b.a), batch(&|b| b.b), batch(&|b| b.c));
            let results = c * k.m * k.n;
            4 * (a * k.m * k.k + b * k.k * k.n + results) + operands(&k.epilogue, results, k.n)
        }
        KernelSpec::Conv(k) => {
            let s = &k.shape;
            let weights = s.out_channels * (s.in_channels / s.groups.max(1)) * s.kernel[0] * s.kernel[1];
            images(s, weights, &k.epilogue)
        }
        KernelSpec::WinogradWeights(k) => (k.plain_bytes() + k.transformed_bytes()) as i64,
        KernelSpec::Depthwise(k) => images(
            &k.shape,
            k.shape.out_channels * k.shape.kernel[0] * k.shape.kernel[1],
            &k.epilogue,
        ),
        KernelSpec::Pool(k) => {
            let results = k.output.elements();
            4 * (k.input.elements() + results) + operands(&k.epilogue, results, k.output.channels)
        }
        KernelSpec::Reorder(k) => 8 * k.blocked.elements(),
        KernelSpec::CopyChannels(k) => 8 * k.input.batch * k.count * k.input.height * k.input.width,
        KernelSpec::Loops(k) => k.stages.iter().map(|s| stage_bytes(k, s)).sum(),
        KernelSpec::Host(_) => 0,
    }
}

fn images(s: &crate::kernel::ConvShape, weights: i64, epilogue: &Epilogue) -> i64 {
    let input = s.batch * s.in_channels * s.input[0] * s.input[1];
    let results = s.batch * s.out_channels * s.output[0] * s.output[1];
    4 * (input + weights + results) + operands(epilogue, results, s.out_channels)
}

fn operands(epilogue: &Epilogue, results: i64, channels: i64) -> i64 {
    let elements = epilogue.operands.iter().map(|o| match o {
        EpilogueOperand::Elementwise => results,
        EpilogueOperand::Channel | EpilogueOperand::Row => channels,
        EpilogueOperand::Scalar => 1,
    });
    4 * elements.sum::<i64>()
}

/// Scratch memory stays in cache, and is not counted.
fn stage_bytes(k: &Loops, s: &Stage) -> i64 {
    let extents: Vec<i64> = k.outer.iter().chain(&s.inner).chain(&s.reduction).copied().collect();
    let moved = |place: Place, index: &Affine| match place {
        Place::Argument(n) => {
            let loops = index.coefficients.iter().zip(&extents).filter(|(c, _)| **c != 0);
            let size = k.arguments.get(n as usize).map_or(0, |d| d.size() as i64);
            loops.map(|(_, n)| n).product::<i64>() * size
        }
        Place::Local(_) => 0,
    };
    let read = |r: &Read| moved(r.place, &r.index);
    let reads: i64 = s.inputs.iter().chain(&s.finish_inputs).map(read).sum();
    reads + s.writes().map(|w| moved(w.place, &w.index)).sum::<i64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Gemm;
    use crate::target::AVX2;

    #[test]
    fn a_linear_layer() {
        let spec = KernelSpec::Gemm(Gemm::linear(3, 5, 7, Epilogue::none(), &AVX2));
        assert_eq!(flops(&spec), 2 * 3 * 5 * 7);
        assert_eq!(bytes(&spec), 4 * (3 * 7 + 7 * 5 + 3 * 5));
    }
}
