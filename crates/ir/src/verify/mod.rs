//! The verifier.
//!
//! [`Graph::verify`] checks the following, and reports all failures at once:
//!
//! - every operand is defined before its use: by an earlier node of an enclosing block, or as a parameter of one;
//! - parents, neighbours and order keys of nodes agree with their blocks;
//! - use lists contain exactly the operands of nodes;
//! - `prim::If` has one `bool` operand and two blocks without parameters, whose results correspond to the node's outputs and are subtypes of their types;
//! - `prim::Loop` has a trip count (`int`), a first condition (`bool`), and carried values; its block takes the iteration number and the carried values and
//!   returns the next condition and the values, which correspond to the node's outputs, with types that fit;
//! - other nodes of the graph have no blocks, unless their operator is unknown;
//! - `prim::Constant` has one output and no operand, and its value has the output's type;
//! - with a [`Catalogue`]: an operator in it has an overload for its operands, and as many outputs as the overload, with types that are subtypes of the
//!   overload's (`Scalar` matches any number or bool). Operators that are not in it are listed by [`Graph::unknown_operators`], not here: they are legal IR;
//! - blocks, types and values are nested at most [`MAX_NESTING`] levels deep;
//! - lists, dictionaries and tuples are made of operands, and unpacked to outputs, of their element types, and `prim::fork` fits its graph.
//!
//! [`Graph::verify_members`] checks nodes that name attributes, methods and functions, with the unit that has them.

mod structural;

use crate::graph::Definition;
use crate::names::Names;
use crate::nesting::{BLOCKS, MAX_NESTING, in_node};
use crate::schema::{Catalogue, Resolution};
use crate::types::is_subtype;
use crate::{AttributeValue, BlockId, Constant, Graph, NodeId, TypeId, TypeKind, ValueId, symbols, types};
use cranelift_entity::SecondaryMap;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::fmt;

/// One error in a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The node with the error.
    pub node: NodeId,
    /// The node as text: its printed outputs, its kind and its source location.
    pub context: String,
    /// The message that describes the error.
    pub message: String,
}

impl Failure {
    fn at(graph: &Graph, names: &Names<'_>, node: NodeId, message: impl Into<String>) -> Failure {
        let outputs: Vec<String> = graph.node_outputs(node).iter().map(|&v| names.show(v)).collect();
        let mut context = match outputs.is_empty() {
            true => graph.kind_name(node).to_owned(),
            false => format!("{} = {}", outputs.join(", "), graph.kind_name(node)),
        };
        if let Some(range) = graph.source_range(node) {
            context += &format!(" at {}", range.display(graph.ctx()));
        }
        Failure {
            node,
            context,
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.context, self.message)
    }
}

/// All errors in a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct VerifyError {
    /// The failures in the order of the graph.
    pub failures: Vec<Failure>,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the graph is not valid:")?;
        for failure in &self.failures {
            write!(f, "\n  {failure}")?;
        }
        Ok(())
    }
}

impl Graph {
    /// Checks the graph; the [module documentation](self) lists the rules.
    ///
    /// # Errors
    /// All failures.
    pub fn verify(&self, catalogue: Option<&Catalogue>) -> Result<(), VerifyError> {
        let mut v = Verifier {
            graph: self,
            catalogue,
            failures: Vec::new(),
            names: OnceCell::new(),
            uses: SecondaryMap::with_capacity(self.value_capacity()),
            visible: Vec::new(),
            is_visible: SecondaryMap::with_capacity(self.value_capacity()),
            depth: 0,
        };
        v.walk();
        v.use_lists();
        if v.failures.is_empty() {
            Ok(())
        } else {
            Err(VerifyError { failures: v.failures })
        }
    }

    /// Returns the nodes whose operator is not in `catalogue`, or has no overload that accepts the node's operands.
    pub fn unknown_operators(&self, catalogue: &Catalogue) -> Vec<NodeId> {
        let unknown = |n: &NodeId| !is_structural(self, *n) && catalogue.resolve(self, *n).found().is_none();
        self.all_nodes().into_iter().filter(unknown).collect()
    }
}

