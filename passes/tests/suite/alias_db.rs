//! The alias analysis on graphs as text, with the real operators: required results for each kind of aliasing, write and move.

use frazil_ir::{Context, Graph, NodeId, ValueId, symbols};
use frazil_passes::AliasDb;
use frazil_passes::alias_db::{Place, Side};
use frazil_runtime::Registry;
use std::sync::Arc;

struct Setting {
    registry: Registry,
    graph: Graph,
    db: AliasDb,
}

impl Setting {
    fn new(text: &str) -> Setting {
        let mut registry = Registry::new(Arc::new(Context::new()));
        frazil_prim::register(&mut registry);
        frazil_aten::register(&mut registry);
        let graph = frazil_syntax::parse_graph(registry.ctx(), text)
            .unwrap_or_else(|e| panic!("{text}\n{:?}", e.diagnostics))
            .graph;
        let db = AliasDb::new(&graph, registry.catalogue());
        Setting { registry, graph, db }
    }

    fn value(&self, name: &str) -> ValueId {
        let g = &self.graph;
        let mut values = g.inputs().to_vec();
        values.extend(g.all_nodes().iter().flat_map(|n| g.node_outputs(*n).to_vec()));
        let named = |v: &ValueId| g.show_value(*v).to_string() == format!("%{name}");
        values
            .into_iter()
            .find(named)
            .unwrap_or_else(|| panic!("no value {name}"))
    }

    fn node(&self, name: &str) -> NodeId {
        self.graph.defining_node(self.value(name)).unwrap()
    }

    fn may_alias(&self, a: &str, b: &str) -> bool {
        let (a, b) = (self.value(a), self.value(b));
        assert_eq!(self.db.may_alias(a, b), self.db.may_alias(b, a));
        self.db.may_alias(a, b)
    }

    fn may_contain(&self, a: &str, b: &str) -> bool {
        let (a, b) = (self.value(a), self.value(b));
        assert_eq!(self.db.may_contain_alias(a, b), self.db.may_contain_alias(b, a));
        self.db.may_contain_alias(a, b)
    }

    fn has_writers(&self, name: &str) -> bool {
        self.db.has_writers(self.value(name))
    }

    fn writes_to(&self, node: &str, value: &str) -> bool {
        self.db.writes_to_alias(self.node(node), &[self.value(value)])
    }

    fn safe(&self, a: &str, b: &str) -> bool {
        let (a, b) = (self.value(a), self.value(b));
        assert_eq!(
            self.db.safe_to_change_aliasing(a, b),
            self.db.safe_to_change_aliasing(b, a)
        );
        self.db.safe_to_change_aliasing(a, b)
    }

    /// Moves a node in a copy; returns the names of the outputs in their new order, or `None` if the move is refused.
    fn moved(&self, node: &str, side: Side, target: &str) -> Option<String> {
        let (node, target) = (self.node(node), self.node(target));
        let catalogue = self.registry.catalogue();
        let mut graph = self.graph.clone();
        let could = self.db.could_move(&graph, node, target, side, catalogue);
        let done = match side {
            Side::Before => self
                .db
                .move_before_topologically_valid(&mut graph, node, target, catalogue),
            Side::After => self
                .db
                .move_after_topologically_valid(&mut graph, node, target, catalogue),
        };
        assert_eq!(could, done);
        graph.verify(None).unwrap();
        let name = |n: NodeId| {
            graph
                .output(n)
                .and_then(|v| graph.value_name(v))
                .map(|s| s.display(graph.ctx()).to_string())
        };
        let order: String = graph.nodes(graph.root()).filter_map(name).collect();
        done.then_some(order)
    }
}

// --- moves

/// Every node has a name of one letter; `c` and `p` and `q` have no operands, the others depend on their operands.
const ORDER: &str = "graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::relu(%x)
  %d : Tensor = aten::mul(%a, %b)
  %e : Tensor = aten::mul(%c, %b)
  %f : Tensor = aten::relu(%e)
  %g : Tensor = aten::relu(%e)
  %p : Tensor = aten::relu(%x)
  %q : Tensor = aten::relu(%p)
  return (%d, %f, %g, %q)
