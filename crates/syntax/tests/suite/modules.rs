//! Module files: writing text and tensor file, and reading them, is lossless.

use frazil_ir::schema::{Argument, FunctionSchema, TypeHint};
use frazil_ir::{
    AttributeKind, ClassDef, ClassKind, CompilationUnit, Constant, Context, DType, Device, DictConstant, EnumConstant,
    Function, Module, Object, Storage, SymbolId, TensorData, TypeId, TypeKind, symbols, types,
};
use frazil_syntax::{
    ModulePrintOptions, NoTensors, ParseOptions, ReadError, equal_modules, parse_graph, parse_module,
    parse_module_with, print_module_to_string, read_module, render, write_module,
};
use std::sync::Arc;

fn argument(ctx: &Context, name: &str, ty: TypeId) -> Argument {
    Argument {
        name: ctx.symbol(name),
        ty,
        broadcast: None,
        default: None,
        keyword_only: false,
        alias: None,
        element_alias: None,
        hint: TypeHint::None,
    }
}

fn schema(name: SymbolId, arguments: Vec<Argument>, returns: Vec<Argument>) -> FunctionSchema {
    FunctionSchema {
        name,
        overload: symbols::EMPTY,
        arguments,
        returns,
        is_vararg: false,
        is_varret: false,
    }
}

fn floats(n: usize, seed: f32) -> Vec<u8> {
    (0..n)
        .flat_map(|i| (seed + i as f32 * 0.37).sin().to_le_bytes())
        .collect()
}

fn tensor(storage: &Arc<Storage>, sizes: &[i64], strides: &[i64], offset: i64) -> Arc<TensorData> {
    Arc::new(TensorData::new(DType::Float, sizes, strides, offset, storage.clone()).unwrap())
}

