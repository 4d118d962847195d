//! 3-D convolutions as 2-D convolutions.
//!
//! A result at depth d is a sum over the taps along the depth. These taps are treated as additional input channels: for each depth, the slices that the taps
//! read are copied one after the other. So the kernels for 2-D convolutions compute 3-D convolutions. The copy is cheap compared with the multiplications.

use super::state::Specialiser;
use super::store::compiled_bytes;
use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp};
use frazil_runtime::structured::{
    Access, Affine, Combine, Dims, Iteration, OutOfBounds, Structured, TensorId, TensorShape, ViewKind, ViewMap,
};
use frazil_tensor_ir::affine::as_loop;
use frazil_tensor_ir::graph::{Origin, TensorGraph};
use smallvec::SmallVec;

/// Number of spatial dimensions.
const SPATIAL: usize = 3;

/// The loops of a 3-D convolution: batch, groups if there are several, output channels, depth, rows, columns; then input channels and taps along the depth,
/// rows and columns.
struct Volume<'a> {
    nest: &'a Structured,
    /// Number of loops over groups: 1 or 0.
    groups: usize,
}

impl Specialiser<'_> {
    /// Appends a nest. A 3-D convolution is appended as a 2-D one.
    pub(super) fn nest(&mut self, s: Structured, origins: &[Origin]) -> TensorId {
        match Volume::of(&self.tensors, &s) {
            Some(volume) if volume.fits(&self.tensors) => volume.append(&mut self.tensors, origins),
            _ => self.tensors.nest(s, origins.to_vec()),
        }
    }
}

