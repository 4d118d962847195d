//! Scopes of values' names while a graph is parsed: the current meaning of each name, and its meaning outside of the block.

use cranelift_entity::packed_option::PackedOption;
use frazil_ir::{Context, SymbolId, ValueId, ValueName, symbols};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A map keyed by names that are slices of the text.
pub(crate) type NameMap<'a, T> = FxHashMap<&'a str, T>;

/// The values whose names are a common word and a number, indexed by the number. Printers number the names of a word consecutively.
#[derive(Default)]
struct Table {
    values: Vec<PackedOption<ValueId>>,
    /// Number of name bindings, at most two for each definition.
    bound: usize,
    /// Whether a name did not fit into the table and is in `others`.
    has_others: bool,
}

impl Table {
    /// Grows the table for `number`, as long as its size is proportional to the number of bindings.
    fn grow(&mut self, number: usize) -> bool {
        // Some printers use every other number.
        let fits = number < 4 * self.bound + FIRST_NUMBERS.end;
        if fits {
            self.values.resize(number + 1, None.into());
        } else {
            self.has_others = true;
        }
        fits
    }
}

/// Range of numbers for which a word gets a table: the number of the first name with the word must be in the range. Words that occur in one name only, or
/// with unrelated numbers, get no table.
const FIRST_NUMBERS: Range<usize> = 8..24;

/// The values that names denote in the open blocks of a graph.
#[derive(Default)]
pub(crate) struct Scopes {
    /// Values whose names are small numbers, as most names in traced graphs.
    numbers: Table,
    /// Values whose names consist of a word and a small number; one table for each word.
    tables: Vec<Table>,
    /// Index in `tables` of the table for each word.
    table_of: FxHashMap<SymbolId, usize>,
    /// The values of all names that are not in tables. A name stays here even if a table could contain it later.
    others: FxHashMap<ValueName, ValueId>,
    /// Hidden values of the names that open blocks define, which are restored when the block ends.
    hidden: Vec<(ValueName, PackedOption<ValueId>)>,
    /// Length of `hidden` at the start of each open block except the outermost.
    starts: Vec<usize>,
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

    /// Returns the number of open blocks, including the outermost.
    pub(crate) fn depth(&self) -> usize {
        self.starts.len() + 1
    }

    /// Binds `name` to `value`, and returns the previous value of the name in this block or an enclosing block.
    #[inline]
    pub(crate) fn define(&mut self, name: ValueName, value: ValueId) -> Option<ValueId> {
        let before = self.bind(name, value.into());
        if !self.starts.is_empty() {
            self.hidden.push((name, before.into()));
        }
        before
    }

    #[inline]
    pub(crate) fn look_up(&self, name: ValueName) -> Option<ValueId> {
        if let Some(number) = name.number()
            && let Some(table) = self.table(name.word())
        {
            let value = table.values.get(number as usize).and_then(|v| v.expand());
            if value.is_some() || !table.has_others {
                return value;
            }
        }
        self.others.get(&name).copied()
    }

    #[inline]
    fn table(&self, word: SymbolId) -> Option<&Table> {
        if word == symbols::EMPTY {
            return Some(&self.numbers);
        }
        self.tables.get(*self.table_of.get(&word)?)
    }

    /// Returns the table for names with the word `word`, if there is one or the word qualifies for one.
    #[inline]
    fn table_mut(&mut self, word: SymbolId, number: usize) -> Option<&mut Table> {
        if word == symbols::EMPTY {
            return Some(&mut self.numbers);
        }
        let index = match self.table_of.get(&word) {
            Some(index) => *index,
            None if FIRST_NUMBERS.contains(&number) => self.new_table(word),
            None => return None,
        };
        self.tables.get_mut(index)
    }

    /// Creates a table for names of a word, and moves earlier names of the word to it.
    #[cold]
    fn new_table(&mut self, word: SymbolId) -> usize {
        let mut table = Table::default();
        for number in 0..FIRST_NUMBERS.end {
            let name = u32::try_from(number).map(|number| ValueName::of_parts(word, Some(number)));
            let value = name.ok().and_then(|name| self.others.remove(&name));
            table.values.push(value.into());
        }
        // Larger numbers may be in `others`.
        table.has_others = !self.others.is_empty();
        self.table_of.insert(word, self.tables.len());
        self.tables.push(table);
        self.tables.len() - 1
    }

    /// Binds `name` to `value` and returns its previous value.
    #[inline]
    fn bind(&mut self, name: ValueName, value: PackedOption<ValueId>) -> Option<ValueId> {
        let Some(number) = name.number().map(|n| n as usize) else {
            return self.bind_other(name, value);
        };
        let Some(table) = self.table_mut(name.word(), number) else {
            return self.bind_other(name, value);
        };
        table.bound += 1;
        if number >= table.values.len() && !table.grow(number) {
            return self.bind_other(name, value);
        }
        let has_others = table.has_others;
        let slot = table.values.get_mut(number)?;
        let before = std::mem::replace(slot, value);
        if has_others && before.is_none() {
            // It was bound before there was room.
            return self.others.remove(&name);
        }
        before.expand()
    }

    fn bind_other(&mut self, name: ValueName, value: PackedOption<ValueId>) -> Option<ValueId> {
        match value.expand() {
            Some(value) => self.others.insert(name, value),
            None => self.others.remove(&name),
        }
    }

    /// Returns the names in scope, except numbers, as candidates for suggestions.
    pub(crate) fn visible<'c>(&'c self, ctx: &'c Context) -> impl Iterator<Item = String> + 'c {
        let tables = self.table_of.iter().flat_map(|(word, index)| {
            let values = self.tables.get(*index).map(|table| table.values.iter().enumerate());
            let bound = values.into_iter().flatten().filter(|(_, value)| value.is_some());
            bound.map(|(number, _)| ValueName::of_parts(*word, u32::try_from(number).ok()))
        });
        let others = self.others.keys().copied();
        others.chain(tables).map(|name| name.display(ctx).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hide_names_and_give_them_back() {
        let ctx = Context::new();
        let mut scopes = Scopes::default();
        let value = ValueId::from_u32;
        // In the table, but initially too large for it.
        for text in ["3", "x.7", "y", "200", "t.9", "t.4", "t.200", "w.1000000"] {
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
