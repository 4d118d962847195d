//! Comparison of two modules up to the numbers of their objects, nodes and values.

use super::element::encoding_parameters;
use frazil_ir::names::Names;
use frazil_ir::nesting::with_stack;
use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{
    AttributeValue, BlockId, ClassDef, Constant, Context, Encoding, Graph, Module, NodeId, ObjectId, SymbolId,
    TensorData, TypeId, ValueId,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The first difference of two modules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Difference {
    /// The location in the modules, from the outermost part inwards.
    pub place: String,
    /// The description of the difference.
    pub message: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Compares two modules: classes, functions, graphs and the objects reachable from the roots, names, types, source ranges, the bits of every number, and
/// identity. Exactly the values that are shared in one must be shared in the other. Contexts may differ. Values must be printed with the same names, except for
/// numbers.
///
/// # Errors
/// The first difference.
pub fn equal_modules(a: &Module, b: &Module) -> Result<(), Difference> {
    let mut c = Comparer {
        a: a.ctx(),
        b: b.ctx(),
        objects: HashMap::new(),
        queue: Vec::new(),
        identities: HashMap::new(),
        backwards: HashMap::new(),
        place: Vec::new(),
    };
    c.modules(a, b).map_err(|message| Difference {
        place: c.place.join(" > "),
        message,
    })
}

type Compared = Result<(), String>;

struct Comparer<'m> {
    a: &'m Context,
    b: &'m Context,
    objects: HashMap<ObjectId, ObjectId>,
    queue: Vec<(ObjectId, ObjectId)>,
    /// Addresses of tensors, storages and containers of the first module, mapped to those of the second.
    identities: HashMap<usize, usize>,
    backwards: HashMap<usize, usize>,
    /// The current location; kept when a difference is found.
    place: Vec<String>,
}

/// Two graphs that are compared, with the correspondence of their values.
struct Pair<'g> {
    a: &'g Graph,
    b: &'g Graph,
    names: (Names<'g>, Names<'g>),
    values: HashMap<ValueId, ValueId>,
}

impl<'m> Comparer<'m> {
    fn at(&mut self, place: impl Into<String>, compare: impl FnOnce(&mut Self) -> Compared) -> Compared {
        self.place.push(place.into());
        compare(self)?;
        self.place.pop();
        Ok(())
    }

    fn modules(&mut self, a: &'m Module, b: &'m Module) -> Compared {
        self.names(
            "classes",
            a.unit.classes.keys().copied(),
            b.unit.classes.keys().copied(),
            false,
        )?;
        for (name, class) in &a.unit.classes {
            let other = self.b.find_symbol(self.a.name(*name)).and_then(|n| b.unit.class(n));
            if let Some(other) = other {
                self.at(format!("class {}", self.a.name(*name)), |c| {
                    c.classes(a, class, b, other)
                })?;
            }
        }
        let functions = |m: &Module| m.unit.functions().map(|(_, f)| f.name).collect::<Vec<_>>();
        self.names("functions", functions(a).into_iter(), functions(b).into_iter(), false)?;
        for (_, f) in a.unit.functions() {
            let name = self.a.name(f.name);
            let Some(id) = self.b.find_symbol(name).and_then(|n| b.unit.find_function(n)) else {
                continue;
            };
            let g = b.unit.function(id);
            self.at(format!("function {name}"), |c| {
                c.schemas(&f.schema, &g.schema)?;
                c.graphs(&f.graph, &g.graph)
            })?;
        }
        self.object(a.root, b.root)?;
        while let Some((x, y)) = self.queue.pop() {
            match (a.state(x), b.state(y)) {
                (None, None) => {}
                (Some(s), Some(t)) => self.at("state of an object", |c| c.constants(s, t))?,
                (s, t) => return Err(format!("state of an object: {} and {}", s.is_some(), t.is_some())),
            }
            let (x, y) = (a.object(x), b.object(y));
            let class = self.a.name(x.class);
            self.same(class, self.b.name(y.class), "class of an object")?;
            self.same(&x.slots.len(), &y.slots.len(), "number of slots")?;
            for (i, (s, t)) in x.slots.iter().zip(&y.slots).enumerate() {
                let attribute = a.unit.class(x.class).and_then(|c| c.attributes.get_index(i));
                let name = attribute.map_or("?", |(n, _)| self.a.name(*n));
                self.at(format!("object of {class}, {name}"), |c| c.constants(s, t))?;
            }
        }
        self.same(&a.extra_files, &b.extra_files, "extra files")?;
        self.same(&a.records, &b.records, "records")
    }

