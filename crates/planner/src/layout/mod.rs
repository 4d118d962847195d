//! Selection of memory layouts: which tensors are stored in channel blocks.
//!
//! Convolutions compute in blocked layout; pooling, concatenation of channels and pointwise nests follow their operands. Everything else is plain (dense,
//! row-major). The layouts of all tensors are chosen before the kernels, so that the parts of a concatenation can be written directly into its memory.

use frazil_ir::DType;
use frazil_runtime::expr::ExprOp;
use frazil_runtime::structured::{Structured, TensorId, ViewKind};
pub mod rows;
mod text;

pub use text::text;

use crate::family::{KernelFamily, Selection};
use crate::target::Target;
use frazil_tensor_ir::affine::{Strided, can_leave};
use frazil_tensor_ir::graph::{TensorGraph, TensorOp};
use frazil_tensor_ir::pattern::{Class, ConcatClass, PoolClass, classify};
use rows::RowGroup;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The sizes of a tensor in blocked layout, as a batch of images. The tensor has the same elements as the images
/// `[batch, channels, height, width]` in row-major order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageShape {
    /// Number of images.
    pub batch: i64,
    /// Number of channels.
    pub channels: i64,
    /// Number of rows of pixels.
    pub height: i64,
    /// Number of columns of pixels.
    pub width: i64,
}

impl ImageShape {
    /// Returns the images of a tensor with the sizes `[batch, channels, spatial...]` and one or two spatial dimensions; `None` for other sizes.
    pub fn of(sizes: &[i64]) -> Option<ImageShape> {
        let (&[batch, channels], spatial) = sizes.split_first_chunk::<2>()?;
        let (height, width) = match *spatial {
            [width] => (1, width),
            [height, width] => (height, width),
            _ => return None,
        };
        Some(ImageShape {
            batch,
            channels,
            height,
            width,
        })
    }

    /// Returns the number of pixels of a channel.
    pub fn plane(&self) -> i64 {
        self.height * self.width
    }

    /// Returns true if the layout in blocks of `block` channels is equal to the plain layout.
    pub fn is_plain_too(&self, block: i64) -> bool {
        self.plane() == 1 && (self.batch == 1 || self.channels % block == 0)
    }
}

/// The position of a tensor inside the memory of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The concatenation.
    pub parent: TensorId,
    /// First channel (blocked), or first element (plain).
    pub from: i64,
}

/// The chosen layouts of a graph's tensors.
#[derive(Debug, Default)]
pub struct Layouts {
    /// The kernels of added families, by the nest that each computes. The results of these nests have plain layout; the nests are not in `classes`.
    pub selected: FxHashMap<TensorId, Selection>,
    /// The classes of all other live loop nests.
    pub classes: FxHashMap<TensorId, Class>,
    /// The tensors in blocked layout.
    pub blocked: FxHashMap<TensorId, ImageShape>,
    /// Parts of concatenations that are written directly into the memory of the concatenation.
    pub inside: FxHashMap<TensorId, Inside>,
    /// Groups of nests that run as one kernel, by the last nest of each.
    pub rows: FxHashMap<TensorId, RowGroup>,
    /// Nests whose results no kernel reads, because the kernel reads the operand of the nest instead.
    pub unread: FxHashSet<TensorId>,
}

/// Selects kernels of `families`, and chooses the layouts of all other tensors for `target`.
pub fn choose(graph: &TensorGraph, families: &[Arc<dyn KernelFamily>], target: &Target) -> Layouts {
    let mut layouts = Layouts::default();
    let block = target.vector().lanes;
    let live = graph.live_ids();
    for &id in &live {
        match graph.op(id) {
            TensorOp::Input(_)
            | TensorOp::Constant(_)
            | TensorOp::Gather(_)
            | TensorOp::Call(_)
            | TensorOp::CallResult { .. } => {}
            TensorOp::View(v) => {
                if let (ViewKind::Reshape, Some(&images)) = (&v.kind, layouts.blocked.get(&v.tensor)) {
                    layouts.blocked.insert(id, images);
                }
            }
            TensorOp::Nest(s) => {
                if let Some(selection) = families.iter().find_map(|f| f.select(graph, id, target)) {
                    layouts.selected.insert(id, selection);
                    continue;
                }
                let class = classify(graph, s);
                if let Some(images) = layouts.images_of(graph, s, &class) {
                    layouts.blocked.insert(id, images);
                }
                layouts.classes.insert(id, class);
            }
        }
    }
    // Later concatenations first, so that one inside of another has its place before its own parts get theirs.
    for &id in live.iter().rev() {
        if let Some(Class::Concat(c)) = layouts.classes.get(&id) {
            let c = c.clone();
            layouts.place_parts(graph, id, &c, block);
        }
    }
    layouts.unread = layouts.spread_for_convolutions(graph);
    layouts.rows = rows::find(graph, &layouts);
    layouts
}

impl Layouts {
    fn images_of(&self, graph: &TensorGraph, s: &Structured, class: &Class) -> Option<ImageShape> {
        match class {
            Class::Conv(c) => Some(ImageShape {
                batch: c.shape.batch,
                channels: c.shape.out_channels,
                height: c.shape.output[0],
                width: c.shape.output[1],
            }),
            Class::Pool(p) => self.pool_is_blocked(p).then_some(ImageShape {
                batch: p.batch,
                channels: p.channels,
                height: p.output_size[0],
                width: p.output_size[1],
            }),
            Class::Concat(c) => {
                let images = ImageShape::of(&s.output.sizes)?;
                let blocked = c.parts.iter().filter(|p| self.blocked.contains_key(&p.tensor)).count();
                let f32s = s.output.dtype == DType::Float;
                (c.axis == 1 && f32s && 2 * blocked > c.parts.len()).then_some(images)
            }
            Class::Pointwise => self.pointwise_images(graph, s),
            Class::Gemm(_) | Class::General => None,
        }
    }

