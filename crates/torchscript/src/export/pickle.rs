//! A pickle writer: the subset of protocol 2 that PyTorch's serialiser writes, with its memo.

use std::collections::HashMap;

/// Codes of the opcodes, with Python's names.
mod op {
    pub(super) const PROTO: u8 = 0x80;
    pub(super) const MARK: u8 = b'(';
    pub(super) const STOP: u8 = b'.';
    pub(super) const NONE: u8 = b'N';
    pub(super) const NEWTRUE: u8 = 0x88;
    pub(super) const NEWFALSE: u8 = 0x89;
    pub(super) const BININT: u8 = b'J';
    pub(super) const BININT1: u8 = b'K';
    pub(super) const BININT2: u8 = b'M';
    pub(super) const LONG1: u8 = 0x8a;
    pub(super) const BINFLOAT: u8 = b'G';
    pub(super) const BINUNICODE: u8 = b'X';
    pub(super) const BINUNICODE8: u8 = 0x8d;
    pub(super) const EMPTY_LIST: u8 = b']';
    pub(super) const APPENDS: u8 = b'e';
    pub(super) const EMPTY_DICT: u8 = b'}';
    pub(super) const SETITEMS: u8 = b'u';
    pub(super) const EMPTY_TUPLE: u8 = b')';
    pub(super) const TUPLE: u8 = b't';
    pub(super) const TUPLE1: u8 = 0x85;
    pub(super) const TUPLE2: u8 = 0x86;
    pub(super) const TUPLE3: u8 = 0x87;
    pub(super) const GLOBAL: u8 = b'c';
    pub(super) const REDUCE: u8 = b'R';
    pub(super) const NEWOBJ: u8 = 0x81;
    pub(super) const BUILD: u8 = b'b';
    pub(super) const BINPERSID: u8 = b'Q';
    pub(super) const BINPUT: u8 = b'q';
    pub(super) const LONG_BINPUT: u8 = b'r';
    pub(super) const BINGET: u8 = b'h';
    pub(super) const LONG_BINGET: u8 = b'j';
}

/// A slot of the memo, by which a written value can be referenced again.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoSlot(u32);

/// A pickle under construction: a program for a stack machine. Methods push a value unless they say which values they
/// pop.
pub(super) struct PickleWriter {
    out: Vec<u8>,
    next: u32,
    strings: HashMap<String, MemoSlot>,
    globals: HashMap<String, MemoSlot>,
}

impl PickleWriter {
    pub(super) fn new() -> PickleWriter {
        PickleWriter {
            out: vec![op::PROTO, 2],
            next: 0,
            strings: HashMap::new(),
            globals: HashMap::new(),
        }
    }

