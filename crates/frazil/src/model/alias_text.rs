//! The result of the alias analysis as text.

use crate::session::Session;
use frazil_ir::types;
use frazil_ir::{CompilationUnit, Context, Graph, Module};
use frazil_passes::alias_db::{AliasDb, Place};
use frazil_passes::freeze::{Keeper, kept_attributes};
use frazil_syntax::{GraphText, print_graph};
use std::fmt::Write;

/// Returns the alias analysis of every function of `unit`, in the three sections that PyTorch prints.
pub(crate) fn unit(session: &Session, unit: &CompilationUnit) -> String {
    let mut out = String::new();
    for (_, function) in unit.functions() {
        let db = AliasDb::new(&function.graph, session.registry().catalogue());
        let _ = writeln!(out, "# {}", session.ctx().name(function.name));
        sections(&function.graph, &db, &mut out);
    }
    out
}

impl Session {
    /// Returns the alias analysis of one graph as text, in PyTorch's layout. Calls are not analysed.
    ///
    /// ```
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
    /// let text = model.session().alias_db_text(model.graph("forward")?);
    /// assert!(text.contains("%x points to: WILDCARD for type Tensor"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn alias_db_text(&self, graph: &Graph) -> String {
        let mut out = String::new();
        sections(graph, &AliasDb::new(graph, self.registry().catalogue()), &mut out);
        out
    }
}

fn sections(graph: &Graph, db: &AliasDb, out: &mut String) {
    let text = GraphText::new(graph);
    let found = db.describe(graph);
    let list = |places: &[Place]| {
        let names: Vec<String> = places.iter().map(|p| place(graph.ctx(), &text, *p)).collect();
        names.join(", ")
    };
    let _ = write!(out, "\n===1. GRAPH===\n{}\n===2. ALIAS DB===\n", print_graph(graph));
    for (value, places) in &found.points_to {
        let _ = writeln!(out, "{} points to: {}", text.value(*value), list(places));
    }
    for (value, places) in &found.contains {
        let _ = writeln!(out, "{} contains: {}", text.value(*value), list(places));
    }
    out.push_str("\n===3. Writes===\n");
    for (node, places) in &found.writes {
        let _ = writeln!(out, "{}\n  {}", text.node(*node), list(places));
    }
    out.push('\n');
}

fn place(ctx: &Context, text: &GraphText<'_>, place: Place) -> String {
    match place {
        Place::Value(v) => text.value(v),
        Place::Wildcard(ty) if ty == types::ANY => "WILDCARD".to_owned(),
        Place::Wildcard(ty) => format!("WILDCARD for type {}", ctx.show_type(ty)),
        Place::Unnamed(n) => format!("memory {n}"),
        Place::Outside => "WILDCARD".to_owned(),
        Place::Anything => "ANYTHING".to_owned(),
    }
}

/// Returns one line for each attribute that remains after freezing, with the reason.
pub(crate) fn kept(session: &Session, module: &Module) -> String {
    let mut out = String::from("===4. Attributes that stay===\n");
    for kept in kept_attributes(module, session.registry().as_ref()) {
        let at = kept.at.map(|(function, node)| {
            let function = module.unit.function(function);
            let line = GraphText::new(&function.graph).node(node);
            let line = line.trim_start();
            format!("{line} (in {})", module.ctx().name(function.name))
        });
        let at = at.unwrap_or_default();
        let _ = match kept.keeper {
            Keeper::Assigned => writeln!(out, "{}: assigned by {at}", kept.path),
            Keeper::Written => writeln!(out, "{}: written by {at}", kept.path),
            Keeper::Escapes => writeln!(out, "{}: known to {at}", kept.path),
            Keeper::Forked => writeln!(out, "{}: handed to {at}", kept.path),
            Keeper::UsedAsValue => writeln!(out, "{}: part of an object that is used by {at}", kept.path),
            Keeper::Unrestored => writeln!(
                out,
                "{}: part of an object that its __setstate__ would have to restore, which uses operators without semantics",
                kept.path
            ),
            Keeper::NoConstant => writeln!(out, "{}: a sparse tensor cannot be a constant", kept.path),
            Keeper::Shared(other) => writeln!(out, "{}: shares memory with {other}", kept.path),
            Keeper::Preserved => writeln!(out, "{}: nothing in the program; it was preserved", kept.path),
        };
    }
    out
}