";

#[test]
fn nodes_move_both_ways_and_leave_behind_or_take_along_what_they_cannot_pass() {
    use Side::{After, Before};
    let s = Setting::new(ORDER);
    let cases = [
        // Forward, beyond the target: users move along.
        ("c", After, "d", Some("abdcefgpq")),
        ("e", After, "p", Some("abcdpefgq")),
        ("a", After, "c", Some("cabdefgpq")),
        ("p", After, "q", None),
        // Forward, up to the target: users move beyond it.
        ("c", Before, "p", Some("abdcpefgq")),
        ("e", Before, "g", Some("abcdegfpq")),
        // Backward, beyond the target: operands move along.
        ("q", Before, "a", Some("pqabcdefg")),
        ("e", Before, "c", None),
        // Backward, up to the target: operands move beyond it.
        ("c", After, "a", Some("acbdefgpq")),
        ("f", After, "d", Some("abcedfgpq")),
        ("d", After, "a", None),
        // At its place already.
        ("g", After, "f", Some("abcdefgpq")),
        ("a", Before, "b", Some("abcdefgpq")),
        ("a", Before, "a", Some("abcdefgpq")),
    ];
    for (node, side, target, expected) in cases {
        assert_eq!(
            s.moved(node, side, target).as_deref(),
            expected,
            "{node} {side:?} {target}"
        );
    }
}