    fn same<T: PartialEq + fmt::Debug + ?Sized>(&self, a: &T, b: &T, what: &str) -> Compared {
        if a == b {
            return Ok(());
        }
        Err(format!("{what}: {a:?} and {b:?}"))
    }

    /// Compares two lists of names, including their order if it matters.
    fn names(
        &self,
        what: &str,
        a: impl Iterator<Item = SymbolId>,
        b: impl Iterator<Item = SymbolId>,
        ordered: bool,
    ) -> Compared {
        let mut a: Vec<_> = a.map(|s| self.a.name(s)).collect();
        let mut b: Vec<_> = b.map(|s| self.b.name(s)).collect();
        if !ordered {
            a.sort_unstable();
            b.sort_unstable();
        }
        self.same(&a, &b, what)
    }

    fn types(&self, a: TypeId, b: TypeId) -> Compared {
        let a = display_type(self.a, a, TypeStyle::Exact).to_string();
        self.same(&a, &display_type(self.b, b, TypeStyle::Exact).to_string(), "type")
    }

    fn classes(&mut self, a: &Module, x: &ClassDef, b: &Module, y: &ClassDef) -> Compared {
        self.same(&x.kind, &y.kind, "kind")?;
        self.names(
            "attributes",
            x.attributes.keys().copied(),
            y.attributes.keys().copied(),
            true,
        )?;
        for (s, t) in x.attributes.values().zip(y.attributes.values()) {
            self.same(&s.kind, &t.kind, "kind of an attribute")?;
            self.types(s.ty, t.ty)?;
        }
        self.names(
            "constants",
            x.constants.keys().copied(),
            y.constants.keys().copied(),
            true,
        )?;
        for (s, t) in x.constants.values().zip(y.constants.values()) {
            self.constants(s, t)?;
        }
        self.names(
            "signatures",
            x.signatures.keys().copied(),
            y.signatures.keys().copied(),
            true,
        )?;
        for (s, t) in x.signatures.values().zip(y.signatures.values()) {
            self.schemas(s, t)?;
        }
        self.names("methods", x.methods.keys().copied(), y.methods.keys().copied(), true)?;
        self.names(
            "functions of methods",
            x.methods.values().map(|f| a.unit.function(*f).name),
            y.methods.values().map(|f| b.unit.function(*f).name),
            true,
        )?;
        let hooks = |c: &ClassDef| (c.forward_pre_hooks.clone(), c.forward_hooks.clone());
        let ((p, q), (r, s)) = (hooks(x), hooks(y));
        self.names("hooks before forward", p.into_iter(), r.into_iter(), true)?;
        self.names("hooks after forward", q.into_iter(), s.into_iter(), true)
    }

    fn schemas(&mut self, a: &FunctionSchema, b: &FunctionSchema) -> Compared {
        self.same(self.a.name(a.name), self.b.name(b.name), "name of the schema")?;
        self.same(&a.is_vararg, &b.is_vararg, "further arguments")?;
        self.same(&a.is_varret, &b.is_varret, "further results")?;
        for (x, y) in [(&a.arguments, &b.arguments), (&a.returns, &b.returns)] {
            self.same(&x.len(), &y.len(), "number of arguments or results")?;
            for (s, t) in x.iter().zip(y) {
                self.argument(s, t)?;
            }
        }
        Ok(())
    }

    fn argument(&mut self, a: &Argument, b: &Argument) -> Compared {
        self.same(self.a.name(a.name), self.b.name(b.name), "name of an argument")?;
        self.same(&a.keyword_only, &b.keyword_only, "keyword-only")?;
        self.same(&a.broadcast, &b.broadcast, "broadcast")?;
        self.types(a.ty, b.ty)?;
        match (&a.default, &b.default) {
            (None, None) => Ok(()),
            (Some(x), Some(y)) => self.constants(x, y),
            _ => Err("one has a default".to_owned()),
        }
    }

    fn object(&mut self, a: ObjectId, b: ObjectId) -> Compared {
        match self.objects.get(&a) {
            Some(&known) if known == b => Ok(()),
            Some(_) => Err("an object is shared in one and not in the other".to_owned()),
            None if self.objects.values().any(|v| *v == b) => Err("two objects are one in the other".to_owned()),
            None => {
                self.objects.insert(a, b);
                self.queue.push((a, b));
                Ok(())
            }
        }
    }

    /// Returns true if `a` and `b` were visited before as a pair. Returns an error if either was visited with a different partner.
    fn identity(&mut self, a: usize, b: usize, what: &str) -> Result<bool, String> {
        match (self.identities.get(&a), self.backwards.get(&b)) {
            (None, None) => {
                self.identities.insert(a, b);
                self.backwards.insert(b, a);
                Ok(false)
            }
            (Some(&known), Some(&back)) if known == b && back == a => Ok(true),
            _ => Err(format!("a {what} is shared in one and not in the other")),
        }
    }

