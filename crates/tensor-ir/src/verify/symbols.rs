//! Rules of symbols and extents.
//!
//! Statements about all values of the symbols are tested with some values ([`samples`]): a failure names values for which a rule is violated. Unknown extents
//! are not checked.

use super::Failure;
use crate::affine::as_loop;
use crate::extent::{Extent, Symbol, samples};
use crate::graph::{TensorGraph, TensorOp, accesses};
use frazil_runtime::gather::Coordinate;
use frazil_runtime::structured::{Affine, OutOfBounds, Structured, TensorId, ViewKind};
use std::collections::HashSet;

/// Maximum number of symbols of a graph.
const MAX_SYMBOLS: usize = 64;

/// Names that texts use for functions.
const RESERVED: [&str; 4] = ["floordiv", "ceildiv", "min", "max"];

/// Returns all violated rules.
pub(super) fn verify(graph: &TensorGraph) -> Vec<Failure> {
    let symbols = graph.symbols();
    if symbols.is_empty() {
        return Vec::new();
    }
    let failures = declarations(symbols);
    if !failures.is_empty() {
        return failures;
    }
    let ids = graph.live_ids();
    let samples = samples(symbols);
    let of = |check: &dyn Fn(TensorId) -> Option<String>| -> Vec<Failure> {
        let failed = ids.iter().filter_map(|&id| Some((id, check(id)?)));
        let failure = |(id, message)| Failure {
            tensor: Some(id),
            message,
        };
        failed.map(failure).collect()
    };
    let failures = of(&|id| extents(graph, id, &samples));
    if !failures.is_empty() {
        return failures;
    }
    of(&|id| samples.iter().find_map(|values| Sample { graph, values }.operation(id)))
}

fn declarations(symbols: &[Symbol]) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut general = |message: String| failures.push(Failure { tensor: None, message });
    if symbols.len() > MAX_SYMBOLS {
        general(format!("there are more than {MAX_SYMBOLS} symbols"));
    }
    let mut names = HashSet::new();
    for Symbol {
        name,
        min,
        max,
        representative,
    } in symbols
    {
        let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !is_word || !starts_well || RESERVED.contains(&name.as_str()) {
            general(format!("`{name}` is not a name of a symbol"));
        }
        if !names.insert(name) {
            general(format!("symbol {name} is defined twice"));
        }
        if !(0 <= *min && min <= representative && representative <= max) {
            general(format!(
                "the range of symbol {name} is empty, has negative values or does not contain its representative"
            ));
        }
    }
    failures
}

/// Checks the extents of one tensor.
fn extents(graph: &TensorGraph, id: TensorId, samples: &[Vec<i64>]) -> Option<String> {
    let (extents, sizes) = (graph.extents(id)?, &graph.shape(id).sizes);
    if extents.len() != sizes.len() {
        return Some("it has not as many extents as dimensions".to_owned());
    }
    if graph.as_constant(id).is_some() {
        return Some("a constant has extents that depend on symbols".to_owned());
    }
    let symbols = graph.symbols();
    let representatives: Vec<i64> = symbols.iter().map(|symbol| symbol.representative).collect();
    extents.iter().zip(sizes).find_map(|(extent, &size)| {
        let text = || extent.display(symbols);
        if extent.eval(&representatives) != Ok(size) {
            return Some(format!("extent {} is not {size} for the representatives", text()));
        }
        let mut varies = false;
        for values in samples {
            match extent.eval(values) {
                Ok(value) if value >= 0 => varies |= value != size,
                Ok(value) => return Some(format!("extent {} is {value}{}", text(), condition(symbols, values))),
                Err(error) => {
                    return Some(format!(
                        "extent {} contains {error}{}",
                        text(),
                        condition(symbols, values)
                    ));
                }
            }
        }
        (varies && size < 2).then(|| {
            format!(
                "extent {} is {size} for the representatives, which transformations treat as fixed: choose others",
                text()
            )
        })
    })
}

/// Returns the condition for messages: ` if B = 1, N = 2`.
fn condition(symbols: &[Symbol], values: &[i64]) -> String {
    let named = symbols.iter().zip(values);
    let named: Vec<String> = named
        .map(|(symbol, value)| format!("{} = {value}", symbol.name))
        .collect();
    format!(" if {}", named.join(", "))
}

/// A graph with values of its symbols.
struct Sample<'a> {
    graph: &'a TensorGraph,
    values: &'a [i64],
}

