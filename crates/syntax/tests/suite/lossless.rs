//! Content that PyTorch's form of graphs cannot represent and module files keep: graphs in any attribute, NaNs of all kinds, outputs without a schema type.

use frazil_ir::nesting::MAX_NESTING;
use frazil_ir::{
    AttributeValue, Builder, CompilationUnit, Constant, Context, DictConstant, Function, Graph, Module, SymbolId,
    TupleConstant, TypeId, TypeKind, symbols, types,
};
use frazil_ir::{ClassDef, ClassKind, schema::Argument, schema::FunctionSchema};
use frazil_syntax::{
    ModulePrintOptions, NoTensors, ParseOptions, equal_modules, parse_graph, parse_graph_with, parse_module,
    print_graph, print_module_to_string, render,
};
use std::sync::Arc;

/// Returns a module whose only method is `graph`.
fn module_of(ctx: &Arc<Context>, schema: FunctionSchema, graph: Graph) -> Module {
    let mut unit = CompilationUnit::default();
    let net = ctx.symbol("__torch__.Net");
    let name = ctx.symbol("__torch__.Net.forward");
    let id = unit.add_function(Function { name, schema, graph });
    let mut def = ClassDef::new(net, ClassKind::Module);
    def.methods.insert(symbols::FORWARD, id);
    unit.classes.insert(net, def);
    Module::new(ctx.clone(), unit, net, Vec::new())
}

fn schema(arguments: Vec<Argument>) -> FunctionSchema {
    FunctionSchema {
        name: symbols::FORWARD,
        overload: symbols::EMPTY,
        arguments,
        returns: Vec::new(),
        is_vararg: false,
        is_varret: false,
    }
}

/// Returns the text of `module`, which is checked to be read back as the same.
fn round_trip(module: &Module) -> String {
    let text = print_module_to_string(module, ModulePrintOptions::default());
    let again = parse_module(&Arc::new(Context::new()), &text, &NoTensors)
        .unwrap_or_else(|e| panic!("{text}\n{}", render("net.ir", &text, &e.diagnostics, false)));
    equal_modules(module, &again).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    assert_eq!(print_module_to_string(&again, ModulePrintOptions::default()), text);
    text
}

fn graph_of(ctx: &Arc<Context>, operator: &str, inner: Option<(SymbolId, AttributeValue)>) -> Arc<Graph> {
    let mut graph = Graph::new(ctx.clone());
    let x = graph.add_input(types::TENSOR);
    let root = graph.root();
    let mut b = Builder::at_end(&mut graph, root);
    let y = b.op(ctx.symbol(operator), &[x], types::TENSOR);
    let node = b.defining_node(y).unwrap();
    if let Some((name, value)) = inner {
        b.set_attribute(node, name, value);
    }
    graph.add_result(root, y);
    Arc::new(graph)
}

#[test]
fn attributes_hold_graphs() {
    let ctx = Arc::new(Context::new());
    let sym = |s: &str| ctx.symbol(s);
    // Graphs in graphs, with the same numbers inside and outside.
    let deepest = graph_of(&ctx, "a::relu", None);
    let within = AttributeValue::Graphs(vec![deepest.clone(), graph_of(&ctx, "a::tanh", None)]);
    let middle = graph_of(&ctx, "a::both", Some((sym("cases"), within)));
    let forked = graph_of(
        &ctx,
        "a::deep",
        Some((sym("body"), AttributeValue::Graph(middle.clone()))),
    );
    let mut graph = Graph::new(ctx.clone());
    let x = graph.add_input(types::TENSOR);
    let root = graph.root();
    let mut b = Builder::at_end(&mut graph, root);
    for (kind, attributes) in [
        ("a::one", vec![("body", AttributeValue::Graph(middle.clone()))]),
        (
            "prim::fork",
            vec![
                ("Subgraph", AttributeValue::Graph(forked)),
                ("other", AttributeValue::Graph(deepest.clone())),
            ],
        ),
        (
            "a::many",
            vec![
                ("n", Constant::Int(1).into()),
                ("cases", AttributeValue::Graphs(vec![middle, deepest.clone()])),
            ],
        ),
        (
            "a::list",
            vec![
                ("cases", AttributeValue::Graphs(vec![deepest.clone()])),
                ("last", AttributeValue::Graph(deepest)),
            ],
        ),
        (
            "a::none",
            vec![
                ("cases", AttributeValue::Graphs(Vec::new())),
                ("types", AttributeValue::Types(Vec::new())),
            ],
        ),
    ] {
        let node = b.node(sym(kind), &[x], &[types::TENSOR]);
        for (name, value) in attributes {
            b.set_attribute(node, sym(name), value);
        }
    }
    let text = round_trip(&module_of(&ctx, schema(Vec::new()), graph.clone()));
    assert!(text.contains("a::many[n=1, cases=[graph<3>, graph<4>]]"), "{text}");
    assert!(text.contains("a::none[cases=graphs[], types=types[]]"), "{text}");
    // In PyTorch's form they are only mentioned.
    let plain = print_graph(&graph);
    assert!(
        plain.contains("a::one[body=<Graph>]") && plain.contains("cases=[<Graphs>]"),
        "{plain}"
    );
    assert_eq!(print_graph(&parse_graph(&ctx, &plain).unwrap().graph), plain);
}

