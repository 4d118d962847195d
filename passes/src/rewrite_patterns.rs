//! Pattern rewriting: `rewrite-patterns`, and [`PatternRewriter`] for Rust.
//!
//! A [`Rule`] is two graphs in the text form. Nodes of the processed graph that match the nodes of the pattern (kinds, attributes, uses) are
//! replaced by the nodes of the replacement, whose inputs and outputs correspond to those of the pattern by position:
//!
//! ```text
//! graph(%a, %b, %alpha):
//!   %sum = aten::add(%a, %b, %alpha)
//!   %r = aten::relu(%sum)
//!   return (%r)
//! =>
//! graph(%a, %b, %alpha):
//!   %r = aten::_add_relu(%a, %b, %alpha)
//!   return (%r)
//! ```
//! A file contains any number of rules, separated by a line `---`. A rule is tried everywhere before the next one. Its own results can be matched by it again
//! only in the next run. The author of a rule guarantees that the replacement computes the same as the pattern.
//!
//! **Matches** are within one block. Values inside the pattern that are not its outputs must have no other uses. The types in the pattern are ignored, except
//! that of a constant without a value. The replacement is inserted at the last node of the match.
//!
//! **Not replaced** is a match whose nodes cannot be moved there, because a node in between writes memory that they read, or reads memory that they write.
//! (PyTorch does not check this.) A rule may have additional conditions in Rust.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support;
use frazil_ir::schema::Catalogue;
use frazil_ir::{AttributeValue, Builder, Context, CopyMap, Definition, Graph, NodeId, ValueId, ValueName, symbols};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Declaration of the pass `rewrite-patterns` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "rewrite-patterns",
    summary: "Replaces subgraphs by others, by the rules in a file.",
    before: "graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
",
    after: "graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
",
    options: &[OptionInfo {
        name: "file",
        kind: OptionKind::List,
        default: "",
        doc: "Files of rules: a pattern, a line `=>`, a replacement; a line `---` between rules.",
    }],
    build: |options| {
        AnyPass::graph(RewritePatterns {
            files: options.list("file").to_vec(),
        })
    },
};

/// The pass `rewrite-patterns`: applies the rewrite rules in `files`, one file after the other. See the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub struct RewritePatterns {
    /// The paths of the files with rewrite rules.
    pub files: Vec<String>,
}

impl GraphPass<TorchScript> for RewritePatterns {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        for file in &self.files {
            let wrong = |e: &dyn std::fmt::Display| PassError::Unsupported(format!("rules of {file}: {e}"));
            let text = std::fs::read_to_string(file).map_err(|e| wrong(&e))?;
            let rules = parse_rules(graph.ctx(), &text).map_err(|e| wrong(&e))?;
            PatternRewriter { rules }.run(graph, cx)?;
        }
        Ok(())
    }
}

/// The reason why a rule is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// A part of a rules file does not have the form of a rule.
    #[error("expected a pattern, a line `=>`, and a replacement")]
    Form,
    /// The pattern or replacement is not a valid graph.
    #[error("{0}")]
    Text(#[from] frazil_syntax::ParseError),
    /// The pattern and the replacement have different numbers of inputs or outputs.
    #[error("the replacement has {0} inputs and {1} outputs where the pattern has {2} and {3}")]
    Signature(usize, usize, usize, usize),
    /// The pattern cannot match any graph.
    #[error("the first output of a pattern has to be made by a node of it, and patterns have no blocks")]
    Pattern,
}

type Condition = Box<dyn Fn(&Graph, &Match) -> bool + Send + Sync>;

/// A rewrite rule: a pattern and its replacement.
pub struct Rule {
    pattern: Graph,
    replacement: Graph,
    condition: Option<Condition>,
    /// The value in the pattern whose defining node's match provides the source range of new nodes.
    range_of: Option<ValueId>,
}

/// A match of a rule's pattern in a graph.
pub struct Match<'r> {
    pattern: &'r Graph,
    values: HashMap<ValueId, ValueId>,
    /// For each node of the pattern, the node of the graph that it matches.
    nodes: HashMap<NodeId, NodeId>,
}

impl Match<'_> {
    /// Returns the value of the graph that corresponds to the pattern's value `name` (without `%`).
    pub fn value(&self, name: &str) -> Option<ValueId> {
        let wanted = ValueName::new(self.pattern.ctx(), name);
        let named = |(v, _): &(&ValueId, &ValueId)| self.pattern.value_name(**v) == Some(wanted);
        self.values.iter().find(named).map(|(_, v)| *v)
    }
}

