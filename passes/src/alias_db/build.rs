//! The analysis: one walk over the graph in its order.
//!
//! Values are SSA and each is analysed once. What a loop carries is given a location of its own beforehand, which is unified afterwards with
//! whatever the body turned out to pass on, so that no second walk is needed.

use super::memory::{Kind, Location, Locations, Memory};
use super::{AliasDb, NodeWrites};
use frazil_ir::schema::{AliasInfo, AliasSet, Catalogue, FunctionSchema};
use frazil_ir::{BlockId, Graph, Module, NodeId, ObjectId, SymbolId, TypeId, TypeKind, ValueId, symbols};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Writes of a node with blocks are the sum of what is below; a sum of more than this is "anything".
const MAX_WRITES: usize = 32;

/// Operators that may give their first operand itself, which their schema does not say.
const MAY_RETURN_FIRST_OPERAND: &[&str] = &[
    "aten::alpha_dropout",
    "aten::atleast_1d",
    "aten::atleast_2d",
    "aten::atleast_3d",
    "aten::chain_matmul",
    "aten::dropout",
    "aten::feature_alpha_dropout",
    "aten::feature_dropout",
    "aten::type_as",
];

type Signature = (SymbolId, SmallVec<[TypeId; 8]>);

pub(super) struct Analysis<'g> {
    graph: &'g Graph,
    catalogue: &'g Catalogue,
    memory: Memory<'g>,
    points: Vec<Locations>,
    writes: HashMap<NodeId, NodeWrites>,
    schemas: HashMap<Signature, Option<Arc<FunctionSchema>>>,
    /// What forked graphs write.
    forked: NodeWrites,
    /// Own locations of what loops carry, by the loop's node.
    carried: HashMap<NodeId, Vec<Locations>>,
}

/// A block that is being walked.
struct Frame {
    block: BlockId,
    next: Option<NodeId>,
    /// What its nodes write.
    writes: NodeWrites,
}