#[test]
fn writes_and_output_block_moves() {
    use Side::{After, Before};
    let s = Setting::new(
        "graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%y, %y)
  %b : Tensor = aten::mul(%x, %y)
  %w : Tensor = aten::relu_(%x)
  %c : Tensor = aten::mul(%b, %b)
  return (%a, %b, %c)
",
    );
    assert_eq!(s.moved("b", After, "w"), None, "it reads what is written");
    assert_eq!(s.moved("a", After, "w"), None, "two inputs may be one tensor");
    assert_eq!(s.moved("a", After, "b").as_deref(), Some("bawc"));
    assert_eq!(
        s.moved("c", After, "b").as_deref(),
        Some("abcw"),
        "its operands are not written"
    );

    let s = Setting::new(
        "graph(%x : Tensor):
  %n : int = prim::Constant[value=1]()
  %m : str = prim::Constant[value=\"a\"]()
  %none : NoneType = prim::Constant()
  %a : int[] = aten::size(%x)
   = aten::warn(%m, %n)
  %r : Tensor = aten::bernoulli(%x, %none)
  %b : Tensor = aten::relu(%x)
  return (%a, %b, %r)
",
    );
    assert_eq!(s.moved("b", Before, "a").as_deref(), Some("nmnonebar"));
    assert_eq!(s.moved("r", Before, "b").as_deref(), Some("nmnonearb"));
    assert_eq!(
        s.moved("r", Before, "m"),
        None,
        "random numbers and warnings have an order"
    );

    // A write through a view, in a branch, to an element of a list, and to the operands of a list operator.
    let s = Setting::new(
        "graph(%n : int, %cond : bool):
  %sizes : int[] = prim::ListConstruct(%n)
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::zeros(%sizes, %none, %none, %none, %none)
  %b : Tensor = aten::ones(%sizes, %none, %none, %none, %none)
  %k : Tensor = prim::If(%cond)
    block0():
      %in : Tensor = aten::relu_(%a)
      -> (%in)
    block1():
      -> (%a)
  %c : Tensor = aten::mul(%a, %b)
  %d : Tensor = aten::mul(%b, %b)
  %l : Tensor[] = prim::ListConstruct(%b, %d)
  %e : Tensor = aten::__getitem__(%l, %n)
  %w : Tensor = aten::relu_(%e)
  %u : Tensor = aten::cat(%l, %n)
  return (%c, %u)
",
    );
    assert_eq!(s.moved("c", Before, "k"), None, "the branch may write to a");
    assert!(s.moved("d", Before, "k").is_some());
    assert_eq!(s.moved("u", Before, "w"), None, "it reads elements that are written");
    assert_eq!(s.moved("l", After, "w"), None, "an element is read from it");
    assert_eq!(s.moved("d", After, "l"), None);
}

// --- writes

#[test]
fn a_norm_that_may_train_writes_its_statistics() {
    for op in ["batch_norm", "instance_norm"] {
        for (training, mean, writes) in [
            ("prim::Constant[value=0]()", "%mean", false),
            ("prim::Constant[value=1]()", "%mean", true),
            ("aten::__not__(%flag)", "%mean", true),
            ("prim::Constant[value=1]()", "%none", false),
        ] {
            let s = Setting::new(&format!(
                "graph(%x : Tensor, %mean : Tensor, %flag : bool):
  %none : NoneType = prim::Constant()
  %training : bool = {training}
  %f : float = prim::Constant[value=0.5]()
  %r : Tensor = aten::{op}(%x, %none, %none, {mean}, {mean}, %training, %f, %f, %flag)
  return (%r)
"
            ));
            assert_eq!(s.db.is_mutable(s.node("r")), writes, "{op} {training} {mean}");
            assert_eq!(s.has_writers("mean"), writes, "{op} {training} {mean}");
        }
    }
}

#[test]
fn writes_are_seen_through_views_casts_and_containers() {
    let s = Setting::new(
        "graph(%x : Tensor, %o : Tensor?, %n : int):
  %sizes : int[] = prim::ListConstruct(%n)
  %none : NoneType = prim::Constant()
  %off : bool = prim::Constant[value=0]()
  %a : Tensor = aten::zeros(%sizes, %none, %none, %none, %none)
  %view : Tensor = aten::select(%a, %n, %n)
  %to : Tensor = aten::to(%a, %n, %off, %off, %none)
  %fresh : Tensor = aten::mul(%to, %to)
  %l : Tensor[] = prim::ListConstruct(%view, %fresh)
  %kept : Tensor = aten::add(%fresh, %fresh, %n)
  %item : Tensor = aten::__getitem__(%l, %n)
  %w : Tensor = aten::relu_(%item)
  %some : Tensor = prim::unchecked_unwrap_optional(%o)
  return (%kept)
",
    );
    for v in ["a", "view", "to", "fresh", "item", "w"] {
        assert!(s.has_writers(v) && s.writes_to("w", v), "{v}");
    }
    for v in ["kept", "x", "o", "some", "sizes", "none"] {
        assert!(!s.has_writers(v) && !s.writes_to("w", v), "{v}");
    }
    assert!(!s.has_writers("l") && s.db.has_writers_inside(s.value("l")));
    assert!(
        s.may_alias("some", "x") && s.may_alias("some", "o"),
        "optional or not, it is a tensor from outside"
    );
}

// --- containers and types

#[test]
fn what_comes_from_outside_is_told_apart_by_kind() {
    let s = Setting::new(
        "graph(%tensors : Tensor[], %ints : int[], %maybe : Tensor[]?, %optionals : Tensor?[], %one : Tensor,
      %lists : Tensor[][], %int_lists : int[][], %shaped : Float(*, *)[], %shaped_too : Double(*)[],
      %dict : Dict(str, Tensor), %either : Union(Dict(str, Tensor), Tensor[])):
  %w : Tensor[] = aten::append(%tensors, %one)
  return ()
",
    );
    assert!(s.has_writers("tensors") && s.has_writers("maybe") && !s.has_writers("ints"));
    assert!(s.may_alias("tensors", "maybe") && s.may_contain("tensors", "maybe"));
    assert!(
        s.may_contain("tensors", "lists") && s.may_contain("tensors", "one") && !s.may_contain("int_lists", "lists")
    );
    assert!(s.may_alias("shaped", "shaped_too") && s.may_contain("shaped", "one"));
    assert!(s.may_alias("either", "dict") && s.may_alias("either", "tensors"));
    assert!(s.may_contain("dict", "tensors") && s.may_contain("optionals", "tensors"));
    assert!(!s.may_alias("one", "tensors") && !s.may_contain("ints", "maybe"));
}

