//! Node kinds of frozen graphs, and the attributes of frozen modules, compared with those after `torch.jit.freeze`.
//!
//! `tests/conformance/frozen.txt` lists the models whose counts are compared. Below a model's name is an indented line for each kind whose count differs:
//! the kind, PyTorch's count, ours, and the reason. `attributes` is the number of remaining tensors and submodules.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

/// The number of nodes of each kind.
pub type Kinds = BTreeMap<String, usize>;

/// A model whose frozen graph is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The model's name.
    pub model: String,
    /// Kind, PyTorch's count, our count.
    pub differences: Vec<(String, usize, usize)>,
}

/// Returns the printed graph of the module's `forward`, without those of its forks.
pub fn forward_of(text: &str) -> String {
    let root = text.lines().find_map(|line| line.strip_prefix("object<0> = "));
    let class = root.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
    let head = format!("function {class}.forward(");
    let lines = text.lines().skip_while(|line| !line.starts_with(&head)).skip(1);
    let own = lines.take_while(|line| {
        !["function ", "with ", "object<", "tensor<"]
            .iter()
            .any(|start| line.starts_with(start))
    });
    own.collect::<Vec<_>>().join("\n")
}

/// Returns the tensors and submodules among the attributes of a printed module, by their paths from its root.
pub fn attributes_of_text(text: &str) -> BTreeSet<String> {
    let mut objects: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let mut object = None;
    for line in text.lines() {
        if let Some((id, _)) = line.split_once(" = ").filter(|(id, _)| id.starts_with("object<")) {
            objects.entry(id).or_default();
            object = Some(id);
        } else if !line.starts_with("  ") {
            object = None;
        } else if let (Some(id), Some((name, value))) = (object, line.trim().split_once(" = ")) {
            objects.entry(id).or_default().push((name, value));
        }
    }
    let mut paths = BTreeSet::new();
    let mut work = vec![("object<0>", String::new())];
    while let Some((id, base)) = work.pop() {
        for (name, value) in objects.get(id).into_iter().flatten() {
            let path = format!("{base}{name}");
            let is_object = value.starts_with("object<");
            if !is_object && !value.starts_with("tensor<") {
                continue;
            }
            let below = format!("{path}.");
            // An object that was visited before is in a cycle.
            if paths.insert(path) && is_object {
                work.push((value, below));
            }
        }
    }
    paths
}

/// Returns the member `"remaining_attributes"` of a `freeze.json`. `None` if there is none.
pub fn attributes_of_json(json: &Json) -> Option<BTreeSet<String>> {
    let names = json.get("remaining_attributes")?.as_array()?;
    Some(names.iter().filter_map(Json::as_str).map(str::to_owned).collect())
}

/// Counts the nodes in a printed graph, including nested blocks.
pub fn kinds_of_text(text: &str) -> Kinds {
    let mut kinds = Kinds::new();
    for line in text.lines() {
        let line = line.trim_start();
        // `%a : Tensor, %b : int = aten::foo[attr=1](%c)`; without outputs `= aten::foo(%c)` or `aten::foo(%c)`.
        let node = match line.split_once("= ") {
            Some((_, node)) if line.starts_with(['%', '=']) => node,
            _ => line,
        };
        let kind = node.split(['(', '[']).next().unwrap_or_default();
        // Nodes that contain a graph are numbered after it.
        let kind = if kind.starts_with("prim::fork_") {
            "prim::fork"
        } else {
            kind
        };
        let is_kind = kind.len() < node.len()
            && kind.contains("::")
            && kind
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "_:".contains(character));
        if is_kind {
            *kinds.entry(kind.to_owned()).or_default() += 1;
        }
    }
    kinds
}

/// Returns the member `"kinds"` of a `freeze.json`. `None` if there is none.
pub fn kinds_of_json(json: &Json) -> Option<Kinds> {
    let count = |(kind, count): (&String, &Json)| Some((kind.clone(), usize::try_from(count.as_u64()?).ok()?));
    json.get("kinds")?.as_object()?.iter().map(count).collect()
}

/// Parses the list; the error contains the line.
pub fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let complaint = || {
            format!(
                "line {}: expected `NAME`, or indented `KIND THEIRS OURS REASON`",
                index + 1
            )
        };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if !line.starts_with(char::is_whitespace) {
            entries.push(Entry {
                model: line.trim().to_owned(),
                differences: Vec::new(),
            });
            continue;
        }
        let mut words = line.split_whitespace();
        let mut word = || words.next().ok_or_else(complaint);
        let kind = word()?.to_owned();
        let theirs = word()?.parse().map_err(|_| complaint())?;
        let ours = word()?.parse().map_err(|_| complaint())?;
        // A difference without a reason is not accepted.
        word()?;
        entries
            .last_mut()
            .ok_or_else(complaint)?
            .differences
            .push((kind, theirs, ours));
    }
    Ok(entries)
}

