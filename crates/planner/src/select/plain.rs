//! Kernels on row-major tensors: matmuls, concatenations, copies.

use super::Builder;
use super::constants::Weights;
use super::nest::single;
use crate::kernel::{Epilogue, EpilogueOperand, Gemm, GemmB, GemmBatch, Place, Read, Stage, Write};
use crate::packed::Form;
use crate::schedule::Slice;
use frazil_runtime::expr::Expr;
use frazil_runtime::structured::{Affine, Dims, TensorId, TensorShape};
use frazil_tensor_ir::pattern::{ConcatClass, EpilogueClass, GemmClass};

impl Builder<'_> {
    pub(super) fn gemm(&mut self, id: TensorId, g: &GemmClass) {
        let element = 4;
        let products = g.batch.iter().map(|b| b.extent).product();
        let weights = self.graph.as_constant(g.b.tensor).cloned();
        let weights = weights.filter(|_| g.batch.iter().all(|b| b.b == 0));
        let mut spec = Gemm {
            m: g.m,
            n: g.n,
            k: g.k,
            batch: g
                .batch
                .iter()
                .map(|b| GemmBatch {
                    extent: b.extent,
                    a: b.a,
                    b: b.b,
                    c: b.c,
                })
                .collect(),
            a_row_stride: if g.m == 1 { g.k } else { g.a.outer },
            a_col_stride: if g.k == 1 { 1 } else { g.a.inner },
            b: GemmB::Packed,
            c_row_stride: g.c_row_stride,
            lanes: self.lanes(),
            tile: self.options.gemm_tile(products, [g.m, g.n, g.k], weights.is_some()),
            epilogue: Epilogue::none(),
        };
        let a = self.plain(g.a.tensor).at(g.a.offset as u64 * element);
        if weights.is_none() {
            spec.b = GemmB::Strided {
                k_stride: g.b.outer,
                n_stride: g.b.inner,
            };
        }
        self.tune(&mut spec);
        let b = match weights {
            Some(data) => {
                let form = Form::Gemm {
                    offset: g.b.offset,
                    strides: [g.b.outer, g.b.inner],
                    sizes: [g.n, g.k],
                    columns: spec.tile_columns(),
                };
                let (packing, b) = (spec.clone(), g.b);
                self.stored_floats(&data, form, spec.packed_elements(), move |data, to| {
                    let (weights, first) = (Weights::in_order(data), b.offset as usize);
                    let read = |at: usize, to: &mut [f32]| weights.copy(first + at, to);
                    packing.pack_b_into(read, b.outer, b.inner, to);
                })
            }
            None => self.plain(g.b.tensor).at(g.b.offset as u64 * element),
        };
        let (epilogue, operands) = self.plain_epilogue(&g.epilogue);
        spec.epilogue = epilogue;
        let mut buffers = vec![a, b];
        buffers.extend(operands);
        buffers.push(self.plain_result(id));
        self.step(spec, buffers);
    }

    fn plain_epilogue(&mut self, e: &EpilogueClass) -> (Epilogue, Vec<Slice>) {
        let slices = e
            .operands
            .iter()
            .map(|o| self.plain(o.tensor).at(o.offset as u64 * 4))
            .collect();
        let epilogue = Epilogue {
            expr: e.expr.clone(),
            operands: e.operands.iter().map(|o| o.kind).collect::<Vec<EpilogueOperand>>(),
        };
        (epilogue, slices)
    }

    /// Places a contiguous part inside the memory of the concatenation. Copies the parts that are not written in place.
    pub(super) fn concat_plain(&mut self, id: TensorId, c: &ConcatClass) {
        let shape = self.graph.shape(id).clone();
        let leading: i64 = shape.sizes[..c.axis].iter().product();
        let inner: i64 = shape.sizes[c.axis + 1..].iter().product();
        if let [part] = c.parts.as_slice()
            && leading == 1
            && !self.layouts.inside.contains_key(&id)
        {
            let first = (part.from * inner) as u64 * shape.dtype.size() as u64;
            let slice = self.plain(part.tensor).at(first);
            self.located.entry(id).or_default().plain = Some(slice);
            return;
        }
        let out = self.plain_result(id);
        let extent = shape.sizes[c.axis];
        for part in &c.parts {
            if self.is_in_place(part.tensor, id) {
                continue;
            }
            let part_extent = self.graph.shape(part.tensor).sizes[c.axis];
            let from = self.plain(part.tensor);
            let move_ = Move {
                domain: smallvec::smallvec![leading, part.count * inner],
                from: Affine {
                    coefficients: smallvec::smallvec![part_extent * inner, 1],
                    offset: part.from * inner,
                },
                to: Affine {
                    coefficients: smallvec::smallvec![extent * inner, 1],
                    offset: part.to * inner,
                },
            };
            self.move_elements(&shape, move_, from, out);
        }
    }

    /// Copies a dense tensor.
    pub(super) fn copy(&mut self, shape: &TensorShape, from: Slice, to: Slice) {
        let whole = Move {
            domain: smallvec::smallvec![shape.numel()],
            from: Affine::index(1, 0),
            to: Affine::index(1, 0),
        };
        self.move_elements(shape, whole, from, to);
    }

    fn move_elements(&mut self, shape: &TensorShape, m: Move, from: Slice, to: Slice) {
        let input = Read::new(Place::Argument(0), m.from);
        let output = Write {
            place: Place::Argument(1),
            index: m.to,
        };
        let stage = Stage::pointwise(m.domain, vec![input], Expr::identity(shape.dtype), output);
        let spec = single(stage, vec![shape.dtype; 2], self.target.machine);
        self.step(spec, vec![from, to]);
    }
}

/// Elements that are copied: source and destination over a domain.
struct Move {
    domain: Dims,
    from: Affine,
    to: Affine,
}
