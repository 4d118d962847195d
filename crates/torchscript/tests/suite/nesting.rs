//! Whatever is nested as deeply as readers accept goes through archives on a small stack; what is nested more deeply is not written.

use crate::common::catalogue;

use std::sync::Arc;

use frazil_ir::nesting::MAX_NESTING;
use frazil_ir::schema::{Argument, Catalogue, FunctionSchema};
use frazil_ir::{
    Builder, ClassDef, ClassKind, CompilationUnit, Constant, Context, DictConstant, Function, Graph, Module, Object,
    TypeId, symbols, types,
};
use frazil_torchscript::{LoadOptions, SaveOptions, load_bytes, save_bytes};

/// Carries out `work` on the smallest stack that callers have to provide.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(work).unwrap().join().unwrap();
}

/// A module with one attribute.
fn holding(ctx: &Arc<Context>, ty: TypeId, value: Constant) -> Module {
    let class = ctx.symbol("__torch__.Net");
    let mut def = ClassDef::new(class, ClassKind::Module);
    def.add_attribute(ctx.symbol("x"), ty, Default::default());
    let mut unit = CompilationUnit::default();
    unit.classes.insert(class, def);
    Module::new(Arc::clone(ctx), unit, class, vec![value])
}

/// A module whose method gives what `build` makes of a tensor.
fn running(ctx: &Arc<Context>, build: impl FnOnce(&mut Graph) -> frazil_ir::ValueId) -> Module {
    let mut module = holding(ctx, types::INT, Constant::Int(1));
    let class = ctx.class("__torch__.Net");
    let mut graph = Graph::new(Arc::clone(ctx));
    graph.add_input(class);
    graph.add_input(types::TENSOR);
    let result = build(&mut graph);
    let ty = graph.ty(result);
    let root = graph.root();
    graph.add_result(root, result);
    let arguments = vec![
        Argument::plain(ctx.symbol("self"), class),
        Argument::plain(ctx.symbol("t"), types::TENSOR),
    ];
    let schema = FunctionSchema {
        name: symbols::FORWARD,
        overload: symbols::EMPTY,
        arguments,
        returns: vec![Argument::plain(symbols::EMPTY, ty)],
        is_vararg: false,
        is_varret: false,
    };
    let name = ctx.symbol("__torch__.Net.forward");
    let id = module.unit.add_function(Function { name, schema, graph });
    let class = ctx.symbol("__torch__.Net");
    module.unit.classes[&class].methods.insert(symbols::FORWARD, id);
    module
}

/// The module after an archive, or why there is none.
fn again(module: &Module, catalogue: &Catalogue) -> Result<Module, String> {
    let bytes = save_bytes(module, catalogue, &SaveOptions::default()).map_err(|e| e.to_string())?;
    let options = LoadOptions::new(module.ctx(), catalogue);
    let back = load_bytes(bytes.clone(), &options).unwrap_or_else(|e| panic!("written and not read: {e}"));
    let twice = save_bytes(&back, catalogue, &SaveOptions::default()).unwrap();
    assert!(twice == bytes, "saving again gives another archive");
    Ok(back)
}

/// A type of `levels` levels.
fn deep_type(ctx: &Context, levels: usize) -> TypeId {
    (1..levels).fold(types::TENSOR, |ty, level| match level % 3 {
        0 => ctx.list_of(ty),
        1 => ctx.tuple_of(&[ty, types::INT]),
        _ => ctx.dict_of(types::STR, ty),
    })
}

/// A value of `levels` levels.
fn deep_value(ctx: &Context, levels: usize) -> Constant {
    (1..levels).fold(Constant::Int(1), |inner, level| match level % 3 {
        0 => Constant::list(inner.ty(ctx), vec![inner]),
        1 => Constant::tuple(ctx, vec![inner, Constant::None]),
        _ => Constant::Dict(Arc::new(DictConstant {
            key: types::STR,
            value: inner.ty(ctx),
            entries: vec![(Constant::str("k"), inner)],
        })),
    })
}

