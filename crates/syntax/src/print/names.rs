//! The names that values get in print.

use frazil_ir::{Graph, SymbolId, ValueId};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Names of values, unique within their graph.
///
/// A value keeps the name it has. When several share one, all but the first get a suffix `.N` as PyTorch gives it: the name's own suffix is
/// dropped, and numbers are tried upwards from it. Values without a name get numbers, from 0, that no other value has.
pub(crate) struct Names<'g> {
    graph: &'g Graph,
    /// Names of values whose own name was taken.
    renamed: HashMap<ValueId, String>,
    /// Numbers of nameless values, by value id; `u32::MAX` for the others.
    numbers: Vec<u32>,
}

impl<'g> Names<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Names<'g> {
        let mut names = Names {
            graph,
            renamed: HashMap::new(),
            numbers: vec![u32::MAX; graph.value_capacity()],
        };
        names.assign();
        names
    }

    fn assign(&mut self) {
        let graph = self.graph;
        let values = values_in_order(graph);
        let mut holders: HashSet<SymbolId> = HashSet::with_capacity(values.len());
        let (mut clashes, mut nameless) = (Vec::new(), Vec::new());
        for &v in &values {
            match graph.value_name(v) {
                Some(name) if holders.insert(name) => {}
                Some(name) => clashes.push((v, name)),
                None => nameless.push(v),
            }
        }
        if clashes.is_empty() && nameless.is_empty() {
            return;
        }
        let ctx = graph.ctx();
        let mut given: HashSet<String> = HashSet::new();
        let taken = |name: &str, given: &HashSet<String>| {
            given.contains(name) || ctx.find_symbol(name).is_some_and(|s| holders.contains(&s))
        };
        let mut next: HashMap<&str, u64> = HashMap::new();
        for (v, name) in clashes {
            let name = ctx.name(name);
            let (base, own) = match name.rsplit_once('.') {
                Some((base, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                    (base, digits.parse().unwrap_or(1))
                }
                _ => (name, 1),
            };
            let from = next.entry(base).or_insert(own);
            *from = own.max(*from);
            let mut candidate = format!("{base}.{from}");
            while taken(&candidate, &given) {
                *from += 1;
                candidate.clear();
                let _ = write!(candidate, "{base}.{from}");
            }
            *from += 1;
            given.insert(candidate.clone());
            self.renamed.insert(v, candidate);
        }
        let mut number = 0;
        let mut text = String::new();
        for v in nameless {
            loop {
                text.clear();
                let _ = write!(text, "{number}");
                if !taken(&text, &given) {
                    break;
                }
                number += 1;
            }
            if let Some(slot) = self.numbers.get_mut(v.as_u32() as usize) {
                *slot = number;
            }
            number += 1;
        }
    }

    /// Appends the name of `value`, with its `%`.
    pub(crate) fn push(&self, value: ValueId, out: &mut String) {
        out.push('%');
        let number = self.numbers.get(value.as_u32() as usize).copied();
        if let Some(number) = number.filter(|n| *n != u32::MAX) {
            push_number(number, out);
        } else if let Some(name) = self.renamed.get(&value).filter(|_| !self.renamed.is_empty()) {
            out.push_str(name);
        } else if let Some(name) = self.graph.value_name(value) {
            out.push_str(self.graph.ctx().name(name));
        } else {
            // A value that is not placed in the graph.
            let _ = write!(out, "detached_{}", value.as_u32());
        }
    }
}

fn push_number(mut number: u32, out: &mut String) {
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|d| *d as char));
}

/// Every value of the graph in the order of the text.
fn values_in_order(graph: &Graph) -> Vec<ValueId> {
    let mut out = graph.inputs().to_vec();
    // Nodes still to be visited: the next node of each open block, and blocks of a node that wait for their turn.
    let mut stack = vec![(graph.first(graph.root()), None)];
    while let Some((next, block)) = stack.pop() {
        if let Some(block) = block {
            out.extend_from_slice(graph.parameters(block));
        }
        let Some(node) = next else { continue };
        stack.push((graph.next(node), None));
        out.extend_from_slice(graph.node_outputs(node));
        for &b in graph.node_blocks(node).iter().rev() {
            stack.push((graph.first(b), Some(b)));
        }
    }
    out
}