#[test]
fn containers_contain_what_goes_in_and_nothing_else() {
    let s = Setting::new(
        "graph(%x : Tensor, %n : int, %cond : bool):
  %key : str = prim::Constant[value=\"a\"]()
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::relu(%x)
  %t : (Tensor) = prim::TupleConstruct(%y)
  %d : Dict(str, Tensor) = prim::DictConstruct(%key, %y)
  %l : Tensor[] = prim::ListConstruct(%y)
  %ll : Tensor[][] = prim::ListConstruct(%l)
  %ints : int[] = prim::ListConstruct(%n)
  %from_outside : (Tensor) = prim::TupleConstruct(%x)
  %joined : (Tensor) = prim::If(%cond)
    block0():
      -> (%t)
    block1():
      -> (%from_outside)
  %values : Tensor[] = aten::values(%d)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%values)
  %popped : Tensor = aten::pop(%l, %n)
  return (%t, %d, %ll)
",
    );
    for v in ["t", "d", "l", "ll", "joined", "values"] {
        assert!(
            s.may_contain(v, "y") && !s.may_contain(v, "z") && !s.may_contain(v, "n"),
            "{v}"
        );
    }
    assert!(s.may_contain("joined", "x") && s.may_contain("from_outside", "x") && !s.may_contain("t", "x"));
    assert!(s.may_contain("ll", "t") && !s.may_contain("ints", "ll") && !s.may_alias("l", "ll"));
    assert!(
        s.may_alias("p", "y") && s.may_alias("popped", "y") && s.has_writers("l"),
        "out of a dictionary, out of a list"
    );
    assert!(!s.may_alias("p", "z"));
}

#[test]
fn pieces_of_a_split_are_views() {
    let s = Setting::new(
        "graph(%x : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %y : Tensor = aten::relu(%x)
  %l : Tensor[] = aten::split(%y, %n, %zero)
  %b : Tensor, %c : Tensor = prim::ListUnpack(%l)
  %flat : Tensor = aten::flatten(%b, %zero, %zero)
  %sum : Tensor = aten::add(%b, %c, %zero)
  return (%sum)
",
    );
    for v in ["b", "c", "flat"] {
        assert!(s.may_alias("y", v), "{v}");
    }
    assert!(s.may_contain("l", "y") && !s.may_alias("sum", "y"));
}

#[test]
fn a_list_from_outside_may_hold_what_comes_from_outside() {
    let s = Setting::new(
        "graph(%l : Tensor[], %x : Tensor, %n : int):
  %before : Tensor = aten::cat(%l, %n)
  %w : Tensor = aten::relu_(%x)
  %after : Tensor = aten::cat(%l, %n)
  %sizes : int[] = aten::size(%x)
  return (%before, %after)
",
    );
    assert!(!s.has_writers("l") && s.db.has_writers_inside(s.value("l")) && s.writes_to("w", "l"));
    assert_eq!(s.moved("after", Side::Before, "w"), None);
    assert!(s.db.node_has_writers(&s.graph, s.node("after")));
}

// --- changing what aliases

#[test]
fn aliasing_changes_only_if_unobservable() {
    let s = Setting::new(
        "graph(%x : Tensor):
  %b : Tensor = aten::relu(%x)
  %c : Tensor = aten::relu(%x)
  %d : Tensor = aten::relu(%x)
  %e : Tensor = aten::relu(%x)
  %w : Tensor = aten::relu_(%e)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%b, %c)
  return (%t)
",
    );
    assert!(!s.safe("x", "b") && !s.safe("b", "c"), "both are known outside");
    assert!(s.safe("c", "d") && s.safe("x", "d"), "d is not known outside");
    assert!(!s.safe("d", "e"), "e is written");
    assert!(s.db.escapes_scope(&[s.value("b")]) && !s.db.escapes_scope(&[s.value("d")]));
}

// --- text and edits

