//! Alias analysis of a graph. Values are identified by their names in the graph's text.

use crate::error::{Error, Result};
use crate::model::loaded::Loaded;
use frazil_ir::{BlockId, Graph, ValueId};
use frazil_passes::alias_db::AliasDb;
use frazil_syntax::GraphText;
use std::collections::HashMap;

/// Alias analysis of a graph. Values are identified by name, as in the graph's text: `x.1`, or `%x.1`.
///
/// ```
/// # use frazil::{Loaded, Session};
/// let text = b"graph(%x : Tensor):\n  %v : Tensor = aten::t(%x)\n  %y : Tensor = aten::relu(%x)\n  return (%v, %y)\n";
/// let loaded = Session::new().load_bytes("graph.ir".as_ref(), text.to_vec())?;
/// let aliases = loaded.aliases("forward")?;
/// assert!(aliases.may_alias("x", "v")? && !aliases.may_alias("x", "y")?);
/// # Ok::<(), frazil::Error>(())
/// ```
pub struct Aliases {
    db: AliasDb,
    values: HashMap<String, ValueId>,
}

impl Loaded {
    /// Analyses the graph of method `method` of a module, or of the function of that name, or the only graph. Calls of the module's own methods and functions
    /// are analysed. The results refer to the current graph.
    ///
    /// See [`Aliases`] for an example.
    ///
    /// # Errors
    /// If there is no such graph.
    pub fn aliases(&self, method: &str) -> Result<Aliases> {
        let graph = self.graph(method)?;
        let unit = match self {
            Loaded::Model(model) => &model.module().unit,
            Loaded::Graphs(graphs) => graphs.unit(),
        };
        let db = AliasDb::with_calls(graph, self.session().registry().catalogue(), unit);
        let text = GraphText::new(graph);
        let mut values = HashMap::new();
        let mut name = |value| {
            let text = text.value(value);
            values.insert(text.trim_start_matches('%').to_owned(), value);
        };
        parameters(graph, graph.root()).for_each(&mut name);
        for node in graph.all_nodes() {
            graph.node_outputs(node).iter().copied().for_each(&mut name);
            for &block in graph.node_blocks(node) {
                parameters(graph, block).for_each(&mut name);
            }
        }
        Ok(Aliases { db, values })
    }
}

fn parameters(graph: &Graph, block: BlockId) -> impl Iterator<Item = ValueId> {
    graph.parameters(block).iter().copied()
}

impl Aliases {
    /// Returns the underlying analysis, for callers with value ids.
    ///
    /// ```
    /// # let text = b"graph(%x : Tensor):\n  %v : Tensor = aten::t(%x)\n  %y : Tensor = aten::relu(%x)\n  return (%v, %y)\n";
    /// # let loaded = frazil::Session::new().load_bytes("graph.ir".as_ref(), text.to_vec())?;
    /// let aliases = loaded.aliases("forward")?;
    /// let (x, v) = (aliases.value("x")?, aliases.value("v")?);
    /// assert!(aliases.db().may_alias(x, v));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn db(&self) -> &AliasDb {
        &self.db
    }

    /// Returns the value called `name`.
    ///
    /// ```
    /// # let text = b"graph(%x : Tensor):\n  %v : Tensor = aten::t(%x)\n  %y : Tensor = aten::relu(%x)\n  return (%v, %y)\n";
    /// # let loaded = frazil::Session::new().load_bytes("graph.ir".as_ref(), text.to_vec())?;
    /// let aliases = loaded.aliases("forward")?;
    /// assert_eq!(aliases.value("%x")?, loaded.graph("forward")?.inputs()[0]);
    /// assert!(aliases.value("z").is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is none.
    pub fn value(&self, name: &str) -> Result<ValueId> {
        let found = self.values.get(name.strip_prefix('%').unwrap_or(name)).copied();
        found.ok_or_else(|| Error::Unsupported(format!("the graph has no value `{name}`")))
    }

    /// Returns true if both values may be the same object, or tensors on the same storage.
    ///
    /// See [`Aliases`] for an example.
    ///
    /// # Errors
    /// If the graph has no such value.
    pub fn may_alias(&self, a: &str, b: &str) -> Result<bool> {
        Ok(self.db.may_alias(self.value(a)?, self.value(b)?))
    }

    /// Returns true if some object may be reached from both values.
    ///
    /// ```
    /// # let text = b"graph(%x : Tensor):\n  %list : Tensor[] = prim::ListConstruct(%x)\n  return (%list)\n";
    /// # let loaded = frazil::Session::new().load_bytes("graph.ir".as_ref(), text.to_vec())?;
    /// let aliases = loaded.aliases("forward")?; // of `list = [x]`
    /// assert!(aliases.may_contain_alias("list", "x")? && !aliases.may_alias("list", "x")?);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has no such value.
    pub fn may_contain_alias(&self, a: &str, b: &str) -> Result<bool> {
        Ok(self.db.may_contain_alias(self.value(a)?, self.value(b)?))
    }

    /// Returns true if the value may be referenced outside of the graph.
    ///
    /// ```
    /// # let text = b"graph(%list : Tensor[], %i : int):\n  %x : Tensor = aten::__getitem__(%list, %i)\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n";
    /// # let loaded = frazil::Session::new().load_bytes("graph.ir".as_ref(), text.to_vec())?;
    /// let aliases = loaded.aliases("forward")?; // of `y = relu(list[i])`
    /// assert!(aliases.may_alias_wildcard("x")? && !aliases.may_alias_wildcard("y")?);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has no such value.
    pub fn may_alias_wildcard(&self, value: &str) -> Result<bool> {
        Ok(self.db.may_alias_wildcard(self.value(value)?))
    }

    /// Returns true if some node of the graph may write to the value itself.
    ///
    /// ```
    /// # let text = b"graph(%x : Tensor):\n  %v : Tensor = aten::t(%x)\n  %y : Tensor = aten::relu(%x)\n  %w : Tensor = aten::relu_(%v)\n  return (%y)\n";
    /// # let loaded = frazil::Session::new().load_bytes("graph.ir".as_ref(), text.to_vec())?;
    /// let aliases = loaded.aliases("forward")?; // of `v = x.t(); y = x.relu(); v.relu_()`
    /// assert!(aliases.has_writers("x")? && !aliases.has_writers("y")?);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has no such value.
    pub fn has_writers(&self, value: &str) -> Result<bool> {
        Ok(self.db.has_writers(self.value(value)?))
    }

    /// Returns true if the value, or something in it, may be reachable from outside after the graph has run.
    ///
    /// ```
    /// # let text = b"graph(%x : Tensor):\n  %v : Tensor = aten::t(%x)\n  %y : Tensor = aten::relu(%v)\n  %z : Tensor = aten::neg(%y)\n  return (%z)\n";
    /// # let loaded = frazil::Session::new().load_bytes("graph.ir".as_ref(), text.to_vec())?;
    /// let aliases = loaded.aliases("forward")?; // of `y = x.t().relu(); return -y`
    /// assert!(aliases.escapes("z")? && !aliases.escapes("y")?);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the graph has no such value.
    pub fn escapes(&self, value: &str) -> Result<bool> {
        Ok(self.db.escapes_scope(&[self.value(value)?]))
    }
}
