//! Property tests: printed graphs are parsed back to the same, and no text makes the parser panic.

use frazil_ir::{
    AttributeValue, Builder, Constant, Context, DType, Device, DictConstant, Graph, InsertPoint, Storage, TensorData,
    TypeId, TypeKind, ValueId, symbols, types,
};
use frazil_syntax::{NoTensors, ParseOptions, parse_any, parse_graph, parse_module, print_graph};
use num_complex::Complex64;
use proptest::prelude::*;
use std::sync::Arc;

/// One step of building a graph; numbers choose among the existing values.
#[derive(Clone, Debug)]
enum Step {
    Int(i64),
    Float(f64),
    Text(String),
    Ints(Vec<i64>),
    Literal(Literal),
    Attributes(Vec<(String, Literal)>, Vec<u8>),
    Fork(Literal),
    Op(u8, Vec<prop::sample::Index>, u8),
    Branch(prop::sample::Index),
    Leave,
    Name(prop::sample::Index, String),
}

/// A constant that does not need a context.
#[derive(Clone, Debug)]
enum Literal {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(f64, f64),
    Text(String),
    Device(u8),
    List(Vec<f64>),
    Tuple(Vec<Literal>),
    Dict(Vec<(String, i64)>),
    Tensor(Vec<i16>),
}

fn literal() -> impl Strategy<Value = Literal> {
    let leaf = prop_oneof![
        Just(Literal::None),
        any::<bool>().prop_map(Literal::Bool),
        any::<i64>().prop_map(Literal::Int),
        any::<f64>().prop_map(Literal::Float),
        (any::<f64>(), any::<f64>()).prop_map(|(re, im)| Literal::Complex(re, im)),
        any::<String>().prop_map(Literal::Text),
        any::<u8>().prop_map(Literal::Device),
        prop::collection::vec(any::<f64>(), 0..4).prop_map(Literal::List),
        prop::collection::vec((any::<String>(), any::<i64>()), 0..3).prop_map(Literal::Dict),
        prop::collection::vec(any::<i16>(), 0..5).prop_map(Literal::Tensor),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Literal::Tuple)
    })
}

