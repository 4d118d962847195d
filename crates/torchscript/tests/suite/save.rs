//! Writing archives: identity, every kind of value, names and cycles that no archive can have.

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::catalogue;
use frazil_ir::schema::Catalogue;
use frazil_ir::{
    AttributeKind, ClassDef, ClassKind, CompilationUnit, Constant, Context, DType, Device, DictConstant, Encoding,
    Module, Object, Storage, TensorData, TypeId, contiguous_strides, types,
};
use frazil_torchscript::archive::{Archive, Limits, SharedBytes};
use frazil_torchscript::{
    LoadOptions, SaveError, SaveOptions, compile_source, function_module, load_bytes, save_bytes,
};

/// A module of class `name` with these attributes.
fn module(ctx: &Arc<Context>, name: &str, attributes: Vec<(&str, TypeId, Constant)>) -> Module {
    let mut unit = CompilationUnit::default();
    let name = ctx.symbol(name);
    let mut class = ClassDef::new(name, ClassKind::Module);
    let mut slots = Vec::new();
    for (attribute, ty, value) in attributes {
        class.add_attribute(ctx.symbol(attribute), ty, AttributeKind::Plain);
        slots.push(value);
    }
    unit.classes.insert(name, class);
    Module::new(Arc::clone(ctx), unit, name, slots)
}

fn save(module: &Module, catalogue: &Catalogue) -> Result<Vec<u8>, SaveError> {
    save_bytes(module, catalogue, &SaveOptions::default())
}

/// The module after an archive, and its root's attributes.
fn again(module: &Module, catalogue: &Catalogue) -> (Module, Vec<Constant>) {
    let options = LoadOptions::new(module.ctx(), catalogue);
    let back = load_bytes(save(module, catalogue).unwrap(), &options).unwrap();
    let slots = back.object(back.root).slots.clone();
    (back, slots)
}

fn tensor(dtype: DType, sizes: &[i64], storage: &Arc<Storage>, offset: i64) -> TensorData {
    TensorData::new(dtype, sizes, contiguous_strides(sizes), offset, Arc::clone(storage)).unwrap()
}

fn storage(bytes: usize) -> Arc<Storage> {
    let bytes: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
    Arc::new(Storage::new(Arc::new(bytes), Device::CPU))
}

#[test]
fn what_is_shared_stays_shared() {
    let (ctx, catalogue) = catalogue();
    let shared = storage(64);
    let whole = Arc::new(tensor(DType::Float, &[4, 4], &shared, 0));
    let window = Arc::new(TensorData::new(DType::Float, [3, 2].as_slice(), [1, 4].as_slice(), 2, shared).unwrap());
    let list = Constant::ints([1, 2]);
    let attributes = vec![
        ("a", types::TENSOR, Constant::Tensor(Arc::clone(&whole))),
        ("b", types::TENSOR, Constant::Tensor(whole)),
        ("c", types::TENSOR, Constant::Tensor(window)),
        ("l", ctx.list_of(types::INT), list.clone()),
        ("m", ctx.list_of(types::INT), list),
        ("n", ctx.list_of(types::INT), Constant::ints([1, 2])),
    ];
    let module = module(&ctx, "__torch__.Net", attributes);
    let (_, slots) = again(&module, &catalogue);
    let tensors: Vec<_> = slots.iter().filter_map(Constant::as_tensor).collect();
    assert!(Arc::ptr_eq(tensors[0], tensors[1]));
    assert!(!Arc::ptr_eq(tensors[0], tensors[2]));
    assert!(Arc::ptr_eq(&tensors[0].storage, &tensors[2].storage));
    assert_eq!(tensors[2].strides.as_slice(), [1, 4]);
    assert_eq!((tensors[2].offset, tensors[2].storage.bytes().len()), (2, 64));
    let lists: Vec<_> = slots
        .iter()
        .filter_map(|slot| match slot {
            Constant::List(list) => Some(Arc::as_ptr(list)),
            _ => None,
        })
        .collect();
    assert_eq!(lists[0], lists[1]);
    assert_ne!(lists[0], lists[2]);
}

