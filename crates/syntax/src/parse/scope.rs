//! Names of values while a graph is parsed: what each means now, and what it meant outside of the block.

use frazil_ir::{Span, ValueId};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hasher for short names: fast, and not proof against names that were chosen to collide, which cost time only.
#[derive(Default, Clone, Copy)]
pub(crate) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        const K: u64 = 0x9e37_79b9_7f4a_7c15;
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.0 = (self.0 ^ u64::from_le_bytes(*chunk)).wrapping_mul(K).rotate_left(29);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.0 = (self.0 ^ u64::from_le_bytes(last) ^ bytes.len() as u64)
            .wrapping_mul(K)
            .rotate_left(29);
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 ^= u64::from(byte);
    }
}

/// A map keyed by names of the text.
pub(crate) type NameMap<'a, T> = HashMap<&'a str, T, BuildHasherDefault<NameHasher>>;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    pub(crate) value: ValueId,
    /// Where it was defined.
    pub(crate) span: Span,
    /// The scope it was defined in.
    scope: u32,
}

/// The number that `name` is, if it is one in its usual form.
#[inline]
fn number(name: &str) -> Option<usize> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() > 9 || (bytes[0] == b'0' && bytes.len() > 1) {
        return None;
    }
    let mut number = 0;
    for b in bytes {
        if !b.is_ascii_digit() {
            return None;
        }
        number = 10 * number + usize::from(b - b'0');
    }
    Some(number)
}

/// What a look-up finds.
pub(crate) enum Lookup {
    Found(ValueId),
    /// Defined here, in a block that has ended.
    Ended(Span),
    Unknown,
}

/// The names of a graph's values by nested block.
pub(crate) struct Scopes<'a> {
    /// Bindings of names that are numbers without leading zeros, below a limit: most names of traced graphs.
    numbers: Vec<Option<Binding>>,
    /// Numbers from here on are names like others.
    limit: usize,
    bindings: NameMap<'a, Binding>,
    /// Whether each scope that has been entered is still open.
    open: Vec<bool>,
    /// The open scopes: number, and how long `shadowed` was at the start.
    stack: Vec<(u32, usize)>,
    /// Bindings of outer scopes that inner ones hide, to be put back.
    shadowed: Vec<(&'a str, Binding)>,
}

impl<'a> Scopes<'a> {
    /// No names yet, for a text of `len` bytes.
    pub(crate) fn new(len: usize) -> Scopes<'a> {
        Scopes {
            numbers: Vec::new(),
            // A definition takes more than eight bytes, so that the table stays below the text's size.
            limit: len / 8,
            bindings: NameMap::default(),
            open: vec![true],
            stack: vec![(0, 0)],
            shadowed: Vec::new(),
        }
    }

    pub(crate) fn enter(&mut self) {
        let number = self.open.len() as u32;
        self.open.push(true);
        self.stack.push((number, self.shadowed.len()));
    }

    pub(crate) fn leave(&mut self) {
        let Some((number, from)) = self.stack.pop() else { return };
        if let Some(open) = self.open.get_mut(number as usize) {
            *open = false;
        }
        while self.shadowed.len() > from
            && let Some((name, binding)) = self.shadowed.pop()
        {
            self.bind(name, binding);
        }
    }

    /// Binds `name` and gives what it was bound to.
    #[inline]
    fn bind(&mut self, name: &'a str, binding: Binding) -> Option<Binding> {
        let Some(number) = number(name).filter(|n| *n < self.limit) else {
            return self.bindings.insert(name, binding);
        };
        if number >= self.numbers.len() {
            self.numbers.resize(number + 1, None);
        }
        self.numbers.get_mut(number)?.replace(binding)
    }

    #[inline]
    fn binding(&self, name: &str) -> Option<&Binding> {
        match number(name).filter(|n| *n < self.limit) {
            Some(number) => self.numbers.get(number)?.as_ref(),
            None => self.bindings.get(name),
        }
    }

    /// Number of open scopes.
    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Makes `name` stand for `value`; gives where it was defined before, if that is still in scope.
    pub(crate) fn define(&mut self, name: &'a str, value: ValueId, span: Span) -> Option<Span> {
        let scope = self.stack.last().map_or(0, |s| s.0);
        let old = self.bind(name, Binding { value, span, scope })?;
        if !self.open.get(old.scope as usize).copied().unwrap_or(false) {
            return None;
        }
        if old.scope != scope {
            self.shadowed.push((name, old));
        }
        Some(old.span)
    }

    #[inline]
    pub(crate) fn look_up(&self, name: &str) -> Lookup {
        match self.binding(name) {
            None => Lookup::Unknown,
            Some(b) if self.open.get(b.scope as usize).copied().unwrap_or(false) => Lookup::Found(b.value),
            Some(b) => Lookup::Ended(b.span),
        }
    }

    /// The names that are in scope, for suggestions.
    pub(crate) fn visible(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.bindings
            .iter()
            .filter(|(_, b)| self.open.get(b.scope as usize).copied().unwrap_or(false))
            .map(|(name, _)| *name)
    }
}
