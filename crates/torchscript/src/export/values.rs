//! Objects and values as pickles: the inverse of the reader in `objects`.
//!
//! The memo preserves identity: an object, container or tensor is written once and then referenced, and two tensors on one storage refer to one record.

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::nesting::MAX_NESTING;
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{
    Constant, DType, Device, DeviceKind, DictConstant, Encoding, EnumConstant, ListConstant, Module, ObjectId, Storage,
    SymbolId, TensorData, TupleConstant, TypeId, TypeKind,
};
use indexmap::IndexMap;

use super::error::{SaveError, unwritable};
use crate::source::Stack;

use super::pickle::{MemoSlot, PickleWriter, ShortTuple};

/// The identity of a value that may be referenced several times.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Identity {
    Object(ObjectId),
    /// The address of a tensor, list, dictionary or tuple.
    Address(usize),
    /// The address of a storage, and the element type of the tensor that refers to it.
    Storage(usize, DType),
}

/// Writes values of a module to one pickle, and collects the storages of their tensors.
pub(super) struct ValueWriter<'m> {
    module: &'m Module,
    stack: Stack,
    pickle: PickleWriter,
    memo: HashMap<Identity, MemoSlot>,
    /// Storages keyed by address. The index of a storage is the name of its entry.
    storages: IndexMap<usize, Arc<Storage>>,
    /// Objects that are being written, outermost first.
    open: Vec<ObjectId>,
}

/// A pickle with the storages that it refers to, in the order of their records' numbers.
pub(super) struct Pickled {
    pub(super) bytes: Vec<u8>,
    pub(super) storages: Vec<Arc<Storage>>,
}

type Written<T = ()> = Result<T, SaveError>;

impl<'m> ValueWriter<'m> {
    /// Returns the pickle of the module's root object, with everything that is reachable from it.
    pub(super) fn root(module: &'m Module, stack: Stack) -> Written<Pickled> {
        let mut writer = ValueWriter::new(module, stack);
        writer.object(module.root, 0)?;
        Ok(writer.finish())
    }

    /// Returns the pickle of the tensors and other values that code names `CONSTANTS.c0`, `CONSTANTS.c1`, ...
    pub(super) fn constants(module: &'m Module, constants: &[Constant], stack: Stack) -> Written<Pickled> {
        let mut writer = ValueWriter::new(module, stack);
        writer.items(constants, 0).map_err(|e| e.within("CONSTANTS"))?;
        Ok(writer.finish())
    }

    /// Returns the pickle of an ordered dictionary of tensors by name. Tensors that require gradients are parameters.
    pub(super) fn state(module: &'m Module, tensors: &[(String, Arc<TensorData>)], stack: Stack) -> Written<Pickled> {
        let mut writer = ValueWriter::new(module, stack);
        writer.ordered_dict();
        writer.pickle.mark();
        for (name, tensor) in tensors {
            writer.pickle.str(name);
            if tensor.requires_grad {
                writer.pickle.global("torch._utils", "_rebuild_parameter");
            }
            writer.value(&Constant::Tensor(Arc::clone(tensor)), 0)?;
            if tensor.requires_grad {
                writer.pickle.bool(true);
                writer.ordered_dict();
                writer.pickle.short_tuple(ShortTuple::Three);
                writer.pickle.reduce();
            }
        }
        writer.pickle.end_dict();
        Ok(writer.finish())
    }

