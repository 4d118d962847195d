//! Tests of the alias analysis, on graphs that the tests build.

use super::*;
use frazil_ir::schema::Properties;
use frazil_ir::{Builder, Context, SymbolId, TypeId, symbols, types};

const SCHEMAS: &str = "\
    aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
    aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    aten::relu_(Tensor(a!) self) -> Tensor(a!)
    aten::view(Tensor(a) self, int[] size) -> Tensor(a)
    aten::cat(Tensor[] tensors, int dim=0) -> Tensor
    aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]
    aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)
    aten::extend.t(t[](a!) self, t[] other) -> ()
    aten::__getitem__.t(t[](a) list, int idx) -> t(*)
    aten::add.t(t[] a, t[] b) -> t[]
    aten::dropout(Tensor input, float p, bool train) -> Tensor
    aten::size(Tensor self) -> int[]
    aten::warn(str message, int stacklevel=2) -> ()
";

struct Setting {
    ctx: Arc<Context>,
    catalogue: Catalogue,
    graph: Graph,
}

impl Setting {
    fn new() -> Setting {
        let ctx = Arc::new(Context::new());
        let mut catalogue = Catalogue::new(ctx.clone());
        catalogue.add_lines(SCHEMAS);
        let dropout = Properties {
            may_return_operand: true,
            ..Properties::NONE
        };
        catalogue.add_properties(ctx.symbol("aten::dropout"), dropout);
        let graph = Graph::new(ctx.clone());
        Setting { ctx, catalogue, graph }
    }

    fn kind(&self, name: &str) -> SymbolId {
        self.ctx.symbol(name)
    }

    fn op(&mut self, name: &str, operands: &[ValueId], ty: TypeId) -> ValueId {
        let (kind, root) = (self.kind(name), self.graph.root());
        Builder::at_end(&mut self.graph, root).op(kind, operands, ty)
    }

    fn tensor(&mut self) -> ValueId {
        let x = self
            .graph
            .inputs()
            .first()
            .copied()
            .unwrap_or_else(|| self.graph.add_input(types::TENSOR));
        self.op("aten::mul", &[x, x], types::TENSOR)
    }

    fn int(&mut self, n: i64) -> ValueId {
        let root = self.graph.root();
        Builder::at_end(&mut self.graph, root).constant(n)
    }

    fn list(&mut self, items: &[ValueId]) -> ValueId {
        let root = self.graph.root();
        Builder::at_end(&mut self.graph, root).list(types::TENSOR, items)
    }

    fn db(&self) -> AliasDb {
        AliasDb::new(&self.graph, &self.catalogue)
    }

    fn node(&self, v: ValueId) -> NodeId {
        self.graph.defining_node(v).unwrap()
    }
}

#[test]
fn views_alias_and_fresh_results_do_not() {
    let mut s = Setting::new();
    let (a, b) = (s.tensor(), s.tensor());
    let size = s.op("aten::size", &[a], s.ctx.list_of(types::INT));
    let view = s.op("aten::view", &[a, size], types::TENSOR);
    let written = s.op("aten::relu_", &[view], types::TENSOR);
    let db = s.db();
    assert!(db.may_alias(a, view) && db.may_alias(written, a) && !db.may_alias(a, b));
    assert!(db.has_writers(a) && !db.has_writers(b) && !db.has_writers(size));
    assert!(db.writes_to_alias(s.node(written), &[a]) && !db.writes_to_alias(s.node(view), &[a]));
    let x = s.graph.inputs()[0];
    assert!(db.may_alias_wildcard(x) && !db.may_alias_wildcard(a));
}

#[test]
fn inputs_of_a_kind_may_alias_and_of_two_kinds_not() {
    let mut s = Setting::new();
    let (x, y) = (s.graph.add_input(types::TENSOR), s.graph.add_input(types::TENSOR));
    let l = s.graph.add_input(s.ctx.list_of(types::INT));
    let n = s.graph.add_input(types::INT);
    let db = s.db();
    assert!(db.may_alias(x, y) && !db.may_alias(x, l) && !db.may_alias(n, n));
}

