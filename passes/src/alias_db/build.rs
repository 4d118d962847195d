//! The alias analysis of a graph, which visits the nodes once, in order.
//!
//! Values are in SSA form and each is analysed once. A carried value of a loop first gets its own location, which is later unified with the values that the
//! body passes on, so no second walk is needed.

mod operators;

use super::memory::{Kind, Location, Locations, Memory};
use super::points::{PointsTo, Writes};
use super::table::Table;
use super::{AliasDb, NodeWrites};
use crate::support::calls;
use crate::support::overloads::Overloads;
use frazil_ir::schema::Catalogue;
use frazil_ir::{BlockId, CompilationUnit, Graph, Module, NodeId, ObjectId, ValueId, symbols};
use std::collections::HashMap;

/// Maximum number of locations that a node writes, with the nodes in its blocks. A node with more is treated as one that may write to anything.
const MAX_WRITES: usize = 32;

/// Maximum nesting of calls and forks that are analysed. More deeply nested ones may have any effect.
const MAX_DEPTH: usize = 32;

/// Maximum total number of nodes in analysed callees. A callee is analysed once for each call.
const MAX_CALLED_NODES: usize = 1 << 20;

pub(super) struct Analysis<'g> {
    graph: &'g Graph,
    catalogue: &'g Catalogue,
    /// The unit in which callees are looked up; without a unit, calls may have any effect.
    unit: Option<&'g CompilationUnit>,
    /// Nesting depth of calls and forks at the current graph.
    depth: usize,
    /// Number of nodes in callees analysed so far.
    called_nodes: usize,
    memory: Memory<'g>,
    points: PointsTo,
    writes: Writes,
    /// Cached facts about operators.
    pub(super) overloads: Overloads,
    /// Accumulated writes of all forked graphs.
    forked: NodeWrites,
    /// The locations of the values that each loop carries, keyed by the loop's node.
    carried: HashMap<NodeId, Vec<Locations>>,
}

/// The result of the analysis for one graph, before unification is complete.
struct Part {
    points: PointsTo,
    writes: Writes,
    outputs: Vec<ValueId>,
}

impl Part {
    fn finish(self, table: Table) -> AliasDb {
        AliasDb::finish(table, self.points, self.writes, &self.outputs)
    }
}

/// A block whose nodes are being analysed.
struct Frame {
    block: BlockId,
    next: Option<NodeId>,
    /// Writes of the block's nodes so far.
    writes: NodeWrites,
}