/// Returns a module with one element of each kind.
fn sample() -> Module {
    let ctx = Arc::new(Context::new());
    let sym = |s: &str| ctx.symbol(s);
    let mut unit = CompilationUnit::default();
    let net = sym("__torch__.Net");
    let part = sym("__torch__.parts.___torch_mangle_0.Part");

    let point_ty = ctx.type_of_kind(TypeKind::NamedTuple(
        sym("__torch__.Point"),
        ctx.symbol_list(&[sym("x"), sym("label")]),
        ctx.type_list(&[types::TENSOR, ctx.optional_of(types::STR)]),
    ));
    let pair_ty = ctx.type_of_kind(TypeKind::NamedTuple(
        sym("__torch__.Pair"),
        ctx.symbol_list(&[sym("p"), sym("q")]),
        ctx.type_list(&[point_ty, types::INT]),
    ));
    let interface_ty = ctx.type_of_kind(TypeKind::Interface(sym("__torch__.Step")));
    let color = sym("__torch__.Color");
    let color_ty = ctx.type_of_kind(TypeKind::Enum(color));
    let ints = ctx.list_of(types::INT);

    let mut def = ClassDef::new(color, ClassKind::Enum);
    def.constants.insert(sym("RED"), Constant::Int(1));
    def.constants.insert(
        sym("BLUE"),
        Constant::Enum(Arc::new(EnumConstant {
            class: color,
            name: "BLUE".into(),
            value: Constant::Int(2),
        })),
    );
    unit.classes.insert(color, def);

    let mut def = ClassDef::new(sym("__torch__.Point"), ClassKind::NamedTuple);
    def.add_attribute(sym("x"), types::TENSOR, AttributeKind::Plain);
    def.add_attribute(sym("label"), ctx.optional_of(types::STR), AttributeKind::Plain);
    def.constants.insert(sym("label"), Constant::None);
    unit.classes.insert(def.name, def);

    let mut def = ClassDef::new(sym("__torch__.Step"), ClassKind::ModuleInterface);
    let mut default = argument(&ctx, "n", types::FLOAT);
    default.default = Some(Constant::Float(1.0));
    default.keyword_only = true;
    def.signatures.insert(
        symbols::FORWARD,
        schema(
            symbols::FORWARD,
            vec![
                argument(&ctx, "self", interface_ty),
                argument(&ctx, "x", types::TENSOR),
                default,
            ],
            vec![argument(&ctx, "", types::TENSOR), argument(&ctx, "count", types::INT)],
        ),
    );
    unit.classes.insert(def.name, def);

    let forward = sym("__torch__.Net.forward");
    let graph = "graph(%self : __torch__.Net,
      %x.1 : Tensor):
  %0 : Function = prim::Constant[name=\"relu\"]()
  %s : str = prim::Constant[value=\"a\\n\\\"b\\\" \u{e9}\"]()
  %f : float = prim::Constant[value=1e15]()
  %f2 : float[] = prim::Constant[value=[0.1, 1., -0.]]()
  %w : Tensor = prim::GetAttr[name=\"weight\"](%self) # net.py:3:4
  %c : bool = prim::Constant[value=1]()
  %y : Tensor = prim::If(%c), scope: a/b # net.py:4:4
    block0():
      %h : Future[Tensor] = prim::fork_0(%x.1)
      %z : Tensor = aten::wait(%h)
      -> (%z)
    block1():
      -> (%w)
  return (%y)
with prim::fork_0 = graph(%a : Tensor):
  return (%a)
";
    let mut graph = parse_graph(&ctx, graph).unwrap_or_else(|e| panic!("{e}")).graph;
    // A nameless value, a function's type, and constants that only a module can contain.
    let relu = graph.node_outputs(graph.first(graph.root()).unwrap())[0];
    graph.set_type(
        relu,
        ctx.type_of_kind(TypeKind::Function(sym("__torch__.torch.nn.functional.relu"))),
    );
    graph.clear_value_name(relu);
    let big = Arc::new(Storage::new(Arc::new(floats(1000, 0.5)), Device::CPU));
    let weight = tensor(&big, &[10, 20], &[20, 1], 0);
    let root = graph.root();
    let mut b = frazil_ir::Builder::at_end(&mut graph, root);
    b.constant(Constant::Tensor(weight.clone()));
    b.constant_typed(
        Constant::Enum(Arc::new(EnumConstant {
            class: color,
            name: "BLUE".into(),
            value: Constant::Int(2),
        })),
        color_ty,
    );
    b.constant(Constant::tuple(
        &ctx,
        vec![Constant::Int(1), Constant::list(types::TENSOR, vec![])],
    ));
    let mut keyword = argument(&ctx, "mode", types::STR);
    keyword.default = Some(Constant::str("it's"));
    let mut list = argument(&ctx, "dims", ctx.optional_of(ints));
    list.default = Some(Constant::ints([1, -2]));
    let function = Function {
        name: forward,
        schema: schema(
            symbols::FORWARD,
            vec![
                argument(&ctx, "self", ctx.class("__torch__.Net")),
                argument(&ctx, "x", types::TENSOR),
                keyword,
                list,
            ],
            vec![argument(&ctx, "", ctx.tuple_of(&[types::TENSOR, pair_ty]))],
        ),
        graph,
    };
    let id = unit.add_function(function);

    let mut def = ClassDef::new(net, ClassKind::Module);
    def.add_attribute(sym("weight"), types::TENSOR, AttributeKind::Parameter);
    def.add_attribute(sym("mean"), types::TENSOR, AttributeKind::Buffer);
    for (name, ty) in [
        ("training", types::BOOL),
        ("0", ctx.class(ctx.name(part))),
        ("again", ctx.class(ctx.name(part))),
        ("step", interface_ty),
        ("odd name", types::FLOAT),
        ("ids", ints),
        ("same_ids", ints),
        ("table", ctx.dict_of(types::STR, ctx.list_of(ints))),
        ("pair", pair_ty),
        ("color", color_ty),
        ("any", types::ANY),
        ("device", types::DEVICE),
        ("number", types::COMPLEX),
        ("nothing", ctx.optional_of(types::TENSOR)),
        ("callee", types::FUNCTION),
    ] {
        def.add_attribute(sym(name), ty, AttributeKind::Plain);
    }
    def.constants.insert(sym("sizes"), Constant::ints([3, 3]));
    def.constants.insert(sym("eps"), Constant::Float(1e-5));
    def.constants.insert(sym("big"), Constant::Float(1e16));
    def.methods.insert(symbols::FORWARD, id);
    def.forward_pre_hooks.push(sym("check"));
    def.forward_hooks.push(sym("log"));
    unit.classes.insert(net, def);

    let mut def = ClassDef::new(part, ClassKind::Module);
    def.add_attribute(sym("view"), types::TENSOR, AttributeKind::Plain);
    def.add_attribute(sym("small"), types::TENSOR, AttributeKind::Buffer);
    def.add_attribute(sym("parent"), ctx.class("__torch__.Net"), AttributeKind::Plain);
    unit.classes.insert(part, def);

    let mut m = Module::new(ctx.clone(), unit, net, Vec::new());
    let mut small = TensorData::contiguous(DType::Float, &[3], floats(3, 2.0)).unwrap();
    small.requires_grad = true;
    let half = Arc::new(TensorData::contiguous(DType::Half, &[2], vec![0, 0x3c, 1, 0]).unwrap());
    let quantized = Arc::new(TensorData::contiguous(DType::QInt8, &[2], vec![1, 255]).unwrap());
    let cuda = Arc::new(Storage::new(
        Arc::new(floats(2, 9.0)),
        Device {
            kind: frazil_ir::DeviceKind::Cuda,
            index: Some(1),
        },
    ));
    let child = m.add_object(Object {
        class: part,
        slots: vec![
            // A transposed view of the weight's storage.
            Constant::Tensor(tensor(&big, &[5, 10], &[1, 20], 7)),
            Constant::Tensor(Arc::new(small)),
            Constant::Object(m.root),
        ],
    });
    let shared = Constant::ints([1, 2, 3]);
    let Constant::List(shared_list) = &shared else {
        unreachable!()
    };
    let table = Constant::Dict(Arc::new(DictConstant {
        key: types::STR,
        value: ctx.list_of(ints),
        entries: vec![
            (
                Constant::str("k"),
                Constant::list(ints, vec![Constant::List(shared_list.clone()), Constant::ints([])]),
            ),
            (Constant::str(""), Constant::list(ints, vec![])),
        ],
    }));
    let point = Constant::Tuple(Arc::new(frazil_ir::TupleConstant {
        ty: point_ty,
        items: vec![Constant::Tensor(half), Constant::None],
    }));
    let pair = Constant::Tuple(Arc::new(frazil_ir::TupleConstant {
        ty: pair_ty,
        items: vec![point, Constant::Int(4)],
    }));
    let any = Constant::tuple(
        &ctx,
        vec![
            Constant::list(
                types::ANY,
                vec![Constant::Int(1), Constant::str("x"), Constant::Bool(true)],
            ),
            Constant::Float(f64::INFINITY),
            Constant::Tensor(quantized),
            Constant::Tensor(tensor(&cuda, &[2], &[1], 0)),
            Constant::Float(2.0),
        ],
    );
    let root = m.root;
    m.object_mut(root).slots = vec![
        Constant::Tensor(weight.clone()),
        Constant::Tensor(weight),
        Constant::Bool(false),
        Constant::Object(child),
        Constant::Object(child),
        Constant::Object(child),
        Constant::Float(1e-300),
        shared.clone(),
        shared,
        table,
        pair,
        Constant::Enum(Arc::new(EnumConstant {
            class: color,
            name: "RED".into(),
            value: Constant::Int(1),
        })),
        any,
        Constant::Device(Device::CPU),
        Constant::Complex(num_complex::Complex64::new(-1.0, -0.5)),
        Constant::None,
        Constant::Function(sym("__torch__.torch.nn.functional.relu")),
    ];
    m.extra_files
        .insert("notes/a.txt".into(), Arc::from("it's \"fine\"\n".as_bytes()));
    m.extra_files.insert("raw".into(), Arc::from([0u8, 255, 7].as_slice()));
    m
}

fn read_back(text: &str) -> Module {
    parse_module(&Arc::new(Context::new()), text, &NoTensors)
        .unwrap_or_else(|e| panic!("{text}\n{}", render("module", text, &e.diagnostics, false)))
}

#[test]
fn nothing_is_lost_in_text() {
    let m = sample();
    let text = print_module_to_string(&m, ModulePrintOptions::default());
    let back = read_back(&text);
    equal_modules(&m, &back).unwrap_or_else(|e| panic!("{e}\n{text}"));
    equal_modules(&back, &m).unwrap();
    assert_eq!(print_module_to_string(&back, ModulePrintOptions::default()), text);
}

#[test]
fn the_text_is_for_people() {
    let options = ModulePrintOptions {
        tensor_file: Some("sample.safetensors"),
        tensor_checksum: None,
        ..ModulePrintOptions::default()
    };
    insta::assert_snapshot!(print_module_to_string(&sample(), options));
}

#[test]
fn nothing_is_lost_in_files() {
    let m = sample();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.ir");
    write_module(&m, &path).unwrap();
    let names = |folder: &std::path::Path| {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), ["net.ir", "net.safetensors"]);
    let back = read_module(&Arc::new(Context::new()), &path).unwrap_or_else(|e| panic!("{}", e.render(false)));
    equal_modules(&m, &back).unwrap();
    // A file can be overwritten while it is being read from.
    write_module(&back, &path).unwrap();
    equal_modules(&m, &back).unwrap();
    let again = read_module(&Arc::new(Context::new()), &path).unwrap();
    equal_modules(&m, &again).unwrap();
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn differences_are_found() {
    let m = sample();
    let training = m.ctx().symbol("training");
    let mut other = m.clone();
    other.set_attribute(other.root, training, Constant::Bool(true));
    let difference = equal_modules(&m, &other).unwrap_err();
    assert!(difference.place.contains("training"), "{difference}");
    // The same numbers in another list.
    let mut other = m.clone();
    other.set_attribute(other.root, m.ctx().symbol("same_ids"), Constant::ints([1, 2, 3]));
    assert!(equal_modules(&m, &other).unwrap_err().message.contains("shared"));
}

#[test]
fn elided_modules_are_for_reading_only() {
    let options = ModulePrintOptions {
        elide_constants_larger_than: Some(10),
        ..ModulePrintOptions::default()
    };
    let text = print_module_to_string(&sample(), options);
    assert!(text.len() < 8000 && text.contains("elided"));
    let error = parse_module(&Arc::new(Context::new()), &text, &NoTensors).unwrap_err();
    assert!(
        error
            .diagnostics
            .iter()
            .all(|d| d.code == "elided-constant" || d.code == "unknown-reference")
    );
}

#[test]
fn wrong_files_are_told() {
    let good = print_module_to_string(&sample(), ModulePrintOptions::default());
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        let text = good.replacen(from, to, 1);
        match parse_module(&Arc::new(Context::new()), &text, &NoTensors) {
            Ok(_) => panic!("{to} is accepted"),
            Err(e) => render("net.ir", &text, &e.diagnostics, false),
        }
    };
    let mut all = String::new();
    for (from, to) in [
        ("frazil module 1", "frazil module 9"),
        ("frazil module 1", "frazil module 1\ntensors \"../x\""),
        ("root object<0>", "root object<7>"),
        ("root object<0>\n", ""),
        ("  attribute training", "  attribut training"),
        (
            "method forward = __torch__.Net.forward",
            "method forward = __torch__.Net.forwards",
        ),
        ("object<0> = __torch__.Net", "object<0> = __torch__.Nat"),
        ("  training = False\n", ""),
        ("  training = False\n", "  training = False\n  training = True\n"),
        ("  training = False\n", "  training = False\n  trainings = True\n"),
        ("  color = __torch__.Color.RED", "  color = __torch__.Color.GREEN"),
        ("tensor<4> = Float(5,", "tensor<4> = Float(*,"),
        ("tensor<4> = Float(5,", "tensor<4> = Float(5000,"),
        ("storage<0> = 4000 bytes", "storage<0> = 4001 bytes"),
        ("tensor<3> =", "tensor<2> ="),
        ("aten::wait(%h)", "aten::wait(%hh)"),
        ("\nfunction ", "\nfunktion "),
    ] {
        all.push_str(&changed(from, to));
        all.push('\n');
    }
    insta::assert_snapshot!(all);
}

#[test]
fn graphs_of_modules_are_verified_on_request() {
    let good = print_module_to_string(&sample(), ModulePrintOptions::default());
    let text = good.replacen(
        "%c : bool = prim::Constant[value=True]",
        "%c : int = prim::Constant[value=1]",
        1,
    );
    let options = ParseOptions {
        verify: true,
        ..ParseOptions::default()
    };
    let check = |text: &str| parse_module_with(&Arc::new(Context::new()), text, &NoTensors, options);
    check(&good).unwrap_or_else(|e| panic!("{}", render("net.ir", &good, &e.diagnostics, false)));
    let error = check(&text).unwrap_err();
    let shown = render("net.ir", &text, &error.diagnostics, false);
    assert!(
        shown.contains("takes one condition of type bool") && shown.contains("prim::If"),
        "{shown}"
    );
}

#[test]
fn a_missing_tensor_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.ir");
    write_module(&sample(), &path).unwrap();
    let tensors = folder.path().join("net.safetensors");
    let bytes = std::fs::read(&tensors).unwrap();
    std::fs::write(&tensors, &bytes[..bytes.len() / 2]).unwrap();
    let ctx = Arc::new(Context::new());
    assert!(matches!(read_module(&ctx, &path), Err(ReadError::Tensors(_))));
    std::fs::remove_file(&tensors).unwrap();
    assert!(matches!(read_module(&ctx, &path), Err(ReadError::Tensors(_))));
    assert!(matches!(
        read_module(&ctx, &folder.path().join("none.ir")),
        Err(ReadError::Io { .. })
    ));
}

