//! Assignment of unique names to values, for printing.

use crate::{Graph, ValueId, ValueName, literal, symbols};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::FxHashSet;
use std::collections::HashMap;
use std::fmt::Write;

/// Names of values, unique within their graph.
///
/// A value keeps its name. If several values have the same name, all but the first get a suffix `.N` as in PyTorch: the name's own suffix is dropped, and
/// numbers are tried upwards from it. Characters that a text cannot contain are replaced by `_`. Values without a name get unused numbers, from 0.
pub struct Names<'g> {
    graph: &'g Graph,
    /// The assigned names of values that have no name of their own, or one that an earlier value has.
    given: SecondaryMap<ValueId, PackedOption<ValueName>>,
}

impl<'g> Names<'g> {
    /// Assigns a unique name to each value of `graph`.
    pub fn new(graph: &'g Graph) -> Names<'g> {
        let mut names = Names {
            graph,
            given: SecondaryMap::new(),
        };
        names.assign();
        names
    }

    fn assign(&mut self) {
        let graph = self.graph;
        let values = values_in_order(graph);
        let mut taken = Taken::new(values.len());
        let (mut clashes, mut nameless) = (Vec::new(), Vec::new());
        for &v in &values {
            match graph.value_name(v) {
                Some(name) if is_readable(graph, name) && taken.insert(name) => {}
                Some(name) => clashes.push((v, name)),
                None => nameless.push(v),
            }
        }
        let ctx = graph.ctx();
        let mut next: HashMap<String, u64> = HashMap::new();
        for (v, name) in clashes {
            let name = name.display(ctx).to_string();
            let name = if is_plain_name(&name) {
                name
            } else {
                name.replace(|c: char| !is_plain_name(c.encode_utf8(&mut [0; 4])), "_")
            };
            let (base, own) = match name.rsplit_once('.') {
                Some((base, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                    (base, u64::from(digits.parse().unwrap_or(1u32)))
                }
                _ => (name.as_str(), 1),
            };
            let number = next.entry(base.to_owned()).or_insert(own);
            *number = own.max(*number);
            let given = loop {
                let candidate = ValueName::new(ctx, &format!("{base}.{number}"));
                *number += 1;
                if taken.insert(candidate) {
                    break candidate;
                }
            };
            self.given[v] = given.into();
        }
        let mut numbers = (0..).map(|n| ValueName::of_parts(symbols::EMPTY, Some(n)));
        for v in nameless {
            self.given[v] = numbers.find(|name| !taken.contains(*name)).into();
        }
    }

    /// Returns the name of `value`, with its `%`.
    pub fn show(&self, value: ValueId) -> String {
        let mut out = String::new();
        self.push(value, &mut out);
        out
    }

    /// Appends the name of `value`, with its `%`.
    pub fn push(&self, value: ValueId, out: &mut String) {
        out.push('%');
        let Some(name) = self.given[value].expand().or_else(|| self.graph.value_name(value)) else {
            // The value is not placed in the graph.
            let _ = write!(out, "detached_{}", value.as_u32());
            return;
        };
        if name.word() != symbols::EMPTY {
            out.push_str(self.graph.ctx().name(name.word()));
        }
        if let Some(number) = name.number() {
            if name.word() != symbols::EMPTY {
                out.push('.');
            }
            literal::integer(i64::from(number), out);
        }
    }
}

/// Returns true for bytes that may occur in names of values, attributes, classes and keys of files. Bytes of non-ASCII characters are among them.
pub const fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b == b'$' || b >= 0x80
}

/// Returns true if a name can be written without quotes.
pub fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_name_byte)
}

/// Returns false for a name that a text cannot contain, which the builder of a graph may have set.
fn is_readable(graph: &Graph, name: ValueName) -> bool {
    name.word() == symbols::EMPTY && name.number().is_some() || is_plain_name(graph.ctx().name(name.word()))
}

/// The set of names that are already assigned.
#[derive(Default)]
struct Taken {
    /// A bit for each small number that is an assigned name.
    numbers: Vec<u64>,
    others: FxHashSet<ValueName>,
    /// Numbers below this limit are in `numbers`.
    limit: u32,
}

impl Taken {
    /// Returns an empty set for a graph of `values` values. Numbers far above that are stored individually.
    fn new(values: usize) -> Taken {
        Taken {
            limit: u32::try_from(values.saturating_mul(4)).unwrap_or(u32::MAX),
            ..Taken::default()
        }
    }

    fn bit(&self, name: ValueName) -> Option<(usize, u64)> {
        let number = name
            .number()
            .filter(|n| name.word() == symbols::EMPTY && *n < self.limit)?;
        Some((number as usize / 64, 1 << (number % 64)))
    }

    /// Adds a name. Returns false if it was already in the set.
    fn insert(&mut self, name: ValueName) -> bool {
        let Some((index, bit)) = self.bit(name) else {
            return self.others.insert(name);
        };
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, 0);
        }
        let Some(word) = self.numbers.get_mut(index) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn contains(&self, name: ValueName) -> bool {
        match self.bit(name) {
            Some((index, bit)) => self.numbers.get(index).is_some_and(|word| word & bit != 0),
            None => self.others.contains(&name),
        }
    }
}

/// Returns all values of the graph in the order of the text.
fn values_in_order(graph: &Graph) -> Vec<ValueId> {
    let mut out = graph.inputs().to_vec();
    // Nodes to be visited: the next node of each open block, and blocks of a node that have not been entered.
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
