//! Names of values while a graph is parsed: what each means now, and what it meant outside of the block.

use cranelift_entity::packed_option::PackedOption;
use frazil_ir::{Context, ValueId, ValueName, symbols};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hasher for short names: fast, and not proof against names that were chosen to collide, which cost time only.
#[derive(Default, Clone, Copy)]
pub(crate) struct NameHasher(u64);

impl NameHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        const K: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0 ^ word).wrapping_mul(K).rotate_left(29);
    }
}

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.mix(u64::from_le_bytes(*chunk));
        }
        let mut last = bytes.len() as u64;
        for b in rest {
            last = (last << 8) | u64::from(*b);
        }
        self.mix(last);
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.0 ^= u64::from(byte);
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.mix(u64::from(number));
    }
}

/// A map keyed by names of the text.
pub(crate) type NameMap<'a, T> = HashMap<&'a str, T, BuildHasherDefault<NameHasher>>;

/// The names of a graph's values by nested block.
#[derive(Default)]
pub(crate) struct Scopes {
    /// What names that are small numbers stand for: most names of traced graphs.
    numbers: Vec<PackedOption<ValueId>>,
    /// What the other names stand for.
    words: HashMap<ValueName, ValueId, BuildHasherDefault<NameHasher>>,
    /// What the names that open blocks define stood for before, to be put back when the block ends.
    hidden: Vec<(ValueName, PackedOption<ValueId>)>,
    /// Length of `hidden` at the start of each open block but the outermost.
    starts: Vec<usize>,
    /// Number of definitions.
    defined: usize,
    /// Whether `words` has numbers, which were too large for the table when they came.
    has_large: bool,
}

impl Scopes {
    pub(crate) fn enter(&mut self) {
        self.starts.push(self.hidden.len());
    }

    pub(crate) fn leave(&mut self) {
        let Some(start) = self.starts.pop() else { return };
        while self.hidden.len() > start
            && let Some((name, before)) = self.hidden.pop()
        {
            self.bind(name, before);
        }
    }

    /// Number of open blocks, the outermost included.
    pub(crate) fn depth(&self) -> usize {
        self.starts.len() + 1
    }

    /// Makes `name` stand for `value`; gives what it stood for before, in this block or around it.
    #[inline]
    pub(crate) fn define(&mut self, name: ValueName, value: ValueId) -> Option<ValueId> {
        self.defined += 1;
        let before = self.bind(name, value.into());
        if !self.starts.is_empty() {
            self.hidden.push((name, before.into()));
        }
        before
    }

    #[inline]
    pub(crate) fn look_up(&self, name: ValueName) -> Option<ValueId> {
        if let Some(number) = small(name)
            && let Some(value) = self.numbers.get(number).and_then(|v| v.expand())
        {
            return Some(value);
        }
        self.words.get(&name).copied()
    }

    #[inline]
    fn bind(&mut self, name: ValueName, value: PackedOption<ValueId>) -> Option<ValueId> {
        let Some(number) = small(name) else {
            return self.bind_word(name, value);
        };
        if number >= self.numbers.len() && !self.grow(number) {
            self.has_large = true;
            return self.bind_word(name, value);
        }
        let before = std::mem::replace(self.numbers.get_mut(number)?, value);
        if self.has_large && before.is_none() {
            return self.words.remove(&name);
        }
        before.expand()
    }

    fn bind_word(&mut self, name: ValueName, value: PackedOption<ValueId>) -> Option<ValueId> {
        match value.expand() {
            Some(value) => self.words.insert(name, value),
            None => self.words.remove(&name),
        }
    }

    /// Makes room for `number` when the table stays in proportion to what has been defined.
    fn grow(&mut self, number: usize) -> bool {
        let fits = number < 2 * self.defined + 64;
        if fits {
            self.numbers.resize(number + 1, None.into());
        }
        fits
    }

    /// The names with words that are in scope, for suggestions.
    pub(crate) fn visible<'c>(&'c self, ctx: &'c Context) -> impl Iterator<Item = String> + 'c {
        self.words.keys().map(|name| name.display(ctx).to_string())
    }
}

/// The number that a name is.
#[inline]
fn small(name: ValueName) -> Option<usize> {
    let number = name.number().filter(|_| name.word() == symbols::EMPTY)?;
    Some(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hide_names_and_give_them_back() {
        let ctx = Context::new();
        let mut scopes = Scopes::default();
        let value = ValueId::from_u32;
        // In the table, and too large for it at first.
        for text in ["3", "x.7", "y", "200"] {
            let name = ValueName::new(&ctx, text);
            assert_eq!(scopes.define(name, value(1)), None);
            scopes.enter();
            assert_eq!(scopes.look_up(name), Some(value(1)));
            assert_eq!(scopes.define(name, value(2)), Some(value(1)));
            for n in 0..100 {
                scopes.define(ValueName::new(&ctx, &format!("z.{n}")), value(n));
            }
            assert_eq!(scopes.define(name, value(3)), Some(value(2)));
            scopes.leave();
            assert_eq!(scopes.look_up(name), Some(value(1)));
            assert_eq!(scopes.look_up(ValueName::new(&ctx, "z.5")), None);
        }
        assert_eq!(scopes.depth(), 1);
    }
}