impl Literal {
    fn constant(&self, ctx: &Context) -> Constant {
        match self {
            Literal::None => Constant::None,
            Literal::Bool(b) => Constant::Bool(*b),
            Literal::Int(i) => Constant::Int(*i),
            Literal::Float(f) => Constant::Float(*f),
            Literal::Complex(re, im) => Constant::Complex(Complex64::new(*re, *im)),
            Literal::Text(text) => Constant::str(text),
            Literal::Device(n) => Constant::Device(Device::parse(&format!("cuda:{n}")).unwrap()),
            Literal::List(items) => Constant::list(types::FLOAT, items.iter().copied().map(Constant::Float).collect()),
            Literal::Tuple(items) => Constant::tuple(ctx, items.iter().map(|i| i.constant(ctx)).collect()),
            Literal::Dict(entries) => Constant::Dict(Arc::new(DictConstant {
                key: types::STR,
                value: types::INT,
                entries: entries
                    .iter()
                    .map(|(k, v)| (Constant::str(k), Constant::Int(*v)))
                    .collect(),
            })),
            Literal::Tensor(items) => {
                let bytes: Vec<u8> = items.iter().flat_map(|i| i.to_le_bytes()).collect();
                let storage = Arc::new(Storage::new(Arc::new(bytes), Device::CPU));
                let sizes = [items.len() as i64];
                let tensor = TensorData::new(DType::Short, &sizes[..], &[1][..], 0, storage);
                Constant::Tensor(Arc::new(tensor.unwrap()))
            }
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<i64>().prop_map(Step::Int),
        any::<f64>().prop_map(Step::Float),
        any::<String>().prop_map(Step::Text),
        prop::collection::vec(any::<i64>(), 0..4).prop_map(Step::Ints),
        literal().prop_map(Step::Literal),
        literal().prop_map(Step::Fork),
        (
            prop::collection::vec(("[a-z]{1,4}", literal()), 0..3),
            prop::collection::vec(any::<u8>(), 0..3)
        )
            .prop_map(|(values, types)| Step::Attributes(values, types)),
        (
            any::<u8>(),
            prop::collection::vec(any::<prop::sample::Index>(), 0..5),
            0..4u8
        )
            .prop_map(|(kind, operands, outputs)| Step::Op(kind, operands, outputs)),
        any::<prop::sample::Index>().prop_map(Step::Branch),
        Just(Step::Leave),
        (
            any::<prop::sample::Index>(),
            "[a-z_]{1,3}(\\.[0-9]{1,2})?|[0-9]{1,2}|.{0,3}"
        )
            .prop_map(|(v, n)| Step::Name(v, n)),
    ]
}

fn some_types(ctx: &Context) -> Vec<TypeId> {
    vec![
        types::TENSOR,
        types::INT,
        ctx.list_of(ctx.optional_of(types::TENSOR)),
        ctx.dict_of(types::STR, ctx.tuple_of(&[types::FLOAT, types::BOOL])),
        ctx.tensor_of(DType::Half, &[2, 3], &[3, 1], true),
        ctx.type_of_kind(TypeKind::Future(types::ANY)),
        ctx.class("__torch__.a.___torch_mangle_1.B"),
    ]
}

fn build(steps: &[Step]) -> Graph {
    let ctx = Arc::new(Context::new());
    let mut graph = Graph::new(ctx.clone());
    let kinds = some_types(&ctx);
    let root = graph.root();
    // Per open block: the values that were defined in it.
    let first = graph.add_input(types::TENSOR);
    let mut open: Vec<(InsertPoint, Vec<ValueId>)> = vec![(InsertPoint::End(root), vec![first])];
    for step in steps {
        let visible: Vec<ValueId> = open.iter().flat_map(|(_, vs)| vs.iter().copied()).collect();
        let point = open.last().unwrap().0;
        let mut b = Builder::new(&mut graph, point);
        let fresh = match step {
            Step::Int(i) => vec![b.constant(*i)],
            Step::Float(f) => vec![b.constant(*f)],
            Step::Text(t) => vec![b.constant(t.as_str())],
            Step::Ints(v) => vec![b.constant(Constant::ints(v.iter().copied()))],
            Step::Literal(literal) => vec![b.constant(literal.constant(&ctx))],
            Step::Attributes(values, numbers) => {
                let node = b.node(ctx.symbol("foo::attributes"), &[], &[types::TENSOR]);
                for (name, literal) in values {
                    b.set_attribute(node, ctx.symbol(name), literal.constant(&ctx));
                }
                let some: Vec<_> = numbers.iter().map(|n| kinds[usize::from(*n) % kinds.len()]).collect();
                if let [first, ..] = some.as_slice() {
                    b.set_attribute(node, ctx.symbol("a_type"), AttributeValue::Type(*first));
                    b.set_attribute(node, ctx.symbol("some_types"), AttributeValue::Types(some));
                }
                b.node_outputs(node).to_vec()
            }
            Step::Fork(literal) => {
                let mut inner = Graph::new(ctx.clone());
                let root = inner.root();
                let value = Builder::at_end(&mut inner, root).constant(literal.constant(&ctx));
                inner.set_results(root, &[value]);
                let node = b.node(symbols::PRIM_FORK, &[], &[types::TENSOR]);
                b.set_attribute(node, symbols::ATTR_SUBGRAPH, AttributeValue::Graph(Arc::new(inner)));
                b.node_outputs(node).to_vec()
            }
            Step::Op(kind, operands, outputs) => {
                let operands: Vec<_> = operands.iter().map(|i| *i.get(&visible)).collect();
                let outputs: Vec<_> = (0..*outputs)
                    .map(|i| kinds[(usize::from(*kind) + usize::from(i)) % kinds.len()])
                    .collect();
                let node = b.node(ctx.symbol(&format!("foo::op_{}", kind % 5)), &operands, &outputs);
                b.node_outputs(node).to_vec()
            }
            Step::Branch(condition) => {
                let node = b.node(symbols::PRIM_IF, &[*condition.get(&visible)], &[]);
                let block = b.add_block(node);
                let parameter = b.add_parameter(block, types::INT);
                open.push((InsertPoint::End(block), vec![parameter]));
                continue;
            }
            Step::Leave => {
                if open.len() > 1 {
                    let (point, values) = open.pop().unwrap();
                    if let InsertPoint::End(block) = point {
                        graph.set_results(block, &values);
                    }
                }
                continue;
            }
            Step::Name(value, name) => {
                graph.name_value(*value.get(&visible), name);
                continue;
            }
        };
        open.last_mut().unwrap().1.extend(fresh);
    }
    let outputs = open[0].1.clone();
    graph.set_results(root, &outputs);
    graph
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn printed_graphs_parse_to_the_same(steps in prop::collection::vec(step(), 0..60)) {
        let graph = build(&steps);
        let text = print_graph(&graph);
        let parsed = parse_graph(&Arc::new(Context::new()), &text);
        prop_assert!(parsed.is_ok(), "{}\n{}", text, parsed.unwrap_err());
        let parsed = parsed.unwrap();
        prop_assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
        prop_assert_eq!(print_graph(&parsed.graph), text);
        prop_assert_eq!(parsed.graph.all_nodes().len(), graph.all_nodes().len());
    }

    #[test]
    fn no_text_is_too_strange(text in any::<String>()) {
        let _ = parse_any(&Arc::new(Context::new()), &text, ParseOptions::default(), &NoTensors);
        let _ = parse_graph(&Arc::new(Context::new()), &format!("graph(%x):\n {text}"));
        let _ = parse_module(&Arc::new(Context::new()), &format!("frazil module 1\n{text}"), &NoTensors);
    }

    #[test]
    fn damaged_texts_are_refused_in_order(at in any::<prop::sample::Index>(), len in 0..20usize, put in "[ -~\n]{0,6}") {
        for page in [include_str!("snapshots/suite__modules__the_text_is_for_people.snap"), include_str!("damage.ir")] {
            let mut start = at.index(page.len());
            let mut end = (start + len).min(page.len());
            while !page.is_char_boundary(start) { start -= 1; }
            while !page.is_char_boundary(end) { end += 1; }
            let text = format!("{}{put}{}", &page[..start], &page[end..]);
            let text = text.find("frazil module").map_or(text.as_str(), |i| &text[i..]);
            if let Err(e) = parse_any(&Arc::new(Context::new()), text, ParseOptions { verify: true, ..ParseOptions::default() }, &NoTensors) {
                prop_assert!(!e.diagnostics.is_empty());
                let shown = frazil_syntax::render("x.ir", text, &e.diagnostics, false);
                prop_assert!(shown.contains("x.ir:"));
            }
        }
    }
}
