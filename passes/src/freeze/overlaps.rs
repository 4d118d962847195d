//! Detection of containers whose elements are written and are also values of other attributes. Freezing refuses them, as in PyTorch.
//!
//! `self.l[0] += 1` is an error if `self.l[0]` shares its storage with `self.a`, which is read too; likewise for tuples and dictionaries. If the other
//! attribute is written by its own name, both are kept.

use super::attributes::{Attributes, accesses};
use super::values::identities;
use super::{FreezeError, PreservedMethod};
use crate::AliasDb;
use crate::support::effects;
use frazil_ir::schema::Catalogue;
use frazil_ir::{Constant, Graph, Module, ObjectId, SymbolId, ValueId};
use std::collections::HashSet;
use std::convert::Infallible;

/// Attributes that are read, each with whether the read value is written, itself or through a view.
type Reads = Vec<((ObjectId, SymbolId), bool)>;

/// Checks for overlaps.
///
/// # Errors
/// [`FreezeError::Overlap`].
pub(super) fn check(
    module: &Module,
    methods: &[PreservedMethod],
    attributes: &Attributes,
    dbs: &[AliasDb],
    catalogue: &Catalogue,
) -> Result<(), FreezeError> {
    let reads = reads(methods, attributes, catalogue);
    let path = |(object, name): (ObjectId, SymbolId)| {
        let base = attributes.paths.get(&object).map_or("self", String::as_str);
        format!("{base}.{}", module.ctx().name(name))
    };
    for &(key, _) in &reads {
        let Some(value) = module.attribute(key.0, key.1) else {
            continue;
        };
        let mut written = HashSet::new();
        for element in elements(value) {
            if dbs.iter().any(|db| db.writes_to_constant(element)) {
                identities(element, &mut written);
            }
        }
        if written.is_empty() {
            continue;
        }
        let sharers: Vec<_> = reads
            .iter()
            .filter(|(other, _)| *other != key)
            .filter(|(other, _)| {
                let mut own = HashSet::new();
                if let Some(value) = module.attribute(other.0, other.1) {
                    identities(value, &mut own);
                }
                !own.is_disjoint(&written)
            })
            .collect();
        if let (Some((other, _)), false) = (sharers.first(), sharers.iter().any(|(_, by_name)| *by_name)) {
            return Err(FreezeError::Overlap {
                container: path(key),
                other: path(*other),
            });
        }
    }
    Ok(())
}

fn reads(methods: &[PreservedMethod], attributes: &Attributes, catalogue: &Catalogue) -> Reads {
    let mut reads = Reads::new();
    for (method, scope) in methods.iter().zip(&attributes.objects) {
        let _: Result<(), Infallible> = scope.visit(&method.graph, &mut |graph, known| {
            for access in accesses(graph).into_iter().filter(|a| !a.is_write) {
                if let (Some(object), Some(value)) = (known.get(&access.object), graph.output(access.node)) {
                    reads.push(((*object, access.name), is_written(graph, value, catalogue)));
                }
            }
            Ok(())
        });
    }
    reads.sort_unstable();
    reads.dedup();
    reads
}

/// Returns true if a node writes to `value` or to a view of it; writes through containers do not count.
fn is_written(graph: &Graph, value: ValueId, catalogue: &Catalogue) -> bool {
    if !graph.ctx().is_tensor(graph.ty(value)) {
        return false;
    }
    let mut seen = HashSet::from([value]);
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        for u in graph.uses(v) {
            let Some(schema) = effects::schema(graph, u.user, catalogue) else {
                continue;
            };
            let Some(alias) = schema.arguments.get(u.index).and_then(|a| a.alias.as_ref()) else {
                continue;
            };
            if alias.is_write {
                return true;
            }
            for (&out, result) in graph.node_outputs(u.user).iter().zip(&schema.returns) {
                if result.alias.is_some() && graph.ctx().is_tensor(graph.ty(out)) && seen.insert(out) {
                    work.push(out);
                }
            }
        }
    }
    false
}

/// Returns the values that a container contains directly.
fn elements(value: &Constant) -> Vec<&Constant> {
    match value {
        Constant::List(_) | Constant::Tuple(_) => value.items().unwrap_or_default().iter().collect(),
        Constant::Dict(d) => d.entries.iter().map(|(_, v)| v).collect(),
        _ => Vec::new(),
    }
}