#[test]
fn the_description_names_what_there_is() {
    let s = Setting::new(
        "graph(%x : Tensor, %in : Tensor[]):
  %a : Tensor = aten::relu(%x)
  %v : Tensor = aten::t(%a)
  %l : Tensor[] = prim::ListConstruct(%v)
  %w : Tensor = aten::relu_(%v)
  return (%l)
",
    );
    let found = s.db.describe(&s.graph);
    let a = Place::Value(s.value("a"));
    let outside = Place::Wildcard(frazil_ir::types::TENSOR);
    assert!(
        found.points_to.contains(&(s.value("v"), vec![a])) && found.points_to.contains(&(s.value("x"), vec![outside]))
    );
    assert!(
        !found.points_to.iter().any(|(v, _)| *v == s.value("a")),
        "it is memory of its own"
    );
    assert_eq!(
        found.contains,
        [(s.value("in"), vec![outside]), (s.value("l"), vec![a])]
    );
    assert_eq!(found.writes, [(s.node("w"), vec![a])]);
}

#[test]
fn edits_keep_the_analysis_true() {
    let mut s = Setting::new(
        "graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %w : Tensor = aten::relu_(%a)
  return (%b)
",
    );
    let (a, b, w) = (s.value("a"), s.value("b"), s.node("w"));
    let root = s.graph.root();
    let relu = s.graph.ctx().symbol("aten::relu");
    let mut builder = frazil_ir::Builder::at_end(&mut s.graph, root);
    let (copy, new) = (
        builder.op(relu, &[a], frazil_ir::types::TENSOR),
        builder.op(relu, &[b], frazil_ir::types::TENSOR),
    );
    s.db.copy_value(a, copy);
    s.db.create_value(&s.graph, new);
    assert!(s.db.may_alias(copy, a) && s.db.has_writers(copy) && !s.db.has_writers(new));
    assert!(!s.db.may_alias(new, a) && !s.db.may_alias(new, b) && s.db.may_alias(new, new));
    s.db.replace_value(b, new);
    assert!(s.db.may_alias(new, b) && s.db.escapes_scope(&[new]));
    let other = s.graph.defining_node(new).unwrap();
    s.db.replace_node(w, other);
    assert!(s.db.is_mutable(other) && !s.db.is_mutable(w));
}

#[test]
fn calls_are_followed_where_callees_are_known() {
    let s = Setting::new("graph(%x : Tensor):\n  return (%x)\n");
    let ctx = s.registry.ctx();
    let graph = |text: &str| frazil_syntax::parse_graph(ctx, text).unwrap().graph;
    let schema = frazil_ir::schema::parse_schema(ctx, "f(Tensor x, Tensor y) -> Tensor").unwrap();
    let mut unit = frazil_ir::CompilationUnit::default();
    unit.add_function(frazil_ir::Function {
        name: ctx.symbol("__torch__.f"),
        schema,
        graph: graph("graph(%x : Tensor, %y : Tensor):\n  %w : Tensor = aten::relu_(%x)\n  %r : Tensor = aten::mul(%x, %y)\n  return (%r)\n"),
    });
    let caller = graph(
        "graph(%n : int):
  %sizes : int[] = prim::ListConstruct(%n)
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::zeros(%sizes, %none, %none, %none, %none)
  %b : Tensor = aten::zeros(%sizes, %none, %none, %none, %none)
  return (%a, %b)
",
    );
    let mut caller = caller;
    let nodes = caller.all_nodes();
    let outputs: Vec<ValueId> = nodes.iter().filter_map(|n| caller.output(*n)).collect();
    let (a, b) = (outputs[2], outputs[3]);
    let root = caller.root();
    let mut builder = frazil_ir::Builder::at_end(&mut caller, root);
    let f = builder.constant(frazil_ir::Constant::Function(ctx.symbol("__torch__.f")));
    let r = builder.op(symbols::PRIM_CALL_FUNCTION, &[f, a, b], frazil_ir::types::TENSOR);
    let call = caller.defining_node(r).unwrap();
    let catalogue = s.registry.catalogue();
    let db = AliasDb::with_calls(&caller, catalogue, &unit);
    assert!(db.has_writers(a) && !db.has_writers(b) && db.writes_to_alias(call, &[a]) && !db.may_alias(r, a));
    let db = AliasDb::new(&caller, catalogue);
    assert!(
        db.has_writers(a) && db.has_writers(b) && db.may_alias(r, a),
        "not followed, it may do anything"
    );
}