#[test]
fn lists_hold_without_merging_until_they_are_read() {
    let mut s = Setting::new();
    let (a, b, c) = (s.tensor(), s.tensor(), s.tensor());
    let (l, zero) = (s.list(&[a, b]), s.int(0));
    s.op("aten::cat", &[l, zero], types::TENSOR);
    let m = s.list(&[c]);
    let db = s.db();
    assert!(!db.may_alias(a, b) && db.may_contain_alias(l, a) && !db.may_contain_alias(l, c) && !db.may_alias(l, a));
    assert!(!db.may_contain_alias(l, m));
    let item = s.op("aten::__getitem__", &[l, zero], types::TENSOR);
    s.op("aten::relu_", &[item], types::TENSOR);
    let db = s.db();
    assert!(db.may_alias(item, a) && db.may_alias(item, b) && !db.may_alias(item, c));
    assert!(db.has_writers(a) && db.has_writers_inside(l) && !db.has_writers(l) && !db.has_writers_inside(m));
}

#[test]
fn what_is_appended_after_a_read_counts() {
    let mut s = Setting::new();
    let (a, b, c) = (s.tensor(), s.tensor(), s.tensor());
    let (l, zero) = (s.list(&[a]), s.int(0));
    let item = s.op("aten::__getitem__", &[l, zero], types::TENSOR);
    let list_type = s.ctx.list_of(types::TENSOR);
    s.op("aten::append", &[l, b], list_type);
    let other = s.list(&[c]);
    let extend = s.kind("aten::extend");
    let root = s.graph.root();
    Builder::at_end(&mut s.graph, root).node(extend, &[l, other], &[]);
    let joined = s.op("aten::add", &[other, other], list_type);
    let last = s.op("aten::__getitem__", &[joined, zero], types::TENSOR);
    let db = s.db();
    assert!(db.may_alias(item, b), "appended");
    assert!(db.may_alias(item, c), "extended");
    assert!(db.may_alias(last, c), "joined");
    assert!(db.has_writers(l) && !db.has_writers(other));
    assert!(!db.may_alias_wildcard(b), "append keeps it in the list");
}

#[test]
fn chunks_alias_their_base() {
    let mut s = Setting::new();
    let a = s.tensor();
    let two = s.int(2);
    let list_type = s.ctx.list_of(types::TENSOR);
    let chunks = s.op("aten::chunk", &[a, two, two], list_type);
    let root = s.graph.root();
    let unpack = Builder::at_end(&mut s.graph, root).node(symbols::PRIM_LIST_UNPACK, &[chunks], &[types::TENSOR; 2]);
    let parts = s.graph.node_outputs(unpack).to_vec();
    let db = s.db();
    assert!(db.may_alias(parts[0], a) && db.may_alias(parts[0], parts[1]) && !db.may_alias_wildcard(a));
}

#[test]
fn tuples_built_here_are_seen_through() {
    let mut s = Setting::new();
    let (a, b) = (s.tensor(), s.tensor());
    let root = s.graph.root();
    let mut builder = Builder::at_end(&mut s.graph, root);
    let t = builder.tuple(&[a, b]);
    let parts = builder.unpack_tuple(t);
    let db = s.db();
    assert!(db.may_alias(parts[0], a) && !db.may_alias(parts[0], b) && db.may_contain_alias(t, b));
}

#[test]
fn unknown_operators_reach_everything_they_are_given() {
    let mut s = Setting::new();
    let (a, b, kept) = (s.tensor(), s.tensor(), s.tensor());
    let l = s.list(&[a]);
    let r = s.op("foo::bar", &[l, b], types::TENSOR);
    let db = s.db();
    for v in [a, b, r, l] {
        assert!(db.may_alias_wildcard(v) && db.has_writers(v));
    }
    assert!(!db.has_writers(kept) && !db.may_alias(kept, r));
    assert!(db.may_alias(a, r) && db.writes_to_wildcard(s.node(r)));
}

