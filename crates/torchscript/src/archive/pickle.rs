//! A restricted unpickler: reads the pickles of `.pt` archives into data and executes nothing.
//!
//! PyTorch's serialiser writes protocol 2 with few opcodes. This reader turns them into a table of [`PickleValue`]s that refer to one another by
//! [`PickleId`], so that an object that is stored twice is one value: identity is data. Calls (`REDUCE`), objects (`NEWOBJ`, `BUILD`) and
//! references to storages (`BINPERSID`) become nodes that say what was asked for. Which globals may be named at all is decided here;
//! what they mean is the business of the caller.
//!
//! A pickle can be cyclic (a list that was put into itself through the memo), and nested as deeply as it has bytes: whoever walks the
//! table bounds the depth.

use std::collections::HashMap;

/// Index of a value in a [`Pickle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PickleId(u32);

/// One value of a pickle.
#[derive(Debug, Clone, PartialEq)]
pub enum PickleValue {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(Box<str>),
    /// A byte string.
    Bytes(Box<[u8]>),
    /// A list.
    List(Vec<PickleId>),
    /// A tuple.
    Tuple(Box<[PickleId]>),
    /// A dictionary, in insertion order; keys may repeat, the last one counts.
    Dict(Vec<(PickleId, PickleId)>),
    /// A class or function named by module and name.
    Global {
        /// The module, as in `torch._utils`.
        module: Box<str>,
        /// The name in it, as in `_rebuild_tensor_v2`.
        name: Box<str>,
    },
    /// `callee(*args)`, not carried out.
    Call {
        /// A [`PickleValue::Global`].
        callee: PickleId,
        /// A [`PickleValue::Tuple`]; for a member of an enum, its value.
        args: PickleId,
        /// What `BUILD` set on the result, if anything.
        state: Option<PickleId>,
    },
    /// `class.__new__(class, *args)` with its state.
    Object {
        /// A [`PickleValue::Global`].
        class: PickleId,
        /// A [`PickleValue::Tuple`], empty in archives.
        args: PickleId,
        /// What `BUILD` set: a dictionary of attributes, or whatever `__getstate__` returned.
        state: Option<PickleId>,
    },
    /// A reference to something outside the pickle: in archives, to a storage.
    Persistent(PickleId),
}

impl PickleValue {
    /// What kind of value this is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            PickleValue::None => "None",
            PickleValue::Bool(_) => "a bool",
            PickleValue::Int(_) => "an int",
            PickleValue::Float(_) => "a float",
            PickleValue::Str(_) => "a string",
            PickleValue::Bytes(_) => "a byte string",
            PickleValue::List(_) => "a list",
            PickleValue::Tuple(_) => "a tuple",
            PickleValue::Dict(_) => "a dictionary",
            PickleValue::Global { .. } => "a global",
            PickleValue::Call { .. } => "a call",
            PickleValue::Object { .. } => "an object",
            PickleValue::Persistent(_) => "a storage reference",
        }
    }
}

/// A pickle that cannot be read. Offsets are of the opcode concerned, in bytes from the start of the pickle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickleError {
    /// The bytes end inside an opcode, or before `STOP`.
    #[error("pickle byte {offset}: the pickle ends here, {missing} more bytes are needed")]
    Truncated {
        /// Where.
        offset: usize,
        /// How many more bytes were asked for.
        missing: usize,
    },
    /// An opcode that archives do not use, or that could execute something.
    #[error("pickle byte {offset}: opcode 0x{opcode:02x} is not allowed in a TorchScript archive")]
    Opcode {
        /// Where.
        offset: usize,
        /// The opcode.
        opcode: u8,
    },
    /// A global that no archive names.
    #[error("pickle byte {offset}: global `{module}.{name}` is not allowed in a TorchScript archive")]
    Global {
        /// Where.
        offset: usize,
        /// Its module.
        module: String,
        /// Its name.
        name: String,
    },
    /// A protocol above 4.
    #[error("pickle byte {offset}: protocol {protocol} is not supported (archives are written with protocol 2)")]
    Protocol {
        /// Where.
        offset: usize,
        /// The protocol that is claimed.
        protocol: u8,
    },
    /// The opcode finds too little on the stack, no mark, or a value of the wrong kind.
    #[error("pickle byte {offset}: {expected}")]
    Stack {
        /// Where.
        offset: usize,
        /// What the opcode needs.
        expected: &'static str,
    },
    /// A memo slot is read that nothing was stored in.
    #[error("pickle byte {offset}: memo slot {slot} is empty")]
    Memo {
        /// Where.
        offset: usize,
        /// The slot.
        slot: u32,
    },
    /// A string is no UTF-8, or an integer has more than 64 bits.
    #[error("pickle byte {offset}: {what}")]
    Literal {
        /// Where.
        offset: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// More values than [`MAX_VALUES`].
    #[error("pickle byte {offset}: more than {MAX_VALUES} values")]
    TooManyValues {
        /// Where.
        offset: usize,
    },
}