#[test]
fn every_dtype_goes_through_bit_for_bit() {
    let (ctx, catalogue) = catalogue();
    let names: Vec<String> = DType::ALL
        .iter()
        .map(|dtype| format!("t_{}", dtype.type_name()))
        .collect();
    let attributes = DType::ALL.iter().zip(&names).map(|(&dtype, name)| {
        let mut data = tensor(dtype, &[3], &storage(3 * dtype.size()), 0);
        data.requires_grad = dtype.is_floating_point();
        data.encoding = dtype.is_quantized().then(|| {
            Arc::new(Encoding::PerTensor {
                scale: 0.1,
                zero_point: -3,
            })
        });
        (name.as_str(), types::TENSOR, Constant::Tensor(Arc::new(data)))
    });
    let module = module(&ctx, "__torch__.Net", attributes.collect());
    let (_, slots) = again(&module, &catalogue);
    for (before, after) in module.object(module.root).slots.iter().zip(&slots) {
        let (before, after) = (before.as_tensor().unwrap(), after.as_tensor().unwrap());
        assert_eq!(before.dtype, after.dtype);
        assert_eq!(before.requires_grad, after.requires_grad, "{}", before.dtype);
        assert_eq!(before.storage.bytes(), after.storage.bytes(), "{}", before.dtype);
        assert_eq!(format!("{:?}", before.encoding), format!("{:?}", after.encoding));
    }
}

#[test]
fn values_of_every_kind_go_through() {
    let (ctx, catalogue) = catalogue();
    let strings = ctx.list_of(types::STR);
    let table = ctx.dict_of(types::STR, strings);
    let scales = Arc::new(tensor(DType::Double, &[2], &storage(16), 0));
    let mut quantised = tensor(DType::QInt8, &[2, 2], &storage(4), 0);
    quantised.encoding = Some(Arc::new(Encoding::PerChannel {
        scales: Arc::clone(&scales),
        zero_points: Arc::new(tensor(DType::Long, &[2], &storage(16), 0)),
        axis: 1,
        float_zero_points: false,
    }));
    let words = Constant::list(types::STR, vec![Constant::str("ä\n\"'"), Constant::str("")]);
    let entries = vec![(Constant::str("k"), words.clone()), (Constant::str("again"), words)];
    let dict = DictConstant {
        key: types::STR,
        value: strings,
        entries,
    };
    let pair = Constant::tuple(&ctx, vec![Constant::Int(-70_000), Constant::Float(-0.0)]);
    let attributes = vec![
        ("none", ctx.optional_of(types::INT), Constant::None),
        ("flag", types::BOOL, Constant::Bool(true)),
        ("int", types::INT, Constant::Int(i64::MIN)),
        (
            "nan",
            types::FLOAT,
            Constant::Float(f64::from_bits(0x7ff8_0000_0000_0001)),
        ),
        (
            "complex",
            types::COMPLEX,
            Constant::Complex(num_complex::Complex64::new(-0.0, 2.5)),
        ),
        (
            "device",
            types::DEVICE,
            Constant::Device(Device::parse("cuda:1").unwrap()),
        ),
        ("table", table, Constant::Dict(Arc::new(dict))),
        ("pair", pair.ty(&ctx), pair),
        (
            "floats",
            ctx.list_of(types::FLOAT),
            Constant::list(types::FLOAT, vec![Constant::Float(1e300)]),
        ),
        (
            "empty",
            ctx.list_of(ctx.list_of(types::INT)),
            Constant::list(ctx.list_of(types::INT), Vec::new()),
        ),
        ("quantised", types::TENSOR, Constant::Tensor(Arc::new(quantised))),
        ("scales", types::TENSOR, Constant::Tensor(scales)),
    ];
    let module = module(&ctx, "__torch__.Net", attributes);
    let (_, slots) = again(&module, &catalogue);
    for (before, after) in module.object(module.root).slots.iter().zip(&slots).take(10) {
        assert!(before.same(after), "{before:?} became {after:?}");
    }
    let encoding = slots[10].as_tensor().unwrap().encoding.clone().unwrap();
    let Encoding::PerChannel { scales, axis: 1, .. } = &*encoding else {
        panic!("{encoding:?}")
    };
    assert!(Arc::ptr_eq(scales, slots[11].as_tensor().unwrap()));
}

