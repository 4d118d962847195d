//! Indirect reads, whose indices are elements of tensors, and runtime calls.

use super::Builder;
use super::nest::single;
use crate::kernel::{Indirect, Place, Read, RuntimeCallKernel, Stage, Write};
use frazil_ir::contiguous_strides;
use frazil_runtime::expr::{Expr, ExprOp};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::structured::{Affine, TensorId};
use frazil_tensor_ir::affine::linear;
use frazil_tensor_ir::call::RuntimeCall;
use std::sync::Arc;

impl Builder<'_> {
    /// Appends a loop nest that copies the elements. An index that is out of range reads the nearest element; a check of the graph reports it.
    pub(super) fn gather(&mut self, id: TensorId, g: &Gather) {
        let sizes = &g.output.sizes;
        let rank = sizes.len();
        let source = &self.graph.shape(g.tensor).sizes;
        let strides = contiguous_strides(source);
        let mut arguments = Vec::new();
        let mut buffers = Vec::new();
        let mut inputs = Vec::new();
        let mut indirect = Vec::new();
        let mut direct: Vec<Affine> = Vec::new();
        for (coordinate, (&extent, &stride)) in g.coordinates.iter().zip(source.iter().zip(&strides)) {
            match coordinate {
                Coordinate::Affine(map) => direct.push(map.clone()),
                Coordinate::Value { tensor, map } => {
                    direct.push(Affine::constant(rank, 0));
                    indirect.push(Indirect {
                        input: inputs.len() as u32,
                        stride,
                        extent: extent.max(1),
                    });
                    let shape = self.graph.shape(*tensor);
                    let index = linear(map, &shape.sizes, rank);
                    inputs.push(Read::new(Place::Argument(arguments.len() as u32), index));
                    arguments.push(shape.dtype);
                    buffers.push(self.plain(*tensor));
                }
            }
        }
        let read = Read::new(Place::Argument(arguments.len() as u32), linear(&direct, source, rank));
        inputs.push(Read { indirect, ..read });
        arguments.push(g.output.dtype);
        buffers.push(self.plain(g.tensor));
        let mut body = Expr::new();
        body.push(ExprOp::Input(inputs.len() as u32 - 1), g.output.dtype);
        let loops: Vec<Affine> = (0..rank).map(|l| Affine::index(rank, l)).collect();
        let output = Write {
            place: Place::Argument(arguments.len() as u32),
            index: linear(&loops, sizes, rank),
        };
        let stage = Stage::pointwise(sizes.clone(), inputs, body, output);
        arguments.push(g.output.dtype);
        buffers.push(self.plain_result(id));
        let spec = single(stage, arguments, self.target.machine);
        self.step(spec, buffers);
    }

    /// Appends a runtime call, with all its results in one buffer.
    pub(super) fn runtime_call(&mut self, id: TensorId, call: &Arc<RuntimeCall>) {
        let mut buffers: Vec<_> = call.inputs.iter().map(|&t| self.plain(t)).collect();
        buffers.push(self.plain_result(id));
        let kernel = RuntimeCallKernel {
            number: self.schedule.runtime_calls.len() as u32,
            inputs: call.inputs.len() as u32,
        };
        self.schedule.runtime_calls.push(call.clone());
        self.step(kernel, buffers);
    }

    /// Makes `id` one of the results of the runtime call `call`, a part of their buffer.
    pub(super) fn call_result(&mut self, id: TensorId, call: TensorId, result: usize) {
        let offset = match self.graph.op(call) {
            frazil_tensor_ir::graph::TensorOp::Call(call) => call.offset(result),
            _ => 0,
        };
        let slice = self.plain(call).at(offset as u64);
        self.located.entry(id).or_default().plain = Some(slice);
    }
}
