//! Recognition of matmuls.

use super::nest::{EpilogueClass, Nest};
use frazil_runtime::structured::{Access, TensorId};

/// `C[m][n] = Σ_k A[m][k] · B[k][n]` over batch loops, all strides in elements.
#[derive(Clone, Debug, PartialEq)]
pub struct GemmClass {
    /// Rows of A and C.
    pub m: i64,
    /// Columns of B and C.
    pub n: i64,
    /// Columns of A, rows of B.
    pub k: i64,
    /// Batch loops, outermost first.
    pub batch: Vec<BatchLoop>,
    /// The left operand; `inner` is the stride of k, `outer` that of m.
    pub a: GemmOperand,
    /// The right operand; `inner` is the stride of n, `outer` that of k.
    pub b: GemmOperand,
    /// Stride between the rows of C, in elements; the elements of a row are contiguous.
    pub c_row_stride: i64,
    /// The epilogue of the sums.
    pub epilogue: EpilogueClass,
}

/// An operand of a matmul, dense in memory and read with strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GemmOperand {
    /// The tensor.
    pub tensor: TensorId,
    /// Offset of the first element that is read.
    pub offset: i64,
    /// Stride of the row index.
    pub outer: i64,
    /// Stride of the column index.
    pub inner: i64,
}

/// A batch loop of a matmul, with its stride in each operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLoop {
    /// Number of iterations.
    pub extent: i64,
    /// Stride of A.
    pub a: i64,
    /// Stride of B.
    pub b: i64,
    /// Stride of C.
    pub c: i64,
}

/// A loop, or several with collapsible strides: extent, and strides in A, B and C.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    extent: i64,
    strides: [i64; 3],
}

/// Recognises a matmul.
pub(super) fn recognise(nest: &Nest<'_>) -> Option<GemmClass> {
    let [a, b] = nest.factors()?;
    with_roles(nest, a, b).or_else(|| with_roles(nest, b, a))
}

fn with_roles(nest: &Nest<'_>, a: &Access, b: &Access) -> Option<GemmClass> {
    if nest.can_leave(a) || nest.can_leave(b) {
        return None;
    }
    let (in_a, in_b) = (nest.strided(a), nest.strided(b));
    let run = |l: usize| Run {
        extent: nest.extent(l),
        strides: [
            in_a.strides[l],
            in_b.strides[l],
            nest.result.get(l).copied().unwrap_or(0),
        ],
    };
    let (mut rows, mut columns, mut inner, mut batch) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut row = vec![0; nest.parallel];
    let mut channel = vec![0; nest.parallel];
    for l in nest.loops() {
        match (nest.is_reduction(l), in_a.strides[l] != 0, in_b.strides[l] != 0) {
            (true, true, true) => inner.push(run(l)),
            (false, true, false) => rows.push((l, run(l))),
            (false, false, true) => {
                channel[l] = nest.result[l];
                columns.push(run(l));
            }
            (false, true, true) => batch.push(run(l)),
            _ => return None,
        }
    }
    // The order of the summed loops is free.
    inner.sort_by_key(|r| std::cmp::Reverse(r.strides[0]));
    let k = collapse(&inner, Run::unit())?;
    let n = collapse(&columns, Run::unit())?;
    if columns.is_empty() || n.strides[2] != 1 {
        return None;
    }
    // Loops over rows that cannot be collapsed become batch loops with stride 0 in B.
    let mut m = Run::unit();
    for &(l, r) in rows.iter().rev() {
        match collapse(&[r], m) {
            Some(joined) => {
                row[l] = m.extent;
                m = joined;
            }
            None => batch.insert(0, r),
        }
    }
    batch.sort_by_key(|r| std::cmp::Reverse(r.strides[2]));
    Some(GemmClass {
        m: m.extent,
        n: n.extent,
        k: k.extent,
        batch: batch.iter().map(|r| r.batch_loop()).collect(),
        a: GemmOperand {
            tensor: a.tensor,
            offset: in_a.offset,
            outer: m.strides[0],
            inner: k.strides[0],
        },
        b: GemmOperand {
            tensor: b.tensor,
            offset: in_b.offset,
            outer: k.strides[1],
            inner: n.strides[1],
        },
        c_row_stride: if m.extent == 1 { n.extent } else { m.strides[2] },
        epilogue: nest.epilogue(&channel, Some(&row))?,
    })
}

impl Run {
    fn unit() -> Run {
        Run {
            extent: 1,
            strides: [0; 3],
        }
    }

    fn batch_loop(&self) -> BatchLoop {
        let [a, b, c] = self.strides;
        BatchLoop {
            extent: self.extent,
            a,
            b,
            c,
        }
    }
}

/// Collapses the loops `outer`, outermost first, and `inner` into one; `None` if the strides of an operand do not allow it.
fn collapse(outer: &[Run], inner: Run) -> Option<Run> {
    outer.iter().rev().try_fold(inner, |inner, &outer| {
        if inner.extent == 1 {
            return Some(outer);
        }
        let runs_on = |(o, i): (&i64, &i64)| *o == i * inner.extent;
        outer.strides.iter().zip(&inner.strides).all(runs_on).then_some(Run {
            extent: outer.extent * inner.extent,
            strides: inner.strides,
        })
    })
}
