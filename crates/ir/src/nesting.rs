//! The limits on nesting, and their checks.
//!
//! Types, values, blocks and source come from untrusted input, and readers, writers and passes recurse over most of them. [`MAX_NESTING`] bounds the depth, the same for
//! all readers and writers: a reader refuses deeper input, and a writer refuses what the readers would refuse. [`with_stack`] provides the stack for that depth, so the
//! stack of the caller's thread may be small.

pub use crate::stack::{MAX_NESTING, with_stack};
use crate::{AttributeValue, BlockId, Constant, Context, Graph, Module, NodeId, TypeId, types};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum nesting of graphs in attributes of nodes, such as the bodies of forks.
pub const MAX_GRAPHS: usize = 64;

/// Maximum number of values nested in a value. A shared value counts once for each reference, since a small input can share containers so often that
/// traversing it would not end.
pub const MAX_VALUES: u64 = 1 << 24;

/// The error for data that is nested more deeply, or shared more often, than readers accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct TooDeep {
    /// The function, class or attribute with the data.
    pub place: String,
    /// The kind of nested data (value, type or block), and the limit.
    pub what: &'static str,
}

pub(crate) const BLOCKS: &str = "blocks are nested more than 1000 levels deep";
const TYPES: &str = "types are nested more than 1000 levels deep";
const GRAPHS: &str = "graphs are nested more than 64 levels deep";
const _: () = assert!(
    MAX_NESTING == 1000 && MAX_GRAPHS == 64 && MAX_VALUES == 1 << 24,
    "the messages state them"
);

/// Nesting depth and size of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of levels. Objects and members of enumerations are one level, whatever they contain.
    pub levels: usize,
    /// Number of nested values, the value itself included. A shared value counts once for each reference.
    pub values: u64,
}

impl Extent {
    /// The extent of a scalar.
    pub const SCALAR: Extent = Extent { levels: 1, values: 1 };

    /// Returns the extent of `constant`.
    pub fn of(constant: &Constant) -> Extent {
        // Containers are shared, and there may be exponentially many paths to one.
        Extent::of_shared(constant, &mut HashMap::new())
    }

    fn of_shared(constant: &Constant, known: &mut HashMap<usize, Extent>) -> Extent {
        let address = match constant {
            Constant::List(list) => Arc::as_ptr(list).addr(),
            Constant::Tuple(tuple) => Arc::as_ptr(tuple).addr(),
            Constant::Dict(dict) => Arc::as_ptr(dict).addr(),
            _ => return Extent::SCALAR,
        };
        if let Some(extent) = known.get(&address) {
            return *extent;
        }
        let entries = match constant {
            Constant::Dict(dict) => dict.entries.as_slice(),
            _ => &[],
        };
        let items = entries.iter().flat_map(|(key, value)| [key, value]);
        let items = items.chain(constant.items().unwrap_or_default());
        let extent = items.fold(Extent::SCALAR, |extent, item| {
            let inner = with_stack(|| Extent::of_shared(item, known));
            Extent {
                levels: extent.levels.max(inner.levels + 1),
                values: extent.values.saturating_add(inner.values),
            }
        });
        known.insert(address, extent);
        extent
    }

    /// Returns a description of the exceeded limit, in the wording of the readers' error messages; `None` if no limit is exceeded.
    pub fn excess(self) -> Option<&'static str> {
        if self.levels > MAX_NESTING {
            Some("values are nested more than 1000 levels deep")
        } else if self.values > MAX_VALUES {
            Some("shared values are held at more than 2^24 places")
        } else {
            None
        }
    }
}

/// Returns the nesting depth of the blocks of `graph` in levels; 1 if no node has blocks.
pub fn of_blocks(graph: &Graph) -> usize {
    let mut deepest = 0;
    let mut pending: Vec<(BlockId, usize)> = vec![(graph.root(), 1)];
    while let Some((block, depth)) = pending.pop() {
        deepest = deepest.max(depth);
        for node in graph.nodes(block) {
            pending.extend(graph.node_blocks(node).iter().map(|inner| (*inner, depth + 1)));
        }
    }
    deepest
}