/// Returns true for nodes that are verified by rules of their own and not by a schema.
fn is_structural(graph: &Graph, node: NodeId) -> bool {
    graph.kind_name(node).starts_with("prim::") && {
        matches!(
            graph.kind(node),
            symbols::PRIM_CONSTANT
                | symbols::PRIM_IF
                | symbols::PRIM_LOOP
                | symbols::PRIM_RETURN
                | symbols::PRIM_GET_ATTR
                | symbols::PRIM_SET_ATTR
                | symbols::PRIM_CALL_METHOD
                | symbols::PRIM_CALL_FUNCTION
                | symbols::PRIM_CREATE_OBJECT
                | symbols::PRIM_LIST_CONSTRUCT
                | symbols::PRIM_LIST_UNPACK
                | symbols::PRIM_TUPLE_CONSTRUCT
                | symbols::PRIM_TUPLE_UNPACK
                | symbols::PRIM_TUPLE_INDEX
                | symbols::PRIM_TUPLE_SLICE
                | symbols::PRIM_DICT_CONSTRUCT
                | symbols::PRIM_UNCHECKED_CAST
                | symbols::PRIM_UNINITIALIZED
                | symbols::PRIM_FORK
                | symbols::PRIM_FORK_CLOSURE
                | symbols::PRIM_FUNCTIONAL_GRAPH
                | symbols::PRIM_ISINSTANCE
                | symbols::PRIM_RAISE_EXCEPTION
                | symbols::PRIM_PRINT
                | symbols::PRIM_MODULE_CONTAINER_INDEX
        )
    }
}

struct Verifier<'a> {
    graph: &'a Graph,
    catalogue: Option<&'a Catalogue>,
    failures: Vec<Failure>,
    names: OnceCell<Names<'a>>,
    /// Number of uses found for each value.
    uses: SecondaryMap<ValueId, u32>,
    /// The values that are defined at the current position of the walk.
    visible: Vec<ValueId>,
    is_visible: SecondaryMap<ValueId, bool>,
    /// Nesting depth of the current block.
    depth: usize,
}

/// A pending step of the verifier's walk over the graph.
enum Step {
    /// Enters a block: its parameters, and its nodes.
    Block(BlockId),
    /// Continues with the nodes of a block after the given node, or from the first for `None`.
    Nodes(BlockId, Option<NodeId>),
    /// Defines the outputs of a node, which are not visible in its own blocks.
    Outputs(NodeId),
    /// Leaves a block: checks its results, and truncates the visible values to the given number.
    End(BlockId, usize),
}

