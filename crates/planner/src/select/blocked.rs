//! Selection of kernels on blocked tensors.

use super::Builder;
use super::constants::{Weights, floats};
use super::counts;
use super::nest::single;
use crate::kernel::{
    ActivationLayout, BlockedShape, Conv, CopyChannels, Depthwise, Epilogue, EpilogueOperand, KernelSpec, Place, Pool,
    PoolKind, Read, Stage, StridedOutput, Winograd, Write,
};
use crate::layout::{ImageRead, ImageShape};
use crate::options::PlanSizes;
use crate::packed::Form;
use crate::schedule::{Home, Slice};
use frazil_ir::{DType, TensorData};
use frazil_runtime::structured::{Affine, Combine, Structured, TensorId};
use frazil_tensor_ir::pattern::{ConcatClass, ConvClass, EpilogueClass, Phase, PoolClass};
use std::sync::Arc;

impl Builder<'_> {
    pub(super) fn conv(&mut self, id: TensorId, c: &ConvClass, images: ImageShape) {
        let Some(weights) = self.graph.as_constant(c.weight).cloned() else {
            return;
        };
        let (output_shape, output) = self.blocked_result(id, images);
        let (mut epilogue, mut operands) = self.blocked_epilogue(&c.epilogue, images, output_shape);
        if self.options.sizes == PlanSizes::Any {
            if !epilogue.begins_with_bias() {
                epilogue = Epilogue::bias().then(&epilogue.expr, &epilogue.operands);
                operands.insert(0, self.no_bias(images.channels));
            }
            epilogue = epilogue.in_standard_order();
        }
        for phase in c.phases() {
            let first = phase.first[0] * output_shape.row_elements() + phase.first[1] * output_shape.block;
            let at_first = |slice: Slice| slice.at(first as u64 * 4);
            let (spec, mut buffers) = self.convolution(&phase, &weights, output_shape, epilogue.clone());
            buffers.extend(
                epilogue
                    .operands
                    .iter()
                    .zip(&operands)
                    .map(|(kind, &slice)| match kind {
                        EpilogueOperand::Elementwise => at_first(slice),
                        _ => slice,
                    }),
            );
            buffers.push(at_first(output));
            self.step(spec, buffers);
        }
    }

    /// Returns a bias that changes no result, so that convolutions without a bias use the code of those with a bias: −0, since −0 + −0 is −0.
    fn no_bias(&mut self, channels: i64) -> Slice {
        let padded = (channels as usize).next_multiple_of(self.lanes() as usize);
        if let Some(&slice) = self.no_bias.get(&padded) {
            return slice;
        }
        let slice = self.stored_unshared(padded * 4, |to| {
            for to in to.as_chunks_mut().0 {
                *to = (-0.0_f32).to_le_bytes();
            }
        });
        self.no_bias.insert(padded, slice);
        slice
    }

    /// Returns the kernel of a convolution into `output`, and its operands: the input and the packed weights.
    fn convolution(
        &mut self,
        Phase { conv: c, step, .. }: &Phase,
        weights: &Arc<TensorData>,
        output: BlockedShape,
        epilogue: Epilogue,
    ) -> (KernelSpec, Vec<Slice>) {
        let input_images = ImageShape {
            batch: c.shape.batch,
            channels: c.shape.in_channels,
            height: c.shape.input[0],
            width: c.shape.input[1],
        };
        let form = |vectors: i64, plain_input: bool, winograd: Option<Winograd>| Form::Conv {
            offset: c.weight_offset,
            strides: c.weight_strides,
            channels: [c.shape.in_channels, c.shape.out_channels],
            groups: c.shape.groups,
            kernel: c.shape.kernel,
            block: output.block,
            vectors,
            plain_input,
            winograd: winograd.map(|w| [w.outputs, w.vectors]),
        };
        if c.shape.is_depthwise() {
            let (shape, input) = self.blocked(c.input, input_images);
            let mut spec = Depthwise::new(c.shape, epilogue, self.target.machine);
            if self.options.sizes != PlanSizes::One {
                spec = spec.for_any_size(self.target.machine);
            }
            spec.input_batch_stride = shape.batch_stride;
            spec.output_batch_stride = output.batch_stride;
            let (packing, class) = (spec.clone(), c.clone());
            let pack = move |w: &TensorData, to: &mut [f32]| packing.pack_into(&Weights::of(&class, w).all(), to);
            let weights = self.stored_floats(weights, form(0, false, None), spec.packed_elements(), pack);
            return (spec.into(), vec![input, weights]);
        }
        // Few channels would leave most lanes of a block empty.
        let in_blocks = self.layouts.blocked.contains_key(&c.input);
        let plain = !in_blocks && c.shape.groups == 1 && c.shape.in_channels < self.lanes();
        let place = StridedOutput {
            image: [output.height, output.width],
            step: *step,
        };
        let mut spec = Conv::with_output(c.shape, place, plain, epilogue, self.target.machine);
        let input = if plain {
            self.plain(c.input)
        } else {
            let (shape, input) = self.blocked(c.input, input_images);
            spec.input = ActivationLayout::Blocked {
                batch_stride: shape.batch_stride,
            };
            input
        };
        spec.output_batch_stride = output.batch_stride;
        if self.options.sizes != PlanSizes::One {
            spec = spec.for_any_size(self.target.machine);
        }
        self.tune(&mut spec);
        let form = form(spec.tile.vectors, plain, spec.winograd);
        let (packing, class) = (spec.clone(), c.clone());
        let pack = move |w: &TensorData, to: &mut [f32]| {
            let weights = Weights::of(&class, w);
            packing.pack_into(&|first, to| weights.copy(first, to), to);
        };
        let weights = match spec.transformation() {
            Some(transformation) => self.transformed(weights, form, transformation, pack),
            None => self.stored_floats(weights, form, spec.packed_elements(), pack),
        };
        (spec.into(), vec![input, weights])
    }

    pub(super) fn pool(&mut self, id: TensorId, p: &PoolClass, images: ImageShape) {
        let input_images = ImageShape {
            batch: p.batch,
            channels: p.channels,
            height: p.input_size[0],
            width: p.input_size[1],
        };
        let (input_shape, input) = self.blocked(p.input, input_images);
        let (output_shape, output) = self.blocked_result(id, images);
        let (mut epilogue, operands) = self.blocked_epilogue(&p.epilogue, images, output_shape);
        let kind = match p.combine {
            Combine::Max => PoolKind::Max,
            _ => {
                let (divisor, rest) = counts::split(epilogue);
                epilogue = rest;
                PoolKind::Average {
                    count_include_pad: true,
                    divisor: Some(divisor),
                }
            }
        };
        let spec = Pool {
            kind,
            input: input_shape,
            output: output_shape,
            kernel: p.kernel,
            stride: p.stride,
            padding: p.padding,
            dilation: p.dilation,
            epilogue,
        };
        let mut buffers = vec![input];
        buffers.extend(operands);
        buffers.push(output);
        self.step(spec, buffers);
    }

    /// Places a part that consists of whole blocks inside the memory of the concatenation. Copies the parts that are not written in place.
    pub(super) fn concat_blocked(&mut self, id: TensorId, c: &ConcatClass, images: ImageShape) {
        if let [part] = c.parts.as_slice()
            && !self.layouts.inside.contains_key(&id)
            && let Some(whole) = ImageShape::of(&self.graph.shape(part.tensor).sizes)
            && part.from % self.lanes() == 0
        {
            let (shape, slice) = self.blocked(part.tensor, whole);
            let mut mine = self.dense(images);
            if mine.batch > 1 {
                mine.batch_stride = shape.batch_stride;
            }
            let first = slice.at((part.from / shape.block * shape.plane_elements() * 4) as u64);
            self.located.entry(id).or_default().blocked = Some((mine, first));
            return;
        }
        let (output_shape, output) = self.blocked_result(id, images);
        for part in &c.parts {
            if self.is_in_place(part.tensor, id) {
                continue;
            }
            let Some(part_images) = ImageShape::of(&self.graph.shape(part.tensor).sizes) else {
                continue;
            };
            let (input_shape, input) = self.blocked(part.tensor, part_images);
            let spec = CopyChannels {
                input: input_shape,
                output: output_shape,
                from: part.from,
                to: part.to,
                count: part.count,
            };
            self.step(spec, vec![input, output]);
        }
    }

    /// Selects the kernel of a pointwise nest on blocks. Padding lanes are computed like others, and their values are not used.
    pub(super) fn pointwise_blocked(&mut self, id: TensorId, s: &Structured, images: ImageShape) {
        let (output_shape, output) = self.blocked_result(id, images);
        let (blocks, lanes, plane) = (output_shape.channel_blocks(), output_shape.block, images.plane());
        // Loops: image, block, pixel, lane.
        let affine = |image: i64, block: i64, pixel: i64, lane: i64| Affine {
            coefficients: smallvec::smallvec![image, block, pixel, lane],
            offset: 0,
        };
        let whole = |shape: &BlockedShape| affine(shape.batch_stride, shape.plane_elements(), lanes, 1);
        let mut buffers: Vec<Slice> = Vec::new();
        let mut inputs = Vec::new();
        for access in &s.inputs {
            let (slice, index) = match ImageRead::of(self.graph, s, access) {
                Some(ImageRead::Element) => {
                    let (shape, slice) = self.blocked(access.tensor, images);
                    (slice, whole(&shape))
                }
                Some(ImageRead::ImageChannel) => {
                    let pixel = ImageShape {
                        height: 1,
                        width: 1,
                        ..images
                    };
                    let (shape, slice) = self.blocked(access.tensor, pixel);
                    (slice, affine(shape.batch_stride, lanes, 0, 1))
                }
                Some(ImageRead::Channel(offset)) => (
                    self.channels(access.tensor, offset, images.channels),
                    affine(0, lanes, 0, 1),
                ),
                Some(ImageRead::Scalar(offset)) => {
                    (self.plain(access.tensor).at(offset as u64 * 4), affine(0, 0, 0, 0))
                }
                // Layouts are only chosen for nests whose reads are one of these.
                None => continue,
            };
            let place = buffers.iter().position(|b| *b == slice).unwrap_or_else(|| {
                buffers.push(slice);
                buffers.len() - 1
            });
            inputs.push(Read::new(Place::Argument(place as u32), index));
        }
        let result = Write {
            place: Place::Argument(buffers.len() as u32),
            index: whole(&output_shape),
        };
        let stage = Stage {
            accumulate: s.accumulate,
            ..Stage::pointwise(
                smallvec::smallvec![images.batch, blocks, plane, lanes],
                inputs,
                s.body.clone(),
                result,
            )
        };
        buffers.push(output);
        let spec = single(stage, vec![DType::Float; buffers.len()], self.target.machine);
        self.step(spec, buffers);
    }

    fn blocked_epilogue(
        &mut self,
        e: &EpilogueClass,
        images: ImageShape,
        output: BlockedShape,
    ) -> (Epilogue, Vec<Slice>) {
        let mut slices = Vec::new();
        for operand in &e.operands {
            slices.push(match operand.kind {
                EpilogueOperand::Scalar | EpilogueOperand::Row => {
                    self.plain(operand.tensor).at(operand.offset as u64 * 4)
                }
                EpilogueOperand::Channel => self.channels(operand.tensor, operand.offset, images.channels),
                EpilogueOperand::Elementwise => self.at_strides_of(operand.tensor, images, output),
            });
        }
        let epilogue = Epilogue {
            expr: e.expr.clone(),
            operands: e.operands.iter().map(|o| o.kind).collect(),
        };
        (epilogue, slices)
    }

    /// Returns the tensor in blocks with the strides of `output`. It is copied if the distance between its images differs.
    fn at_strides_of(&mut self, id: TensorId, images: ImageShape, output: BlockedShape) -> Slice {
        let (shape, slice) = self.blocked(id, images);
        if shape.batch == 1 || shape.batch_stride == output.batch_stride {
            return slice;
        }
        let copy = self.schedule.workspace(output.bytes());
        let spec = CopyChannels {
            input: shape,
            output,
            from: 0,
            to: 0,
            count: images.channels,
        };
        self.step(spec, vec![slice, copy]);
        copy
    }

    /// Returns `count` elements of `id` from element `offset` on, in a buffer that is padded to whole blocks.
    fn channels(&mut self, id: TensorId, offset: i64, count: i64) -> Slice {
        let id = self.root(id);
        let padded = (count as usize).next_multiple_of(self.lanes() as usize);
        if let Some(data) = self.graph.as_constant(id).cloned() {
            let form = Form::Channels {
                first: offset,
                count,
                block: self.lanes(),
            };
            return self.stored_floats(&data, form, padded, move |data, to| {
                let values = floats(data);
                let values = values.iter().skip(offset as usize).take(count as usize);
                for (to, value) in to.iter_mut().zip(values) {
                    *to = *value;
                }
            });
        }
        let slice = self.plain(id);
        // A buffer of the workspace goes on to a multiple of 64 bytes.
        let roomy = matches!(self.schedule.home(slice), Home::Workspace { .. }) && slice.offset == 0;
        if offset == 0 && (count as usize == padded || roomy) {
            return slice;
        }
        let copy = self.schedule.workspace(padded * 4);
        let shape = frazil_runtime::structured::TensorShape {
            dtype: DType::Float,
            sizes: smallvec::smallvec![count],
        };
        self.copy(&shape, slice.at(offset as u64 * 4), copy);
        copy
    }
}