/// Branches in branches.
fn branches(graph: &mut Graph, levels: usize) -> frazil_ir::ValueId {
    let x = graph.inputs()[1];
    let root = graph.root();
    let condition = Builder::at_end(graph, root).constant(true);
    let mut block = root;
    let mut outputs = Vec::new();
    for _ in 1..levels {
        let node = graph.create_node(symbols::PRIM_IF);
        graph.add_operand(node, condition);
        graph.append(block, node);
        outputs.push(graph.add_output(node, types::TENSOR));
        if outputs.len() > 1 {
            graph.add_result(block, outputs[outputs.len() - 1]);
        }
        block = graph.add_block(node);
        let other = graph.add_block(node);
        graph.add_result(other, x);
    }
    graph.add_result(block, x);
    outputs[0]
}

/// Operators on what others give.
fn chain(graph: &mut Graph, levels: usize, operator: &str) -> frazil_ir::ValueId {
    let (x, root) = (graph.inputs()[1], graph.root());
    let name = graph.ctx().symbol(operator);
    let mut builder = Builder::at_end(graph, root);
    (0..levels).fold(x, |value, _| match operator {
        "aten::relu" => builder.op(name, &[value], types::TENSOR),
        _ => builder.op(name, &[value, x], types::TENSOR),
    })
}

/// Objects that hold one another.
fn objects(ctx: &Arc<Context>, levels: usize) -> Module {
    let mut module = holding(ctx, ctx.optional_of(ctx.class("__torch__.Net")), Constant::None);
    let class = ctx.symbol("__torch__.Net");
    let mut last = module.root;
    for _ in 1..levels {
        let next = module.add_object(Object {
            class,
            slots: vec![Constant::None],
        });
        module.object_mut(last).slots = vec![Constant::Object(next)];
        last = next;
    }
    module
}

#[test]
fn what_is_as_deep_as_allowed_goes_through_archives() {
    on_small_stack(|| {
        let (ctx, catalogue) = catalogue();
        let deep = deep_type(&ctx, MAX_NESTING);
        let value = deep_value(&ctx, MAX_NESTING);
        for module in [
            holding(&ctx, ctx.optional_of(deep_type(&ctx, MAX_NESTING - 1)), Constant::None),
            holding(
                &ctx,
                ctx.list_of(deep_type(&ctx, MAX_NESTING - 1)),
                Constant::list(deep_type(&ctx, MAX_NESTING - 1), Vec::new()),
            ),
            holding(&ctx, value.ty(&ctx), value.clone()),
            holding(&ctx, types::ANY, value.clone()),
            running(&ctx, |graph| {
                let root = graph.root();
                Builder::at_end(graph, root).op(symbols::PRIM_UNINITIALIZED, &[], deep)
            }),
            running(&ctx, |graph| {
                let root = graph.root();
                Builder::at_end(graph, root).constant(value.clone())
            }),
            running(&ctx, |graph| branches(graph, MAX_NESTING)),
            running(&ctx, |graph| chain(graph, 3 * MAX_NESTING, "aten::relu")),
            running(&ctx, |graph| chain(graph, 3 * MAX_NESTING, "aten::matmul")),
            objects(&ctx, MAX_NESTING),
        ] {
            let back = again(&module, &catalogue).unwrap();
            assert_eq!(back.object_count(), module.object_count());
            for ((_, old), (_, new)) in module.objects().zip(back.objects()) {
                assert!(old.slots.iter().zip(&new.slots).all(|(old, new)| old.same(new)));
            }
        }
    });
}

#[test]
fn one_level_more_is_not_written() {
    on_small_stack(|| {
        let (ctx, catalogue) = catalogue();
        let value = deep_value(&ctx, MAX_NESTING + 1);
        for (module, expected) in [
            (
                holding(&ctx, deep_type(&ctx, MAX_NESTING + 1), Constant::None),
                "types are nested",
            ),
            (holding(&ctx, types::ANY, value.clone()), "values are nested"),
            (
                running(&ctx, |graph| branches(graph, MAX_NESTING + 1)),
                "blocks are nested",
            ),
            (objects(&ctx, MAX_NESTING + 2), "nested more than 1000 levels"),
            // Each part is as deep as allowed, but not the whole.
            (objects(&ctx, MAX_NESTING + 1), "nested more than 1000 levels"),
        ] {
            let refused = again(&module, &catalogue).err();
            assert!(
                refused.as_ref().is_some_and(|e| e.contains(expected)),
                "{expected}: {refused:?}"
            );
        }
    });
}