impl Rule {
    /// Returns the rule that replaces `pattern` by `replacement`.
    ///
    /// # Errors
    /// If one of them does not parse, or they do not fit together.
    pub fn new(ctx: &Arc<Context>, pattern: &str, replacement: &str) -> Result<Rule, RuleError> {
        let (pattern, replacement) = (parse(ctx, pattern)?, parse(ctx, replacement)?);
        let signature = |g: &Graph| (g.inputs().len(), g.outputs().len());
        let (given, wanted) = (signature(&replacement), signature(&pattern));
        if given != wanted {
            return Err(RuleError::Signature(given.0, given.1, wanted.0, wanted.1));
        }
        let made = |v: ValueId| pattern.defining_node(v).is_some();
        let flat = pattern.all_nodes().iter().all(|n| pattern.node_blocks(*n).is_empty());
        if !flat || pattern.outputs().len() == 0 || !pattern.outputs().all(made) {
            return Err(RuleError::Pattern);
        }
        Ok(Rule {
            pattern,
            replacement,
            condition: None,
            range_of: None,
        })
    }

    /// Restricts the rule to matches for which `condition` returns true.
    #[must_use]
    pub fn when(mut self, condition: impl Fn(&Graph, &Match) -> bool + Send + Sync + 'static) -> Rule {
        self.condition = Some(Box::new(condition));
        self
    }

    /// Sets the source range of new nodes to that of the node that defines the pattern's value `name`; by default, that of the last node.
    #[must_use]
    pub fn with_range_of(mut self, name: &str) -> Rule {
        let wanted = ValueName::new(self.pattern.ctx(), name);
        let outputs = self
            .pattern
            .all_nodes()
            .into_iter()
            .flat_map(|n| self.pattern.node_outputs(n).to_vec());
        let values: Vec<ValueId> = outputs.collect();
        self.range_of = values.into_iter().find(|v| self.pattern.value_name(*v) == Some(wanted));
        self
    }
}

fn parse(ctx: &Arc<Context>, text: &str) -> Result<Graph, RuleError> {
    Ok(frazil_syntax::parse_graph(ctx, text)?.graph)
}

/// Parses the rules in a text; see the [module documentation](self).
///
/// # Errors
/// The first invalid rule.
pub fn parse_rules(ctx: &Arc<Context>, text: &str) -> Result<Vec<Rule>, RuleError> {
    let parts = |text: &str, separator: &str| -> Vec<String> {
        let mut parts = vec![String::new()];
        for line in text.lines() {
            if line.trim() == separator {
                parts.push(String::new());
            } else if let Some(part) = parts.last_mut() {
                part.push_str(line);
                part.push('\n');
            }
        }
        parts
    };
    let rules = parts(text, "---");
    rules
        .iter()
        .map(|rule| match parts(rule, "=>").as_slice() {
            [pattern, replacement] => Rule::new(ctx, pattern, replacement),
            _ => Err(RuleError::Form),
        })
        .collect()
}

/// Rules that are applied in sequence.
#[derive(Default)]
pub struct PatternRewriter {
    /// The rules in the order in which they are applied.
    pub rules: Vec<Rule>,
}

impl PatternRewriter {
    /// Rewrites `graph`, including the bodies of its forks. Returns the number of replaced matches.
    ///
    /// # Errors
    /// None; the return type is that of passes.
    pub fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<usize, PassError> {
        let mut done = 0;
        support::for_each_subgraph(graph, |g| {
            done += cx.elsewhere(|cx| self.run(g, cx))?;
            Ok::<(), PassError>(())
        })?;
        for rule in &self.rules {
            done += apply(rule, graph, cx);
        }
        Ok(done)
    }
}

fn apply(rule: &Rule, graph: &mut Graph, cx: &mut PassContext<'_>) -> usize {
    let Some(anchor) = rule
        .pattern
        .outputs()
        .next()
        .and_then(|v| rule.pattern.defining_node(v))
    else {
        return 0;
    };
    let kind = rule.pattern.kind(anchor);
    let candidates: Vec<NodeId> = graph
        .all_nodes()
        .into_iter()
        .filter(|n| graph.kind(*n) == kind)
        .collect();
    if candidates.is_empty() {
        return 0;
    }
    let db = cx.alias_db(graph);
    let mut made: HashSet<NodeId> = HashSet::new();
    let mut done = 0;
    for node in candidates {
        if !graph.is_alive(node) {
            continue;
        }
        let Some(found) = find(rule, graph, anchor, node) else {
            continue;
        };
        // The analysis does not contain the results of this rule.
        if found.nodes.values().any(|n| made.contains(n)) {
            continue;
        }
        let Some(last) = place(graph, &found, &db, cx.operators().catalogue()) else {
            continue;
        };
        if rule.condition.as_ref().is_some_and(|c| !c(graph, &found)) {
            continue;
        }
        if !cx.rewrite("patterns replaced") {
            return done;
        }
        put(rule, graph, &found, last, &mut made);
        done += 1;
    }
    done
}

