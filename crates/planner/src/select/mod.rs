//! Kernel selection: from the fused graph to kernels over buffers. Each live nest becomes one kernel. Layout conversions are inserted only where layouts
//! differ.

mod blocked;
mod constants;
mod counts;
mod indirect;
mod kept;
mod nest;
mod plain;

use crate::error::LowerError;
use crate::family::{Operand, Selection};
use crate::kernel::{BlockedShape, Kernel, KernelSpec, Reorder, ReorderDirection};
use crate::layout::{ImageShape, Layouts};
use crate::options::{LowerOptions, PlanSizes};
use crate::packed::Form;
use crate::schedule::{Home, Schedule, Slice};
use crate::target::Target;
use constants::{Stored, copy_in_order};
use frazil_runtime::structured::{TensorId, TensorShape};
use frazil_tensor_ir::graph::{Origin, TensorGraph, TensorOp};
use frazil_tensor_ir::pattern::Class;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The buffers of a tensor, one for each layout that a kernel needs.
#[derive(Clone, Copy, Debug, Default)]
struct Located {
    plain: Option<Slice>,
    blocked: Option<(BlockedShape, Slice)>,
}

/// For each tensor that is an output, the index of the first such output.
pub fn schedule(graph: &TensorGraph, layouts: &Layouts, options: &LowerOptions) -> Result<Schedule, LowerError> {
    let mut builder = Builder {
        graph,
        layouts,
        target: &options.target,
        options,
        schedule: Schedule::default(),
        located: FxHashMap::default(),
        outputs: FxHashMap::default(),
        in_rows: FxHashSet::default(),
        stored: Stored::default(),
        no_bias: FxHashMap::default(),
    };
    for group in layouts.rows.values() {
        let inner = &group.members[..group.members.len().saturating_sub(1)];
        builder.in_rows.extend(inner);
    }
    builder.in_rows.extend(&layouts.unread);
    for (i, &id) in graph.outputs().iter().enumerate() {
        builder.outputs.entry(builder.root(id)).or_insert(i as u32);
    }
    for id in graph.live_ids() {
        builder.origins_of(id, |b| b.tensor(id));
    }
    for (i, &id) in graph.outputs().iter().enumerate() {
        builder.deliver(i as u32, id);
    }
    let Builder {
        mut schedule, stored, ..
    } = builder;
    (schedule.constants, schedule.preparation.sources) = stored.write()?;
    Ok(schedule)
}

struct Builder<'a> {
    graph: &'a TensorGraph,
    layouts: &'a Layouts,
    target: &'a Target,
    options: &'a LowerOptions,
    schedule: Schedule,
    located: FxHashMap<TensorId, Located>,
    /// The output that a tensor is, the first where it is several.
    outputs: FxHashMap<TensorId, u32>,
    /// Nests that are computed by the kernel of a later nest, or that no kernel reads.
    in_rows: FxHashSet<TensorId>,
    /// The constants that have been placed.
    stored: Stored,
    /// Biases of no effect, by their padded number of channels.
    no_bias: FxHashMap<usize, Slice>,
}