    fn constants(&mut self, a: &Constant, b: &Constant) -> Compared {
        match (a, b) {
            (Constant::Tensor(x), Constant::Tensor(y)) => self.tensors(x, y),
            (Constant::Object(x), Constant::Object(y)) => self.object(*x, *y),
            (Constant::Function(x), Constant::Function(y)) => {
                self.same(self.a.name(*x), self.b.name(*y), "name of a function")
            }
            (Constant::List(x), Constant::List(y)) => {
                if self.identity(Arc::as_ptr(x).addr(), Arc::as_ptr(y).addr(), "list")? {
                    return Ok(());
                }
                self.types(x.element, y.element)?;
                self.all(&x.items, &y.items)
            }
            (Constant::Tuple(x), Constant::Tuple(y)) => {
                if self.identity(Arc::as_ptr(x).addr(), Arc::as_ptr(y).addr(), "tuple")? {
                    return Ok(());
                }
                self.types(x.ty, y.ty)?;
                self.all(&x.items, &y.items)
            }
            (Constant::Dict(x), Constant::Dict(y)) => {
                if self.identity(Arc::as_ptr(x).addr(), Arc::as_ptr(y).addr(), "dictionary")? {
                    return Ok(());
                }
                self.types(x.key, y.key)?;
                self.types(x.value, y.value)?;
                self.same(&x.entries.len(), &y.entries.len(), "number of entries")?;
                for ((k, v), (l, w)) in x.entries.iter().zip(&y.entries) {
                    self.constants(k, l)?;
                    with_stack(|| self.constants(v, w))?;
                }
                Ok(())
            }
            (Constant::Enum(x), Constant::Enum(y)) => {
                self.same(self.a.name(x.class), self.b.name(y.class), "enumeration")?;
                self.same(&*x.name, &*y.name, "member")?;
                self.constants(&x.value, &y.value)
            }
            _ if a.same(b) => Ok(()),
            _ => Err(format!("{a:?} and {b:?}")),
        }
    }

    fn all(&mut self, a: &[Constant], b: &[Constant]) -> Compared {
        self.same(&a.len(), &b.len(), "number of elements")?;
        for (i, (x, y)) in a.iter().zip(b).enumerate() {
            self.at(format!("element {i}"), |c| with_stack(|| c.constants(x, y)))?;
        }
        Ok(())
    }

    fn tensors(&mut self, a: &Arc<TensorData>, b: &Arc<TensorData>) -> Compared {
        if self.identity(Arc::as_ptr(a).addr(), Arc::as_ptr(b).addr(), "tensor")? {
            return Ok(());
        }
        self.same(&a.dtype, &b.dtype, "dtype")?;
        self.same(&a.sizes, &b.sizes, "sizes")?;
        self.same(&a.strides, &b.strides, "strides")?;
        self.same(&a.offset, &b.offset, "offset")?;
        self.same(&a.requires_grad, &b.requires_grad, "requires_grad")?;
        match (a.encoding.as_deref(), b.encoding.as_deref()) {
            (None, None) => {}
            (Some(p), Some(q)) => self.encodings(p, q)?,
            (p, q) => return Err(format!("encoding: {p:?} and {q:?}")),
        }
        let (s, t) = (&a.storage, &b.storage);
        if self.identity(Arc::as_ptr(s).addr(), Arc::as_ptr(t).addr(), "storage")? {
            return Ok(());
        }
        self.same(&s.device(), &t.device(), "device")?;
        if s.bytes() != t.bytes() {
            return Err("the bytes of a storage differ".to_owned());
        }
        Ok(())
    }

    fn encodings(&mut self, a: &Encoding, b: &Encoding) -> Compared {
        self.same(a.name(), b.name(), "encoding")?;
        self.constants(&encoding_parameters(self.a, a), &encoding_parameters(self.b, b))
    }

    fn graphs(&mut self, a: &Graph, b: &Graph) -> Compared {
        let mut pair = Pair {
            a,
            b,
            names: (Names::new(a), Names::new(b)),
            values: HashMap::new(),
        };
        // A work list instead of recursion, since nesting may be deep.
        let mut work = vec![(a.root(), b.root())];
        while let Some((x, y)) = work.pop() {
            self.block(&mut pair, x, y, &mut work)?;
        }
        Ok(())
    }