impl<'g> Analysis<'g> {
    pub(super) fn new(graph: &'g Graph, catalogue: &'g Catalogue, module: Option<&'g Module>) -> Analysis<'g> {
        Analysis {
            graph,
            catalogue,
            memory: Memory::new(graph.ctx().clone(), module),
            points: vec![Locations::new(); graph.value_capacity()],
            writes: HashMap::new(),
            schemas: HashMap::new(),
            forked: NodeWrites::default(),
            carried: HashMap::new(),
        }
    }

    /// Runs the analysis; with a module, the graph's first input is its object `this`.
    pub(super) fn run(mut self, this: Option<ObjectId>) -> AliasDb {
        let graph = self.graph;
        for (i, &input) in graph.inputs().iter().enumerate() {
            match this {
                Some(object) if i == 0 => {
                    let l = self.memory.object(object);
                    self.set(input, &[l]);
                }
                _ => self.set_wildcard(input),
            }
        }
        self.walk(graph.root());
        let outputs: Vec<ValueId> = graph.outputs().collect();
        AliasDb::finish(self.memory.into_table(), self.points, self.writes, &outputs)
    }

    /// Analyses a block with all that it holds. Gives what it writes.
    fn walk(&mut self, root: BlockId) -> NodeWrites {
        let g = self.graph;
        let mut frames = vec![Frame {
            block: root,
            next: g.first(root),
            writes: NodeWrites::default(),
        }];
        while let Some(top) = frames.last_mut() {
            if let Some(node) = top.next {
                top.next = g.next(node);
                self.enter(node);
                match g.node_blocks(node).first() {
                    Some(&block) => frames.push(Frame {
                        block,
                        next: g.first(block),
                        writes: NodeWrites::default(),
                    }),
                    None => {
                        if let Some(w) = self.writes.get(&node) {
                            top.writes.add(w);
                        }
                    }
                }
                continue;
            }
            let Some(done) = frames.pop() else { break };
            let Some(owner) = g.owner(done.block) else {
                return done.writes;
            };
            self.writes.entry(owner).or_default().add(&done.writes);
            let blocks = g.node_blocks(owner);
            let index = blocks.iter().position(|b| *b == done.block).unwrap_or(blocks.len());
            match blocks.get(index + 1) {
                Some(&block) => frames.push(Frame {
                    block,
                    next: g.first(block),
                    writes: NodeWrites::default(),
                }),
                None => {
                    self.leave(owner);
                    if self.writes.get(&owner).is_some_and(NodeWrites::is_empty) {
                        self.writes.remove(&owner);
                    }
                    if let (Some(w), Some(parent)) = (self.writes.get(&owner), frames.last_mut()) {
                        parent.writes.add(w);
                    }
                }
            }
        }
        NodeWrites::default()
    }

    // --- values

    fn points(&self, value: ValueId) -> &Locations {
        &self.points[value.as_u32() as usize]
    }

    fn set(&mut self, value: ValueId, locations: &[Location]) {
        let mut set = Locations::new();
        self.memory.union(&mut set, locations);
        self.points[value.as_u32() as usize] = set;
    }

    fn set_fresh(&mut self, value: ValueId) {
        match self.memory.kind(self.graph.ty(value)) {
            Kind::Immutable => {}
            kind => {
                let l = self.memory.fresh(kind);
                self.points[value.as_u32() as usize] = smallvec::smallvec![l];
            }
        }
    }

    fn set_wildcard(&mut self, value: ValueId) {
        let kind = self.memory.kind(self.graph.ty(value));
        let w = self.memory.wildcard(kind);
        self.points[value.as_u32() as usize] = w.into_iter().collect();
    }

    fn alias(&mut self, value: ValueId, of: ValueId) {
        if self.memory.kind(self.graph.ty(value)) != Kind::Immutable {
            let locations = self.points(of).clone();
            self.set(value, &locations);
        }
    }

    fn operand(&self, node: NodeId, index: usize) -> Locations {
        self.graph
            .operand(node, index)
            .map_or(Locations::new(), |v| self.points(v).clone())
    }

    fn writes_to(&mut self, node: NodeId, locations: &[Location]) {
        self.writes.entry(node).or_default().add_locations(locations);
    }

    // --- nodes

    fn enter(&mut self, node: NodeId) {
        let g = self.graph;
        match g.kind(node) {
            symbols::PRIM_CONSTANT => self.constant(node),
            symbols::PRIM_IF => {}
            symbols::PRIM_LOOP => self.enter_loop(node),
            symbols::PRIM_GET_ATTR => self.get_attr(node),
            symbols::PRIM_SET_ATTR => self.set_attr(node),
            symbols::PRIM_LIST_CONSTRUCT | symbols::PRIM_TUPLE_CONSTRUCT | symbols::PRIM_DICT_CONSTRUCT => {
                if let Some(out) = g.output(node) {
                    self.set_fresh(out);
                    let container = self.points(out).clone();
                    for i in 0..g.operand_count(node) {
                        let element = self.operand(node, i);
                        self.memory.store(&container, &element);
                    }
                }
            }
            symbols::PRIM_TUPLE_UNPACK
            | symbols::PRIM_TUPLE_INDEX
            | symbols::PRIM_TUPLE_SLICE
            | symbols::PRIM_LIST_UNPACK => {
                self.unpack(node);
            }
            symbols::PRIM_UNCHECKED_CAST => {
                if let (Some(out), Some(of)) = (g.output(node), g.operand(node, 0)) {
                    self.alias(out, of);
                }
            }
            symbols::PRIM_CREATE_OBJECT | symbols::PRIM_UNINITIALIZED => {
                for &out in g.node_outputs(node) {
                    self.set_fresh(out);
                }
            }
            symbols::PRIM_ISINSTANCE | symbols::PRIM_RAISE_EXCEPTION | symbols::PRIM_PRINT => {}
            symbols::PRIM_FORK | symbols::PRIM_FORK_CLOSURE => self.fork(node),
            symbols::PRIM_WAIT => self.wait(node),
            _ => match self.schema(node) {
                Some(schema) if !schema.is_varret && g.node_blocks(node).is_empty() => self.operator(node, &schema),
                _ => self.unknown(node),
            },
        }
    }

    fn leave(&mut self, node: NodeId) {
        let g = self.graph;
        match g.kind(node) {
            symbols::PRIM_IF => {
                for (i, &out) in g.node_outputs(node).iter().enumerate() {
                    let mut all = Locations::new();
                    for &block in g.node_blocks(node) {
                        if let Some(v) = g.results(block).nth(i) {
                            all.extend_from_slice(self.points(v));
                        }
                    }
                    if self.memory.kind(g.ty(out)) != Kind::Immutable {
                        self.set(out, &all);
                    }
                }
            }
            symbols::PRIM_LOOP => self.leave_loop(node),
            _ => {
                // Blocks of an operator that nobody knows.
                for &block in g.node_blocks(node) {
                    for v in g.results(block) {
                        let l = self.points(v).clone();
                        self.memory.escape(&l);
                    }
                }
            }
        }
    }

    fn schema(&mut self, node: NodeId) -> Option<Arc<FunctionSchema>> {
        let g = self.graph;
        let key: Signature = (g.kind(node), g.operands(node).map(|v| g.ty(v)).collect());
        match self.schemas.get(&key) {
            Some(schema) => schema.clone(),
            None => {
                let schema = self.catalogue.resolve(g, node).found();
                self.schemas.insert(key, schema.clone());
                schema
            }
        }
    }

    fn constant(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(out) = g.output(node) else { return };
        match g.constant_of(node) {
            Some(value) => {
                let location = self.memory.constant(&value, g.ty(out));
                if let Some(l) = location {
                    self.set(out, &[l]);
                }
            }
            None => self.set_wildcard(out),
        }
    }

    fn enter_loop(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(&body) = g.node_blocks(node).first() else {
            return;
        };
        let mut own = Vec::new();
        for (i, &parameter) in g.parameters(body).iter().enumerate().skip(1) {
            let mut set = self.operand(node, i + 1);
            let mut mine = Locations::new();
            match self.memory.kind(g.ty(parameter)) {
                Kind::Immutable => {}
                kind => {
                    mine.push(self.memory.fresh(kind));
                    set.extend_from_slice(&mine);
                    self.set(parameter, &set);
                }
            }
            own.push(mine);
        }
        self.carried.insert(node, own);
    }

    fn leave_loop(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(&body) = g.node_blocks(node).first() else {
            return;
        };
        let own = self.carried.remove(&node).unwrap_or_default();
        for (i, mine) in own.into_iter().enumerate() {
            let Some(&mine) = mine.first() else { continue };
            let initial: Vec<Location> = self.operand(node, i + 2).iter().map(|l| self.memory.find(*l)).collect();
            let passed_on = g
                .results(body)
                .nth(i + 1)
                .map_or(Locations::new(), |v| self.points(v).clone());
            for &l in &passed_on {
                let l = self.memory.find(l);
                if !initial.contains(&l) {
                    self.memory.unify(mine, l);
                }
            }
            if let Some(&out) = g.node_outputs(node).get(i) {
                let mut all = passed_on;
                all.extend_from_slice(&self.operand(node, i + 2));
                self.set(out, &all);
            }
        }
    }

    fn get_attr(&mut self, node: NodeId) {
        let g = self.graph;
        let (Some(out), Some(name)) = (g.output(node), g.attribute_symbol(node, symbols::ATTR_NAME)) else {
            return self.unknown(node);
        };
        let instances = self.operand(node, 0);
        let locations = self.memory.field(&instances, name, g.ty(out));
        self.set(out, &locations);
    }

    fn set_attr(&mut self, node: NodeId) {
        let g = self.graph;
        let (Some(name), Some(value)) = (g.attribute_symbol(node, symbols::ATTR_NAME), g.operand(node, 1)) else {
            return self.unknown(node);
        };
        let instances = self.operand(node, 0);
        let locations = self.points(value).clone();
        self.memory.set_field(&instances, name, g.ty(value), &locations);
        self.writes_to(node, &instances);
    }

    /// Reading elements out of a container by position. Of a tuple that is built in this graph, the very elements are known.
    fn unpack(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(container) = g.operand(node, 0) else {
            return self.unknown(node);
        };
        let built = g
            .defining_node(container)
            .filter(|n| g.kind(*n) == symbols::PRIM_TUPLE_CONSTRUCT);
        match (g.kind(node), built) {
            (symbols::PRIM_TUPLE_UNPACK, Some(tuple)) if g.operand_count(tuple) == g.node_outputs(node).len() => {
                for (i, &out) in g.node_outputs(node).iter().enumerate() {
                    if let Some(of) = g.operand(tuple, i) {
                        self.alias(out, of);
                    }
                }
            }
            (symbols::PRIM_TUPLE_SLICE, _) => {
                if let Some(out) = g.output(node) {
                    self.set_fresh(out);
                    let slice = self.points(out).clone();
                    let containers = self.points(container).clone();
                    for ty in self.memory.component_types(g.ty(out)).unwrap_or_default() {
                        let elements = self.memory.load(&containers, ty);
                        self.memory.store(&slice, &elements);
                    }
                }
            }
            _ => {
                let containers = self.points(container).clone();
                for &out in g.node_outputs(node) {
                    let elements = self.memory.load(&containers, g.ty(out));
                    self.set(out, &elements);
                }
            }
        }
    }

    /// Anything may happen to what the node can reach, and it may give anything that is known outside.
    fn unknown(&mut self, node: NodeId) {
        let g = self.graph;
        for i in 0..g.operand_count(node) {
            let l = self.operand(node, i);
            self.memory.escape(&l);
        }
        for &out in g.node_outputs(node) {
            self.set_wildcard(out);
        }
        for &block in g.node_blocks(node) {
            for &p in g.parameters(block) {
                self.set_wildcard(p);
            }
        }
        self.writes.entry(node).or_default().wildcards = true;
    }

    /// The forked graph runs at some time between here and the wait: it is analysed here, and what it writes is written by both.
    fn fork(&mut self, node: NodeId) {
        let g = self.graph;
        let body = g.attribute(node, symbols::ATTR_SUBGRAPH).and_then(|a| a.as_graph());
        let (Some(body), Some(future)) = (body, g.output(node)) else {
            return self.unknown(node);
        };
        let arguments: Vec<Locations> = (0..g.operand_count(node)).map(|i| self.operand(node, i)).collect();
        let outer_points = std::mem::replace(&mut self.points, vec![Locations::new(); body.value_capacity()]);
        let outer_writes = std::mem::take(&mut self.writes);
        let outer_carried = std::mem::take(&mut self.carried);
        self.graph = body;
        for (&input, argument) in body.inputs().iter().zip(&arguments) {
            self.set(input, argument);
        }
        let writes = self.walk(body.root());
        let results: Vec<Locations> = body.outputs().map(|v| self.points(v).clone()).collect();
        self.graph = g;
        self.points = outer_points;
        self.writes = outer_writes;
        self.carried = outer_carried;
        self.set_fresh(future);
        let holder = self.points(future).clone();
        for result in &results {
            self.memory.store(&holder, result);
        }
        self.forked.add(&writes);
        if !writes.is_empty() {
            self.writes.insert(node, writes);
        }
    }

    /// By now the forked graph has written whatever it writes. Of a future that comes from outside nothing is known.
    fn wait(&mut self, node: NodeId) {
        let g = self.graph;
        let (Some(future), Some(out)) = (g.operand(node, 0), g.output(node)) else {
            return self.unknown(node);
        };
        let holder = self.points(future).clone();
        let results = self.memory.load(&holder, g.ty(out));
        self.set(out, &results);
        let mut writes = self.forked.clone();
        writes.wildcards |= g.defining_node(future).is_none_or(|n| g.kind(n) != symbols::PRIM_FORK);
        if !writes.is_empty() {
            self.writes.insert(node, writes);
        }
    }

    // --- operators with schemas

    fn operator(&mut self, node: NodeId, schema: &FunctionSchema) {
        let g = self.graph;
        let mut sets: SmallVec<[(SymbolId, Locations); 2]> = SmallVec::new();
        // Values that the operator stores somewhere, and the containers that it writes to.
        let mut stored: SmallVec<[(Locations, Option<SymbolId>); 1]> = SmallVec::new();
        let mut written: SmallVec<[(ValueId, Locations); 1]> = SmallVec::new();
        for (argument, value) in schema.arguments.iter().zip(g.operands(node)) {
            let locations = self.points(value).clone();
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
        if !written.is_empty() {
            self.store_into_written(node, schema, &written);
        }
        for (locations, name) in &stored {
            let kept_in_output = |r: &frazil_ir::schema::Argument| {
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
        result: &frazil_ir::schema::Argument,
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
                        // A set that no argument is in: something new.
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
            // `t` comes from where a `t` went in.
            return self.extract(node, schema, out);
        }
        self.set_fresh(out);
        if MAY_RETURN_FIRST_OPERAND.contains(&g.kind_name(node)) {
            let mut all = self.points(out).clone();
            all.extend_from_slice(&self.operand(node, 0));
            self.set(out, &all);
        }
        let container = self.points(out).clone();
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

    /// A new container without annotations: it may hold whatever the operands hold (`a + b` of lists, `list(d)`, `meshgrid`).
    fn share_elements(&mut self, node: NodeId, out: ValueId, container: &Locations) {
        let g = self.graph;
        let components = self.memory.component_types(g.ty(out));
        let flat = components.as_ref().is_some_and(|types| {
            let is_flat = |ty: &TypeId| g.ctx().is_tensor(*ty) || self.memory.kind(*ty) == Kind::Immutable;
            types.clone().iter().all(is_flat)
        });
        let operands: Vec<ValueId> = g.operands(node).collect();
        for operand in operands {
            let locations = self.points(operand).clone();
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

    /// What is held by `locations` is from now on known to everybody, and `out` is anything.
    fn give_up(&mut self, out: ValueId, locations: &Locations) {
        self.memory.escape(locations);
        self.set_wildcard(out);
    }

    /// `out` is taken out of the operands that are containers, or is one of those that have its type.
    fn extract(&mut self, node: NodeId, schema: &FunctionSchema, out: ValueId) {
        let g = self.graph;
        let kind = self.memory.kind(g.ty(out));
        let mut all = Locations::new();
        let mut sources = 0;
        let operands: Vec<(usize, ValueId)> = g.operands(node).enumerate().collect();
        for (i, operand) in operands {
            let locations = self.points(operand).clone();
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

    /// What other operands hold may move into a container that the operator writes to (`extend`, `update`).
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
                    let others = self.points(other).clone();
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

impl NodeWrites {
    fn add_locations(&mut self, locations: &[Location]) {
        for &l in locations {
            if !self.locations.contains(&l) {
                self.locations.push(l);
            }
        }
        if self.locations.len() > MAX_WRITES {
            self.anything = true;
            self.locations.clear();
        }
    }

    fn add(&mut self, other: &NodeWrites) {
        self.wildcards |= other.wildcards;
        self.anything |= other.anything;
        if !self.anything {
            self.add_locations(&other.locations);
        }
    }

    fn is_empty(&self) -> bool {
        !self.wildcards && !self.anything && self.locations.is_empty()
    }
}
