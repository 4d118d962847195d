//! The forms of graphs that PyTorch's parser accepts and its printer prints.

use frazil_ir::{Constant, Context, Graph, symbols, types};
use frazil_syntax::{ParseOptions, ParsedGraph, parse_graph, parse_graph_with, print_graph, render};
use std::sync::Arc;

fn parse(text: &str) -> ParsedGraph {
    parse_graph(&Arc::new(Context::new()), text)
        .unwrap_or_else(|e| panic!("{}", render("test", text, &e.diagnostics, false)))
}

fn round_trips(text: &str) {
    let printed = print_graph(&parse(text).graph);
    assert_eq!(printed, text);
}

/// Returns the printed form of `input`.
fn printed(input: &str) -> String {
    print_graph(&parse(input).graph)
}

#[test]
fn blocks_nest() {
    round_trips(
        "graph():
  %0 : Tensor = a::a()
    block0():
      %1 : Tensor = b::b()
        block0(%i : int, %x : Tensor[]):
          %2 : Tensor = c::c()
          -> (%i, %2)
        block1():
          -> ()
      -> ()
  %3 : Tensor = d::d()
   = e::e(%3, %3)
  return (%3)
",
    );
}

#[test]
fn graphs_in_braces_are_the_same() {
    // As in PyTorch's documentation.
    let text = "graph(%x : Tensor) {
  %5 : bool = prim::Constant[value=1]()
  %1 : int = prim::Constant[value=0]()
  %result.1 : Tensor = aten::select(%x, %1, %1)
  %4 : int = aten::size(%x, %1)
  %result : Tensor = prim::Loop(%4, %5, %result.1)
    block0(%i : int, %7 : Tensor) {
      %10 : Tensor = aten::select(%x, %1, %i)
      %result.2 : Tensor = aten::mul(%7, %10)
      -> (%5, %result.2)
    }
  return (%result);
}
";
    let today = text
        .replace(") {\n", "):\n")
        .replace("    }\n", "")
        .replace(";\n}\n", "\n");
    assert_eq!(printed(text), printed(&today));
    assert_eq!(
        printed("graph(%0 : Float(3, 4)) {\n  return (%0);\n}\n"),
        "graph(%0 : Float(3, 4)):\n  return (%0)\n"
    );
    // Without the semicolon, and with a comment behind the brace.
    assert_eq!(
        printed("graph(%x : Tensor) { # test.py:1:2\n  return (%x)\n}\n"),
        "graph(%x : Tensor):\n  return (%x)\n"
    );
    for wrong in [
        "graph(%x : Tensor) {\n  return (%x);\n",
        "graph(%x : Tensor):\n  return (%x);\n",
        "graph(%x : Tensor):\n  return (%x)\n}\n",
        "graph(%c : bool) {\n   = prim::If(%c)\n    block0() {\n      -> ()\n    block1() {\n      -> ()\n    }\n  return ();\n}\n",
    ] {
        let error = parse_graph(&Arc::new(Context::new()), wrong).unwrap_err();
        let code = error.diagnostics[0].code;
        assert!(code.starts_with("unexpected-"), "{wrong}: {code}");
    }
}

#[test]
fn types_are_pytorchs() {
    for ty in [
        "Tensor",
        "Tensor?",
        "Tensor[]",
        "int[][]?",
        "string",
        "Scalar",
        "NoneType",
        "Dict(str, Tensor[])",
        "(float[], str[], ())",
        "Future[Tensor]",
        "RRef[int]",
        "Await(int)",
        "Dict(str, Future(Tensor))",
        "Union(int[], int, str)",
        "NamedTuple(boxes : Tensor, label : int, name : str?)[]",
        "Enum<__torch__.Color>",
        "InterfaceType<I>",
        "__torch__.torch.nn.modules.container.___torch_mangle_3.Sequential",
        "Function",
        "Any",
        "Generator?",
        "Device",
        "Stream",
        "Float(*, *, *)",
        "Long()",
        "Double(4, 4, 5)",
        "Float(4, 5, strides=[5, 1])",
        "Double(*, 200, *, requires_grad=1, device=cuda:1)",
        "Float(device=cpu)",
        "Float(requires_grad=0, device=cuda:1)",
        "Long(4, 3, 1, strides=[6, 2, 1], requires_grad=0, device=cuda:1)",
        "Tensor(requires_grad=0, device=cpu)",
        "FloatTensor",
        "FloatTensor(device=cpu)",
        "Tensor(2, *)",
        "Tensor[Undefined]",
        "Float(SS(-1), SS(-2), 3)",
        "ComplexFloat(2, strides=[1], requires_grad=0, device=cpu)",
        "BFloat16(2)",
    ] {
        round_trips(&format!("graph(%x : {ty}):\n  return (%x)\n"));
    }
}

