//! A restricted unpickler: reads the pickles of `.pt` archives into data and executes nothing.
//!
//! PyTorch's serialiser writes protocol 2 with few opcodes. This reader builds a table of [`PickleValue`]s, which refer to one another by [`PickleId`]. An
//! object that is referenced twice is one value of the table, so identity is preserved. Calls (`REDUCE`), objects (`NEWOBJ`, `BUILD`) and references to
//! storages (`BINPERSID`) become values of their own and are not executed. This module restricts which globals may be named; the caller interprets them.
//!
//! A pickle can be cyclic (a list that contains itself through the memo), and can be nested as deeply as it has bytes. So code that walks the table must bound
//! the depth.

mod machine;

use frazil_ir::DType;
use machine::Machine;

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
    /// A dictionary, in insertion order. Keys may repeat; the last entry of a key counts.
    Dict(Vec<(PickleId, PickleId)>),
    /// A reference to a class or function by the names of its module and of itself.
    Global {
        /// The module, as in `torch._utils`.
        module: Box<str>,
        /// The name of the global in its module, as in `_rebuild_tensor_v2`.
        name: Box<str>,
    },
    /// A call `callee(*args)`, which is not executed. An empty `OrderedDict` is a [`PickleValue::Dict`].
    Call {
        /// The callee, a [`PickleValue::Global`].
        callee: PickleId,
        /// The arguments, a [`PickleValue::Tuple`]; for a member of an enum, its value.
        args: PickleId,
        /// The state that `BUILD` set on the result, if any.
        state: Option<PickleId>,
    },
    /// `class.__new__(class, *args)` with its state.
    Object {
        /// The class, a [`PickleValue::Global`].
        class: PickleId,
        /// The arguments, a [`PickleValue::Tuple`], which is empty in archives.
        args: PickleId,
        /// The state that `BUILD` set: a dictionary of attributes, or the result of `__getstate__`.
        state: Option<PickleId>,
    },
    /// A persistent id: a reference to a value outside of the pickle. In archives, this is a storage.
    Persistent(PickleId),
}

impl PickleValue {
    /// Returns the name of the value's variant, for messages.
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
        /// The byte offset in the pickle.
        offset: usize,
        /// Number of bytes that are missing.
        missing: usize,
    },
    /// An opcode that does not occur in archives, or that could execute code.
    #[error("pickle byte {offset}: opcode 0x{opcode:02x} is not allowed in a TorchScript archive")]
    Opcode {
        /// The byte offset in the pickle.
        offset: usize,
        /// The code of the opcode.
        opcode: u8,
    },
    /// A class or function that may not occur in archives.
    #[error("pickle byte {offset}: global `{module}.{name}` is not allowed in a TorchScript archive")]
    Global {
        /// The byte offset in the pickle.
        offset: usize,
        /// The module of the global.
        module: String,
        /// The name of the global in the module.
        name: String,
    },
    /// The pickle has a protocol above 4.
    #[error("pickle byte {offset}: protocol {protocol} is not supported (archives are written with protocol 2)")]
    Protocol {
        /// The byte offset in the pickle.
        offset: usize,
        /// The protocol that the pickle states.
        protocol: u8,
    },
    /// The stack has too few values, no mark, or a value of the wrong type for the opcode.
    #[error("pickle byte {offset}: {expected}")]
    Stack {
        /// The byte offset in the pickle.
        offset: usize,
        /// Description of what the opcode requires.
        expected: &'static str,
    },
    /// A memo slot is read that has not been written.
    #[error("pickle byte {offset}: memo slot {slot} is empty")]
    Memo {
        /// The byte offset in the pickle.
        offset: usize,
        /// The number of the memo slot.
        slot: u32,
    },
    /// A literal is a string that is not UTF-8, or an integer of more than 64 bits.
    #[error("pickle byte {offset}: {what}")]
    Literal {
        /// The byte offset in the pickle.
        offset: usize,
        /// Description of the error.
        what: &'static str,
    },
    /// Parsing exceeds the current thread's budget.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
    /// The pickle has more values than [`MAX_VALUES`].
    #[error("pickle byte {offset}: more than {MAX_VALUES} values")]
    TooManyValues {
        /// The byte offset in the pickle.
        offset: usize,
    },
}

/// Maximum number of values of a pickle. PyTorch's largest pickles have some millions.
pub const MAX_VALUES: usize = 1 << 28;

/// A parsed pickle: a table of values, which refer to one another by id.
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

    /// Returns the id of the value that the whole pickle represents.
    pub fn root(&self) -> PickleId {
        self.root
    }

    /// Returns the value with id `id`, which must be an id of this pickle.
    pub fn value(&self, id: PickleId) -> &PickleValue {
        // Ids are only made by `Machine::push_new`; one of another pickle finds some value or `None`, never a panic.
        self.values.get(id.0 as usize).unwrap_or(&PickleValue::None)
    }

    /// Returns the offset in bytes of the opcode that created the value, for messages.
    pub fn offset(&self, id: PickleId) -> usize {
        self.offsets.get(id.0 as usize).copied().unwrap_or(0) as usize
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no values; a parsed pickle has at least one.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the string with id `id`; `None` if that value is no string.
    pub fn str(&self, id: PickleId) -> Option<&str> {
        match self.value(id) {
            PickleValue::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the integer with id `id`; `None` if that value is no integer.
    pub fn int(&self, id: PickleId) -> Option<i64> {
        match self.value(id) {
            PickleValue::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// Returns the elements of the list or tuple with id `id`; `None` if that value is neither.
    pub fn elements(&self, id: PickleId) -> Option<&[PickleId]> {
        match self.value(id) {
            PickleValue::List(items) => Some(items),
            PickleValue::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// Returns module and name of the global with id `id`; `None` if that value is no global.
    pub fn global(&self, id: PickleId) -> Option<(&str, &str)> {
        match self.value(id) {
            PickleValue::Global { module, name } => Some((module, name)),
            _ => None,
        }
    }
}

/// Returns whether archives may name this global: classes of the program (`__torch__...`), and the functions that PyTorch's serialiser uses.
fn is_allowed_global(module: &str, name: &str) -> bool {
    match module {
        "torch" => {
            name.ends_with("Storage")
                || DType::from_python_name(name).is_some()
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