#[test]
fn sparse_tensors_go_through_with_their_parts() {
    let (ctx, catalogue) = catalogue();
    let values = Arc::new(tensor(DType::Float, &[2], &storage(8), 0));
    let part = |sizes: &[i64]| Arc::new(tensor(DType::Long, sizes, &storage(32), 0));
    let coo = Encoding::SparseCoo {
        indices: part(&[2, 2]),
        values: Arc::clone(&values),
    };
    let csr = Encoding::SparseCsr {
        rows: part(&[3]),
        columns: part(&[2]),
        values,
    };
    let attributes = [("coo", coo), ("csr", csr)].map(|(name, encoding)| {
        let sparse = TensorData::sparse(DType::Float, [2, 5].as_slice(), encoding).unwrap();
        (name, types::TENSOR, Constant::Tensor(Arc::new(sparse)))
    });
    let module = module(&ctx, "__torch__.Net", attributes.into());
    let (_, slots) = again(&module, &catalogue);
    let mut values = Vec::new();
    for (before, after) in module.object(module.root).slots.iter().zip(&slots) {
        let (before, after) = (before.as_tensor().unwrap(), after.as_tensor().unwrap());
        assert_eq!((after.dtype, &after.sizes), (DType::Float, &before.sizes));
        let (a, b) = (before.encoding.as_ref().unwrap(), after.encoding.as_ref().unwrap());
        assert_eq!(a.name(), b.name());
        for (a, b) in a.tensors().into_iter().zip(b.tensors()) {
            assert_eq!((&a.sizes, a.to_bytes()), (&b.sizes, b.to_bytes()));
        }
        values.push(Arc::clone(b.tensors().last().unwrap()));
    }
    assert!(Arc::ptr_eq(&values[0], &values[1]), "what both hold is one tensor");
}

#[test]
fn the_original_text_goes_along() {
    const TEXT: &str = "# ä\ndef double(x):\n    # twice\n    return x + x * 1\n";
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    let unit = compile_source("net.py", TEXT, &options).unwrap();
    let function = unit.functions().next().unwrap().0;
    let first = save(&function_module(&ctx, &unit, function), &catalogue).unwrap();
    let second = save(&load_bytes(first.clone(), &options).unwrap(), &catalogue).unwrap();
    let open = |bytes| Archive::new(SharedBytes::from(bytes), Limits::default()).unwrap();
    let (first, second) = (open(first), open(second));
    let map = first.source_map("code/__torch__.py").unwrap().unwrap();
    let [piece] = map.pieces() else {
        panic!("{:?}", map.pieces())
    };
    assert_eq!((&*piece.file, piece.first_line, &*piece.text), ("net.py", 1, TEXT));
    let code = first.text("code/__torch__.py").unwrap();
    let of = |piece: &str| {
        let place = map.find(code.find(piece).unwrap() as u64).unwrap();
        let line = TEXT.lines().nth(place.line as usize - 1).unwrap();
        &line[place.column as usize..(place.column + place.length) as usize]
    };
    assert_eq!((of("torch.add"), of("torch.mul")), ("x + x * 1", "x * 1"));
    let entry = "code/__torch__.py.debug_pkl";
    assert_eq!(first.read(entry).unwrap(), second.read(entry).unwrap());
}

