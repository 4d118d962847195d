//! Methods with loops that stay rolled.

use crate::engine::native::loops::Bodies;
use crate::engine::native::signature::{Argument, CallSignature};
use crate::model::Model;
use crate::support::lock::lock;
use frazil_planner::specialise::{ArgumentSpec, Next, Segment, Shared, Start, has_loops, segments};
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// What is known of the methods of an engine that have loops.
#[derive(Default)]
pub(super) struct RolledMethods {
    /// Whether a method has loops, by its name.
    loops: Mutex<HashMap<String, bool>>,
    /// The first segments of the last method that was found to stay rolled, until it is run.
    first: Mutex<Option<First>>,
    /// The bodies of the loops.
    pub(super) bodies: Bodies,
}

/// The first segments of a method, specialised for arguments.
struct First {
    method: String,
    arguments: Vec<Argument>,
    segments: VecDeque<Segment>,
}

impl RolledMethods {
    /// Returns true if the method has a loop that stays rolled for arguments of these shapes. Keeps the specialised segments for the run that follows.
    pub(super) fn is_rolled(
        &self,
        model: &Model,
        method: &str,
        keys: &[Argument],
        specs: &[ArgumentSpec],
        shared: Shared<'_>,
    ) -> bool {
        let found = self.first_segments(model, method, specs, shared);
        let is_rolled = found.is_some();
        *lock(&self.first) = found.map(|segments| First {
            method: method.to_owned(),
            arguments: keys.to_vec(),
            segments: segments.into(),
        });
        is_rolled
    }

    /// Returns the first segments of a method for arguments of these shapes. Returns `None` if no loop stays rolled.
    pub(super) fn first_segments(
        &self,
        model: &Model,
        method: &str,
        specs: &[ArgumentSpec],
        shared: Shared<'_>,
    ) -> Option<Vec<Segment>> {
        let graph = model.graph(method).ok()?;
        let registry = model.session().registry();
        let has_loops = *lock(&self.loops)
            .entry(method.to_owned())
            .or_insert_with(|| has_loops(graph, registry));
        if !has_loops {
            return None;
        }
        let start = Start {
            objects: &[],
            module: Some(model.module()),
            rolls: true,
            shared: Some(shared),
        };
        let found = segments(graph, specs, &[], &start, registry);
        let is_loop = |segment: &Segment| matches!(segment.next, Next::Loop(_));
        found.ok().filter(|segments| segments.first().is_some_and(is_loop))
    }

    /// Takes the first segments of a method, if they were specialised for these arguments, and no object has attributes that they could depend on.
    pub(super) fn take_first(&self, method: &str, signature: &CallSignature) -> Option<VecDeque<Segment>> {
        let mut first = lock(&self.first);
        let of = first.as_ref()?;
        let count = signature.keys.len().checked_sub(signature.objects.len())?;
        let is_same = of.method == method && signature.keys.get(..count) == Some(of.arguments.as_slice());
        let has_attributes = signature.objects.iter().any(|object| !object.slots.is_empty());
        let found = if is_same && !has_attributes { first.take() } else { None };
        found.map(|first| first.segments)
    }
}
