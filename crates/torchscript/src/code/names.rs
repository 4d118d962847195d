//! Names of variables: valid, not reserved, and unique within a function.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use frazil_ir::{Graph, ValueId};

/// Names that variables may not have: keywords of Python, and names that printed code refers to.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    // What printed code means by these names; a single underscore stands for a value without a name.
    "_", "CONSTANTS", "__torch__", "aten", "attribute", "fork", "getattr", "inf", "infj", "nan", "nanj", "ops",
    "unchecked_cast", "uninitialized",
    // Keywords.
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or",
    "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Number of collisions in a row after which a name gets a number that is certainly unused. PyTorch continues to count instead; names in real programs collide
/// far less often.
const MAX_ATTEMPTS: usize = 10_000;

/// The names in a file. Variables are unique within a function. Number suffixes continue through the file, as in PyTorch.
#[derive(Debug, Default)]
pub(super) struct Names {
    used: HashSet<Rc<str>>,
    /// Number of collisions so far for each requested name.
    collisions: HashMap<String, u64>,
    fresh: u64,
}

impl Names {
    /// Forgets the variables of the previous function, whose names may be used again.
    pub(super) fn start_function(&mut self) {
        self.used.clear();
    }

    /// Returns `candidate`, with a number appended if it is taken or reserved.
    pub(super) fn unique(&mut self, candidate: &str) -> Rc<str> {
        let mut name = candidate.to_owned();
        let mut attempts = 0;
        while self.is_taken(&name) {
            attempts += 1;
            if attempts > MAX_ATTEMPTS {
                // No other name has a counter's worth of digits and two underscores.
                name = format!("{candidate}__{}", self.fresh);
                self.fresh += 1;
                continue;
            }
            // The number is how often the name *before* this attempt collided, not the candidate: so PyTorch counts.
            let count = self.collisions.entry(name).or_default();
            name = format!("{candidate}{count}");
            *count += 1;
        }
        let name: Rc<str> = name.into();
        self.used.insert(Rc::clone(&name));
        name
    }

    fn is_taken(&self, name: &str) -> bool {
        self.used.contains(name) || RESERVED.contains(&name)
    }
}

/// Returns whether printed code may use `name` as an identifier: ASCII letters, digits and underscores.
pub(super) fn is_identifier(name: &str) -> bool {
    let head = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    match name.as_bytes() {
        [first, rest @ ..] => head(*first) && rest.iter().all(|&b| head(b) || b.is_ascii_digit()),
        [] => false,
    }
}

/// Returns `name` with an underscore in place of every byte that identifiers cannot contain, and before a leading
/// digit.
pub(super) fn identifier_of(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 1);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        out.push('_');
    }
    out.extend(name.bytes().map(|b| match b {
        b if b.is_ascii_alphanumeric() => char::from(b),
        _ => '_',
    }));
    out
}

/// Returns whether the value has a name other than a number.
pub(super) fn has_name(graph: &Graph, value: ValueId) -> bool {
    base_name(graph, value).is_some()
}

/// Returns the value's name without the suffix `.N`, by which graphs distinguish equal names.
pub(super) fn base_name(graph: &Graph, value: ValueId) -> Option<&str> {
    let word = graph.ctx().name(graph.value_name(value)?.word());
    // Numbers too long to be kept as such are words, too.
    word.bytes().any(|b| !b.is_ascii_digit()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_unique_as_pytorch_counts() {
        let mut names = Names::default();
        let mut unique = |name: &str| names.unique(name).to_string();
        assert_eq!([unique("x"), unique("x"), unique("x")], ["x", "x0", "x1"]);
        assert_eq!([unique("_"), unique("_")], ["_0", "_1"]);
        assert_eq!(unique("lambda"), "lambda0");
        // `x0` is taken: its own counter starts, at `x00`.
        assert_eq!(unique("x0"), "x00");
        names.start_function();
        assert_eq!(&*names.unique("x"), "x");
        assert_eq!(&*names.unique("x"), "x2", "numbers go on counting");
    }

    #[test]
    fn many_collisions_end() {
        let mut names = Names::default();
        for i in 0..300 {
            names.unique(&format!("x{i}"));
        }
        let all: HashSet<Rc<str>> = (0..1000).map(|_| names.unique("x")).collect();
        assert_eq!(all.len(), 1000);
    }

    #[test]
    fn identifiers_are_made_valid() {
        assert_eq!(identifier_of("self.conv-1"), "self_conv_1");
        assert_eq!(identifier_of("0"), "_0");
        assert_eq!(identifier_of("é"), "__");
        assert!(is_identifier("_a1") && !is_identifier("1a") && !is_identifier("") && !is_identifier("a.b"));
    }
}