#[test]
fn graphs_that_are_not_there_are_told() {
    for (text, code) in [
        ("graph():\n   = a::a[b=graph<0>]()\n  return ()\n", "unknown-reference"),
        (
            "graph():\n   = a::a[b=[graph<0>, graph<1>]]()\n  return ()\nwith graph<0> = graph():\n  return ()\n",
            "unknown-reference",
        ),
        (
            "graph():\n  return ()\nwith graph<0> = graph():\n  return ()\n",
            "unknown-subgraph",
        ),
        ("graph():\n   = a::a[b=graph<x>]()\n  return ()\n", "unexpected-token"),
        (
            "graph():\n   = a::a[b=[graph<0>, 1]]()\n  return ()\n",
            "unexpected-token",
        ),
    ] {
        let error = parse_graph(&Arc::new(Context::new()), text).unwrap_err();
        assert_eq!(error.diagnostics[0].code, code, "{text}");
    }
}

#[test]
fn nans_keep_their_bits() {
    let ctx = Arc::new(Context::new());
    let mut graph = Graph::new(ctx.clone());
    let root = graph.root();
    let mut b = Builder::at_end(&mut graph, root);
    let nan = |bits: u64| f64::from_bits(bits);
    let all = [
        f64::NAN,
        -f64::NAN,
        nan(0x7ff8_0000_0000_0001),
        nan(0x7ff0_0000_0000_0001),
        nan(0xffff_ffff_ffff_ffff),
    ];
    for x in all {
        b.constant(x);
        b.constant(Constant::Complex(num_complex::Complex64::new(1.0, x)));
        b.constant(Constant::Complex(num_complex::Complex64::new(x, x)));
    }
    b.constant(Constant::list(types::FLOAT, all.map(Constant::Float).to_vec()));
    let text = round_trip(&module_of(&ctx, schema(Vec::new()), graph));
    assert!(
        text.contains("value=nan]") && text.contains("value=-nan(0xfffffffffffff)]"),
        "{text}"
    );
    for bad in ["nan(0x0)", "nan(0x10000000000000)", "nan(0x)", "nan(5)"] {
        let text = format!("graph():\n  %1 : float = prim::Constant[value={bad}]()\n  return ()\n");
        assert!(parse_graph(&ctx, &text).is_err(), "{bad}");
    }
}