#[test]
fn dropout_may_give_its_operand() {
    let mut s = Setting::new();
    let a = s.tensor();
    let root = s.graph.root();
    let (p, train) = {
        let mut b = Builder::at_end(&mut s.graph, root);
        (b.constant(0.5), b.constant(false))
    };
    let d = s.op("aten::dropout", &[a, p, train], types::TENSOR);
    assert!(s.db().may_alias(a, d));
}

#[test]
fn branches_join_and_loops_carry() {
    let mut s = Setting::new();
    let (a, b, c) = (s.tensor(), s.tensor(), s.tensor());
    let cond = s.graph.add_input(types::BOOL);
    let n = s.graph.add_input(types::INT);
    let root = s.graph.root();
    let mut builder = Builder::at_end(&mut s.graph, root);
    let branch = builder.node(symbols::PRIM_IF, &[cond], &[types::TENSOR]);
    for v in [a, b] {
        let block = builder.add_block(branch);
        builder.add_result(block, v);
    }
    let joined = builder.output(branch).unwrap();
    let looping = builder.node(symbols::PRIM_LOOP, &[n, cond, joined], &[types::TENSOR]);
    let body = builder.add_block(looping);
    builder.add_parameter(body, types::INT);
    let p = builder.add_parameter(body, types::TENSOR);
    let relu = builder.ctx().symbol("aten::relu_");
    let mul = builder.ctx().symbol("aten::mul");
    let mut inner = Builder::at_end(&mut builder, body);
    inner.op(relu, &[p], types::TENSOR);
    let next = inner.op(mul, &[p, c], types::TENSOR);
    builder.set_results(body, &[cond, next]);
    let out = builder.output(looping).unwrap();
    let db = s.db();
    assert!(db.may_alias(joined, a) && db.may_alias(joined, b) && !db.may_alias(joined, c) && !db.may_alias(a, b));
    assert!(db.may_alias(p, next) && db.may_alias(p, a) && db.may_alias(out, a) && db.may_alias(out, next));
    assert!(db.has_writers(a) && db.has_writers(next) && !db.has_writers(c));
    assert!(
        db.writes_to_alias(looping, &[b]),
        "the loop writes what its body writes"
    );
}

#[test]
fn nodes_move_unless_it_is_observable() {
    let mut s = Setting::new();
    let a = s.tensor();
    let b = s.tensor();
    let user = s.op("aten::mul", &[a, b], types::TENSOR);
    let write = s.op("aten::relu_", &[b], types::TENSOR);
    let late = s.op("aten::mul", &[b, b], types::TENSOR);
    let root = s.graph.root();
    s.graph.add_result(root, late);
    let db = s.db();
    let [na, nb, nu, nw, nl] = [a, b, user, write, late].map(|v| s.node(v));
    assert!(
        !db.move_after_topologically_valid(&mut s.graph, nu, nw, &s.catalogue),
        "it reads what is written"
    );
    assert!(!db.move_before_topologically_valid(&mut s.graph, nl, nw, &s.catalogue));
    assert!(
        !db.move_after_topologically_valid(&mut s.graph, nb, nu, &s.catalogue),
        "its result is used"
    );
    assert!(db.move_after_topologically_valid(&mut s.graph, na, nb, &s.catalogue));
    assert!(s.graph.is_before(nb, na) && s.graph.is_before(na, nu));
    assert!(s.graph.verify(None).is_ok());
}

#[test]
fn long_chains_take_linear_time() {
    let mut s = Setting::new();
    let zero = s.int(0);
    let list_type = s.ctx.list_of(types::TENSOR);
    let mut x = s.tensor();
    for _ in 0..5_000 {
        let other = s.tensor();
        let l = s.list(&[x, other]);
        let m = s.op("aten::add", &[l, l], list_type);
        x = s.op("aten::__getitem__", &[m, zero], types::TENSOR);
    }
    s.op("aten::relu_", &[x], types::TENSOR);
    let start = std::time::Instant::now();
    let db = s.db();
    assert!(db.has_writers(x));
    assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
}