/// The most values that a pickle may have; PyTorch's largest have some millions.
pub const MAX_VALUES: usize = 1 << 28;

/// A pickle as a table of values.
#[derive(Debug, Clone)]
pub struct Pickle {
    values: Vec<PickleValue>,
    offsets: Vec<u32>,
    root: PickleId,
}

impl Pickle {
    /// Reads a pickle; bytes after its `STOP` are ignored.
    ///
    /// # Errors
    /// When the pickle is malformed, or uses an opcode or a global that archives do not have.
    pub fn parse(bytes: &[u8]) -> Result<Pickle, PickleError> {
        Machine::new(bytes).run()
    }

    /// The value that the pickle is.
    pub fn root(&self) -> PickleId {
        self.root
    }

    /// The value behind an id of this pickle.
    pub fn value(&self, id: PickleId) -> &PickleValue {
        // Ids are only made by `Machine::push_new`; one of another pickle finds some value or `None`, never a panic.
        self.values.get(id.0 as usize).unwrap_or(&PickleValue::None)
    }

    /// The offset of the opcode that made the value, for messages.
    pub fn offset(&self, id: PickleId) -> usize {
        self.offsets.get(id.0 as usize).copied().unwrap_or(0) as usize
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values; a parsed pickle has at least one.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The string behind `id`, if it is one.
    pub fn str(&self, id: PickleId) -> Option<&str> {
        match self.value(id) {
            PickleValue::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The integer behind `id`, if it is one.
    pub fn int(&self, id: PickleId) -> Option<i64> {
        match self.value(id) {
            PickleValue::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// The elements behind `id`, if it is a list or a tuple.
    pub fn elements(&self, id: PickleId) -> Option<&[PickleId]> {
        match self.value(id) {
            PickleValue::List(items) => Some(items),
            PickleValue::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// Module and name of the global behind `id`, if it is one.
    pub fn global(&self, id: PickleId) -> Option<(&str, &str)> {
        match self.value(id) {
            PickleValue::Global { module, name } => Some((module, name)),
            _ => None,
        }
    }
}

/// Whether archives name this global: classes of the program (`__torch__...`), and the functions that PyTorch's serialiser uses.
fn is_allowed_global(module: &str, name: &str) -> bool {
    match module {
        "torch" => {
            name.ends_with("Storage")
                || matches!(
                    name,
                    "device"
                        | "Size"
                        | "per_tensor_affine"
                        | "per_channel_affine"
                        | "per_tensor_symmetric"
                        | "per_channel_symmetric"
                        | "per_channel_affine_float_qparams"
                )
        }
        "torch._utils" => name.starts_with("_rebuild_"),
        "torch.storage" => matches!(name, "UntypedStorage" | "TypedStorage"),
        "torch.serialization" => name == "_get_layout",
        "torch.jit._pickle" => name.starts_with("build_") || name.starts_with("restore_"),
        "collections" => name == "OrderedDict",
        "builtins" | "__builtin__" => name == "complex",
        _ => module == "__torch__" || module.starts_with("__torch__."),
    }
}

enum Slot {
    Mark,
    Value(PickleId),
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of the opcode being carried out.
    op: usize,
    values: Vec<PickleValue>,
    offsets: Vec<u32>,
    stack: Vec<Slot>,
    memo: HashMap<u32, PickleId>,
}

type Step<T = ()> = Result<T, PickleError>;

impl<'a> Machine<'a> {
    fn new(bytes: &'a [u8]) -> Machine<'a> {
        Machine {
            bytes,
            at: 0,
            op: 0,
            values: Vec::new(),
            offsets: Vec::new(),
            stack: Vec::new(),
            memo: HashMap::new(),
        }
    }

    fn run(mut self) -> Step<Pickle> {
        loop {
            self.op = self.at;
            let opcode = self.u8()?;
            if opcode == b'.' {
                let root = self.pop()?;
                return Ok(Pickle {
                    values: self.values,
                    offsets: self.offsets,
                    root,
                });
            }
            self.step(opcode)?;
        }
    }

    fn step(&mut self, opcode: u8) -> Step {
        match opcode {
            0x80 => {
                let protocol = self.u8()?;
                if protocol > 4 {
                    return Err(PickleError::Protocol {
                        offset: self.op,
                        protocol,
                    });
                }
                Ok(())
            }
            // FRAME: a hint for buffered readers.
            0x95 => self.take(8).map(drop),
            b'(' => {
                self.stack.push(Slot::Mark);
                Ok(())
            }
            b'0' => self
                .stack
                .pop()
                .map(drop)
                .ok_or_else(|| self.bad_stack("POP needs a value")),
            b'1' => self.pop_to_mark().map(drop),
            b'2' => {
                let top = self.peek()?;
                self.push(top)
            }
            b'N' => self.push_new(PickleValue::None),
            0x88 => self.push_new(PickleValue::Bool(true)),
            0x89 => self.push_new(PickleValue::Bool(false)),
            b'J' => {
                let value = i32::from_le_bytes(self.array()?);
                self.push_new(PickleValue::Int(value.into()))
            }
            b'K' => {
                let value = self.u8()?;
                self.push_new(PickleValue::Int(value.into()))
            }
            b'M' => {
                let value = u16::from_le_bytes(self.array()?);
                self.push_new(PickleValue::Int(value.into()))
            }
            0x8a => {
                let length = self.u8()?.into();
                self.long(length)
            }
            0x8b => {
                let length = self.length4()?;
                self.long(length)
            }
            b'G' => {
                let value = f64::from_be_bytes(self.array()?);
                self.push_new(PickleValue::Float(value))
            }
            b'X' | b'T' => {
                let length = self.length4()?;
                self.string(length)
            }
            0x8c | b'U' => {
                let length = self.u8()?.into();
                self.string(length)
            }
            0x8d => {
                let length = self.length8()?;
                self.string(length)
            }
            b'C' => {
                let length = self.u8()?.into();
                self.byte_string(length)
            }
            b'B' => {
                let length = self.length4()?;
                self.byte_string(length)
            }
            0x8e => {
                let length = self.length8()?;
                self.byte_string(length)
            }
            b']' => self.push_new(PickleValue::List(Vec::new())),
            b')' => self.push_new(PickleValue::Tuple(Box::default())),
            b'}' => self.push_new(PickleValue::Dict(Vec::new())),
            b't' => {
                let items = self.pop_to_mark()?;
                self.push_new(PickleValue::Tuple(items.into()))
            }
            b'l' => {
                let items = self.pop_to_mark()?;
                self.push_new(PickleValue::List(items))
            }
            b'd' => {
                let items = self.pop_to_mark()?;
                let pairs = self.pairs(&items)?;
                self.push_new(PickleValue::Dict(pairs))
            }
            0x85 => self.tuple(1),
            0x86 => self.tuple(2),
            0x87 => self.tuple(3),
            b'a' => {
                let item = self.pop()?;
                self.extend_list(vec![item])
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.extend_list(items)
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.extend_dict(vec![(key, value)])
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                let pairs = self.pairs(&items)?;
                self.extend_dict(pairs)
            }
            b'q' => {
                let slot = self.u8()?.into();
                self.memoize(slot)
            }
            b'r' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.memoize(slot)
            }
            0x94 => {
                let slot = self.memo.len() as u32;
                self.memoize(slot)
            }
            b'h' => {
                let slot = self.u8()?.into();
                self.recall(slot)
            }
            b'j' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.recall(slot)
            }
            b'c' => {
                let module = self.line()?;
                let name = self.line()?;
                self.global(module, name)
            }
            0x93 => {
                let name = self.pop_str()?;
                let module = self.pop_str()?;
                self.global(&module, &name)
            }
            b'R' => {
                // PyTorch writes an enum's value as the argument itself, without a tuple.
                let args = self.pop()?;
                let callee = self.pop_global()?;
                self.push_new(PickleValue::Call {
                    callee,
                    args,
                    state: None,
                })
            }
            0x81 => {
                let args = self.pop_tuple()?;
                let class = self.pop_global()?;
                self.push_new(PickleValue::Object {
                    class,
                    args,
                    state: None,
                })
            }
            b'b' => self.build(),
            b'Q' => {
                let id = self.pop()?;
                self.push_new(PickleValue::Persistent(id))
            }
            opcode => Err(PickleError::Opcode {
                offset: self.op,
                opcode,
            }),
        }
    }

    fn bad_stack(&self, expected: &'static str) -> PickleError {
        PickleError::Stack {
            offset: self.op,
            expected,
        }
    }

    fn take(&mut self, length: usize) -> Step<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..length).ok_or(PickleError::Truncated {
            offset: self.op,
            missing: length.saturating_sub(rest.len()),
        })?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        let offset = self.op;
        self.take(N)?
            .try_into()
            .map_err(|_| PickleError::Truncated { offset, missing: N })
    }

    fn u8(&mut self) -> Step<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn length4(&mut self) -> Step<usize> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn length8(&mut self) -> Step<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|_| PickleError::Literal {
            offset: self.op,
            what: "a length of more than 64 bits",
        })
    }

    fn line(&mut self) -> Step<&'a str> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|&b| b == b'\n').ok_or(PickleError::Truncated {
            offset: self.op,
            missing: 1,
        })?;
        let line = self.take(end)?;
        self.take(1)?;
        std::str::from_utf8(line).map_err(|_| PickleError::Literal {
            offset: self.op,
            what: "a name that is no UTF-8",
        })
    }

    /// A little-endian two's complement integer of `length` bytes.
    fn long(&mut self, length: usize) -> Step {
        let bytes = self.take(length)?;
        let sign = if bytes.last().is_some_and(|b| b & 0x80 != 0) {
            0xff
        } else {
            0
        };
        let mut buffer = [sign; 8];
        let (low, high) = bytes.split_at(length.min(8));
        buffer[..low.len()].copy_from_slice(low);
        let value = i64::from_le_bytes(buffer);
        if high.iter().any(|&b| b != sign) || (length > 8 && (value < 0) != (sign != 0)) {
            return Err(PickleError::Literal {
                offset: self.op,
                what: "an integer of more than 64 bits",
            });
        }
        self.push_new(PickleValue::Int(value))
    }

    fn string(&mut self, length: usize) -> Step {
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| PickleError::Literal {
            offset: self.op,
            what: "a string that is no UTF-8",
        })?;
        self.push_new(PickleValue::Str(text.into()))
    }

    fn byte_string(&mut self, length: usize) -> Step {
        let bytes = self.take(length)?;
        self.push_new(PickleValue::Bytes(bytes.into()))
    }

    fn push(&mut self, id: PickleId) -> Step {
        self.stack.push(Slot::Value(id));
        Ok(())
    }

    fn push_new(&mut self, value: PickleValue) -> Step {
        if self.values.len() >= MAX_VALUES {
            return Err(PickleError::TooManyValues { offset: self.op });
        }
        let id = PickleId(self.values.len() as u32);
        self.values.push(value);
        self.offsets.push(u32::try_from(self.op).unwrap_or(u32::MAX));
        self.push(id)
    }

    fn pop(&mut self) -> Step<PickleId> {
        match self.stack.pop() {
            Some(Slot::Value(id)) => Ok(id),
            _ => Err(self.bad_stack("a value is needed on the stack")),
        }
    }

    fn peek(&self) -> Step<PickleId> {
        match self.stack.last() {
            Some(Slot::Value(id)) => Ok(*id),
            _ => Err(self.bad_stack("a value is needed on the stack")),
        }
    }

    fn pop_to_mark(&mut self) -> Step<Vec<PickleId>> {
        let mark = self
            .stack
            .iter()
            .rposition(|slot| matches!(slot, Slot::Mark))
            .ok_or_else(|| self.bad_stack("a mark is needed on the stack"))?;
        let items = self.stack.drain(mark + 1..).filter_map(|slot| match slot {
            Slot::Value(id) => Some(id),
            Slot::Mark => None,
        });
        let items = items.collect();
        self.stack.pop();
        Ok(items)
    }

    fn pop_tuple(&mut self) -> Step<PickleId> {
        let id = self.pop()?;
        match self.values.get(id.0 as usize) {
            Some(PickleValue::Tuple(_)) => Ok(id),
            _ => Err(self.bad_stack("the arguments must be a tuple")),
        }
    }

    fn pop_global(&mut self) -> Step<PickleId> {
        let id = self.pop()?;
        match self.values.get(id.0 as usize) {
            Some(PickleValue::Global { .. }) => Ok(id),
            _ => Err(self.bad_stack("what is called or instantiated must be a global")),
        }
    }

    fn pop_str(&mut self) -> Step<Box<str>> {
        let id = self.pop()?;
        match self.values.get(id.0 as usize) {
            Some(PickleValue::Str(text)) => Ok(text.clone()),
            _ => Err(self.bad_stack("a global is named by two strings")),
        }
    }

    fn tuple(&mut self, length: usize) -> Step {
        let mut items = [PickleId(0); 3];
        for slot in items[..length].iter_mut().rev() {
            *slot = self.pop()?;
        }
        self.push_new(PickleValue::Tuple(items[..length].into()))
    }

    fn pairs(&self, items: &[PickleId]) -> Step<Vec<(PickleId, PickleId)>> {
        if !items.len().is_multiple_of(2) {
            return Err(self.bad_stack("a dictionary needs as many values as keys"));
        }
        Ok(items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }

    fn extend_list(&mut self, items: Vec<PickleId>) -> Step {
        let list = self.peek()?;
        match self.values.get_mut(list.0 as usize) {
            Some(PickleValue::List(list)) => {
                list.extend(items);
                Ok(())
            }
            _ => Err(self.bad_stack("a list is needed to append to")),
        }
    }

    fn extend_dict(&mut self, items: Vec<(PickleId, PickleId)>) -> Step {
        let dict = self.peek()?;
        match self.values.get_mut(dict.0 as usize) {
            Some(PickleValue::Dict(dict)) => {
                dict.extend(items);
                Ok(())
            }
            // An ordered dictionary is made by a call and filled afterwards; in archives it is the (empty) table of hooks.
            Some(PickleValue::Call { .. }) if items.is_empty() => Ok(()),
            _ => Err(self.bad_stack("a dictionary is needed to put items into")),
        }
    }

    fn memoize(&mut self, slot: u32) -> Step {
        let top = self.peek()?;
        self.memo.insert(slot, top);
        Ok(())
    }

    fn recall(&mut self, slot: u32) -> Step {
        let id = *self
            .memo
            .get(&slot)
            .ok_or(PickleError::Memo { offset: self.op, slot })?;
        self.push(id)
    }

    fn global(&mut self, module: &str, name: &str) -> Step {
        if !is_allowed_global(module, name) {
            return Err(PickleError::Global {
                offset: self.op,
                module: module.to_owned(),
                name: name.to_owned(),
            });
        }
        self.push_new(PickleValue::Global {
            module: module.into(),
            name: name.into(),
        })
    }

    fn build(&mut self) -> Step {
        let new_state = self.pop()?;
        let target = self.peek()?;
        match self.values.get_mut(target.0 as usize) {
            Some(PickleValue::Object { state, .. } | PickleValue::Call { state, .. }) if state.is_none() => {
                *state = Some(new_state);
                Ok(())
            }
            _ => Err(self.bad_stack("only a new object can be given its state, and only once")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shared_values_keep_their_identity() {
        // ([1], the same list again)
        let pickle = Pickle::parse(b"\x80\x02]q\x00K\x01ah\x00\x86.").unwrap();
        let items = pickle.elements(pickle.root()).unwrap();
        assert_eq!(items[0], items[1]);
        assert_eq!(pickle.int(pickle.elements(items[0]).unwrap()[0]), Some(1));
    }

    #[test]
    fn objects_and_calls_are_data() {
        let pickle = Pickle::parse(b"\x80\x02c__torch__.m\nC\n)\x81}X\x01\x00\x00\x00aK\x05sb.").unwrap();
        let PickleValue::Object { class, state, .. } = pickle.value(pickle.root()) else {
            panic!("an object")
        };
        assert_eq!(pickle.global(*class), Some(("__torch__.m", "C")));
        let PickleValue::Dict(items) = pickle.value(state.unwrap()) else {
            panic!("a dictionary")
        };
        assert_eq!((pickle.str(items[0].0), pickle.int(items[0].1)), (Some("a"), Some(5)));
    }

    #[test]
    fn long_integers() {
        let int = |bytes: &[u8]| {
            let mut text = vec![0x80, 2, 0x8a, bytes.len() as u8];
            text.extend(bytes);
            text.push(b'.');
            Pickle::parse(&text).map(|p| p.int(p.root()).unwrap())
        };
        assert_eq!(int(&[]), Ok(0));
        assert_eq!(int(&[0xff]), Ok(-1));
        assert_eq!(int(&[0xff, 0]), Ok(255));
        assert_eq!(int(&[0, 0, 0, 0, 0, 0, 0, 0x80]), Ok(i64::MIN));
        assert!(matches!(
            int(&[0, 0, 0, 0, 0, 0, 0, 0x80, 0]),
            Err(PickleError::Literal { offset: 2, .. })
        ));
    }

    #[test]
    fn what_could_execute_is_refused_with_its_offset() {
        let system = Pickle::parse(b"\x80\x02cos\nsystem\n.");
        assert_eq!(
            system.unwrap_err(),
            PickleError::Global {
                offset: 2,
                module: "os".into(),
                name: "system".into()
            }
        );
        // INST and the extension registry are opcodes that archives never have.
        assert_eq!(
            Pickle::parse(b"(ios\nsystem\n.").unwrap_err(),
            PickleError::Opcode {
                offset: 1,
                opcode: b'i'
            }
        );
        assert_eq!(
            Pickle::parse(b"\x82\x01.").unwrap_err(),
            PickleError::Opcode {
                offset: 0,
                opcode: 0x82
            }
        );
        assert_eq!(
            Pickle::parse(b"\x80\x02X\xff\xff\xff\x7fa.").unwrap_err(),
            PickleError::Truncated {
                offset: 2,
                missing: 0x7fff_ffff - 2
            }
        );
        assert_eq!(
            Pickle::parse(b"h\x05.").unwrap_err(),
            PickleError::Memo { offset: 0, slot: 5 }
        );
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Pickle::parse(&bytes);
        }

        #[test]
        fn random_opcodes_never_panic(ops in prop::collection::vec(prop::sample::select(&b"(012N\x88\x89]})tlde\x85\x86\x87asuRb\x81Q\x93\x94K\x01q\x01h\x01."[..]), 0..200)) {
            let _ = Pickle::parse(&ops);
        }
    }
}