#[test]
fn other_spellings_of_types_are_understood() {
    for (written, shown) in [
        ("List[Optional[Tensor]]", "Tensor?[]"),
        ("Dict[str, List[int]]", "Dict(str, int[])"),
        ("Tuple[()]", "()"),
        ("Tuple[int, Tuple[str, float]]", "(int, (str, float))"),
        ("Float(2:3, 3:1)", "Float(2, 3, strides=[3, 1])"),
        ("int ?", "int"),
        ("None", "NoneType"),
    ] {
        let text = format!("graph(%x : {written}, %y : Tensor):\n  return (%x)\n");
        if written == "int ?" {
            assert!(parse_graph(&Arc::new(Context::new()), &text).is_err());
            continue;
        }
        let expected = format!("graph(%x : {shown},\n      %y : Tensor):\n  return (%x)\n");
        assert_eq!(printed(&text), expected);
    }
}

#[test]
fn attributes_of_every_kind() {
    round_trips(
        r#"graph(%0 : Tensor):
  %3 : int, %4 : Tensor = qqq::qqq[i_asdf=2, f_asdf=3., s_asdf="hello", ss_asdf=["hello world", "bye bye"]](%0)
  %5 : int = ppp::ppp[s_asdf="\"\"\"\"\nhe\"llo", q=[3, 2, 4], t=int, ts=[int, Tensor[]], tt=(int, float), tts=[((int, Tensor), str), (int)], c=0.+1.j, e=None](%0)
  %a : float[] = prim::Constant[value=[1., 2.5, 1e+20, 1.0000000000000001e-05, inf, 0.10000000000000001]]()
  %b : bool = prim::Constant[value=1]()
  %c : Device = prim::Constant[value="cuda:1"]()
  %d : float = prim::Constant[value=1000000000000000]()
  %e : int[] = prim::Constant[value=annotate(List[int], [])]()
  %f : (Device, str, complex, Dict(str, int), (int, str, NoneType, bool[]), (int,)) = prim::Constant[value=(torch.device("cuda:1"), "\"l\'\n\001\177\0)+\/.)\\", 0.+2.5j, {"a": 1}, (1, "x", None, [True, False]), (1,))]()
  %g : (int, str?)[] = prim::Constant[value=annotate(List[Tuple[int, Optional[str]]], [])]()
  %h : Enum<__torch__.Color> = prim::Constant[value=__torch__.Color.RED]()
  %i : Dict(str, int[]) = prim::Constant[value=annotate(Dict[str, List[int]],{})]()
  %j : int = prim::Constant[value=-9223372036854775808]()
  %k : Function = prim::Constant[name="relu"]()
  %l : Tensor[] = prim::Constant[value=[<Tensors>]]()
  %m : int? = prim::Constant()
   = aten::warn[warn_id=0](%0, %0)
  return (%3)
"#
        .replace("(int,)) =", "(int)) =")
        .as_str(),
    );
}

#[test]
fn constants_have_the_type_that_is_said() {
    let p = parse(
        "graph():\n  %a : bool = prim::Constant[value=1]()\n  %b : float = prim::Constant[value=3]()\n  \
         %c : Device = prim::Constant[value=\"cpu\"]()\n  %d : int? = prim::Constant()\n  \
         %e : float[] = prim::Constant[value=[1, 2.]]()\n  return (%a, %b, %c, %d, %e)\n",
    );
    let values: Vec<_> = p.graph.outputs().map(|v| p.graph.constant(v).unwrap()).collect();
    assert!(matches!(values[0], Constant::Bool(true)));
    assert!(matches!(values[1], Constant::Float(3.0)));
    assert!(matches!(values[2], Constant::Device(_)));
    assert!(matches!(values[3], Constant::None));
    assert!(
        values[4]
            .items()
            .unwrap()
            .iter()
            .all(|c| matches!(c, Constant::Float(_)))
    );
    assert!(p.graph.verify(None).is_ok());
}

