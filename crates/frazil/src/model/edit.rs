//! Text form and editing of models and graphs, for embedders.

use crate::error::{Error, Result};
use crate::model::loaded::{Graphs, Loaded};
use crate::model::{Model, text};
use crate::session::Session;
use frazil_ir::{FunctionId, Graph, Module};
use std::fmt;

impl Model {
    /// Returns the text form of the module, as [`Loaded::ir_text`] returns it. If `elide` is given, the data of constants with more elements is
    /// left out; such text cannot be read back.
    pub fn ir_text(&self, elide: Option<usize>) -> String {
        text::print_module(self.module(), elide)
    }

    /// Returns the model with an edited graph of `method`, which may be the dotted path of a submodule's method. The result is verified against the schemas of
    /// the session. This model is not changed.
    ///
    /// ```
    /// use frazil::Session;
    ///
    /// let session = Session::new();
    /// let model = session.script("f.py".as_ref(), "def f(x): return torch.relu(x)\n", &[])?.to_model("f")?;
    /// let sigmoid = session.ctx().symbol("aten::sigmoid");
    /// let edited = model.edit("forward", |graph| {
    ///     for node in graph.all_nodes() {
    ///         if graph.kind_name(node) == "aten::relu" {
    ///             graph.set_kind(node, sigmoid);
    ///         }
    ///     }
    ///     Ok(())
    /// })?;
    /// assert!(edited.ir_text(None).contains("aten::sigmoid"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchMethod`]; the errors of `edit`, which may use [`Error::Other`]; [`Error::Invalid`] if the graph does not verify.
    pub fn edit(&self, method: &str, edit: impl FnOnce(&mut Graph) -> Result<()>) -> Result<Model> {
        let (_, id) = self.method_at(method)?;
        self.edit_graph(method, id, edit)
    }

    /// Edits a method or function of the unit of [`Model::module`] as [`edit`](Self::edit) does, including those of submodules and classes.
    ///
    /// ```
    /// # let source = "def g(x): return torch.relu(x)\ndef f(x): return g(x)\n";
    /// let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
    /// let functions: Vec<_> = model.module().unit.functions().map(|(id, _)| id).collect();
    /// for id in functions {
    ///     assert!(model.edit_function(id, |_graph| Ok(())).is_ok());
    /// }
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`edit`](Self::edit).
    pub fn edit_function(&self, id: FunctionId, edit: impl FnOnce(&mut Graph) -> Result<()>) -> Result<Model> {
        let name = self.module().ctx().name(self.module().unit.function(id).name);
        self.edit_graph(name, id, edit)
    }

    fn edit_graph(&self, name: &str, id: FunctionId, edit: impl FnOnce(&mut Graph) -> Result<()>) -> Result<Model> {
        let mut module = Module::clone(self.module());
        let graph = &mut module.unit.function_mut(id).graph;
        edit(graph)?;
        graph
            .verify(Some(self.session().registry().catalogue()))
            .map_err(|source| Error::Invalid {
                method: name.to_owned(),
                source,
            })?;
        Ok(self.derived(module))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("class", &self.root().original_name())
            .field("methods", &self.root().method_names())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Graphs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graphs").finish_non_exhaustive()
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loaded::Model(model) => f.debug_tuple("Model").field(model).finish(),
            Loaded::Graphs(graphs) => f.debug_tuple("Graphs").field(graphs).finish(),
        }
    }
}