/// Returns a match of the pattern in which `at` is the match of the pattern's node `anchor`.
fn find<'r>(rule: &'r Rule, graph: &Graph, anchor: NodeId, at: NodeId) -> Option<Match<'r>> {
    let pattern = &rule.pattern;
    let block = graph.parent(at)?;
    let mut found = Match {
        pattern,
        values: HashMap::new(),
        nodes: HashMap::new(),
    };
    let mut work = vec![(anchor, at)];
    while let Some((p, n)) = work.pop() {
        match found.nodes.get(&p) {
            Some(known) if *known == n => continue,
            Some(_) => return None,
            None => {}
        }
        if graph.parent(n) != Some(block) || !looks_like(pattern, p, graph, n) {
            return None;
        }
        found.nodes.insert(p, n);
        let outputs = pattern
            .node_outputs(p)
            .iter()
            .copied()
            .zip(graph.node_outputs(n).iter().copied());
        let operands = pattern.operands(p).zip(graph.operands(n));
        for (v, w) in outputs.chain(operands) {
            if found.values.insert(v, w).is_some_and(|before| before != w) {
                return None;
            }
            if let Definition::Output(maker, index) = pattern.definition(v) {
                match graph.definition(w) {
                    Definition::Output(other, i) if i == index => work.push((maker, other)),
                    _ => return None,
                }
            }
        }
    }
    // All of the pattern, each node of the graph once, and no uses outside except of its outputs.
    let members: HashSet<NodeId> = found.nodes.values().copied().collect();
    if found.nodes.len() != pattern.all_nodes().len() || members.len() != found.nodes.len() {
        return None;
    }
    let given: HashSet<ValueId> = pattern.outputs().collect();
    let internal = |(v, w): (&ValueId, &ValueId)| {
        given.contains(v)
            || pattern
                .defining_node(*v)
                .is_none_or(|p| pattern.kind(p) == symbols::PRIM_CONSTANT)
            || graph.uses(*w).all(|u| members.contains(&u.user))
    };
    found.values.iter().all(internal).then_some(found)
}

fn looks_like(pattern: &Graph, p: NodeId, graph: &Graph, n: NodeId) -> bool {
    let same_attributes = pattern.attributes(p).iter().all(|a| {
        graph.attribute(n, a.name).is_some_and(|value| match (&a.value, value) {
            (AttributeValue::Constant(x), AttributeValue::Constant(y)) => x.same(y),
            (x, y) => x.same(y),
        })
    });
    // A constant without a value is None.
    let none = pattern.kind(p) != symbols::PRIM_CONSTANT
        || !pattern.attributes(p).is_empty()
        || graph.attributes(n).is_empty();
    pattern.kind(p) == graph.kind(n)
        && pattern.operand_count(p) == graph.operand_count(n)
        && pattern.node_outputs(p).len() == graph.node_outputs(n).len()
        && graph.node_blocks(n).is_empty()
        && same_attributes
        && none
}

/// Returns the last matched node, if the others can be moved to its position.
fn place(graph: &Graph, found: &Match, db: &AliasDb, catalogue: &Catalogue) -> Option<NodeId> {
    let members: HashSet<NodeId> = found.nodes.values().copied().collect();
    let last = members
        .iter()
        .copied()
        .max_by(|a, b| graph.compare(*a, *b).unwrap_or(std::cmp::Ordering::Equal))?;
    for &member in &members {
        if graph.kind(member) == symbols::PRIM_CONSTANT {
            continue;
        }
        let mut cursor = graph.next(member);
        while let Some(n) = cursor.filter(|_| member != last) {
            if n == last {
                break;
            }
            // An output of the match that is used before its last node would be defined too late.
            let uses_member = graph.operands(n).any(|v| graph.defining_node(v) == Some(member));
            if !members.contains(&n) && (uses_member || db.conflict(graph, member, n, catalogue)) {
                return None;
            }
            cursor = graph.next(n);
        }
    }
    let outputs: Vec<ValueId> = found
        .pattern
        .outputs()
        .filter_map(|v| found.values.get(&v).copied())
        .collect();
    let late = outputs.iter().any(|v| {
        graph
            .uses(*v)
            .any(|u| !members.contains(&u.user) && graph.is_before(u.user, last))
    });
    (!late).then_some(last)
}