#[test]
fn containers_that_cannot_be_traversed_are_refused() {
    const CODE: &str = "class Net(Module):\n  training : bool\n  w : Any\n";
    let (ctx, catalogue) = catalogue();
    let load = |levels: u8| {
        // t0 = (), t1 = (t0, t0), t2 = (t1, t1), ...
        let mut data = b"\x80\x02c__torch__\nNet\n)\x81}(X\x08\0\0\0training\x89X\x01\0\0\0w)q\0".to_vec();
        for level in 0..levels {
            data.extend([b'0', b'h', level, b'h', level, b'\x86', b'q', level + 1]);
        }
        data.extend(b"ub.");
        let records: [(&str, &[u8]); 4] = [
            ("version", b"3\n"),
            ("data.pkl", &data),
            ("constants.pkl", b"\x80\x02)."),
            ("code/__torch__.py", CODE.as_bytes()),
        ];
        let options = LoadOptions::new(&ctx, &catalogue);
        load_bytes(common::pack("net", &records), &options)
    };
    load(15).unwrap();
    let error = load(60).unwrap_err().to_string();
    assert!(error.contains("containers of at most 16777216 values"), "{error}");
}

#[test]
fn records_are_aligned_and_extra_files_kept() {
    let (ctx, catalogue) = catalogue();
    let data = |bytes| Constant::Tensor(Arc::new(tensor(DType::Byte, &[bytes], &storage(bytes as usize), 0)));
    let mut module = module(
        &ctx,
        "__torch__.Net",
        vec![("a", types::TENSOR, data(3)), ("b", types::TENSOR, data(100))],
    );
    module
        .extra_files
        .insert("kept.txt".to_owned(), b"kept".as_slice().into());
    module
        .extra_files
        .insert("sub/replaced".to_owned(), b"old".as_slice().into());
    let options = SaveOptions::default()
        .top("net".to_owned())
        .extra_files(BTreeMap::from([("sub/replaced".to_owned(), b"new".as_slice().into())]));
    let bytes = save_bytes(&module, &catalogue, &options).unwrap();
    let archive = Archive::new(SharedBytes::from(bytes.clone()), Limits::default()).unwrap();
    assert_eq!(archive.top(), "net/");
    assert_eq!(archive.text("extra/kept.txt").unwrap(), "kept");
    assert_eq!(archive.text("extra/sub/replaced").unwrap(), "new");
    for record in ["data/0", "data/1", "data.pkl", "constants.pkl"] {
        let (_, range) = archive.bytes(record).unwrap();
        assert_eq!(range.start % 64, 0, "{record}");
    }
    // Nothing depends on the time or on addresses.
    assert_eq!(bytes, save_bytes(&module.clone(), &catalogue, &options).unwrap());
}

#[test]
fn what_no_archive_can_hold_is_an_error() {
    let (ctx, catalogue) = catalogue();
    let refused = |module: &Module| save(module, &catalogue).unwrap_err().to_string();

    let mut cyclic = module(
        &ctx,
        "__torch__.Net",
        vec![("next", ctx.class("__torch__.Net"), Constant::None)],
    );
    let root = cyclic.root;
    cyclic.object_mut(root).slots = vec![Constant::Object(root)];
    assert_eq!(
        refused(&cyclic),
        "next cannot be written to an archive: it holds itself, and archives hold no cycles"
    );

    let mut deep = Constant::Int(1);
    for _ in 0..5000 {
        deep = Constant::list(types::ANY, vec![deep]);
    }
    let deep = module(&ctx, "__torch__.Net", vec![("deep", types::ANY, deep)]);
    assert!(refused(&deep).contains("nested more than 1000 levels deep"));

    let function = module(
        &ctx,
        "__torch__.Net",
        vec![("f", types::FUNCTION, Constant::Function(ctx.symbol("f")))],
    );
    assert_eq!(
        refused(&function),
        "f cannot be written to an archive: archives hold no functions as values"
    );

    for name in ["Net", "__torch__.a..Net", "__torch__.a\nb", "__torch__.../../Net"] {
        let module = module(&ctx, name, Vec::new());
        assert!(
            matches!(save(&module, &catalogue), Err(SaveError::Name { .. })),
            "{name}"
        );
    }

    let mut unknown = module(&ctx, "__torch__.Net", vec![("part", types::ANY, Constant::None)]);
    let part = unknown.add_object(Object {
        class: ctx.symbol("__torch__.Gone"),
        slots: Vec::new(),
    });
    let root = unknown.root;
    unknown.object_mut(root).slots = vec![Constant::Object(part)];
    assert!(refused(&unknown).contains("its class `__torch__.Gone` is not defined"));

    for name in ["../up", "/abs", "a\\b", ""] {
        let options = SaveOptions::default()
            .top(String::new())
            .extra_files(BTreeMap::from([(name.to_owned(), b"".as_slice().into())]));
        let module = module(&ctx, "__torch__.Net", Vec::new());
        let result = save_bytes(&module, &catalogue, &options);
        assert!(matches!(result, Err(SaveError::Name { .. })), "{name:?}");
    }
}