    fn new(module: &'m Module, stack: Stack) -> ValueWriter<'m> {
        ValueWriter {
            module,
            stack,
            pickle: PickleWriter::new(),
            memo: HashMap::new(),
            storages: IndexMap::new(),
            open: Vec::new(),
        }
    }

    fn finish(self) -> Pickled {
        Pickled {
            bytes: self.pickle.finish(),
            storages: self.storages.into_values().collect(),
        }
    }

    fn value(&mut self, constant: &Constant, depth: usize) -> Written {
        if depth > MAX_NESTING || self.stack.is_short() {
            let levels = depth.min(MAX_NESTING);
            return Err(unwritable(format!("it is nested more than {levels} levels deep")));
        }
        match constant {
            Constant::None => self.pickle.none(),
            Constant::Bool(value) => self.pickle.bool(*value),
            Constant::Int(value) => self.pickle.int(*value),
            Constant::Float(value) => self.pickle.float(*value),
            Constant::Complex(value) => {
                self.pickle.global("builtins", "complex");
                self.pickle.float(value.re);
                self.pickle.float(value.im);
                self.pickle.short_tuple(ShortTuple::Two);
                self.pickle.reduce();
            }
            Constant::Str(text) => self.pickle.str(text),
            Constant::Device(device) => self.device(*device),
            Constant::Tensor(tensor) => {
                self.shared(Identity::Address(Arc::as_ptr(tensor).addr()), |w| {
                    w.tensor(tensor, depth)
                })?;
            }
            Constant::List(list) => {
                self.shared(Identity::Address(Arc::as_ptr(list).addr()), |w| w.list(list, depth))?;
            }
            Constant::Dict(dict) => {
                self.shared(Identity::Address(Arc::as_ptr(dict).addr()), |w| w.dict(dict, depth))?;
            }
            Constant::Tuple(tuple) => {
                self.shared(Identity::Address(Arc::as_ptr(tuple).addr()), |w| w.tuple(tuple, depth))?;
            }
            Constant::Enum(member) => self.member(member, depth)?,
            Constant::Object(id) => self.object(*id, depth)?,
            Constant::Function(_) => return Err(unwritable("archives hold no functions as values")),
        }
        Ok(())
    }

    /// Writes a value that has an identity. If the value has already been written, writes a reference to it.
    fn shared(&mut self, identity: Identity, write: impl FnOnce(&mut Self) -> Written) -> Written {
        if let Some(&slot) = self.memo.get(&identity) {
            self.pickle.get(slot);
            return Ok(());
        }
        write(self)?;
        let slot = self.pickle.put();
        self.memo.insert(identity, slot);
        Ok(())
    }

    fn object(&mut self, id: ObjectId, depth: usize) -> Written {
        self.shared(Identity::Object(id), |w| {
            if w.open.contains(&id) {
                return Err(unwritable("it holds itself, and archives hold no cycles"));
            }
            w.open.push(id);
            let module = w.module;
            let object = module.object(id);
            w.class(object.class)?;
            w.pickle.new_object();
            match module.state(id) {
                Some(state) => w.value(state, depth + 1)?,
                None => w.attributes(id, depth)?,
            }
            w.pickle.build();
            w.open.pop();
            Ok(())
        })
    }

    fn attributes(&mut self, id: ObjectId, depth: usize) -> Written {
        let module = self.module;
        let ctx = module.ctx();
        let object = module.object(id);
        let class = module
            .class_of(id)
            .ok_or_else(|| unwritable(format!("its class `{}` is not defined", ctx.name(object.class))))?;
        if class.attributes.len() != object.slots.len() {
            return Err(unwritable(format!(
                "it has {} values for the {} attributes of `{}`",
                object.slots.len(),
                class.attributes.len(),
                ctx.name(object.class)
            )));
        }
        self.pickle.begin_dict();
        for (&name, slot) in class.attributes.keys().zip(&object.slots) {
            let name = ctx.name(name);
            self.pickle.str(name);
            self.value(slot, depth + 1).map_err(|e| e.within(name))?;
        }
        self.pickle.end_dict();
        Ok(())
    }

    /// Writes a reference to a class of the program. The qualifier of its name determines the code file.
    fn class(&mut self, class: SymbolId) -> Written {
        let name = self.module.ctx().name(class);
        let bad = |reason| SaveError::Name {
            name: name.to_owned(),
            reason,
        };
        let (module, simple) = name.rsplit_once('.').unwrap_or_default();
        if module.split('.').next() != Some("__torch__") {
            return Err(bad("classes of archives are called `__torch__.` and so on"));
        }
        if name.contains(['\n', '/', '\\']) || name.split('.').any(str::is_empty) {
            return Err(bad("classes are called by identifiers with dots between them"));
        }
        self.pickle.global(module, simple);
        Ok(())
    }

    fn list(&mut self, list: &ListConstant, depth: usize) -> Written {
        let ctx = self.module.ctx();
        let builder = match ctx.type_kind(list.element) {
            TypeKind::Int => Some("build_intlist"),
            TypeKind::Float => Some("build_doublelist"),
            TypeKind::Bool => Some("build_boollist"),
            TypeKind::Tensor(_) => Some("build_tensorlist"),
            _ => None,
        };
        self.pickle
            .global("torch.jit._pickle", builder.unwrap_or("restore_type_tag"));
        if builder.is_some() {
            self.pickle.mark();
        }
        self.pickle.begin_list();
        for (index, item) in list.items.iter().enumerate() {
            self.value(item, depth + 1).map_err(|e| e.within(&index.to_string()))?;
        }
        self.pickle.end_list();
        if builder.is_some() {
            self.pickle.marked_tuple();
            self.pickle.reduce();
        } else {
            self.type_tag(ctx.list_of(list.element));
        }
        Ok(())
    }

    fn dict(&mut self, dict: &DictConstant, depth: usize) -> Written {
        self.pickle.global("torch.jit._pickle", "restore_type_tag");
        self.pickle.begin_dict();
        for (index, (key, value)) in dict.entries.iter().enumerate() {
            self.value(key, depth + 1).map_err(|e| e.within(&index.to_string()))?;
            self.value(value, depth + 1).map_err(|e| e.within(&index.to_string()))?;
        }
        self.pickle.end_dict();
        self.type_tag(self.module.ctx().dict_of(dict.key, dict.value));
        Ok(())
    }

    /// Ends the call of `restore_type_tag` with the type of the container on top of the stack.
    fn type_tag(&mut self, ty: TypeId) {
        let text = display_type(self.module.ctx(), ty, TypeStyle::Annotation).to_string();
        self.pickle.str(&text);
        self.pickle.short_tuple(ShortTuple::Two);
        self.pickle.reduce();
    }

    /// Writes a tuple. A NamedTuple is written as a tuple, too; its type follows from that of the attribute or list.
    fn tuple(&mut self, tuple: &TupleConstant, depth: usize) -> Written {
        self.items(&tuple.items, depth)
    }

    fn items(&mut self, items: &[Constant], depth: usize) -> Written {
        let short = match items.len() {
            0 => Some(ShortTuple::Empty),
            1 => Some(ShortTuple::One),
            2 => Some(ShortTuple::Two),
            3 => Some(ShortTuple::Three),
            _ => None,
        };
        if short.is_none() {
            self.pickle.mark();
        }
        for (index, item) in items.iter().enumerate() {
            self.value(item, depth + 1).map_err(|e| e.within(&index.to_string()))?;
        }
        match short {
            Some(length) => self.pickle.short_tuple(length),
            None => self.pickle.marked_tuple(),
        }
        Ok(())
    }

    /// Writes a member of an enumeration, as a call of its class with the member's value.
    fn member(&mut self, member: &EnumConstant, depth: usize) -> Written {
        self.class(member.class)?;
        self.value(&member.value, depth)?;
        self.pickle.reduce();
        Ok(())
    }

    fn device(&mut self, device: Device) {
        self.pickle.global("torch", "device");
        self.pickle.str(&device.to_string());
        self.pickle.short_tuple(ShortTuple::One);
        self.pickle.reduce();
    }

    fn tensor(&mut self, tensor: &TensorData, depth: usize) -> Written {
        let encoding = tensor.encoding.as_deref();
        if let Some(encoding) = encoding.filter(|encoding| encoding.is_sparse()) {
            return self.sparse(tensor, encoding, depth);
        }
        let rebuild = match encoding {
            Some(_) => "_rebuild_qtensor",
            None => "_rebuild_tensor_v2",
        };
        self.pickle.global("torch._utils", rebuild);
        self.pickle.mark();
        self.storage(tensor)?;
        self.pickle.int(tensor.offset);
        self.shape(&tensor.sizes);
        self.shape(&tensor.strides);
        if let Some(quantizer) = encoding {
            self.quantizer(quantizer, depth)?;
        }
        self.pickle.bool(tensor.requires_grad);
        self.end_tensor();
        Ok(())
    }

    /// Writes the arguments for a sparse tensor: layout number, sizes, and the tensors with indices and values.
    fn sparse(&mut self, tensor: &TensorData, encoding: &Encoding, depth: usize) -> Written {
        self.pickle.global("torch._utils", "_rebuild_sparse_tensor");
        self.pickle.mark();
        self.pickle.int(match encoding {
            Encoding::SparseCsr { .. } => 2,
            _ => 1,
        });
        self.shape(&tensor.sizes);
        self.pickle.bool(tensor.requires_grad);
        for part in encoding.tensors() {
            self.value(&Constant::Tensor(Arc::clone(part)), depth + 1)?;
        }
        self.end_tensor();
        Ok(())
    }

    /// Writes the last arguments of a tensor, an empty dictionary of hooks, and the call that creates the tensor.
    fn end_tensor(&mut self) {
        self.ordered_dict();
        self.pickle.marked_tuple();
        self.pickle.reduce();
    }

    /// Writes an empty `OrderedDict`.
    fn ordered_dict(&mut self) {
        self.pickle.global("collections", "OrderedDict");
        self.pickle.short_tuple(ShortTuple::Empty);
        self.pickle.reduce();
    }

    /// Writes the quantisation parameters: `(qscheme, scale, zero point)` or `(qscheme, scales, zero points, axis)`.
    fn quantizer(&mut self, quantizer: &Encoding, depth: usize) -> Written {
        self.pickle.mark();
        self.pickle.global("torch", quantizer.name());
        if let Encoding::PerTensor { scale, zero_point } = quantizer {
            self.pickle.float(*scale);
            self.pickle.int(*zero_point);
        }
        for tensor in quantizer.tensors() {
            self.value(&Constant::Tensor(Arc::clone(tensor)), depth + 1)?;
        }
        if let Encoding::PerChannel { axis, .. } = quantizer {
            self.pickle.int(*axis);
        }
        self.pickle.marked_tuple();
        Ok(())
    }

    fn shape(&mut self, dims: &[i64]) {
        self.pickle.mark();
        for &dim in dims {
            self.pickle.int(dim);
        }
        self.pickle.marked_tuple();
    }

    /// Writes the tuple for a storage: `("storage", torch.FloatStorage, key, device, number of elements)`.
    fn storage(&mut self, tensor: &TensorData) -> Written {
        let (storage, dtype) = (&tensor.storage, tensor.dtype);
        let length = match storage.device().kind {
            // There are no bytes to count.
            DeviceKind::Meta => tensor.end(),
            _ => i64::try_from(storage.len() / dtype.size()).unwrap_or(i64::MAX),
        };
        let address = Arc::as_ptr(storage).addr();
        self.shared(Identity::Storage(address, dtype), |w| {
            let entry = w.storages.entry(address);
            let number = entry.index();
            entry.or_insert_with(|| Arc::clone(storage));
            w.pickle.mark();
            w.pickle.str("storage");
            w.pickle.global("torch", &format!("{}Storage", dtype.type_name()));
            w.pickle.str(&number.to_string());
            w.pickle.str(&storage.device().to_string());
            w.pickle.int(length);
            w.pickle.marked_tuple();
            w.pickle.persistent();
            Ok(())
        })
    }
}
