//! Reads at places that tensors name, and calls of the host program.

use super::Builder;
use super::nest::single;
use crate::kernel::{HostKernel, Indirect, Place, Read, Stage, Write};
use frazil_ir::contiguous_strides;
use frazil_runtime::expr::{Expr, ExprOp};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::structured::{Affine, TensorId};
use frazil_tensor_ir::affine::linear;
use frazil_tensor_ir::call::RuntimeCall;
use std::sync::Arc;

impl Builder<'_> {
    /// A loop nest that copies; a value outside of its range, which a check of the graph reports, reads the nearest place.
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

    /// All results of a call in one buffer.
    pub(super) fn host(&mut self, id: TensorId, call: &Arc<RuntimeCall>) {
        let mut buffers: Vec<_> = call.inputs.iter().map(|&t| self.plain(t)).collect();
        buffers.push(self.plain_result(id));
        let kernel = HostKernel {
            number: self.schedule.hosts.len() as u32,
            inputs: call.inputs.len() as u32,
        };
        self.schedule.hosts.push(call.clone());
        self.step(kernel, buffers);
    }

    /// One of a call's results, where it lies in their buffer.
    pub(super) fn host_result(&mut self, id: TensorId, host: TensorId, result: usize) {
        let offset = match self.graph.op(host) {
            frazil_tensor_ir::graph::TensorOp::Call(call) => call.offset(result),
            _ => 0,
        };
        let slice = self.plain(host).at(offset as u64);
        self.located.entry(id).or_default().plain = Some(slice);
    }
}