    /// Returns the zero insertions whose results only convolutions read. The kernels of these convolutions skip the inserted zeros.
    fn spread_for_convolutions(&self, graph: &TensorGraph) -> FxHashSet<TensorId> {
        let spread = |id: TensorId| match self.classes.get(&id) {
            Some(Class::Conv(c)) => c.spread.as_ref().map(|s| s.nest),
            _ => None,
        };
        let live = graph.live_ids();
        let mut found: FxHashSet<TensorId> = live.iter().filter_map(|&id| spread(id)).collect();
        for &id in &live {
            // A reshape reads nothing by itself.
            let reads = graph.operands(id).into_iter().map(|t| graph.root(t));
            let reshape = matches!(graph.op(id), TensorOp::View(v) if v.kind == ViewKind::Reshape);
            for nest in reads.filter(|&t| !reshape && spread(id) != Some(t)) {
                found.remove(&nest);
            }
        }
        for &output in graph.outputs() {
            found.remove(&graph.root(output));
        }
        found
    }

    /// Returns whether pooling runs in blocked layout. Converting a plain operand pays for sliding windows, but not for reductions of whole rows or images.
    fn pool_is_blocked(&self, p: &PoolClass) -> bool {
        self.blocked.contains_key(&p.input) || p.slides()
    }

    /// Returns the images that a pointwise nest computes, if it can run on blocks: all dtypes are f32, every operand is read by element, by channel or as a
    /// scalar, and at least one operand is in blocked layout already.
    fn pointwise_images(&self, graph: &TensorGraph, s: &Structured) -> Option<ImageShape> {
        let images = ImageShape::of(&s.output.sizes)?;
        let is_index = |op: &ExprOp| matches!(op, ExprOp::Index(_));
        if s.output.dtype != DType::Float || s.body.nodes().iter().any(|n| is_index(&n.op)) {
            return None;
        }
        let mut any = false;
        for access in &s.inputs {
            let shape = graph.shape(access.tensor);
            if shape.dtype != DType::Float || can_leave(access, &shape.sizes, &s.domain) {
                return None;
            }
            let read = ImageRead::of(graph, s, access)?;
            let elementwise = read == ImageRead::Element;
            any |= elementwise && self.blocked.get(&access.tensor).is_some_and(|i| *i == images);
        }
        any.then_some(images)
    }

    fn place_parts(&mut self, graph: &TensorGraph, id: TensorId, c: &ConcatClass, block: i64) {
        let sizes = &graph.shape(id).sizes;
        let in_blocks = self.blocked.contains_key(&id);
        let leading: i64 = sizes[..c.axis].iter().product();
        let inner: i64 = sizes[c.axis + 1..].iter().product();
        for (i, part) in c.parts.iter().enumerate() {
            let root = graph.root(part.tensor);
            let computed = graph.as_nest(root).is_some();
            let whole = part.from == 0 && graph.shape(part.tensor).sizes.get(c.axis) == Some(&part.count);
            let once = c.parts.iter().filter(|p| graph.root(p.tensor) == root).count() == 1;
            let is_output = graph.outputs().iter().any(|&o| graph.root(o) == root);
            let free = !self.inside.contains_key(&root) && !is_output;
            let part_in_blocks = self.blocked.contains_key(&part.tensor);
            // A last block that is padded may only be followed by nothing.
            let last = i + 1 == c.parts.len();
            let fits = match in_blocks {
                true => part_in_blocks && part.to % block == 0 && (part.count % block == 0 || last),
                false => !part_in_blocks && leading == 1 && (part.to * inner) % 16 == 0,
            };
            if computed && whole && once && free && fits {
                let from = if in_blocks { part.to } else { part.to * inner };
                self.inside.insert(root, Inside { parent: id, from });
            }
        }
    }
}

/// Access of a pointwise loop nest over images to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageRead {
    /// The element at the same position.
    Element,
    /// One element per image and channel.
    ImageChannel,
    /// One element per channel, starting with this element.
    Channel(i64),
    /// One element for all positions.
    Scalar(i64),
}

impl ImageRead {
    /// Classifies a read of a nest whose result is images.
    pub fn of(graph: &TensorGraph, s: &Structured, access: &frazil_runtime::structured::Access) -> Option<ImageRead> {
        let images = ImageShape::of(&s.output.sizes)?;
        let Strided { strides, offset } = Strided::of(access, &graph.shape(access.tensor).sizes, &s.domain);
        let expected = |n: i64, c: i64, spatial: &dyn Fn(usize) -> i64| {
            s.domain.iter().enumerate().all(|(l, &extent)| {
                let stride = match l {
                    0 => n,
                    1 => c,
                    _ => spatial(l),
                };
                extent == 1 || strides[l] == stride
            })
        };
        let plane = images.plane();
        let dense = |l: usize| s.domain[l + 1..].iter().product::<i64>();
        let none = |_: usize| 0;
        Some(if expected(0, 0, &none) {
            ImageRead::Scalar(offset)
        } else if offset == 0 && expected(images.channels * plane, plane, &dense) {
            ImageRead::Element
        } else if expected(0, 1, &none) {
            ImageRead::Channel(offset)
        } else if offset == 0 && expected(images.channels, 1, &none) {
            ImageRead::ImageChannel
        } else {
            return None;
        })
    }
}