impl Sample<'_> {
    /// Returns the sizes of a tensor, if they are known.
    fn sizes(&self, id: TensorId) -> Option<Vec<i64>> {
        let eval = |extents: &[Extent]| extents.iter().map(|extent| extent.eval(self.values).ok()).collect();
        match self.graph.as_constant(id) {
            Some(_) => Some(self.graph.shape(id).sizes.to_vec()),
            None => self.graph.extents(id).and_then(eval),
        }
    }

    /// Checks the operation that computes a tensor.
    fn operation(&self, id: TensorId) -> Option<String> {
        let sizes = self.sizes(id);
        match self.graph.op(id) {
            TensorOp::Nest(nest) => self.nest(nest, sizes),
            TensorOp::View(view) => match &view.kind {
                ViewKind::Affine(map) => self.reads(view.tensor, map, &view.output.sizes, &sizes?),
                ViewKind::Reshape => {
                    let numel = |sizes: Vec<i64>| sizes.into_iter().try_fold(1i64, i64::checked_mul);
                    let (before, after) = (numel(self.sizes(view.tensor)?)?, numel(sizes?)?);
                    let condition = condition(self.graph.symbols(), self.values);
                    (before != after).then(|| format!("a reshape of {before} elements has {after}{condition}"))
                }
            },
            TensorOp::Gather(gather) => {
                let (sizes, domain) = (sizes?, &gather.output.sizes);
                gather
                    .coordinates
                    .iter()
                    .enumerate()
                    .find_map(|(d, coordinate)| match coordinate {
                        Coordinate::Affine(map) => self.coordinate(gather.tensor, d, map, domain, &sizes),
                        Coordinate::Value { tensor, map } => self.reads(*tensor, map, domain, &sizes),
                    })
            }
            TensorOp::Input(_) | TensorOp::Constant(_) | TensorOp::Call(_) | TensorOp::CallResult { .. } => None,
        }
    }

    fn nest(&self, nest: &Structured, sizes: Option<Vec<i64>>) -> Option<String> {
        let parallel = nest.parallel_rank();
        let domain = &nest.domain;
        let mut reads = accesses(nest).filter(|access| access.out_of_bounds == OutOfBounds::Never);
        let loops_are_dimensions = domain[..parallel] == nest.output.sizes[..];
        let sizes = sizes.filter(|_| loops_are_dimensions);
        let left =
            sizes.and_then(|sizes| reads.find_map(|access| self.reads(access.tensor, &access.map, domain, &sizes)));
        left.or_else(|| (parallel..domain.len()).find_map(|l| self.reduction(nest, l)))
    }

    /// Checks that the dimensions over which reduction loop `l` iterates have the same extent.
    fn reduction(&self, nest: &Structured, l: usize) -> Option<String> {
        let mut first: Option<(TensorId, i64)> = None;
        for access in accesses(nest) {
            let (Some(sizes), shape) = (self.sizes(access.tensor), self.graph.shape(access.tensor)) else {
                continue;
            };
            for (d, map) in access.map.iter().enumerate() {
                let is_whole = as_loop(map) == Some(l) && shape.sizes[d] == nest.domain[l];
                if !is_whole || access.out_of_bounds != OutOfBounds::Never {
                    continue;
                }
                match first {
                    Some((tensor, size)) if size != sizes[d] => {
                        let condition = condition(self.graph.symbols(), self.values);
                        let (a, b) = (access.tensor, sizes[d]);
                        return Some(format!(
                            "a reduction iterates over {size} elements of {tensor} and {b} of {a}{condition}"
                        ));
                    }
                    Some(_) => {}
                    None => first = Some((access.tensor, sizes[d])),
                }
            }
        }
        None
    }

    /// Checks that reads of `tensor` at `map` stay inside, as far as coordinates are loops over whole dimensions. `domain` contains the extents of the
    /// loops for the representatives, and `sizes` those of the first loops for the values of the sample.
    fn reads(&self, tensor: TensorId, map: &[Affine], domain: &[i64], sizes: &[i64]) -> Option<String> {
        let mut coordinates = map.iter().enumerate();
        coordinates.find_map(|(d, map)| self.coordinate(tensor, d, map, domain, sizes))
    }

    fn coordinate(&self, tensor: TensorId, d: usize, map: &Affine, domain: &[i64], sizes: &[i64]) -> Option<String> {
        let l = as_loop(map)?;
        let (extent, size) = (*sizes.get(l)?, *self.sizes(tensor)?.get(d)?);
        let is_whole = domain.get(l) == self.graph.shape(tensor).sizes.get(d);
        let condition = condition(self.graph.symbols(), self.values);
        (is_whole && extent > size)
            .then(|| format!("it reads {extent} elements of dimension {d} of {tensor}, which has {size}{condition}"))
    }
}