impl<'a> Volume<'a> {
    /// Returns `nest` as a 3-D convolution, if it is one on f32 whose epilogue depends only on the channel.
    fn of(graph: &TensorGraph, nest: &'a Structured) -> Option<Volume<'a>> {
        let [x, w] = nest.inputs.as_slice() else { return None };
        let floats = nest.accumulate == DType::Float
            && nest.output.dtype == DType::Float
            && [x, w].iter().all(|a| graph.shape(a.tensor).dtype == DType::Float);
        let product = matches!(nest.body.nodes(), [a, b, p] if a.op == ExprOp::Input(0) && b.op == ExprOp::Input(1)
            && matches!(p.op, ExprOp::Binary(BinaryOp::Mul, 0, 1)));
        let groups = x.map.len().checked_sub(2 + SPATIAL).filter(|&g| g <= 1)?;
        let volume = Volume { nest, groups };
        let parallel = 2 + groups + SPATIAL;
        let loops = nest.combine == Some(Combine::Add)
            && nest.parallel_rank() == parallel
            && nest.domain.len() == parallel + 1 + SPATIAL
            && nest.output.sizes[..] == nest.domain[..parallel];
        if !floats || !product || !loops || nest.domain.contains(&0) {
            return None;
        }
        let is_loop = |map: &Affine, l: usize| as_loop(map) == Some(l);
        let places = (0..SPATIAL).all(|i| {
            let map = &x.map[2 + groups + i];
            let own = [volume.position(i), volume.tap(i)];
            let mut used = (0..nest.domain.len()).filter(|&l| map.coefficients[l] != 0);
            used.all(|l| own.contains(&l))
        });
        let sides = is_loop(&x.map[0], 0)
            && (groups == 0 || is_loop(&x.map[1], 1))
            && is_loop(&x.map[1 + groups], volume.input());
        let of_channel = |a: &Access| {
            let used = |map: &Affine| {
                (0..map.coefficients.len())
                    .filter(|&l| map.coefficients[l] != 0)
                    .all(|l| volume.is_channel(l))
            };
            a.map.iter().all(used)
        };
        (places && sides && nest.finish_inputs.iter().all(of_channel)).then_some(volume)
    }

    /// Returns whether the copied slices do not exceed the maximum size of a tensor.
    fn fits(&self, graph: &TensorGraph) -> bool {
        let [x, _] = self.operands();
        let copies = [self.position(0), self.tap(0)].map(|l| self.extent(l));
        let sizes: Dims = graph.shape(x.tensor).sizes.iter().copied().chain(copies).collect();
        compiled_bytes(&shape(&sizes)).is_some()
    }

    /// Returns the loop over the positions of spatial dimension `i`.
    fn position(&self, i: usize) -> usize {
        2 + self.groups + i
    }

    /// Returns the loop over input channels.
    fn input(&self) -> usize {
        self.position(SPATIAL)
    }

    /// Returns the loop over the taps of spatial dimension `i`.
    fn tap(&self, i: usize) -> usize {
        self.input() + 1 + i
    }

    /// Returns whether loop `l` iterates over groups or output channels.
    fn is_channel(&self, l: usize) -> bool {
        (1..2 + self.groups).contains(&l)
    }

    fn extent(&self, l: usize) -> i64 {
        self.nest.domain[l]
    }

    /// Returns the extent of the loop over groups; empty if there is no such loop.
    fn group_extent(&self) -> &[i64] {
        &self.nest.domain[1..1 + self.groups]
    }

    /// Appends the 2-D convolution and its operands. Returns the result, reshaped to the nest's dimensions.
    fn append(&self, graph: &mut TensorGraph, origins: &[Origin]) -> TensorId {
        let g = self.groups;
        let (batch, depth) = (self.extent(0), self.extent(self.position(0)));
        let slices = self.extent(self.tap(0)) * self.extent(self.input());
        let images = self.images(graph, origins);
        let weights = self.weights(graph, origins);
        let (rows, columns) = (self.position(1), self.position(2));
        let (tap_rows, tap_columns) = (self.tap(1), self.tap(2));

        let mut domain: Dims = smallvec::smallvec![batch * depth];
        domain.extend_from_slice(self.group_extent());
        domain.extend([1 + g, rows, columns].map(|l| self.extent(l)));
        let parallel = domain.len();
        domain.push(slices);
        domain.extend([tap_rows, tap_columns].map(|l| self.extent(l)));
        let loops = domain.len();
        // Where the volume's loops went.
        let channels = (1..2 + g).map(|l| (l, l));
        let spatial = [(rows, 2 + g), (columns, 3 + g), (tap_rows, 5 + g), (tap_columns, 6 + g)];
        let places = self.places(channels.chain(spatial));
        let index = |l: usize| Affine::index(loops, l);
        let [x, _] = self.operands();
        let mut x_map: SmallVec<[Affine; 6]> = smallvec::smallvec![index(0)];
        let mut w_map: SmallVec<[Affine; 6]> = SmallVec::new();
        if g == 1 {
            x_map.push(index(1));
            w_map.push(index(1));
        }
        x_map.push(index(parallel));
        x_map.extend((1..SPATIAL).map(|i| renumbered(&x.map[2 + g + i], &places, loops)));
        w_map.extend([1 + g, parallel, parallel + 1, parallel + 2].map(index));
        let finish_inputs = self.nest.finish_inputs.iter().map(|a| Access {
            map: a.map.iter().map(|m| renumbered(m, &places, loops)).collect(),
            ..a.clone()
        });
        let conv = Structured {
            iterations: iterations(parallel, loops),
            inputs: smallvec::smallvec![
                Access {
                    tensor: images,
                    map: x_map,
                    out_of_bounds: x.out_of_bounds,
                },
                Access {
                    tensor: weights,
                    map: w_map,
                    out_of_bounds: OutOfBounds::Never,
                },
            ],
            finish_inputs: finish_inputs.collect(),
            output: shape(&domain[..parallel]),
            domain,
            ..self.nest.clone()
        };
        let mut sizes: Dims = smallvec::smallvec![batch, depth];
        sizes.extend_from_slice(&conv.output.sizes[1..]);
        let conv = graph.nest(conv, origins.to_vec());
        let apart = reshaped(graph, conv, &sizes, origins);
        let rank = self.nest.output.sizes.len();
        let mut map = vec![Affine::index(rank, 0), Affine::index(rank, self.position(0))];
        map.extend((1..2 + g).chain([rows, columns]).map(|l| Affine::index(rank, l)));
        let view = ViewMap {
            tensor: apart,
            kind: ViewKind::Affine(map),
            output: self.nest.output.clone(),
        };
        graph.view(view, origins.to_vec())
    }

    /// Returns, for each loop of the 3-D convolution, the new loop that `pairs` assigns to it.
    fn places(&self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<Option<usize>> {
        let mut places = vec![None; self.nest.domain.len()];
        for (old, new) in pairs {
            places[old] = Some(new);
        }
        places
    }

    /// Returns the accesses to the input and to the weights.
    fn operands(&self) -> [&Access; 2] {
        [&self.nest.inputs[0], &self.nest.inputs[1]]
    }

    /// Appends the images, `[batch · depth]([groups])[taps along the depth · channels][height][width]`: for each depth, the slices over which its sum
    /// extends.
    fn images(&self, graph: &mut TensorGraph, origins: &[Origin]) -> TensorId {
        let [x, _] = self.operands();
        let g = self.groups;
        let plane = &graph.shape(x.tensor).sizes[3 + g..];
        let loops = 6 + g;
        let mut sizes: Dims = smallvec::smallvec![self.extent(0), self.extent(self.position(0))];
        sizes.extend_from_slice(self.group_extent());
        sizes.extend([self.tap(0), self.input()].map(|l| self.extent(l)));
        sizes.extend_from_slice(plane);
        let mut merged: Dims = smallvec::smallvec![sizes[0] * sizes[1]];
        merged.extend_from_slice(self.group_extent());
        merged.push(sizes[2 + g] * sizes[3 + g]);
        merged.extend_from_slice(&sizes[4 + g..]);
        let places = self.places([(self.position(0), 1), (self.tap(0), 2 + g)]);
        let mut map: SmallVec<[Affine; 6]> = smallvec::smallvec![Affine::index(loops, 0)];
        map.extend((0..g).map(|_| Affine::index(loops, 2)));
        map.push(Affine::index(loops, 3 + g));
        map.push(renumbered(&x.map[2 + g], &places, loops));
        map.extend([4 + g, 5 + g].map(|l| Affine::index(loops, l)));
        let copy = copied(x, map, &sizes);
        let copy = graph.nest(copy, origins.to_vec());
        reshaped(graph, copy, &merged, origins)
    }

    /// Appends the weights: `([groups])[output channels][taps along the depth · channels][taps along rows][taps along columns]`
    fn weights(&self, graph: &mut TensorGraph, origins: &[Origin]) -> TensorId {
        let [_, w] = self.operands();
        let g = self.groups;
        let order = (1..2 + g).chain([self.tap(0), self.input(), self.tap(1), self.tap(2)]);
        let places = self.places(order.clone().enumerate().map(|(new, old)| (old, new)));
        let sizes: Dims = order.map(|l| self.extent(l)).collect();
        let map = w.map.iter().map(|m| renumbered(m, &places, sizes.len())).collect();
        let copy = copied(w, map, &sizes);
        let copy = graph.nest(copy, origins.to_vec());
        let mut merged: Dims = sizes[..1 + g].into();
        merged.push(sizes[1 + g] * sizes[2 + g]);
        merged.extend_from_slice(&sizes[3 + g..]);
        reshaped(graph, copy, &merged, origins)
    }
}

/// Returns `map` for a nest of `loops` loops. `places` contains the new loop for each of its loops; loops without one must have coefficient 0.
fn renumbered(map: &Affine, places: &[Option<usize>], loops: usize) -> Affine {
    let mut out = Affine::constant(loops, map.offset);
    for (&coefficient, place) in map.coefficients.iter().zip(places) {
        if let Some(l) = *place {
            out.coefficients[l] = coefficient;
        }
    }
    out
}

/// Returns the nest that copies elements of the tensor of `access`: for each element of a result of sizes `sizes`, the one at `map`.
fn copied(access: &Access, map: SmallVec<[Affine; 6]>, sizes: &[i64]) -> Structured {
    let mut body = Expr::new();
    body.input(0, DType::Float);
    Structured {
        domain: sizes.into(),
        iterations: iterations(sizes.len(), sizes.len()),
        inputs: smallvec::smallvec![Access {
            tensor: access.tensor,
            map,
            out_of_bounds: access.out_of_bounds,
        }],
        body,
        combine: None,
        accumulate: DType::Float,
        finish: None,
        finish_inputs: SmallVec::new(),
        output: shape(sizes),
    }
}

fn iterations(parallel: usize, loops: usize) -> SmallVec<[Iteration; 6]> {
    let kind = |l: usize| {
        if l < parallel {
            Iteration::Parallel
        } else {
            Iteration::Reduction
        }
    };
    (0..loops).map(kind).collect()
}

fn shape(sizes: &[i64]) -> TensorShape {
    TensorShape {
        dtype: DType::Float,
        sizes: sizes.into(),
    }
}

fn reshaped(graph: &mut TensorGraph, tensor: TensorId, sizes: &[i64], origins: &[Origin]) -> TensorId {
    let view = ViewMap {
        tensor,
        kind: ViewKind::Reshape,
        output: shape(sizes),
    };
    graph.view(view, origins.to_vec())
}
