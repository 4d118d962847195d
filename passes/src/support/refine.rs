//! Integers that conditions determine: after `if len(x) != 4: raise`, `len(x)` is 4.
//!
//! A bool may have *facts* for the case that it is true, and for the case that it is false. Comparisons create them, `not` swaps them, and branches join them,
//! which covers `and` and `or`. Facts that hold on one side of a branch hold in its block. If the other side raises, they also hold after the branch. Facts are
//! about SSA values, so they never become invalid.

use frazil_ir::{BlockId, Graph, NodeId, ValueId, symbols, types};
use std::collections::{HashMap, HashSet};

/// Values whose integers are known, with the integers.
pub type Facts = HashMap<ValueId, i64>;

/// The facts that follow if a bool is true, and the facts that follow if it is false.
#[derive(Clone, Debug, Default)]
struct Implied {
    when_true: Facts,
    when_false: Facts,
}

impl Implied {
    fn swapped(&self) -> Implied {
        Implied {
            when_true: self.when_false.clone(),
            when_false: self.when_true.clone(),
        }
    }
}

/// A client of [`walk`]: selects the values whose integers are tracked, and visits nodes with the known facts.
pub trait Subject {
    /// Returns the value to which a comparison of `value` with a constant applies: `value` itself, or the list whose length `value` is.
    fn of(&self, graph: &Graph, value: ValueId) -> Option<ValueId>;

    /// Visits a node, or the return node of a block after its nodes, with the facts that are known there.
    fn visit(&mut self, graph: &mut Graph, node: NodeId, known: &Known);

    /// Visits a branch after both sides, with the facts that hold only on each side.
    fn visit_branch(&mut self, _graph: &mut Graph, _node: NodeId, _sides: &[Facts; 2]) {}
}

/// The facts that are known at the current node.
#[derive(Debug, Default)]
pub struct Known {
    blocks: Vec<Facts>,
}

impl Known {
    /// Returns the integer that `value` has at the current node, if it is known.
    pub fn get(&self, value: ValueId) -> Option<i64> {
        self.blocks.iter().find_map(|facts| facts.get(&value).copied())
    }
}

struct Frame {
    block: BlockId,
    next: Option<NodeId>,
    /// The facts of the sides of the enclosing branch, as far as they have been visited.
    sides: [Facts; 2],
}

struct Walk<'s, S> {
    subject: &'s mut S,
    implied: HashMap<ValueId, Implied>,
    throwing: HashSet<BlockId>,
    known: Known,
}

/// Visits the nodes of `graph` in order, and calls `subject` with the facts known at each node.
pub fn walk(graph: &mut Graph, subject: &mut impl Subject) {
    let mut walk = Walk {
        subject,
        implied: HashMap::new(),
        throwing: HashSet::new(),
        known: Known::default(),
    };
    let mut frames = vec![walk.enter(
        graph,
        graph.root(),
        Facts::default(),
        [Facts::default(), Facts::default()],
    )];
    while let Some(frame) = frames.last_mut() {
        let Some(node) = frame.next else {
            let block = frame.block;
            let return_node = graph.return_node(block);
            walk.subject.visit(graph, return_node, &walk.known);
            let facts = walk.known.blocks.pop().unwrap_or_default();
            let Some(done) = frames.pop() else { return };
            let Some(owner) = graph.owner(block) else { return };
            if let Some(frame) = walk.leave(graph, owner, done, facts) {
                frames.push(frame);
            }
            continue;
        };
        frame.next = graph.next(node);
        walk.subject.visit(graph, node, &walk.known);
        if !graph.is_alive(node) {
            continue;
        }
        walk.learn(graph, node);
        if let Some(&first) = graph.node_blocks(node).first() {
            let facts = match graph.kind(node) {
                symbols::PRIM_IF => walk.condition(graph, node).when_true,
                _ => Facts::default(),
            };
            frames.push(walk.enter(graph, first, facts, [Facts::default(), Facts::default()]));
        }
    }
}

