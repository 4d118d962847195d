//! Lowering of `return`, `break` and `continue` to outputs of blocks, as in PyTorch.
//!
//! A `return` is emitted as a `prim::ReturnStmt` with the result. `break` and `continue` are emitted as a `prim::LoopContinuation` with the values at the end
//! of the loop's body. This module then replaces both by outputs of blocks.
//!
//! A block that may have exited gets an additional bool output, which guards the nodes that follow in the enclosing blocks. A block that always exits needs
//! none. A block that always raises is ignored, so that `if c: raise ...` guards nothing. An `if` whose condition is a bool that the preceding `if` made of
//! constants is merged into that one.

use std::collections::HashMap;

use frazil_ir::{BlockId, Builder, Graph, NodeId, SymbolId, TypeId, ValueId, symbols, types};

use crate::names::joined_or_union;

pub(super) const RETURN: &str = "prim::ReturnStmt";

pub(super) const CONTINUATION: &str = "prim::LoopContinuation";

/// Kind of the temporary node that contains the nodes between `prim::Enter` and `prim::Exit` while exits are lowered.
const WITH: &str = "prim::With";

/// Replaces all exits (`return`, `break`, `continue`) in `graph` by outputs of blocks.
pub(super) fn run(graph: &mut Graph) {
    let ctx = graph.ctx().clone();
    let (returns, continuation) = (ctx.symbol(RETURN), ctx.symbol(CONTINUATION));
    let leaving: Vec<NodeId> = graph
        .all_nodes()
        .into_iter()
        .filter(|&node| [returns, continuation, symbols::PRIM_RAISE_EXCEPTION].contains(&graph.kind(node)))
        .collect();
    let root = graph.root();
    if let [only] = leaving.as_slice()
        && graph.kind(*only) == returns
        && graph.parent(*only) == Some(root)
    {
        let results: Vec<ValueId> = graph.operands(*only).collect();
        graph.set_results(root, &results);
        graph.erase(*only);
        return;
    }
    wrap_withs(graph, ctx.symbol(WITH));
    for kind in [continuation, returns] {
        Exits::new(graph, kind, ctx.symbol(WITH)).block(root);
    }
    join_consecutive_ifs(graph, root);
    unwrap_withs(graph, ctx.symbol(WITH));
}

#[derive(Clone, Copy)]
enum Whether {
    Always,
    /// The block or node has exited if this bool value is true.
    Perhaps(ValueId),
    Never,
    Raises,
}

/// Whether a block or node has exited, with the values that the exit carries.
struct Exit {
    whether: Whether,
    values: Vec<ValueId>,
}

const NO_EXIT: Exit = Exit {
    whether: Whether::Never,
    values: Vec::new(),
};

struct Exits<'g> {
    graph: &'g mut Graph,
    /// The kind of exit nodes that are being replaced.
    kind: SymbolId,
    with: SymbolId,
    yes: ValueId,
    no: ValueId,
    /// An uninitialised value of each type, for outputs that are never read.
    unset: HashMap<TypeId, ValueId>,
    /// The block from which the current exits jump out.
    target: Option<BlockId>,
}