impl Builder<'_> {
    fn lanes(&self) -> i64 {
        self.target.vector().lanes
    }

    /// Replaces the variant of a kernel by the one that was measured to be the fastest.
    fn tune<K: Kernel + Clone + PartialEq>(&self, kernel: &mut K) {
        let found = self.options.tuning.variant(kernel, self.target, self.options.threads);
        if let Some(found) = found.as_ref().and_then(|f| f.get::<K>()) {
            kernel.clone_from(found);
        }
    }

    /// Returns the tensor with whose memory `id` is stored.
    fn root(&self, id: TensorId) -> TensorId {
        self.graph.root(id)
    }

    /// Returns true if the kernel of `part` writes into the memory of the concatenation `parent`.
    fn is_in_place(&self, part: TensorId, parent: TensorId) -> bool {
        let inside = self.layouts.inside.get(&self.root(part));
        inside.is_some_and(|i| i.parent == parent)
    }

    /// Runs `emit`, and sets the origins of the steps that it adds to the operators of `id`.
    fn origins_of(&mut self, id: TensorId, emit: impl FnOnce(&mut Self)) {
        let first = self.schedule.steps.len();
        emit(self);
        let members = self.layouts.rows.get(&id).map_or(vec![id], |g| g.members.clone());
        let mut origins: Vec<Origin> = Vec::new();
        for origin in members.iter().flat_map(|&m| &self.graph.node(m).origins) {
            if !origins.contains(origin) {
                origins.push(origin.clone());
            }
        }
        for step in &mut self.schedule.steps[first..] {
            step.origins = origins.clone();
        }
    }

    /// Appends a call. Its last buffer is the result; scratch memory is appended to the buffers.
    fn step(&mut self, spec: impl Into<KernelSpec>, mut buffers: Vec<Slice>) {
        let spec = spec.into();
        let output = buffers.len().saturating_sub(1);
        if spec.scratch_bytes() > 0 {
            buffers.push(self.schedule.workspace(spec.scratch_bytes()));
        }
        self.schedule.steps.push(crate::schedule::Step {
            spec,
            buffers,
            output,
            origins: Vec::new(),
        });
    }

    fn tensor(&mut self, id: TensorId) {
        let s = match self.graph.op(id) {
            TensorOp::Nest(s) => s,
            TensorOp::Gather(g) => return self.gather(id, g),
            TensorOp::Call(call) => return self.runtime_call(id, call),
            TensorOp::CallResult { call, result } => return self.call_result(id, *call, *result as usize),
            TensorOp::Input(_) | TensorOp::Constant(_) | TensorOp::View(_) => return,
        };
        if self.in_rows.contains(&id) {
            return;
        }
        if let Some(selection) = self.layouts.selected.get(&id) {
            return self.added(id, selection);
        }
        if let Some(group) = self.layouts.rows.get(&id) {
            return self.loops(id, &group.members, group.outer);
        }
        let class = self.layouts.classes.get(&id).cloned().unwrap_or(Class::General);
        match (class, self.layouts.blocked.get(&id).copied()) {
            (Class::Conv(c), Some(images)) => self.conv(id, &c, images),
            (Class::Pool(p), Some(images)) => self.pool(id, &p, images),
            (Class::Concat(c), Some(images)) => self.concat_blocked(id, &c, images),
            (Class::Pointwise, Some(images)) => self.pointwise_blocked(id, s, images),
            (Class::Concat(c), None) => self.concat_plain(id, &c),
            (Class::Gemm(g), None) => self.gemm(id, &g),
            _ => self.loops(id, &[id], 0),
        }
    }

    /// Appends the kernel of an added family.
    fn added(&mut self, id: TensorId, selection: &Selection) {
        let mut buffers = Vec::with_capacity(selection.operands.len() + 1);
        for operand in &selection.operands {
            match operand {
                Operand::Tensor { tensor, offset } => {
                    let bytes = self.graph.shape(*tensor).dtype.size() as u64;
                    buffers.push(self.plain(*tensor).at(*offset as u64 * bytes));
                }
                Operand::Packed(packed) => {
                    let Some(data) = self.graph.as_constant(packed.constant).cloned() else {
                        // What is no constant has no packed form: its elements are passed as they are.
                        buffers.push(self.plain(packed.constant));
                        continue;
                    };
                    let form = Form::Added(packed.layout.clone());
                    let pack = Arc::clone(&packed.pack);
                    buffers.push(self.stored(&data, form, packed.bytes, move |data, to| pack(data, to)));
                }
            }
        }
        buffers.push(self.plain_result(id));
        self.step(selection.kernel.clone(), buffers);
    }

    /// Selects a kernel for any nests that have their first `outer` loops in common, over plain tensors.
    fn loops(&mut self, id: TensorId, members: &[TensorId], outer: usize) {
        let (mut spec, tensors) = nest::kernel(self.graph, members, outer, self.target.machine);
        if self.options.sizes != PlanSizes::One {
            counts::replace(&mut spec);
        }
        let mut buffers: Vec<Slice> = Vec::with_capacity(tensors.len() + 1);
        for (tensor, first) in tensors {
            let bytes = self.graph.shape(tensor).dtype.size() as u64;
            buffers.push(self.plain(tensor).at(first * bytes));
        }
        buffers.push(self.plain_result(id));
        self.step(spec, buffers);
    }

    /// Returns `id` in dense row-major order. Converts it if it is only stored in blocks.
    fn plain(&mut self, id: TensorId) -> Slice {
        let id = self.root(id);
        let found = self.located.get(&id).copied().unwrap_or_default();
        if let Some(slice) = found.plain {
            return slice;
        }
        let slice = match (self.graph.op(id), found.blocked) {
            (TensorOp::Input(i), _) => self.schedule.buffer(Home::Input(*i)),
            (TensorOp::Constant(data), _) => {
                let data = data.clone();
                let bytes = data.numel() as usize * data.dtype.size();
                self.stored(&data, Form::Plain, bytes, copy_in_order)
            }
            (_, Some((shape, slice))) if is_plain_too(&shape) => slice,
            (_, Some((shape, slice))) => {
                let out = self.workspace(self.graph.shape(id));
                self.reorder(ReorderDirection::ToPlain, shape, slice, out);
                out
            }
            // Operands come before their readers, so that only a result's own place is missing here.
            _ => self.workspace(self.graph.shape(id)),
        };
        self.located.entry(id).or_default().plain = Some(slice);
        slice
    }

    /// Returns `id` as images in blocks. Converts it if it is only stored in plain order.
    fn blocked(&mut self, id: TensorId, images: ImageShape) -> (BlockedShape, Slice) {
        let id = self.root(id);
        let dense = self.dense(images);
        if let Some((shape, slice)) = self.located.get(&id).copied().unwrap_or_default().blocked
            && shape.batch == images.batch
            && shape.channels == images.channels
            && shape.height * shape.width == images.plane()
        {
            let same = BlockedShape {
                batch_stride: shape.batch_stride,
                ..dense
            };
            return (same, slice);
        }
        let plain = self.plain(id);
        let out = self.schedule.workspace(dense.bytes());
        self.reorder(ReorderDirection::ToBlocked, dense, plain, out);
        let located = self.located.entry(id).or_default();
        located.blocked.get_or_insert((dense, out));
        (dense, out)
    }

    fn reorder(&mut self, direction: ReorderDirection, blocked: BlockedShape, from: Slice, to: Slice) {
        let spec = Reorder { direction, blocked };
        self.step(spec, vec![from, to]);
    }

    fn dense(&self, images: ImageShape) -> BlockedShape {
        BlockedShape::dense(images.batch, images.channels, images.height, images.width, self.lanes())
    }

    fn workspace(&mut self, shape: &TensorShape) -> Slice {
        self.schedule.workspace(shape.numel() as usize * shape.dtype.size())
    }

    /// Returns the buffer for the row-major result `id`: a part of its concatenation, an output, or a buffer of its own.
    fn plain_result(&mut self, id: TensorId) -> Slice {
        if let Some(slice) = self.located.get(&id).and_then(|l| l.plain) {
            return slice;
        }
        let shape = self.graph.shape(id);
        let slice = if let Some(inside) = self.layouts.inside.get(&id) {
            let parent = self.plain_result(inside.parent);
            parent.at(inside.from as u64 * shape.dtype.size() as u64)
        } else if let Some(&output) = self.outputs.get(&id) {
            self.schedule.buffer(Home::Output(output))
        } else {
            self.workspace(shape)
        };
        self.located.entry(id).or_default().plain = Some(slice);
        slice
    }

    /// Returns the buffer for the blocked result `id`: a part of its concatenation, an output, or a buffer of its own.
    fn blocked_result(&mut self, id: TensorId, images: ImageShape) -> (BlockedShape, Slice) {
        if let Some(found) = self.located.get(&id).and_then(|l| l.blocked) {
            return found;
        }
        let mut shape = self.dense(images);
        let slice = if let Some(inside) = self.layouts.inside.get(&id) {
            let parent_images = self.layouts.blocked.get(&inside.parent).copied().unwrap_or(images);
            let (parent, slice) = self.blocked_result(inside.parent, parent_images);
            if shape.batch > 1 {
                shape.batch_stride = parent.batch_stride;
            }
            slice.at((inside.from / shape.block * parent.plane_elements() * 4) as u64)
        } else {
            match self.outputs.get(&id) {
                Some(&output) if is_plain_too(&shape) && shape.channels % shape.block == 0 => {
                    self.schedule.buffer(Home::Output(output))
                }
                _ => self.schedule.workspace(shape.bytes()),
            }
        };
        self.located.entry(id).or_default().blocked = Some((shape, slice));
        (shape, slice)
    }

    /// Makes sure that output number `index` contains `id`.
    fn deliver(&mut self, index: u32, id: TensorId) {
        let root = self.root(id);
        let located = self.located.get(&root).copied().unwrap_or_default();
        let is_there = |s: Slice| self.schedule.home(s) == Home::Output(index);
        let blocked = located.blocked;
        if located.plain.is_some_and(is_there) || blocked.is_some_and(|(_, s)| is_there(s)) {
            return;
        }
        let out = self.schedule.buffer(Home::Output(index));
        match (located.plain, blocked) {
            (None, Some((shape, slice))) if !is_plain_too(&shape) => {
                self.reorder(ReorderDirection::ToPlain, shape, slice, out);
            }
            _ => {
                let from = self.plain(root);
                self.copy(self.graph.shape(root), from, out);
            }
        }
    }
}

/// Returns true if the blocked layout is equal to the plain layout.
fn is_plain_too(shape: &BlockedShape) -> bool {
    let images = ImageShape {
        batch: shape.batch,
        channels: shape.channels,
        height: shape.height,
        width: shape.width,
    };
    let dense = shape.batch == 1 || shape.batch_stride == shape.image_elements();
    dense && images.is_plain_too(shape.block)
}