/// Simulates a process that was killed between the two renames.
#[test]
fn a_tensor_file_of_another_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut other = sample();
    other.extra_files.insert("notes".to_owned(), Arc::from([0xff; 1000]));
    write_module(&sample(), &path("net.ir")).unwrap();
    write_module(&other, &path("other.ir")).unwrap();
    std::fs::copy(path("other.safetensors"), path("net.safetensors")).unwrap();
    let ctx = Arc::new(Context::new());
    let error = read_module(&ctx, &path("net.ir")).map(drop).unwrap_err().render(false);
    assert!(error.contains("the tensor file belongs to another text"), "{error}");

    // Another program may have changed the tensors: it does not know the checksum.
    let bytes = std::fs::read(path("other.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let rewritten = safetensors::serialize(tensors.tensors(), None).unwrap();
    std::fs::write(path("other.safetensors"), rewritten).unwrap();
    equal_modules(&other, &read_module(&ctx, &path("other.ir")).unwrap()).unwrap();
}

#[test]
fn nothing_is_left_when_writing_fails() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/folder/net.ir");
    assert!(write_module(&sample(), &missing).is_err());
    // The text cannot replace a folder.
    let taken = folder.path().join("net.ir");
    std::fs::create_dir(&taken).unwrap();
    assert!(write_module(&sample(), &taken).is_err());
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(left.iter().all(|n| n == "net.ir" || n == "net.safetensors"), "{left:?}");
}