#[test]
fn schemas_keep_what_they_leave_open() {
    let ctx = Arc::new(Context::new());
    let ints = ctx.list_of(types::INT);
    let mut sizes = Argument::plain(ctx.symbol("sizes"), ints);
    sizes.broadcast = Some(2);
    sizes.default = Some(Constant::ints([1, 2]));
    for (is_vararg, is_varret, wanted) in [
        (true, false, "(sizes : int[] broadcast 2 = [1, 2], ...) -> ()"),
        (false, true, "(sizes : int[] broadcast 2 = [1, 2]) -> (...)"),
    ] {
        let schema = FunctionSchema {
            is_vararg,
            is_varret,
            ..schema(vec![sizes.clone()])
        };
        let text = round_trip(&module_of(&ctx, schema, Graph::new(ctx.clone())));
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn nodes_know_their_place_in_the_text() {
    let text = "graph(%x : Tensor,\n      %c : bool):\n  %y : Tensor = prim::If(%c)\n    block0():\n      %z : Tensor = é::a(%x), scope: s\n      -> (%z)\n    block1():\n      -> (%x)\n  %later : Future[Tensor] = prim::fork_0(%x) # a.py:7:3\n  %é : Tensor = b::b(%y)\n  return (%é)\nwith prim::fork_0 = graph(%a : Tensor):\n  %b : Tensor = c::c(%a)\n  return (%b)\n";
    let ctx = Arc::new(Context::new());
    let options = ParseOptions {
        places: true,
        ..ParseOptions::default()
    };
    let graph = parse_graph_with(&ctx, text, options).unwrap().graph;
    let places = |graph: &Graph| -> Vec<String> {
        let nodes = graph.all_nodes();
        let ranges = nodes.iter().filter_map(|n| graph.source_range(*n));
        ranges.map(|r| r.display(&ctx).to_string()).collect()
    };
    assert_eq!(
        places(&graph),
        ["<text>:3:17", "<text>:5:21", "a.py:7:3", "<text>:10:17"]
    );
    let fork = graph.all_nodes()[2];
    let inner = graph
        .attribute(fork, symbols::ATTR_SUBGRAPH)
        .and_then(AttributeValue::as_graph);
    assert_eq!(places(inner.unwrap()), ["<text>:13:17"]);
    assert_eq!(print_graph(&graph), text, "it is for messages only");
}

#[test]
fn nests_may_be_deep() {
    // The graph itself is a block too.
    const DEPTH: usize = MAX_NESTING - 1;
    let open = |i: usize| format!("%v{i} : Tensor = prim::If(%c)\nblock0():\n");
    let close = |i: usize| match i {
        0 => "-> (%v0)\n".to_owned(),
        _ => format!("block1():\n-> (%x)\n-> (%v{i})\n"),
    };
    let opened: String = (0..DEPTH).map(open).collect();
    let closed: String = (1..DEPTH).rev().map(close).collect();
    let text = format!(
        "graph(%x : Tensor, %c : bool):\n{opened}%r : Tensor = a::relu(%x)\n-> (%r)\n{closed}block1():\n-> (%x)\nreturn (%v0)\n"
    );
    // Deep nesting needs no deep stack.
    let work = move || {
        let ctx = Arc::new(Context::new());
        let options = ParseOptions {
            verify: true,
            places: true,
            ..ParseOptions::default()
        };
        let parsed = parse_graph_with(&ctx, &text, options)
            .unwrap_or_else(|e| panic!("{}", render("deep.ir", &text, &e.diagnostics[..1], false)));
        let printed = print_graph(&parsed.graph);
        assert!(printed.len() < 700 * 5 * DEPTH, "lines get no longer without bound");
        let again = parse_graph(&ctx, &printed).unwrap();
        assert_eq!(print_graph(&again.graph), printed);
        assert!(frazil_syntax::print_dot([("deep", &parsed.graph)]).len() < 1000 * 10 * DEPTH);
        let module = module_of(&ctx, schema(Vec::new()), parsed.graph.clone());
        equal_modules(&module, &module.clone()).unwrap();
    };
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}

/// Values of all kinds at places of all types are read back with their types.
#[test]
fn values_keep_their_kinds() {
    let ctx = Arc::new(Context::new());
    let optional = |ty| ctx.optional_of(ty);
    let device = frazil_ir::Device::CPU;
    let scalars = [
        Constant::None,
        Constant::Bool(true),
        Constant::Bool(false),
        Constant::Int(0),
        Constant::Int(1),
        Constant::Int(2),
        Constant::Int(i64::MIN),
        Constant::Float(1.0),
        Constant::Float(-0.0),
        Constant::Float(1e300),
        Constant::Float(f64::INFINITY),
        Constant::Float(f64::from_bits(0xfff8_0000_0000_0123)),
        Constant::Complex(num_complex::Complex64::new(-0.0, f64::NEG_INFINITY)),
        Constant::str("cpu"),
        Constant::str("a\0\u{7f}\n\"\\\u{10ffff}"),
        Constant::Device(device),
    ];
    let types = [
        types::BOOL,
        types::INT,
        types::FLOAT,
        types::COMPLEX,
        types::STR,
        types::DEVICE,
        types::NUMBER,
        types::ANY,
        types::NONE,
        types::TENSOR,
        ctx.type_of_kind(TypeKind::Union(ctx.type_list(&[types::INT, types::FLOAT, types::BOOL]))),
    ];
    let class = ctx.symbol("__torch__.Kinds");
    let mut def = ClassDef::new(class, ClassKind::Module);
    let mut slots = Vec::new();
    let mut add = |ty: TypeId, value: Constant| {
        def.add_attribute(ctx.symbol(&format!("a{}", slots.len())), ty, Default::default());
        slots.push(value);
    };
    for ty in types {
        for value in &scalars {
            add(ty, value.clone());
            add(optional(ty), value.clone());
            // Containers with and without the types of their places.
            let list = Constant::list(ty, vec![value.clone(), Constant::Int(1)]);
            add(ctx.list_of(ty), list.clone());
            add(optional(ctx.list_of(types::FLOAT)), list.clone());
            add(ctx.list_of(types::ANY), list);
            let pair = ctx.tuple_of(&[ty, optional(ty)]);
            let tuple = Constant::Tuple(Arc::new(TupleConstant {
                ty: pair,
                items: vec![value.clone(), Constant::Int(1)],
            }));
            add(pair, tuple.clone());
            add(ctx.tuple_of(&[types::FLOAT, types::BOOL]), tuple);
            let dict = Constant::Dict(Arc::new(DictConstant {
                key: ty,
                value: optional(ty),
                entries: vec![(value.clone(), Constant::Int(0)), (Constant::str("cpu"), value.clone())],
            }));
            add(ctx.dict_of(ty, optional(ty)), dict.clone());
            add(ctx.dict_of(types::BOOL, types::BOOL), dict);
        }
        add(ctx.list_of(ty), Constant::list(ty, Vec::new()));
        add(ctx.list_of(types::FLOAT), Constant::list(ty, Vec::new()));
        // One list at two places with different types.
        let shared = Constant::list(ty, vec![Constant::Int(1), Constant::Int(0)]);
        add(ctx.list_of(ty), shared.clone());
        add(ctx.list_of(types::BOOL), shared);
    }
    let mut unit = CompilationUnit::default();
    unit.classes.insert(class, def);
    round_trip(&Module::new(ctx.clone(), unit, class, slots));
}