/// Returns the counts that differ in an unlisted way, and the listed differences that no longer exist.
pub fn unexplained(theirs: &Kinds, ours: &Kinds, entry: &Entry) -> Vec<String> {
    let listed = |kind: &str| entry.differences.iter().find(|(listed, _, _)| listed == kind);
    let mut found = Vec::new();
    let kinds: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for kind in kinds {
        let count = |kinds: &Kinds| kinds.get(kind).copied().unwrap_or(0);
        let (theirs, ours) = (count(theirs), count(ours));
        let explained = listed(kind)
            .is_some_and(|(_, listed_theirs, listed_ours)| (theirs, ours) == (*listed_theirs, *listed_ours));
        if theirs != ours && !explained {
            found.push(format!("{kind} {theirs} {ours}"));
        } else if theirs == ours && listed(kind).is_some() {
            found.push(format!("{kind} is listed but does not differ"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(pairs: &[(&str, usize)]) -> Kinds {
        pairs.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()
    }

    #[test]
    fn nodes_are_counted_in_all_blocks() {
        let text = "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]() # a.py:1:2
  %2 : str = prim::Constant[value=\"aten::not(%1)\"]()
  %y : Tensor, %n : int = prim::If(%c)
    block0():
       = foo::bar(%x)
      foo::bar(%x)
      -> (%x, %1)
    block1():
      %z : Tensor = aten::relu_(%x)
      -> (%z, %1)
  return (%y)
";
        let want = [
            ("aten::relu_", 1),
            ("foo::bar", 2),
            ("prim::Constant", 2),
            ("prim::If", 1),
        ];
        assert_eq!(kinds_of_text(text), kinds(&want));
    }

    const MODULE: &str = "frazil module 1
root object<0>

function Net.helper(self : Net) -> (int) as Net.helper
graph(%self : Net):
  %0 : int = prim::Constant[value=1]()
  return (%0)

function Net.forward(self : Net, x : Tensor) -> (Tensor) as Net.forward
graph(%self : Net,
      %x : Tensor):
  %f : Future(Tensor) = prim::fork_0(%x)
  %y : Tensor = aten::wait(%f)
  return (%y)

with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)

object<0> = Net {
  count = 3
  past = tensor<0>
  part = object<1>
}

object<1> = Part {
  weight = tensor<1>
}

tensor<0> = Float(1, strides=[1], requires_grad=0) [0.]
";

    #[test]
    fn only_forward_itself_is_counted() {
        let want = [("aten::wait", 1), ("prim::fork", 1)];
        assert_eq!(kinds_of_text(&forward_of(MODULE)), kinds(&want));
    }

    #[test]
    fn attributes_have_paths() {
        let found: Vec<_> = attributes_of_text(MODULE).into_iter().collect();
        assert_eq!(found, ["part", "part.weight", "past"]);
    }

    #[test]
    fn differences_are_listed_with_a_reason() {
        let list = parse("# comment\nnet\n  prim::Constant 5 3 equal ones are merged\nother\n").unwrap();
        let differences = vec![("prim::Constant".to_owned(), 5, 3)];
        assert_eq!(
            list[0],
            Entry {
                model: "net".into(),
                differences
            }
        );
        assert_eq!(
            list[1],
            Entry {
                model: "other".into(),
                differences: vec![]
            }
        );
        assert!(parse("net\n  prim::Constant 5 3\n").unwrap_err().starts_with("line 2"));
        assert!(parse("  prim::Constant 5 3 why\n").is_err());
    }

    #[test]
    fn only_what_is_listed_may_differ() {
        let list = parse("net\n  a::b 2 1 why\n").unwrap();
        assert!(
            unexplained(
                &kinds(&[("a::b", 2), ("c::d", 1)]),
                &kinds(&[("a::b", 1), ("c::d", 1)]),
                &list[0]
            )
            .is_empty()
        );
        assert_eq!(unexplained(&kinds(&[("a::b", 2)]), &kinds(&[]), &list[0]), ["a::b 2 0"]);
        assert_eq!(
            unexplained(&kinds(&[("a::b", 2)]), &kinds(&[("a::b", 1), ("e::f", 3)]), &list[0]),
            ["e::f 0 3"]
        );
        assert_eq!(
            unexplained(&kinds(&[("a::b", 1)]), &kinds(&[("a::b", 1)]), &list[0]),
            ["a::b is listed but does not differ"]
        );
    }
}