impl<S: Subject> Walk<'_, S> {
    fn enter(&mut self, graph: &Graph, block: BlockId, facts: Facts, sides: [Facts; 2]) -> Frame {
        self.known.blocks.push(facts);
        Frame {
            block,
            next: graph.first(block),
            sides,
        }
    }

    fn condition(&self, graph: &Graph, branch: NodeId) -> Implied {
        graph
            .operand(branch, 0)
            .and_then(|c| self.implied.get(&c).cloned())
            .unwrap_or_default()
    }

    /// Ends a block of `owner`. Returns the frame of the next block of `owner`, if there is one.
    fn leave(&mut self, graph: &mut Graph, owner: NodeId, done: Frame, facts: Facts) -> Option<Frame> {
        let blocks = graph.node_blocks(owner).to_vec();
        let index = blocks.iter().position(|b| *b == done.block)?;
        let mut sides = done.sides;
        if let Some(side) = sides.get_mut(index) {
            *side = facts;
        }
        if let Some(&next) = blocks.get(index + 1) {
            let facts = match graph.kind(owner) {
                symbols::PRIM_IF => self.condition(graph, owner).when_false,
                _ => Facts::default(),
            };
            return Some(self.enter(graph, next, facts, sides));
        }
        if graph.kind(owner) == symbols::PRIM_IF && blocks.len() == 2 {
            self.subject.visit_branch(graph, owner, &sides);
            self.join(graph, owner, [blocks[0], blocks[1]], sides);
        }
        None
    }

    /// Adds the facts that follow from a node other than a branch.
    fn learn(&mut self, graph: &Graph, node: NodeId) {
        if graph.kind(node) == symbols::PRIM_RAISE_EXCEPTION {
            self.throwing.extend(graph.parent(node));
            return;
        }
        let Some(output) = graph.output(node) else { return };
        let implied = match (graph.kind_name(node), graph.operand(node, 0), graph.operand(node, 1)) {
            ("aten::__not__", Some(a), None) => self.implied.get(&a).map(Implied::swapped),
            (name @ ("aten::eq" | "aten::ne"), Some(a), Some(b)) => {
                let equal = name == "aten::eq";
                self.comparison(graph, equal, a, b)
                    .or_else(|| self.comparison(graph, equal, b, a))
            }
            _ => None,
        };
        if let Some(implied) = implied {
            self.implied.insert(output, implied);
        }
    }

    /// Returns the facts that follow from `value == constant` (`equal`), or `value != constant`.
    fn comparison(&self, graph: &Graph, equal: bool, value: ValueId, constant: ValueId) -> Option<Implied> {
        let constant = graph.constant(constant)?;
        if graph.ty(value) == types::INT {
            let subject = self.subject.of(graph, value)?;
            let facts = Facts::from([(subject, constant.as_int()?)]);
            let implied = Implied {
                when_true: facts,
                when_false: Facts::default(),
            };
            return Some(if equal { implied } else { implied.swapped() });
        }
        if graph.ty(value) == types::BOOL {
            let implied = self.implied.get(&value)?;
            return Some(if constant.as_bool()? == equal {
                implied.clone()
            } else {
                implied.swapped()
            });
        }
        None
    }

    /// Adds the facts that hold after a branch, including facts about its outputs.
    fn join(&mut self, graph: &Graph, branch: NodeId, blocks: [BlockId; 2], sides: [Facts; 2]) {
        let throws = blocks.map(|b| self.throwing.contains(&b));
        let results = blocks.map(|b| graph.results(b).collect::<Vec<_>>());
        let outputs = graph.node_outputs(branch).to_vec();
        if throws == [true, true] {
            self.throwing.extend(graph.parent(branch));
            return;
        }
        if let Some(dead) = throws.iter().position(|t| *t) {
            // Execution that reaches this point took the other side.
            let live = 1 - dead;
            if let Some(known) = self.known.blocks.last_mut() {
                known.extend(&sides[live]);
            }
            for (output, result) in outputs.iter().zip(&results[live]) {
                if let Some(implied) = self.implied.get(result).cloned() {
                    self.implied.insert(*output, implied);
                }
            }
            return;
        }
        for (i, output) in outputs.into_iter().enumerate() {
            if graph.ty(output) != types::BOOL {
                continue;
            }
            let (Some(&a), Some(&b)) = (results[0].get(i), results[1].get(i)) else {
                continue;
            };
            let constant = |v| graph.constant(v).and_then(|c| c.as_bool());
            // If one side is a constant, the opposite value must come from the other side, whose facts hold as well.
            let joined = match (constant(a), constant(b)) {
                (Some(c), _) => self.one_sided(c, b, &sides[1]),
                (None, Some(c)) => self.one_sided(c, a, &sides[0]),
                (None, None) => match (self.implied.get(&a), self.implied.get(&b)) {
                    (Some(x), Some(y)) => Implied {
                        when_true: common(&x.when_true, &y.when_true),
                        when_false: common(&x.when_false, &y.when_false),
                    },
                    _ => continue,
                },
            };
            self.implied.insert(output, joined);
        }
    }

    fn one_sided(&self, constant: bool, other: ValueId, facts: &Facts) -> Implied {
        let implied = self.implied.get(&other).cloned().unwrap_or_default();
        let mut out = Implied::default();
        let (slot, own) = if constant {
            (&mut out.when_false, implied.when_false)
        } else {
            (&mut out.when_true, implied.when_true)
        };
        slot.extend(own);
        slot.extend(facts);
        out
    }
}

fn common(a: &Facts, b: &Facts) -> Facts {
    let both = |(v, n): (&ValueId, &i64)| (b.get(v) == Some(n)).then_some((*v, *n));
    a.iter().filter_map(both).collect()
}