/// Checks that nothing in `module` is nested more deeply than readers accept.
///
/// # Errors
/// The first place that is nested too deeply.
pub fn check_module(module: &Module) -> Result<(), TooDeep> {
    let ctx = module.ctx();
    let value = |place: &dyn Fn() -> String, constant: &Constant| match Extent::of(constant).excess() {
        Some(what) => Err(TooDeep { place: place(), what }),
        None => ty(ctx, place, constant_type(constant)),
    };
    for class in module.unit.classes.values() {
        for (name, attribute) in &class.attributes {
            let place = || format!("attribute {} of {}", ctx.name(*name), ctx.name(class.name));
            ty(ctx, &place, attribute.ty)?;
        }
        for (name, constant) in &class.constants {
            value(
                &|| format!("constant {} of {}", ctx.name(*name), ctx.name(class.name)),
                constant,
            )?;
        }
    }
    for (_, object) in module.objects() {
        let class = module.unit.class(object.class);
        for (i, slot) in object.slots.iter().enumerate() {
            let place = || {
                let name = class
                    .and_then(|class| class.attributes.get_index(i))
                    .map(|(name, _)| *name);
                let name = name.map_or("?", |name| ctx.name(name));
                format!("attribute {name} of an object of {}", ctx.name(object.class))
            };
            value(&place, slot)?;
        }
    }
    for (id, state) in module.states() {
        value(
            &|| format!("state of an object of {}", ctx.name(module.object(id).class)),
            state,
        )?;
    }
    for (_, function) in module.unit.functions() {
        check_graph(&function.graph, ctx.name(function.name))?;
    }
    Ok(())
}

