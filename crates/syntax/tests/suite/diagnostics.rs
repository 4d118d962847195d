//! Diagnostics for invalid texts.

use frazil_ir::Context;
use frazil_ir::schema::Catalogue;
use frazil_syntax::{ParseOptions, parse_graph_with, render};
use std::fmt::Write;
use std::sync::Arc;

/// Returns the rendered diagnostics for `text`.
fn messages(text: &str) -> String {
    let ctx = Arc::new(Context::new());
    let mut catalogue = Catalogue::new(ctx.clone());
    catalogue
        .add("aten::relu(Tensor self) -> Tensor")
        .and_then(|_| catalogue.add("aten::size(Tensor self) -> int[]"))
        .unwrap();
    let options = ParseOptions {
        catalogue: Some(&catalogue),
        verify: true,
        ..ParseOptions::default()
    };
    let error = parse_graph_with(&ctx, text, options).expect_err("the text is wrong");
    render("test.ir", text, &error.diagnostics, false)
}

fn codes(text: &str) -> Vec<&'static str> {
    match parse_graph_with(&Arc::new(Context::new()), text, ParseOptions::default()) {
        Ok(_) => Vec::new(),
        Err(e) => e.diagnostics.iter().map(|d| d.code).collect(),
    }
}

#[test]
fn messages_have_places_and_hints() {
    let texts = [
        "graph(%x : Tenser):\n  return (%x)\n",
        "graph(%x : Tensor(a!)):\n  return (%x)\n",
        "graph(%x : Double(4!, 4)):\n  return (%x)\n",
        "graph(%x : Float(4, strides=[5], 5)):\n  return (%x)\n",
        "graph(%x : Float(4, 2, strides=[5])):\n  return (%x)\n",
        "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%xx)\n  return (%y)\n",
        "graph(%c : bool):\n  %r : int = prim::If(%c)\n    block0():\n      %i : int = prim::Constant[value=1]()\n      -> (%i)\n    block1():\n      -> (%i)\n  return (%r)\n",
        "graph(%x, %x):\n  return (%x)\n",
        "graph(%x : Tensor):\n  %y : str = prim::Constant[value=\"abc]()\n  return (%y)\n",
        "graph(%x : Tensor):\n  %y : str = prim::Constant[value=\"a\\q\"]()\n  return (%y)\n",
        "graph(%x : Tensor):\n  %y : int = prim::Constant[value=99999999999999999999]()\n  return (%y)\n",
        "graph(%x : Tensor):\n  %y = ^MyFunction(1, True)(%x)\n  %z = relu(%x)\n  return (%y)\n",
        "graph(%x : Tensor):\n  %y = aten::relu(%x)\n",
        "graph(%x : Tensor):\n    block0():\n      -> ()\n  return (%x)\n",
        "graph(%x : Tensor):\n  return (%x)\nwith prim::fork_0 = graph():\n  return ()\n",
        "graph(%x : Tensor):\n  %y = a::b[v=1, v=2](%x)\n  return (%y)\n",
        "graph(%x : Tensor):\n  %y : int = aten::relu(%x)\n  %a, %b = aten::size(%x)\n  return (%y)\n",
        "graph(%x : int):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n",
    ];
    let mut all = String::new();
    for text in texts {
        let _ = writeln!(all, "{}", messages(text));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn several_errors_are_found() {
    let found = codes(
        "graph(%x : Tensor):\n  %a : Tenser = aten::relu(%x)\n  %b = aten::relu(%nothing)\n  %c = aten::relu %x\n  %d = aten::relu(%a, %b, %c)\n  return (%d)\n",
    );
    assert_eq!(found, ["unknown-type", "undefined-value", "unexpected-token"]);
}

#[test]
fn errors_are_not_endless() {
    let mut text = "graph():\n".to_owned();
    for i in 0..1000 {
        let _ = writeln!(text, "  %a{i} = aten::relu(%b{i})");
    }
    text.push_str("  return ()\n");
    let found = codes(&text);
    assert_eq!(found.len(), 51);
    assert!(found.contains(&"too-many-errors"));
}

#[test]
fn nesting_is_bounded() {
    let blocks = format!("graph():\n{}", "a::b()\nblock0():\n".repeat(100_000));
    assert!(codes(&blocks).contains(&"nesting-too-deep"));
    for open in ["(", "List[", "Dict(str, ", "Optional["] {
        let text = format!("graph(%x : {}):\n return ()\n", open.repeat(100_000));
        assert!(codes(&text).contains(&"nesting-too-deep"), "{open}");
    }
    for open in ["[", "(", "{", "annotate(int, "] {
        let text = format!("graph():\n %a = a::b[v={}]()\n return ()\n", open.repeat(100_000));
        assert!(codes(&text).contains(&"nesting-too-deep"), "{open}");
    }
    let lists = format!("graph(%x : int{}):\n return ()\n", "[]".repeat(100_000));
    assert!(codes(&lists).contains(&"nesting-too-deep"));
    let mut graphs = "graph():\n a::b_0()\n return ()\n".to_owned();
    for _ in 0..1000 {
        graphs.push_str("with a::b_0 = graph():\n a::b_0()\n return ()\n");
    }
    assert!(codes(&graphs).contains(&"nesting-too-deep"));
}

#[test]
fn empty_and_foreign_texts_are_errors() {
    for text in [
        "",
        "# only a comment",
        "\u{0}",
        "PK\u{3}\u{4}",
        "import torch\n",
        "graph",
        "graph(",
        "graph()",
        "graph():",
        "graph(%é : Tensor):\n return (%ö)\n",
    ] {
        assert!(!codes(text).is_empty(), "{text:?}");
    }
}