fn put(rule: &Rule, graph: &mut Graph, found: &Match, last: NodeId, made: &mut HashSet<NodeId>) {
    let mut map = CopyMap::default();
    for (&p, &r) in rule.pattern.inputs().iter().zip(rule.replacement.inputs()) {
        if let Some(&v) = found.values.get(&p) {
            map.set(r, v);
        }
    }
    let range = rule
        .range_of
        .and_then(|v| rule.pattern.defining_node(v))
        .and_then(|p| found.nodes.get(&p))
        .map_or_else(|| graph.source_range(last), |n| graph.source_range(*n));
    let first_new = graph.node_capacity();
    let root = rule.replacement.root();
    let results = Builder::before(graph, last).copy_block(&rule.replacement, root, &mut map);
    for n in first_new..graph.node_capacity() {
        let node = NodeId::from_u32(n as u32);
        graph.set_source_range(node, range);
        made.insert(node);
        // The names are those of the rule, which have no meaning here.
        for output in graph.node_outputs(node).to_vec() {
            graph.clear_value_name(output);
        }
    }
    for (p, new) in rule.pattern.outputs().zip(results) {
        let Some(&old) = found.values.get(&p) else { continue };
        if made.contains(&graph.defining_node(new).unwrap_or(last)) {
            graph.set_type(new, graph.ty(old));
            if let Some(name) = graph.value_name(old) {
                graph.set_value_name(new, name);
            }
        }
        graph.replace_all_uses_with(old, new);
    }
    // Users before their operands.
    let mut members: Vec<NodeId> = found.nodes.values().copied().collect();
    members.sort_by(|a, b| graph.compare(*b, *a).unwrap_or(std::cmp::Ordering::Equal));
    for node in members {
        graph.erase(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(rules: &str, text: &str) -> String {
        let ctx = Arc::new(Context::new());
        let mut catalogue = Catalogue::new(ctx.clone());
        catalogue.add_lines(
            "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n\
             aten::relu(Tensor self) -> Tensor\n\
             aten::relu_(Tensor(a!) self) -> Tensor(a!)\n\
             aten::t(Tensor(a) self) -> Tensor(a)\n\
             aten::mul.Tensor(Tensor self, Tensor other) -> Tensor\n\
             aten::neg(Tensor self) -> Tensor",
        );
        let mut graph = frazil_syntax::parse_graph(&ctx, text).unwrap().graph;
        let rules = parse_rules(&ctx, rules).unwrap();
        PatternRewriter { rules }
            .run(&mut graph, &mut PassContext::new(&catalogue))
            .unwrap();
        graph.verify(None).unwrap();
        frazil_syntax::print_graph(&graph)
    }

    const MUL_NEG: &str = "graph(%a, %b):\n  %m = aten::mul(%a, %b)\n  %r = aten::neg(%m)\n  return (%r)\n=>\n\
                           graph(%a, %b):\n  %r = foo::mul_neg(%a, %b)\n  return (%r)\n";

    #[test]
    fn matches_are_replaced_and_chains_too() {
        let text = "graph(%x : Tensor):\n  %m = aten::mul(%x, %x)\n  %n = aten::neg(%m)\n  %o = aten::mul(%n, %x)\n  \
                    %p = aten::neg(%o)\n  return (%p)\n";
        let out = rewrite(MUL_NEG, text);
        assert_eq!(out.matches("foo::mul_neg").count(), 2, "{out}");
        assert!(!out.contains("aten::"), "{out}");
    }

    #[test]
    fn values_that_others_use_and_writes_in_between_stop_it() {
        let used = "graph(%x : Tensor):\n  %m = aten::mul(%x, %x)\n  %n = aten::neg(%m)\n  return (%n, %m)\n";
        assert!(rewrite(MUL_NEG, used).contains("aten::mul"));
        let written = "graph(%x : Tensor):\n  %m = aten::mul(%x, %x)\n  %w = aten::relu_(%x)\n  %n = aten::neg(%m)\n  return (%n)\n";
        assert!(rewrite(MUL_NEG, written).contains("aten::mul"));
    }

    #[test]
    fn rules_that_do_not_fit_are_errors() {
        let ctx = Arc::new(Context::new());
        let identity = "graph(%a):\n  return (%a)\n";
        let relu = "graph(%a):\n  %r = aten::relu(%a)\n  return (%r)\n";
        assert!(matches!(Rule::new(&ctx, identity, relu), Err(RuleError::Pattern)));
        let two = "graph(%a, %b):\n  %r = aten::mul(%a, %b)\n  return (%r)\n";
        assert!(matches!(
            Rule::new(&ctx, relu, two),
            Err(RuleError::Signature(2, 1, 1, 1))
        ));
        assert!(matches!(Rule::new(&ctx, "graph(", relu), Err(RuleError::Text(_))));
        assert!(matches!(parse_rules(&ctx, relu), Err(RuleError::Form)));
    }
}
