//! Graphs in DOT.

use frazil_ir::Context;
use frazil_syntax::{parse_graph, print_dot};
use std::collections::HashSet;
use std::sync::Arc;

const TEXT: &str = r#"graph(%c : bool,
      %x : Tensor):
  %s : str = prim::Constant[value="a \"quoted\" \\ back\nslash } { [x]"]()
  %later : Future[Tensor] = prim::fork_0(%x)
  %y : Tensor = prim::If(%c)
    block0():
      %z : Tensor = prim::Loop(%s, %c, %x)
        block0(%i : int, %a : Tensor):
          %b : Tensor = aten::relu(%a)
          -> (%c, %b)
      -> (%z)
    block1():
      -> (%x)
  return (%y, %later)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
"#;

fn picture() -> String {
    let parsed = parse_graph(&Arc::new(Context::new()), TEXT).unwrap();
    print_dot([("for\"ward", &parsed.graph)])
}

#[test]
fn edges_join_boxes_that_are_there() {
    let dot = picture();
    let lines = || dot.lines().map(str::trim);
    let boxes: HashSet<_> = lines()
        .filter_map(|l| l.split_once(" [label=").map(|(id, _)| id))
        .filter(|id| !id.contains("->"))
        .collect();
    let edges: Vec<_> = lines().filter_map(|l| l.split_once(" -> ")).collect();
    // Six operands and six results in the graph, one of each in the one behind it.
    assert_eq!(edges.len(), 14);
    for (from, to) in edges {
        let (to, _) = to.split_once(' ').unwrap();
        assert!(boxes.contains(from) && boxes.contains(to), "{from} -> {to}");
    }
}

#[test]
fn blocks_are_clusters_inside_their_nodes() {
    let dot = picture();
    let mut open = Vec::new();
    let mut deepest = Vec::new();
    for line in dot.lines().map(str::trim) {
        if let Some(label) = line.strip_prefix("label=") {
            *open.last_mut().unwrap() = label.to_owned();
            if open.len() > deepest.len() {
                deepest = open.clone();
            }
        } else if line.ends_with('{') {
            open.push(String::new());
        } else if line == "}" {
            open.pop().unwrap();
        }
    }
    assert!(open.is_empty());
    let path = [
        "",
        r#""for\"ward";"#,
        r#""prim::If";"#,
        r#""block0";"#,
        r#""prim::Loop";"#,
        r#""block0";"#,
    ];
    assert_eq!(deepest, path);
}

#[test]
fn labels_are_escaped() {
    let dot = picture();
    assert!(
        dot.contains(r#"[label="prim::Constant\nvalue=\"a \\\"quoted\\\" \\\\ back\\nslash } { [x]\""];"#),
        "{dot}"
    );
    assert!(dot.contains(r#"label="for\"ward prim::fork";"#), "{dot}");
}