/// Accesses of a class's members, and calls, have the types of the definitions.
#[test]
fn members_have_the_types_of_their_classes() {
    let module = |body: &str| {
        format!(
            "frazil module 1\nroot object<0>\n\nmodule __torch__.M {{\n  attribute k : int\n  method forward = __torch__.M.forward\n  method g = \
             __torch__.M.g\n}}\n\nfunction __torch__.M.forward(self : __torch__.M, x : Tensor, i : int) -> (int) as forward\ngraph(%self : __torch__.M, \
             %x : Tensor, %i : int):\n{body}  return (%i)\n\nfunction __torch__.M.g(self : __torch__.M, i : int) -> (str) as g\ngraph(%self : __torch__.M, \
             %i : int):\n  %s : str = aten::str(%i)\n  return (%s)\n\nobject<0> = __torch__.M {{\n  k = 3\n}}\n"
        )
    };
    for (node, message) in [
        (
            "%k : Tensor = prim::GetAttr[name=\"k\"](%self)",
            "attribute `k` is int, not Tensor",
        ),
        (
            "%k : int = prim::GetAttr[name=\"n\"](%self)",
            "class __torch__.M has no attribute `n`",
        ),
        (
            " = prim::SetAttr[name=\"k\"](%self, %x)",
            "attribute `k` is int, not Tensor",
        ),
        (
            "%r : int = prim::CallMethod[name=\"g\"](%self, %i)",
            "output 0 is declared int, but `",
        ),
        (
            "%r : str = prim::CallMethod[name=\"g\"](%self, %x)",
            "argument `i` of `",
        ),
        (
            "%r : str = prim::CallMethod[name=\"g\"](%self)",
            "gives 1 arguments to `",
        ),
        (
            "%r : str = prim::CallMethod[name=\"h\"](%self)",
            "class __torch__.M has no method `h`",
        ),
        (
            "%f : Function<__torch__.M.g> = prim::Constant[name=\"g\"]()\n  %r : int = prim::CallFunction(%f, %self, %i)",
            "output 0 is declared int, but `",
        ),
        ("%k : int = prim::GetAttr[name=\"k\"](%self)", ""),
        (" = prim::SetAttr[name=\"k\"](%self, %i)", ""),
        ("%r : str = prim::CallMethod[name=\"g\"](%self, %i)", ""),
    ] {
        let text = module(&format!("  {node}\n"));
        let options = ParseOptions {
            verify: true,
            ..ParseOptions::default()
        };
        let found = parse_module_with(&Arc::new(Context::new()), &text, &NoTensors, options).err();
        let found = found.map(|e| render("module", &text, &e.diagnostics, false));
        match (found, message) {
            (None, "") => {}
            (Some(found), message) if !message.is_empty() && found.contains(message) => {}
            (found, _) => panic!("{node}: {}", found.unwrap_or_default()),
        }
    }
}