impl<'g> Exits<'g> {
    fn new(graph: &'g mut Graph, kind: SymbolId, with: SymbolId) -> Exits<'g> {
        let root = graph.root();
        let mut builder = match graph.first(root) {
            Some(first) => Builder::before(graph, first),
            None => Builder::at_end(graph, root),
        };
        let (yes, no) = (builder.constant(true), builder.constant(false));
        Exits {
            graph,
            kind,
            with,
            yes,
            no,
            unset: HashMap::new(),
            target: None,
        }
    }

    fn block(&mut self, block: BlockId) -> Exit {
        let outer = self.target;
        let is_target = match self.graph.owner(block) {
            Some(owner) => self.graph.kind(owner) == symbols::PRIM_LOOP && self.is_continuation(),
            None => !self.is_continuation(),
        };
        if is_target {
            self.target = Some(block);
        }
        let mut exit = NO_EXIT;
        let mut next = self.graph.first(block);
        while let Some(node) = next {
            next = self.graph.next(node);
            exit = self.node(node);
            match exit.whether {
                Whether::Never => {}
                Whether::Always | Whether::Raises => {
                    self.erase_from(block, next);
                    break;
                }
                Whether::Perhaps(flag) => {
                    if let Some(rest) = next {
                        exit = self.guard(block, flag, &exit.values, rest);
                    }
                    break;
                }
            }
        }
        if is_target {
            match exit.whether {
                Whether::Always => self.graph.set_results(block, &exit.values),
                Whether::Perhaps(flag) => {
                    let otherwise: Vec<ValueId> = self.graph.results(block).collect();
                    let node = Builder::at_end(self.graph, block).node(symbols::PRIM_IF, &[flag], &[]);
                    let sides = [self.graph.add_block(node), self.graph.add_block(node)];
                    let outputs: Vec<ValueId> = exit
                        .values
                        .iter()
                        .zip(otherwise)
                        .map(|(&a, b)| self.add_output(node, sides, a, b))
                        .collect();
                    self.graph.set_results(block, &outputs);
                }
                Whether::Never | Whether::Raises => {}
            }
            // Exits reach their target and no further; a loop that would raise may not run at all.
            exit = NO_EXIT;
        }
        self.target = outer;
        exit
    }

    fn is_continuation(&self) -> bool {
        self.graph.ctx().name(self.kind) == CONTINUATION
    }

    fn node(&mut self, node: NodeId) -> Exit {
        let kind = self.graph.kind(node);
        if kind == self.kind {
            let values = self.graph.operands(node).collect();
            self.graph.erase(node);
            return Exit {
                whether: Whether::Always,
                values,
            };
        }
        let blocks = self.graph.node_blocks(node);
        match (kind, blocks) {
            (symbols::PRIM_RAISE_EXCEPTION, _) => Exit {
                whether: Whether::Raises,
                values: Vec::new(),
            },
            (symbols::PRIM_IF, &[then, otherwise]) => self.branch(node, [then, otherwise]),
            (symbols::PRIM_LOOP, &[body]) => self.repeated(node, body),
            (other, &[body, _]) if other == self.with => self.block(body),
            _ => NO_EXIT,
        }
    }

    fn branch(&mut self, node: NodeId, sides: [BlockId; 2]) -> Exit {
        let [mut a, mut b] = sides.map(|side| self.block(side));
        let always = match (a.whether, b.whether) {
            (Whether::Raises, Whether::Raises) => {
                return Exit {
                    whether: Whether::Raises,
                    values: Vec::new(),
                };
            }
            (Whether::Raises | Whether::Never, Whether::Raises | Whether::Never) => return NO_EXIT,
            (Whether::Always | Whether::Raises, Whether::Always | Whether::Raises) => true,
            _ => false,
        };
        if matches!(a.whether, Whether::Never | Whether::Raises) {
            a.values = self.unset_like(&b.values);
        } else if matches!(b.whether, Whether::Never | Whether::Raises) {
            b.values = self.unset_like(&a.values);
        }
        let whether = if always {
            Whether::Always
        } else {
            let flags = [self.flag(a.whether), self.flag(b.whether)];
            Whether::Perhaps(self.add_output(node, sides, flags[0], flags[1]))
        };
        let values = a.values.iter().zip(&b.values);
        let values = values.map(|(&a, &b)| self.add_output(node, sides, a, b)).collect();
        Exit { whether, values }
    }

    /// Ends a loop when an exit in its body leaves an enclosing block, and returns that exit for the loop.
    fn repeated(&mut self, node: NodeId, body: BlockId) -> Exit {
        let exit = self.block(body);
        if matches!(exit.whether, Whether::Never | Whether::Raises) {
            return NO_EXIT;
        }
        let flag = self.flag(exit.whether);
        let mut results: Vec<ValueId> = self.graph.results(body).collect();
        let branch = Builder::at_end(self.graph, body).node(symbols::PRIM_IF, &[flag], &[]);
        let sides = [self.graph.add_block(branch), self.graph.add_block(branch)];
        if let Some(go_on) = results.first_mut() {
            *go_on = self.add_output(branch, sides, self.no, *go_on);
        }
        self.graph.set_results(body, &results);
        let carry = |this: &mut Self, initial: ValueId, result: ValueId| {
            let ty = this.graph.ty(result);
            this.graph.add_operand(node, initial);
            this.graph.add_parameter(body, ty);
            this.graph.add_result(body, result);
            this.graph.add_output(node, ty)
        };
        let flag = carry(self, self.no, flag);
        let initial = self.unset_like(&exit.values);
        let values = initial.into_iter().zip(exit.values);
        let values = values.map(|(initial, value)| carry(self, initial, value)).collect();
        Exit {
            whether: Whether::Perhaps(flag),
            values,
        }
    }

    /// Moves `rest` and the nodes after it in `block` into an `if`, which runs them if `flag` says that no exit has occurred.
    fn guard(&mut self, block: BlockId, flag: ValueId, values: &[ValueId], rest: NodeId) -> Exit {
        let node = Builder::before(self.graph, rest).node(symbols::PRIM_IF, &[flag], &[]);
        let sides = [self.graph.add_block(node), self.graph.add_block(node)];
        let mut moved = Vec::new();
        let mut next = Some(rest);
        while let Some(node) = next {
            next = self.graph.next(node);
            self.graph.remove(node);
            self.graph.append(sides[1], node);
            moved.push(node);
        }
        let results: Vec<ValueId> = self.graph.results(block).collect();
        let unset = self.unset_like(&results);
        let outputs: Vec<ValueId> = unset
            .into_iter()
            .zip(results)
            .map(|(unset, result)| self.add_output(node, sides, unset, result))
            .collect();
        self.graph.set_results(block, &outputs);
        if self
            .graph
            .owner(block)
            .is_some_and(|owner| self.graph.kind(owner) == self.with)
        {
            self.hand_out(node, sides, &moved);
        }
        let exit = self.graph.create_node(self.kind);
        self.graph.add_operands(exit, values);
        self.graph.append(sides[0], exit);
        self.branch(node, sides)
    }

    /// Adds outputs to the `if` that replaces a `with`, for values that the body defines and later nodes use.
    fn hand_out(&mut self, node: NodeId, sides: [BlockId; 2], moved: &[NodeId]) {
        let defined: Vec<ValueId> = moved
            .iter()
            .flat_map(|&node| self.graph.node_outputs(node).to_vec())
            .collect();
        for value in defined {
            let is_outside = |graph: &Graph, user: NodeId| graph.ancestor_in(user, sides[1]).is_none();
            if !self.graph.uses(value).any(|u| is_outside(self.graph, u.user)) {
                continue;
            }
            let unset = self.unset(self.graph.ty(value));
            let output = self.add_output(node, sides, unset, value);
            let inner = self.graph.return_node(sides[1]);
            self.graph
                .replace_uses_if(value, output, |graph, u| u.user != inner && is_outside(graph, u.user));
        }
    }

    /// Erases `from` and the nodes after it in `block`, all of which are unreachable.
    fn erase_from(&mut self, block: BlockId, from: Option<NodeId>) {
        let Some(from) = from else { return };
        let mut last = self.graph.last(block);
        while let Some(node) = last {
            last = self.graph.previous(node).filter(|_| node != from);
            for output in self.graph.node_outputs(node).to_vec() {
                if self.graph.has_uses(output) {
                    let unset = self.unset(self.graph.ty(output));
                    self.graph.replace_all_uses_with(output, unset);
                }
            }
            self.graph.erase(node);
        }
    }

    fn flag(&mut self, whether: Whether) -> ValueId {
        match whether {
            Whether::Always => self.yes,
            Whether::Never => self.no,
            Whether::Perhaps(flag) => flag,
            Whether::Raises => self.unset(types::BOOL),
        }
    }

    fn unset(&mut self, ty: TypeId) -> ValueId {
        if let Some(&known) = self.unset.get(&ty) {
            return known;
        }
        let node = self.graph.create_node(symbols::PRIM_UNINITIALIZED);
        let value = self.graph.add_output(node, ty);
        self.graph.prepend(self.graph.root(), node);
        self.unset.insert(ty, value);
        value
    }

    fn unset_like(&mut self, values: &[ValueId]) -> Vec<ValueId> {
        let types: Vec<TypeId> = values.iter().map(|&value| self.graph.ty(value)).collect();
        types.into_iter().map(|ty| self.unset(ty)).collect()
    }

    /// Adds an output to an `if`, with the value `a` on the first side and `b` on the second.
    fn add_output(&mut self, node: NodeId, sides: [BlockId; 2], a: ValueId, b: ValueId) -> ValueId {
        let ty = joined_or_union(self.graph.ctx(), self.graph.ty(a), self.graph.ty(b));
        self.graph.add_result(sides[0], a);
        self.graph.add_result(sides[1], b);
        self.graph.add_output(node, ty)
    }
}

/// Merges two consecutive `if`s if the first computes the condition of the second as a constant on each side. Each side of the second `if` moves into the
/// corresponding side of the first.
fn join_consecutive_ifs(graph: &mut Graph, block: BlockId) {
    let mut next = graph.first(block);
    while let Some(node) = next {
        for inner in graph.node_blocks(node).to_vec() {
            join_consecutive_ifs(graph, inner);
        }
        // What was joined may stand before another one.
        if !join_with_next(graph, node) {
            next = graph.next(node);
        }
    }
}

fn join_with_next(graph: &mut Graph, first: NodeId) -> bool {
    let Some(second) = graph.next(first) else { return false };
    if graph.kind(first) != symbols::PRIM_IF || graph.kind(second) != symbols::PRIM_IF {
        return false;
    }
    let outputs = graph.node_outputs(first).to_vec();
    let condition = graph.operand(second, 0);
    let Some(at) = outputs.iter().position(|&output| Some(output) == condition) else {
        return false;
    };
    let (&[a, b], &[c, d]) = (graph.node_blocks(first), graph.node_blocks(second)) else {
        return false;
    };
    let known = |side| {
        graph
            .results(side)
            .nth(at)
            .and_then(|v| graph.constant(v))
            .and_then(|c| c.as_bool())
    };
    let from = match (known(a), known(b)) {
        (Some(true), Some(false)) => [c, d],
        (Some(false), Some(true)) => [d, c],
        _ => return false,
    };
    for (into, from) in [a, b].into_iter().zip(from) {
        while let Some(node) = graph.first(from) {
            graph.remove(node);
            graph.append(into, node);
        }
        for result in graph.results(from).collect::<Vec<_>>() {
            graph.add_result(into, result);
        }
        // What the first gives is on this side what this side gives.
        for (index, &output) in outputs.iter().enumerate() {
            let here = graph.results(into).nth(index);
            if let Some(here) = here {
                let ret = graph.return_node(into);
                graph.replace_uses_if(output, here, |graph, u| {
                    u.user == ret || graph.ancestor_in(u.user, into).is_some()
                });
            }
        }
        graph.set_results(from, &[]);
    }
    for output in graph.node_outputs(second).to_vec() {
        let joined = graph.add_output(first, graph.ty(output));
        if let Some(name) = graph.value_name(output) {
            graph.set_value_name(joined, name);
        }
        graph.replace_all_uses_with(output, joined);
    }
    graph.erase(second);
    true
}

/// Moves the nodes between each `prim::Enter` and its `prim::Exit` into the first block of a node `with`, and the exit into its second block.
fn wrap_withs(graph: &mut Graph, with: SymbolId) {
    let [enter, exit] = ["prim::Enter", "prim::Exit"].map(|name| graph.ctx().symbol(name));
    let mut entered = Vec::new();
    for node in graph.all_nodes() {
        if graph.kind(node) == enter {
            entered.push(node);
        } else if graph.kind(node) == exit
            && let Some(enter) = entered.pop()
            && graph.parent(enter) == graph.parent(node)
        {
            let wrapper = Builder::before(graph, node).node(with, &[], &[]);
            let [body, last] = [graph.add_block(wrapper), graph.add_block(wrapper)];
            while let Some(inner) = graph.next(enter).filter(|&inner| inner != wrapper) {
                graph.remove(inner);
                graph.append(body, inner);
            }
            graph.remove(node);
            graph.append(last, node);
        }
    }
}

fn unwrap_withs(graph: &mut Graph, with: SymbolId) {
    for node in graph.all_nodes() {
        if graph.is_alive(node) && graph.kind(node) == with {
            for block in graph.node_blocks(node).to_vec() {
                graph.splice_before(block, node);
            }
            graph.erase(node);
        }
    }
}
