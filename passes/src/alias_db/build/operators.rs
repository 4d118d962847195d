//! Analysis of operators with schemas: aliasing and mutation that the schemas' annotations specify.

use super::super::memory::{Kind, Locations};
use super::Analysis;
use crate::support::effects::written_statistics;
use frazil_ir::schema::{AliasInfo, AliasSet, Argument, FunctionSchema};
use frazil_ir::{NodeId, SymbolId, TypeId, TypeKind, ValueId};
use smallvec::SmallVec;

impl Analysis<'_> {
    /// Analyses the call `node` of the overload `schema`.
    pub(super) fn operator(&mut self, node: NodeId, schema: &FunctionSchema) {
        let g = self.graph;
        let mut sets: SmallVec<[(SymbolId, Locations); 2]> = SmallVec::new();
        // Values that the operator stores somewhere, and the containers that it writes to.
        let mut stored: SmallVec<[(Locations, Option<SymbolId>); 1]> = SmallVec::new();
        let mut written: SmallVec<[(ValueId, Locations); 1]> = SmallVec::new();
        for (argument, value) in schema.arguments.iter().zip(g.operands(node)) {
            let locations = self.points(value);
            if locations.is_empty() {
                continue;
            }
            if let Some(info) = &argument.alias {
                if info.is_write {
                    self.writes_to(node, &locations);
                    written.push((value, locations.clone()));
                }
                bind(&mut sets, info, &locations);
                if info.before.contains(&AliasSet::Wildcard) {
                    self.memory.escape(&locations);
                } else if info.after.contains(&AliasSet::Wildcard) {
                    let name = info.before.iter().find_map(|s| match s {
                        AliasSet::Named(name) => Some(*name),
                        AliasSet::Wildcard => None,
                    });
                    stored.push((locations.clone(), name));
                }
            }
            if let Some(info) = &argument.element_alias {
                for ty in self.memory.component_types(g.ty(value)).unwrap_or_default() {
                    let elements = self.memory.load(&locations, ty);
                    bind(&mut sets, info, &elements);
                    if info.is_write {
                        self.writes_to(node, &elements);
                    }
                }
            }
        }
        for statistics in written_statistics(g, node, self.catalogue).into_iter().flatten() {
            let locations = self.points(statistics);
            if !locations.is_empty() {
                self.writes_to(node, &locations);
            }
        }
        if !written.is_empty() {
            self.store_into_written(node, schema, &written);
        }
        for (locations, name) in &stored {
            let kept_in_output = |r: &Argument| {
                let names = |info: &AliasInfo| name.is_some_and(|n| info.before.contains(&AliasSet::Named(n)));
                r.element_alias.as_ref().is_some_and(names)
            };
            let containers: Vec<_> = written.iter().filter(|(v, _)| !g.ctx().is_tensor(g.ty(*v))).collect();
            for (_, container) in &containers {
                self.memory.store(container, locations);
            }
            if containers.is_empty() && !schema.returns.iter().any(kept_in_output) {
                self.memory.escape(locations);
            }
        }
        for (i, &out) in g.node_outputs(node).iter().enumerate() {
            if self.memory.kind(g.ty(out)) == Kind::Immutable {
                continue;
            }
            let Some(result) = schema.returns.get(i) else {
                self.set_wildcard(out);
                continue;
            };
            self.output(node, schema, out, result, &sets);
        }
    }

    fn output(
        &mut self,
        node: NodeId,
        schema: &FunctionSchema,
        out: ValueId,
        result: &Argument,
        sets: &[(SymbolId, Locations)],
    ) {
        let g = self.graph;
        if let Some(info) = &result.alias {
            let wanted: Vec<AliasSet> = info.before.iter().chain(&info.after).copied().collect();
            if wanted.contains(&AliasSet::Wildcard) {
                return self.extract(node, schema, out);
            }
            let mut all = Locations::new();
            for set in wanted {
                match set {
                    AliasSet::Named(name) => match sets.iter().find(|(n, _)| *n == name) {
                        Some((_, locations)) => all.extend_from_slice(locations),
                        // A set without arguments: a new object.
                        None => {
                            let kind = self.memory.kind(g.ty(out));
                            all.push(self.memory.fresh(kind));
                        }
                    },
                    AliasSet::Wildcard => {}
                }
            }
            return self.set(out, &all);
        }
        if matches!(g.ctx().type_kind(result.ty), TypeKind::Var(_)) {
            // A result of type `t` comes from an operand of type `t`.
            return self.extract(node, schema, out);
        }
        self.set_fresh(out);
        if self.catalogue.properties(g.kind(node)).may_return_operand {
            let mut all = self.points(out);
            all.extend_from_slice(&self.operand(node, 0));
            self.set(out, &all);
        }
        let container = self.points(out);
        if let Some(info) = &result.element_alias {
            for set in info.before.iter().chain(&info.after) {
                match set {
                    AliasSet::Named(name) => {
                        for (_, locations) in sets.iter().filter(|(n, _)| n == name) {
                            self.memory.store(&container, locations);
                        }
                    }
                    AliasSet::Wildcard => return self.extract(node, schema, out),
                }
            }
        } else if !g.ctx().is_tensor(g.ty(out)) {
            self.share_elements(node, out, &container);
        }
    }

    /// Handles a new container without alias annotations: it may contain the elements of the operands (`a + b` of lists, `list(d)`, `meshgrid`).
    fn share_elements(&mut self, node: NodeId, out: ValueId, container: &Locations) {
        let g = self.graph;
        let components = self.memory.component_types(g.ty(out));
        let flat = components.as_ref().is_some_and(|types| {
            let is_flat = |ty: &TypeId| g.ctx().is_tensor(*ty) || self.memory.kind(*ty) == Kind::Immutable;
            types.clone().iter().all(is_flat)
        });
        let operands: Vec<ValueId> = g.operands(node).collect();
        for operand in operands {
            let locations = self.points(operand);
            if locations.is_empty() || g.ctx().is_tensor(g.ty(operand)) {
                continue;
            }
            match (&components, self.memory.component_types(g.ty(operand))) {
                (Some(wanted), Some(held)) if flat || wanted == &held => {
                    for ty in wanted.iter().filter(|ty| held.contains(ty)) {
                        let elements = self.memory.load(&locations, *ty);
                        self.memory.store(container, &elements);
                    }
                    if !wanted
                        .iter()
                        .all(|ty| held.contains(ty) || self.memory.kind(*ty) == Kind::Immutable)
                    {
                        self.give_up(out, &locations);
                    }
                }
                _ => self.give_up(out, &locations),
            }
        }
    }

    /// Makes a conservative approximation: everything in `locations` becomes known outside, and `out` may be anything.
    fn give_up(&mut self, out: ValueId, locations: &Locations) {
        self.memory.escape(locations);
        self.set_wildcard(out);
    }

    /// Handles an output that is an element of operands that are containers, or an operand of the same type.
    fn extract(&mut self, node: NodeId, schema: &FunctionSchema, out: ValueId) {
        let g = self.graph;
        let kind = self.memory.kind(g.ty(out));
        let mut all = Locations::new();
        let mut sources = 0;
        let operands: Vec<(usize, ValueId)> = g.operands(node).enumerate().collect();
        for (i, operand) in operands {
            let locations = self.points(operand);
            let by_type = schema
                .arguments
                .get(i)
                .is_some_and(|a| matches!(g.ctx().type_kind(a.ty), TypeKind::Var(_) | TypeKind::Any));
            if locations.is_empty() {
                continue;
            }
            if by_type {
                sources += 1;
                all.extend_from_slice(&locations);
                continue;
            }
            let components = self.memory.component_types(g.ty(operand));
            match components {
                Some(types) if types.is_empty() => {}
                Some(types) => {
                    sources += 1;
                    if types.iter().any(|ty| self.memory.kind(*ty) == kind) {
                        let elements = self.memory.load(&locations, g.ty(out));
                        all.extend_from_slice(&elements);
                    } else if let Some(elements) = self.elements_of_new(out, &locations, &types) {
                        self.set_fresh(out);
                        let container = self.points(out);
                        self.memory.store(&container, &elements);
                        return;
                    } else {
                        return self.give_up(out, &locations);
                    }
                }
                None => return self.give_up(out, &locations),
            }
        }
        if sources == 0 {
            self.set_wildcard(out);
        } else {
            self.set(out, &all);
        }
    }

    /// Returns the elements of a new container `out` that itself cannot be in a container of `types`, but whose elements can (the values of a dictionary).
    fn elements_of_new(&mut self, out: ValueId, container: &Locations, types: &[TypeId]) -> Option<Locations> {
        let mut elements = Locations::new();
        for wanted in self.memory.component_types(self.graph.ty(out))? {
            let kind = self.memory.kind(wanted);
            if kind == Kind::Immutable {
                continue;
            }
            if !types.iter().any(|ty| self.memory.kind(*ty) == kind) {
                return None;
            }
            elements.extend(self.memory.load(container, wanted));
        }
        Some(elements)
    }

    /// Stores the elements of other operands in a container that the operator writes to (`extend`, `update`), because the operator may store any of them.
    fn store_into_written(&mut self, node: NodeId, schema: &FunctionSchema, written: &[(ValueId, Locations)]) {
        let g = self.graph;
        for (container, locations) in written {
            let Some(components) = self.memory.component_types(g.ty(*container)) else {
                self.memory.escape(locations);
                continue;
            };
            for ty in components {
                let kind = self.memory.kind(ty);
                if kind == Kind::Immutable {
                    continue;
                }
                for (i, other) in g.operands(node).enumerate() {
                    let others = self.points(other);
                    if other == *container || others.is_empty() {
                        continue;
                    }
                    let annotated = schema.arguments.get(i).is_some_and(|a| {
                        a.alias
                            .as_ref()
                            .is_some_and(|info| info.after.contains(&AliasSet::Wildcard))
                    });
                    if self.memory.kind(g.ty(other)) == kind && !annotated {
                        self.memory.store(locations, &others);
                    } else if self
                        .memory
                        .component_types(g.ty(other))
                        .is_some_and(|ts| ts.contains(&ty))
                    {
                        let elements = self.memory.load(&others, ty);
                        self.memory.store(locations, &elements);
                    }
                }
            }
        }
    }
}

/// Adds `locations` to the named alias sets in the annotation `info`.
fn bind(sets: &mut SmallVec<[(SymbolId, Locations); 2]>, info: &AliasInfo, locations: &Locations) {
    for set in &info.before {
        if let AliasSet::Named(name) = set {
            match sets.iter_mut().find(|(n, _)| n == name) {
                Some((_, all)) => all.extend_from_slice(locations),
                None => sets.push((*name, locations.clone())),
            }
        }
    }
}