    /// Compares two blocks. Blocks of their nodes are added to `work`.
    fn block(&mut self, g: &mut Pair<'_>, x: BlockId, y: BlockId, work: &mut Vec<(BlockId, BlockId)>) -> Compared {
        self.definitions(g, g.a.parameters(x), g.b.parameters(y))?;
        let (mut s, mut t) = (g.a.nodes(x), g.b.nodes(y));
        loop {
            match (s.next(), t.next()) {
                (None, None) => break,
                (Some(m), Some(n)) => {
                    let place = format!("node {m} ({})", g.a.kind_name(m));
                    self.at(place, |c| c.nodes(g, m, n, work))?;
                }
                _ => return Err("one block has more nodes".to_owned()),
            }
        }
        self.uses(g, g.a.return_node(x), g.b.return_node(y))
    }

    fn definitions(&mut self, g: &mut Pair<'_>, xs: &[ValueId], ys: &[ValueId]) -> Compared {
        self.same(&xs.len(), &ys.len(), "number of values")?;
        for (&x, &y) in xs.iter().zip(ys) {
            g.values.insert(x, y);
            self.types(g.a.ty(x), g.b.ty(y))?;
            let (mut p, mut q) = (String::new(), String::new());
            g.names.0.push(x, &mut p);
            g.names.1.push(y, &mut q);
            let is_number = |name: &str| name.bytes().skip(1).all(|b| b.is_ascii_digit());
            if !(is_number(&p) && is_number(&q)) {
                self.same(&p, &q, "name of a value")?;
            }
        }
        Ok(())
    }

    fn uses(&self, g: &Pair<'_>, m: NodeId, n: NodeId) -> Compared {
        let mapped: Vec<_> = g.a.operands(m).map(|v| g.values.get(&v).copied()).collect();
        let found: Vec<_> = g.b.operands(n).map(Some).collect();
        self.same(&mapped, &found, "operands")
    }

    fn nodes(&mut self, g: &mut Pair<'_>, m: NodeId, n: NodeId, work: &mut Vec<(BlockId, BlockId)>) -> Compared {
        let (a, b) = (g.a, g.b);
        self.same(a.kind_name(m), b.kind_name(n), "kind")?;
        self.uses(g, m, n)?;
        let range = |g: &Graph, n, ctx: &Context| {
            let range = g.source_range(n).filter(|r| !r.is_of_text());
            range.map(|r| r.display(ctx).to_string())
        };
        self.same(&range(a, m, self.a), &range(b, n, self.b), "source range")?;
        let scope = |g: &Graph, n, ctx: &Context| g.scope(n).map(|s| ctx.name(s).to_owned());
        self.same(&scope(a, m, self.a), &scope(b, n, self.b), "scope")?;
        let names = |g: &Graph, n, ctx: &Context| {
            let mut names: Vec<_> = g.attributes(n).iter().map(|a| ctx.name(a.name).to_owned()).collect();
            names.sort();
            names
        };
        self.same(&names(a, m, self.a), &names(b, n, self.b), "attributes")?;
        for x in a.attributes(m) {
            let y = self.b.find_symbol(self.a.name(x.name)).and_then(|s| b.attribute(n, s));
            if let Some(y) = y {
                self.attributes(&x.value, y)?;
            }
        }
        self.definitions(g, a.node_outputs(m), b.node_outputs(n))?;
        let (p, q) = (a.node_blocks(m), b.node_blocks(n));
        self.same(&p.len(), &q.len(), "number of blocks")?;
        work.extend(p.iter().copied().zip(q.iter().copied()));
        Ok(())
    }

    fn attributes(&mut self, a: &AttributeValue, b: &AttributeValue) -> Compared {
        match (a, b) {
            (AttributeValue::Constant(x), AttributeValue::Constant(y)) => self.constants(x, y),
            (AttributeValue::Type(x), AttributeValue::Type(y)) => self.types(*x, *y),
            (AttributeValue::Types(xs), AttributeValue::Types(ys)) => {
                self.same(&xs.len(), &ys.len(), "number of types")?;
                xs.iter().zip(ys).try_for_each(|(x, y)| self.types(*x, *y))
            }
            (AttributeValue::Graph(x), AttributeValue::Graph(y)) => self.graphs(x, y),
            (AttributeValue::Graphs(xs), AttributeValue::Graphs(ys)) => {
                self.same(&xs.len(), &ys.len(), "number of graphs")?;
                xs.iter().zip(ys).try_for_each(|(x, y)| self.graphs(x, y))
            }
            (AttributeValue::Elided(x), AttributeValue::Elided(y)) => self.same(x, y, "elided value"),
            _ => Err(format!("{a:?} and {b:?}")),
        }
    }
}
