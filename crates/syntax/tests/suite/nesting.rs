//! Nesting up to the limit passes through text on a small stack, for each kind of nesting; readers and writers refuse more.

use frazil_ir::nesting::{MAX_GRAPHS, MAX_NESTING};
use frazil_ir::schema::FunctionSchema;
use frazil_ir::{
    AttributeValue, Builder, ClassDef, ClassKind, CompilationUnit, Constant, Context, DictConstant, Function, Graph,
    Module, SymbolId, TypeId, TypeKind, symbols, types,
};
use frazil_syntax::{
    ModulePrintOptions, NoTensors, WriteError, equal_modules, parse_graph, parse_module, print_graph,
    print_module_to_string, read_module, write_module,
};
use std::sync::Arc;

/// Runs `work` on the smallest stack that callers must provide.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(work).unwrap().join().unwrap();
}

/// Returns a module with one attribute.
fn holding(ctx: &Arc<Context>, ty: TypeId, value: Constant) -> Module {
    let class = ctx.symbol("__torch__.Net");
    let mut def = ClassDef::new(class, ClassKind::Module);
    def.add_attribute(ctx.symbol("x"), ty, Default::default());
    let mut unit = CompilationUnit::default();
    unit.classes.insert(class, def);
    Module::new(ctx.clone(), unit, class, vec![value])
}

/// Returns a module with one function.
fn running(ctx: &Arc<Context>, graph: Graph) -> Module {
    let mut module = holding(ctx, types::INT, Constant::Int(1));
    let name: SymbolId = ctx.symbol("f");
    let schema = FunctionSchema {
        name,
        overload: symbols::EMPTY,
        arguments: Vec::new(),
        returns: Vec::new(),
        is_vararg: false,
        is_varret: false,
    };
    module.unit.add_function(Function { name, schema, graph });
    module
}

/// Adds one level around a type, of each kind in turn.
fn wrapped(ctx: &Context, ty: TypeId, level: usize) -> TypeId {
    match level % 6 {
        0 => ctx.list_of(ty),
        1 => ctx.tuple_of(&[ty, types::INT]),
        2 => ctx.dict_of(types::STR, ty),
        3 => ctx.type_of_kind(TypeKind::Future(ty)),
        4 => ctx.type_of_kind(TypeKind::Union(ctx.type_list(&[ty, types::STR]))),
        _ => ctx.type_of_kind(TypeKind::NamedTuple(
            ctx.symbol(&format!("__torch__.T{level}")),
            ctx.symbol_list(&[ctx.symbol("a")]),
            ctx.type_list(&[ty]),
        )),
    }
}

/// Returns a type of `levels` levels.
fn deep_type(ctx: &Context, levels: usize) -> TypeId {
    (1..levels).fold(types::TENSOR, |ty, level| wrapped(ctx, ty, level))
}

/// Returns a value of `levels` levels. With `typed`, each level states the whole type of its content.
fn deep_value(ctx: &Context, levels: usize, typed: bool) -> Constant {
    (1..levels).fold(Constant::Int(1), |inner, level| {
        let ty = if typed { inner.ty(ctx) } else { types::ANY };
        match level % 3 {
            0 => Constant::list(ty, vec![inner]),
            1 => Constant::tuple(ctx, vec![inner, Constant::None]),
            _ => Constant::Dict(Arc::new(DictConstant {
                key: types::STR,
                value: ty,
                entries: vec![(Constant::str("k"), inner)],
            })),
        }
    })
}

/// Returns a graph with `levels` levels of blocks.
fn deep_graph(ctx: &Arc<Context>, levels: usize) -> Graph {
    let mut graph = Graph::new(ctx.clone());
    let root = graph.root();
    let condition = Builder::at_end(&mut graph, root).constant(true);
    let mut block = root;
    for _ in 1..levels {
        let node = graph.create_node(symbols::PRIM_IF);
        graph.add_operand(node, condition);
        graph.append(block, node);
        block = graph.add_block(node);
        graph.add_block(node);
    }
    graph
}

