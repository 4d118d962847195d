//! The unpickler's stack machine.

use std::collections::HashMap;

use super::{MAX_VALUES, Pickle, PickleError, PickleId, PickleValue, is_allowed_global};

/// Bytes of memory per value: the value itself, its offset, and its positions in a container.
const VALUE_BYTES: usize = size_of::<PickleValue>() + 4 * size_of::<u32>();

/// Bytes of memory per slot of the memo.
const MEMO_BYTES: usize = 24;

/// An entry of the unpickler's stack: a value or a mark.
enum Slot {
    Mark,
    Value(PickleId),
}

/// The stack machine that interprets a pickle. It executes the opcodes that build data and refuses all other opcodes.
pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset in bytes of the current opcode.
    op: usize,
    values: Vec<PickleValue>,
    offsets: Vec<u32>,
    stack: Vec<Slot>,
    memo: HashMap<u32, PickleId>,
    /// Shared values of opcodes without state, so that long lists of small integers need little memory.
    plain: HashMap<(u8, u8), PickleId>,
}

type Step<T = ()> = Result<T, PickleError>;

impl<'a> Machine<'a> {
    /// Returns a machine whose next opcode is the first of the pickle.
    pub(super) fn new(bytes: &'a [u8]) -> Machine<'a> {
        Machine {
            bytes,
            at: 0,
            op: 0,
            values: Vec::new(),
            offsets: Vec::new(),
            stack: Vec::new(),
            memo: HashMap::new(),
            plain: HashMap::new(),
        }
    }

    /// Executes opcodes up to `STOP` and returns the pickle.
    pub(super) fn run(mut self) -> Step<Pickle> {
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
            b'N' => self.push_plain(opcode, 0, PickleValue::None),
            0x88 => self.push_plain(opcode, 0, PickleValue::Bool(true)),
            0x89 => self.push_plain(opcode, 0, PickleValue::Bool(false)),
            b'J' => {
                let value = i32::from_le_bytes(self.array()?);
                self.push_new(PickleValue::Int(value.into()))
            }
            b'K' => {
                let value = self.u8()?;
                self.push_plain(opcode, value, PickleValue::Int(value.into()))
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
                if self.is_new_dict(callee, args) {
                    return self.push_new(PickleValue::Dict(Vec::new()));
                }
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

    /// Reads a little-endian two's complement integer of `length` bytes.
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
        frazil_limits::charge(size_of::<Slot>())?;
        self.stack.push(Slot::Value(id));
        Ok(())
    }

    fn push_new(&mut self, value: PickleValue) -> Step {
        if self.values.len() >= MAX_VALUES {
            return Err(PickleError::TooManyValues { offset: self.op });
        }
        let payload = match &value {
            PickleValue::Str(text) => text.len(),
            PickleValue::Bytes(bytes) => bytes.len(),
            PickleValue::Global { module, name } => module.len() + name.len(),
            _ => 0,
        };
        frazil_limits::charge(VALUE_BYTES + payload)?;
        let id = PickleId(self.values.len() as u32);
        self.values.push(value);
        self.offsets.push(u32::try_from(self.op).unwrap_or(u32::MAX));
        self.push(id)
    }

    /// Pushes the value of `opcode` with `operand`. Equal pairs of opcode and operand share one value.
    fn push_plain(&mut self, opcode: u8, operand: u8, value: PickleValue) -> Step {
        if let Some(&id) = self.plain.get(&(opcode, operand)) {
            return self.push(id);
        }
        self.plain.insert((opcode, operand), PickleId(self.values.len() as u32));
        self.push_new(value)
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

    /// Returns whether a call creates an ordered dictionary, which is filled afterwards.
    fn is_new_dict(&self, callee: PickleId, args: PickleId) -> bool {
        let value = |id: PickleId| self.values.get(id.0 as usize);
        matches!(value(callee), Some(PickleValue::Global { module, name }) if &**module == "collections" && &**name == "OrderedDict")
            && matches!(value(args), Some(PickleValue::Tuple(args)) if args.is_empty())
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
            _ => Err(self.bad_stack("a dictionary is needed to put items into")),
        }
    }

    fn memoize(&mut self, slot: u32) -> Step {
        let top = self.peek()?;
        frazil_limits::charge(MEMO_BYTES)?;
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
            // Attributes of an ordered dictionary, such as the versions of the modules that a state dictionary is of.
            Some(PickleValue::Dict(_)) => Ok(()),
            _ => Err(self.bad_stack("only a new object can be given its state, and only once")),
        }
    }
}