    /// Writes `STOP` and returns the pickle, whose value is on top of the stack.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push(op::STOP);
        self.out
    }

    /// Stores the value on top of the stack in the memo.
    pub(super) fn put(&mut self) -> MemoSlot {
        let slot = MemoSlot(self.next);
        self.next += 1;
        self.numbered(op::BINPUT, op::LONG_BINPUT, slot);
        slot
    }

    /// Pushes the value in the memo slot `slot`.
    pub(super) fn get(&mut self, slot: MemoSlot) {
        self.numbered(op::BINGET, op::LONG_BINGET, slot);
    }

    fn numbered(&mut self, short: u8, long: u8, MemoSlot(slot): MemoSlot) {
        match u8::try_from(slot) {
            Ok(slot) => self.out.extend([short, slot]),
            Err(_) => {
                self.out.push(long);
                self.out.extend(slot.to_le_bytes());
            }
        }
    }

    pub(super) fn none(&mut self) {
        self.out.push(op::NONE);
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.out.push(if value { op::NEWTRUE } else { op::NEWFALSE });
    }

    pub(super) fn int(&mut self, value: i64) {
        if let Ok(value) = u8::try_from(value) {
            self.out.extend([op::BININT1, value]);
        } else if let Ok(value) = u16::try_from(value) {
            self.out.push(op::BININT2);
            self.out.extend(value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.out.push(op::BININT);
            self.out.extend(value.to_le_bytes());
        } else {
            self.out.extend([op::LONG1, 8]);
            self.out.extend(value.to_le_bytes());
        }
    }

    pub(super) fn float(&mut self, value: f64) {
        self.out.push(op::BINFLOAT);
        self.out.extend(value.to_be_bytes());
    }

    /// Pushes a string. Later uses of an equal string refer to the first one.
    pub(super) fn str(&mut self, text: &str) {
        if let Some(&slot) = self.strings.get(text) {
            return self.get(slot);
        }
        match u32::try_from(text.len()) {
            Ok(length) => {
                self.out.push(op::BINUNICODE);
                self.out.extend(length.to_le_bytes());
            }
            Err(_) => {
                self.out.push(op::BINUNICODE8);
                self.out.extend((text.len() as u64).to_le_bytes());
            }
        }
        self.out.extend(text.as_bytes());
        let slot = self.put();
        self.strings.insert(text.to_owned(), slot);
    }

    /// Pushes a class or function. Neither name may contain a line break, which would end it.
    pub(super) fn global(&mut self, module: &str, name: &str) {
        let key = format!("{module}\n{name}\n");
        if let Some(&slot) = self.globals.get(&key) {
            return self.get(slot);
        }
        self.out.push(op::GLOBAL);
        self.out.extend(key.as_bytes());
        let slot = self.put();
        self.globals.insert(key, slot);
    }

    /// Pushes a mark: the beginning of a tuple of any length, or of the items of a list or dictionary.
    pub(super) fn mark(&mut self) {
        self.out.push(op::MARK);
    }

    /// Pops the values above the mark, and pushes a tuple of them.
    pub(super) fn marked_tuple(&mut self) {
        self.out.push(op::TUPLE);
    }

    /// Pops the last `length` values (at most three), and pushes a tuple of these values.
    pub(super) fn short_tuple(&mut self, length: ShortTuple) {
        self.out.push(match length {
            ShortTuple::Empty => op::EMPTY_TUPLE,
            ShortTuple::One => op::TUPLE1,
            ShortTuple::Two => op::TUPLE2,
            ShortTuple::Three => op::TUPLE3,
        });
    }

    /// Pushes an empty list and a mark for its items, which [`end_list`](Self::end_list) pops.
    pub(super) fn begin_list(&mut self) {
        self.out.extend([op::EMPTY_LIST, op::MARK]);
    }

    pub(super) fn end_list(&mut self) {
        self.out.push(op::APPENDS);
    }

    /// Pushes an empty dictionary and a mark for its alternating keys and values, which [`end_dict`](Self::end_dict)
    /// pops.
    pub(super) fn begin_dict(&mut self) {
        self.out.extend([op::EMPTY_DICT, op::MARK]);
    }

    pub(super) fn end_dict(&mut self) {
        self.out.push(op::SETITEMS);
    }

    /// Pops an argument tuple and the global below it, and pushes the result of the call.
    pub(super) fn reduce(&mut self) {
        self.out.push(op::REDUCE);
    }

    /// Pops a class, and pushes a new object of it that is constructed without arguments.
    pub(super) fn new_object(&mut self) {
        self.out.extend([op::EMPTY_TUPLE, op::NEWOBJ]);
    }

    /// Pops a state, and sets it on the object below it.
    pub(super) fn build(&mut self) {
        self.out.push(op::BUILD);
    }

    /// Replaces the tuple on top of the stack by a reference to an object outside the pickle.
    pub(super) fn persistent(&mut self) {
        self.out.push(op::BINPERSID);
    }
}

/// Lengths of tuples that have an opcode of their own: 1 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShortTuple {
    Empty,
    One,
    Two,
    Three,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Pickle, PickleValue};

    #[test]
    fn integers_read_back() {
        for value in [
            0,
            255,
            256,
            65535,
            65536,
            -1,
            i64::from(i32::MIN),
            i64::from(i32::MAX) + 1,
            i64::MIN,
            i64::MAX,
        ] {
            let mut writer = PickleWriter::new();
            writer.int(value);
            let pickle = Pickle::parse(&writer.finish()).unwrap();
            assert_eq!(pickle.int(pickle.root()), Some(value));
        }
    }

    #[test]
    fn values_beyond_the_short_memo_read_back() {
        let mut writer = PickleWriter::new();
        writer.begin_list();
        for round in 0..2 {
            for index in 0..300 {
                writer.str(&format!("s{index}"));
            }
            if round == 0 {
                writer.bool(true);
            }
        }
        writer.end_list();
        let pickle = Pickle::parse(&writer.finish()).unwrap();
        let items = pickle.elements(pickle.root()).unwrap();
        assert_eq!(items.len(), 601);
        assert_eq!(pickle.str(items[299]), Some("s299"));
        // The second round refers to the first: the very same values.
        assert_eq!(&items[..300], &items[301..]);
        assert_eq!(pickle.value(items[300]), &PickleValue::Bool(true));
    }
}