/// Returns `levels` graphs in attributes of each other's nodes.
fn deep_subgraphs(ctx: &Arc<Context>, levels: usize) -> Graph {
    (1..levels).fold(Graph::new(ctx.clone()), |inner, _| {
        let mut graph = Graph::new(ctx.clone());
        let root = graph.root();
        let mut builder = Builder::at_end(&mut graph, root);
        let output = builder.op(ctx.symbol("foo::group"), &[], types::ANY);
        let node = builder.defining_node(output).unwrap();
        builder.set_attribute(node, symbols::ATTR_SUBGRAPH, AttributeValue::Graph(Arc::new(inner)));
        graph
    })
}

/// Modules that exceed the limits by `more` levels, with the kind of nesting.
fn modules(ctx: &Arc<Context>, more: usize) -> Vec<(&'static str, Module)> {
    let levels = MAX_NESTING + more;
    let ty = deep_type(ctx, levels);
    let typed = deep_value(ctx, levels, true);
    vec![
        ("types", holding(ctx, ty, Constant::None)),
        ("values", holding(ctx, types::ANY, deep_value(ctx, levels, false))),
        ("types", holding(ctx, typed.ty(ctx), typed.clone())),
        ("values", holding(ctx, types::ANY, typed)),
        ("blocks", running(ctx, deep_graph(ctx, levels))),
        ("graphs", running(ctx, deep_subgraphs(ctx, MAX_GRAPHS + more))),
    ]
}

#[test]
fn what_is_as_deep_as_allowed_goes_through_text() {
    on_small_stack(|| {
        let ctx = Arc::new(Context::new());
        for (what, module) in modules(&ctx, 0) {
            let text = print_module_to_string(&module, ModulePrintOptions::default());
            let other = Arc::new(Context::new());
            let again = parse_module(&other, &text, &NoTensors)
                .unwrap_or_else(|e| panic!("{what}: {:?}", e.diagnostics.first()));
            equal_modules(&module, &again).unwrap();
            assert_eq!(print_module_to_string(&again, ModulePrintOptions::default()), text);
            for (_, function) in again.unit.functions() {
                function.graph.verify(None).unwrap();
                let text = print_graph(&function.graph);
                assert_eq!(print_graph(&parse_graph(&other, &text).unwrap().graph), text);
            }
        }
    });
}

#[test]
fn one_level_more_is_neither_written_nor_read() {
    on_small_stack(|| {
        let ctx = Arc::new(Context::new());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep.ir");
        for (what, module) in modules(&ctx, 1) {
            let refused = write_module(&module, &path).unwrap_err();
            assert!(
                matches!(&refused, WriteError::Nesting { source, .. } if source.what.starts_with(what)),
                "{refused}"
            );
            assert!(!path.exists());
            let text = print_module_to_string(&module, ModulePrintOptions::default());
            let error = parse_module(&Arc::new(Context::new()), &text, &NoTensors).unwrap_err();
            assert_eq!(error.diagnostics[0].code, "nesting-too-deep", "{what}");
        }
        for (_, module) in modules(&ctx, 0) {
            write_module(&module, &path).unwrap();
            let read = read_module(&Arc::new(Context::new()), &path).unwrap();
            equal_modules(&module, &read).unwrap();
        }
    });
}

/// Each list contains the next one twice, so that the number of paths doubles with each level.
#[test]
fn sharing_is_bounded_and_kept() {
    let ctx = Arc::new(Context::new());
    let twice = |inner: Constant| Constant::list(types::ANY, vec![inner.clone(), inner]);
    let sharing = |levels: usize| {
        let shared = (0..levels).fold(Constant::ints([]), |inner, _| twice(inner));
        holding(&ctx, types::ANY, shared)
    };
    let text = |module: &Module| print_module_to_string(module, ModulePrintOptions::default());
    let parse = |text: &str| parse_module(&Arc::new(Context::new()), text, &NoTensors);
    let module = sharing(22);
    equal_modules(&module, &parse(&text(&module)).unwrap()).unwrap();
    let module = sharing(200);
    assert_eq!(
        parse(&text(&module)).unwrap_err().diagnostics[0].code,
        "too-many-values"
    );
    let path = tempfile::tempdir().unwrap().path().join("shared.ir");
    assert!(matches!(write_module(&module, &path), Err(WriteError::Nesting { .. })));
}