/// Checks that nothing in `graph`, and in the graphs in attributes of its nodes, is nested more deeply than readers accept. `place` is its name in the error.
///
/// # Errors
/// If a type, a value or a block is nested too deeply.
pub fn check_graph(graph: &Graph, place: &str) -> Result<(), TooDeep> {
    let mut pending = vec![(graph, 1)];
    while let Some((graph, depth)) = pending.pop() {
        let is_deep = |ty: TypeId| graph.ctx().type_nesting(ty) > MAX_NESTING;
        let what = if depth > MAX_GRAPHS {
            Some(GRAPHS)
        } else if graph.inputs().iter().any(|&input| is_deep(graph.ty(input))) {
            Some(TYPES)
        } else if of_blocks(graph) > MAX_NESTING {
            Some(BLOCKS)
        } else {
            graph.all_nodes().into_iter().find_map(|node| in_node(graph, node))
        };
        if let Some(what) = what {
            let place = place.to_owned();
            return Err(TooDeep { place, what });
        }
        for node in graph.all_nodes() {
            for attribute in graph.attributes(node) {
                match &attribute.value {
                    AttributeValue::Graph(inner) => pending.push((inner, depth + 1)),
                    AttributeValue::Graphs(inner) => pending.extend(inner.iter().map(|g| (&**g, depth + 1))),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// Returns a description of the type or value of `node` that is nested too deeply, if any. The nodes of its blocks are
/// not checked.
pub(crate) fn in_node(graph: &Graph, node: NodeId) -> Option<&'static str> {
    let is_deep = |ty: TypeId| graph.ctx().type_nesting(ty) > MAX_NESTING;
    let parameters = graph
        .node_blocks(node)
        .iter()
        .flat_map(|block| graph.parameters(*block));
    let mut values = graph.node_outputs(node).iter().chain(parameters);
    if values.any(|&value| is_deep(graph.ty(value))) {
        return Some(TYPES);
    }
    graph
        .attributes(node)
        .iter()
        .find_map(|attribute| match &attribute.value {
            AttributeValue::Constant(value) => Extent::of(value).excess(),
            AttributeValue::Type(ty) => is_deep(*ty).then_some(TYPES),
            AttributeValue::Types(types) => types.iter().any(|ty| is_deep(*ty)).then_some(TYPES),
            _ => None,
        })
}

/// Returns the type that is printed with a container constant.
fn constant_type(constant: &Constant) -> Option<TypeId> {
    match constant {
        Constant::List(list) => Some(list.element),
        Constant::Tuple(tuple) => Some(tuple.ty),
        Constant::Dict(dict) => Some(dict.value),
        _ => None,
    }
}

fn ty(ctx: &Context, place: &dyn Fn() -> String, ty: impl Into<Option<TypeId>>) -> Result<(), TooDeep> {
    match ctx.type_nesting(ty.into().unwrap_or(types::NONE)) > MAX_NESTING {
        true => Err(TooDeep {
            place: place(),
            what: TYPES,
        }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, DictConstant, symbols};

    /// Returns `levels` nested lists.
    fn lists(levels: usize) -> Constant {
        let empty = Constant::list(types::ANY, Vec::new());
        (1..levels).fold(empty, |inner, _| Constant::list(types::ANY, vec![inner]))
    }

    fn levels(constant: &Constant) -> usize {
        Extent::of(constant).levels
    }

    /// Runs `work` on the smallest stack that callers must provide.
    fn on_small_stack(work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        thread.spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn levels_of_types_and_values_are_counted() {
        let ctx = Context::new();
        assert_eq!(ctx.type_nesting(types::INT), 1);
        let pair = ctx.tuple_of(&[types::INT, ctx.optional_of(types::STR)]);
        assert_eq!(ctx.type_nesting(ctx.dict_of(types::STR, pair)), 4);
        assert_eq!(levels(&Constant::Int(1)), 1);
        assert_eq!(levels(&Constant::ints([1])), 2);
        assert_eq!(levels(&lists(5)), 5);
        let entries = vec![(Constant::Int(1), lists(3))];
        let (key, value) = (types::INT, types::ANY);
        let dict = DictConstant { key, value, entries };
        assert_eq!(levels(&Constant::Dict(Arc::new(dict))), 4);
        // Counting terminates quickly with any number of paths to the innermost list.
        let twice = |inner: Constant| Constant::list(types::ANY, vec![inner.clone(), inner]);
        let shared = Extent::of(&(0..60).fold(lists(1), |inner, _| twice(inner)));
        assert_eq!((shared.levels, shared.values), (61, (1 << 61) - 1));
        assert!(shared.excess().is_some() && Extent::of(&lists(MAX_NESTING)).excess().is_none());
    }

    #[test]
    fn what_is_far_too_deep_is_dropped_compared_and_shown_on_a_small_stack() {
        on_small_stack(|| {
            let (a, b) = (lists(200_000), lists(200_000));
            assert!(a.same(&b));
            assert_eq!(levels(&a), 200_000);
            drop((a, b));
            let ctx = Context::new();
            let deep = (0..50_000).fold(types::INT, |ty, _| ctx.list_of(ty));
            let pair = (0..50_000).fold(types::INT, |ty, _| ctx.tuple_of(&[ty]));
            assert_eq!(ctx.show_type(deep).to_string().len(), "int".len() + 2 * 50_000);
            assert!(!types::is_subtype(&ctx, deep, pair) && types::unify(&ctx, pair, deep).is_none());
        });
    }

    #[test]
    fn graphs_that_are_too_deep_are_not_valid() {
        let ctx = Arc::new(Context::new());
        let messages = |blocks: usize, ty: TypeId, value: Constant| {
            let mut graph = Graph::new(ctx.clone());
            let root = graph.root();
            let mut builder = Builder::at_end(&mut graph, root);
            let condition = builder.constant(true);
            builder.constant(value);
            builder.op(ctx.symbol("a::b"), &[], ty);
            let mut block = root;
            for _ in 1..blocks {
                let node = graph.create_node(symbols::PRIM_IF);
                graph.add_operand(node, condition);
                graph.append(block, node);
                block = graph.add_block(node);
                graph.add_block(node);
            }
            let failures = graph.verify(None).map_or_else(|e| e.failures, |()| Vec::new());
            assert_eq!(failures.is_empty(), check_graph(&graph, "f").is_ok());
            failures.into_iter().map(|f| f.message).collect::<Vec<_>>()
        };
        let ty = |levels: usize| (1..levels).fold(types::INT, |ty, _| ctx.list_of(ty));
        let one = Constant::Int(1);
        assert!(messages(MAX_NESTING, ty(MAX_NESTING), lists(MAX_NESTING)).is_empty());
        let message = |what: &str| vec![format!("{what} are nested more than {MAX_NESTING} levels deep")];
        assert_eq!(
            messages(MAX_NESTING + 1, types::INT, one.clone())[0],
            message("blocks")[0]
        );
        assert_eq!(messages(1, ty(MAX_NESTING + 1), one), message("types"));
        assert_eq!(messages(1, types::INT, lists(MAX_NESTING + 1)), message("values"));
    }
}