impl Verifier<'_> {
    fn fail(&mut self, node: NodeId, message: impl Into<String>) {
        let failure = Failure::at(self.graph, self.names(), node, message);
        self.failures.push(failure);
    }

    /// Returns the printed names of the graph's values.
    fn names(&self) -> &Names<'_> {
        self.names.get_or_init(|| Names::new(self.graph))
    }

    fn fits(&self, actual: TypeId, formal: TypeId) -> bool {
        is_subtype(self.graph.ctx(), actual, formal)
    }

    /// Checks everything in the order of the text, with the visible values marked. A separate dominance check for every use would traverse all enclosing blocks
    /// each time.
    fn walk(&mut self) {
        let g = self.graph;
        // An explicit stack, since untrusted input determines the nesting.
        let mut stack = vec![Step::Block(g.root())];
        while let Some(step) = stack.pop() {
            match step {
                Step::Block(block) => {
                    self.depth += 1;
                    // Reported once, not for each inner block.
                    if self.depth == MAX_NESTING + 1
                        && let Some(owner) = g.owner(block)
                    {
                        self.fail(owner, BLOCKS);
                    }
                    stack.push(Step::End(block, self.visible.len()));
                    stack.push(Step::Nodes(block, None));
                    self.define(g.parameters(block));
                }
                Step::Nodes(block, previous) => {
                    let next = match previous {
                        Some(previous) => g.next(previous),
                        None => g.first(block),
                    };
                    let Some(node) = next else { continue };
                    stack.push(Step::Nodes(block, Some(node)));
                    stack.push(Step::Outputs(node));
                    self.links(block, previous, node);
                    self.node(node);
                    for &inner in g.node_blocks(node).iter().rev() {
                        if g.owner(inner) != Some(node) {
                            self.fail(node, "one of its blocks belongs to another node");
                        }
                        stack.push(Step::Block(inner));
                    }
                }
                Step::Outputs(node) => self.define(g.node_outputs(node)),
                Step::End(block, outside) => {
                    self.depth -= 1;
                    self.operands(g.return_node(block));
                    for value in self.visible.drain(outside..) {
                        self.is_visible[value] = false;
                    }
                }
            }
        }
    }

    fn define(&mut self, values: &[ValueId]) {
        for &value in values {
            self.is_visible[value] = true;
        }
        self.visible.extend_from_slice(values);
    }

    /// Checks the links of `node` to its neighbours in `block`; the node before it is `previous`.
    fn links(&mut self, block: BlockId, previous: Option<NodeId>, node: NodeId) {
        let g = self.graph;
        if g.parent(node) != Some(block) || g.previous(node) != previous {
            self.fail(node, "its links do not agree with its block");
        }
        if let Some(p) = previous
            && g.compare(p, node) != Some(Ordering::Less)
        {
            self.fail(node, "its order key is not above the one of the node before it");
        }
    }

    fn operands(&mut self, node: NodeId) {
        let g = self.graph;
        for (i, value) in g.operands(node).enumerate() {
            self.uses[value] += 1;
            if !self.is_visible[value] {
                let name = self.names().show(value);
                self.fail(node, format!("operand {i} ({name}) is not defined before its use"));
            }
        }
    }

    fn node(&mut self, node: NodeId) {
        self.operands(node);
        let g = self.graph;
        if let Some(what) = in_node(g, node) {
            return self.fail(node, what);
        }
        for (i, &output) in g.node_outputs(node).iter().enumerate() {
            if g.definition(output) != Definition::Output(node, i) {
                self.fail(node, format!("output {i} is defined elsewhere"));
            }
        }
        match g.kind(node) {
            symbols::PRIM_IF => self.branch(node),
            symbols::PRIM_LOOP => self.repetition(node),
            symbols::PRIM_CONSTANT => self.constant(node),
            _ => {
                self.structural(node);
                self.operator(node);
            }
        }
    }

    fn branch(&mut self, node: NodeId) {
        let g = self.graph;
        let conditions: Vec<_> = g.operands(node).map(|v| g.ty(v)).collect();
        if conditions != [types::BOOL] {
            self.fail(node, "takes one condition of type bool");
        }
        let blocks = g.node_blocks(node);
        if blocks.len() != 2 {
            return self.fail(node, format!("has {} blocks instead of 2", blocks.len()));
        }
        for (i, &block) in blocks.iter().enumerate() {
            if !g.parameters(block).is_empty() {
                self.fail(node, format!("block{i} has parameters"));
            }
            let outputs: Vec<_> = g.node_outputs(node).to_vec();
            self.results(
                node,
                &format!("block{i}"),
                &g.results(block).collect::<Vec<_>>(),
                &outputs,
            );
        }
    }

    fn repetition(&mut self, node: NodeId) {
        let g = self.graph;
        let operands: Vec<_> = g.operands(node).collect();
        let (Some(count), Some(condition)) = (operands.first(), operands.get(1)) else {
            return self.fail(node, "takes a trip count and a condition");
        };
        if g.ty(*count) != types::INT || g.ty(*condition) != types::BOOL {
            self.fail(node, "takes a trip count of type int and a condition of type bool");
        }
        let &[body] = g.node_blocks(node) else {
            return self.fail(node, format!("has {} blocks instead of 1", g.node_blocks(node).len()));
        };
        let carried = &operands[2..];
        let outputs = g.node_outputs(node).to_vec();
        let parameters = g.parameters(body).to_vec();
        if parameters.first().map(|p| g.ty(*p)) != Some(types::INT) {
            return self.fail(node, "its block takes the iteration number, of type int, first");
        }
        self.results(node, "the carried values", carried, &parameters[1..]);
        self.results(node, "the carried values", carried, &outputs);
        let results: Vec<_> = g.results(body).collect();
        match results.split_first() {
            Some((condition, values)) if g.ty(*condition) == types::BOOL => {
                self.results(node, "its block", values, &outputs);
            }
            _ => self.fail(node, "its block gives the next condition, of type bool, first"),
        }
    }

    /// Checks that the values `given` correspond to the values `wanted` in number and types.
    fn results(&mut self, node: NodeId, who: &str, given: &[ValueId], wanted: &[ValueId]) {
        let g = self.graph;
        if given.len() != wanted.len() {
            return self.fail(
                node,
                format!("{who} gives {} values where {} are wanted", given.len(), wanted.len()),
            );
        }
        for (i, (&a, &b)) in given.iter().zip(wanted).enumerate() {
            if !self.fits(g.ty(a), g.ty(b)) {
                let (is, want) = (g.ctx().show_type(g.ty(a)), g.ctx().show_type(g.ty(b)));
                self.fail(node, format!("{who} gives {is} where {want} is wanted (value {i})"));
            }
        }
    }

    fn constant(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(output) = g.output(node) else {
            return self.fail(node, "has one output");
        };
        if g.operand_count(node) > 0 || !g.node_blocks(node).is_empty() {
            self.fail(node, "has neither operands nor blocks");
        }
        if let Some(AttributeValue::Constant(value)) = g.attribute(node, symbols::ATTR_VALUE) {
            let (is, want) = (value.ty(g.ctx()), g.ty(output));
            let fits = match value {
                // The type may be more or less precise than the value: a tensor type may be wider, and only the module
                // knows an object's class.
                Constant::Tensor(_) => g.ctx().is_tensor(want),
                Constant::Object(_) => true,
                // A list without elements has any given element type.
                Constant::List(l) if l.items.is_empty() => {
                    matches!(g.ctx().type_kind(want), TypeKind::List(_) | TypeKind::Optional(_))
                }
                _ => self.fits(is, want),
            };
            if !fits {
                let (is, want) = (g.ctx().show_type(is), g.ctx().show_type(want));
                self.fail(node, format!("holds a value of type {is} but gives {want}"));
            }
        }
    }

    fn operator(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(catalogue) = self.catalogue.filter(|_| !is_structural(g, node)) else {
            return;
        };
        match catalogue.resolve(g, node) {
            Resolution::Unknown => {}
            Resolution::NoOverload => {
                let given: Vec<_> = g
                    .operands(node)
                    .map(|v| g.ctx().show_type(g.ty(v)).to_string())
                    .collect();
                let known: Vec<_> = catalogue
                    .overloads(g.kind(node))
                    .map(|s| format!("\n      {}", s.display(g.ctx())))
                    .collect();
                self.fail(
                    node,
                    format!("no overload takes ({}); there are:{}", given.join(", "), known.concat()),
                );
            }
            Resolution::Found(schema) => {
                let outputs = g.node_outputs(node).len();
                if !schema.is_varret && outputs != schema.returns.len() {
                    self.fail(
                        node,
                        format!(
                            "has {outputs} outputs where {} gives {}",
                            schema.full_name(g.ctx()),
                            schema.returns.len()
                        ),
                    );
                }
                self.output_types(node, catalogue);
                if !g.node_blocks(node).is_empty() {
                    self.fail(node, "has blocks, which its operator does not take");
                }
            }
        }
    }

    fn output_types(&mut self, node: NodeId, catalogue: &Catalogue) {
        let g = self.graph;
        let Some((schema, returns)) = catalogue.return_types(g, node) else {
            return;
        };
        for (i, (&output, formal)) in g.node_outputs(node).iter().zip(returns).enumerate() {
            if let Some(formal) = formal
                && !catalogue.may_declare(g.ty(output), formal)
            {
                let (is, gives) = (g.ctx().show_type(g.ty(output)), g.ctx().show_type(formal));
                let name = schema.full_name(g.ctx());
                self.fail(node, format!("output {i} is declared {is}, but {name} gives {gives}"));
            }
        }
    }

    fn use_lists(&mut self) {
        let g = self.graph;
        let counted = std::mem::take(&mut self.uses);
        for (value, &count) in counted.iter().filter(|(_, count)| **count > 0) {
            let mut listed = 0;
            let mut wrong = None;
            for u in g.uses(value) {
                listed += 1;
                if g.operand(u.user, u.index) != Some(value) {
                    wrong = Some(u.user);
                }
            }
            let user = g.uses(value).next().map_or(g.return_node(g.root()), |u| u.user);
            if let Some(user) = wrong {
                self.fail(
                    user,
                    format!(
                        "the uses of {} name an operand that is another value",
                        self.names().show(value)
                    ),
                );
            }
            // Uses by unplaced nodes are legal during a pass, so only missing uses are errors.
            if listed < count {
                self.fail(
                    user,
                    format!(
                        "{} has {listed} uses on record and {count} in the graph",
                        self.names().show(value)
                    ),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::Catalogue;
    use crate::{Builder, Context, DType, Graph, symbols, types};
    use std::sync::Arc;

    #[test]
    fn output_types_follow_the_schema() {
        let ctx = Arc::new(Context::new());
        let mut catalogue = Catalogue::new(ctx.clone());
        catalogue
            .add_schemas("acme::softclip(Tensor self) -> Tensor\nacme::first(t[] list) -> t")
            .unwrap();
        let failures = |kind: &str, operand, declared| {
            let mut g = Graph::new(ctx.clone());
            let x = g.add_input(operand);
            let root = g.root();
            Builder::at_end(&mut g, root).op(ctx.symbol(kind), &[x], declared);
            g.verify(Some(&catalogue)).err().map(|e| e.failures[0].message.clone())
        };
        let refined = ctx.tensor_of(DType::Float, &[2], &[1], false);
        assert_eq!(failures("acme::softclip", types::TENSOR, types::TENSOR), None);
        assert_eq!(failures("acme::softclip", types::TENSOR, refined), None);
        assert_eq!(
            failures("acme::softclip", types::TENSOR, types::INT).as_deref(),
            Some("output 0 is declared int, but acme::softclip gives Tensor")
        );
        let ints = ctx.list_of(types::INT);
        assert_eq!(failures("acme::first", ints, types::INT), None);
        assert!(failures("acme::first", ints, types::TENSOR).is_some());
    }

    fn messages(g: &Graph) -> Vec<String> {
        g.verify(None)
            .err()
            .map_or(Vec::new(), |e| e.failures.into_iter().map(|f| f.message).collect())
    }

    #[test]
    fn all_failures_are_reported() {
        let mut g = Graph::new(Arc::new(Context::new()));
        let root = g.root();
        let x = g.add_input(types::INT);
        let mut b = Builder::at_end(&mut g, root);
        let branch = b.node(symbols::PRIM_IF, &[x], &[types::INT]);
        b.add_block(branch);
        let looping = b.node(symbols::PRIM_LOOP, &[], &[]);
        b.add_block(looping);
        let late = b.constant(1);
        let node = b.defining_node(late).unwrap();
        b.add_operands(branch, &[late]);
        b.set_type(late, types::STR);
        let _ = node;
        let m = messages(&g);
        assert_eq!(m.len(), 5, "{m:#?}");
        assert!(m[0].contains("operand 1") && m[0].contains("not defined before its use"));
        assert!(m[1].contains("one condition of type bool"));
        assert!(m[2].contains("has 1 blocks instead of 2"));
        assert!(m[3].contains("trip count"));
        assert!(m[4].contains("holds a value of type int but gives str"));
    }

    /// Values have the names that the printer uses: unnamed ones have numbers, in the order of the text.
    #[test]
    fn failures_name_values_as_print_does() {
        let ctx = Arc::new(Context::new());
        let mut g = Graph::new(Arc::clone(&ctx));
        let root = g.root();
        let x = g.add_input(types::TENSOR);
        let kind = ctx.symbol("acme::f");
        let mut b = Builder::at_end(&mut g, root);
        let removed = b.op(kind, &[x], types::TENSOR);
        let first = b.op(kind, &[x], types::TENSOR);
        let last = b.op(kind, &[first], types::TENSOR);
        let node = b.defining_node(first).unwrap();
        b.add_operands(node, &[last]);
        let unused = b.defining_node(removed).unwrap();
        assert!(g.erase(unused));
        let failure = &g.verify(None).unwrap_err().failures[0];
        assert_eq!(
            failure.to_string(),
            "%1 = acme::f: operand 1 (%2) is not defined before its use"
        );
    }
}