#[test]
fn small_tensors_are_data_and_large_ones_are_not() {
    let text = r#"graph():
  %0 : Long(requires_grad=0, device=cpu) = prim::Constant[value={5}]()
  %1 : Double(1, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value={0.5}]()
  %2 : Float(3, 2, strides=[1, 3], requires_grad=0, device=cpu) = prim::Constant[value=-0.6462  0.8477 -0.1591  0.2459 -1.7787 -0.1312 [ CPUFloatType{3,2} ]]()
  %3 : Long(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value= 123456      -2 [ CPULongType{2} ]]()
  %4 : Float(64, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %5 : Tensor?[] = prim::Constant[value=annotate(List[Optional[Tensor]], [None,  1  2 [ CPULongType{2} ]])]()
  %6 : Dict(str, Tensor) = prim::Constant[value={"boxes": [ CPUFloatType{0,4} ], "x": <Tensor>}]()
  return (%0, %1, %2, %3, %4, %5, %6)
"#;
    round_trips(text);
    let g = parse(text).graph;
    let tensors: Vec<_> = g.outputs().map(|v| g.constant(v)).collect();
    let bytes = |i: usize| {
        let constant = tensors[i].clone().unwrap();
        constant.as_tensor().unwrap().to_bytes().into_owned()
    };
    assert_eq!(bytes(0), 5i64.to_le_bytes());
    assert_eq!(bytes(1), 0.5f64.to_le_bytes());
    assert_eq!(&bytes(2)[4..8], 0.8477f32.to_le_bytes());
    assert_eq!(
        tensors[2].as_ref().unwrap().as_tensor().unwrap().strides.as_slice(),
        [1, 3]
    );
    assert_eq!(&bytes(3)[..8], 123456i64.to_le_bytes());
    assert!(tensors[4].is_none(), "there is no data to be had");
    assert!(matches!(&tensors[5], Some(Constant::List(l)) if l.items.len() == 2));
    assert!(tensors[6].is_none());
}

#[test]
fn subgraphs_follow_their_graph() {
    let text = "graph(%x : Tensor):
  %f : Future[Tensor] = prim::fork_0(%x) # a.py:1:2
  %g : Future[Tensor] = prim::fork_1[a=1](%x)
  %y : Tensor = aten::wait(%f)
  return (%y)
with prim::fork_0 = graph(%x.1 : Tensor):
  %f : Future[Tensor] = prim::fork_0(%x.1)
  return (%x.1)
with prim::fork_0 = graph(%z : Tensor):
  return (%z)
with prim::fork_1 = graph(%x.1 : Tensor):
  return (%x.1)
";
    round_trips(text);
    let g = parse(text).graph;
    let fork = g.first(g.root()).unwrap();
    assert_eq!(g.kind(fork), symbols::PRIM_FORK);
    let inner = g.attribute(fork, symbols::ATTR_SUBGRAPH).unwrap().as_graph().unwrap();
    assert_eq!(inner.kind(inner.first(inner.root()).unwrap()), symbols::PRIM_FORK);
}

#[test]
fn comments_stand_anywhere() {
    let text = "// RUN: jit-opt %s | FileCheck %s\n# CHECK: graph\ngraph(%a, # the first\n   // more\n   %b : int):\n  # CHECK: return\n  %c : Tensor = aten::x(%a,\n    %b) # file with spaces.py:10:5\n  %d = aten::y() # no range\n  return (%c) // done\n# CHECK-NOT: x\n";
    let expected = "graph(%a : Tensor,\n      %b : int):\n  %c : Tensor = aten::x(%a, %b) # file with spaces.py:10:5\n  %d : Tensor = aten::y()\n  return (%c)\n";
    assert_eq!(printed(text), expected);
}

#[test]
fn scopes_and_empty_files_are_kept() {
    round_trips(
        "graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%x), scope: __module.c/__module.c.1 # /a b/c.py:134:0\n  %2 : Tensor = aten::relu(%1), scope: a\n  %3 : Tensor = aten::relu(%2) # :14:30\n  %4 : Tensor = aten::relu(%3) # <string>:5:2\n  return (%4)\n",
    );
}

#[test]
fn names_may_be_used_again() {
    let p = parse("graph(%x):\n  %x = a::a(%x)\n  %x = b::b(%x)\n  return (%x)");
    let g = &p.graph;
    let x2 = g.outputs().next().unwrap();
    let b = g.defining_node(x2).unwrap();
    let x1 = g.operand(b, 0).unwrap();
    assert_eq!(g.operand(g.defining_node(x1).unwrap(), 0), Some(g.inputs()[0]));
    assert_eq!(p.warnings.len(), 2);
    assert_eq!(
        print_graph(g),
        "graph(%x : Tensor):\n  %x.1 : Tensor = a::a(%x)\n  %x.2 : Tensor = b::b(%x.1)\n  return (%x.2)\n"
    );
}

#[test]
fn names_of_inner_blocks_end_with_them() {
    let p = parse(
        "graph(%c : bool, %x : int):\n  %y : int = prim::If(%c)\n    block0():\n      %x : str = a::a()\n      %z : int = a::b(%x)\n      -> (%z)\n    block1():\n      -> (%x)\n  return (%x)\n",
    );
    let g = &p.graph;
    assert_eq!(g.ty(g.outputs().next().unwrap()), types::INT);
    let branch = g.first(g.root()).unwrap();
    let second = g.node_blocks(branch)[1];
    assert_eq!(g.results(second).next(), Some(g.inputs()[1]));
}

#[test]
fn nameless_values_get_free_numbers() {
    let ctx = Arc::new(Context::new());
    let mut g = Graph::new(ctx.clone());
    let a = g.add_input(types::TENSOR);
    let b = g.add_input(types::TENSOR);
    g.name_value(b, "1");
    let c = g.add_input(types::TENSOR);
    let d = g.add_input(types::TENSOR);
    g.name_value(d, "x.3");
    let e = g.add_input(types::TENSOR);
    g.name_value(e, "x.3");
    let root = g.root();
    g.set_results(root, &[a, c, e]);
    assert_eq!(
        print_graph(&g),
        "graph(%0 : Tensor,\n      %1 : Tensor,\n      %2 : Tensor,\n      %x.3 : Tensor,\n      %x.4 : Tensor):\n  return (%0, %2, %x.4)\n"
    );
}

#[test]
fn spans_lead_back_to_the_text() {
    let text = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n";
    let p = parse(text);
    let node = p.graph.first(p.graph.root()).unwrap();
    let span = p.spans.node(node).unwrap();
    assert_eq!(&text[span.start as usize..span.end as usize], "aten::relu");
    let span = p.spans.value(p.graph.output(node).unwrap()).unwrap();
    assert_eq!(&text[span.start as usize..span.end as usize], "%y");
}

#[test]
fn values_that_look_like_others_print_back() {
    for value in [
        // Not the beginning of a tensor of three dimensions.
        "((( 0  0 [ CPUShortType{2} ],),),)",
        "(1,  0  0 [ CPUShortType{2} ])",
        // Large whole doubles have no dot.
        "[-8340983727670395, 0.5]",
        // A class looks like a member of an enumeration.
        "[__torch__.a.B, Tensor]",
        "[Tensor, __torch__.a.B]",
    ] {
        let text = format!("graph():\n  %1 : Any = foo::bar[a={value}]()\n  return (%1)\n");
        assert_eq!(print_graph(&parse(&text).graph), text);
    }
}

#[test]
fn names_that_no_text_can_have_are_changed() {
    let ctx = Arc::new(Context::new());
    let mut g = Graph::new(ctx.clone());
    for name in ["a b", "a_b", "x-y.3", "", "\u{e9}"] {
        let value = g.add_input(types::TENSOR);
        g.name_value(value, name);
    }
    let text = print_graph(&g);
    let first = "graph(%a_b.1 : Tensor,\n      %a_b : Tensor,\n      %x_y.3 : Tensor,\n      %.1 : Tensor,\n      %\u{e9} : Tensor):\n  return ()\n";
    assert_eq!(text, first);
    assert_eq!(print_graph(&parse(&text).graph), text);
}

/// Nodes without schema have typed outputs too.
#[test]
fn containers_and_forks_have_the_types_of_their_parts() {
    let wrong = |text: &str| {
        let options = ParseOptions {
            verify: true,
            ..ParseOptions::default()
        };
        let error = parse_graph_with(&Arc::new(Context::new()), text, options).err();
        error.map(|e| {
            e.diagnostics
                .iter()
                .map(|d| d.message.clone())
                .collect::<Vec<_>>()
                .join("; ")
        })
    };
    let inputs = "%x : Tensor, %i : int, %l : Tensor[], %p : (Tensor, int), %s : str, %o : Tensor?";
    for (node, message) in [
        (
            "%r : int[] = prim::ListConstruct(%i, %x)",
            "operand 1 is Tensor where the declared type takes int",
        ),
        ("%r : Tensor = prim::ListConstruct(%x)", "gives a list, not Tensor"),
        (
            "%r : Tensor[] = prim::ListConstruct(%o)",
            "operand 0 is Tensor? where the declared type takes Tensor",
        ),
        (
            "%r : Dict(str, int) = prim::DictConstruct(%s, %x)",
            "operand 1 is Tensor where the declared type takes int",
        ),
        (
            "%r : Dict(str, int) = prim::DictConstruct(%s)",
            "takes a value for each key",
        ),
        (
            "%r : (int, int) = prim::TupleConstruct(%x, %i)",
            "operand 0 is Tensor where the declared type takes int",
        ),
        (
            "%r : (int, int) = prim::TupleConstruct(%i)",
            "has 1 operands for a tuple of 2",
        ),
        (
            "%r : int, %q : int = prim::TupleUnpack(%p)",
            "output 0 is declared int, but the operand holds Tensor",
        ),
        ("%r : Tensor = prim::TupleUnpack(%p)", "has 1 outputs for a tuple of 2"),
        (
            "%r : int, %q : int = prim::ListUnpack(%l)",
            "output 0 is declared int, but the operand holds Tensor",
        ),
        ("%r : int = prim::ListUnpack(%i)", "takes a list"),
        (
            "%r : int = prim::TupleIndex(%p, %zero)",
            "output 0 is declared int, but the operand holds Tensor",
        ),
        (
            "%r : Tensor = prim::TupleIndex(%p, %minus)",
            "output 0 is declared Tensor, but the operand holds int",
        ),
        (
            "%r : Future(int) = prim::fork_0(%x)",
            "output 0 is declared Future[int], but its graph gives Tensor",
        ),
        (
            "%r : Future(Tensor) = prim::fork_0(%i)",
            "operand 0 is int where the declared type takes Tensor",
        ),
        ("%r : Tensor[] = prim::ListConstruct(%x, %x)", ""),
        ("%r : Float(2, 3)[] = prim::ListConstruct(%x)", ""),
        ("%r : (Tensor?, int) = prim::TupleConstruct(%o, %i)", ""),
        ("%r : Tensor?, %q : int = prim::TupleUnpack(%p)", ""),
        ("%r : int = prim::TupleIndex(%p, %minus)", ""),
        // It raises when it runs.
        ("%r : Tensor = prim::TupleIndex(%p, %two)", ""),
        ("%r : Any = prim::TupleIndex(%p, %i)", ""),
        ("%r : Future(Tensor) = prim::fork_0(%x)", ""),
    ] {
        let constants = "  %zero : int = prim::Constant[value=0]()\n  %two : int = prim::Constant[value=2]()\n  %minus : int = prim::Constant[value=-1]()\n";
        let with = if node.contains("fork") {
            "with prim::fork_0 = graph(%x : Tensor):\n  return (%x)\n"
        } else {
            ""
        };
        let text = format!("graph({inputs}):\n{constants}  {node}\n  return (%x)\n{with}");
        match (wrong(&text), message) {
            (None, "") => {}
            (Some(found), message) if !message.is_empty() && found.contains(message) => {}
            (found, _) => panic!("{node}: {found:?}"),
        }
    }
}