impl<'g> Analysis<'g> {
    pub(super) fn new(
        graph: &'g Graph,
        catalogue: &'g Catalogue,
        module: Option<&'g Module>,
        unit: Option<&'g CompilationUnit>,
    ) -> Analysis<'g> {
        Analysis {
            graph,
            catalogue,
            unit,
            depth: 0,
            called_nodes: 0,
            memory: Memory::new(graph.ctx().clone(), module),
            points: PointsTo::default(),
            writes: Writes::default(),
            overloads: Overloads::default(),
            forked: NodeWrites::default(),
            carried: HashMap::new(),
        }
    }

    /// Runs the analysis of the graph. Returns its result, and the cached facts about operators.
    pub(super) fn run(mut self) -> (AliasDb, Overloads) {
        let part = self.analyse(None);
        (part.finish(self.memory.into_table()), self.overloads)
    }

    /// Analyses several methods, each with its object, in one abstract memory: values that a method stores are visible to the other methods.
    pub(super) fn run_methods(mut self, methods: &[(&'g Graph, ObjectId)]) -> Vec<AliasDb> {
        let mut parts = Vec::with_capacity(methods.len());
        for &(graph, this) in methods {
            self.graph = graph;
            parts.push(self.analyse(Some(this)));
        }
        let table = self.memory.into_table();
        parts.into_iter().map(|part| part.finish(table.clone())).collect()
    }

    /// Analyses the current graph. If `this` is given, it is the object in the first input.
    fn analyse(&mut self, this: Option<ObjectId>) -> Part {
        let graph = self.graph;
        self.points = PointsTo::new(graph.value_capacity());
        self.writes = Writes::new(graph.node_capacity());
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
        Part {
            points: std::mem::take(&mut self.points),
            writes: std::mem::take(&mut self.writes),
            outputs: graph.outputs().collect(),
        }
    }

    /// Analyses a block with its nested blocks. Returns the writes of its nodes.
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
                        if let Some(w) = self.writes.get(node) {
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
            if !done.writes.is_empty() {
                self.writes.entry(owner).add(&done.writes);
            }
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
                    if let (Some(w), Some(parent)) = (self.writes.get(owner), frames.last_mut()) {
                        parent.writes.add(w);
                    }
                }
            }
        }
        NodeWrites::default()
    }

    // --- values

    fn points(&self, value: ValueId) -> Locations {
        Locations::from_slice(self.points.get(value))
    }

    fn set(&mut self, value: ValueId, locations: &[Location]) {
        let mut set = Locations::new();
        self.memory.union(&mut set, locations);
        self.points.set(value, &set);
    }

    fn set_fresh(&mut self, value: ValueId) {
        match self.memory.kind(self.graph.ty(value)) {
            Kind::Immutable => {}
            kind => {
                let l = self.memory.fresh(kind);
                self.points.set(value, &[l]);
            }
        }
    }

    fn set_wildcard(&mut self, value: ValueId) {
        let locations = self.memory.wildcards(self.graph.ty(value));
        self.points.set(value, &locations);
    }

    fn alias(&mut self, value: ValueId, of: ValueId) {
        if self.memory.kind(self.graph.ty(value)) != Kind::Immutable {
            let locations = self.points(of);
            self.set(value, &locations);
        }
    }

    fn operand(&self, node: NodeId, index: usize) -> Locations {
        self.graph
            .operand(node, index)
            .map_or(Locations::new(), |v| self.points(v))
    }

    fn writes_to(&mut self, node: NodeId, locations: &[Location]) {
        self.writes.entry(node).add_locations(locations);
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
                    let container = self.points(out);
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
            symbols::PRIM_CALL_FUNCTION | symbols::PRIM_CALL_METHOD => self.call(node),
            symbols::PRIM_FUNCTIONAL_GRAPH => self.functional_graph(node),
            _ if !g.node_blocks(node).is_empty() => self.unknown(node),
            _ => {
                let overload = self.overloads.of(self.catalogue, g, node);
                if overload.is_plain {
                    return g.node_outputs(node).iter().for_each(|out| self.set_fresh(*out));
                }
                match overload.schema.clone() {
                    Some(schema) if !schema.is_varret => self.operator(node, &schema),
                    _ => self.unknown(node),
                }
            }
        }
    }

    fn leave(&mut self, node: NodeId) {
        let g = self.graph;
        match g.kind(node) {
            symbols::PRIM_IF => {
                for (i, &out) in g.node_outputs(node).iter().enumerate() {
                    let mut all = Locations::new();
                    for &block in g.node_blocks(node) {
                        if let Some(v) = g.operand(g.return_node(block), i) {
                            all.extend_from_slice(self.points.get(v));
                        }
                    }
                    if self.memory.kind(g.ty(out)) != Kind::Immutable {
                        self.set(out, &all);
                    }
                }
            }
            symbols::PRIM_LOOP => self.leave_loop(node),
            _ => {
                // Blocks of an unknown operator.
                for &block in g.node_blocks(node) {
                    for v in g.results(block) {
                        let l = self.points(v);
                        self.memory.escape(&l);
                    }
                }
            }
        }
    }

    fn constant(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(out) = g.output(node) else { return };
        if self.memory.kind(g.ty(out)) == Kind::Immutable {
            return;
        }
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
            let passed_on = self.operand(g.return_node(body), i + 1);
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
        let locations = self.points(value);
        self.memory.set_field(&instances, name, g.ty(value), &locations);
        self.writes_to(node, &instances);
    }

    /// Handles `prim::TupleUnpack`, `prim::TupleIndex`, `prim::TupleSlice` and `prim::ListUnpack`, whose outputs alias elements of the container. The
    /// elements of a tuple from a `prim::TupleConstruct` of this graph are known exactly.
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
                    let slice = self.points(out);
                    let containers = self.points(container);
                    for ty in self.memory.component_types(g.ty(out)).unwrap_or_default() {
                        let elements = self.memory.load(&containers, ty);
                        self.memory.store(&slice, &elements);
                    }
                }
            }
            _ => {
                let containers = self.points(container);
                for &out in g.node_outputs(node) {
                    let elements = self.memory.load(&containers, g.ty(out));
                    self.set(out, &elements);
                }
            }
        }
    }

    /// Handles an unknown node: it may write everything that it can reach, and may return anything that is known outside.
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
        self.writes.entry(node).wildcards = true;
    }

    /// Handles a fork. The forked graph runs at any time between the fork and the wait. It is analysed at the fork, and its writes count for both nodes.
    fn fork(&mut self, node: NodeId) {
        let g = self.graph;
        let body = g.attribute(node, symbols::ATTR_SUBGRAPH).and_then(|a| a.as_graph());
        let (Some(body), Some(future)) = (body.filter(|_| self.depth < MAX_DEPTH), g.output(node)) else {
            return self.unknown(node);
        };
        let (results, writes) = self.subgraph(node, body, 0);
        self.set_fresh(future);
        let holder = self.points(future);
        for result in &results {
            self.memory.store(&holder, result);
        }
        self.forked.add(&writes);
        if !writes.is_empty() {
            *self.writes.entry(node) = writes;
        }
    }

    /// Handles a call. If the callee is known, the call has the effects of the callee's graph on the arguments.
    fn call(&mut self, node: NodeId) {
        let g = self.graph;
        let callee = self.unit.and_then(|unit| {
            let call = calls::resolve(unit, g, node).ok()??;
            let body = &unit.function(call.callee).graph;
            (body.inputs().len() + call.skip == g.operand_count(node)).then_some((body, call.skip))
        });
        match callee {
            Some((body, skip)) => self.body(node, body, skip),
            None => self.unknown(node),
        }
    }

    /// Handles a `prim::FunctionalGraph` node, which has the effects of the graph that it runs.
    fn functional_graph(&mut self, node: NodeId) {
        let g = self.graph;
        match g.attribute(node, symbols::ATTR_SUBGRAPH).and_then(|a| a.as_graph()) {
            Some(body) if body.inputs().len() == g.operand_count(node) => self.body(node, body, 0),
            _ => self.unknown(node),
        }
    }

    /// Applies the effects of running `body` to `node`, unless the graph is too large to analyse.
    fn body(&mut self, node: NodeId, body: &'g Graph, skip: usize) {
        let g = self.graph;
        if self.depth >= MAX_DEPTH || self.called_nodes + body.node_capacity() > MAX_CALLED_NODES {
            return self.unknown(node);
        }
        self.called_nodes += body.node_capacity();
        let (results, writes) = self.subgraph(node, body, skip);
        for (&out, result) in g.node_outputs(node).iter().zip(&results) {
            if self.memory.kind(g.ty(out)) != Kind::Immutable {
                self.set(out, result);
            }
        }
        if !writes.is_empty() {
            *self.writes.entry(node) = writes;
        }
    }

    /// Analyses `body` with the node's operands after the first `skip` as its inputs. Returns the locations of its outputs, and its writes.
    fn subgraph(&mut self, node: NodeId, body: &'g Graph, skip: usize) -> (Vec<Locations>, NodeWrites) {
        let g = self.graph;
        let arguments: Vec<Locations> = (skip..g.operand_count(node)).map(|i| self.operand(node, i)).collect();
        self.depth += 1;
        let outer_points = std::mem::replace(&mut self.points, PointsTo::new(body.value_capacity()));
        let outer_writes = std::mem::replace(&mut self.writes, Writes::new(body.node_capacity()));
        let outer_carried = std::mem::take(&mut self.carried);
        self.graph = body;
        for (&input, argument) in body.inputs().iter().zip(&arguments) {
            self.set(input, argument);
        }
        let writes = self.walk(body.root());
        let results: Vec<Locations> = body.outputs().map(|v| self.points(v)).collect();
        self.depth -= 1;
        self.graph = g;
        self.points = outer_points;
        self.writes = outer_writes;
        self.carried = outer_carried;
        (results, writes)
    }

    /// Handles a wait: all writes of the forked graph have happened. A future from outside is unknown.
    fn wait(&mut self, node: NodeId) {
        let g = self.graph;
        let (Some(future), Some(out)) = (g.operand(node, 0), g.output(node)) else {
            return self.unknown(node);
        };
        let holder = self.points(future);
        let results = self.memory.load(&holder, g.ty(out));
        self.set(out, &results);
        let mut writes = self.forked.clone();
        writes.wildcards |= g.defining_node(future).is_none_or(|n| g.kind(n) != symbols::PRIM_FORK);
        if !writes.is_empty() {
            *self.writes.entry(node) = writes;
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

    pub(super) fn add(&mut self, other: &NodeWrites) {
        self.wildcards |= other.wildcards;
        self.anything |= other.anything;
        if !self.anything {
            self.add_locations(&other.locations);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.wildcards && !self.anything && self.locations.is_empty()
    }
}
