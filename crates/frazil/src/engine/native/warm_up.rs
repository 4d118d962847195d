//! Preparation of an engine before its first call: weights are packed, and the code of kernels is loaded.
//!
//! Weights are packed for a plan, and a plan is for inputs of known shapes, which archives do not state. But the layouts of packed weights hardly depend on the
//! sizes that differ between calls, such as batch, length, and the sides of images; and the other sizes follow from the weights. So an engine plans its methods
//! for likely inputs: the first ones that the operators of the method accept and for whose plan the code library has all kernels. If the guess is wrong, the
//! first call packs what it needs, as it would without one, and the memory of what was packed in advance is wasted. Results do not depend on it.

use super::NativeCode;
use super::compiled::NativePlan;
use super::compiler::Compiler;
use super::segments::Segment;
use crate::engine::instance::Instance;
use crate::error::Result;
use crate::model::Model;
use crate::support::limited::{unexceeded, within};
use frazil_ir::{Constant, DType, Graph, TensorData, TypeKind};
use frazil_limits::Phase;
use frazil_planner::specialise::{self, ArgumentSpec};
use frazil_runtime::structured::TensorShape;
use frazil_runtime::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Minimum number of bytes of a method's constants. Fewer are packed in less time than it takes to plan the method once more.
const WORTH: usize = 1 << 20;
/// Maximum number of different sizes of constants that are tried as a size of the inputs. The input meets the first constants first.
const MOST_SIZES: usize = 8;
/// Assumed side of an image, in pixels: the most common one. Classifiers that flatten their features accept no other than theirs.
const SIDE: i64 = 224;
/// Assumed number of the elements of a sequence, of the rows of a matrix, and of the slices of a volume. Models with learned positions accept few more.
const LENGTH: i64 = 64;

impl NativeCode {
    /// Packs the weights of the methods that an engine is made for, as far as their inputs can be guessed. Does nothing without a code library: compiling takes
    /// longer than packing, and is left to the calls, whose shapes are known.
    ///
    /// # Errors
    /// If the model cannot be frozen, or in a child process whose parent was forked inside a call of the compiler.
    pub(crate) fn warm_up(&self, instance: &Instance, methods: &[String]) -> Result<()> {
        if self.compiler.for_any_size().library().is_none() || self.compiler.options.tune.is_some() {
            return Ok(());
        }
        let _inside = frazil_rt::gate::enter()?;
        let model = &instance.running()?.model;
        let limits = *instance.source().session().limits();
        let others = methods.iter().map(String::as_str).filter(|name| *name != "forward");
        for method in std::iter::once("forward").chain(others) {
            let done = within(&limits, Phase::Compile, || {
                self.pack_weights(model, method);
                Ok(())
            });
            // A call that exceeds a limit reports it.
            let _: Result<()> = done;
        }
        Ok(())
    }

    /// Plans `method` for the first likely inputs that it accepts.
    fn pack_weights(&self, model: &Model, method: &str) {
        let Ok(graph) = model.graph(method) else { return };
        let compiler = self.compiler.named(method).library_only();
        for inputs in likely_inputs(graph) {
            let packed = self.pack_weights_for(model, method, &inputs, &compiler);
            if packed.is_ok() || unexceeded().is_err() {
                return;
            }
        }
    }

    /// Packs the weights of the plan of `method` for `inputs`.
    ///
    /// # Errors
    /// If the method does not accept them or cannot be specialised, or the code library lacks a kernel.
    fn pack_weights_for(
        &self,
        model: &Model,
        method: &str,
        inputs: &[ArgumentSpec],
        compiler: &Compiler,
    ) -> Result<()> {
        let shared = self.shared.plans(model);
        if let Some(segments) = self.rolled.first_segments(model, method, inputs, shared) {
            return self.pack_weights_of(segments, compiler);
        }
        let (graph, registry) = (model.graph(method)?, model.session().registry());
        NativePlan::aliasing(graph, inputs, Some(shared), registry, compiler)?.code(compiler)?;
        Ok(())
    }

    /// Packs the weights of consecutive segments, and of the loops between them.
    fn pack_weights_of(&self, segments: Vec<specialise::Segment>, compiler: &Compiler) -> Result<()> {
        let mut known = BTreeSet::new();
        for segment in segments {
            let (segment, _) = Segment::of(segment, &known, compiler, &self.rolled.bodies)?;
            known = segment.leaves(known);
        }
        Ok(())
    }
}

/// Returns likely inputs of a method with the graph `graph`, the most likely ones first. Its tensors have all the same sizes, and what may be `None` is `None`.
/// Returns none if the method has few constants, or inputs of other types.
fn likely_inputs(graph: &Graph) -> Vec<Vec<ArgumentSpec>> {
    let (mut sizes, mut bytes) = (Vec::new(), 0_usize);
    for node in graph.nodes_recursive(graph.root()) {
        if let Some(constant) = graph.constant_of(node) {
            each_tensor(&constant, &mut |data| {
                // Expanded constants may have any number of elements.
                let count = usize::try_from(data.numel()).unwrap_or(usize::MAX);
                bytes = bytes.saturating_add(count.saturating_mul(data.dtype.size()));
                for &size in data.sizes.iter().filter(|&&size| size > 0) {
                    if sizes.len() < MOST_SIZES && !sizes.contains(&size) {
                        sizes.push(size);
                    }
                }
            });
        }
    }
    if bytes < WORTH {
        return Vec::new();
    }
    let like = |tensor: &TensorShape| -> Option<Vec<ArgumentSpec>> {
        let mut inputs = Vec::new();
        for &input in graph.inputs() {
            match graph.ctx().type_kind(graph.ty(input)) {
                // The module itself.
                TypeKind::Class(_) => {}
                TypeKind::Tensor(_) => inputs.push(ArgumentSpec::Tensor(tensor.clone())),
                TypeKind::Optional(_) => inputs.push(ArgumentSpec::Value(Value::None)),
                _ => return None,
            }
        }
        Some(inputs)
    };
    let tensors = sizes.into_iter().flat_map(features).chain(indices());
    tensors.map_while(|tensor| like(&tensor)).collect()
}

/// Returns likely shapes of a tensor with `size` channels or features: images, sequences, matrices, volumes.
fn features(size: i64) -> impl Iterator<Item = TensorShape> {
    let all: [&[i64]; 6] = [
        &[1, size, SIDE, SIDE],
        &[1, LENGTH, size],
        &[LENGTH, 1, size],
        &[1, size, LENGTH],
        &[LENGTH, size],
        &[1, size, LENGTH, LENGTH, LENGTH],
    ];
    all.map(|sizes| shape(DType::Float, sizes)).into_iter()
}

/// Returns likely shapes of a tensor of indices, such as the numbers of tokens.
fn indices() -> impl Iterator<Item = TensorShape> {
    let all: [&[i64]; 2] = [&[1, LENGTH], &[LENGTH]];
    all.map(|sizes| shape(DType::Long, sizes)).into_iter()
}

fn shape(dtype: DType, sizes: &[i64]) -> TensorShape {
    TensorShape {
        dtype,
        sizes: sizes.into(),
    }
}

/// Calls `found` for each tensor in a constant.
fn each_tensor(constant: &Constant, found: &mut impl FnMut(&Arc<TensorData>)) {
    match constant {
        Constant::Tensor(data) => found(data),
        Constant::List(list) => list.items.iter().for_each(|item| each_tensor(item, found)),
        Constant::Tuple(tuple) => tuple.items.iter().for_each(|item| each_tensor(item, found)),
        _ => {}
    }
}