#[test]
fn objects_keep_what_they_restore_themselves_from() {
    const CODE: &str = "\
class Net(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  total : int
  packed : __torch__.torch.classes.foreign.Packed
  def forward(self: __torch__.Net) -> int:
    return self.total
  def __getstate__(self: __torch__.Net) -> Tuple[int, __torch__.torch.classes.foreign.Packed]:
    total = self.total
    packed = self.packed
    return (total, packed)
  def __setstate__(self: __torch__.Net,
    state: Tuple[int, __torch__.torch.classes.foreign.Packed]) -> NoneType:
    self.total = (state)[0]
    self.packed = (state)[1]
    return None
";
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    // Net(state = (7, Packed(state = "opaque")))
    let mut data = b"\x80\x02c__torch__\nNet\n)\x81K\x07c__torch__.torch.classes.foreign\nPacked\n)\x81".to_vec();
    data.extend(b"X\x06\0\0\0opaqueb\x86b.");
    let records: [(&str, &[u8]); 4] = [
        ("version", b"3\n"),
        ("data.pkl", &data),
        ("constants.pkl", b"\x80\x02)."),
        ("code/__torch__.py", CODE.as_bytes()),
    ];
    let first = load_bytes(common::pack("net", &records), &options).unwrap();
    let (second, _) = again(&first, &catalogue);
    for module in [&first, &second] {
        let states: Vec<_> = module
            .states()
            .map(|(id, state)| (module.object(id).class, state))
            .collect();
        assert_eq!(states.len(), 2);
        // What is inside has to be restored first.
        assert_eq!(ctx.name(states[0].0), "__torch__.torch.classes.foreign.Packed");
        assert_eq!(states[0].1.as_str(), Some("opaque"));
        assert_eq!(states[1].1.items().unwrap()[0].as_int(), Some(7));
    }
    let code = |module: &Module| {
        let bytes = save(module, &catalogue).unwrap();
        let archive = Archive::new(SharedBytes::from(bytes), Limits::default()).unwrap();
        archive.text("code/__torch__.py").unwrap()
    };
    assert_eq!(code(&first), CODE);
}

#[test]
fn functions_are_saved_as_modules() {
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    let source = "def scaled(x: Tensor, by: float = 2.0) -> Tensor:\n  return torch.relu(x) * by\n";
    let unit = compile_source("scaled.py", source, &options).unwrap();
    let id = unit.find_function(ctx.symbol("__torch__.scaled")).unwrap();
    let module = function_module(&ctx, &unit, id);
    let bytes = save(&module, &catalogue).unwrap();
    let archive = Archive::new(SharedBytes::from(bytes.clone()), Limits::default()).unwrap();
    assert_eq!(
        archive.text("code/__torch__.py").unwrap(),
        "\
class PlaceholderModule(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.PlaceholderModule,
    x: Tensor,
    by: float=2.) -> Tensor:
    return torch.mul(torch.relu(x), by)
"
    );
    let loaded = load_bytes(bytes, &options).unwrap();
    assert!(loaded.method(frazil_ir::symbols::FORWARD).is_some());
}
